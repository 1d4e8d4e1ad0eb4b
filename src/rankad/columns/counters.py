"""Counters of several devices, interleaved in one column."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from rankad._base.arrays import Floats

__all__ = ["interleaved_counters"]

# Fewer values decide nothing; the first rows of a long table are enough to rule counters out.
_ENOUGH, _FEW_ROWS = 60, 2_000
# n values in random order form about 2 sqrt(n) growing chains, and never as few as a quarter of these.
_MOST_CHAINS = 0.5
# A counter starts in the first and is still there in the last fifth of the table, and has this many steps.
_EDGE, _LEAST_STEPS = 0.2, 5
_DISTINCT_SHARE = 2 / 3


def interleaved_counters(values: Floats) -> int:
    """Return the number of counters whose values alternate in a column, 0 if there are none.

    Each value goes to the chain with the largest last value that is not above it, which makes the fewest
    chains. Cycles are no counters: each chain ends with its cycle.

    >>> rng = np.random.default_rng(0)
    >>> meters = np.cumsum(rng.integers(1, 90, size=(100, 3)), axis=0) + [0, 50_000, 90_000]
    >>> interleaved_counters(meters.ravel().astype(float)), interleaved_counters(rng.normal(size=300))
    (3, 0)
    """
    head = values[:_FEW_ROWS]
    if head.size < _ENOUGH or np.unique(head).size < _DISTINCT_SHARE * head.size:
        return 0
    most = int(_MOST_CHAINS * head.size**0.5)
    n_chains = _growing_chains(head.tolist(), most)
    return _growing_chains(values.tolist(), most) if n_chains and values.size > head.size else n_chains


def _growing_chains(values: list[float], most: int) -> int:
    """Return the number of growing chains, 0 if there are too many or some do not span the table."""
    # Last values of all chains, ascending, with the first row, the last row and the steps of each.
    ends: list[float] = []
    chains: list[list[int]] = []
    for row, value in enumerate(values):
        at = bisect_right(ends, value) - 1
        if at < 0:
            if len(ends) == most:
                return 0
            ends.insert(0, value)
            chains.insert(0, [row, row, 1])
        else:
            # A repeated value is no step.
            chains[at][1], chains[at][2] = row, chains[at][2] + (value > ends[at])
            ends[at] = value
    n = len(values)
    starts, stops, steps = zip(*chains, strict=True)
    spanning = max(starts) < _EDGE * n and min(stops) >= (1 - _EDGE) * n and min(steps) >= _LEAST_STEPS
    return len(ends) if spanning and len(ends) > 1 else 0
