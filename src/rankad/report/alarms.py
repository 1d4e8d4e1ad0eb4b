"""The card of an alarm: what is odd about the row, what would make it normal, and normal rows like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankad._base.arrays import LARGEST
from rankad._base.wording import difference, isolated, probability, shown
from rankad.explanations.sentences import usually, weighing
from rankad.report.charts import gain_bar, value_strip
from rankad.report.contents import Alarm

if TYPE_CHECKING:
    from rankad.explanations.explainer import Explanation, Reason


def alarm_card(alarm: Alarm, alpha: float) -> dict[str, Any]:
    """Return the words and small charts of an alarm at level alpha, by their names in the template.

    `first` is the column that weighs most, and `gist` says so in a few words. A strange cell is a column,
    what is strange, and the value, empty if it is missing. Cells matter that are strange, the first reason,
    or part of the change that would make the row normal.
    """
    explained = alarm.explanation
    worth = weighing(explained) if explained else []
    change = explained.change if explained else None
    strange = [
        (isolated(cell.column), in_words(cell.what), "" if cell.value is None else shown(cell.value))
        for cell in alarm.strange
    ]
    first, gist = None, ""
    if strange:
        first, gist = strange[0][0], f"{strange[0][0]}: {strange[0][1]}"
    elif worth:
        first = isolated(str(worth[0].column))
        gist = f"{first} {shown(worth[0].value)}, usually {usually(worth[0], shown)}"
    steps = [
        (isolated(str(move.column)), *map(isolated, difference(move.before, move.after)))
        for move in (change.moves if change else ())
    ]
    matter = {first, *(column for column, *_ in (*strange, *steps))}
    return {
        "alarm": alarm,
        "id": alarm.id and shown(alarm.id),
        "score": "the lowest there is" if alarm.score <= -LARGEST else shown(alarm.score),
        "first": first,
        "gist": gist,
        "strange": strange,
        "reasons": _reasons(worth, matter),
        "n_more": len(explained.reasons) - len(worth) if explained else 0,
        "change": steps,
        "changed_p_value": probability(change.p_value, alpha) if change else "",
        "nearest": explained.nearest if explained else (),
        "lines": _side_by_side(alarm.values, explained, matter) if explained and explained.nearest else [],
    }


def in_words(what: str) -> str:
    """Return what rankad says of a cell, with "normal" for "nominal"."""
    return what.replace("nominal", "normal")


def _reasons(reasons: Sequence[Reason], matter: set[str | None]) -> list[dict[str, Any]]:
    most = max((reason.gain for reason in reasons), default=0.0)
    lines = []
    for reason in reasons:
        # Gains may be infinite, or none at all.
        share = 0.0 if not reason.gain > 0 else 1.0 if reason.gain == most else reason.gain / most
        column = isolated(str(reason.column))
        lines.append(
            {
                "column": column,
                "value": reason.value,
                "usual": usually(reason, shown),
                "strip": value_strip(reason.value, reason.typical, reason.low, reason.high),
                "bar": gain_bar(share, f"weight of {column}: {share:.0%} of the greatest"),
                "p_value": reason.p_value,
                "matters": column in matter,
            }
        )
    return lines


def _side_by_side(
    own: Mapping[str, Any], explained: Explanation, matter: set[str | None]
) -> list[dict[str, Any]]:
    """Return a line for each column: what the row has there, and the normal rows near by."""
    first = explained.nearest[0].values
    columns = list(own) or (list(first) if isinstance(first, Mapping) else [])
    if not columns:
        columns = [f"column {at}" for at in range(len(first))]
    near = zip(*(_in_order(one.values, columns) for one in explained.nearest), strict=True)
    # Numbers where cells are text, since the row's are compared with the others'.
    read = dict(own) | {str(reason.column): reason.value for reason in explained.reasons}
    return [
        {
            "column": isolated(str(name)),
            "own": shown(read[name]) if name in read else "",
            "near": values,
            "matters": isolated(str(name)) in matter,
        }
        for name, values in zip(columns, near, strict=True)
    ]


def _in_order(values: Any, columns: Sequence[str]) -> list[Any]:
    if isinstance(values, Mapping):
        return [values.get(name) for name in columns]
    if len(values) != len(columns):
        raise ValueError(
            f"a normal row near an alarm has {len(values)} values, the alarm has {len(columns)} columns; "
            f"pass its values by column name."
        )
    return list(values)
