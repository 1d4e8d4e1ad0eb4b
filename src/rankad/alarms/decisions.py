"""Alarms with a bound on the false discovery rate, for more rows than memory holds."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.checks import check_unit


class PValueCounts:
    """Counts of p-values, added batch by batch, for the rule of Benjamini and Hochberg (1995).

    Of m p-values in ascending order, all up to the last with ``p_(k) <= q k / m`` are alarms, and a share of
    at most q of these is expected to be false. P-values of rows that were compared with the same normal rows
    depend on one another, but positively, and the bound holds for those too, where the normal rows had no
    part in training (Bates et al. 2023). They are shares of n normal rows, so that there are at most n + 1
    different ones to count. For p-values in memory, `scipy.stats.false_discovery_control` does the same.

    Examples
    --------
    >>> counts = PValueCounts()
    >>> counts.add([0.03, 0.9])
    >>> counts.add([0.001, 0.04])
    >>> counts.level(0.06)
    0.04
    """

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()

    def add(self, p_values: ArrayLike) -> None:
        """Count more p-values."""
        values = np.asarray(p_values, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(f"p_values must be one-dimensional, got shape {values.shape}.")
        wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
        if wrong.size:
            raise ValueError(
                f"p_values must lie between 0 and 1, got {values[wrong[0]]:g} at position {wrong[0]}; pass "
                f"what a detector's p_values() returns."
            )
        different, n = np.unique(values, return_counts=True)
        self._counts.update(dict(zip(different.tolist(), n.tolist(), strict=True)))

    def level(self, q: float) -> float:
        """Return the largest p-value that is an alarm at a false discovery rate q; 0 if there is none."""
        rate = check_unit("q", q)
        values = np.array(sorted(self._counts))
        # Of equal p-values the last has the best chance.
        ranks = np.cumsum([self._counts[value] for value in values.tolist()])
        # p m / k <= q and not p <= q k / m: so a single p-value is compared with q itself.
        passing = np.flatnonzero(values * self._counts.total() / ranks <= rate)
        return float(values[passing[-1]]) if passing.size else 0.0
