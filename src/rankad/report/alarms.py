"""The card of an alarm: what is odd about the row, what would make it normal, and normal rows like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from rankad._base.arrays import LARGEST
from rankad._base.wording import count, difference, isolated, probability, shown
from rankad.explanations.worth_showing import weighing
from rankad.report.charts import gain_bar, value_strip
from rankad.report.contents import Alarm

if TYPE_CHECKING:
    from rankad.explanations.explainer import Explanation, Move, Reason

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


class NearRow(NamedTuple):
    """A normal row near by; its values in the order of the card's columns."""

    row: str
    distance: str
    values: tuple[str, ...]


class AlarmCard(NamedTuple):
    """One alarm, as it is written.

    `first` is the column that weighs most, and `gist` says so in a few words. A strange cell is a column,
    what is strange, and the value, empty if it is missing. `n_more` columns are not among the reasons.
    `marked` says which of the row's own values matter: strange ones, the first reason, and what would have to
    change. `number` is the row, to sort by.
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
    change: tuple[dict[str, str], ...]
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
    changes = tuple(_step(move) for move in change.moves) if change else ()
    columns, values, nearest = _nearest(alarm.values, explained)
    blamed = {column for column, _, _ in strange} | {step["column"] for step in changes}
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
        changes,
        probability(change.p_value, alpha) if change else "",
        columns,
        values,
        nearest,
        tuple(column in blamed for column in columns),
        alarm.row,
    )


def in_words(what: str) -> str:
    """Return what rankad says of a cell, with "normal" for "nominal"."""
    return what.replace("nominal", "normal")


def _step(move: Move) -> dict[str, str]:
    before, after = map(isolated, difference(move.before, move.after))
    return {"column": isolated(str(move.column)), "before": before, "after": after}


def _reasons(reasons: Sequence[Reason], blamed: set[str]) -> tuple[ReasonLine, ...]:
    most = max((reason.gain for reason in reasons), default=0.0)
    lines = []
    for reason in reasons:
        # Gains may be infinite, or none at all.
        share = 0.0 if not reason.gain > 0 else 1.0 if reason.gain == most else reason.gain / most
        column = isolated(str(reason.column))
        strip = value_strip(reason.value, reason.typical, reason.low, reason.high)
        bar = gain_bar(share, f"weight of {column}: {share:.0%} of the greatest")
        p_value, matters = probability(reason.p_value), column in blamed
        lines.append(ReasonLine(column, shown(reason.value), _usual(reason), strip, bar, p_value, matters))
    return tuple(lines)


def _usual(reason: Reason) -> str:
    """Write what normal rows near by have: a typical value, and a range where there is one."""
    typical, low, high = (shown(each, 3) for each in (reason.typical, reason.low, reason.high))
    if reason.low is None or reason.high is None or low == high:
        return typical
    return f"{typical} ({low} to {high})"


def _nearest(
    own: Mapping[str, Any], explained: Explanation | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[NearRow, ...]]:
    """Lay the row and its neighbours side by side."""
    if not explained or not explained.nearest:
        return (), (), ()
    first = explained.nearest[0].values
    columns = list(own) or (list(first) if isinstance(first, Mapping) else [])
    if not columns:
        columns = [f"column {at}" for at in range(len(first))]
    rows = []
    for near in explained.nearest:
        values = tuple(map(shown, _in_order(near.values, columns)))
        rows.append(NearRow(count(near.row + 1), shown(near.distance, 3), values))
    names = tuple(isolated(str(name)) for name in columns)
    # Numbers where cells are text, since the row's are compared with the others'.
    read = dict(own) | {str(reason.column): reason.value for reason in explained.reasons}
    return names, tuple(shown(read[name]) if name in read else "" for name in columns), tuple(rows)


def _in_order(values: Any, columns: Sequence[str]) -> list[Any]:
    if isinstance(values, Mapping):
        return [values.get(name) for name in columns]
    if len(values) != len(columns):
        raise ValueError(
            f"a normal row near an alarm has {len(values)} values, the alarm has {len(columns)} columns; "
            f"pass its values by column name."
        )
    return list(values)
