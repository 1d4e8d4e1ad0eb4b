"""Ranks to quantized levels, and how far a scorer disagrees with them.

Level 1 is the sparsest. The preference pairs of Algorithm 1, step (b), are all ``(i, j)`` with
``levels[i] > levels[j]``; they are implied by the levels and never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Ints

# Alarms happen in the lowest few per cent, and only pairs across a cut order anything: hence fine cuts there.
TAIL_CUTS = (0.01, 0.02, 0.035, 0.05, 0.075, 0.10, 0.15, 0.25, 0.50, 0.75)


def resolve_cuts(n_levels: int | str | Sequence[float]) -> tuple[float, ...]:
    """Return the cut points for a number of uniform levels, for ``"tail"``, or as they are.

    Examples
    --------
    >>> resolve_cuts(4)
    (0.25, 0.5, 0.75)
    >>> resolve_cuts([0.03])
    (0.03,)
    """
    if isinstance(n_levels, str):
        if n_levels == "tail":
            return TAIL_CUTS
    elif isinstance(n_levels, (int, np.integer)):
        if not isinstance(n_levels, bool) and n_levels >= 2:
            return tuple(level / int(n_levels) for level in range(1, int(n_levels)))
    elif isinstance(n_levels, Iterable) and all(isinstance(cut, Real) for cut in n_levels):
        cuts = tuple(float(cut) for cut in n_levels)
        rising = all(low < high for low, high in zip((0.0, *cuts), (*cuts, 1.0), strict=True))
        if cuts and rising:
            return cuts
    raise ValueError(
        f"n_levels must be 'tail', an integer >= 2, or ascending cut points strictly between 0 and 1; "
        f"got {n_levels!r}."
    )


def quantize(ranks: ArrayLike, cuts: Sequence[float]) -> Ints:
    """Return each rank's level, ``1 + #{cuts below the rank}``, from 1 to ``len(cuts) + 1``.

    Examples
    --------
    >>> quantize([0.01, 0.03, 0.5, 1.0], [0.03, 0.6])
    array([1, 1, 2, 3])
    """
    return np.searchsorted(np.asarray(cuts, dtype=np.float64), np.asarray(ranks), side="left") + 1


def count_pairs(levels: ArrayLike) -> int:
    """Return how many pairs the levels imply.

    Examples
    --------
    >>> count_pairs([1, 1, 2, 3])
    5
    """
    sizes = np.unique(np.asarray(levels), return_counts=True)[1]
    n = int(sizes.sum())
    return (n * n - int((sizes.astype(np.int64) ** 2).sum())) // 2


def disagreement(scores: ArrayLike, levels: ArrayLike) -> float:
    """Return the share of pairs that the scores order wrongly, a tie counting one half.

    The pairwise disagreement loss of the paper's section 6.1, normalized, and with ties: counted as right
    they would make a scorer look perfect that says the same of every row. Without pairs it is one half.

    Examples
    --------
    >>> disagreement([3.0, 2.0, 2.0], [3, 2, 1])
    0.16666666666666666
    """
    from rankad._loops.counts import wrong_order

    f = np.asarray(scores, dtype=np.float64)
    labels = np.asarray(levels)
    if np.isnan(f).any():
        raise ValueError(f"scores must be numbers, but {int(np.isnan(f).sum())} of {f.size} are NaN.")
    pairs = count_pairs(labels)
    if pairs == 0:
        return 0.5
    distinct, compact = np.unique(labels, return_inverse=True)
    order = np.argsort(f, kind="stable")
    wrong = wrong_order(f[order], compact[order].astype(np.int64) + 1, len(distinct))
    return float(wrong / pairs)
