"""Bandwidth and C without labels: what is tried, how a trial is judged, and the table of all trials.

Two kinds of judgement. The paper's: the ranker's pairwise disagreement with the levels of rows held out
(`rankad.levels.disagreement`). Ours: how well it tells rows held out from made-up rows that are not nominal
but look like it (`contrast_loss`), which needs no anomalies either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from rankad._arrays import Floats, Ints

__all__ = [
    "PAPER_C",
    "PAPER_MULTIPLES",
    "SelectionTable",
    "collect_trials",
    "contrast_loss",
    "folds",
    "shuffled_columns",
    "uniform_box",
]

# The grid of the paper's section 6.1: 13 values of C, 21 multiples of D_K.
PAPER_C = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
PAPER_MULTIPLES = tuple(2.0**exponent for exponent in range(-10, 11))


class SelectionTable(NamedTuple):
    """Every trial and its loss; one row per pair of bandwidth and C.

    Attributes
    ----------
    bandwidths : ndarray of shape (n_trials,)
        In the units of the caller: multiples of D_K, or sigma itself.
    C : ndarray of shape (n_trials,)
    losses : ndarray of shape (n_trials, n_folds)
        Lower is better; what is measured is named by `criterion`.
    criterion : str
    """

    bandwidths: Floats
    C: Floats
    losses: Floats
    criterion: str

    @property
    def mean_losses(self) -> Floats:
        """The mean over the folds, of shape (n_trials,)."""
        return np.asarray(self.losses.mean(axis=1))

    @property
    def best(self) -> int:
        """The row with the least mean loss; of equals, the smoothest: widest, then smallest C."""
        return int(np.lexsort((self.C, -self.bandwidths, self.mean_losses))[0])


def folds(n: int, n_folds: int, rng: np.random.Generator) -> list[Ints]:
    """Deal n rows at random into `n_folds` folds of nearly equal size, as sorted indices."""
    return [np.sort(part) for part in np.array_split(rng.permutation(n), n_folds)]


def collect_trials(
    bandwidths: Sequence[float], C: Sequence[float], fold_losses: Sequence[Floats], criterion: str
) -> SelectionTable:
    """Lay out the losses of a grid, fold by fold.

    Parameters
    ----------
    bandwidths, C : sequence of float
        The grid; every bandwidth is tried with every C.
    fold_losses : sequence of ndarray
        The losses of each fold, of shape ``(len(bandwidths), len(C))``.
    criterion : str
        The name of what is measured.
    """
    return SelectionTable(
        np.repeat(np.asarray(bandwidths, dtype=np.float64), len(C)),
        np.tile(np.asarray(C, dtype=np.float64), len(bandwidths)),
        np.column_stack([losses.reshape(-1) for losses in fold_losses]),
        criterion,
    )


def contrast_loss(nominal: ArrayLike, negative: ArrayLike) -> float:
    """Return the share of (nominal, negative) pairs in which the negative scores higher; ties one half.

    One minus the area under the ROC curve.

    Examples
    --------
    >>> contrast_loss([2.0, 3.0], [1.0, 2.0])
    0.125
    """
    inside, outside = np.asarray(nominal), np.asarray(negative)
    ranks = rankdata(np.concatenate([inside, outside]))[: inside.size]
    wins = ranks.sum() - inside.size * (inside.size + 1) / 2
    return float(1.0 - wins / (inside.size * outside.size))


def shuffled_columns(rows: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw n rows whose columns come, each independently, from the rows: right margins, no dependence."""
    return np.column_stack([rng.choice(column, n) for column in rows.T])


def uniform_box(rows: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw n rows uniformly from the smallest box that holds the rows."""
    return rng.uniform(rows.min(axis=0), rows.max(axis=0), size=(n, rows.shape[1]))
