"""A monitor of p-values as they come, which says when normal behaviour has drifted.

Bets against the p-values being those of normal rows. With a p-value p, a bet of strength e multiplies the
capital by ``e p^(e - 1)``, which is at most 1 on average if normal rows have p-values that are not too small.
So capital that has grown a lot is evidence of drift (Vovk 2021; Shin, Ramdas, Rinaldo 2023).

P-values of one detector refer to the same calibration rows. If these happen to score high, all p-values of
normal rows are a little too small, and in a long enough stream any bet on that wins, without any drift. So
each row is compared with the calibration rows and all rows of the stream before it. The p-values made in this
way are independent and uniform if all these rows come from one source, whatever it is (Vovk 2003), so that
the promises are exact for calibrations of any size.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Ints
from rankad._base.checks import check_unit, is_count
from rankad.certificates.discoveries import checked_p_values
from rankad.stages.calibration import worth_of

# Strengths of the bets: the first finds a few very small p-values, the last many that are a little too small.
_STRENGTHS = np.array([0.2, 0.5, 0.7, 0.85])
# Ranks among the calibration rows are counted one by one up to this one, then within this factor.
_ALL_RANKS, _RANK_FACTOR = 200, 1.005
_VERSION = 2


class DriftAlarm(NamedTuple):
    """A time at which the monitor said that normal behaviour had drifted.

    Attributes
    ----------
    row : int
        The row at which it did, counted from 1.
    since : int
        The first row of the stretch with the strongest evidence: about when the drift began.
    by : {"ever", "run"}
        Which promise it was raised by; see `DriftMonitor`.
    """

    row: int
    since: int
    by: str


@dataclass
class _Bets:
    """Capital of the bets of each strength, as logarithms.

    `martingale` has a share of capital that starts betting at each row, `sums` adds a whole unit at each row
    (Shiryaev and Roberts), and `cusum` is the best start alone, which is row `since`.
    """

    martingale: list[float] = field(default_factory=lambda: [-math.inf] * _STRENGTHS.size)
    sums: list[float] = field(default_factory=lambda: [-math.inf] * _STRENGTHS.size)
    cusum: list[float] = field(default_factory=lambda: [0.0] * _STRENGTHS.size)
    since: list[int] = field(default_factory=lambda: [1] * _STRENGTHS.size)


class DriftMonitor:
    """Says when the p-values of a stream are no longer those of normal rows, with a stated error rate.

    A single alarm says that a row is odd; the monitor says that rows are odd more often, or a little odder,
    than they should be: a sensor that wears, a new recipe, another unit. It makes two promises, each with its
    own evidence:

    - "ever": if nothing drifts, the probability that the monitor ever raises a drift alarm of this kind is at
      most `delta`, however long the stream is. A mixture of test martingales over strengths and over times
      when the drift may have begun, with Ville's inequality.
    - "run": if nothing drifts, the mean number of rows until a drift alarm of this kind is at least
      `run_length`. The sum of Shiryaev and Roberts of the same bets. The faster of the two.

    Both are exact for calibration rows that had no part in training, however few, and for rows that are
    independent, until an alarm of the kind "ever" is raised. From then on, and with `worth` below 1
    (cross-fitted detectors), they are approximations. Rows that depend on one another, as readings a second
    apart do, break them: monitor every tenth row, or means.

    Rows of the stream join the calibration rows that later rows are compared with, so that a long stream
    makes up for few calibration rows. While an alarm of the kind "ever" stands they do not: a drift that goes
    on does not become normal. A drift so slow that the stream before it has drifted nearly as far is noticed
    late. Only rows that have become odder are noticed, not those that have become more alike.

    Parameters
    ----------
    n_calibration : int
        Calibration rows, ``detector.calibration_.scores.size``.
    delta : float
        The probability of a drift alarm of the kind "ever" if there is no drift.
    run_length : int
        The least mean number of rows between drift alarms of the kind "run" if there is no drift.
    worth : float
        For how many independent rows each calibration row counts, ``detector.calibration_.worth``.
    rearm_after : int or None
        A drift that goes on is one alarm: bets start over after it, and another alarm is raised only if
        this many rows have passed without new evidence. None: the first alarm of each kind is the last.

    Attributes
    ----------
    n_rows : int
        Rows seen.
    alarms : list of DriftAlarm
        All drift alarms so far.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor(n_calibration=999)
    >>> monitor.update(rng.integers(1, 1001, size=500) / 1000)
    []
    >>> monitor.update(rng.integers(1, 301, size=100) / 1000)[0]
    DriftAlarm(row=51..., since=50..., by='run')
    >>> monitor = DriftMonitor.from_json(monitor.to_json())
    >>> monitor.n_rows, monitor.is_drifted(), monitor.run_evidence, monitor.evidence
    (600, True, 1.0, 1.0)

    For the p-values of a detector:

    >>> from rankad import KLPE
    >>> DriftMonitor.for_detector(KLPE().fit(np.arange(500.0)[:, None])).n_calibration
    500
    """

    def __init__(
        self,
        n_calibration: int,
        *,
        delta: float = 0.01,
        run_length: int = 10_000,
        worth: float = 1.0,
        rearm_after: int | None = 500,
    ) -> None:
        if not is_count(n_calibration) or n_calibration < 1:
            raise ValueError(f"n_calibration must be an integer >= 1, got {n_calibration!r}.")
        if not is_count(run_length) or run_length < 2:
            raise ValueError(f"run_length must be an integer >= 2, got {run_length!r}.")
        if rearm_after is not None and (not is_count(rearm_after) or rearm_after < 1):
            raise ValueError(f"rearm_after must be None or an integer >= 1, got {rearm_after!r}.")
        if not 0 < worth <= 1:
            raise ValueError(
                f"worth must be above 0 and at most 1, got {worth!r}; nothing is known of an in-sample "
                f"calibration: calibrate the detector with fresh normal rows first."
            )
        self.n_calibration, self.run_length, self.worth = int(n_calibration), int(run_length), float(worth)
        self.delta = check_unit("delta", delta)
        self.rearm_after = rearm_after
        self.n_rows = 0
        self.alarms: list[DriftAlarm] = []
        self._bets = _Bets()
        self._started = 0
        self._last_ranks = _last_ranks(self.n_calibration)
        # Rows of the stream that later ones are compared with, by the rank of their p-values.
        self._counts = np.zeros(self._last_ranks.size, dtype=np.int64)
        # When the evidence of each kind was last beyond its limit.
        self._beyond: dict[str, int] = {}

    @classmethod
    def for_detector(cls, detector: Any, **options: Any) -> Self:
        """Return a monitor for the p-values of a fitted detector; options are those of the class."""
        detector._check_fitted()
        calibration = detector.calibration_
        return cls(calibration.scores.size, worth=worth_of(calibration.kind), **options)

    def update(self, p_values: ArrayLike) -> list[DriftAlarm]:
        """Take the p-values of more rows, in their order.

        Parameters
        ----------
        p_values : array-like of shape (m,)
            As ``detector.p_values`` returns them. How a stream is cut into batches makes no difference.

        Returns
        -------
        list of DriftAlarm
            The drift alarms raised by these rows.
        """
        values = checked_p_values(p_values)
        # A p-value that is a multiple of 1/(n+1) but for rounding keeps its rank.
        ranks = np.ceil(values * (self.n_calibration + 1) - 1e-6)
        n_before = len(self.alarms)
        for at in np.searchsorted(self._last_ranks, ranks).tolist():
            self._step(self._compared(at))
        return self.alarms[n_before:]

    @property
    def evidence(self) -> float:
        """How far the evidence is, on a logarithmic scale: 1 is a drift alarm of the kind "ever".

        It stays at 1 until that may be raised again.
        """
        return self._height("ever", self._log_martingale() / math.log(1 / self.delta))

    @property
    def run_evidence(self) -> float:
        """The same of the kind "run"."""
        return self._height("run", self._log_sum() / math.log(self.run_length))

    def is_drifted(self, by: str = "run") -> bool:
        """Tell whether a drift alarm of this kind stands: no other one can be raised yet."""
        if by not in self._beyond:
            return False
        return self.rearm_after is None or self.n_rows - self._beyond[by] < self.rearm_after

    def _height(self, by: str, value: float) -> float:
        return 1.0 if self.is_drifted(by) else min(max(0.0, value), 1.0)

    def to_json(self) -> str:
        """Return the monitor as a line of JSON; `from_json` goes on to the last bit."""
        return json.dumps(
            {
                "version": _VERSION,
                "parameters": {name: getattr(self, name) for name in _PARAMETERS},
                "n_rows": self.n_rows,
                "started": self._started,
                "beyond": self._beyond,
                "alarms": [list(alarm) for alarm in self.alarms],
                "counts": self._counts.tolist(),
                # JSON has no infinity.
                "bets": {
                    name: [None if value == -math.inf else value for value in values]
                    for name, values in asdict(self._bets).items()
                },
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the monitor that `to_json` wrote."""
        try:
            state = json.loads(text)
            if state["version"] != _VERSION:
                raise ValueError(f"its version is {state['version']!r}, and this rankad reads {_VERSION!r}")
            made = cls(**state["parameters"])
            made.n_rows, made._started = int(state["n_rows"]), int(state["started"])
            made._beyond = {str(by): int(row) for by, row in state["beyond"].items()}
            made.alarms = [DriftAlarm(int(row), int(since), str(by)) for row, since, by in state["alarms"]]
            made._counts[:] = state["counts"]
            bets: dict[str, Any] = {
                name: [-math.inf if value is None else value for value in values]
                for name, values in state["bets"].items()
            }
            made._bets = _Bets(**bets)
        except (KeyError, TypeError, ValueError) as error:
            said = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(
                f"The text is not a saved DriftMonitor ({said}); give what to_json() returned."
            ) from error
        return made

    def _compared(self, at: int) -> float:
        """Return the p-value of a row among calibration rows and rows before it, and add it to these.

        A row that shares its rank with others counts as the highest of them: a p-value that is too large at
        worst, also where scores tie.
        """
        below = self.worth * self._last_ranks[at] + self._counts[: at + 1].sum()
        p_value = float(below / (self.worth * (self.n_calibration + 1) + self._counts.sum()))
        if not self.is_drifted("ever"):
            self._counts[at] += 1
        return min(p_value, 1.0)

    def _step(self, p_value: float) -> None:
        gain = np.log(_STRENGTHS) + (_STRENGTHS - 1) * math.log(p_value)
        self.n_rows += 1
        age = self.n_rows - self._started
        bets = self._bets
        start = math.log(_not_started(age) - _not_started(age + 1))
        cusum = np.array(bets.cusum)
        bets.since = [
            self.n_rows if value <= 0 else since for value, since in zip(cusum, bets.since, strict=True)
        ]
        bets.martingale = (np.logaddexp(bets.martingale, start) + gain).tolist()
        bets.sums = (np.logaddexp(bets.sums, 0.0) + gain).tolist()
        bets.cusum = (np.maximum(cusum, 0.0) + gain).tolist()
        raised = []
        if self._log_sum() >= math.log(self.run_length):
            raised.append("run")
        if self._log_martingale() >= math.log(1 / self.delta):
            raised.append("ever")
        for by in raised:
            if not self.is_drifted(by):
                since = bets.since[int(np.argmax(bets.cusum))]
                if by == "ever" and self.is_drifted("run"):
                    # It is the same drift, and the sums have started over.
                    since = next(alarm.since for alarm in reversed(self.alarms) if alarm.by == "run")
                self.alarms.append(DriftAlarm(self.n_rows, since, by))
            self._beyond[by] = self.n_rows
        if "run" in raised:
            fresh = _Bets()
            bets.sums, bets.cusum, bets.since = fresh.sums, fresh.cusum, [self.n_rows + 1] * _STRENGTHS.size
        if "ever" in raised:
            bets.martingale, self._started = _Bets().martingale, self.n_rows

    def _log_martingale(self) -> float:
        """Return the logarithm of the mean capital; what is not yet bet is kept aside and counts, too."""
        age = self.n_rows - self._started
        bet = np.logaddexp.reduce(self._bets.martingale) - math.log(_STRENGTHS.size)
        return float(np.logaddexp(bet, math.log(_not_started(age + 1))))

    def _log_sum(self) -> float:
        """Return the logarithm of the mean sum: without drift it grows by at most 1 a row on average."""
        return float(np.logaddexp.reduce(self._bets.sums) - math.log(_STRENGTHS.size))


def _not_started(age: int) -> float:
    """Return the share of capital that has not started betting before row `age`; it falls slowly to zero."""
    return 1 / (1 + math.log(age))


def _last_ranks(n: int) -> Ints:
    """Return the last ranks of the groups in which ranks 1 to n + 1 are counted; most hold a single one."""
    last = list(range(1, min(n + 1, _ALL_RANKS) + 1))
    while last[-1] < n + 1:
        last.append(min(n + 1, math.ceil(last[-1] * _RANK_FACTOR)))
    return np.array(last)


_PARAMETERS = ("n_calibration", "delta", "run_length", "worth", "rearm_after")
