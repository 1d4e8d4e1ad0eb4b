"""Compiled loops: hand-made vectors and matrix products beside plain loops in numba.

``python -m benchmarks.loops`` prints the table of docs/speed.md. Both versions run by turns in one process,
on one thread; times are processor time of that thread, so that other processes hardly count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from rankad._base.arrays import Floats
from rankad._loops.kernel import UNIT, kernel_scores
from rankad._loops.likelihood import log_likelihoods
from rankad._loops.nearest import NEAR, near_distances, nearest_hubs, scan
from rankad._loops.vectors import POLYNOMIAL, in_groups
from rankad._loops.wide import _squared, nearest_wide, squared_distances
from rankad.scorers.kernel import _NO_LIMITS, FAR_REACH, KernelScorer
from rankad.scorers.mixture import fit_mixture
from rankad.scorers.nearfield import NearField

__all__ = ["Comparison", "compare", "comparisons", "main"]

_REPEATS = 15
_PIECE, _CHUNK = 512, 64
# Rows of a mixture that are processed together.
_TOGETHER = 128
_LOG2_E = math.log2(math.e)
_SINGLE = tuple(np.float32(term) for term in POLYNOMIAL[numba.float32])
_DOUBLE = POLYNOMIAL[numba.float64]
_CONTRACT = numba.njit(nogil=True, fastmath={"contract"})


class Comparison(NamedTuple):
    """Two versions of one loop, on the same numbers."""

    loop: str
    case: str
    ours: Callable[[], Any]
    plain: Callable[[], Any]


# --------------------------------------------------------------------------------------- plain loops in numba


def _square(points, columns, begin, end, squared):  # type: ignore[no-untyped-def]
    """Fill in squared distances of four points to columns of places, two columns at a time."""
    q0, q1, q2, q3 = squared[0], squared[1], squared[2], squared[3]
    for at in range(end - begin):
        q0[at], q1[at], q2[at], q3[at] = 0, 0, 0, 0
    for c in range(0, columns.shape[0], 2):
        one, two = columns[c, begin:end], columns[c + 1, begin:end]
        a0, a1, a2, a3 = points[0, c], points[1, c], points[2, c], points[3, c]
        b0, b1, b2, b3 = points[0, c + 1], points[1, c + 1], points[2, c + 1], points[3, c + 1]
        for at in range(end - begin):
            x, y = one[at], two[at]
            q0[at] = (q0[at] + (x - a0) * (x - a0)) + (y - b0) * (y - b0)
            q1[at] = (q1[at] + (x - a1) * (x - a1)) + (y - b1) * (y - b1)
            q2[at] = (q2[at] + (x - a2) * (x - a2)) + (y - b2) * (y - b2)
            q3[at] = (q3[at] + (x - a3) * (x - a3)) + (y - b3) * (y - b3)


# Neighbours are the same to the last bit; kernel sums may fuse multiplications and additions.
_square_exactly, _square_fused = numba.njit(nogil=True)(_square), _CONTRACT(_square)


@numba.njit(nogil=True)
def _keep(numbers, size, first, itself, smallest, places, hits):  # type: ignore[no-untyped-def]
    """Merge numbers into the ascending list of the smallest so far."""
    last = smallest.shape[0] - 1
    for start in range(0, size, _CHUNK):
        largest, n_hits = smallest[last], 0
        for at in range(start, min(start + _CHUNK, size)):
            hits[n_hits] = at
            n_hits += numbers[at] < largest
        for hit in range(n_hits):
            at = hits[hit]
            value = numbers[at]
            if value < smallest[last] and at != itself:
                slot = last
                while slot > 0 and smallest[slot - 1] > value:
                    smallest[slot], places[slot] = smallest[slot - 1], places[slot - 1]
                    slot -= 1
                smallest[slot], places[slot] = value, first + at


@numba.njit(nogil=True, fastmath={"contract", "reassoc"})
def _sum_powers(q, coefficients):  # type: ignore[no-untyped-def]
    """Return ``sum a 2^-q`` in float32."""
    total = np.float32(0)
    for at in range(q.shape[0]):
        value = min(q[at], np.float32(100))
        n = np.int32(value + np.float32(0.5))
        f, p = np.float32(n) - value, _SINGLE[5]
        p = (((p * f + _SINGLE[4]) * f + _SINGLE[3]) * f + _SINGLE[2]) * f + _SINGLE[1]
        p = p * f + _SINGLE[0]
        bits = np.int32(np.float32(p).view(np.int32) - (n << np.int32(23)))
        total += coefficients[at] * bits.view(np.float32)
    return total


@numba.njit(nogil=True)
def plain_kernel(rows, center, scale, columns, coefficients, scores):  # type: ignore[no-untyped-def]
    """Fill in kernel sums, without a far field."""
    n, d = rows.shape
    points, squared = np.zeros((4, columns.shape[0]), np.float32), np.empty((4, columns.shape[1]), np.float32)
    for begin in range(0, n, 4):
        for at in range(min(4, n - begin)):
            for c in range(d):
                points[at, c] = (rows[begin + at, c] - center[c]) * scale[c]
        _square_fused(points, columns, 0, columns.shape[1], squared)
        for at in range(min(4, n - begin)):
            scores[begin + at] = _sum_powers(squared[at], coefficients)


@numba.njit(nogil=True)
def plain_scan(columns, n, asked, which, k):  # type: ignore[no-untyped-def]
    """Find the k nearest of n rows for some of them."""
    distances, indices = np.full((which.shape[0], k), np.inf), np.zeros((which.shape[0], k), np.int64)
    points, squared = np.zeros((4, columns.shape[0])), np.empty((4, _PIECE))
    hits = np.empty(_CHUNK + 1, np.int64)
    for begin in range(0, which.shape[0], 4):
        several = min(4, which.shape[0] - begin)
        for at in range(several):
            points[at, : asked.shape[1]] = asked[which[begin + at]]
        for first in range(0, n, _PIECE):
            end = min(first + _PIECE, n)
            _square_exactly(points, columns, first, end, squared)
            for at in range(several):
                query = begin + at
                lists = distances[query], indices[query]
                _keep(squared[at], end - first, first, which[query] - first, lists[0], lists[1], hits)
    return np.sqrt(distances), indices


@numba.njit(nogil=True)
def plain_hubs(rows, center, scale, columns, places):  # type: ignore[no-untyped-def]
    """Fill in which hubs are nearest to each row."""
    n, d = rows.shape
    points, squared = (
        np.zeros((4, columns.shape[0]), columns.dtype),
        np.empty((4, columns.shape[1]), columns.dtype),
    )
    smallest, hits = np.empty(places.shape[1], columns.dtype), np.empty(columns.shape[1] + 1, np.int64)
    places[:] = -1
    for begin in range(0, n, 4):
        for at in range(min(4, n - begin)):
            for c in range(d):
                points[at, c] = (rows[begin + at, c] - center[c]) * scale[c]
        _square_exactly(points, columns, 0, columns.shape[1], squared)
        for at in range(min(4, n - begin)):
            smallest[:] = np.inf
            _keep(squared[at], columns.shape[1], 0, -1, smallest, places[begin + at], hits)


@numba.njit(nogil=True)
def plain_near(rows, center, scale, hubs, cells, begins, n_visited, distances):  # type: ignore[no-untyped-def]
    """Fill in mean distances to the nearest places; cells are one after another, each column by column."""
    n, d = rows.shape
    most = (begins[1:] - begins[:-1]).max()
    visited, point = np.empty((n, n_visited), np.int64), np.empty(d, np.float32)
    squared, hits = np.empty(most, np.float32), np.empty(_CHUNK + 1, np.int64)
    smallest, places = np.empty(NEAR, np.float32), np.empty(NEAR, np.int64)
    plain_hubs(rows, center, scale, hubs, visited)
    for row in np.argsort(visited[:, 0]):
        for c in range(d):
            point[c] = (rows[row, c] - center[c]) * scale[c]
        smallest[:] = np.inf
        for hub in visited[row]:
            begin, size = begins[hub], begins[hub + 1] - begins[hub]
            for at in range(size):
                squared[at] = 0
            for c in range(d):
                cell, x = cells[begin * d + c * size : begin * d + (c + 1) * size], point[c]
                for at in range(size):
                    squared[at] += (cell[at] - x) * (cell[at] - x)
            _keep(squared, size, 0, -1, smallest, places, hits)
        distances[row] = np.sqrt(smallest.astype(np.float64)).mean()


@_CONTRACT
def _mixture_squares(points, factors, place, sums, squares, n):  # type: ignore[no-untyped-def]
    squares[:n] = 0.0
    for j in range(points.shape[0]):
        sums[:n] = factors[place]
        place += 1
        for c in range(j + 1):
            line, factor = points[c], factors[place]
            place += 1
            for at in range(n):
                sums[at] += factor * line[at]
        for at in range(n):
            squares[at] += sums[at] * sums[at]


@_CONTRACT
def _mixture_powers(terms, totals, n):  # type: ignore[no-untyped-def]
    totals[:n] = 0.0
    rounding = 1.5 * 2.0**52
    for k in range(terms.shape[0]):
        q = terms[k]
        for at in range(n):
            value = min(q[at], 100.0)
            rounded = rounding - value
            f = (rounding - rounded) - value
            p = ((_DOUBLE[10] * f + _DOUBLE[9]) * f + _DOUBLE[8]) * f + _DOUBLE[7]
            p = (((p * f + _DOUBLE[6]) * f + _DOUBLE[5]) * f + _DOUBLE[4]) * f + _DOUBLE[3]
            p = ((p * f + _DOUBLE[2]) * f + _DOUBLE[1]) * f + _DOUBLE[0]
            bits = np.int64(np.float64(p).view(np.int64) + (np.float64(rounded).view(np.int64) << 52))
            totals[at] += bits.view(np.float64)


@numba.njit(nogil=True)
def plain_mixture(rows, center, factors, constants, logs):  # type: ignore[no-untyped-def]
    """Fill in the logarithm of a mixture's density, many rows together."""
    (n, d), n_gaussians = rows.shape, constants.shape[0]
    points, terms = np.zeros((d, _TOGETHER)), np.empty((n_gaussians, _TOGETHER))
    sums, least, totals = np.empty(_TOGETHER), np.empty(_TOGETHER), np.empty(_TOGETHER)
    for begin in range(0, n, _TOGETHER):
        several = min(_TOGETHER, n - begin)
        for at in range(several):
            for c in range(d):
                points[c, at] = rows[begin + at, c] - center[c]
        least[:] = np.inf
        for k in range(n_gaussians):
            q = terms[k]
            _mixture_squares(points, factors, k * d * (d + 3) // 2, sums, q, several)
            for at in range(several):
                q[at] = 0.5 * q[at] - constants[k]
                least[at] = min(least[at], q[at])
        for k in range(n_gaussians):
            q = terms[k]
            for at in range(several):
                q[at] = (q[at] - least[at]) * _LOG2_E
        _mixture_powers(terms, totals, several)
        for at in range(several):
            logs[begin + at] = math.log(totals[at]) - least[at]


def in_columns(points: Any, dtype: Any) -> Any:
    """Return points column by column, with an even number of columns."""
    columns = np.zeros((points.shape[1] + points.shape[1] % 2, len(points)), dtype)
    columns[: points.shape[1]] = points.T
    return columns


# ---------------------------------------------------------------------------------------------- what is timed


def _kernel(d: int, s: int, n: int) -> Comparison:
    rng = np.random.default_rng(0)
    rows, landmarks, coefficients = rng.normal(size=(n, d)), rng.normal(size=(s, d)), rng.normal(size=s)
    layout = KernelScorer(landmarks, coefficients, np.full(d, math.sqrt(2 * d)), single=True)._layout
    columns = in_columns((landmarks - layout.center) / (UNIT * math.sqrt(2 * d)), np.float32)
    weights, ours, plain = coefficients.astype(np.float32), np.empty(n), np.empty(n)

    def by_vectors() -> Floats:
        kernel_scores(rows, *layout, FAR_REACH, *_NO_LIMITS, ours)
        return ours

    def by_loops() -> Floats:
        plain_kernel(rows, layout.center, layout.scale, columns, weights, plain)
        return plain

    return Comparison("kernel sum", f"{d} columns, {s:,} landmarks", by_vectors, by_loops)


def _scan(d: int, n: int, k: int) -> Comparison:
    rows = np.random.default_rng(0).normal(size=(n, d))
    groups, columns, which = (
        in_groups(rows, np.float64),
        in_columns(rows, np.float64),
        np.arange(0, n, n // 200),
    )
    return Comparison(
        "exact neighbours",
        f"{d} columns, {k} of {n:,} rows",
        lambda: scan(groups, n, rows, which, k, True),
        lambda: plain_scan(columns, n, rows, which, k),
    )


def _centers(d: int, s: int) -> Comparison:
    rng = np.random.default_rng(0)
    rows, centers = rng.normal(size=(400, d)), rng.normal(size=(s, d))
    groups, columns = in_groups(centers, np.float64), in_columns(centers, np.float64)
    ours, plain = np.empty((400, 1), np.int64), np.empty((400, 1), np.int64)

    def by_vectors() -> Any:
        nearest_hubs(rows, np.zeros(d), np.ones(d), groups, ours)
        return ours

    def by_loops() -> Any:
        plain_hubs(rows, np.zeros(d), np.ones(d), columns, plain)
        return plain

    return Comparison("nearest centre (k-means)", f"{d} columns, {s} centres", by_vectors, by_loops)


def _near(d: int, m: int) -> Comparison:
    rng = np.random.default_rng(0)
    field, rows = NearField.of(rng.normal(size=(m, d)), np.ones(d)), rng.normal(size=(1_000, d))
    layout, n_visited = field._layout, min(4, field.n_hubs)
    places = ((field.rows - layout.center) * layout.scale).astype(np.float32)
    hubs, owners = in_columns(places[: field.n_hubs], np.float32), np.empty((m, 1), np.int64)
    plain_hubs(field.rows, layout.center, layout.scale, hubs, owners)
    begins = np.concatenate([[0], np.cumsum(np.bincount(owners[:, 0], minlength=field.n_hubs))])
    order = np.argsort(owners[:, 0], kind="stable")
    parts = [places[order[begin:end]].T.ravel() for begin, end in pairwise(begins)]
    cells, ours, plain = np.concatenate(parts), np.empty(len(rows)), np.empty(len(rows))

    def by_vectors() -> Floats:
        near_distances(rows, *layout[:-1], n_visited, ours)
        return ours

    def by_loops() -> Floats:
        plain_near(rows, layout.center, layout.scale, hubs, cells, begins, n_visited, plain)
        return plain

    return Comparison("near field", f"{d} columns, {m:,} rows", by_vectors, by_loops)


def _mixture(d: int) -> Comparison:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2_000, d))
    mixture = fit_mixture(rows, rng.integers(0, 20, len(rows)))
    ours, plain = np.empty(len(rows)), np.empty(len(rows))

    def by_vectors() -> Floats:
        log_likelihoods(rows, *mixture._layout, mixture.constants, ours)
        return ours

    def by_loops() -> Floats:
        plain_mixture(rows, *mixture._layout, mixture.constants, plain)
        return plain

    return Comparison("mixture of 20 Gaussians", f"{d} columns", by_vectors, by_loops)


def _wide(d: int, n: int) -> Iterator[Comparison]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 5)) @ rng.normal(size=(5, d)) + 0.3 * rng.normal(size=(n, d))
    groups, everyone, some = in_groups(rows, np.float64), np.arange(n), rows[:250]
    yield Comparison(
        "neighbours by products",
        f"{d:,} columns, 80 of {n:,} rows",
        lambda: nearest_wide(rows, rows, 80, True, 1),
        lambda: scan(groups, n, rows, everyone, 80, True),
    )
    yield Comparison(
        "squared distances by products",
        f"{d:,} columns, {n:,} rows by 250",
        lambda: squared_distances(rows, some),
        lambda: _squared(rows, some),
    )


def comparisons() -> Iterator[Comparison]:
    """Yield all comparisons."""
    for d in (2, 5, 10, 30, 100):
        for s in (50, 250, 1_000):
            yield _kernel(d, s, max(64, 4_000_000 // (s * (d + 8))))
    for d in (5, 30):
        for n, k in ((500, 20), (2_000, 80), (5_000, 80)):
            yield _scan(d, n, k)
    for d in (2, 10, 60):
        yield _centers(d, 250)
    for d in (2, 10, 30):
        for m in (1_000, 50_000):
            yield _near(d, m)
    for d in (2, 10, 30):
        yield _mixture(d)
    for d, n in ((100, 2_000), (300, 2_000), (1_000, 2_000), (3_000, 300)):
        yield from _wide(d, n)


def compare(comparison: Comparison, repeats: int = _REPEATS) -> tuple[float, float]:
    """Return the median times of both versions, run by turns."""
    times: tuple[list[float], list[float]] = ([], [])
    with threadpool_limits(limits=1):
        # The first calls compile.
        comparison.ours(), comparison.plain()
        for _ in range(repeats):
            for call, spent in zip((comparison.ours, comparison.plain), times, strict=True):
                begin = time.thread_time()
                call()
                spent.append(time.thread_time() - begin)
    return median(times[0]), median(times[1])


def main() -> None:
    """Print the table."""
    print("| loop | case | ours | plain | plain / ours |\n|---|---|---|---|---|")
    for comparison in comparisons():
        ours, plain = compare(comparison)
        times = " | ".join(f"{1e3 * spent:.3g} ms" for spent in (ours, plain))
        print(f"| {comparison.loop} | {comparison.case} | {times} | {plain / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
