"""The nearest of many rows, in compiled loops: exact searches, and searches among the cells of hubs.

Squared distances are summed column by column, each product rounded before it is added, so that they are the
same to the last bit however they are computed.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.cpython.unsafe.numbers import trailing_zeros

from rankad._loops.cache import compiled
from rankad._loops.vectors import INDEX, Vectors, vector_code

# The near field is the mean distance to so many rows.
NEAR = 5
# Rows that are compared with the same group of places together.
_ROWS = 4
# Groups that one row is compared with together.
ABREAST = 4
# Squared distances are searched in pieces that stay in the cache.
_PIECE = 512
# So many vectors of them are skipped at once where none is small enough.
_SKIPPED = 4
_LEAST_NORMAL = np.finfo(np.float32).tiny


def _square(
    n_points: int,
    n_groups: int,
    vectors: Vectors,
    points: Any,
    places: Any,
    begin: Any,
    end: Any,
    squared: Any,
) -> None:
    """Fill in squared distances of `n_points` points to the places of groups from `begin` to `end`.

    The number of groups must be a multiple of `n_groups`. `squared` is of shape (n_points, at least the
    number of places).
    """
    builder = vectors.builder
    d, stride = vectors.shape(places)[1], vectors.shape(squared)[1]
    sums = [vectors.variables(n_groups, 0.0) for _ in range(n_points)]
    with vectors.loop(builder.udiv(builder.sub(end, begin), INDEX(n_groups))) as several:
        done = builder.mul(several.index, INDEX(n_groups))
        groups = [builder.add(builder.add(begin, done), INDEX(number)) for number in range(n_groups)]
        for row in range(n_points):
            for variable in sums[row]:
                builder.store(vectors.constant(0.0), variable)
        for row, number, gap in vectors.each_gap(points.data, n_points, places.data, groups, d):
            variable = sums[row][number]
            builder.store(builder.fadd(builder.load(variable), builder.fmul(gap, gap)), variable)
        for row in range(n_points):
            start = builder.mul(INDEX(row), stride)
            for number, variable in enumerate(sums[row]):
                at = builder.mul(builder.add(done, INDEX(number)), INDEX(vectors.width))
                vectors.store(builder.load(variable), squared.data, builder.add(start, at))


_square_rows = vector_code(partial(_square, _ROWS, 1))
_square_row = vector_code(partial(_square, 1, ABREAST))


@partial(vector_code, returns=types.uint64)
def _which_below(vectors: Vectors, numbers: Any, begin: Any, limit: Any) -> Any:
    """Return a bit for each number of `_SKIPPED` vectors, from `begin` on: whether it is below a limit."""
    builder = vectors.builder
    limits, bits = vectors.spread(limit), INDEX(0)
    for vector in range(_SKIPPED):
        shift = INDEX(vector * vectors.width)
        loaded = vectors.load(numbers.data, builder.add(begin, shift))
        below = builder.bitcast(builder.fcmp_ordered("<", loaded, limits), ir.IntType(vectors.width))
        bits = builder.or_(bits, builder.shl(builder.zext(below, INDEX), shift))
    return bits


@vector_code
def _sift(vectors: Vectors, numbers: Any, n_vectors: Any, lists: Any) -> None:
    """Insert vectors of numbers into ascending lists of the `NEAR` smallest, one list per lane.

    Lists are of shape (NEAR, lanes).
    """
    builder = vectors.builder
    places = [INDEX(at * vectors.width) for at in range(NEAR)]
    smallest = vectors.variables(NEAR, 0.0)
    for variable, at in zip(smallest, places, strict=True):
        builder.store(vectors.load(lists.data, at), variable)
    with vectors.loop(n_vectors) as vector:
        at = builder.mul(vector.index, INDEX(vectors.width))
        vectors.insert_into(smallest, vectors.load(numbers.data, at))
    for variable, at in zip(smallest, places, strict=True):
        vectors.store(builder.load(variable), lists.data, at)


@vector_code
def _smallest_of(vectors: Vectors, lists: Any, smallest: Any) -> None:
    """Fill in the `NEAR` smallest of all lists (`_sift`), ascending."""
    loaded = [vectors.load(lists.data, INDEX(at * vectors.width)) for at in range(NEAR)]
    for at, number in enumerate(vectors.fold([loaded], vectors.merge)):
        vectors.store(number, smallest.data, INDEX(at))


@compiled
def _keep_smallest(numbers, size, first, itself, smallest, places):  # type: ignore[no-untyped-def]
    """Merge numbers into an ascending list of the smallest so far, with their places, counted from `first`.

    Of equal ones the first stays; the one at the place `itself` is skipped. After `size`, up to a multiple of
    `_SKIPPED` vectors, numbers are read and ignored.
    """
    last, step = smallest.shape[0] - 1, _SKIPPED * (64 // numbers.itemsize)
    largest = smallest[last]
    for start in range(0, size, step):
        bits: Any = _which_below(numbers, start, largest)
        while bits:
            place = start + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            value = numbers[place]
            if value < largest and place < size and place != itself:
                slot = last
                while slot > 0 and smallest[slot - 1] > value:
                    smallest[slot], places[slot] = smallest[slot - 1], places[slot - 1]
                    slot -= 1
                smallest[slot], places[slot] = value, first + place
                largest = smallest[last]


@compiled
def scan(groups, n, asked, which, k, own):  # type: ignore[no-untyped-def]
    """Find the k nearest of n rows, given in groups, for the queries that `which` lists.

    `own` says that queries are the rows themselves; a row is not its own neighbour. Returns distances and
    indices of shape (n_which, k), the nearest first.
    """
    d, width = groups.shape[1], groups.shape[2]
    distances = np.full((which.shape[0], k), np.inf)
    indices = np.zeros((which.shape[0], k), dtype=np.int64)
    points, squared = np.zeros((_ROWS, d)), np.empty((_ROWS, _PIECE + _SKIPPED * width))
    step = _PIECE // width
    for begin in range(0, which.shape[0], _ROWS):
        several = min(_ROWS, which.shape[0] - begin)
        for at in range(several):
            for column in range(d):
                points[at, column] = asked[which[begin + at], column]
        for first in range(0, groups.shape[0], step):
            last = min(first + step, groups.shape[0])
            _square_rows(points, groups, first, last, squared)
            # The places that fill the last group are not rows.
            size = min(last * width, n) - first * width
            for at in range(several):
                query = begin + at
                itself = which[query] - first * width if own else -1
                _keep_smallest(squared[at], size, first * width, itself, distances[query], indices[query])
        for at in range(several):
            for slot in range(k):
                distances[begin + at, slot] = math.sqrt(distances[begin + at, slot])
    return distances, indices


@compiled
def nearest_hubs(rows, center, scale, hubs, places):  # type: ignore[no-untyped-def]
    """Fill in which hubs, given in groups (`in_groups`), are nearest to each row, the nearest first.

    A row x is at ``(x - center) * scale``. Places are of shape (n, k) for k up to `NEAR`; -1 where no more
    hubs are at a finite distance.
    """
    n, d = rows.shape
    n_groups, width, dtype = hubs.shape[0], hubs.shape[2], hubs.dtype
    points = np.zeros((_ROWS, d), dtype=dtype)
    squared = np.full((_ROWS, (n_groups + _SKIPPED) * width), np.inf, dtype=dtype)
    k, infinity = places.shape[1], dtype.type(np.inf)
    lists, nearest, smallest = np.empty((NEAR, width), dtype), np.empty(NEAR, dtype), np.empty(k, dtype)
    places[:] = -1
    for begin in range(0, n, _ROWS):
        several = min(_ROWS, n - begin)
        for at in range(several):
            for column in range(d):
                points[at, column] = (rows[begin + at, column] - center[column]) * scale[column]
        _square_rows(points, hubs, 0, n_groups, squared)
        for at in range(several):
            largest = infinity
            if k > 1:
                # To know the largest beforehand is quicker than to insert every number that was small so far.
                lists[:] = np.inf
                _sift(squared[at], n_groups, lists)
                _smallest_of(lists, nearest)
                # Not a subnormal number: some libraries have processors treat these as zero.
                largest = max(np.nextafter(nearest[k - 1], infinity), _LEAST_NORMAL)
            smallest[:] = largest
            _keep_smallest(squared[at], n_groups * width, 0, -1, smallest, places[begin + at])


@compiled
def near_distances(  # type: ignore[no-untyped-def]
    rows, center, scale, hubs, cells, begins, n_visited, distances
):
    """Fill in the mean distance from each row to the `NEAR` nearest places in the cells of the nearest hubs.

    A row x is at ``(x - center) * scale``; hubs and cells are in groups (`in_groups`). Each cell is filled to
    a multiple of `ABREAST` groups by points at infinity; `begins` says where cells begin and the last ends,
    in groups. Searched are `n_visited` cells. Distances are infinite where there is no place.
    """
    n, d = rows.shape
    n_hubs, width, dtype = begins.shape[0] - 1, cells.shape[2], cells.dtype
    step = _PIECE // width
    point, squared = np.zeros((1, d), dtype), np.empty((1, _PIECE), dtype)
    lists, smallest = np.empty((NEAR, width), dtype), np.empty(NEAR, dtype)
    visited = np.empty((n, n_visited), dtype=np.int64)
    nearest_hubs(rows, center, scale, hubs, visited)
    # Rows near the same hub one after another, by counting: its cell stays in the cache.
    turns, order = np.zeros(n_hubs + 2, dtype=np.int64), np.empty(n, dtype=np.int64)
    for row in range(n):
        turns[visited[row, 0] + 2] += 1
    for hub in range(n_hubs):
        turns[hub + 1] += turns[hub]
    for row in range(n):
        order[turns[visited[row, 0] + 1]] = row
        turns[visited[row, 0] + 1] += 1
    for row in order:
        for column in range(d):
            point[0, column] = (rows[row, column] - center[column]) * scale[column]
        lists[:] = np.inf
        for hub in visited[row]:
            if hub >= 0:
                stop = begins[hub + 1]
                for first in range(begins[hub], stop, step):
                    last = min(first + step, stop)
                    _square_row(point, cells, first, last, squared)
                    _sift(squared[0], last - first, lists)
        _smallest_of(lists, smallest)
        total, n_finite = 0.0, 0
        for number in smallest:
            if number < np.inf:
                total += math.sqrt(number)
                n_finite += 1
        distances[row] = total / n_finite if n_finite else np.inf
