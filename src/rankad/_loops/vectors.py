"""Vector instructions for loops that numba compiles, and arrays laid out for them.

Numba vectorizes the innermost loop only, one row at a time, and keeps sums in memory. Distances, powers and
the nearest few of many numbers are 1.3 to 4 times as fast with sums of several rows in registers: see
"Compiled loops: what pays" in docs/speed.md. Vectors have 64 bytes; for processors with narrower ones the
compiler splits them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

INDEX = ir.IntType(64)
# `Vectors.power` returns 2^-q for q up to this, 8e-31: sums cannot see less, and arithmetic on subnormal
# numbers is many times slower.
LEAST_POWER = 100.0
# Landmarks are processed by so many vectors at a time.
GROUPS = 2
_BYTES = 64
_MANTISSA_BITS = {types.float32: 23, types.float64: 52}
_TYPES = {types.float32: (ir.FloatType(), ir.IntType(32)), types.float64: (ir.DoubleType(), ir.IntType(64))}
# 2^f for |f| <= 1/2, lowest terms first: exactly one at zero, relative error below 1e-7 and 4e-16.
POLYNOMIAL = {
    types.float32: (1.0, 0.693147004, 0.240222469, 0.055507198, 0.00967132114, 0.00132650184),
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
    """Return how many numbers of a type one vector holds."""
    return _BYTES // int(np.dtype(dtype).itemsize)


def in_groups(points: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return points in groups of one vector, column by column: shape (groups, d, lanes), aligned.

    The number of groups is even. Points at infinity fill the last ones.
    """
    n, d = points.shape
    width = lanes(dtype)
    n_groups = -(-n // (GROUPS * width)) * GROUPS
    size = n_groups * d * width
    memory = np.empty(size + width, dtype=dtype)
    begin = -(memory.ctypes.data // memory.itemsize) % width
    groups = memory[begin : begin + size].reshape(n_groups, d, width)
    full = n // width
    groups[:full] = points[: full * width].reshape(full, width, d).swapaxes(1, 2)
    groups[full:] = np.inf
    rest = points[full * width :]
    if len(rest):
        groups[full, :, : len(rest)] = rest.T
    return groups


def vector_code(write: Callable[..., Any], returns: Any = types.void) -> Any:
    """Make a function that writes vector instructions callable from compiled code.

    ``write(vectors, *arguments)`` gets numba's structures for arrays and LLVM's values for numbers. The first
    argument must be an array: its numbers are those of the vectors.
    """

    def define(typing: Any, *given: Any) -> Any:
        number = given[0].dtype
        # Numbers are converted to 64-bit indices, or to the type of the vectors.
        kinds = [
            kind if isinstance(kind, types.Array) else number if isinstance(kind, types.Float) else types.intp
            for kind in given
        ]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            arguments = [
                context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
                for kind, value in zip(signature.args, values, strict=True)
            ]
            result = write(Vectors(builder, number), *arguments)
            return context.get_dummy_value() if result is None else result

        return returns(*kinds), generate

    # Numba reads from the signature how many arguments there are.
    parameters = list(inspect.signature(write).parameters.values())[1:]
    named = [inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD), *parameters]
    define.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return intrinsic(define)


class Vectors:
    """Writes instructions on vectors of one type of number into a function that numba compiles."""

    def __init__(self, builder: Any, number: Any) -> None:
        self.builder, self.number = builder, number
        scalar, integer = _TYPES[number]
        self.width = lanes(str(number))
        # How loads are aligned that may start at any number, in bytes.
        self.unaligned = _BYTES // self.width
        self.kind, self.integers = ir.VectorType(scalar, self.width), ir.VectorType(integer, self.width)
        name = f"llvm.fmuladd.v{self.width}f{integer.width}"
        signature = ir.FunctionType(self.kind, [self.kind] * 3)
        self._fused = cgutils.get_or_insert_function(builder.module, signature, name)

    def constant(self, value: float) -> Any:
        """Return a constant, the same in all lanes."""
        return ir.Constant(self.kind, [value] * self.width)

    def variables(self, n: int, value: float) -> list[Any]:
        """Return n variables, set to a value."""
        return [cgutils.alloca_once_value(self.builder, self.constant(value)) for _ in range(n)]

    def load(self, base: Any, at: Any, *, aligned: bool = False) -> Any:
        """Load the vector that starts at a position."""
        pointer = self.builder.bitcast(self.builder.gep(base, [at]), self.kind.as_pointer())
        return self.builder.load(pointer, align=_BYTES if aligned else self.unaligned)

    def store(self, vector: Any, base: Any, at: Any) -> None:
        """Store a vector, of any width, from a position on."""
        pointer = self.builder.bitcast(self.builder.gep(base, [at]), vector.type.as_pointer())
        self.builder.store(vector, pointer, align=self.unaligned)

    def spread(self, number: Any) -> Any:
        """Copy one number to all lanes."""
        undefined = ir.Constant(self.kind, ir.Undefined)
        first = self.builder.insert_element(undefined, number, INDEX(0))
        lane = ir.Constant(ir.VectorType(ir.IntType(32), self.width), [0] * self.width)
        return self.builder.shuffle_vector(first, undefined, lane)

    def fused(self, factor: Any, other: Any, term: Any) -> Any:
        """Return ``factor * other + term``, rounded once where the processor can."""
        return self.builder.call(self._fused, [factor, other, term])

    def lesser(self, one: Any, other: Any) -> Any:
        """Return the minimum by lane; the second where the first is NaN."""
        return self.builder.select(self.builder.fcmp_ordered("<", one, other), one, other)

    def greater(self, one: Any, other: Any) -> Any:
        """Return the maximum by lane; the first where it is NaN."""
        return self.builder.select(self.builder.fcmp_ordered("<", one, other), other, one)

    def insert(self, number: Any, ascending: Sequence[Any]) -> list[Any]:
        """Insert a number into an ascending list, by lane."""
        inserted = []
        for place in ascending:
            inserted.append(self.lesser(number, place))
            number = self.greater(number, place)
        return [*inserted, number]

    def insert_into(self, variables: Sequence[Any], number: Any) -> None:
        """Insert a number into the ascending list that variables hold; the largest drops out."""
        kept = self.insert(number, [self.builder.load(variable) for variable in variables])
        for value, variable in zip(kept, variables, strict=False):
            self.builder.store(value, variable)

    def merge(self, ascending: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Return the smallest of two ascending lists, as many as one holds, ascending, by lane."""
        merged: list[Any] = []
        # The smaller of the first of one and the last of the other, and so on, are the smallest of all.
        for one, other in zip(ascending, reversed(others), strict=True):
            merged = self.insert(self.lesser(one, other), merged)
        return merged

    def power(self, q: Any) -> Any:
        """Return 2^-q: with n the integer nearest to q and f = n - q, 2^f with n less in its exponent."""
        builder, bits = self.builder, _MANTISSA_BITS[self.number]
        q = self.lesser(q, self.constant(LEAST_POWER))
        # Adding a number to this rounds it to an integer, which is then in its lowest bits.
        rounding = self.constant(1.5 * 2.0**bits)
        rounded = builder.fsub(rounding, q)
        f = builder.fsub(builder.fsub(rounding, rounded), q)
        *terms, p = (self.constant(term) for term in POLYNOMIAL[self.number])
        for term in reversed(terms):
            p = self.fused(p, f, term)
        shift = ir.Constant(self.integers, [bits] * self.width)
        exponent = builder.shl(builder.bitcast(rounded, self.integers), shift)
        return builder.bitcast(builder.add(builder.bitcast(p, self.integers), exponent), self.kind)

    def fold(self, rows: Sequence[Sequence[Any]], combine: Callable[..., list[Any]]) -> list[Any]:
        """Combine all lanes of each row's vectors, half with half; `rows` are one, two or four.

        Returns as many vectors as each row has, with one lane per row.
        """
        packed, each = [list(row) for row in rows], self.width
        while each > 1:
            each //= 2
            # Two rows share a vector from here on, as long as there are two.
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
        """Return vectors of these lanes, those of the other numbered after those of the one."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places))
        return [
            self.builder.shuffle_vector(one, other, mask) for one, other in zip(some, others, strict=True)
        ]

    def add(self, some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Add vectors to vectors."""
        return [self.builder.fadd(one, other) for one, other in zip(some, others, strict=True)]

    def each_gap(
        self, points: Any, n_points: int, places: Any, groups: Sequence[Any], d: Any
    ) -> Iterator[tuple[int, int, Any]]:
        """Loop over columns: yield the differences of the places of groups to each point, in turn."""
        builder = self.builder
        begins = [builder.mul(group, builder.mul(d, INDEX(self.width))) for group in groups]
        with cgutils.for_range(builder, d, intp=INDEX) as column:
            along = builder.mul(column.index, INDEX(self.width))
            here = [self.load(places, builder.add(begin, along), aligned=True) for begin in begins]
            for row in range(n_points):
                at = builder.add(builder.mul(INDEX(row), d), column.index)
                point = self.spread(builder.load(builder.gep(points, [at])))
                for number, place in enumerate(here):
                    yield row, number, builder.fsub(place, point)

    def loop(self, n: Any) -> Any:
        """Loop n times; the index is that of the context manager's value."""
        return cgutils.for_range(self.builder, n, intp=INDEX)

    def shape(self, array: Any) -> list[Any]:
        """Return the shape of an array."""
        return cgutils.unpack_tuple(self.builder, array.shape)  # type: ignore[no-any-return]
