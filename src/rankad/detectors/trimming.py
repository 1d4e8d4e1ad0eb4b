"""Which rows to leave out where nobody can vouch for all of them."""

from __future__ import annotations

import math

import numpy as np

from rankad._arrays import Floats, Ints
from rankad.neighbors import nearest_neighbors
from rankad.scaling import fit_scaling

__all__ = ["suspects"]

# Neighbours are looked for among so many rows.
_MOST_REFERENCE = 2_000
_BLOCK = 20_000


def suspects(
    rows: Floats, share: float, scaling: str | None, rng: np.random.Generator, n_jobs: int | None = None
) -> Ints:
    """Return which rows are suspects, that share of all: those whose K-th nearest neighbour is farthest.

    K is one more than the suspects there are to find, so that no cluster of them can vouch for itself. Where
    there are more than 2,000 rows, neighbours are looked for among so many drawn at random, and K is one more
    than the suspects that may be among these: four standard deviations above what is expected.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    share : float
    scaling : {"standard", "robust"} or None
        How columns are scaled first.
    rng : Generator
        Draws the rows to look among.
    n_jobs : int, optional

    Returns
    -------
    ndarray of int
        Ascending.

    Examples
    --------
    >>> rows = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [0.5], [0.6], [0.7], [9.0], [9.0]])
    >>> suspects(rows, 0.2, None, np.random.default_rng(0))
    array([8, 9])
    """
    n = len(rows)
    n_suspects = int(share * n)
    if not n_suspects:
        return np.empty(0, dtype=np.int64)
    scaled = fit_scaling(rows, scaling).apply(rows)
    if n <= _MOST_REFERENCE:
        farness = nearest_neighbors(scaled, n_suspects + 1, n_jobs=n_jobs).distances[:, -1]
    else:
        drawn = rng.choice(n, _MOST_REFERENCE, replace=False)
        expected = share * _MOST_REFERENCE
        k = min(int(expected + 4 * math.sqrt(expected * (1 - share))) + 1, _MOST_REFERENCE - 2)
        farness, itself = np.empty(n), np.zeros(n, dtype=bool)
        itself[drawn] = True
        for begin in range(0, n, _BLOCK):
            here = slice(begin, begin + _BLOCK)
            found = nearest_neighbors(scaled[drawn], k + 1, scaled[here], n_jobs=n_jobs).distances
            # A row that was drawn finds itself first.
            farness[here] = np.where(itself[here], found[:, k], found[:, k - 1])
    return np.sort(np.argsort(-farness, kind="stable")[:n_suspects])
