"""Sentences that commands print, and their JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankad._base import wording
from rankad._base.wording import cell, count, counted

if TYPE_CHECKING:
    from rankad.alarms.verdict import Verdict
    from rankad.stages.calibration import FalseAlarmBound
    from rankad.tables.judging import MovedColumn, TableVerdict


def percent(share: float) -> str:
    """Write a share in per cent.

    >>> percent(0.05), percent(0.0632)
    ('5%', '6.32%')
    """
    return wording.percent(share).replace("\xa0", "")


def size(n_bytes: int) -> str:
    """Write the size of a file.

    >>> size(812), size(312_400), size(4_200_000)
    ('812 bytes', '312 kB', '4.2 MB')
    """
    if n_bytes < 1_000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.0f} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:.1f} MB"


def promise(bound: FalseAlarmBound) -> str:
    """Say what is promised at one false-alarm rate."""
    if bound.bound <= 0:
        return "no row can raise an alarm: there are too few normal rows to compare with"
    about = f"about {_odds(bound.alpha)} normal rows will be a false alarm"
    if bound.bound >= 1:
        return f"{about}; how many more it can be is not known"
    return f"{about}; no more than {percent(bound.bound)}, with {confidence(bound)}"


def confidence(bound: FalseAlarmBound) -> str:
    """Return the confidence of a promise."""
    return f"{percent(1 - bound.delta)} confidence" + ("" if bound.exact else " (approximately)")


def _odds(share: float) -> str:
    times = 1 / share
    return f"1 in {count(round(times))}" if abs(times - round(times)) < 0.05 else f"1 in {times:.1f}"


def summary(verdict: Verdict) -> str:
    """Say how many alarms there are, and how many chance alone would raise."""
    begin = f"{counted(verdict.n_rows, 'row')}, {alarms(verdict.n_alarms)} at {percent(verdict.alpha)}."
    if verdict.kind == "silent":
        return f"{begin} None can be: this rate is below the smallest p-value."
    expected, span = verdict.expected, verdict.usual
    about = count(round(expected)) if expected >= 10 else cell(float(f"{expected:.2g}"))
    return (
        f"{begin} If all rows were normal, there would be about {about} (usually {count(span.low)} to "
        f"{count(span.high)})."
    )


def verdict_lines(verdict: TableVerdict) -> list[str]:
    """Return the warning about a table that chance does not explain; empty for any other."""
    from rankad.report.verdicts import Pen, spoken

    said = spoken(verdict, Pen(cell, percent))
    return [f"{said.title}.", *filter(None, said.text)] if said.off else []


def verdict_json(verdict: TableVerdict) -> dict[str, Any]:
    """Return a verdict as printed in JSON."""
    from rankad.alarms.verdict import LEVEL
    from rankad.report.verdicts import Pen, spoken

    overall, said = verdict.overall, spoken(verdict, Pen(cell, percent))
    shapes = {"low": "lower than those of normal rows", "high": "higher than those of normal rows"}
    return {
        "alarms": overall.kind,
        "p_values": shapes[overall.shape] if overall.shape else "as those of normal rows",
        "beyond_chance": said.off,
        "wrong_at_most": LEVEL,
        "n_alarms": overall.n_alarms,
        "alpha": overall.alpha,
        "expected_alarms": overall.expected,
        "usual_alarms": list(overall.usual),
        "alarms_explained": verdict.n_looked,
        "columns": [_column_json(column) for column in verdict.columns] if verdict.has_rows else None,
        "text": [f"{said.title}.", *filter(None, said.text)],
    }


def _column_json(column: MovedColumn) -> dict[str, Any]:
    from rankad.report.verdicts import Pen, spoken_of

    return {
        "column": column.column,
        "moved": column.moved,
        "distance": column.distance,
        "how": column.how,
        "explains_alarms": column.explains,
        "text": spoken_of(column, Pen(cell, percent)),
    }


def alarms(n: int) -> str:
    """Write a number of alarms.

    >>> alarms(0), alarms(1), alarms(1200)
    ('no alarm', '1 alarm', '1,200 alarms')
    """
    return counted(n, "alarm") if n else "no alarm"


def to_json(value: Any) -> str:
    """Write a result as JSON; NaN and infinity are null, and control characters are escaped."""
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return str(value)
