"""From rows to kernel scores in one compiled loop: distance, exponential and weighted sum, in registers."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import numpy as np

from rankad._base.arrays import LARGEST
from rankad._loops.cache import compiled
from rankad._loops.vectors import GROUPS, INDEX, LEAST_POWER, Vectors, vector_code

# exp(-t^2) is computed as 2^-q, for squared distances q in units of this fraction of a bandwidth.
UNIT = math.sqrt(math.log(2.0))
# How far away a row is, is the mean distance to so many of the nearest landmarks.
NEAREST = 3
# Rows taken through the landmarks together.
_ROWS = 4


@vector_code
def _sum_kernel(
    vectors: Vectors, points: Any, landmarks: Any, coefficients: Any, sums: Any, nearest: Any
) -> None:
    """Fill in, for `_ROWS` points, ``sum_l a_l 2^-q_l`` and the `NEAREST` smallest squared distances q_l.

    Points are of shape (_ROWS, d), landmarks in groups (`in_groups`). Sums are taken by lane, then over lanes
    half with half: always in the same order.
    """
    builder = vectors.builder
    n_groups, d, _ = vectors.shape(landmarks)
    squared = [vectors.variables(_ROWS, 0.0) for _ in range(GROUPS)]
    totals = vectors.variables(_ROWS, 0.0)
    nearests = [vectors.variables(NEAREST, math.inf) for _ in range(_ROWS)]
    with vectors.loop(builder.udiv(n_groups, INDEX(GROUPS))) as several:
        first = builder.mul(several.index, INDEX(GROUPS))
        groups = [builder.add(first, INDEX(number)) for number in range(GROUPS)]
        for variable in chain(*squared):
            builder.store(vectors.constant(0.0), variable)
        for row, number, gap in vectors.each_gap(points.data, _ROWS, landmarks.data, groups, d):
            variable = squared[number][row]
            builder.store(vectors.fused(gap, gap, builder.load(variable)), variable)
        for group, variables in zip(groups, squared, strict=True):
            a = vectors.load(coefficients.data, builder.mul(group, INDEX(vectors.width)))
            for row in range(_ROWS):
                q = builder.load(variables[row])
                vectors.insert_into(nearests[row], q)
                total = vectors.fused(a, vectors.power(q), builder.load(totals[row]))
                builder.store(total, totals[row])
    [summed] = vectors.fold([[builder.load(total)] for total in totals], vectors.add)
    vectors.store(summed, sums.data, INDEX(0))
    lists = [[builder.load(variable) for variable in variables] for variables in nearests]
    for at, number in enumerate(vectors.fold(lists, vectors.merge)):
        vectors.store(number, nearest.data, INDEX(at * _ROWS))


@compiled
def _merge(nearest, others):  # type: ignore[no-untyped-def]
    """Merge each row's ascending list into the other, which keeps its length."""
    for row in range(_ROWS):
        for number in others[:, row]:
            for at in range(NEAREST):
                if number < nearest[at, row]:
                    nearest[at, row], number = number, nearest[at, row]


@compiled
def _mean_distance(nearest, row, n_nearest):  # type: ignore[no-untyped-def]
    """Return how far away a row is, in bandwidths, from its smallest squared distances to landmarks.

    Their mean, but at most `n_nearest` times the smallest: a row at a landmark is not far, however far the
    next one may be.
    """
    total = 0.0
    for at in range(n_nearest):
        total += np.sqrt(nearest[at, row])
    return UNIT * min(total / n_nearest, n_nearest * np.sqrt(nearest[0, row]))


@compiled
def _excess(rows, row, low, high, unit):  # type: ignore[no-untyped-def]
    """Return by how many units a row leaves its limits, in the column where that is most."""
    excess = 0.0
    for column in range(low.shape[0]):
        beyond = max(low[column] - rows[row, column], rows[row, column] - high[column])
        if beyond > 0.0:
            excess = max(excess, beyond / unit[column])
    return min(excess, LARGEST)


@compiled
def column_excess(rows, low, high, unit, excess):  # type: ignore[no-untyped-def]
    """Fill in by how many units each row leaves its limits, in the column where that is most."""
    for row in range(rows.shape[0]):
        excess[row] = _excess(rows, row, low, high, unit)


@compiled
def kernel_scores(  # type: ignore[no-untyped-def]
    rows, center, scale, landmarks, coefficients, unweighted, n_nearest, reach, low, high, unit, scores
):
    """Fill in g, less how far beyond `reach` the nearest landmarks are, for every row.

    Distances are in bandwidths. With limits, the excess over these is subtracted as well. NaN for rows that
    are not finite; minus infinity for those too far away for the precision of the landmarks.

    A row x is at ``(x - center) * scale``, in units of `UNIT` bandwidths. Landmarks are in these units, in
    groups (`in_groups`) of the precision to compute in; only the far field depends on those `unweighted`.
    `n_nearest` is `NEAREST`, or the number of landmarks if they are fewer. `reach` is infinite for no far
    field, and the limits `low`, `high` and `unit` are empty for none.
    """
    n, d = rows.shape
    points = np.zeros((_ROWS, d), dtype=landmarks.dtype)
    sums, nearest = np.empty(_ROWS, dtype=landmarks.dtype), np.empty((NEAREST, _ROWS), dtype=landmarks.dtype)
    unused, others = np.empty_like(sums), np.empty_like(nearest)
    zeros = np.zeros(unweighted.shape[0] * unweighted.shape[2], dtype=landmarks.dtype)
    enough, single = (reach / UNIT) ** 2, landmarks.itemsize == 4
    for begin in range(0, n, _ROWS):
        several = min(_ROWS, n - begin)
        for at in range(several):
            for column in range(d):
                points[at, column] = (rows[begin + at, column] - center[column]) * scale[column]
        _sum_kernel(points, landmarks, coefficients, sums, nearest)
        far = False
        for at in range(several):
            far |= nearest[n_nearest - 1, at] > enough
            if nearest[0, at] >= LEAST_POWER:
                sums[at] = 0.0
        if far and unweighted.shape[0]:
            _sum_kernel(points, unweighted, zeros, unused, others)
            _merge(nearest, others)
        for at in range(several):
            row, score = begin + at, float(sums[at])
            if nearest[n_nearest - 1, at] > enough:
                if single and math.isinf(nearest[n_nearest - 1, at]):
                    # A distance overflows: the mean is not known in this precision.
                    score = -math.inf
                else:
                    score -= max(0.0, _mean_distance(nearest, at, n_nearest) - reach)
            if math.isinf(nearest[0, at]):
                # Too far away, or not finite: then NaN.
                for column in range(d):
                    score += 0.0 * rows[row, column]
            # Looked at here, since a call for every row would take nearly as long as all the landmarks.
            outside = False
            for column in range(low.shape[0]):
                value = rows[row, column]
                outside |= (value < low[column]) | (value > high[column])
            if outside:
                score -= _excess(rows, row, low, high, unit)
            scores[row] = score
