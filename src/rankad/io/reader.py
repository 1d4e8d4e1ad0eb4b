"""The base class of all table readers, and one that reads ahead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from rankad.io.errors import TableError, shown
from rankad.io.streams import ByteStream

Position: TypeAlias = dict[str, Any]
Start: TypeAlias = Mapping[str, Any] | None

# The range of polars is a few thousand years wider.
_YEARS = (-250_000, 250_000)
_FIRST_DAY, _LAST_DAY = (365 * years for years in _YEARS)
_UNITS_A_DAY = {"day": 1, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


class TableReader(ABC):
    """A table, batch by batch: iterate over it for polars frames."""

    name: str  # of the file, for messages
    format: str  # csv, tsv, jsonl, parquet, arrow, npy, npz or excel
    columns: list[str]
    delimiter: str | None = None  # of CSV
    unit: str  # of the two below: "bytes" or "rows"
    total: int | None  # size of the table, None if unknown; `done` tells how much has been read
    # Whether `position` counts other bytes than the file's: unpacked or recoded ones.
    compressed: bool = False
    rows: int = 0  # returned so far, including those before the start
    rows_before: int = 0  # before the last batch
    typed: bool = True  # whether columns have types; in CSV all cells are text
    unused: Sequence[str] = ()  # names of other arrays in the file
    lines: bytes | None = None  # the last batch as it is in a CSV file, if every line is a row
    # Set before the first batch: columns of CSV to parse as numbers, which is faster than doing so later.
    # Only where their text is also in `lines`.
    numbers: Collection[str] = ()
    # The counts in a position.
    _counts: tuple[str, ...] = ("rows",)

    def __init__(self, stream: ByteStream, batch_bytes: int, start: Start) -> None:
        self.name, self.total, self.compressed = stream.name, stream.size, stream.compressed
        self._stream, self._batch_bytes = stream, batch_bytes
        self._start = _checked_start(start, self.format, self._counts)

    @property
    def done(self) -> int:
        """How much has been read, in `unit`."""
        return self.rows if self.unit == "rows" else self._stream.done

    @property
    def position(self) -> Position:
        """Where the next batch begins, to be passed as ``open_table(..., start=position)``; JSON-able."""
        return {"format": self.format, "rows": self.rows}

    @abstractmethod
    def _next_batch(self) -> pl.DataFrame | None:
        """Return the next rows, None at the end."""

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _first_row(self) -> int:
        """Return the row to start at, or raise if the table is shorter."""
        row = self._start["rows"]
        if self.total is not None and row > self.total:
            raise TableError(f"{self.name} has {self.total:,} rows and no row {row:,}. Start over.")
        return row

    def __iter__(self) -> TableReader:
        return self

    def __next__(self) -> pl.DataFrame:
        frame = self._next_batch()
        while frame is not None and not frame.height:
            frame = self._next_batch()
        if frame is None:
            self.close()
            raise StopIteration
        check_dates(frame, self.name)
        self.rows_before = self.rows
        self.rows += frame.height
        return frame

    def __enter__(self) -> TableReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
        for name in ("name", "format", "columns", "delimiter", "unit", "total", "rows", "typed", "unused"):
            setattr(self, name, getattr(reader, name))
        self.compressed = reader.compressed
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


def check_dates(frame: pl.DataFrame, table: str) -> None:
    """Raise for a date that polars cannot write; it would panic."""
    for name, kind in frame.schema.items():
        if kind == pl.Date or isinstance(kind, pl.Datetime):
            days = frame[name].to_physical()
            unit = _UNITS_A_DAY[getattr(kind, "time_unit", "day")]
            least, most = days.min(), days.max()
            if most is not None and not _FIRST_DAY * unit <= least <= most < _LAST_DAY * unit:  # type: ignore[operator]
                raise TableError(
                    f"{table}: column {name!r} has a date beyond the years {_YEARS[0]:,} to {_YEARS[1]:,}; "
                    f"correct it, or leave the column out."
                )


def check_names(names: Sequence[str], table: str) -> None:
    """Raise unless there are columns, each with a name of its own."""
    if not names:
        raise TableError(f"{table} has no columns.")
    name, n = Counter(names).most_common(1)[0]
    if n > 1:
        raise TableError(f"{table}: two columns are called {shown(name)}. Rename one.")


def _checked_start(start: Start, format: str, counts: tuple[str, ...]) -> dict[str, int]:
    """Return the counts of a position, zeros for None, or raise if it is not one of this format."""
    if start is None:
        return dict.fromkeys(counts, 0)
    if not isinstance(start, Mapping) or start.get("format") != format:
        raise TableError(f"start must be a position in a table of format {format!r}, got {start!r:.200}.")
    for count in counts:
        value = start.get(count)
        if type(value) is not int or not 0 <= value < 2**63:
            raise TableError(f"start must have a whole number {count!r}, got {value!r:.200}.")
    return {count: start[count] for count in counts}
