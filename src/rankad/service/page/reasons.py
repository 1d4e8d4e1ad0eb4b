"""Reasons of an alarm for the page: the report's words, and the numbers of its small charts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rankad.explanations.worth_showing import weighing
from rankad.report.alarms import alarm_card
from rankad.report.contents import Alarm

if TYPE_CHECKING:
    from rankad.explanations.explainer import Explanation

__all__ = ["as_card"]


def as_card(alarm: Alarm, explanation: Explanation | None, alpha: float) -> dict[str, Any]:
    """Return the card of an alarm, all of it text and numbers."""
    card = alarm_card(alarm, alpha)
    worth = weighing(explanation) if explanation else []
    most = max((reason.gain for reason in worth), default=0.0)
    return {
        "row": alarm.row - 1,
        "id": card.id or "",
        "gist": card.gist,
        "score": card.score,
        "p_value": card.p_value,
        "strange": [{"column": column, "what": what, "value": value} for column, what, value in card.strange],
        "reasons": [
            {
                "column": line.column,
                "value": line.value,
                "usual": line.usual,
                "p_value": line.p_value,
                "matters": line.matters,
                "weight": 1.0 if reason.gain == most else max(reason.gain / most, 0.0) if most > 0 else 0.0,
                "strip": _numbers(reason.value, reason.typical, reason.low, reason.high),
            }
            for line, reason in zip(card.reasons, worth, strict=True)
        ],
        "more": card.n_more,
        "change": list(card.change),
        "changed_p_value": card.changed_p_value,
        "columns": list(card.columns),
        "values": list(card.values),
        "marked": list(card.marked),
        "nearest": [
            {"row": near.row, "distance": near.distance, "values": list(near.values)} for near in card.nearest
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
