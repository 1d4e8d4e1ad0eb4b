"""Read a table one batch ahead, on a thread, while the previous batch is scored and written."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import NamedTuple

import polars as pl

from rankad.io.reader import Position, TableReader

# How often a waiting thread checks whether the reader was closed, in seconds.
_POLL_SECONDS = 0.1


class _Batch(NamedTuple):
    frame: pl.DataFrame
    lines: bytes | None
    position: Position
    done: int


class ReadAhead(TableReader):
    """A reader that works on its own thread; its attributes describe the last batch returned.

    The reader must be of a file: a pipe could keep the thread waiting forever.
    """

    def __init__(self, reader: TableReader) -> None:
        self._reader, self._position, self._done = reader, reader.position, reader.done
        self.name, self.format, self.columns = reader.name, reader.format, reader.columns
        self.total, self.unit, self.rows = reader.total, reader.unit, reader.rows
        self.delimiter, self.unused, self.compressed = reader.delimiter, reader.unused, reader.compressed
        self.typed = reader.typed
        # One batch waits while another is parsed: memory stays small.
        self._ready: Queue[_Batch | BaseException | None] = Queue(1)
        self._closed = Event()
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def done(self) -> int:
        """How much has been returned, in `unit`."""
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
                if not self._put(batch):
                    return
        except BaseException as error:
            last = error
        self._put(last)

    def _put(self, item: _Batch | BaseException | None) -> bool:
        """Wait until there is room; return False if the reader was closed."""
        while not self._closed.is_set():
            try:
                self._ready.put(item, timeout=_POLL_SECONDS)
            except Full:
                continue
            return True
        return False

    def _next_batch(self) -> pl.DataFrame | None:
        if self._closed.is_set():
            return None
        batch = self._ready.get()
        if isinstance(batch, BaseException):
            raise batch
        if batch is None:
            return None
        self.lines, self._position, self._done = batch.lines, batch.position, batch.done
        return batch.frame

    def close(self) -> None:
        """Stop the thread and close the file."""
        self._closed.set()
        with suppress(Empty):
            self._ready.get_nowait()
        self._thread.join()
        self._reader.close()
