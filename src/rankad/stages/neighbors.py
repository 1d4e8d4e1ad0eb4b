"""Nominal rows to neighbour distances: exact, Euclidean, a row never its own neighbour.

Two back ends find the neighbours: a k-d tree where the dimension is low, a direct scan where it is not; and
where there are very many columns, matrix products spare most of the scan (`_loops.wide`). They only name
candidates; the distances are computed by one formula from the rows themselves, so that they do not depend on
the back end, to the last bit, and duplicates are at distance exactly zero. Which of several rows at the same
distance is named, and in which order, is left open.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from rankad._base.arrays import Bools, Floats, Ints
from rankad._base.checks import check_range
from rankad._base.threads import in_blocks, n_threads
from rankad._loops.cache import compiled
from rankad._loops.nearest import scan
from rankad._loops.vectors import in_groups
from rankad._loops.wide import WIDE, nearest_wide

# Where a k-d tree wins: up to 4 columns always, up to 8 once there are enough rows to prune.
_TREE_COLUMNS = ((4, 0), (8, 10_000))
_SUMMED_ALIKE = 4
_SPARE = 4
# Relative differences that rounding may explain.
_ROUNDING = 1e-12
_BLOCK = 512
# Every so many neighbours it is looked whether there are enough.
_LOOK_EVERY = 4


class Neighbors(NamedTuple):
    """Neighbours of every query row, the nearest first; both are of shape (n_queries, k)."""

    distances: Floats
    indices: Ints  # positions in the reference rows


def nearest_neighbors(
    reference: Floats,
    k: int,
    queries: Floats | None = None,
    *,
    method: str = "auto",
    n_jobs: int | None = None,
) -> Neighbors:
    """Find the k nearest reference rows of every query row, exactly.

    Parameters
    ----------
    reference : ndarray of shape (n, d)
    k : int
        Neighbours wanted; at most ``n``, or ``n - 1`` without `queries`.
    queries : ndarray of shape (n_queries, d), optional
        Without it every reference row is a query, and is left out of its own neighbours.
    method : {"auto", "tree", "scan"}
        The back end; it changes the time taken, and which of several equally near rows is named.
    n_jobs : int, optional
        Threads; it changes the time taken and nothing else.

    Examples
    --------
    >>> nearest_neighbors(np.array([[0.0], [1.0], [3.0]]), 1)
    Neighbors(distances=array([[1.],
           [1.],
           [2.]]), indices=array([[1],
           [0],
           [1]]))
    """
    n = len(reference)
    own = queries is None
    limit = n - 1 if own else n
    if not 1 <= k <= limit:
        raise ValueError(
            f"k must lie between 1 and {limit}, the number of other rows to choose from; got {k}."
        )
    rows = np.ascontiguousarray(reference, dtype=np.float64)
    if method == "auto":
        method = "tree" if _prefers_tree(rows) else "scan"
    asked = rows if queries is None else np.ascontiguousarray(queries, dtype=np.float64)
    check_range(rows, asked)
    if method == "tree":
        return _tree_search(rows, asked, k, own, n_jobs)
    if method == "scan" and rows.shape[1] > WIDE:
        return Neighbors(*nearest_wide(rows, asked, k, own, n_jobs))
    if method == "scan":
        groups = in_groups(rows, np.float64)
        everyone = np.arange(len(asked))
        parts = in_blocks(
            lambda begin, end: scan(groups, n, asked, everyone[begin:end], k, own), len(asked), _BLOCK, n_jobs
        )
        return Neighbors(
            np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        )
    raise ValueError(f"method must be 'auto', 'tree' or 'scan', got {method!r}.")


def neighbors_among(kept: Ints, k: int, rows: Floats, known: Neighbors, shrinkage: float) -> Neighbors:
    """Find the k nearest neighbours of every kept row among the kept rows, exactly, given others' work.

    The neighbours of all rows are known, in units that may differ. A row that is not among them is farther
    than the last of them; where that proves that no nearer one was missed, no search is needed.

    `kept` are positions among all rows, and `rows` the kept rows in units of their own: no distance between
    them is less than `shrinkage` times what it is in the units of `known`, the neighbours of every row.
    """
    if not 1 <= k < len(kept):
        raise ValueError(f"k must lie between 1 and {len(kept) - 1}, the number of other rows; got {k}.")
    own = np.ascontiguousarray(rows, dtype=np.float64)
    check_range(own)
    if own.shape[1] > WIDE:
        # Distances to all rows, by products, take no longer than those to the few that are known.
        return Neighbors(*nearest_wide(own, own, k, True, n_jobs=1))
    place = np.full(len(known.indices), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    # Rescaling rounds too, by the largest coordinates.
    slack = 16 * np.finfo(np.float64).eps * float(np.abs(own).max())
    distances, nearest, proven = _nearest_of(own, known, kept, place, k, shrinkage * (1 - _ROUNDING), slack)
    complete = known.indices.shape[1] == len(known.indices) - 1
    unsure = np.flatnonzero(~(proven | complete | (distances[:, -1] == 0.0)))
    if unsure.size:
        groups = in_groups(own, np.float64)
        distances[unsure], nearest[unsure] = scan(groups, len(own), own, unsure, k, True)
    return Neighbors(distances, nearest)


def radius_counts(
    reference: Floats, radius: float, queries: Floats | None = None, *, n_jobs: int | None = None
) -> Ints:
    """Count the reference rows within `radius` (inclusive) of every query row: ``N_S`` of the paper.

    Without `queries` every reference row is a query and does not count itself.

    Examples
    --------
    >>> radius_counts(np.array([[0.0], [1.0], [3.0]]), 1.0)
    array([1, 1, 0])
    """
    if not (np.isfinite(radius) and radius >= 0):
        raise ValueError(f"radius must be finite and >= 0, got {radius!r}.")
    own = queries is None
    rows = np.ascontiguousarray(reference, dtype=np.float64)
    asked = rows if queries is None else np.ascontiguousarray(queries, dtype=np.float64)
    check_range(rows, asked)
    counts = np.zeros(len(asked), dtype=np.int64)
    unsure = np.arange(len(asked))
    if _prefers_tree(rows):
        tree, workers = cKDTree(rows), n_threads(n_jobs)
        # The tree's rounding may differ in the last bit; where that could matter, count by the one formula.
        inner, outer = (
            tree.query_ball_point(asked, radius * edge, workers=workers, return_length=True)
            for edge in (1 - _ROUNDING, 1 + _ROUNDING)
        )
        counts = np.asarray(inner, dtype=np.int64) - own
        unsure = np.flatnonzero(inner != outer)
    columns = np.ascontiguousarray(rows.T)
    parts = in_blocks(
        lambda begin, end: _scan_counts(columns, asked, unsure[begin:end], radius, own),
        len(unsure),
        _BLOCK,
        n_jobs,
    )
    counts[unsure] = np.concatenate(parts)
    return counts


def random_halves(n: int, n_splits: int, rng: np.random.Generator) -> Bools:
    """Draw `n_splits` random halvings of n rows, of shape (n_splits, n): True marks the first half."""
    halves = np.zeros((n_splits, n), dtype=bool)
    for half in halves:
        half[rng.permutation(n)[: n // 2]] = True
    return halves


def split_means(rows: Floats, k: int, halves: Bools, wide: Neighbors | None = None) -> Floats:
    """Return, for each halving, every row's mean distance to its k nearest rows of the *other* half.

    One query for ``4 k`` neighbours among all rows serves every halving: those of them that lie in the other
    half, the first k, are its nearest there. Where fewer than k lie there (probability about one in a
    million per row at k = 20), that row alone is asked again.

    The result is of shape (n_splits, n), as are the halves (`random_halves`). `wide` are neighbours of every
    row among all rows, if they are known already; as many as there may be.
    """
    smaller = int(min(halves.sum(axis=1).min(), (~halves).sum(axis=1).min()))
    if not 1 <= k <= smaller:
        raise ValueError(f"k must lie between 1 and {smaller}, the size of the smaller half; got {k}.")
    if wide is None:
        wide = nearest_neighbors(rows, min(4 * k, len(rows) - 1))
    sides = np.ascontiguousarray(halves.T, dtype=np.float64)
    sums, counts = _sums_in_other_half(wide.distances, wide.indices, sides, k)
    for split in np.flatnonzero((counts < k).any(axis=0)):
        half = halves[split]
        for side in (True, False):
            missed = np.flatnonzero((counts[:, split] < k) & (half == side))
            if missed.size:
                again = nearest_neighbors(rows[half != side], k, rows[missed])
                # Summed in the same order, so that equal distances have equal means.
                sums[missed, split] = again.distances.cumsum(axis=1)[:, -1]
    return np.ascontiguousarray(sums.T) / k


def _prefers_tree(rows: Floats) -> bool:
    n, d = rows.shape
    return any(d <= columns and n >= least for columns, least in _TREE_COLUMNS)


def _tree_search(rows: Floats, asked: Floats, k: int, own: bool, n_jobs: int | None) -> Neighbors:
    n, d = rows.shape
    # Up to four columns the tree sums as we do. Beyond, what it takes for the k nearest may be off by a last
    # bit: a few more candidates show where that could matter.
    spare = 0 if d <= _SUMMED_ALIKE else min(_SPARE, n - own - k)
    width = k + spare
    _, nearest = cKDTree(rows).query(asked, k=np.arange(1, width + own + 1), workers=n_threads(n_jobs))
    nearest = np.ascontiguousarray(nearest, dtype=np.int64)
    if own:
        # Among many duplicates of a row the row itself may not be named; then any one of them can go.
        itself = nearest == np.arange(n)[:, None]
        itself[~itself.any(axis=1), -1] = True
        nearest = nearest[~itself].reshape(n, width)
    distances = _distances_to(rows, asked, nearest)
    order = np.argsort(distances, axis=1, kind="stable")
    distances = np.take_along_axis(distances, order, axis=1)
    nearest = np.take_along_axis(nearest, order, axis=1)
    if spare and width + own < n:
        kth, last = distances[:, k - 1], distances[:, -1]
        unsure = np.flatnonzero((last <= kth * (1 + _ROUNDING)) & (kth > 0))
        if unsure.size:
            groups = in_groups(rows, np.float64)
            distances[unsure, :k], nearest[unsure, :k] = scan(groups, n, asked, unsure, k, own)
    return Neighbors(np.ascontiguousarray(distances[:, :k]), np.ascontiguousarray(nearest[:, :k]))


@compiled
def _distances_to(rows, asked, nearest):  # type: ignore[no-untyped-def]
    """Distances to the named rows, summed column by column as `scan` sums them."""
    out = np.empty(nearest.shape)
    for query in range(nearest.shape[0]):
        for position in range(nearest.shape[1]):
            total = 0.0
            for column in range(rows.shape[1]):
                gap = rows[nearest[query, position], column] - asked[query, column]
                total += gap * gap
            out[query, position] = np.sqrt(total)
    return out


@compiled
def _nearest_of(rows, known, kept, place, k, shrinkage, slack):  # type: ignore[no-untyped-def]
    """Find the k nearest of each row's known neighbours that have a place; infinite where too few have one.

    Also tell whether these are proven to be the nearest of all: no neighbour is nearer than what it is said
    to be in `known`, times the shrinkage, less the slack. Most often a few more than k show it.
    """
    distances = np.full((rows.shape[0], k), np.inf)
    indices = np.zeros((rows.shape[0], k), dtype=np.int64)
    proven = np.zeros(rows.shape[0], dtype=np.bool_)
    for row in range(rows.shape[0]):
        best, where, count = distances[row], indices[row], 0
        said, named = known.distances[kept[row]], known.indices[kept[row]]
        for position in range(named.shape[0]):
            other = place[named[position]]
            if other < 0:
                continue
            if count == k and math.sqrt(best[k - 1]) <= said[position] * shrinkage - slack:
                break
            total = 0.0
            for column in range(rows.shape[1]):
                gap = rows[other, column] - rows[row, column]
                total += gap * gap
            if count < k:
                count += 1
            elif total >= best[k - 1]:
                continue
            slot = count - 1
            while slot > 0 and best[slot - 1] > total:
                best[slot], where[slot] = best[slot - 1], where[slot - 1]
                slot -= 1
            best[slot], where[slot] = total, other
        for at in range(k):
            best[at] = math.sqrt(best[at])
        proven[row] = best[k - 1] <= said[-1] * shrinkage - slack
    return distances, indices, proven


@compiled
def _squared_distances(columns, query, out):  # type: ignore[no-untyped-def]
    out[:] = 0.0
    for column in range(columns.shape[0]):
        value = query[column]
        for row in range(columns.shape[1]):
            gap = columns[column, row] - value
            out[row] += gap * gap


@compiled
def _scan_counts(columns, asked, which, radius, own):  # type: ignore[no-untyped-def]
    """Count the rows within the radius of the queries named by `which`; `own`: a query is a row itself."""
    squared = np.empty(columns.shape[1])
    counts = np.zeros(which.shape[0], dtype=np.int64)
    for position in range(which.shape[0]):
        query = which[position]
        _squared_distances(columns, asked[query], squared)
        if own:
            squared[query] = np.inf
        for row in range(squared.shape[0]):
            if np.sqrt(squared[row]) <= radius:
                counts[position] += 1
    return counts


@compiled
def _sums_in_other_half(distances, indices, sides, k):  # type: ignore[no-untyped-def]
    """Sum, for all halvings at once, up to k distances to neighbours on the other side; and count them."""
    n, n_splits = sides.shape
    sums, counts = np.zeros((n, n_splits)), np.zeros((n, n_splits))
    for row in range(n):
        here, total, count = sides[row], sums[row], counts[row]
        for position in range(distances.shape[1]):
            if position >= k and position % _LOOK_EVERY == 0 and count.min() >= k:
                break
            distance, there = distances[row, position], sides[indices[row, position]]
            for split in range(n_splits):
                # No branch: halves are random, and it would be mispredicted.
                one = 1.0 if (here[split] != there[split]) & (count[split] < k) else 0.0
                total[split] += one * distance
                count[split] += one
    return sums, counts
