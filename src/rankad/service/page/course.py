"""Alarms of a served model over time."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

__all__ = ["over_time"]

_BARS = 30
_MINUTE, _DAY = 60.0, 86_400.0
# The shortest of these that holds all requests is shown.
_WINDOWS = (30 * _MINUTE, 60 * _MINUTE, _DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY, 365 * _DAY)
_SUMS = ("rows", "alarms", "alarms_if_all_rows_were_normal")


def over_time(history: Any, model: str) -> list[dict[str, Any]]:
    """Return rows, alarms and expected alarms in equal stretches; those without rows are left out.

    Only sums since a time are asked for, so that any history will do.
    """
    now, n_requests = time.time(), history.summary(model)["requests"]
    width = next(
        (each for each in _WINDOWS if history.summary(model, now - each)["requests"] == n_requests),
        _WINDOWS[-1],
    )
    begins = [now - width * (_BARS - at) / _BARS for at in range(_BARS)]
    since = [[history.summary(model, begin)[name] for name in _SUMS] for begin in begins] + [[0, 0, 0]]
    return [
        {"begin": begin, "end": begin + width / _BARS}
        | {name: a - b for name, a, b in zip(_SUMS, *sums, strict=True)}
        for begin, sums in zip(begins, pairwise(since), strict=True)
        if sums[0][0] > sums[1][0]
    ]
