"""JSON lines to frames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

import polars as pl

from rankad.tables.blocks import RecordBlocks
from rankad.tables.errors import TableError, reason
from rankad.tables.reader import Position, TableReader, checked_start
from rankad.tables.streams import ByteStream

__all__ = ["JsonLinesReader"]


class JsonLinesReader(TableReader):
    """Rows of JSON objects, one a line.

    The columns are the keys of the first batch; a key that first comes later is an error, since the rows
    before have been handed out without it. A key that is not there is a missing value. A column with
    numbers and text is text, lists and objects are kept as their JSON text, and a column that began as text
    stays so.

    Parameters
    ----------
    stream : ByteStream
    batch_bytes : int
    start : mapping or None
        A `position`.
    """

    unit = "bytes"
    format = "jsonl"

    def __init__(self, stream: ByteStream, *, batch_bytes: int, start: Mapping[str, Any] | None) -> None:
        begin = checked_start(start, self.format, "offset", "rows", "line")
        self.name, self.total = stream.name, stream.size
        self._stream = stream
        self._blocks = RecordBlocks(stream, batch_bytes, quoted=False)
        self._ready: pl.DataFrame | None = None
        self._handed_out = self._next_position()
        if start is None:
            self._begin()
        else:
            self.columns, self._text = _columns_of(start)
            self._blocks.go_to(begin["offset"], begin["line"])
            self.rows = begin["rows"]
            self._handed_out = self._next_position()

    def _begin(self) -> None:
        """Read the first batch, for the names of the columns."""
        block = self._blocks.next_block()
        while block and not block.strip():
            self._blocks.line += block.count(b"\n")
            block = self._blocks.next_block()
        if not block:
            raise TableError(f'{self.name} is empty; JSON lines begin with an object such as {{"a": 1}}.')
        self._text = set[str]()
        self._ready = self._parse(block)
        self.columns = self._ready.columns
        if not self.columns:
            raise TableError(f"{self.name}, line 1: objects without keys make no table.")
        self._text = {name for name, kind in self._ready.schema.items() if kind == pl.String}

    @property
    def done(self) -> int:
        """Bytes read."""
        return self._stream.done

    @property
    def position(self) -> Position:
        """Where the next batch begins, and what the columns are: the first batch said so."""
        columns = [[name, name in self._text] for name in self.columns]
        return super().position | self._handed_out | {"columns": columns}

    def _next_position(self) -> dict[str, int]:
        return {"offset": self._blocks.offset, "line": self._blocks.line}

    def _next_batch(self) -> pl.DataFrame | None:
        frame, self._ready = self._ready, None
        if frame is None:
            block = self._blocks.next_block()
            if not block:
                return None
            frame = self._parse(block) if block.strip() else pl.DataFrame()
        self._handed_out = self._next_position()
        return frame

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _parse(self, block: bytes) -> pl.DataFrame:
        try:
            frame = _read(block, self._text)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            frame = self._parse_slowly(block)
        if hasattr(self, "columns"):
            frame = self._fitted(frame, block)
        self._blocks.line += block.count(b"\n")
        return frame

    def _parse_slowly(self, block: bytes) -> pl.DataFrame:
        """Read what polars cannot, several kinds of values in one column, or tell the line that is wrong."""
        rows = self._objects(block)
        names = dict.fromkeys(name for _, row in rows for name in row)
        return pl.DataFrame([self._series(name, rows) for name in names])

    def _series(self, name: str, rows: list[tuple[int, dict[str, Any]]]) -> pl.Series:
        values = [row.get(name) for _, row in rows]
        kinds = {type(value) for value in values if value is not None}
        if kinds <= {bool} or (kinds <= {int, float} and name not in self._text):
            try:
                return pl.Series(name, [float(v) if float in kinds and v is not None else v for v in values])
            except (OverflowError, TypeError, pl.exceptions.PolarsError):
                pass
        text = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        return pl.Series(name, text, dtype=pl.String)

    def _fitted(self, frame: pl.DataFrame, block: bytes) -> pl.DataFrame:
        """Return the columns of the first batch; those that are not there are missing."""
        for name in frame.columns:
            if name not in self.columns:
                line = self._line_of_key(block, name)
                raise TableError(
                    f"{self.name}, line {line}: a new key {name!r}, of which the first rows know nothing. "
                    f"Give it to the first row too (null will do), or read larger batches."
                )
        missing = [name for name in self.columns if name not in frame.columns]
        return frame.with_columns(pl.lit(None, pl.String).alias(name) for name in missing).select(
            self.columns
        )

    def _line_of_key(self, block: bytes, key: str) -> int:
        for line, row in self._objects(block):
            if key in row:
                return line
        return self._blocks.line + 1

    def _objects(self, block: bytes) -> list[tuple[int, dict[str, Any]]]:
        rows = []
        for line, text in enumerate(block.split(b"\n"), self._blocks.line + 1):
            if not text.strip():
                continue
            try:
                row = json.loads(text.decode(), parse_constant=_refuse)
            except UnicodeDecodeError as error:
                self._raise_at(line, f"byte 0x{text[error.start]:02x} is not UTF-8 text")
            except (ValueError, RecursionError) as error:
                self._raise_at(line, f"not JSON ({reason(error)})")
            if not isinstance(row, dict):
                self._raise_at(line, f'a {type(row).__name__} where an object such as {{"a": 1}} is expected')
            rows.append((line, row))
        return rows

    def _raise_at(self, line: int, what: str) -> NoReturn:
        raise TableError(f"{self.name}, line {line}: {what}. Correct or remove the line.")


def _read(block: bytes, text: set[str]) -> pl.DataFrame:
    """Let polars find the types of the columns; lists and objects become text."""
    overrides = dict.fromkeys(text, pl.String())
    frame = pl.read_ndjson(block, infer_schema_length=None, schema_overrides=overrides)
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    if nested:
        frame = pl.read_ndjson(block, schema=frame.schema | dict.fromkeys(nested, pl.String()))
    return frame


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON; write null for a missing value")


def _columns_of(start: Mapping[str, Any]) -> tuple[list[str], set[str]]:
    columns = start.get("columns")
    try:
        names = [str(name) for name, _ in columns]  # type: ignore[union-attr]
        return names, {str(name) for name, is_text in columns if is_text}  # type: ignore[union-attr]
    except (TypeError, ValueError) as error:
        raise TableError(f"start must list the columns, got {columns!r:.200}.") from error
