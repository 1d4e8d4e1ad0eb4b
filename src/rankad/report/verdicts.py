"""The verdict on a table in sentences, for the screen and for the page."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

try:
    import polars  # noqa: F401
except ImportError as error:
    raise ImportError("verdict needs polars: pip install 'rankad[tables]'.") from error

from rankad._base.checks import check_unit
from rankad._base.wording import cell, count, percent
from rankad.scoring.loading import as_table
from rankad.tables.judging import MovedColumn, TableVerdict, Watch
from rankad.tables.strange_cells import may_be_written_otherwise

if TYPE_CHECKING:
    from rankad.detectors.base import CalibratedDetector

_PHRASES = {
    "more": "More alarms than chance allows",
    "some": "Some rows stand out",
    "fewer": "Fewer alarms than normal rows raise",
    "usual": "About as many alarms as normal rows raise",
    "unknown": "How many alarms chance raises is not known",
}
_SHAPES = {
    "low": "P-values are lower on the whole than those of normal rows",
    "high": "P-values are higher on the whole than those of normal rows: these rows vary less, or the model "
    "was fitted on them",
}
# In what way a column is not as in normal rows, by `MovedColumn.how` ...
_HOW = {
    "missing": "{share} of its cells are missing, in normal rows {usual}",
    "swapped": "it has what normal rows have in {value}, and the other way round; are the two swapped?",
    "category": "{value} comes in {share} of the rows, in {usual} of normal rows",
    "respelt": "{share} of its cells, such as {value}, are categories of normal rows but for case, spaces or "
    "leading zeros",
    "time": "alarms come at hours, on weekdays or in seasons in which normal rows are few or other ones",
    "midnight": "its times are all at 00:00, in normal rows {usual}; was the time of day lost?",
    "beyond": "in most alarms it has a value at or beyond the edge of the normal ones",
    "together": "its values are usual by themselves, but do not go together with those of the other columns",
}
# ... and by `NumberShift.kind`.
_NUMBERS = {
    "constant": "it is always {median}, but varies in normal rows",
    "goes on": "its values do not repeat and go on beyond all normal ones ({medians}); is it an id, a "
    "counter or a time?",
    "offset": "its values are about {by} {way} than in normal rows; is it another unit?",
    "scaled": "its values are about {times} times those of normal rows{unit}; is it another unit?",
    "moved": "its values are about {by} {way} than in normal rows ({medians})",
    "spread": "its values vary about {times} times as much as in normal rows",
}
_MOST_OF_ALL = 0.5


class Pen(NamedTuple):
    """How cells and shares are written on the screen or on the page."""

    cell: Callable[[Any], str]
    percent: Callable[[float], str]
    drop: Callable[[str], str] = lambda name: f"--drop {shlex.quote(name)}"  # how to leave out a column


class Spoken(NamedTuple):
    """A verdict in words: a title without a full stop, and more sentences.

    `off` says whether chance does not explain the table; then it is to be said first.
    """

    title: str
    text: tuple[str, ...]
    off: bool


def spoken(verdict: TableVerdict, pen: Pen) -> Spoken:
    """Put a verdict into words."""
    overall, columns = verdict.overall, verdict.columns
    text = [*_columns(verdict, pen)]
    if overall.kind in ("some", "fewer") and overall.shape:
        text.insert(0, f"{_SHAPES[overall.shape]}, by more than chance explains.")
    if overall.is_off and not verdict.has_rows:
        text.append(
            "The model holds no rows to compare columns with, so the column that is to blame cannot be named."
        )
    elif overall.kind in ("more", "some") and not columns and verdict.n_looked > 1:
        text.append("No single column explains them.")
    return Spoken(_title(verdict, pen), tuple(text), verdict.is_off)


def verdict_on(detector: CalibratedDetector, X: Any, alpha: float | None) -> TableVerdict:
    """Score rows and judge them; see `CalibratedDetector.verdict`."""
    detector._check_fitted()
    rate = check_unit("alpha", detector.alpha if alpha is None else alpha)
    table, frame = as_table(detector, X)
    watch = Watch(table, rate)
    watch.add(frame, 0, table.calibration_.p_values(np.asarray(table.score_samples(frame))))
    return watch.verdict()


def in_python(verdict: TableVerdict) -> str:
    """Put a verdict into words, a line for each sentence."""
    pen = Pen(cell, lambda share: percent(share).replace("\xa0", " "), "drop=[{!r}]".format)
    said = spoken(verdict, pen)
    overall, counts = verdict.overall, []
    if overall.kind in ("usual", "some"):
        usual = f"{count(overall.usual.low)} to {count(overall.usual.high)} are usual"
        alarms = f"{count(overall.n_alarms)} of {count(overall.n_rows)} rows are alarms"
        counts = [f"{alarms} at {pen.percent(overall.alpha)}, where {usual}."]
    return "\n".join([f"{said.title}.", *counts, *said.text])


def spoken_of(column: MovedColumn, pen: Pen) -> str:
    """Say in what way a column is not as it is in normal rows; to be read after its name and a colon."""
    numbers, value = column.numbers, pen.cell(column.value)
    share, usual = (pen.percent(_rounded(each, 2)) for each in (column.share, column.nominal_share))
    if column.how == "strange":
        example = f", such as {value}" if column.value is not None else ""
        return f"{share} of its cells are strange{example}: {column.what.replace('nominal', 'normal')}"
    if column.how in _HOW:
        return _HOW[column.how].format(share=share, usual=usual, value=value)
    if numbers is None:
        return "its values are not spread as in normal rows"
    factor, offset = _rounded(numbers.factor, 3), _rounded(abs(numbers.offset), 3)
    median, times, by = map(pen.cell, (numbers.median, factor, offset))
    medians = f"median {median}, in normal rows {pen.cell(numbers.nominal_median)}"
    way, plus = ("higher", "plus") if numbers.offset > 0 else ("lower", "less")
    only_offset = numbers.kind == "scaled" and numbers.factor == 1
    unit = f", {plus} {by}" if numbers.offset else ""
    kind = "offset" if only_offset else numbers.kind
    template = _NUMBERS.get(kind, "its values are not spread as in normal rows ({medians})")
    return template.format(median=median, medians=medians, by=by, way=way, times=times, unit=unit)


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _title(verdict: TableVerdict, pen: Pen) -> str:
    overall = verdict.overall
    n_alarms, n_rows, alpha = count(overall.n_alarms), count(overall.n_rows), pen.percent(overall.alpha)
    if overall.kind == "empty":
        return "No rows were scored"
    if overall.kind == "silent":
        return f"No row can raise an alarm at {alpha}"
    if overall.kind == "more" and overall.n_alarms > _MOST_OF_ALL * overall.n_rows:
        all_of_them = overall.n_alarms == overall.n_rows
        which = "All rows" if all_of_them else f"{n_alarms} of {n_rows} rows"
        return f"{which} are alarms, at a false-alarm rate of {alpha}"
    if overall.kind in ("more", "fewer"):
        usual = f"{count(overall.usual.low)} to {count(overall.usual.high)} are usual"
        return f"{_PHRASES[overall.kind]} at {alpha}: {n_alarms} of {n_rows} rows, where {usual}"
    if overall.kind == "usual" and verdict.is_off:
        but = _SHAPES[overall.shape].replace("P", "p", 1) if overall.shape else "the table has moved"
        return f"No more alarms than chance allows at {alpha}, but {but}"
    if overall.kind == "usual" and not overall.usual.low <= overall.n_alarms <= overall.usual.high:
        amount = "more" if overall.n_alarms > overall.usual.high else "fewer"
        return f"Somewhat {amount} alarms than usual, but chance may explain them"
    return _PHRASES[overall.kind]


def _columns(verdict: TableVerdict, pen: Pen) -> list[str]:
    if not verdict.columns:
        return []
    lead, *others = verdict.columns
    name, how = _called(lead, pen), spoken_of(lead, pen)
    end = "" if how.endswith("?") else "."
    begin = "The table has moved, chiefly in column" if lead.moved else "Most alarms are due to column"
    if lead.moved and verdict.overall.kind == "usual" and not verdict.overall.is_off:
        begin = "It has moved chiefly in column"
    text = [f"{begin} {name}: {how}{end}"]
    n = verdict.n_looked
    alarms = f"the {count(n)} alarms that were looked at"
    if lead.explains is not None and lead.explains >= _MOST_OF_ALL:
        k = round(lead.explains * n)
        text.append(f"This column alone explains {'all' if k == n else f'{count(k)} of'} {alarms}.")
    elif lead.blamed is not None and lead.blamed >= _MOST_OF_ALL:
        k = round(lead.blamed * n)
        text.append(
            f"To end {'all' if k == n else f'{count(k)} of'} {alarms}, this column would have to change."
        )
    if others:
        names = ", ".join(_called(column, pen) for column in others)
        more = verdict.n_moved - sum(column.moved for column in verdict.columns)
        names += f" and {count(more)} more" if more else ""
        text.append(f"{'Columns' if len(others) > 1 else 'Column'} {names} moved as well.")
    return [*text, *_advice(lead, pen)]


def _called(column: MovedColumn, pen: Pen) -> str:
    """Return the name of a column, to be read after the word column, which those of arrays begin with."""
    return pen.cell(column.column).removeprefix("column ")


def _advice(lead: MovedColumn, pen: Pen) -> list[str]:
    if lead.how == "goes on":
        return [
            f"If it counts on or names rows, fit again without it ({pen.cell(pen.drop(lead.column))}): until "
            f"then, p-values mean nothing."
        ]
    if lead.how == "strange" and may_be_written_otherwise(lead.what):
        return ["If it is written in another way than in the normal rows, put that right first."]
    if lead.how in ("swapped", "scaled", "midnight", "respelt"):
        return ["P-values mean nothing until that is put right."]
    if not lead.moved:
        return []
    return ["P-values refer to normal rows as they were: if this is the new normal, fit again on such rows."]
