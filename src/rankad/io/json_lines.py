"""JSON lines to frames."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import polars as pl

from rankad.io.blocks import RecordBlocks, lines_of
from rankad.io.errors import TableError, reason, shown
from rankad.io.reader import Position, Start, TableReader
from rankad.io.streams import ByteStream
from rankad.io.text_encodings import not_utf8

_BLANK_COLONS = (b" :", b"\t:", b"\r:")
# With more columns, searching for every name takes longer than parsing the rows.
_FEW_COLUMNS = 64
_LONGEST_INTEGER = 40
# Rows with different keys make a column of each key. This is the most memory a batch may take, and the number
# of lines whose keys are collected at once, in a time that grows with its square.
_MOST_FRAME_BYTES, _NUMBER_BYTES, _TEXT_BYTES = 256 << 20, 8, 16
_PIECE_LINES = 4000
# A list of this many objects is a table, not a cell.
_MANY_OBJECTS = 8
# A high surrogate without a low one, a low one without a high one, or an escaped backslash before one.
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
    rb"|\\\\u[dD][89abAB]"
)


class JsonLinesReader(TableReader):
    """Rows of JSON objects, one per line.

    The columns are the keys of the first batch. A key that is absent is a missing value. Errors are: a key
    that first occurs in a later batch, a key twice in one object, half of a surrogate pair, and so many
    different keys that nearly all cells would be empty.

    A column with numbers and text is text; lists and objects become their JSON text; a column that is text in
    the first batch stays so. A row is read the same whatever the other rows of its batch, except that
    integers beside decimals are rounded as decimals.
    """

    unit = "bytes"
    format = "jsonl"
    _counts = ("offset", "rows", "line")
    # What messages call a line, and what they say of an empty file.
    place = "line"
    empty = 'is empty; JSON lines begin with an object such as {"a": 1}'

    def __init__(self, stream: ByteStream, batch_bytes: int, start: Start) -> None:
        super().__init__(stream, batch_bytes, start)
        self._blocks = RecordBlocks(stream, batch_bytes, quoted=False)
        self._ready: pl.DataFrame | None = None
        if start is None:
            self._returned = self._next_position()
            self._begin()
        else:
            self.columns, self._text = _columns_of(start)
            self._blocks.go_to(self._start["offset"], self._start["line"])
            self.rows = self._start["rows"]
            self._returned = self._next_position()

    def _begin(self) -> None:
        """Read the first batch, for the names of the columns."""
        block = self._blocks.next_block()
        while block and not block.strip():
            self._blocks.line += block.count(b"\n")
            block = self._blocks.next_block()
        if not block:
            raise TableError(f"{self.name} {self.empty}.")
        self._text = set[str]()
        self._ready = self._parse(block)
        self.columns = self._ready.columns
        if self._ready.height == 1 and (what := wrapped_table(self._ready)):
            raise TableError(f"{self.name} holds {what}")
        if not self.columns:
            raise TableError(
                f"{self.name}, {self.place} 1: the objects have no keys, so there are no columns."
            )
        self._text = {name for name, kind in self._ready.schema.items() if kind == pl.String}

    @property
    def position(self) -> Position:
        """Where the next batch begins, and the columns of the first batch."""
        columns = [[name, name in self._text] for name in self.columns]
        return super().position | self._returned | {"columns": columns}

    def _next_position(self) -> dict[str, int]:
        return {"offset": self._blocks.offset, "line": self._blocks.line}

    def _next_batch(self) -> pl.DataFrame | None:
        frame, self._ready = self._ready, None
        if frame is None:
            block = self._blocks.next_block()
            if not block:
                return None
            frame = self._parse(block) if block.strip() else pl.DataFrame()
        self._returned = self._next_position()
        return frame

    def _parse(self, block: bytes) -> pl.DataFrame:
        frame = self._parse_fast(block)
        if frame is None:
            frame = self._parse_slowly(block)
        if hasattr(self, "columns"):
            frame = self._fitted(frame, block)
        self._blocks.line += block.count(b"\n")
        return frame

    def _parse_fast(self, block: bytes) -> pl.DataFrame | None:
        """Read rows by polars; None if it would not read them as `_parse_slowly` does."""
        if b"\\u" in block and _LONE_SURROGATE.search(block):
            # Polars would read it as NUL.
            return None
        overrides = dict.fromkeys(self._text, pl.String())
        try:
            schema = self._schema(block)
            if schema is None:
                frame = pl.read_ndjson(block, infer_schema_length=None, schema_overrides=overrides)
            else:
                kinds = {name: overrides.get(name, kind) for name, kind in schema.items()}
                frame = pl.read_ndjson(block, schema=kinds)
            if _has_repeated_key(block, frame) or _has_mixed_column(block, frame):
                return None
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        return frame

    def _schema(self, block: bytes) -> dict[str, pl.DataType] | None:
        """Return the types of the columns that polars infers, None if rows disagree."""
        schema: dict[str, pl.DataType] = {}
        n_rows, agreed, at = block.count(b"\n") + 1, True, 0
        for end in _piece_ends(block):
            piece, at = block[at:end], end
            if not piece.strip():
                continue
            for name, kind in pl.scan_ndjson(piece, infer_schema_length=None).collect_schema().items():
                known = schema.get(name, pl.Null())
                agreed = agreed and (known == kind or pl.Null() in (known, kind))
                schema[name] = kind if known == pl.Null() else known
            widths = (_TEXT_BYTES if kind == pl.String else _NUMBER_BYTES for kind in schema.values())
            if n_rows * sum(widths) > _MOST_FRAME_BYTES:
                self._raise_too_many(len(schema), n_rows)
        return schema if agreed else None

    def _parse_slowly(self, block: bytes) -> pl.DataFrame:
        """Read rows that polars does not read as documented, or raise with the line of the error."""
        rows = self._objects(block)
        names = dict.fromkeys(name for _, row in rows for name in row)
        if len(names) * len(rows) * _NUMBER_BYTES > _MOST_FRAME_BYTES:
            self._raise_too_many(len(names), len(rows))
        return pl.DataFrame([self._series(name, rows) for name in names])

    def _series(self, name: str, rows: list[tuple[int, dict[str, Any]]]) -> pl.Series:
        values = [row.get(name) for _, row in rows]
        kinds = {type(value) for value in values if value is not None}
        if kinds <= {bool} or (kinds <= {int, float} and name not in self._text):
            try:
                return pl.Series(name, [float(v) if float in kinds and v is not None else v for v in values])
            except (OverflowError, TypeError, pl.exceptions.PolarsError):
                pass
        # Written as `read_words` writes numbers.
        floats = [value if isinstance(value, float) else None for value in values]
        numbers = pl.Series(floats, dtype=pl.Float64).cast(pl.String).str.strip_suffix(".0")
        text = [_as_text(v) if number is None else number for v, number in zip(values, numbers, strict=True)]
        return pl.Series(name, text, dtype=pl.String)

    def _fitted(self, frame: pl.DataFrame, block: bytes) -> pl.DataFrame:
        """Return the columns of the first batch; absent ones are missing."""
        known, there = set(self.columns), set(frame.columns)
        for name in frame.columns:
            if name not in known:
                lines = (line for line, row in self._objects(block) if name in row)
                line = next(lines, self._blocks.line + 1)
                raise TableError(
                    f"{self.name}, {self.place} {line}: a new key {name!r}, which the first rows do not "
                    f"have. Add it to the first row (null will do), or read larger batches."
                )
        missing = [name for name in self.columns if name not in there]
        return frame.with_columns(pl.lit(None, pl.String).alias(name) for name in missing).select(
            self.columns
        )

    def _objects(self, block: bytes) -> list[tuple[int, dict[str, Any]]]:
        rows = []
        for line, text in enumerate(block.split(b"\n"), self._blocks.line + 1):
            if not text.strip():
                continue
            try:
                row = _DECODE(text.decode())
            except UnicodeDecodeError as error:
                self._raise_at(line, not_utf8(text[error.start]))
            except _RepeatedKey as error:
                self._raise_at(line, f"the key {shown(error.args[0])} comes twice in an object")
            except (ValueError, RecursionError) as error:
                self._raise_at(line, f"not JSON ({reason(error)})")
            if b"\\u" in text and (half := _lone_surrogate(row)):
                self._raise_at(line, f"{half} is half of a surrogate pair, not a character")
            if not isinstance(row, dict):
                self._raise_at(line, f'a {type(row).__name__} where an object such as {{"a": 1}} is expected')
            rows.append((line, row))
        return rows

    def _raise_too_many(self, n_keys: int, n_rows: int) -> NoReturn:
        raise TableError(
            f"{self.name}, from {self.place} {self._blocks.line + 1} on: {n_rows:,} rows have {n_keys:,} "
            f"different keys or more, too many for a table. Give all rows the same keys, and put names (of "
            f"people or days, for instance) in cells."
        )

    def _raise_at(self, line: int, what: str) -> NoReturn:
        raise TableError(f"{self.name}, {self.place} {line}: {what}. Correct or remove the {self.place}.")


def wrapped_table(row: pl.DataFrame) -> str:
    """Describe the table that a single object likely holds, and how to extract it; empty if it holds none.

    >>> wrapped_table(pl.DataFrame({"n": [2], "rows": ['[{"a": 1}, {"a": 2}]']}))
    ''
    >>> wrapped_table(pl.DataFrame({"rows": ['[{"a": 1}, {"a": 2}]']}))[:45]
    "one JSON object, whose 'rows' is an array of "
    """
    cells = {}
    for name, cell in zip(row.columns, row.row(0), strict=True):
        if isinstance(cell, str) and cell[:1] in ("[", "{"):
            try:
                cells[name] = json.loads(cell)
            except (ValueError, RecursionError):
                continue
    expected = "; a table is an array of objects, or one object a line."
    arrays = {n: v for n, v in cells.items() if isinstance(v, list) and v}
    for name, cell in arrays.items():
        # A row may have a short list of objects in a cell.
        if all(isinstance(each, dict) for each in cell) and (row.width == 1 or len(cell) >= _MANY_OBJECTS):
            return (
                f"one JSON object, whose {name!r} is an array of {len(cell):,} objects{expected} Write that "
                f"array alone: jq '.[{json.dumps(name)}]' OLD > NEW, or in Python "
                f"json.dump(json.load(open(OLD))[{name!r}], open(NEW, 'w'))."
            )
    if {"columns", "data"} <= arrays.keys() and all(isinstance(each, list) for each in arrays["data"]):
        return f"column names apart from rows{expected} pandas writes it by to_json(NAME, orient='records')."
    if len(cells) == row.width > 0:
        sizes = {len(cell) for cell in cells.values()}
        if len(arrays) == row.width and len(sizes) == 1 and min(sizes) >= _MANY_OBJECTS:
            return f"columns of cells{expected} pandas writes it by to_json(NAME, orient='records')."
        if not arrays and row.width >= _MANY_OBJECTS:
            return (
                f"one JSON object with {row.width:,} named rows{expected} Write an array of them: "
                f"jq '[.[]]' OLD > NEW."
            )
    return ""


class _RepeatedKey(ValueError):
    """An object has a key twice."""


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise _RepeatedKey(next(name for name in counts if counts[name] > 1))
    return values


def _piece_ends(block: bytes) -> Iterator[int]:
    """Yield the ends of pieces of a few thousand lines."""
    lines = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    yield from map(int, lines[_PIECE_LINES - 1 :: _PIECE_LINES])
    yield len(block)


def _lone_surrogate(value: Any) -> str:
    """Return the first lone surrogate in a JSON value, escaped; empty if there is none."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return f"\\u{ord(error.object[error.start]):04x}"
    return ""


def _has_repeated_key(block: bytes, frame: pl.DataFrame) -> bool:
    """Return whether a key occurs twice in an object; polars would silently take the first."""
    # Every key ends in a quote and a colon. If there are as many of these as cells, no key occurs twice.
    n_cells = frame.height * frame.width - sum(frame.null_count().row(0))
    if not any(blank in block for blank in _BLANK_COLONS) and block.count(b'":') == n_cells:
        return False
    lines = lines_of(block)
    if frame.width <= _FEW_COLUMNS:
        # A repeated key is there twice in quotes, unless it is written with escapes.
        suspect = lines.str.contains("\\", literal=True)
        for name in frame.columns:
            suspect |= lines.str.count_matches(f'"{name}"', literal=True) > 1
        lines = lines.filter(suspect)
    try:
        for line in lines:
            if line is not None and line.strip():
                _DECODE(line)
    except (ValueError, RecursionError):
        # The caller finds the line of the error.
        return True
    return False


def _has_mixed_column(block: bytes, frame: pl.DataFrame) -> bool:
    """Return whether a column has values of several kinds, or lists or objects, which must become text."""
    if any(kind.is_nested() for kind in frame.dtypes):
        return True
    for kind, looks in ((pl.Float64(), r"^-?[0-9]|^-?inf|^NaN"), (pl.Boolean(), "^(?:true|false)$")):
        alike = [name for name in frame.columns if frame[name].dtype == pl.String]
        alike = [name for name in alike if frame[name].str.contains(looks).any()]
        if alike:
            schema = dict.fromkeys(alike, kind)
            parsed = pl.read_ndjson(block, schema=schema, ignore_errors=True)
            if any(parsed[name].null_count() < parsed.height for name in alike):
                return True
    texts = frame.select(pl.col(pl.String).str.contains(r"^[\[{]").any())
    return bool(texts.width) and any(texts.row(0))


def _as_text(value: Any) -> str | None:
    """Write a value of a text column."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON; write null for a missing value")


def _whole(digits: str) -> int | float:
    """Read an integer; beyond 128 bits it is a float, as in polars."""
    value = int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)
    return value if -(2**127) <= value < 2**127 else float(value)


_DECODE = json.JSONDecoder(
    parse_int=_whole, parse_constant=_refuse, object_pairs_hook=_without_repetition
).decode


def _columns_of(start: Mapping[str, Any]) -> tuple[list[str], set[str]]:
    columns = start.get("columns")
    try:
        names = [str(name) for name, _ in columns]  # type: ignore[union-attr]
        return names, {str(name) for name, is_text in columns if is_text}  # type: ignore[union-attr]
    except (TypeError, ValueError) as error:
        raise TableError(f"start must list the columns, got {columns!r:.200}.") from error
