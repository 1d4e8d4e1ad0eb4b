"""A table read one batch ahead, on a thread: the next is parsed while the last is scored and written."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import NamedTuple

import polars as pl

from rankad.io.reader import Position, TableReader

__all__ = ["ReadAhead"]

# How often a thread that waits looks up, in seconds.
_PATIENCE = 0.1


class _Batch(NamedTuple):
    frame: pl.DataFrame
    lines: bytes | None
    position: Position
    done: int


class ReadAhead(TableReader):
    """A reader that does its work on a thread of its own; what it says is of the batches handed out.

    Parameters
    ----------
    reader : TableReader
        Of a file: a pipe might keep the thread waiting for ever.
    """

    def __init__(self, reader: TableReader) -> None:
        self._reader, self._position, self._done = reader, reader.position, reader.done
        self.name, self.format, self.columns = reader.name, reader.format, reader.columns
        self.total, self.unit, self.rows = reader.total, reader.unit, reader.rows
        self.delimiter, self.unused, self.compressed = reader.delimiter, reader.unused, reader.compressed
        self.typed = reader.typed
        # One that waits and one that is being made: memory stays small.
        self._ready: Queue[_Batch | BaseException | None] = Queue(1)
        self._closed = Event()
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def done(self) -> int:
        """How much of it has been handed out, in `unit`."""
        return self._done

    @property
    def position(self) -> Position:
        """Where the next batch begins."""
        return self._position

    def _read(self) -> None:
        last: BaseException | None = None
        try:
            for frame in self._reader:
                batch = _Batch(frame, self._reader.lines, self._reader.position, self._reader.done)
                if not self._hand_over(batch):
                    return
        except BaseException as error:
            last = error
        self._hand_over(last)

    def _hand_over(self, what: _Batch | BaseException | None) -> bool:
        """Wait until there is room; tell whether anybody still wants it."""
        while not self._closed.is_set():
            try:
                self._ready.put(what, timeout=_PATIENCE)
            except Full:
                continue
            return True
        return False

    def _next_batch(self) -> pl.DataFrame | None:
        if self._closed.is_set():
            return None
        found = self._ready.get()
        if isinstance(found, BaseException):
            raise found
        if found is None:
            return None
        self.lines, self._position, self._done = found.lines, found.position, found.done
        return found.frame

    def close(self) -> None:
        """Let the thread end, and close the file."""
        self._closed.set()
        with suppress(Empty):
            self._ready.get_nowait()
        self._thread.join()
        self._reader.close()
