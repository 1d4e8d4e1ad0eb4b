"""Read a table one batch ahead, on a thread, while the previous batch is scored and written."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import polars as pl

from rankad.io.reader import Position, TableReader


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
        self._thread = ThreadPoolExecutor(1)
        self._next: Future[_Batch | None] | None = self._thread.submit(self._read)

    @property
    def done(self) -> int:
        """How much has been returned, in `unit`."""
        return self._done

    @property
    def position(self) -> Position:
        """Where the next batch begins."""
        return self._position

    def _read(self) -> _Batch | None:
        frame = next(self._reader, None)
        if frame is None:
            return None
        return _Batch(frame, self._reader.lines, self._reader.position, self._reader.done)

    def _next_batch(self) -> pl.DataFrame | None:
        batch = None if self._next is None else self._next.result()
        if batch is None:
            return None
        self._next = self._thread.submit(self._read)
        self.lines, self._position, self._done = batch[1:]
        return batch.frame

    def close(self) -> None:
        """Stop the thread and close the file."""
        self._next = None
        self._thread.shutdown()
        self._reader.close()
