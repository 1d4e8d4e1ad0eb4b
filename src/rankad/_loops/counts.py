"""The compiled loops of `rankad.stages.calibration`, `rankad.stages.levels` and `rankad.stages.ranks`.

They are apart so that those stages, and the detectors with them, can be imported without numba, which takes
longer to import than all of rankad.
"""

from __future__ import annotations

import numpy as np

from rankad._loops.cache import compiled

# Searches made side by side: each has to wait for memory at every step, and all wait together.
_SEARCHES = 8


@compiled
def shares_below(ordered, values):  # type: ignore[no-untyped-def]
    """Return ``(1 + #{ordered <= value}) / (n + 1)`` for every value, by halving; NaN for NaN."""
    n, shares = ordered.shape[0], np.empty(values.shape[0])
    lower = np.zeros(_SEARCHES, dtype=np.int64)
    for begin in range(0, values.shape[0], _SEARCHES):
        several = min(_SEARCHES, values.shape[0] - begin)
        lower[:] = 0
        left = n
        while left > 0:
            half = (left + 1) // 2
            for at in range(several):
                lower[at] += half if ordered[lower[at] + half - 1] <= values[begin + at] else 0
            left -= half
        for at in range(several):
            value = values[begin + at]
            shares[begin + at] = np.nan if np.isnan(value) else (1 + lower[at]) / (n + 1)
    return shares


@compiled
def wrong_order(f, levels, n_levels):  # type: ignore[no-untyped-def]
    """Count inversions of ascending `f` with `levels` by a Fenwick tree; tied scores count one half."""
    n = f.shape[0]
    below = np.zeros(n_levels + 1)
    tied = np.zeros(n_levels + 1)
    wrong = 0.0
    begin = 0
    while begin < n:
        end = begin
        while end < n and f[end] == f[begin]:
            end += 1
        # Rows already in the tree score lower; those of a higher level are ordered wrongly.
        for row in range(begin, end):
            node = levels[row]
            seen = 0.0
            while node > 0:
                seen += below[node]
                node -= node & -node
            wrong += begin - seen
        for row in range(begin, end):
            node = levels[row]
            while node <= n_levels:
                below[node] += 1.0
                node += node & -node
            # Tied with those of another level seen in this run so far: one half each.
            wrong += 0.5 * (row - begin - tied[levels[row]])
            tied[levels[row]] += 1.0
        for row in range(begin, end):
            tied[levels[row]] = 0.0
        begin = end
    return wrong


@compiled
def add_ranks_in_halves(density, order, half, total):  # type: ignore[no-untyped-def]
    """Add to the totals each row's rank by density within its own half; `order` sorts all rows by density."""
    n = order.shape[0]
    sizes = np.zeros(2)
    for row in range(n):
        sizes[np.int64(half[row])] += 1.0
    below = np.zeros(2)
    begin = 0
    while begin < n:
        # Rows of one density count each other.
        below[np.int64(half[order[begin]])] += 1.0
        end = begin + 1
        while end < n and density[order[end]] == density[order[begin]]:
            below[np.int64(half[order[end]])] += 1.0
            end += 1
        for position in range(begin, end):
            side = np.int64(half[order[position]])
            total[order[position]] += below[side] / sizes[side]
        begin = end
