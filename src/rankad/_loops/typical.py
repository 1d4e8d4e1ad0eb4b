"""The compiled loops of `rankad.explanations.nominal_rows`, and nominal rows as these read them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankad._base.arrays import Floats, Ints
from rankad._loops.cache import compiled


class Layout(NamedTuple):
    """Nominal rows as the compiled loops read them.

    The indicators of a category repeat themselves: what nominal rows have in a group of several columns is
    one of few patterns, each of which is compared once.
    """

    blocks: Floats  # in the units of distances, of shape (n_blocks, d, _TOGETHER)
    rows: Floats  # the same, of shape (n, d)
    order: Ints  # all columns, group after group
    starts: Ints  # where those of a group start, of shape (n_groups + 1,)
    # Where the patterns of a group begin; groups that are better looked at row by row have none.
    begins: Ints
    codes: Ints  # which of its group's patterns each row has, of shape (n_blocks, n_groups, _TOGETHER)
    # Group after group, column after column, all that the group's patterns have there.
    patterns: Floats


def lay_out(scaled: Floats, groups: tuple[tuple[int, ...], ...]) -> Layout:
    order = np.array([column for columns in groups for column in columns], dtype=np.int64)
    starts = np.cumsum([0, *map(len, groups)])
    begins = np.zeros(len(groups) + 1, dtype=np.int64)
    codes, patterns = np.zeros((len(scaled), len(groups)), dtype=np.int64), [np.empty(0)]
    for group, columns in enumerate(groups):
        begins[group + 1] = begins[group]
        if len(columns) > 1:
            # By their bytes: sorting the rows would take longer than it saves.
            seen: dict[bytes, int] = {}
            cells = scaled[:, list(columns)]
            written, size = cells.tobytes(), cells[0].nbytes
            same = [
                seen.setdefault(written[row * size : (row + 1) * size], row) for row in range(len(scaled))
            ]
            if 2 * len(seen) <= len(scaled):
                first = np.array(list(seen.values()))
                begins[group + 1] += len(first)
                codes[:, group] = np.searchsorted(first, same)
                patterns.append(cells[first].T.reshape(-1))
    return Layout(
        _in_blocks(scaled), scaled, order, starts, begins, _in_blocks(codes), np.concatenate(patterns)
    )


def _in_blocks(rows: NDArray[Any]) -> NDArray[Any]:
    n, d = rows.shape
    n_blocks = -(-n // _TOGETHER)
    filled = np.zeros((n_blocks * _TOGETHER, d), dtype=rows.dtype)
    filled[:n] = rows
    return np.ascontiguousarray(filled.reshape(n_blocks, _TOGETHER, d).swapaxes(1, 2))


# Nominal rows looked at together: few enough for what is known of them to stay at hand.
_TOGETHER = 256
# More than rounding can put a sum of squares off, relatively.
_ROUNDING = 1e-9


@compiled
def _compare(layout, row, of_pattern):  # type: ignore[no-untyped-def]
    """Fill in the squares of what lies between a row and every pattern."""
    of_pattern[:] = 0.0
    value = 0
    for group in range(layout.starts.shape[0] - 1):
        begin, end = layout.begins[group], layout.begins[group + 1]
        if end > begin:
            squares = of_pattern[begin:end]
            for column in layout.order[layout.starts[group] : layout.starts[group + 1]]:
                x, values = row[column], layout.patterns[value : value + end - begin]
                for at in range(end - begin):
                    squares[at] += (values[at] - x) * (values[at] - x)
                value += end - begin


@compiled
def _sum_up(layout, row, of_pattern, left_out, total):  # type: ignore[no-untyped-def]
    """Fill in the squared distances of a row to all nominal rows, of shape (n_blocks, _TOGETHER)."""
    blocks, order, starts = layout.blocks, layout.order, layout.starts
    begins, codes = layout.begins, layout.codes
    total[:] = 0.0
    for block in range(total.shape[0]):
        sums = total[block]
        for group in range(left_out.shape[0]):
            if left_out[group]:
                continue
            if begins[group + 1] > begins[group]:
                squares, code = of_pattern[begins[group] :], codes[block, group]
                for j in range(_TOGETHER):
                    sums[j] += squares[code[j]]
            else:
                for column in order[starts[group] : starts[group + 1]]:
                    x, values = row[column], blocks[block, column]
                    for j in range(_TOGETHER):
                        sums[j] += (values[j] - x) * (values[j] - x)


@compiled
def nearest(layout, rows, which, distances, indices):  # type: ignore[no-untyped-def]
    """Find the nearest of some nominal rows; distances are summed column by column as elsewhere."""
    of_pattern, total = np.empty(layout.begins[-1]), np.empty((layout.blocks.shape[0], _TOGETHER))
    nobody = np.zeros(layout.starts.shape[0] - 1, dtype=np.bool_)
    for i in range(rows.shape[0]):
        _compare(layout, rows[i], of_pattern)
        _sum_up(layout, rows[i], of_pattern, nobody, total)
        _least_of(total.reshape(-1), which, distances[i], indices[i])
        for at in range(indices.shape[1]):
            square = 0.0
            for column in range(rows.shape[1]):
                square += (layout.rows[indices[i, at], column] - rows[i, column]) ** 2
            distances[i, at] = np.sqrt(square)


@compiled
def _least_of(values, which, least, places):  # type: ignore[no-untyped-def]
    """Fill in the least of some values, ascending, and their places; of equal ones the first."""
    least[:] = np.inf
    for at in which:
        if values[at] < least[-1]:
            _insert(values[at], at, least, places)


@compiled
def _insert(value, row, least, places):  # type: ignore[no-untyped-def]
    """Insert a row, of a value less than the last, into those before; of equal ones the first stays."""
    at = least.shape[0] - 1
    while at > 0 and least[at - 1] > value:
        least[at], places[at] = least[at - 1], places[at - 1]
        at -= 1
    least[at], places[at] = value, row


@compiled
def _without(layout, row, of_pattern, left_out, nominal, after, distances):  # type: ignore[no-untyped-def]
    """Fill in the squared distances of a row to a nominal row without each group in turn.

    The squares before a group and after it are added, rather than its own subtracted from all: no digits are
    lost where it has nearly all of the distance.
    """
    rows, order, starts = layout.rows, layout.order, layout.starts
    begins, codes = layout.begins, layout.codes
    block, j = nominal // _TOGETHER, nominal % _TOGETHER
    later = 0.0
    for group in range(distances.shape[0] - 1, -1, -1):
        after[group], own = later, 0.0
        if left_out[group]:
            pass
        elif begins[group + 1] > begins[group]:
            own = of_pattern[begins[group] + codes[block, group, j]]
        else:
            for place in range(starts[group], starts[group + 1]):
                own += (rows[nominal, order[place]] - row[order[place]]) ** 2
        later += own
        distances[group] = own
    before = 0.0
    for group in range(distances.shape[0]):
        own = distances[group]
        distances[group] = before + after[group]
        before += own


@compiled
def nearest_without(layout, rows, left_out, some, near):  # type: ignore[no-untyped-def]
    """Find the nearest nominal rows by distance without each group in turn.

    Some rows, as many as are asked for, say how far the nearest can be. Most others are too far whatever
    group is left out: no group's own square is as large as what the sum of all has beyond that. The rest are
    looked at one by one.
    """
    blocks, order, starts = layout.blocks, layout.order, layout.starts
    begins, codes = layout.begins, layout.codes
    n, n_groups, k = layout.rows.shape[0], near.shape[1], near.shape[2]
    of_pattern, squares = np.empty(begins[n_groups]), np.empty(_TOGETHER)
    total, most = np.empty(_TOGETHER), np.empty(_TOGETHER)
    least, last = np.empty((n_groups, k)), np.empty(n_groups)
    after, distances = np.empty(n_groups), np.empty(n_groups)
    for i in range(rows.shape[0]):
        row, out = rows[i], left_out[i]
        _compare(layout, row, of_pattern)
        least[:], last[:] = np.inf, 0.0
        for nominal in some[i]:
            _without(layout, row, of_pattern, out, nominal, after, distances)
            for group in range(n_groups):
                last[group] = max(last[group], distances[group])
        for block in range(blocks.shape[0]):
            total[:], most[:] = 0.0, 0.0
            for group in range(n_groups):
                if out[group]:
                    continue
                if begins[group + 1] > begins[group]:
                    of_group, code = of_pattern[begins[group] :], codes[block, group]
                    for j in range(_TOGETHER):
                        squares[j] = of_group[code[j]]
                else:
                    squares[:] = 0.0
                    for column in order[starts[group] : starts[group + 1]]:
                        x, values = row[column], blocks[block, column]
                        for j in range(_TOGETHER):
                            squares[j] += (values[j] - x) * (values[j] - x)
                limit = last[group]
                for j in range(_TOGETHER):
                    total[j] += squares[j]
                    reached = squares[j] + limit
                    most[j] = reached if reached > most[j] else most[j]
            for j in range(min(_TOGETHER, n - block * _TOGETHER)):
                if total[j] * (1.0 - _ROUNDING) <= most[j]:
                    nominal = block * _TOGETHER + j
                    _without(layout, row, of_pattern, out, nominal, after, distances)
                    for group in range(n_groups):
                        distance = distances[group]
                        if not out[group] and distance <= last[group] and distance < least[group, k - 1]:
                            _insert(distance, nominal, least[group], near[i, group])
                            last[group] = min(last[group], least[group, k - 1])


@compiled(fastmath={"reassoc", "nsz"})
def medoids(layout, near, left_out):  # type: ignore[no-untyped-def]
    """Return the near row with the least sum of distances to the others, in the columns asked about."""
    rows, order, starts = layout.rows, layout.order, layout.starts
    m, n_groups, k = near.shape
    typical = np.zeros((m, n_groups), dtype=np.int64)
    sums, asked, values = np.empty(k), np.empty(order.shape[0], dtype=np.int64), np.empty((k, order.shape[0]))
    for i in range(m):
        n_out = 0
        for group in range(n_groups):
            if left_out[i, group]:
                for column in order[starts[group] : starts[group + 1]]:
                    asked[n_out] = column
                    n_out += 1
        for group in range(n_groups):
            if left_out[i, group]:
                continue
            n_asked = n_out
            for column in order[starts[group] : starts[group + 1]]:
                asked[n_asked] = column
                n_asked += 1
            for a in range(k):
                for at in range(n_asked):
                    values[a, at] = rows[near[i, group, a], asked[at]]
            sums[:] = 0.0
            for a in range(k):
                for b in range(a):
                    square = 0.0
                    for at in range(n_asked):
                        square += (values[a, at] - values[b, at]) ** 2
                    sums[a] += np.sqrt(square)
                    sums[b] += np.sqrt(square)
            best = 0
            for a in range(1, k):
                # Equal but for rounding: the nearer one.
                if sums[a] < sums[best] * (1.0 - 1e-12):
                    best = a
            typical[i, group] = near[i, group, best]
    return typical
