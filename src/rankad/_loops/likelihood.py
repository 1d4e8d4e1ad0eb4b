"""From rows to the logarithm of a mixture's density in one compiled loop, many rows abreast."""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rankad._loops.cache import compiled
from rankad._loops.simd import Vectors

__all__ = ["log_likelihoods"]

_INDEX = ir.IntType(64)
# Vectors of rows taken together: one load of a factor serves them all, and no sum waits for the one before.
_VECTORS = 4
# So many rows are in them.
_ABREAST = _VECTORS * 8
# What a number takes, in bytes.
_NUMBER = 8
_LOG2_E = math.log2(math.e)


@intrinsic
def _square(typing, points, factors, begin, squares):  # type: ignore[no-untyped-def]
    """Fill in ``|F x - b|^2`` for the columns x of points, with F lower triangular.

    Points are of shape (d, _ABREAST). Row by row, `factors` has -b_j and F_j as far as the diagonal, from
    `begin` on.
    """

    def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        point, factor, first, square = _arrays(context, builder, signature, arguments)
        d = cgutils.unpack_tuple(builder, point.shape)[0]
        vectors = Vectors(builder, points.dtype)
        sums, totals = _variables(builder, vectors), _variables(builder, vectors)
        place = cgutils.alloca_once(builder, _INDEX)
        builder.store(first, place)
        for total in totals:
            builder.store(vectors.every(0.0), total)

        def following():  # type: ignore[no-untyped-def]
            at = builder.load(place)
            builder.store(builder.add(at, _INDEX(1)), place)
            return vectors.spread(builder.load(builder.gep(factor.data, [at])))

        with cgutils.for_range(builder, d, intp=_INDEX) as row:
            number = following()
            for each in sums:
                builder.store(number, each)
            with cgutils.for_range(builder, builder.add(row.index, _INDEX(1)), intp=_INDEX) as column:
                number = following()
                for here, each in zip(_places(builder, vectors, column.index), sums, strict=True):
                    there = vectors.load(point.data, here, _NUMBER)
                    builder.store(vectors.fused(number, there, builder.load(each)), each)
            for each, total in zip(sums, totals, strict=True):
                found = builder.load(each)
                builder.store(vectors.fused(found, found, builder.load(total)), total)
        for here, total in zip(_places(builder, vectors, _INDEX(0)), totals, strict=True):
            vectors.store(builder.load(total), square.data, here)
        return context.get_dummy_value()

    return types.void(points, factors, types.intp, squares), write


@intrinsic
def _sum_powers(typing, terms, totals):  # type: ignore[no-untyped-def]
    """Fill in ``sum_k 2^-q_k`` for the columns q of terms, of shape (K, _ABREAST)."""

    def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        term, total = _arrays(context, builder, signature, arguments)
        n_terms = cgutils.unpack_tuple(builder, term.shape)[0]
        vectors = Vectors(builder, terms.dtype)
        sums = _variables(builder, vectors)
        for each in sums:
            builder.store(vectors.every(0.0), each)
        with cgutils.for_range(builder, n_terms, intp=_INDEX) as row:
            for here, each in zip(_places(builder, vectors, row.index), sums, strict=True):
                power = vectors.power(vectors.load(term.data, here, _NUMBER))
                builder.store(builder.fadd(builder.load(each), power), each)
        for here, each in zip(_places(builder, vectors, _INDEX(0)), sums, strict=True):
            vectors.store(builder.load(each), total.data, here)
        return context.get_dummy_value()

    return types.void(terms, totals), write


def _arrays(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    return [
        context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _variables(builder, vectors):  # type: ignore[no-untyped-def]
    return [cgutils.alloca_once(builder, vectors.kind) for _ in range(_VECTORS)]


def _places(builder, vectors, row):  # type: ignore[no-untyped-def]
    """Return where the vectors of a row of numbers begin."""
    begin = builder.mul(row, _INDEX(_ABREAST))
    return [builder.add(begin, _INDEX(vector * vectors.width)) for vector in range(_VECTORS)]


@compiled
def log_likelihoods(rows, center, factors, constants, found):  # type: ignore[no-untyped-def]
    """Fill in ``log sum_k exp(c_k - |F_k (x - center) - b_k|^2 / 2)`` for every row x.

    What is said of a row depends on that row alone, to the last bit. NaN for rows that are not finite; minus
    infinity for those so far away that squares overflow.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    center : ndarray of shape (d,)
    factors : ndarray of shape (K * d * (d + 3) / 2,)
        Of each Gaussian, row by row: -b and the lower triangle F.
    constants : ndarray of shape (K,)
    found : ndarray of shape (n,)
    """
    n, d = rows.shape
    n_gaussians = constants.shape[0]
    size = d * (d + 3) // 2
    points, squares = np.zeros((d, _ABREAST)), np.empty((n_gaussians, _ABREAST))
    least, totals = np.empty(_ABREAST), np.empty(_ABREAST)
    for begin in range(0, n, _ABREAST):
        several = min(_ABREAST, n - begin)
        for at in range(several):
            for column in range(d):
                points[column, at] = rows[begin + at, column] - center[column]
        for k in range(n_gaussians):
            _square(points, factors, k * size, squares[k])
        least[:] = np.inf
        for k in range(n_gaussians):
            for at in range(_ABREAST):
                squares[k, at] = 0.5 * squares[k, at] - constants[k]
                least[at] = min(least[at], squares[k, at])
        for k in range(n_gaussians):
            for at in range(_ABREAST):
                squares[k, at] = (squares[k, at] - least[at]) * _LOG2_E
        _sum_powers(squares, totals)
        for at in range(several):
            row = begin + at
            # Infinite where all squares overflow; no number where the row has one that is none.
            found[row] = math.log(totals[at]) - least[at] if least[at] < np.inf else -np.inf
            for column in range(d):
                found[row] += 0.0 * rows[row, column]
