"""Alarms of a served model over time."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

__all__ = ["course"]

_BARS = 24
_MINUTE, _DAY = 60.0, 86_400.0
# The shortest of these that holds all requests is shown.
_WINDOWS = (5 * _MINUTE, 60 * _MINUTE, _DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY, 365 * _DAY)


def course(history: Any, model: str) -> dict[str, Any]:
    """Return rows, alarms and expected alarms of a model in equal spans of time, the latest last.

    Only sums since a time are asked for, so that any history will do.
    """
    now, whole = time.time(), history.summary(model)
    width = next(
        (each for each in _WINDOWS if history.summary(model, now - each)["requests"] == whole["requests"]),
        _WINDOWS[-1],
    )
    begins = [now - width * (_BARS - at) / _BARS for at in range(_BARS)]
    names = ("rows", "alarms", "alarms_if_all_rows_were_normal")
    since = [[history.summary(model, begin)[name] for name in names] for begin in begins] + [[0, 0, 0]]
    bars = [{"rows": a[0] - b[0], "alarms": a[1] - b[1], "expected": a[2] - b[2]} for a, b in pairwise(since)]
    return {"seconds": width, "now": now, "bars": bars, "whole": whole}
