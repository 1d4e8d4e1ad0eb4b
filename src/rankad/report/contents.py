"""What a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankad.alarms.chance import Chance, PValueSummary
from rankad.report.timeline import Timeline
from rankad.report.views import CategoryView, NumericView
from rankad.stages.calibration import FalseAlarmBound, worth_of
from rankad.stages.selection import SelectionTable

if TYPE_CHECKING:
    # They need polars, which is an extra.
    from rankad.explanations.explainer import Explanation
    from rankad.tables.judging import TableVerdict

__all__ = ["Alarm", "ModelFacts", "ReportData"]


@dataclass(frozen=True)
class Alarm:
    """One row that raised an alarm.

    Attributes
    ----------
    row : int
        Its number in the table, the first is 1.
    p_value, score : float
    id : str or None
        What the user calls it.
    explanation : Explanation or None
        Why, if that was asked for; rows with strange cells may have none.
    strange : sequence of StrangeCell
        Cells unlike any in normal rows: a category never seen, a missing value, an infinity.
    values : mapping of str to Any
        The row's own cells, to be shown beside the nearest normal rows.
    """

    row: int
    p_value: float
    score: float
    id: str | None = None
    explanation: Explanation | None = None
    strange: Sequence[Any] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelFacts:
    """What the reader should know of the detector.

    Attributes
    ----------
    name : str
        For example the name of the model file.
    n_fitted, n_calibration : int
        Normal rows it was fitted on, and normal scores that p-values refer to.
    calibration : str
        Where these scores come from (`Calibration.kind`).
    bound : FalseAlarmBound
        What is promised at the report's alpha.
    fitted : str
        When.
    versions, parameters : mapping
        Libraries it was fitted with, and its parameters.
    selection : SelectionTable or None
        All that was tried.
    encoding : sequence of str
        How each column is encoded, one line each.
    fingerprint : str
        Of the rows it was fitted on.
    """

    name: str
    n_fitted: int
    n_calibration: int
    calibration: str
    bound: FalseAlarmBound
    fitted: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    selection: SelectionTable | None = None
    encoding: Sequence[str] = ()
    fingerprint: str = ""

    @property
    def chance(self) -> Chance:
        """How many alarms chance alone raises, if scores do not tie."""
        return Chance(self.n_calibration, worth_of(self.calibration))


@dataclass(frozen=True)
class ReportData:
    """All that is on the page.

    Attributes
    ----------
    title : str
    alpha : float
        The false-alarm rate asked for: a row is an alarm if its p-value is at most this.
    p_values : PValueSummary
        Of all rows scored; `alpha` must be one of its levels.
    model : ModelFacts
    alarms : sequence of Alarm
        Those to be shown; the page puts the lowest score first.
    columns : sequence of NumericView or CategoryView
        What normal rows, rows scored and alarms have in each column.
    source, made : str
        What was scored, for example the name of the file, and when.
    notes : sequence of str
        Anything else to be said first, one sentence each.
    verdict : TableVerdict or None
        On the table as a whole; by default, on its p-values alone.
    timeline : Timeline or None
        Alarms by time, or by their place in the table.
    fdr, level : float or None
        Where alarms were chosen by a false discovery rate: that rate, and the largest p-value of an alarm,
        one of the levels of `p_values`, or 0 if there are no alarms.
    """

    title: str
    alpha: float
    p_values: PValueSummary
    model: ModelFacts
    alarms: Sequence[Alarm] = ()
    columns: Sequence[NumericView | CategoryView] = ()
    source: str = ""
    made: str = ""
    notes: Sequence[str] = ()
    verdict: TableVerdict | None = None
    timeline: Timeline | None = None
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
