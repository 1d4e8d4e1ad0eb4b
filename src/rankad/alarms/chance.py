"""How many alarms there are, and how many chance alone would raise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv
from scipy.stats import betabinom

from rankad._base.arrays import Floats
from rankad.stages.calibration import TIED_WITHIN, Calibration, n_attainable

LEVELS = (0.1, 0.05, 0.01, 0.001)
_N_BINS = 20
# Up to so many rows the law of their alarms is summed exactly, beyond it is as good as continuous.
_MOST_SUMMED = 20_000


class Span(NamedTuple):
    """From `low` to `high`, both included."""

    low: int
    high: int


@dataclass(frozen=True)
class PValueSummary:
    """Counts of p-values, added up batch by batch: as small for a billion rows as for ten.

    Examples
    --------
    >>> summary = PValueSummary.for_levels(0.02).add([0.01, 0.02]).add([0.7])
    >>> summary.n_rows, summary.n_alarms(0.02), summary.n_alarms(0.01)
    (3, 2, 1)
    """

    levels: tuple[float, ...]  # the rates at which alarms are counted, descending
    at_levels: tuple[int, ...]  # how many p-values are at most each level
    bins: tuple[int, ...]  # how many lie in (0, 0.05], (0.05, 0.1], ..., (0.95, 1]

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
            raise ValueError("p_values must be above 0 and at most 1; pass what detector.p_values returns.")
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

    @property
    def cumulative(self) -> list[tuple[float, int]]:
        """How many p-values are at most each upper edge of a bin but 1, and each level."""
        edges = [(at + 1) / _N_BINS for at in range(_N_BINS - 1)]
        sums = np.cumsum(self.bins).tolist()
        return [*zip(edges, sums[:-1], strict=True), *zip(self.levels, self.at_levels, strict=True)]

    def n_alarms(self, alpha: float) -> int:
        """Return how many p-values are at most alpha, which must be one of the levels."""
        if alpha not in self.levels:
            raise ValueError(
                f"alpha must be a level that was counted, {', '.join(map(str, self.levels))}; got {alpha!r}. "
                f"Begin the summary with PValueSummary.for_levels({alpha!r})."
            )
        return self.at_levels[self.levels.index(alpha)]


@dataclass(frozen=True)
class Chance:
    """How many alarms chance alone raises among rows that are all nominal.

    A row is an alarm if it scores below the r-th smallest of n nominal scores. If all rows come from one law,
    scores do not tie and each nominal row was scored independently of the others, the number of alarms is
    Beta-binomial with parameters r and n + 1 - r. Scores of rows left out depend on one another, so that each
    counts for less than an independent one (`Calibration.worth`), and the law is wider.

    Examples
    --------
    >>> Chance(1_999).span(1_000, 0.05)
    Span(low=34, high=67)
    >>> Chance.of(Calibration.from_scores(range(1_999), "cross-fit")).span(1_000, 0.05)
    Span(low=30, high=73)
    """

    n: int  # nominal scores
    worth: float = 1.0  # for how many independent ones each counts; 0 says that the law is not known
    scores: Floats | None = None  # ascending, to see which of them tie; None says that none do
    # Rows left out as suspects that would have calibrated: if they are nominal after all, all would be alarms
    n_trimmed: int = 0

    @classmethod
    def of(cls, calibration: Calibration, n_trimmed: int = 0) -> Chance:
        """Return the law of the alarms that a calibration raises."""
        return cls(calibration.scores.size, calibration.worth, calibration.scores, n_trimmed)

    def span(self, n_rows: int, alpha: float, usual: float = 0.95) -> Span:
        """Return how many alarms there are with probability `usual`; any number if the law is not known."""
        least, most = self._places(alpha)
        if n_rows == 0 or not most.r:
            return Span(0, 0)
        if not self.worth:
            return Span(0, n_rows)
        tail = (1 - usual) / 2
        low = _quantile(tail, n_rows, least, self.worth) if least.r else 0
        return Span(low, _quantile(1 - tail, n_rows, most, self.worth))

    def probability_of_more(self, n_alarms: int, n_rows: int, alpha: float) -> float:
        """Return the probability of at least so many alarms."""
        _, most = self._places(alpha)
        if n_alarms == 0 or not self.worth or most.r >= most.n + 1:
            return 1.0
        return 1 - _below(n_alarms - 1, n_rows, most, self.worth) if most.r else 0.0

    def probability_of_fewer(self, n_alarms: int, n_rows: int, alpha: float) -> float:
        """Return the probability of at most so many alarms."""
        least, _ = self._places(alpha)
        if not self.worth or not least.r:
            return 1.0
        return _below(n_alarms, n_rows, least, self.worth)

    def shares(self, alpha: float) -> tuple[float, float]:
        """Return the least and the greatest share of alarms to be expected; they differ where scores tie."""
        least, most = self._places(alpha)
        return least.r / (least.n + 1), most.r / (most.n + 1)

    def _places(self, alpha: float) -> tuple[_Place, _Place]:
        """Return the least and the greatest place that the threshold may have among nominal scores.

        Rows that tie with the threshold are no alarms, and left-out scores tie only about.
        """
        r, t = n_attainable(self.n, alpha), self.n_trimmed
        least, most = r, r
        if self.scores is not None and 0 < r <= self.n:
            threshold = self.scores[r - 1]
            below = int(np.searchsorted(self.scores, threshold - TIED_WITHIN, side="left"))
            up_to = int(np.searchsorted(self.scores, threshold + TIED_WITHIN, side="right"))
            if up_to - below > 1:
                least = below
                most = r if self.worth == 1 else up_to
        return _Place(least, self.n), _Place(most + t if most else 0, self.n + t)


def chance_of(detector: Any) -> Chance:
    """Return the law of the number of alarms that nominal rows raise with a fitted detector of any kind."""
    inner = getattr(detector, "detector_", detector)
    calibration: Calibration = inner.calibration_
    # Of trim="auto", suspects calibrate.
    left_out = not inner.recalibrated_ and getattr(inner, "trim", 0) != "auto"
    n_trimmed = len(getattr(inner, "trimmed_rows_", ())) if left_out else 0
    if n_trimmed:
        n_used = inner.n_samples_fit_ - len(inner.repeated_rows_) - n_trimmed
        n_trimmed = math.ceil(n_trimmed * min(calibration.scores.size / n_used, 1.0))
    return Chance.of(calibration, n_trimmed)


class _Place(NamedTuple):
    """A threshold: the r-th smallest of n scores."""

    r: int
    n: int


def _law(n_rows: int, place: _Place, worth: float) -> tuple[float, float]:
    """Return the parameters of the Beta law of the share of alarms that has the mean and variance they have.

    Of many rows it is as good as the Beta-binomial law.
    """
    n = worth * (place.n + 1)
    weight = n * (n_rows - 1) / (n_rows + n) if n_rows > 1 else n
    share = place.r / (place.n + 1)
    return share * weight, (1 - share) * weight


def _quantile(probability: float, n_rows: int, place: _Place, worth: float) -> int:
    if place.r > place.n:
        return n_rows
    if n_rows <= _MOST_SUMMED:
        a, b = worth * place.r, worth * (place.n + 1 - place.r)
        return int(betabinom.ppf(probability, n_rows, a, b))
    return math.floor(float(betaincinv(*_law(n_rows, place, worth), probability)) * n_rows)


def _below(n_alarms: int, n_rows: int, place: _Place, worth: float) -> float:
    """Return the probability of at most so many alarms."""
    if n_alarms >= n_rows:
        return 1.0
    if n_rows <= _MOST_SUMMED:
        a, b = worth * place.r, worth * (place.n + 1 - place.r)
        return float(np.clip(betabinom.cdf(n_alarms, n_rows, a, b), 0.0, 1.0))
    return float(betainc(*_law(n_rows, place, worth), (n_alarms + 0.5) / n_rows))
