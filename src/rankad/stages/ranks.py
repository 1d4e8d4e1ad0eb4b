"""Neighbour distances to p-value ranks: K-LPE, aK-LPE and epsilon-LPE.

A rank is a training quantity in (0, 1]: the share of nominal rows that lie in no denser a place. The higher,
the more nominal. (A p-value is a calibrated quantity: `rankad.stages.calibration`.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Bools, Floats

Statistic = Literal["kth", "mean", "centred"]


def auto_neighbors(n: int) -> int:
    """Return ``K = n^(2/5)`` rounded down, the order of Theorem 2: 20 for 2,000 rows.

    Examples
    --------
    >>> auto_neighbors(2_000), auto_neighbors(1)
    (20, 1)
    """
    return max(1, int(n**0.4))


def neighbors_needed(k: int, statistic: Statistic) -> int:
    """Return how many neighbours `knn_statistic` reads: k, or ``k + k // 2`` for the centred mean."""
    return k + k // 2 if statistic == "centred" else k


def knn_statistic(distances: Floats, k: int, statistic: Statistic) -> Floats:
    """Reduce sorted neighbour distances to one number a row; larger means sparser.

    Parameters
    ----------
    distances : ndarray of shape (n, q)
        Ascending along each row, with ``q >= neighbors_needed(k, statistic)``.
    k : int
        ``K`` of the paper.
    statistic : {"kth", "mean", "centred"}
        The K-th distance ``R_S`` (K-LPE); the mean of distances 1 to K, and the mean of distances
        ``K - (K-1)//2`` to ``K + K//2``: the two readings of aK-LPE's average.

    Examples
    --------
    >>> distances = np.array([[1.0, 2.0, 4.0, 8.0]])
    >>> [knn_statistic(distances, 3, s).item() for s in ("kth", "mean", "centred")]
    [4.0, 2.3333333333333335, 4.666666666666667]
    """
    needed = neighbors_needed(k, statistic)
    if k < 1 or distances.shape[1] < needed:
        raise ValueError(
            f"statistic={statistic!r} with k={k} reads {needed} neighbour distances a row, "
            f"but distances has {distances.shape[1]} columns."
        )
    if statistic == "kth":
        return np.array(distances[:, k - 1])
    if statistic == "mean":
        return np.asarray(distances[:, :k].mean(axis=1))
    if statistic == "centred":
        return np.asarray(distances[:, k - (k - 1) // 2 - 1 : needed].mean(axis=1))
    raise ValueError(f"statistic must be 'kth', 'mean' or 'centred', got {statistic!r}.")


def density_ranks(density: ArrayLike, nominal: ArrayLike | None = None) -> Floats:
    """Return the share of nominal rows whose density is no higher: equations (2) and (3).

    ``p-hat(eta) = #{i : density(x_i) <= density(eta)} / n``. For p-hat_K pass the negated distance
    statistic, for p-hat_epsilon the neighbour counts. The split form of the paper is the same formula with
    the queries' density measured in ``S_2`` and the nominal rows' in ``S_1``. By default the queries are the
    nominal rows.

    Examples
    --------
    >>> density_ranks([-1.0, -2.0, -2.0, -5.0])
    array([1.  , 0.75, 0.75, 0.25])
    """
    values = np.asarray(density)
    sample = np.sort(values if nominal is None else np.asarray(nominal))
    if sample.size == 0:
        raise ValueError("nominal must hold at least one row.")
    return np.asarray(np.searchsorted(sample, values, side="right") / sample.size)


def resampled_ranks(splits: Iterable[Floats], halves: Bools) -> Floats:
    """Average the ranks over random halvings: the U-statistic resampling of the paper's section 6.1.

    In each halving a row is ranked among its own half by its density measured in the other half; `splits` has
    these densities for each halving. `halves` are as `random_halves` draws them.
    """
    from rankad._loops.counts import add_ranks_in_halves

    total = np.zeros(halves.shape[1])
    for number, (split, half) in enumerate(zip(splits, halves, strict=True)):
        density = np.asarray(split)
        if density.shape != half.shape:
            raise ValueError(
                f"splits must hold one number for each of {half.size} rows, got shape {density.shape} for "
                f"halving {number}."
            )
        add_ranks_in_halves(density, np.argsort(density), half, total)
    return total / len(halves)
