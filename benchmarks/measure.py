"""Time and memory of one process."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from rankad._base.arrays import Floats

__all__ = ["latencies", "peak_memory", "repeat_seconds", "reset_peak", "resident", "seconds"]

_STATUS = Path("/proc/self/status")
_WARM_UP_CALLS = 20


def seconds(call: Callable[[], Any]) -> float:
    """Return the time of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def repeat_seconds(
    call: Callable[[], Any], repeats: int, budget: float = 8.0, least: float = 0.0
) -> list[float]:
    """Return the times of several calls: `repeats`, or as many as begin within `budget` seconds.

    More of them where they take less than `least` seconds in all: what a machine does in a few hundredths of
    a second says little about the next.
    """
    times: list[float] = []
    while sum(times) < least or (len(times) < repeats and sum(times) < budget):
        times.append(seconds(call))
    return times


def latencies(call: Callable[[Floats], Any], rows: Floats) -> dict[str, float]:
    """Return median and 99th percentile of the time of a call with one row, each with another row."""
    single: Sequence[Floats] = [np.ascontiguousarray(row[None]) for row in rows]
    for row in single[:_WARM_UP_CALLS]:
        call(row)
    times = []
    for row in single:
        begin = time.perf_counter()
        call(row)
        times.append(time.perf_counter() - begin)
    return {"median": float(np.median(times)), "p99": float(np.quantile(times, 0.99))}


def reset_peak() -> None:
    """Forget the peak so far, where the system can: loading data must not count as fitting."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Return the most memory held at once, in bytes.

    Linux's own counter where there is one: `ru_maxrss` begins with the peak of the process that started this
    one, and cannot be reset.
    """
    held = _status("VmHWM")
    if held is not None:
        return held
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def resident() -> int:
    """Return the memory held now, in bytes; where the system does not report it, the peak."""
    held = _status("VmRSS")
    return peak_memory() if held is None else held


def _status(name: str) -> int | None:
    if not _STATUS.exists():
        return None
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None
