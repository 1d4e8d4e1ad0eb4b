"""Streams without drift, and delays after one, beside windows compared by Kolmogorov and Smirnov."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.certificates.checks import Check
from rankad import DriftMonitor
from rankad._base.arrays import Floats, Ints

__all__ = ["drift"]

DELTA, RUN_LENGTH, LENGTH = 0.01, 10_000, 1_000
SHIFTS = (0.5, 1.0, 2.0)
# Rows in a window, and rows between the ends of two windows.
WINDOWS, STEP = (50, 100, 200), 10


class _Stream(NamedTuple):
    """Ranks of rows among calibration rows; from row `start` on, counted from 0, they have drifted."""

    ranks: Ints
    start: int


def drift(repetitions: int) -> tuple[list[Check], list[dict[str, Any]]]:
    """Count drift alarms where nothing drifts, and rows until they come where something does.

    A window has no error rate of its own over a stream. Its threshold is the one at which as many of the
    streams without drift raise an alarm as do by the monitor.
    """
    checks, delays = [], []
    for n in (100, 1_000):
        calm = [_stream(np.random.default_rng([7, n, k]), n, 0.0) for k in range(repetitions)]
        found = {by: [_alarm(stream, n, by) for stream in calm] for by in ("ever", "run")}
        alarms = {by: sum(row is not None for row in rows) for by, rows in found.items()}
        setting = f"{LENGTH} rows, {n} calibration rows, no drift"
        allowed = {"ever": DELTA, "run": LENGTH / RUN_LENGTH}
        checks += [
            Check(f"drift alarm, {by}", setting, alarms[by], repetitions, allowed[by]) for by in alarms
        ]
        highest = {size: np.array([_distances(s.ranks, n, size)[1].max() for s in calm]) for size in WINDOWS}
        for shift in SHIFTS:
            rngs = (
                np.random.default_rng([8, n, k, int(10 * shift)]) for k in range(max(1, repetitions // 5))
            )
            streams = [_stream(rng, n, shift) for rng in rngs]
            for by, count in alarms.items():
                rate = count / repetitions
                taken = [_delay(_alarm(stream, n, by), stream) for stream in streams]
                delays.append(_summary(n, shift, by, rate, taken))
                for size in WINDOWS:
                    # As many calm streams as the monitor has, and at least one of them, are beyond it.
                    limit = np.sort(highest[size])[-max(count, 1)]
                    taken = [_delay(_window_alarm(stream, n, size, limit), stream) for stream in streams]
                    delays.append(_summary(n, shift, f"windows of {size} like {by}", rate, taken))
    return checks, delays


def _stream(rng: np.random.Generator, n: int, shift: float) -> _Stream:
    calibration, rows = np.sort(rng.normal(size=n)), rng.normal(size=LENGTH)
    start = int(rng.integers(LENGTH // 2 - 100, LENGTH // 2)) if shift else LENGTH
    rows[start:] -= shift
    return _Stream(np.searchsorted(calibration, rows), start)


def _alarm(stream: _Stream, n: int, by: str) -> int | None:
    """Return the row of the first drift alarm of a kind."""
    monitor = DriftMonitor(n, delta=DELTA, run_length=RUN_LENGTH, rearm_after=None)
    for begin in range(0, LENGTH, 100):
        for alarm in monitor.update((1 + stream.ranks[begin : begin + 100]) / (n + 1)):
            if alarm.by == by:
                return alarm.row
    return None


def _distances(ranks: Ints, n: int, size: int) -> tuple[Ints, Floats]:
    """Return where windows end, and the distance of Kolmogorov and Smirnov of each to the calibration."""
    ends = np.arange(size, LENGTH + 1, STEP)
    windows = np.sort(ranks[ends[:, None] - size + np.arange(size)], axis=1) / n
    steps = np.arange(size + 1) / size
    return ends, np.maximum(steps[1:] - windows, windows - steps[:-1]).max(axis=1)


def _window_alarm(stream: _Stream, n: int, size: int, limit: float) -> int | None:
    ends, distances = _distances(stream.ranks, n, size)
    beyond = np.flatnonzero(distances >= limit)
    return int(ends[beyond[0]]) if beyond.size else None


def _delay(alarm: int | None, stream: _Stream) -> int | None:
    return alarm - stream.start if alarm is not None and alarm > stream.start else None


def _summary(n: int, shift: float, by: str, rate: float, delays: list[int | None]) -> dict[str, Any]:
    known = [np.inf if delay is None else delay for delay in delays]
    median = float(np.median(known))
    return {
        "n": n,
        "shift": shift,
        "by": by,
        "rate": rate,
        "noticed": sum(np.isfinite(known)) / len(known),
        "median": median if np.isfinite(median) else None,
    }
