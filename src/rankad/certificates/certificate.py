"""What is promised about the false alarms of a fitted detector, at every rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from rankad._base.arrays import Floats
from rankad._base.checks import check_p_values, check_share, check_unit
from rankad.certificates.laws import (
    Method,
    beta_upper,
    conditional_p_values,
    effective_rows,
    simultaneous_upper,
)
from rankad.stages.calibration import Calibration

_SHOWN = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


class RateRange(NamedTuple):
    """Realised false-alarm rates that are compatible with the calibration.

    Attributes
    ----------
    alpha : float
        The rate asked for.
    low, high : float
        Of all normal rows to come, the share that raises an alarm lies between these.
    """

    alpha: float
    low: float
    high: float


@dataclass(frozen=True)
class Certificate:
    """What is promised about false alarms: the realised rates compatible with a calibration, at every alpha.

    The realised false-alarm rate of one fitted detector is the share of all normal rows to come that raise an
    alarm. It is not alpha, since the threshold comes from a finite sample. `range` says within which limits
    it is at one alpha; `simultaneous` says so for all alphas at once, for when alpha is chosen after looking.
    Both hold with probability ``1 - delta`` over calibration samples.

    The lower limits assume that a score which many normal rows share occurs more than once among the
    calibration rows: if no scores tie there, scores of new rows are taken not to tie either. Upper limits,
    `alpha_for` and p-values hold in any case.

    Make one with ``detector.certificate()``.

    Parameters
    ----------
    calibration : Calibration
        The scores of the calibration rows.
    delta : float
        The probability with which a promise may fail.
    exact : bool
        Whether a theorem covers the detector as it was fitted. Otherwise the limits are approximations.
    basis : str
        What they rest on.
    n_bad : int
        Calibration rows that may be anomalies; see `contaminated`.
    excess : float
        The share of normal rows that may have been trimmed away; all of these are alarms.

    Examples
    --------
    >>> import numpy as np
    >>> calibration = Calibration.from_scores(np.arange(1999.0), "split")
    >>> certificate = Certificate(calibration, delta=0.05)
    >>> certificate.range(0.01)
    RateRange(alpha=0.01, low=0.006..., high=0.014...)
    >>> round(certificate.upper(0.01), 4)
    0.0139

    Which alpha to ask for so that the realised rate is at most 1 %, nineteen times in twenty:

    >>> certificate.alpha_for(0.01)
    0.0065

    Where alpha is chosen afterwards, where a few calibration rows may be anomalies, and what is possible:

    >>> certificate.simultaneous(0.01)
    RateRange(alpha=0.01, low=0.004..., high=0.018...)
    >>> certificate.p_values([0.001]).round(4)
    array([0.0046])
    >>> round(certificate.contaminated(0.01).upper(0.01), 4)
    0.0141
    >>> certificate.n, certificate.smallest_alpha, round(certificate.smallest_rate, 4)
    (1999, 0.0005, 0.0015)
    """

    calibration: Calibration
    delta: float
    exact: bool = True
    basis: str = ""
    n_bad: int = 0
    excess: float = 0.0

    def __post_init__(self) -> None:
        check_unit("delta", self.delta)
        if not self.calibration.worth:
            raise ValueError(
                "An in-sample calibration has no certificate but the paper's theorem: see "
                "detector.false_alarm_bound, or call detector.calibrate with fresh normal rows."
            )

    @property
    def n(self) -> int:
        """Calibration rows that are normal rows for certain."""
        return self.calibration.scores.size - self.n_bad

    @property
    def smallest_alpha(self) -> float:
        """The smallest alpha at which any row can raise an alarm."""
        return 1 / (self.calibration.scores.size + 1)

    @property
    def smallest_rate(self) -> float:
        """The smallest realised rate that can be promised while alarms are possible."""
        return self._high(1, self.delta)

    def range(self, alpha: float) -> RateRange:
        """Return the range of realised rates at one alpha that was chosen beforehand."""
        r = self.calibration.n_below(check_unit("alpha", alpha))
        if r == 0:
            return RateRange(alpha, 0.0, 0.0)
        tail = self.delta / 2
        rank, may_tie = self._sure_rank(r)
        if not may_tie:
            low = self._low(rank, tail)
        elif rank + self.n_bad == r - 1:
            low = self._low(rank, tail / 2)
        else:
            # How many scores are below the threshold depends on the sample.
            low = self._simultaneous_low(rank, tail / 2, "exact")
        return RateRange(alpha, low, self._high(r, tail))

    def upper(self, alpha: float) -> float:
        """Return the rate that the realised one exceeds with a probability of at most delta."""
        r = self.calibration.n_below(check_unit("alpha", alpha))
        return self._high(r, self.delta) if r else 0.0

    def simultaneous(self, alpha: float, method: Method = "exact") -> RateRange:
        """Return the range of realised rates; the ranges of all alphas hold together.

        Parameters
        ----------
        alpha : float
            May be chosen after seeing alarms.
        method : {"exact", "simes", "dkw"}
            See `rankad.certificates.laws.simultaneous_upper`.
        """
        r = self.calibration.n_below(check_unit("alpha", alpha))
        if r == 0:
            return RateRange(alpha, 0.0, 0.0)
        tail = self.delta / 2
        n, counted = self.n, effective_rows(self.n, self._worth)
        bounds = simultaneous_upper(counted, tail, method)
        rank = math.ceil(min(r / (n + 1), 1.0) * (counted + 1) - 1e-9)
        high = float(bounds[rank - 1]) if rank <= counted else 1.0
        low = self._simultaneous_low(self._sure_rank(r)[0], tail, method)
        return RateRange(alpha, low, self._with_excess(high))

    def alpha_for(self, rate: float) -> float:
        """Return the largest alpha with which the realised rate is at most `rate`, except for delta.

        Raises
        ------
        ValueError
            Where there are too few calibration rows for any; the error says how small a rate they support.
        """
        limit = check_unit("rate", rate)
        if self.smallest_rate > limit:
            raise ValueError(
                f"rate must be at least {self.smallest_rate:.3g}, the smallest that {self.n} calibration "
                f"rows support at delta={self.delta:g}; got {rate!r}. Calibrate with more rows."
            )
        low, high = 1, self.calibration.scores.size + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._high(middle, self.delta) <= limit else (low, middle)
        return low / (self.calibration.scores.size + 1)

    def p_values(self, p_values: ArrayLike, method: Method = "exact") -> Floats:
        """Turn p-values of the detector into calibration-conditional ones: see `conditional_p_values`.

        Where rows were trimmed or may be anomalies, the limits of the certificate count that in.
        """
        n_all, n = self.calibration.scores.size, self.n
        values = np.asarray(p_values, dtype=np.float64)
        check_p_values(values)
        ranks = values * (n_all + 1)
        inner = conditional_p_values(np.minimum(ranks / (n + 1), 1.0), n, self.delta, method, self._worth)
        return np.asarray(inner * (1 - self.excess) + self.excess)

    def contaminated(self, share: float) -> Certificate:
        """Return the certificate that holds if up to this share of the calibration rows are anomalies.

        Whatever their scores, m anomalies move the rank of the threshold among the normal rows by at most m.
        The worst for the rate is that all score as high as the most normal rows: it grows by a factor of
        ``1 / (1 - share)`` at most. Usually they score low: then there are fewer false alarms than asked for,
        down to none at all at alphas below the share, and anomalies of that kind go unnoticed.

        Parameters
        ----------
        share : float
            From 0 to below 0.5.
        """
        n_bad = math.ceil(check_share("share", share) * self.calibration.scores.size)
        note = f". Up to {n_bad} of the calibration rows may be anomalies, with any scores"
        return replace(self, n_bad=n_bad, basis=self.basis + (note if n_bad else ""))

    def __str__(self) -> str:
        kind = "holds by a theorem" if self.exact else "approximate"
        lines = [
            f"False-alarm rates realised with {self.calibration.scores.size} calibration rows "
            f"({self.calibration.kind}), confidence {1 - self.delta:.4g}, {kind}",
            "   alpha    one alpha alone      all alphas at once",
        ]
        for alpha in _SHOWN:
            if alpha >= self.smallest_alpha:
                one, every = self.range(alpha), self.simultaneous(alpha)
                lines.append(
                    f"{alpha:8.2%}   {one.low:7.2%} to {one.high:7.2%}   "
                    f"{every.low:7.2%} to {every.high:7.2%}"
                )
        lines.append(
            f"The smallest alpha at which alarms are possible is {self.smallest_alpha:.3g}; the smallest "
            f"rate that can be promised is {self.smallest_rate:.3g}."
        )
        return "\n".join([*lines, self.basis] if self.basis else lines)

    @property
    def _worth(self) -> float:
        return self.calibration.worth

    def _with_excess(self, rate: float) -> float:
        return rate * (1 - self.excess) + self.excess

    def _high(self, r: int, delta: float) -> float:
        return self._with_excess(float(beta_upper(r, self.n, delta, self._worth)))

    def _low(self, rank: int, delta: float) -> float:
        return 0.0 if rank < 1 else 1 - float(beta_upper(self.n + 1 - rank, self.n, delta, self._worth))

    def _sure_rank(self, r: int) -> tuple[int, bool]:
        """Return the rank of a score up to which all normal rows raise an alarm, and whether scores tie.

        Without ties that is the threshold's. With ties it is that of the next lower score: the threshold may
        be a value that many normal rows have, though one calibration row does, and these raise no alarm.
        """
        scores = self.calibration.scores
        may_tie = bool((scores[1:] == scores[:-1]).any())
        rank = int(np.searchsorted(scores, scores[min(r, scores.size) - 1], side="left")) if may_tie else r
        return rank - self.n_bad, may_tie

    def _simultaneous_low(self, rank: int, delta: float, method: Method) -> float:
        n, counted = self.n, effective_rows(self.n, self._worth)
        placed = math.floor(rank / (n + 1) * (counted + 1) + 1e-9)
        if placed < 1:
            return 0.0
        return 1 - float(simultaneous_upper(counted, delta, method)[counted - placed])


def certificate_of(detector: Any, delta: float, contamination: float = 0.0) -> Certificate:
    """Return the certificate of a fitted detector of any kind; see `CalibratedDetector.certificate`."""
    check_share("contamination", contamination)
    bound = detector.false_alarm_bound(0.5, delta)
    inner = getattr(detector, "detector_", detector)
    n_trimmed, excess = 0, 0.0
    if not inner.recalibrated_ and getattr(inner, "trim", 0) != "auto":
        n_trimmed = len(getattr(inner, "trimmed_rows_", ()))
    if n_trimmed:
        n_rows = inner.n_samples_fit_ - len(inner.repeated_rows_)
        excess = float(betaincinv(n_trimmed, n_rows - n_trimmed, 1 - delta / 2 / n_rows))
    certificate = Certificate(
        detector.calibration_, delta / 2 if n_trimmed else delta, bound.exact, bound.theorem, 0, excess
    )
    return certificate.contaminated(contamination) if contamination else certificate
