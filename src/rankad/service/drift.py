"""Drift monitors of the models that are served, one for all processes, kept in the history."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import anyio
import numpy as np

from rankad._base.arrays import Floats
from rankad.monitoring.drift import DriftMonitor
from rankad.service.history import History
from rankad.service.models import ServedModel

_log = logging.getLogger("rankad.service")
# The bets of one row take some 30 microseconds: so many rows between two rounds leave the time to scoring.
_MOST_ROWS = 1_000
_TRIES = 20


class DriftWatch:
    """Collects p-values as they come, and hands them to the monitors when it is told to.

    Of more rows than a monitor can take, some are left out, chosen by their numbers alone: what the monitor
    promises holds of those that it sees. Those that are not handed over when a process dies are left out too.

    Parameters
    ----------
    history : History
        Where the monitors are kept.
    raised : callable
        Called with the name of a model for each of its drift alarms.
    """

    def __init__(self, history: History, raised: Callable[[str], Any]) -> None:
        self._history, self._raised = history, raised
        self._waiting: dict[str, tuple[ServedModel, list[Floats], int]] = {}

    def take(self, model: ServedModel, p_values: Floats) -> None:
        """Take the p-values of a request."""
        known, values, n = self._waiting.get(model.name, (model, [], 0))
        if known.card.sha256 != model.card.sha256:
            # A new model: the p-values of the old one say nothing of it.
            values, n = [], 0
        room = _MOST_ROWS - n
        if room <= 0 or not p_values.size:
            return
        taken = p_values[:: -(-p_values.size // room)]
        values.append(taken)
        self._waiting[model.name] = model, values, n + taken.size

    async def advance(self) -> None:
        """Hand the collected p-values to the monitors, and store these."""
        waiting, self._waiting = self._waiting, {}
        await anyio.to_thread.run_sync(self._advance_all, waiting)

    def _advance_all(self, waiting: dict[str, tuple[ServedModel, list[Floats], int]]) -> None:
        for name, (model, values, _) in waiting.items():
            try:
                self._advance(model, np.concatenate(values))
            except Exception:
                _log.exception("model %s: the drift monitor could not be stored", name)

    def _advance(self, model: ServedModel, p_values: Floats) -> None:
        for _ in range(_TRIES):
            monitor, before = _restored(self._history, model)
            if monitor is None:
                return
            raised = monitor.update(p_values)
            after = monitor.n_rows, monitor.to_json()
            if self._history.set_monitor(model.name, model.card.sha256, before, after, raised):
                for alarm in raised:
                    self._raised(model.name)
                    _log.warning(
                        "model %s: normal behaviour has drifted, about %d monitored rows ago (%s)",
                        model.name,
                        monitor.n_rows - alarm.since + 1,
                        alarm.by,
                    )
                return
        _log.error("model %s: other processes changed the drift monitor all the time", model.name)


def _restored(history: History, model: ServedModel) -> tuple[DriftMonitor | None, int | None]:
    """Return the monitor of a model and how many rows it had seen when it was stored, or a new one."""
    stored = history.monitor(model.name, model.card.sha256)
    if stored is not None:
        return DriftMonitor.from_json(stored.state), stored.n_rows
    try:
        return DriftMonitor.for_detector(model.detector), None
    except ValueError:
        # Nothing is known of an in-sample calibration.
        return None, None


def describe_drift(history: History, model: ServedModel) -> dict[str, Any] | None:
    """Return the state of a model's drift monitor for JSON; None where there is none."""
    monitor, before = _restored(history, model)
    if monitor is None:
        return None
    return {
        "rows": before or 0,
        "evidence": monitor.evidence,
        "run_evidence": monitor.run_evidence,
        "drifted": monitor.is_drifted("run") or monitor.is_drifted("ever"),
        "alarms": history.drifts(model.name, model.card.sha256),
    }
