"""Reasons of an alarm for the page: the report's words, and the numbers of its small charts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rankad._base.wording import count, probability, shown
from rankad.explanations.sentences import weighing
from rankad.report.alarms import alarm_card
from rankad.report.contents import Alarm

if TYPE_CHECKING:
    from rankad.explanations.explainer import Explanation


def as_card(alarm: Alarm, explanation: Explanation | None, alpha: float) -> dict[str, Any]:
    """Return the card of an alarm, all of it text and numbers."""
    card = alarm_card(alarm, alpha)
    worth = weighing(explanation) if explanation else []
    most = max((reason.gain for reason in worth), default=0.0)
    lines = card["lines"]
    return {
        "row": alarm.row - 1,
        "id": card["id"] or "",
        "gist": card["gist"],
        "score": card["score"],
        "p_value": probability(alarm.p_value),
        "strange": [
            {"column": column, "what": what, "value": value} for column, what, value in card["strange"]
        ],
        "reasons": [
            {
                "column": line["column"],
                "value": shown(line["value"]),
                "usual": line["usual"],
                "p_value": probability(line["p_value"]),
                "matters": line["matters"],
                "weight": 1.0 if reason.gain == most else max(reason.gain / most, 0.0) if most > 0 else 0.0,
                "strip": _numbers(reason.value, reason.typical, reason.low, reason.high),
            }
            for line, reason in zip(card["reasons"], worth, strict=True)
        ],
        "more": card["n_more"],
        "change": [
            {"column": column, "before": before, "after": after} for column, before, after in card["change"]
        ],
        "changed_p_value": card["changed_p_value"],
        "columns": [line["column"] for line in lines],
        "values": [line["own"] for line in lines],
        "marked": [line["matters"] for line in lines],
        "nearest": [
            {
                "row": count(near.row + 1),
                "distance": shown(near.distance, 3),
                "values": [shown(line["near"][at]) for line in lines],
            }
            for at, near in enumerate(card["nearest"])
        ],
    }


def _numbers(*values: Any) -> list[float] | None:
    """Return value, typical, low and high where all of them are numbers."""
    if any(isinstance(each, (str, bool)) or each is None for each in values):
        return None
    try:
        numbers = [float(each) for each in values]
    except (TypeError, ValueError):
        return None
    return numbers if all(map(math.isfinite, numbers)) else None
