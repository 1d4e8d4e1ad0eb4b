"""From rows to the logarithm of a mixture's density in one compiled loop, many rows abreast."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.core import cgutils

from rankad._loops.cache import compiled
from rankad._loops.vectors import INDEX, Vectors, vector_code

# Vectors of rows processed together: one load of a factor serves all, and sums do not wait for each other.
_VECTORS = 4
_ABREAST = _VECTORS * 8
_LOG2_E = math.log2(math.e)


@vector_code
def _square(vectors: Vectors, points: Any, factors: Any, begin: Any, squares: Any) -> None:
    """Fill in ``|F x - b|^2`` for the columns x of points, with F lower triangular.

    Points are of shape (d, _ABREAST). Row by row, `factors` has -b_j and F_j up to the diagonal, from `begin`
    on.
    """
    builder = vectors.builder
    d = vectors.shape(points)[0]
    sums, totals = vectors.variables(_VECTORS, 0.0), vectors.variables(_VECTORS, 0.0)
    place = cgutils.alloca_once(builder, INDEX)
    builder.store(begin, place)

    def next_factor() -> Any:
        at = builder.load(place)
        builder.store(builder.add(at, INDEX(1)), place)
        return vectors.spread(builder.load(builder.gep(factors.data, [at])))

    with vectors.loop(d) as row:
        factor = next_factor()
        for each in sums:
            builder.store(factor, each)
        with vectors.loop(builder.add(row.index, INDEX(1))) as column:
            factor = next_factor()
            for at, each in zip(_places(vectors, column.index), sums, strict=True):
                builder.store(vectors.fused(factor, vectors.load(points.data, at), builder.load(each)), each)
        for each, total in zip(sums, totals, strict=True):
            value = builder.load(each)
            builder.store(vectors.fused(value, value, builder.load(total)), total)
    for at, total in zip(_places(vectors, INDEX(0)), totals, strict=True):
        vectors.store(builder.load(total), squares.data, at)


@vector_code
def _sum_powers(vectors: Vectors, terms: Any, totals: Any) -> None:
    """Fill in ``sum_k 2^-q_k`` for the columns q of terms, of shape (K, _ABREAST)."""
    builder = vectors.builder
    sums = vectors.variables(_VECTORS, 0.0)
    with vectors.loop(vectors.shape(terms)[0]) as row:
        for at, each in zip(_places(vectors, row.index), sums, strict=True):
            power = vectors.power(vectors.load(terms.data, at))
            builder.store(builder.fadd(builder.load(each), power), each)
    for at, each in zip(_places(vectors, INDEX(0)), sums, strict=True):
        vectors.store(builder.load(each), totals.data, at)


def _places(vectors: Vectors, row: Any) -> list[Any]:
    """Return where the vectors of a row of numbers begin."""
    begin = vectors.builder.mul(row, INDEX(_ABREAST))
    return [vectors.builder.add(begin, INDEX(vector * vectors.width)) for vector in range(_VECTORS)]


@compiled
def log_likelihoods(rows, center, factors, constants, logs):  # type: ignore[no-untyped-def]
    """Fill in ``log sum_k exp(c_k - |F_k (x - center) - b_k|^2 / 2)`` for every row x.

    NaN for rows that are not finite; minus infinity for those so far away that squares overflow. `factors`
    has for each Gaussian, row by row, -b and the lower triangle F: ``K * d * (d + 3) / 2`` numbers.
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
            # Minus infinity where all squares overflow; NaN where the row has one.
            logs[row] = math.log(totals[at]) - least[at] if least[at] < np.inf else -np.inf
            for column in range(d):
                logs[row] += 0.0 * rows[row, column]
