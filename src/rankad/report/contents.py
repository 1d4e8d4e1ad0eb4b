"""What a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rankad.alarms.chance import Chance, PValueSummary
from rankad.report.timeline import Timeline
from rankad.report.views import CategoryView, NumericView
from rankad.stages.calibration import FalseAlarmBound, worth_of
from rankad.stages.selection import SelectionTable

if TYPE_CHECKING:
    # It needs polars, which those who only want the words may not have.
    from rankad.tables.judging import TableVerdict

__all__ = ["Alarm", "Explained", "ModelFacts", "ReportData", "StrangeCell"]


class ReasonLike(Protocol):
    """One column's part in an alarm, as `rankad.explanations.explainer.Reason` has it."""

    @property
    def column(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def typical(self) -> Any: ...
    @property
    def low(self) -> Any: ...
    @property
    def high(self) -> Any: ...
    @property
    def p_value(self) -> float: ...
    @property
    def gain(self) -> float: ...


class NeighborLike(Protocol):
    """A nominal row near the alarm: its position from 0, and its values by name or in the alarm's order."""

    @property
    def row(self) -> int: ...
    @property
    def distance(self) -> float: ...
    @property
    def values(self) -> Any: ...


class MoveLike(Protocol):
    """One column of a change."""

    @property
    def column(self) -> Any: ...
    @property
    def before(self) -> Any: ...
    @property
    def after(self) -> Any: ...


class ChangeLike(Protocol):
    """The smallest change found that makes a row nominal."""

    @property
    def moves(self) -> Sequence[MoveLike]: ...
    @property
    def p_value(self) -> float: ...


class Explained(Protocol):
    """Why a row is an alarm, as `rankad.explanations.explainer.Explanation` has it."""

    @property
    def reasons(self) -> Sequence[ReasonLike]: ...  # noqa: D102
    @property
    def nearest(self) -> Sequence[NeighborLike]: ...  # noqa: D102
    @property
    def change(self) -> ChangeLike | None: ...  # noqa: D102


class StrangeCell(Protocol):
    """A cell that no nominal row prepared for: a category never seen, a missing value, an infinity."""

    @property
    def column(self) -> str: ...  # noqa: D102
    @property
    def what(self) -> str: ...  # noqa: D102
    @property
    def value(self) -> Any: ...  # noqa: D102


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
    explanation : Explained or None
        Why, if that was asked for; strange rows have no other reason than their cells.
    strange : sequence of StrangeCell
        Cells that no nominal row prepared for.
    values : mapping of str to Any
        The row's own cells, to be shown beside the nearest nominal rows.
    """

    row: int
    p_value: float
    score: float
    id: str | None = None
    explanation: Explained | None = None
    strange: Sequence[StrangeCell] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelFacts:
    """What the reader should know of the detector.

    Attributes
    ----------
    name : str
        Such as the name of the model file.
    n_fitted : int
        Nominal rows it was fitted on.
    n_calibration : int
        Nominal scores that p-values refer to.
    calibration : str
        Where these come from (`Calibration.kind`).
    bound : FalseAlarmBound
        What is promised at the report's alpha.
    fitted : str
        When.
    versions : mapping of str to str
        Libraries it was fitted with.
    parameters : mapping of str to Any
    selection : SelectionTable or None
        All that was tried.
    encoding : sequence of str
        What became of each column, one line each.
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
        What nominal rows, rows scored and alarms have in each column.
    source : str
        What was scored, such as the name of the file.
    made : str
        When.
    notes : sequence of str
        Anything else the reader should know before all else, one sentence each.
    verdict : TableVerdict or None
        On the table as a whole; by default, on its p-values alone.
    timeline : Timeline or None
        Alarms by time, or by their place in the table.
    fdr : float or None
        The share of alarms that may be false, where alarms were chosen by it.
    level : float or None
        The largest p-value of an alarm, where alarms were chosen by `fdr`: one of the levels of `p_values`,
        or 0 where there are none.
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
