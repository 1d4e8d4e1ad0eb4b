"""How many alarms there are, and how many chance alone would raise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv
from scipy.stats import betabinom

from rankad.calibration import n_attainable

__all__ = ["LEVELS", "PValueSummary", "Span", "chance_alarms"]

LEVELS = (0.1, 0.05, 0.01, 0.001)
_N_BINS = 20
# Up to so many rows the law of their alarms is summed exactly, beyond it is as good as continuous.
_MOST_SUMMED = 20_000
_USUAL = 0.95


class Span(NamedTuple):
    """From `low` to `high`, both included."""

    low: int
    high: int


@dataclass(frozen=True)
class PValueSummary:
    """Counts of p-values, added up batch by batch: as small for a billion rows as for ten.

    Attributes
    ----------
    levels : tuple of float
        The rates at which alarms are counted, descending.
    at_levels : tuple of int
        How many p-values are at most each level.
    bins : tuple of int
        How many lie in (0, 0.05], (0.05, 0.1], ..., (0.95, 1].

    Examples
    --------
    >>> summary = PValueSummary.for_levels(0.02).add([0.01, 0.02]).add([0.7])
    >>> summary.n_rows, summary.n_alarms(0.02), summary.n_alarms(0.01)
    (3, 2, 1)
    """

    levels: tuple[float, ...]
    at_levels: tuple[int, ...]
    bins: tuple[int, ...]

    @classmethod
    def for_levels(cls, *alphas: float) -> PValueSummary:
        """Begin with no rows; alarms are counted at these rates and at 10, 5, 1 and 0.1 %."""
        for alpha in alphas:
            if not 0 < alpha < 1:
                raise ValueError(f"alpha must be a number strictly between 0 and 1, got {alpha!r}.")
        levels = tuple(sorted({*LEVELS, *map(float, alphas)}, reverse=True))
        return cls(levels, (0,) * len(levels), (0,) * _N_BINS)

    @classmethod
    def of(cls, batches: Iterable[ArrayLike], *alphas: float) -> PValueSummary:
        """Sum up batches of p-values."""
        summary = cls.for_levels(*alphas)
        for batch in batches:
            summary = summary.add(batch)
        return summary

    def add(self, p_values: ArrayLike) -> PValueSummary:
        """Return the summary with more p-values counted."""
        values = np.asarray(p_values, dtype=np.float64).reshape(-1)
        if not bool(((values > 0) & (values <= 1)).all()):
            raise ValueError("p_values must lie in (0, 1]; pass what detector.p_values returns.")
        # An upper edge belongs to its bin, as alpha belongs to the alarms; k / 20 is alpha as it is written.
        edges = np.arange(1, _N_BINS) / _N_BINS
        counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=_N_BINS)
        return replace(
            self,
            at_levels=tuple(
                n + int((values <= level).sum()) for n, level in zip(self.at_levels, self.levels, strict=True)
            ),
            bins=tuple(n + int(more) for n, more in zip(self.bins, counts, strict=True)),
        )

    @property
    def n_rows(self) -> int:
        """How many rows were scored."""
        return sum(self.bins)

    def n_alarms(self, alpha: float) -> int:
        """Return how many p-values are at most alpha, which must be one of the levels."""
        if alpha not in self.levels:
            raise ValueError(
                f"alpha must be a level that was counted, {', '.join(map(str, self.levels))}; got {alpha!r}. "
                f"Begin the summary with PValueSummary.for_levels({alpha!r})."
            )
        return self.at_levels[self.levels.index(alpha)]


def chance_alarms(n_rows: int, n_calibration: int, alpha: float) -> Span:
    """Return how many alarms there usually are (19 times in 20) if every row is nominal.

    Alarms are rows that score below the r-th smallest of n nominal scores. If all rows come from one law and
    scores do not tie, their number is Beta-binomial with parameters r and n + 1 - r.

    Parameters
    ----------
    n_rows : int
        Rows scored.
    n_calibration : int
        Nominal scores that p-values refer to, n.
    alpha : float

    Examples
    --------
    >>> chance_alarms(1_000, 1_999, 0.05)
    Span(low=34, high=67)
    """
    r = n_attainable(n_calibration, alpha)
    if r == 0 or n_rows == 0:
        return Span(0, 0)
    rest, tail = n_calibration + 1 - r, (1 - _USUAL) / 2
    if n_rows <= _MOST_SUMMED:
        low, high = betabinom.ppf([tail, 1 - tail], n_rows, r, rest)
        return Span(int(low), int(high))
    # The Beta law with the same mean and variance.
    weight = (n_calibration + 1) * (n_rows - 1) / (n_rows + n_calibration + 1)
    share = r / (n_calibration + 1)
    low, high = betaincinv(share * weight, (1 - share) * weight, [tail, 1 - tail]) * n_rows
    return Span(math.floor(low), math.floor(high))
