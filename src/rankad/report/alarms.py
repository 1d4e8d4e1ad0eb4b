"""An alarm -> its card: what is odd about the row, what would make it nominal, and nominal rows like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from rankad._base.arrays import LARGEST
from rankad._base.wording import count, difference, isolated, probability, shown
from rankad.explanations.worth_showing import weighing
from rankad.report.charts import gain_bar, value_strip
from rankad.report.contents import Alarm, Explained, ReasonLike

__all__ = ["AlarmCard", "ReasonLine", "alarm_card", "in_words"]


class ReasonLine(NamedTuple):
    """One reason, as it is written; `matters` says whether it is the first, or has to change."""

    column: str
    value: str
    usual: str
    strip: Markup | None
    bar: Markup
    p_value: str
    matters: bool


class Step(NamedTuple):
    """One column of the change that makes the row nominal."""

    column: str
    before: str
    after: str


class NearRow(NamedTuple):
    """A nominal row near by; its values in the order of the card's columns."""

    row: str
    distance: str
    values: tuple[str, ...]


class AlarmCard(NamedTuple):
    """One alarm, as it is written.

    Attributes
    ----------
    row, id, p_value, score : str
    first : str or None
        The column that weighs most.
    gist : str
        That in a few words.
    strange : tuple of (str, str, str)
        Column, what is strange, value; that of a missing one is empty.
    reasons : tuple of ReasonLine
    n_more : int
        Columns that are not among them.
    change : tuple of Step
        Empty where none was found.
    changed_p_value : str
    columns, values : tuple of str
        The row's own.
    nearest : tuple of NearRow
    marked : tuple of bool
        Which of the row's own values matter: strange ones, the first reason, and what would have to change.
    number : int
        The row, to sort by.
    """

    row: str
    id: str | None
    p_value: str
    score: str
    first: str | None
    gist: str
    strange: tuple[tuple[str, str, str], ...]
    reasons: tuple[ReasonLine, ...]
    n_more: int
    change: tuple[Step, ...]
    changed_p_value: str
    columns: tuple[str, ...]
    values: tuple[str, ...]
    nearest: tuple[NearRow, ...]
    marked: tuple[bool, ...]
    number: int


def alarm_card(alarm: Alarm, alpha: float) -> AlarmCard:
    """Put an alarm at level alpha into words and small charts."""
    explained = alarm.explanation
    worth = weighing(explained) if explained else []
    strange = tuple(
        (isolated(cell.column), in_words(cell.what), "" if cell.value is None else shown(cell.value))
        for cell in alarm.strange
    )
    if strange:
        first, gist = strange[0][0], f"{strange[0][0]}: {strange[0][1]}"
    elif worth:
        first = isolated(str(worth[0].column))
        gist = f"{first} {shown(worth[0].value)}, usually {_usual(worth[0])}"
    else:
        first, gist = None, ""
    change = explained.change if explained else None
    moves = (
        [(move.column, map(isolated, difference(move.before, move.after))) for move in change.moves]
        if change
        else []
    )
    columns, values, nearest = _nearest(alarm.values, explained)
    blamed = {*(column for column, _, _ in strange), *(isolated(str(column)) for column, _ in moves)}
    blamed |= {first} if first is not None else set()
    return AlarmCard(
        count(alarm.row),
        alarm.id and shown(alarm.id),
        probability(alarm.p_value),
        "the lowest there is" if alarm.score <= -LARGEST else shown(alarm.score),
        first,
        gist,
        strange,
        _reasons(worth, blamed),
        len(explained.reasons) - len(worth) if explained else 0,
        tuple(Step(isolated(str(column)), before, after) for column, (before, after) in moves),
        probability(change.p_value, alpha) if change else "",
        columns,
        values,
        nearest,
        tuple(column in blamed for column in columns),
        alarm.row,
    )


def in_words(what: str) -> str:
    """Return what rankad says of a cell with the word that users know for nominal rows."""
    return what.replace("nominal", "normal")


def _reasons(reasons: Sequence[ReasonLike], blamed: set[str]) -> tuple[ReasonLine, ...]:
    most = max((reason.gain for reason in reasons), default=0.0)
    lines = []
    for reason in reasons:
        # Gains may be infinite, or none at all.
        share = 0.0 if not reason.gain > 0 else 1.0 if reason.gain == most else reason.gain / most
        words = f"weight of {isolated(str(reason.column))}: {share:.0%} of the greatest"
        lines.append(
            ReasonLine(
                isolated(str(reason.column)),
                shown(reason.value),
                _usual(reason),
                value_strip(reason.value, reason.typical, reason.low, reason.high),
                gain_bar(share, words),
                probability(reason.p_value),
                isolated(str(reason.column)) in blamed,
            )
        )
    return tuple(lines)


def _usual(reason: ReasonLike) -> str:
    """Write what nominal rows near by have: a typical value, and a range where there is one."""
    typical, low, high = (shown(each, 3) for each in (reason.typical, reason.low, reason.high))
    if reason.low is None or reason.high is None or low == high:
        return typical
    return f"{typical} ({low} to {high})"


def _nearest(
    own: Mapping[str, Any], explained: Explained | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[NearRow, ...]]:
    """Lay the row and its neighbours side by side."""
    if not explained or not explained.nearest:
        return (), (), ()
    first = explained.nearest[0].values
    columns = list(own) or (list(first) if isinstance(first, Mapping) else [])
    if not columns:
        columns = [f"column {at}" for at in range(len(first))]
    rows = tuple(
        NearRow(
            count(near.row + 1), shown(near.distance, 3), tuple(map(shown, _in_order(near.values, columns)))
        )
        for near in explained.nearest
    )
    names = tuple(isolated(str(name)) for name in columns)
    # Numbers, where cells are text: those of the row are to be compared with the others.
    read = dict(own) | {str(reason.column): reason.value for reason in explained.reasons}
    return names, tuple(shown(read[name]) if name in read else "" for name in columns), rows


def _in_order(values: Any, columns: Sequence[str]) -> list[Any]:
    if isinstance(values, Mapping):
        return [values.get(name) for name in columns]
    if len(values) != len(columns):
        raise ValueError(
            f"a normal row near an alarm has {len(values)} values, the alarm has {len(columns)} columns; "
            f"pass its values by column name."
        )
    return list(values)
