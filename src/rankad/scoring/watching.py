"""A table that grows, scored as its rows come, with all that is needed to go on after a kill."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import polars as pl

from rankad._base.files import replacing
from rankad.io.blocks import end_of_records
from rankad.io.destinations import lock
from rankad.io.errors import TableError
from rankad.io.forks import check_polars
from rankad.monitoring.drift import DriftAlarm, DriftMonitor
from rankad.tables.judging import Watch

if TYPE_CHECKING:
    from rankad.detectors.table import TableDetector

_VERSION = 1
# Rows that are kept to name the columns that moved.
_RECENT = 500
# Bytes of lines that are scored together.
_BLOCK = 1 << 20
# No event is longer: its cells are from one block.
_LINE = 16 * _BLOCK
# Bytes before the place that was reached, by which a file that was replaced is told.
_TAIL = 4096


@dataclass
class _State:
    """What a watcher has to know to go on."""

    model: str
    header: str = ""
    offset: int = 0
    n_rows: int = 0
    n_alarms: int = 0
    out_size: int = 0
    tail_size: int = 0
    tail: str = ""
    recent: list[str] = field(default_factory=list)


class Watcher:
    """Scores the rows of a growing CSV table, and monitors their p-values for drift.

    Events go to a file of JSON lines: one for each alarm, and one for each drift alarm with the columns that
    moved. After each block of rows the state is saved: how far the table was read, how long the events were,
    and the monitor. A watcher that starts with this state cuts off events that were written after it was
    saved, and goes on from there: no row is lost, and none is counted twice.

    Parameters
    ----------
    detector : TableDetector
    model : str
        What identifies the model. A state of another model is refused.
    state : path
        The file of the state. Where there is none, watching starts at the first row.
    out : path
        The file of the events.
    alpha : float, optional
        What counts as an alarm; the detector's own by default.
    delimiter : str
        Between cells.
    **monitor
        Options of `DriftMonitor`: delta, run_length, rearm_after.

    Attributes
    ----------
    n_rows, n_alarms : int
        So far, those before a restart included.
    monitor : DriftMonitor
    """

    def __init__(
        self,
        detector: TableDetector,
        model: str,
        state: str | os.PathLike[str],
        out: str | os.PathLike[str],
        *,
        alpha: float | None = None,
        delimiter: str = ",",
        **monitor: Any,
    ) -> None:
        check_polars()
        self.detector, self.alpha = detector, detector.alpha if alpha is None else alpha
        self.delimiter, self._state_path, self._out_path = delimiter, Path(state), Path(out)
        self.monitor = DriftMonitor.for_detector(detector, **monitor)
        self._state = _State(model)
        known = self._state_path.exists()
        if known:
            self._restore(model)
        # Events that were written after the state was saved will come again.
        with open(self._out_path, "a+b") as file:
            if not known:
                # What others have written stays.
                self._state.out_size = file.tell()
            if file.tell() < self._state.out_size:
                raise TableError(
                    f"{out} has {file.tell()} bytes, but {state} says {self._state.out_size} were written; "
                    f"put the file back, or start over with another --state."
                )
            file.seek(self._state.out_size)
            if not all(
                _is_event(line, self._state.n_rows) for line in iter(lambda: file.readline(_LINE), b"")
            ):
                raise TableError(
                    f"{out} is not the file of events that {state} belongs to: beyond byte "
                    f"{self._state.out_size:,} it has other text. Name that file, or start over with another "
                    f"--state."
                )
            file.truncate(self._state.out_size)
        if not known:
            self._save([])

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return self._state.n_rows

    @property
    def n_alarms(self) -> int:
        """Rows that were alarms."""
        return self._state.n_alarms

    def read(self, path: str | os.PathLike[str]) -> list[DriftAlarm]:
        """Score the whole lines that were added to a file since the last time; return the drift alarms."""
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < self._state.offset:
                raise TableError(
                    f"{path} has {size} bytes, but {self._state.offset} were read before: it was replaced or "
                    f"cut. Start over with another --state."
                )
            if self._state.header:
                header = file.readline().decode("utf-8-sig", errors="replace")
                if header != self._state.header:
                    raise TableError(
                        f"{path} has other columns than before. Start over with another --state."
                    )
            file.seek(self._state.offset - self._state.tail_size)
            if self._state.tail and _digest(file.read(self._state.tail_size)) != self._state.tail:
                raise TableError(
                    f"{path} is not the file that was read before: it was replaced. Start over with another "
                    f"--state."
                )
            file.seek(self._state.offset)
            return self.read_stream(file, may_grow=True)

    def read_stream(self, file: IO[bytes], *, may_grow: bool = False) -> list[DriftAlarm]:
        """Score the rows that come from a stream until it ends; return the drift alarms.

        A last line without a line end is a row, unless the file `may_grow`: then it is left for later.
        """
        raised: list[DriftAlarm] = []
        rest = b""
        read = getattr(file, "read1", file.read)
        while more := read(_BLOCK):
            rest += more
            if not self._state.header and b"\0" in rest:
                raise TableError(
                    f"{getattr(file, 'name', 'The table')} is not text: watch reads CSV in UTF-8 that grows. "
                    f"Judge Parquet, Excel and packed files by rankad score, or write them as CSV."
                )
            end = end_of_records(rest)
            if end:
                raised += self._take(rest[:end])
                rest = rest[end:]
        if rest and not may_grow:
            raised += self._take(rest + b"\n")
        elif b"\n" in rest:
            warnings.warn(
                f"{rest.count(10):,} lines after row {self._state.n_rows:,} are not scored yet: a quote is "
                f"open there. If it is no cell that is still being written, mend the line.",
                stacklevel=3,
            )
        return raised

    def _take(self, block: bytes) -> list[DriftAlarm]:
        state, size = self._state, len(block)
        try:
            text = block.decode("utf-8" if state.header else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise TableError(f"The rows from row {state.n_rows + 1} on are not UTF-8: {error}.") from error
        if not state.header:
            state.header, _, text = text.partition("\n")
            state.header += "\n"
        raised: list[DriftAlarm] = []
        events: list[dict[str, Any]] = []
        text = self._without_blank_lines(text)
        if text:
            frame = self._parse(text)
            p_values = np.asarray(self.detector.p_values(frame))
            first = state.n_rows
            alarms = np.flatnonzero(p_values <= self.alpha)
            for at in alarms.tolist():
                cells = {name: frame[name][at] for name in frame.columns}
                events.append({"row": first + at + 1, "p_value": float(p_values[at]), "cells": cells})
            state.recent = [*state.recent, *_records(text)][-_RECENT:]
            raised = self.monitor.update(p_values)
            state.n_rows += frame.height
            state.n_alarms += alarms.size
            for alarm in raised:
                events.append({"row": alarm.row, "drift": alarm._asdict(), "columns": self._moved(alarm)})
        state.offset += size
        state.tail_size = min(size, _TAIL)
        state.tail = _digest(block[-state.tail_size :])
        self._save(events)
        return raised

    def _without_blank_lines(self, text: str) -> str:
        """Leave out blank lines, which are missing values in a table of one column and else not rows."""
        one_column = self.delimiter not in self._state.header
        if one_column or not re.search(r"^[^\S\n]*\n", text, re.MULTILINE):
            return text
        return "".join(row for row in _records(text) if row.strip())

    def _parse(self, text: str) -> pl.DataFrame:
        source = io.BytesIO((self._state.header + text).encode("utf-8"))
        try:
            return pl.read_csv(source, infer_schema=False, separator=self.delimiter)
        except pl.exceptions.PolarsError as error:
            row = self._state.n_rows + 1
            raise TableError(f"The rows from row {row} on cannot be read as CSV: {error}") from error

    def _moved(self, alarm: DriftAlarm) -> list[dict[str, Any]]:
        """Return the columns that have moved since a drift began, the most important first."""
        kept = self._state.recent
        since = max(0, len(kept) - (self._state.n_rows - alarm.since + 1))
        frame = self._parse("".join(kept[min(since, max(0, len(kept) - 30)) :]))
        watch = Watch(self.detector, self.alpha)
        watch.add(frame, 0, np.asarray(self.detector.p_values(frame)))
        return [
            {"column": column.column, "how": column.how, "distance": round(column.distance, 4)}
            for column in watch.verdict().columns
        ]

    def _save(self, events: list[dict[str, Any]]) -> None:
        """Append events, then save the state that counts them."""
        with open(self._out_path, "r+b") as file:
            file.seek(self._state.out_size)
            for event in events:
                file.write((json.dumps(event, default=str) + "\n").encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
            self._state.out_size = file.tell()
        content = {"version": _VERSION, "monitor": self.monitor.to_json(), **self._state.__dict__}
        with replacing(self._state_path) as file:
            file.file.write(json.dumps(content).encode())

    def _restore(self, model: str) -> None:
        try:
            content = json.loads(self._state_path.read_text("utf-8"))
            if not isinstance(content, dict):
                raise ValueError("it is not a JSON object")
            if content.pop("version") != _VERSION:
                raise ValueError("its version is another")
            monitor = DriftMonitor.from_json(content.pop("monitor"))
            state = _State(**content)
            _check_state(state)
        except (KeyError, TypeError, ValueError) as error:
            said = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise TableError(
                f"{self._state_path} is not the state of rankad watch ({said}). Start over with another "
                f"--state."
            ) from error
        if state.model != model:
            raise TableError(
                f"{self._state_path} is the state of another model. Start over with another --state."
            )
        self._state, self.monitor = state, monitor


def _check_state(state: _State) -> None:
    """Raise ValueError where a state cannot be one that was saved."""
    numbers = (state.offset, state.n_rows, state.n_alarms, state.out_size, state.tail_size)
    if not all(type(number) is int and number >= 0 for number in numbers) or state.tail_size > state.offset:
        raise ValueError("its counts are not counts")
    texts = [state.model, state.header, state.tail]
    if not isinstance(state.recent, list) or not all(isinstance(each, str) for each in texts + state.recent):
        raise ValueError("its texts are not texts")


def _is_event(line: bytes, n_rows: int) -> bool:
    """Return whether a line, or its beginning, is an event of a row after these."""
    if not line.endswith(b"\n"):
        # A kill may cut off the last one anywhere.
        begins = b'{"row": '
        return line.startswith(begins) or begins.startswith(line)
    try:
        event = json.loads(line)
        return bool(event["row"] > n_rows) and ("p_value" in event or "drift" in event)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


@contextmanager
def watching_alone(state: str | os.PathLike[str], out: str | os.PathLike[str]) -> Iterator[None]:
    """Refuse to watch with a state, or to write events to a file, that another run is watching with.

    The state is replaced whenever it is saved, so that a file beside it is locked; the events stay one file.
    """
    with open(f"{os.fspath(state)}.lock", "ab") as file, open(out, "ab") as events:
        lock(file, f"{state} is in use by another rankad watch; stop it, or give another --state.")
        lock(events, f"{out} is being written by another rankad watch; stop it, or give another --out.")
        yield


def _digest(tail: bytes) -> str:
    return hashlib.sha256(tail).hexdigest()


def _records(text: str) -> list[str]:
    """Cut text into rows, which may hold line ends within quotes."""
    rows, kept = [], ""
    for line in text.split("\n")[:-1]:
        kept += line + "\n"
        if kept.count('"') % 2 == 0:
            rows.append(kept)
            kept = ""
    return rows
