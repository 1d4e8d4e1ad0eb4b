"""Distances between rows of many columns, by matrix products.

``|x - y|^2 = |x|^2 + |y|^2 - 2 x'y`` costs a fraction of differences column by column, but its error is the
rounding of the squared lengths, however small the distance. So products in single precision, with a bound on
their error, only select the rows that can be near. The distances of these are then summed column by column,
and are the same to the last bit as without products. Only `squared_distances` returns products, in double
precision and where they are accurate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Floats, Ints, Singles
from rankad._base.threads import in_blocks
from rankad._loops.cache import compiled
from rankad._loops.nearest import scan
from rankad._loops.vectors import in_groups

# Rows of more columns than this are wide.
WIDE = 64
# A scan is quicker where more than this share of the rows are candidates, or for fewer queries than this.
_MANY, _FEW = 1 / 3, 64
# Rows no longer than this, whose squares may underflow, are left to the scan.
_LEAST = 1e-140
# What may underflow in single precision, per column, where the largest coordinate is about one.
_UNDERFLOW = 1e-36
# Queries compared with all rows at once, and sums that are computed together.
_BLOCK, _ABREAST = 512, 8
# The relative accuracy of `squared_distances`. If more than a share are less accurate, no products are used.
_ACCURACY, _INACCURATE = 1e-10, 1 / 8


class Placed(NamedTuple):
    """Rows in single precision, less a centre, in a unit in which no coordinate is beyond one."""

    rows: Singles
    squares: Singles  # their squared lengths
    unit: float  # a power of two that coordinates were multiplied by

    @classmethod
    def of(cls, rows: Floats, *others: Floats) -> list[Placed] | None:
        """Place rows, and others by the centre of the first; None where their squares may underflow."""
        center, tables = rows.mean(axis=0), (rows, *others)
        largest = max(
            float(np.maximum(table.max(axis=0) - center, center - table.min(axis=0)).max())
            for table in tables
        )
        if not largest > _LEAST:
            return None
        unit = 2.0 ** -int(np.frexp(largest)[1])
        return [cls._at(table, center, unit) for table in tables]

    @classmethod
    def _at(cls, rows: Floats, center: Floats, unit: float) -> Placed:
        gaps = rows - center
        gaps *= unit
        placed = gaps.astype(np.float32)
        return cls(placed, np.einsum("ij,ij->i", placed, placed), unit)

    @property
    def slack(self) -> float:
        """A bound on the error of ``s + t - 2 p`` as a squared distance, as a share of s + t.

        Here s and t are squared lengths and p is a product. Of ``4 (d + 8) u``, with u = 2^-24, rounding
        coordinates takes ``4 u``, the product and the lengths ``2 d u``, additions and comparisons ``8 u``.
        """
        return _slack(self.rows.shape[1], np.float32)

    @property
    def underflow(self) -> float:
        """The same, absolute, for numbers too small for single precision."""
        return _UNDERFLOW * float(self.rows.shape[1])


def _slack(d: int, kind: type) -> float:
    return 2 * (d + 8) * float(np.finfo(kind).eps)


def nearest_wide(
    rows: Floats, asked: Floats, k: int, own: bool, n_jobs: int | None = None
) -> tuple[Floats, Ints]:
    """Find the k nearest rows of every query: what `scan` finds, to the last bit, for any number of threads.

    `own` says that the queries are the rows themselves; a row is not its own neighbour. Returns distances and
    indices of shape (n_queries, k), the nearest first.
    """
    n = len(asked)
    distances, indices = np.empty((n, k)), np.empty((n, k), dtype=np.int64)
    left, most = np.ones(n, dtype=bool), int(_MANY * len(rows))
    worthwhile = k < most and n >= _FEW
    placed = Placed.of(*((rows,) if own else (rows, asked))) if worthwhile else None
    if placed is not None:
        here, there = placed[0], placed[-1]
        slack, underflow = np.float32(2 * here.slack), np.float32(2 * here.underflow)
        above, spare = here.squares * np.float32(1 + here.slack), here.squares * slack

        def block(begin: int, end: int) -> None:
            # Upper bounds on squared distances, less the squared length of the query.
            bounds = there.rows[begin:end] @ here.rows.T
            bounds *= -2
            bounds += above
            if own:
                bounds[np.arange(end - begin), np.arange(begin, end)] = np.inf
            limits = np.partition(bounds, k - 1, axis=1)[:, k - 1]
            # Lower bounds are this much less: no row beyond is among the k nearest.
            limits += there.squares[begin:end] * slack + underflow
            bounds -= spare
            out = distances[begin:end], indices[begin:end]
            left[begin:end] = _nearest_within(rows, asked[begin:end], bounds, limits, most, *out)

        in_blocks(block, n, _BLOCK, n_jobs)
    again = np.flatnonzero(left)
    if again.size:
        groups = in_groups(rows, np.float64)

        def scan_block(begin: int, end: int) -> None:
            some = again[begin:end]
            distances[some], indices[some] = scan(groups, len(rows), asked, some, k, own)

        in_blocks(scan_block, len(again), _BLOCK, n_jobs)
    return distances, indices


@compiled
def _nearest_within(rows, asked, bounds, limits, most, distances, indices):  # type: ignore[no-untyped-def]
    """Fill in the nearest of the rows within a query's limit; True where these are too many."""
    n, k = rows.shape[0], distances.shape[1]
    candidates = np.empty(n + _ABREAST, dtype=np.int64)
    squared = np.empty(_ABREAST)
    left = np.zeros(asked.shape[0], dtype=np.bool_)
    for query in range(asked.shape[0]):
        n_found = 0
        for row in range(n):
            candidates[n_found] = row
            n_found += bounds[query, row] <= limits[query]
        if n_found > most:
            left[query] = True
            continue
        best, where = distances[query], indices[query]
        best[:] = np.inf
        for first in range(0, n_found, _ABREAST):
            several = min(_ABREAST, n_found - first)
            # The last ones are filled up with rows that are not used.
            candidates[n_found : first + _ABREAST] = candidates[first]
            _squared_abreast(rows, candidates[first : first + _ABREAST], asked[query], squared)
            for at in range(several):
                value, place = squared[at], k - 1
                if value < best[place]:
                    while place > 0 and best[place - 1] > value:
                        best[place], where[place] = best[place - 1], where[place - 1]
                        place -= 1
                    best[place], where[place] = value, candidates[first + at]
        for place in range(k):
            best[place] = np.sqrt(best[place])
    return left


@compiled
def _squared_abreast(rows, some, point, squared):  # type: ignore[no-untyped-def]
    """Fill in the squared distances of eight rows to a point, computed together to hide latency."""
    a, b, c, d = rows[some[0]], rows[some[1]], rows[some[2]], rows[some[3]]
    e, f, g, h = rows[some[4]], rows[some[5]], rows[some[6]], rows[some[7]]
    to_a = to_b = to_c = to_d = to_e = to_f = to_g = to_h = 0.0
    for column in range(point.shape[0]):
        value = point[column]
        to_a += (a[column] - value) ** 2
        to_b += (b[column] - value) ** 2
        to_c += (c[column] - value) ** 2
        to_d += (d[column] - value) ** 2
        to_e += (e[column] - value) ** 2
        to_f += (f[column] - value) ** 2
        to_g += (g[column] - value) ** 2
        to_h += (h[column] - value) ** 2
    squared[0], squared[1], squared[2], squared[3] = to_a, to_b, to_c, to_d
    squared[4], squared[5], squared[6], squared[7] = to_e, to_f, to_g, to_h


def squared_distances(rows: Floats, others: Floats) -> Floats:
    """Return ``|x - y|^2`` for every two rows, of shape (n, m), with relative error 1e-10; zero if equal.

    Where the product is less accurate, the distance is computed from the rows.
    """
    d = rows.shape[1]
    if d <= WIDE:
        return _squared(rows, others)
    center = others.mean(axis=0)
    here, there = rows - center, others - center
    squares, lengths = (np.einsum("ij,ij->i", gaps, gaps) for gaps in (here, there))
    squared = here @ there.T
    squared *= -2
    lengths = squares[:, None] + lengths
    squared += lengths
    # Squares that underflow are not accurate either.
    lengths *= _slack(d, np.float64) / _ACCURACY
    unsure = np.argwhere(squared <= lengths + _LEAST**2)
    if len(unsure) > _INACCURATE * squared.size:
        return _squared(rows, others)
    _correct(rows, others, unsure, squared)
    return np.asarray(squared)


def _squared(rows: Floats, others: Floats) -> Floats:
    squared = np.empty((len(rows), len(others)))
    _sum_squares(np.ascontiguousarray(rows), np.ascontiguousarray(others.T), squared)
    return squared


@compiled
def _sum_squares(rows, columns, squared):  # type: ignore[no-untyped-def]
    """Fill in squared distances to rows that are given column by column."""
    for row in range(rows.shape[0]):
        sums = squared[row]
        sums[:] = 0.0
        for column in range(rows.shape[1]):
            value = rows[row, column]
            for other in range(columns.shape[1]):
                gap = value - columns[column, other]
                sums[other] += gap * gap


@compiled
def _correct(rows, others, pairs, squared):  # type: ignore[no-untyped-def]
    """Fill in the squared distances of some pairs of rows."""
    for pair in range(pairs.shape[0]):
        one, other = pairs[pair]
        total = 0.0
        for column in range(rows.shape[1]):
            total += (rows[one, column] - others[other, column]) ** 2
        squared[one, other] = total
