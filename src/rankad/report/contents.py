"""What a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankad.alarms.chance import Chance, PValueSummary
from rankad.certificates.certificate import RateRange
from rankad.report.timeline import Timeline
from rankad.report.views import CategoryView, NumericView
from rankad.stages.calibration import FalseAlarmBound, worth_of
from rankad.stages.selection import SelectionTable

if TYPE_CHECKING:
    # They need polars, which is an extra.
    from rankad.explanations.explainer import Explanation
    from rankad.tables.judging import TableVerdict
    from rankad.tables.strange_cells import StrangeCell


@dataclass(frozen=True)
class Alarm:
    """One row that raised an alarm."""

    row: int  # its number in the table, the first is 1
    p_value: float
    score: float
    id: str | None = None  # what the user calls it
    explanation: Explanation | None = None  # why; rows with strange cells may have none
    strange: Sequence[StrangeCell] = ()
    # The row's own cells, to be shown beside the nearest normal rows.
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelFacts:
    """What the reader should know of the detector."""

    name: str  # such as that of the model file
    n_fitted: int  # normal rows it was fitted on
    n_calibration: int  # normal scores that p-values refer to
    calibration: str  # where these scores come from (`Calibration.kind`)
    bound: FalseAlarmBound  # what is promised at the report's alpha
    fitted: str = ""  # when
    versions: Mapping[str, str] = field(default_factory=dict)  # of the libraries it was fitted with
    parameters: Mapping[str, Any] = field(default_factory=dict)
    selection: SelectionTable | None = None  # all that was tried
    encoding: Sequence[str] = ()  # how each column is encoded, one line each
    fingerprint: str = ""  # of the rows it was fitted on
    # Between which shares of normal rows raise an alarm, 19 times in 20: at rates from small to large
    promised: Sequence[RateRange] = ()

    @property
    def chance(self) -> Chance:
        """How many alarms chance alone raises, if scores do not tie."""
        return Chance(self.n_calibration, worth_of(self.calibration))


@dataclass(frozen=True)
class ReportData:
    """All that is on the page."""

    title: str
    alpha: float  # the false-alarm rate asked for: a row is an alarm if its p-value is at most this
    p_values: PValueSummary  # of all rows scored; `alpha` must be one of its levels
    model: ModelFacts
    alarms: Sequence[Alarm] = ()  # those to be shown; the page puts the lowest score first
    columns: Sequence[NumericView | CategoryView] = ()
    source: str = ""  # what was scored, such as the name of the file
    made: str = ""  # when
    notes: Sequence[str] = ()  # anything else to be said first, one sentence each
    verdict: TableVerdict | None = None  # on the table as a whole; by default, on its p-values alone
    timeline: Timeline | None = None  # alarms by time, or by their place in the table
    # Where alarms were chosen by a false discovery rate: that rate, and the largest p-value of an alarm, one
    # of the levels of `p_values`, or 0 if there are no alarms.
    fdr: float | None = None
    level: float | None = None

    @property
    def alarm_level(self) -> float:
        """The largest p-value that an alarm may have."""
        return self.alpha if self.level is None else self.level

    @property
    def n_alarms(self) -> int:
        """How many alarms there are."""
        return self.p_values.n_alarms(self.alarm_level) if self.alarm_level > 0 else 0

    def __post_init__(self) -> None:
        self.p_values.n_alarms(self.alpha)
        if (self.fdr is None) != (self.level is None):
            raise ValueError("fdr and level go together: pass both, or neither.")
        if self.model.bound.alpha != self.alpha:
            raise ValueError(
                f"model.bound must be the promise at the report's alpha={self.alpha!r}, got that at "
                f"{self.model.bound.alpha!r}; use detector.false_alarm_bound(alpha)."
            )
