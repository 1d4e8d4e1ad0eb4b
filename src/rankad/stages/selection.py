"""Scaling, bandwidth and C without labels: what is tried, how it is judged, and the table of all trials.

Two kinds of judgement. The paper's: the ranker's pairwise disagreement with the levels of rows held out
(`levels.disagreement`). Ours: how well it tells rows held out from made-up rows that are not nominal
but look like it (`contrast_losses`), which needs no anomalies either and compares scalings too: all of them
are asked about the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Floats, Ints

# The grid of the paper's section 6.1: 13 values of C, 21 multiples of D_K.
PAPER_C = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
PAPER_MULTIPLES = tuple(2.0**exponent for exponent in range(-10, 11))


# Added to losses before they are compared with the least: where nearly nothing goes wrong, a difference of a
# hundredth does not matter.
_FLOOR = 0.01


class SelectionTable(NamedTuple):
    """Every trial and its losses; one row per scaling, bandwidth and C.

    Attributes
    ----------
    scalings : tuple of str or None
        The scaling of each trial.
    bandwidths : ndarray of shape (n_trials,)
        sigma, in the units of the trial's scaling: not to be compared between scalings.
    C : ndarray of shape (n_trials,)
    losses : ndarray of shape (n_trials, n_kinds)
        Means over all rows held out; lower is better. The criterion "contrast" has two kinds of loss, by
        shuffled columns and by uniform rows; the others have one.
    relative_losses : ndarray of shape (n_trials,)
        What trials are ordered by: the mean over the kinds, each relative to the least that any trial
        reached (0.01 is added to both, so that nothing is divided by zero). So each kind counts where it
        can tell trials apart: uniform rows in few dimensions, where their losses are small numbers beside
        those of shuffled columns, and shuffled columns in many, where hardly any uniform row is mistaken.
    standard_errors : ndarray of shape (n_trials,)
        Of the difference of a trial's relative loss to the least of all, over the rows held out, the made-up
        rows taken as given; zero for the criterion "disagreement", whose losses are of pairs of rows.
    criterion : str
    """

    scalings: tuple[str | None, ...]
    bandwidths: Floats
    C: Floats
    losses: Floats
    relative_losses: Floats
    standard_errors: Floats
    criterion: str

    @property
    def best(self) -> int:
        """The row that is used.

        Of the trials within one standard error of the least loss, the plainest: the scaling that was listed
        first, then the widest bandwidth, then the smallest C.
        """
        listed = np.array([self.scalings.index(scaling) for scaling in self.scalings])
        apart = self.relative_losses > self.relative_losses.min() + self.standard_errors
        return int(np.lexsort((self.C, -self.bandwidths, listed, apart))[0])


def folds(n: int, n_folds: int, rng: np.random.Generator) -> list[Ints]:
    """Deal n rows at random into `n_folds` folds of nearly equal size, as sorted indices."""
    return [np.sort(part) for part in np.array_split(rng.permutation(n), n_folds)]


def collect_trials(
    scalings: Sequence[str | None],
    bandwidths: Sequence[Sequence[float]],
    C: Sequence[float],
    losses: Floats,
    criterion: str,
) -> SelectionTable:
    """Lay out a grid and its losses, and compare them.

    There are as many bandwidths for each scaling, and every bandwidth is tried with every C. `losses`, of
    shape (n_trials, n_kinds, n_rows), are of each row held out (for the criterion "disagreement", of each
    fold), with trials in the order of scalings, bandwidths and C.
    """
    each = len(bandwidths[0]) * len(C)
    means = losses.mean(axis=2)
    units = means.min(axis=0) + _FLOOR
    relative = ((means + _FLOOR) / units).mean(axis=1)
    errors = np.zeros(len(means))
    if criterion != "disagreement":
        by_row = (losses / units[:, None]).mean(axis=1)
        gaps = by_row - by_row[relative.argmin()]
        errors = gaps.std(axis=1) / np.sqrt(gaps.shape[1])
    return SelectionTable(
        tuple(scaling for scaling in scalings for _ in range(each)),
        np.repeat(np.asarray(bandwidths, dtype=np.float64).reshape(-1), len(C)),
        np.tile(np.asarray(C, dtype=np.float64), len(scalings) * len(bandwidths[0])),
        means,
        relative,
        errors,
        criterion,
    )


def contrast_losses(nominal: ArrayLike, negative: ArrayLike) -> Floats:
    """Return for each nominal score the share of negative ones that are higher; ties one half.

    Their mean is one minus the area under the ROC curve.

    Examples
    --------
    >>> contrast_losses([2.0, 3.0], [1.0, 2.0])
    array([0.25, 0.  ])
    """
    inside, outside = np.asarray(nominal), np.sort(np.asarray(negative))
    below = np.searchsorted(outside, inside, side="left") + np.searchsorted(outside, inside, side="right")
    return 1.0 - below / (2 * outside.size)


def shuffled_columns(rows: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw n rows whose columns come, each independently, from the rows: right margins, no dependence."""
    return np.column_stack([rng.choice(column, n) for column in rows.T])


def uniform_box(rows: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw n rows uniformly from the smallest box that holds the rows."""
    return rng.uniform(rows.min(axis=0), rows.max(axis=0), size=(n, rows.shape[1]))
