"""Which rows to leave out where nobody can vouch for all of them."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import rankdata

from rankad._base.arrays import Floats, Ints
from rankad.stages.neighbors import nearest_neighbors
from rankad.stages.scaling import Scaling, fit_scaling

# Neighbours are looked for among so many rows.
_MOST_REFERENCE = 2_000
_BLOCK = 20_000
_LARGEST_SINGLE = 1e30
# The share of the rows that trim="auto" keeps from training. A normal row fewer costs little, an anomaly that
# trains vouches for those like it.
AUTO_SHARE = 0.2
# Suspicion looks at this share of all rows as neighbours. A cluster of half as many is still far from most of
# them.
_WIDE_SHARE = 0.1
_N_TREES = 300
# Numbers that are ranked at a time.
_RANKED = 2**22


def suspects(
    rows: Floats, share: float, scaling: str | None, rng: np.random.Generator, n_jobs: int | None = None
) -> Ints:
    """Return which rows are suspects, that share of all: those whose K-th nearest neighbour is farthest.

    K is one more than the suspects there are to find, so that no cluster of them can vouch for itself. With
    more than 2,000 rows, neighbours are looked for among 2,000 drawn at random, and K is one more than the
    suspects that may be among these: four standard deviations above what is expected.

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
            distances = nearest_neighbors(scaled[drawn], k + 1, scaled[here], n_jobs=n_jobs).distances
            # A row that was drawn finds itself first.
            farness[here] = np.where(itself[here], distances[:, k], distances[:, k - 1])
    return np.sort(np.argsort(-farness, kind="stable")[:n_suspects])


def most_suspicious(suspicion: Floats, least: int) -> Ints:
    """Return which rows trim="auto" keeps from training, ascending; at least so many others are left."""
    n_out = max(0, min(int(AUTO_SHARE * len(suspicion)), len(suspicion) - least))
    return np.sort(np.argsort(-suspicion, kind="stable")[:n_out])


def suspicion(rows: Floats, rng: np.random.Generator, n_jobs: int | None = None) -> Floats:
    """Return how suspicious each row of a table is among all of them, from 0 to 1.

    A first look, coarse on purpose: a fine one would be taken in by a cluster of anomalies, which are one
    another's neighbours. (So is this one, by a cluster of much more than a twentieth of the rows.) The mean
    rank over five views: the mean distance to a tenth of all rows on columns standardized, scaled to their
    range, and unscaled; an isolation forest; and the tails of single columns.

    >>> rows = np.vstack([np.random.default_rng(0).normal(size=(95, 2)), np.full((5, 2), 6.0)])
    >>> sorted(np.argsort(suspicion(rows, np.random.default_rng(0)))[-5:].tolist())
    [95, 96, 97, 98, 99]
    """
    from sklearn.ensemble import IsolationForest

    seed = int(rng.integers(2**31))
    drawn = np.sort(rng.choice(len(rows), min(len(rows), _MOST_REFERENCE), replace=False))
    # Trees are grown in float32.
    small = np.clip(rows, -_LARGEST_SINGLE, _LARGEST_SINGLE)
    forest = IsolationForest(n_estimators=_N_TREES, random_state=seed).fit(small)
    n_near = max(1, int(_WIDE_SHARE * len(drawn)))
    views = [
        mean_distance(scaling.apply(rows), drawn, n_near, n_jobs)
        for scaling in (fit_scaling(rows, "standard"), _to_range(rows), fit_scaling(rows, None))
    ]
    votes = [*views, -forest.score_samples(small), _tails(rows)]
    return np.asarray(np.mean([rankdata(vote) for vote in votes], axis=0) / len(rows))


def _to_range(rows: Floats) -> Scaling:
    """Return the scaling of every column to its range."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    return Scaling(low, np.where(high > low, high - low, 1.0))


def mean_distance(rows: Floats, reference: Ints, k: int, n_jobs: int | None = None) -> Floats:
    """Return each row's mean distance to the k nearest of the reference rows, never to itself.

    >>> mean_distance(np.array([[0.0], [1.0], [3.0], [9.0]]), np.array([0, 1, 2]), 2)
    array([2. , 1.5, 2.5, 7. ])
    """
    k = min(k, len(reference) - 1)
    itself = np.zeros(len(rows), dtype=bool)
    itself[reference] = True
    means = np.empty(len(rows))
    for begin in range(0, len(rows), _BLOCK):
        here = slice(begin, begin + _BLOCK)
        distances = nearest_neighbors(rows[reference], k + 1, rows[here], n_jobs=n_jobs).distances
        # A row of the reference finds itself first, at no distance.
        means[here] = np.where(itself[here], distances.sum(axis=1), distances[:, :k].sum(axis=1)) / k
    return means


def _tails(rows: Floats) -> Floats:
    """Return the sum over columns of -log of the share of rows at least as far out on the same side."""
    n, d = rows.shape
    total, step = np.zeros(n), max(1, _RANKED // n)
    for begin in range(0, d, step):
        part = rows[:, begin : begin + step]
        # The smaller of the two tails, and ties count against the row.
        up_to, from_here = rankdata(part, method="max", axis=0), rankdata(-part, method="max", axis=0)
        total -= np.log(np.minimum(up_to, from_here) / n).sum(axis=1)
    return total
