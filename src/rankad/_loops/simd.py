"""From rows to scores in one compiled loop: distance, exponential and weighted sum, in registers.

Numba compiles loops for the vectors that its compiler prefers, which are half as wide as the widest that many
processors have, and one row at a time. Here the innermost loops are written out for vectors of 64 bytes and a
few rows at once; where a processor's own are narrower, the compiler splits them.

Everything that is compiled together is in this file: numba's cache looks at a function's own file only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from rankad._base.arrays import LARGEST
from rankad._loops.cache import compiled

__all__ = [
    "ABREAST",
    "NEAR",
    "NEAREST",
    "POLYNOMIAL",
    "UNIT",
    "Vectors",
    "aligned",
    "in_groups",
    "kernel_scores",
    "lanes",
    "near_distances",
    "nearest_hubs",
    "scan",
]

# exp(-t) is computed as 2^-q, of squared distances q in units of this fraction of a bandwidth.
UNIT = math.sqrt(math.log(2.0))
# Powers stop falling here, at 8e-31. Sums cannot see them, and arithmetic on numbers yet smaller is many
# times slower. A sum of nothing else is zero.
_LEAST_POWER = 100.0
# How far away a row is, is the mean distance to so many of the nearest landmarks.
NEAREST = 3
# How near a row is, is the mean distance to so many rows.
NEAR = 5
# Rows taken through the landmarks together, and groups of landmarks: one load of a number serves several, and
# no sum has to wait for the one before.
_ROWS, _GROUPS = 4, 2
# Groups taken together where there is one row.
ABREAST = 4
_BYTES = 64
# Squared distances are looked through in pieces that stay in the nearest cache.
_PIECE = 512
# So many vectors of them are passed over at once where none is small enough.
_PASSED = 4
_LEAST_NORMAL = np.finfo(np.float32).tiny

_INDEX = ir.IntType(64)
_BITS = {types.float32: 23, types.float64: 52}
_TYPES = {
    types.float32: (ir.FloatType(), ir.IntType(32)),
    types.float64: (ir.DoubleType(), ir.IntType(64)),
}
# 2^f for |f| at most one half, lowest terms first: one at zero, elsewhere to within 1e-7 and 4e-16 of itself.
POLYNOMIAL = {
    types.float32: (
        1.0,
        0.693147004,
        0.240222469,
        0.055507198,
        0.00967132114,
        0.00132650184,
    ),
    types.float64: (
        1.0,
        0.69314718055995,
        0.24022650695910097,
        0.05550410866444772,
        0.009618129107606888,
        0.0013333558230164974,
        0.0001540353044173605,
        1.5252657260200837e-05,
        1.321544258792169e-06,
        1.0208690299958306e-07,
        7.072585949269223e-09,
    ),
}


def lanes(dtype: Any) -> int:
    """Return how many numbers of a kind are in one vector."""
    return _BYTES // int(np.dtype(dtype).itemsize)


def in_groups(points: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return points in groups of one vector, column by column, of shape (groups, d, lanes), and aligned.

    The number of groups is even. Points at infinity fill up the last.
    """
    n, d = points.shape
    width = lanes(dtype)
    n_groups = -(-n // (_GROUPS * width)) * _GROUPS
    groups = aligned((n_groups, d, width), dtype)
    whole = n // width
    groups[:whole] = points[: whole * width].reshape(whole, width, d).swapaxes(1, 2)
    groups[whole:] = np.inf
    rest = points[whole * width :]
    if len(rest):
        groups[whole, :, : len(rest)] = rest.T
    return groups


def aligned(shape: Sequence[int], dtype: Any) -> NDArray[Any]:
    """Return an array that begins where a vector may, of numbers yet to be filled in."""
    size, width = math.prod(shape), lanes(dtype)
    room = np.empty(size + width, dtype=dtype)
    begin = -(room.ctypes.data // room.itemsize) % width
    return room[begin : begin + size].reshape(shape)


class Vectors:
    """Writes instructions on vectors of one kind of number into a function that numba compiles."""

    def __init__(self, builder: Any, number: Any) -> None:
        self.builder, self.number = builder, number
        scalar, whole = _TYPES[number]
        self.width = lanes(str(number))
        self.kind, self.whole = ir.VectorType(scalar, self.width), ir.VectorType(whole, self.width)
        name = f"llvm.fmuladd.v{self.width}f{whole.width}"
        signature = ir.FunctionType(self.kind, [self.kind] * 3)
        self._fused = cgutils.get_or_insert_function(builder.module, signature, name)

    def every(self, value: float) -> Any:
        """Return a constant, the same in all lanes."""
        return ir.Constant(self.kind, [value] * self.width)

    def variables(self, value: float) -> list[Any]:
        """Return variables, one for each of the rows taken together, that begin with a value."""
        return [cgutils.alloca_once_value(self.builder, self.every(value)) for _ in range(_ROWS)]

    def load(self, base: Any, at: Any, aligned: int) -> Any:
        """Load a vector that begins at a number's place."""
        pointer = self.builder.bitcast(self.builder.gep(base, [at]), self.kind.as_pointer())
        return self.builder.load(pointer, align=aligned)

    def store(self, vector: Any, base: Any, at: Any) -> None:
        """Store a vector, of any width, from a number's place on, wherever that is."""
        pointer = self.builder.bitcast(self.builder.gep(base, [at]), vector.type.as_pointer())
        self.builder.store(vector, pointer, align=_BYTES // self.width)

    def spread(self, number: Any) -> Any:
        """Put one number into all lanes."""
        undefined = ir.Constant(self.kind, ir.Undefined)
        first = self.builder.insert_element(undefined, number, _INDEX(0))
        lane = ir.Constant(ir.VectorType(ir.IntType(32), self.width), [0] * self.width)
        return self.builder.shuffle_vector(first, undefined, lane)

    def fused(self, factor: Any, other: Any, term: Any) -> Any:
        """Multiply and add in one rounding, where the processor can."""
        return self.builder.call(self._fused, [factor, other, term])

    def lesser(self, one: Any, other: Any) -> Any:
        """Return the lesser in every lane; the second where the first is no number."""
        return self.builder.select(self.builder.fcmp_ordered("<", one, other), one, other)

    def greater(self, one: Any, other: Any) -> Any:
        """Return the greater in every lane; the first where it is no number."""
        return self.builder.select(self.builder.fcmp_ordered("<", one, other), other, one)

    def insert(self, number: Any, least: Sequence[Any]) -> list[Any]:
        """Put one more number into a list that ascends, in every lane."""
        found = []
        for place in least:
            found.append(self.lesser(number, place))
            number = self.greater(number, place)
        return [*found, number]

    def merge(self, least: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Return the least of two ascending lists, as many as are in one, ascending, in every lane."""
        found: list[Any] = []
        # The lesser of the first of one and the last of the other, and so on: these are the least of all.
        for one, other in zip(least, reversed(others), strict=True):
            found = self.insert(self.lesser(one, other), found)
        return found

    def power(self, q: Any) -> Any:
        """Return 2^-q: with n whole and f = n - q at most one half, 2^f, less n in the exponent."""
        builder, bits = self.builder, _BITS[self.number]
        q = self.lesser(q, self.every(_LEAST_POWER))
        # A number to which this is added is rounded to a whole one, which is then in its lowest bits.
        rounding = self.every(1.5 * 2.0**bits)
        rounded = builder.fsub(rounding, q)
        f = builder.fsub(builder.fsub(rounding, rounded), q)
        *terms, p = (self.every(term) for term in POLYNOMIAL[self.number])
        for term in reversed(terms):
            p = self.fused(p, f, term)
        shift = ir.Constant(self.whole, [bits] * self.width)
        exponent = builder.shl(builder.bitcast(rounded, self.whole), shift)
        return builder.bitcast(builder.add(builder.bitcast(p, self.whole), exponent), self.kind)

    def fold(self, rows: Sequence[Sequence[Any]], combine: Callable[..., list[Any]]) -> list[Any]:
        """Combine all lanes of several vectors a row, halves with halves, for one row or `_ROWS` of them.

        Returns as many vectors, with one lane a row.
        """
        packed, each = [list(row) for row in rows], self.width
        while each > 1:
            each //= 2
            # Two rows folded alike share a vector from now on, as long as there are two.
            pairs = (
                list(zip(packed[::2], packed[1::2], strict=True)) if len(packed) > 1 else [(packed[0],) * 2]
            )
            n_parts = len(rows) // len(pairs)
            starts = range(0, 2 * each * n_parts, 2 * each)
            low, high = (
                [start + at for start in starts for at in range(half, half + each)] for half in (0, each)
            )
            packed = [combine(self._pick(*pair, low), self._pick(*pair, high)) for pair in pairs]
        return packed[0]

    def _pick(self, some: Sequence[Any], others: Sequence[Any], places: Sequence[int]) -> list[Any]:
        """Return vectors of these lanes, counted on from the one to the other."""
        kind = ir.VectorType(ir.IntType(32), len(places))
        return [
            self.builder.shuffle_vector(one, other, ir.Constant(kind, list(places)))
            for one, other in zip(some, others, strict=True)
        ]

    def add(self, some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Add vectors to vectors."""
        return [self.builder.fadd(one, other) for one, other in zip(some, others, strict=True)]

    def each_gap(
        self, points: Any, places: Any, groups: Sequence[Any], d: Any, n_points: int = _ROWS
    ) -> Iterator[tuple[int, int, Any]]:
        """Loop over columns: what lies between the places of groups and each of the points, in turn."""
        builder = self.builder
        begins = [builder.mul(group, builder.mul(d, _INDEX(self.width))) for group in groups]
        with cgutils.for_range(builder, d, intp=_INDEX) as column:
            along = builder.mul(column.index, _INDEX(self.width))
            here = [self.load(places, builder.add(begin, along), _BYTES) for begin in begins]
            for row in range(n_points):
                at = builder.add(builder.mul(_INDEX(row), d), column.index)
                point = self.spread(builder.load(builder.gep(points, [at])))
                for number, place in enumerate(here):
                    yield row, number, builder.fsub(place, point)


def _arrays(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    return [
        context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


@intrinsic
def _sum_up(typing, points, landmarks, coefficients, sums, nearest):  # type: ignore[no-untyped-def]
    """Fill in, for `_ROWS` points, ``sum_l a_l 2^-q_l`` and the `NEAREST` least squared distances q_l.

    Points are of shape (_ROWS, d); landmarks come in groups (`in_groups`). Sums are taken lane by lane, then
    over lanes in halves: always in the same order.
    """

    def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        point, landmark, coefficient, total, least = _arrays(context, builder, signature, arguments)
        n_groups, d, _ = cgutils.unpack_tuple(builder, landmark.shape)
        vectors = Vectors(builder, landmarks.dtype)
        squared = [vectors.variables(0.0) for _ in range(_GROUPS)]
        totals = vectors.variables(0.0)
        nearests = list(zip(*(vectors.variables(math.inf) for _ in range(NEAREST)), strict=True))
        with cgutils.for_range(builder, builder.udiv(n_groups, _INDEX(_GROUPS)), intp=_INDEX) as several:
            first = builder.mul(several.index, _INDEX(_GROUPS))
            groups = [builder.add(first, _INDEX(number)) for number in range(_GROUPS)]
            for variable in itertools.chain(*squared):
                builder.store(vectors.every(0.0), variable)
            for row, number, gap in vectors.each_gap(point.data, landmark.data, groups, d):
                variable = squared[number][row]
                builder.store(vectors.fused(gap, gap, builder.load(variable)), variable)
            for group, variables in zip(groups, squared, strict=True):
                at = builder.mul(group, _INDEX(vectors.width))
                a = vectors.load(coefficient.data, at, _BYTES // vectors.width)
                for row in range(_ROWS):
                    q = builder.load(variables[row])
                    least_ones = vectors.insert(q, [builder.load(place) for place in nearests[row]])
                    for number, place in zip(least_ones, nearests[row], strict=False):
                        builder.store(number, place)
                    summed = vectors.fused(a, vectors.power(q), builder.load(totals[row]))
                    builder.store(summed, totals[row])
        [summed] = vectors.fold([[builder.load(place)] for place in totals], vectors.add)
        vectors.store(summed, total.data, _INDEX(0))
        lists = [[builder.load(place) for place in places] for places in nearests]
        for at, number in enumerate(vectors.fold(lists, vectors.merge)):
            vectors.store(number, least.data, _INDEX(at * _ROWS))
        return context.get_dummy_value()

    return types.void(points, landmarks, coefficients, sums, nearest), write


@intrinsic
def _square(typing, points, places, begin, end, squared):  # type: ignore[no-untyped-def]
    """Fill in the squared distances of `_ROWS` points to the places of groups from `begin` to `end`.

    Column by column, each product rounded before it is added.
    """

    def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        point, place, first, last, out = _arrays(context, builder, signature, arguments)
        _, d, _ = cgutils.unpack_tuple(builder, place.shape)
        stride = cgutils.unpack_tuple(builder, out.shape)[1]
        vectors = Vectors(builder, places.dtype)
        found = vectors.variables(0.0)
        with cgutils.for_range(builder, builder.sub(last, first), intp=_INDEX) as group:
            for row in range(_ROWS):
                builder.store(vectors.every(0.0), found[row])
            here = [builder.add(first, group.index)]
            for row, _, gap in vectors.each_gap(point.data, place.data, here, d):
                builder.store(builder.fadd(builder.load(found[row]), builder.fmul(gap, gap)), found[row])
            for row in range(_ROWS):
                at = builder.mul(group.index, _INDEX(vectors.width))
                at = builder.add(at, builder.mul(_INDEX(row), stride))
                vectors.store(builder.load(found[row]), out.data, at)
        return context.get_dummy_value()

    return types.void(points, places, types.intp, types.intp, squared), write


@intrinsic
def _square_one(typing, point, places, begin, end, squared):  # type: ignore[no-untyped-def]
    """Fill in the squared distances of one point to the places of groups, a multiple of `ABREAST` of them.

    As `_square` does it, to the last bit.
    """

    def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        here, place, first, last, out = _arrays(context, builder, signature, arguments)
        _, d, _ = cgutils.unpack_tuple(builder, place.shape)
        vectors = Vectors(builder, places.dtype)
        found = [cgutils.alloca_once_value(builder, vectors.every(0.0)) for _ in range(ABREAST)]
        many = builder.udiv(builder.sub(last, first), _INDEX(ABREAST))
        with cgutils.for_range(builder, many, intp=_INDEX) as several:
            done = builder.mul(several.index, _INDEX(ABREAST))
            groups = [builder.add(builder.add(first, done), _INDEX(number)) for number in range(ABREAST)]
            for variable in found:
                builder.store(vectors.every(0.0), variable)
            for _, number, gap in vectors.each_gap(here.data, place.data, groups, d, 1):
                square = builder.fmul(gap, gap)
                builder.store(builder.fadd(builder.load(found[number]), square), found[number])
            for number, variable in enumerate(found):
                at = builder.mul(builder.add(done, _INDEX(number)), _INDEX(vectors.width))
                vectors.store(builder.load(variable), out.data, at)
        return context.get_dummy_value()

    return types.void(point, places, types.intp, types.intp, squared), write


@intrinsic
def _which_below(typing, numbers, begin, limit):  # type: ignore[no-untyped-def]
    """Return a bit for each of `_PASSED` vectors of numbers, from a place on: whether it is below a limit."""

    def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, first, bound = _arrays(context, builder, signature, arguments)
        vectors = Vectors(builder, numbers.dtype)
        limits, bits = vectors.spread(bound), _INDEX(0)
        for vector in range(_PASSED):
            at = builder.add(first, _INDEX(vector * vectors.width))
            found = vectors.load(array.data, at, _BYTES // vectors.width)
            below = builder.bitcast(builder.fcmp_ordered("<", found, limits), ir.IntType(vectors.width))
            shift = _INDEX(vector * vectors.width)
            bits = builder.or_(bits, builder.shl(builder.zext(below, _INDEX), shift))
        return bits

    return types.uint64(numbers, types.intp, numbers.dtype), write


@intrinsic
def _lowest(typing, bits):  # type: ignore[no-untyped-def]
    """Return the place of the lowest bit that is set; at least one is."""

    def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.intp(types.uint64), write


@intrinsic
def _sift(typing, numbers, n_vectors, lists):  # type: ignore[no-untyped-def]
    """Put vectors of numbers into ascending lists of the `NEAR` least, a list in each lane.

    Lists are of shape (NEAR, lanes).
    """

    def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, many, found = _arrays(context, builder, signature, arguments)
        vectors = Vectors(builder, numbers.dtype)
        aligned_as = _BYTES // vectors.width
        places = [_INDEX(at * vectors.width) for at in range(NEAR)]
        least = [
            cgutils.alloca_once_value(builder, vectors.load(found.data, at, aligned_as)) for at in places
        ]
        with cgutils.for_range(builder, many, intp=_INDEX) as vector:
            at = builder.mul(vector.index, _INDEX(vectors.width))
            number = vectors.load(array.data, at, aligned_as)
            kept = vectors.insert(number, [builder.load(place) for place in least])
            for value, place in zip(kept, least, strict=False):
                builder.store(value, place)
        for place, at in zip(least, places, strict=True):
            vectors.store(builder.load(place), found.data, at)
        return context.get_dummy_value()

    return types.void(numbers, types.intp, lists), write


@intrinsic
def _least_of(typing, lists, least):  # type: ignore[no-untyped-def]
    """Fill in the `NEAR` least of all lists (`_sift`), ascending."""

    def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        found, out = _arrays(context, builder, signature, arguments)
        vectors = Vectors(builder, lists.dtype)
        several = [
            vectors.load(found.data, _INDEX(at * vectors.width), _BYTES // vectors.width)
            for at in range(NEAR)
        ]
        for at, number in enumerate(vectors.fold([several], vectors.merge)):
            vectors.store(number, out.data, _INDEX(at))
        return context.get_dummy_value()

    return types.void(lists, least), write


@compiled
def _measure(nearest, n_nearest, distances):  # type: ignore[no-untyped-def]
    """Fill in how far away rows are, in bandwidths, from squared distances to the nearest landmarks.

    Their mean; but no more than so many times the least: a row at a landmark is not far, however far the
    next may be.
    """
    distances[:] = 0.0
    for at in range(n_nearest):
        for row in range(_ROWS):
            distances[row] += np.sqrt(nearest[at, row])
    for row in range(_ROWS):
        most = n_nearest * np.sqrt(nearest[0, row])
        distances[row] = UNIT * min(distances[row] / n_nearest, most)


@compiled
def _merge(nearest, others):  # type: ignore[no-untyped-def]
    """Put the numbers of one ascending list a row into the other where they are less than those there."""
    for row in range(_ROWS):
        for number in others[:, row]:
            for at in range(NEAREST):
                if number < nearest[at, row]:
                    nearest[at, row], number = number, nearest[at, row]


@compiled
def kernel_scores(  # type: ignore[no-untyped-def]
    rows, center, scale, landmarks, coefficients, silent, n_nearest, reach, low, high, unit, scores
):
    """Fill in g, less how far away beyond `reach` the nearest landmarks are, for every row.

    Distances are in bandwidths. With limits, the excess over these is subtracted as well. NaN for rows that
    are not finite; minus infinity for those too far away for the precision of the landmarks.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    center, scale : ndarray of shape (d,)
        A row x is at ``(x - center) * scale``, in units of `UNIT` bandwidths.
    landmarks : ndarray of shape (groups, d, lanes)
        At their places, of the precision to compute in, aligned to vectors.
    coefficients : ndarray of shape (groups * lanes,)
    silent : ndarray of shape (groups, d, lanes)
        Landmarks that count for far distances only.
    n_nearest : int
        `NEAREST`, or how many landmarks there are, silent ones included, where these are fewer.
    reach : float
        Infinite for no far field.
    low, high, unit : ndarray of shape (d,), or empty
    scores : ndarray of shape (n,)
    """
    n, d = rows.shape
    points = np.zeros((_ROWS, d), dtype=landmarks.dtype)
    sums, nearest = np.empty(_ROWS, dtype=landmarks.dtype), np.empty((NEAREST, _ROWS), dtype=landmarks.dtype)
    spare, nearest_silent = np.empty_like(sums), np.empty_like(nearest)
    distances = np.empty(_ROWS)
    silence = np.zeros(silent.shape[0] * silent.shape[2], dtype=landmarks.dtype)
    enough, single = (reach / UNIT) ** 2, landmarks.itemsize == 4
    for begin in range(0, n, _ROWS):
        several = min(_ROWS, n - begin)
        for at in range(several):
            for column in range(d):
                points[at, column] = (rows[begin + at, column] - center[column]) * scale[column]
        _sum_up(points, landmarks, coefficients, sums, nearest)
        far = False
        for at in range(several):
            far |= nearest[n_nearest - 1, at] > enough
            if nearest[0, at] >= _LEAST_POWER:
                sums[at] = 0.0
        if far:
            if silent.shape[0]:
                _sum_up(points, silent, silence, spare, nearest_silent)
                _merge(nearest, nearest_silent)
            _measure(nearest, n_nearest, distances)
        for at in range(several):
            row, score = begin + at, float(sums[at])
            if nearest[n_nearest - 1, at] > enough:
                if single and math.isinf(nearest[n_nearest - 1, at]):
                    # Too far from one of them to tell the mean.
                    score = -math.inf
                else:
                    score -= max(0.0, distances[at] - reach)
            if math.isinf(nearest[0, at]):
                # Too far away, or not a place at all.
                for column in range(d):
                    score += 0.0 * rows[row, column]
            outside = False
            for column in range(low.shape[0]):
                value = rows[row, column]
                outside |= (value < low[column]) | (value > high[column])
            if outside:
                excess = 0.0
                for column in range(low.shape[0]):
                    beyond = max(low[column] - rows[row, column], rows[row, column] - high[column])
                    if beyond > 0.0:
                        excess = max(excess, beyond / unit[column])
                score -= min(excess, LARGEST)
            scores[row] = score


@compiled
def _keep_least(numbers, size, first, itself, least, places):  # type: ignore[no-untyped-def]
    """Put numbers into an ascending list of the least there were, and their places, counted from `first`.

    The one at the place `itself` is passed over. Beyond the size there may be old numbers, up to a multiple
    of `_PASSED` vectors: these are looked at and left.
    """
    last, width = least.shape[0] - 1, _BYTES // numbers.itemsize
    worst = least[last]
    for start in range(0, size, _PASSED * width):
        bits: Any = _which_below(numbers, start, worst)
        while bits:
            place = start + _lowest(bits)
            bits &= bits - np.uint64(1)
            value = numbers[place]
            if value < worst and place < size and place != itself:
                slot = last
                while slot > 0 and least[slot - 1] > value:
                    least[slot], places[slot] = least[slot - 1], places[slot - 1]
                    slot -= 1
                least[slot], places[slot] = value, first + place
                worst = least[last]


@compiled
def scan(groups, n, asked, which, k, own):  # type: ignore[no-untyped-def]
    """Find the k nearest of n rows, given in groups, for the queries named by `which`.

    `own` says that queries are the rows themselves; a row is not its own neighbour.

    Returns
    -------
    distances, indices : ndarray of shape (n_which, k)
        The nearest first.
    """
    d, width = groups.shape[1], groups.shape[2]
    distances = np.full((which.shape[0], k), np.inf)
    indices = np.zeros((which.shape[0], k), dtype=np.int64)
    points, squared = np.zeros((_ROWS, d)), np.empty((_ROWS, _PIECE + _PASSED * width))
    step = _PIECE // width
    for begin in range(0, which.shape[0], _ROWS):
        several = min(_ROWS, which.shape[0] - begin)
        for at in range(several):
            for column in range(d):
                points[at, column] = asked[which[begin + at], column]
        for first in range(0, groups.shape[0], step):
            last = min(first + step, groups.shape[0])
            _square(points, groups, first, last, squared)
            # What fills up the last group is no row.
            size = min(last * width, n) - first * width
            for at in range(several):
                query = begin + at
                itself = which[query] - first * width if own else -1
                _keep_least(squared[at], size, first * width, itself, distances[query], indices[query])
        for at in range(several):
            for slot in range(k):
                distances[begin + at, slot] = math.sqrt(distances[begin + at, slot])
    return distances, indices


@compiled
def _find(numbers, least, places):  # type: ignore[no-untyped-def]
    """Fill in where the least numbers are, of which the values are given, ascending; the very least first.

    The last `_PASSED` vectors of numbers are infinite. Where there are fewer finite ones, places are left.
    """
    width, last = _BYTES // numbers.itemsize, places.shape[0] - 1
    worst, found, n_worst = least[last], 0, 0
    # Of those that equal the last, as many as there is room for beside all that are less.
    for at in range(last + 1):
        n_worst += least[at] == worst
    # A limit that is no subnormal number: some libraries have processors take these for zero.
    limit = max(np.nextafter(worst, np.float32(np.inf)), _LEAST_NORMAL)
    for start in range(0, numbers.shape[0] - _PASSED * width, _PASSED * width):
        bits: Any = _which_below(numbers, start, limit)
        while bits and found <= last:
            place = start + _lowest(bits)
            bits &= bits - np.uint64(1)
            if numbers[place] >= worst:
                if numbers[place] > worst or n_worst == 0:
                    continue
                n_worst -= 1
            places[found] = place
            if numbers[place] == least[0]:
                places[0], places[found] = place, places[0]
            found += 1


@compiled
def nearest_hubs(rows, center, scale, hubs, places):  # type: ignore[no-untyped-def]
    """Fill in, for every row, which hubs are nearest, the nearest first.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    center, scale : ndarray of shape (d,)
        A row x is at ``(x - center) * scale``.
    hubs : ndarray of shape (groups, d, lanes)
        In groups (`in_groups`).
    places : ndarray of int, shape (n, many)
        As many as are wanted, `NEAR` at most; -1 where no hub is at a finite distance.
    """
    n, d = rows.shape
    n_groups, width, dtype = hubs.shape[0], hubs.shape[2], hubs.dtype
    points = np.zeros((_ROWS, d), dtype=dtype)
    squared = np.full((_ROWS, (n_groups + _PASSED) * width), np.inf, dtype=dtype)
    lists, least = np.empty((NEAR, width), dtype), np.empty(NEAR, dtype)
    places[:] = -1
    for begin in range(0, n, _ROWS):
        several = min(_ROWS, n - begin)
        for at in range(several):
            for column in range(d):
                points[at, column] = (rows[begin + at, column] - center[column]) * scale[column]
        _square(points, hubs, 0, n_groups, squared)
        for at in range(several):
            lists[:] = np.inf
            _sift(squared[at], n_groups, lists)
            _least_of(lists, least)
            _find(squared[at], least, places[begin + at])


@compiled
def near_distances(  # type: ignore[no-untyped-def]
    rows, center, scale, hubs, cells, begins, n_visited, distances
):
    """Fill in the mean distance from each row to the `NEAR` places nearest to it.

    Places are in cells, each about a hub. The nearest are looked for in the cells of the hubs that are
    nearest to the row.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    center, scale : ndarray of shape (d,)
        A row x is at ``(x - center) * scale``.
    hubs : ndarray of shape (groups, d, lanes)
        In groups (`in_groups`).
    cells : ndarray of shape (groups, d, lanes)
        Places, cell by cell, each filled up to a multiple of `ABREAST` groups by points at infinity.
    begins : ndarray of shape (n_hubs + 1,)
        Where cells begin and the last ends, in groups.
    n_visited : int
        How many cells to look in, `NEAR` at most.
    distances : ndarray of shape (n,)
        Infinite where nothing is found.
    """
    n, d = rows.shape
    n_hubs, width, dtype = begins.shape[0] - 1, cells.shape[2], cells.dtype
    step = _PIECE // width
    point, squared = np.zeros(d, dtype), np.empty(_PIECE, dtype)
    lists, least = np.empty((NEAR, width), dtype), np.empty(NEAR, dtype)
    visited = np.empty((n, n_visited), dtype=np.int64)
    turns, order = np.zeros(n_hubs + 2, dtype=np.int64), np.empty(n, dtype=np.int64)
    nearest_hubs(rows, center, scale, hubs, visited)
    # Rows about the same hub one after another: its cell stays in the cache.
    for row in range(n):
        turns[visited[row, 0] + 2] += 1
    for hub in range(n_hubs):
        turns[hub + 1] += turns[hub]
    for row in range(n):
        order[turns[visited[row, 0] + 1]] = row
        turns[visited[row, 0] + 1] += 1
    for row in order:
        for column in range(d):
            point[column] = (rows[row, column] - center[column]) * scale[column]
        lists[:] = np.inf
        for hub in visited[row]:
            if hub >= 0:
                stop = begins[hub + 1]
                for first in range(begins[hub], stop, step):
                    last = min(first + step, stop)
                    _square_one(point, cells, first, last, squared)
                    _sift(squared, last - first, lists)
        _least_of(lists, least)
        total, found = 0.0, 0
        for number in least:
            if number < np.inf:
                total += math.sqrt(number)
                found += 1
        distances[row] = total / found if found else np.inf
