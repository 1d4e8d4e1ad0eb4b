"""Counters of several devices in one column, each of which only grows."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from rankad._base.arrays import Floats

__all__ = ["counters_in_turn"]

# With fewer values than these nothing is said; so few rows of a long table will do to rule it out.
_ENOUGH, _FEW_ROWS = 60, 2_000
# Values in a random order fall into about 2 sqrt(n) chains that grow, and never into a quarter of these.
_CHAINS = 0.5
# A counter begins in the first part of the table and is still there in the last, and counts so often.
_EDGE, _LEAST = 0.2, 5
# Of all values, so many differ.
_DIFFERENT = 2 / 3


def counters_in_turn(values: Floats) -> int:
    """Return how many counters a column has whose values come in turn, 0 where it has none.

    Each only grows, whatever its steps are. By giving each value to the chain with the largest last value
    that is not above it, there are as few chains as can be. Cycles are no counters: each chain ends with its
    cycle.

    >>> rng = np.random.default_rng(0)
    >>> meters = np.cumsum(rng.integers(1, 90, size=(100, 3)), axis=0) + [0, 50_000, 90_000]
    >>> counters_in_turn(meters.ravel().astype(float)), counters_in_turn(rng.normal(size=300))
    (3, 0)
    """
    some = values[:_FEW_ROWS]
    if some.size < _ENOUGH or np.unique(some).size < _DIFFERENT * some.size:
        return 0
    found = _chains(some.tolist(), _most(some.size))
    if found and values.size > some.size:
        found = _chains(values.tolist(), _most(some.size))
    return found


def _most(n: int) -> int:
    return int(_CHAINS * n**0.5)


def _chains(values: list[float], most: int) -> int:
    """Return in how many chains values grow, 0 where these are too many or some do not go on to the end."""
    # The last values of all chains, ascending; of the same chains, the first and last rows and the steps.
    ends: list[float] = []
    begun: list[int] = []
    last: list[int] = []
    counts: list[int] = []
    for row, value in enumerate(values):
        at = bisect_right(ends, value) - 1
        if at < 0:
            if len(ends) == most:
                return 0
            ends.insert(0, value)
            begun.insert(0, row)
            last.insert(0, row)
            counts.insert(0, 1)
        else:
            # One value that comes again and again is no counter.
            counts[at] += value > ends[at]
            ends[at], last[at] = value, row
    n = len(values)
    whole = max(begun) < _EDGE * n and min(last) >= (1 - _EDGE) * n and min(counts) >= _LEAST
    return len(ends) if whole and len(ends) > 1 else 0
