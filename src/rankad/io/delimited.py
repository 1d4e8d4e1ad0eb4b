"""CSV, with any delimiter, to frames of text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection
from typing import NoReturn

import numpy as np
import polars as pl

from rankad._base.wording import counted
from rankad.io.blocks import RecordBlocks, end_of_records, first_record_end
from rankad.io.errors import TableError, reason
from rankad.io.reader import Position, Start, TableReader, check_names
from rankad.io.streams import ByteStream
from rankad.io.text_encodings import not_utf8

DELIMITERS = (",", ";", "\t", "|")
_PIECE = 1 << 16
# Polars takes kilobytes for each column that it reads. More columns than these are cut from one long column
# of cells, or read in groups where there are quotes.
_COLUMNS_AT_ONCE = 5_000
# Their batches have at least so many bytes a column, which is some hundred rows.
_BYTES_A_COLUMN = 1 << 10
# How files begin that are not CSV, and what to do.
_NOT_CSV = {
    ("[{", '{"'): "JSON; give the format (--format json)",
    ("<!doctype", "<html", "<table"): "HTML; save the table as CSV",
    ("<?xml",): "XML; save the table as CSV",
    ("pk\x03\x04",): "an archive or a workbook; unpack it, or give the format (--format excel)",
    ("%pdf-",): "PDF; save the table as CSV",
}
# A first line that names the delimiter, as Excel writes it: sep=;
_DELIMITER_LINE = re.compile(r'^"?sep=([^\w\s"]|\t)"?[,;\t|]*$', re.IGNORECASE)


class DelimitedReader(TableReader):
    """Rows of a CSV file as text, so that cells are passed through unchanged.

    An empty cell is missing. Blank lines are skipped, unless there is only one column. The default delimiter
    is the most common in the header among comma, semicolon, tab and bar.
    """

    unit = "bytes"
    typed = False
    delimiter: str
    _counts = ("offset", "rows", "line")

    def __init__(
        self, stream: ByteStream, batch_bytes: int, start: Start, format: str, delimiter: str | None
    ) -> None:
        self.format = format
        super().__init__(stream, batch_bytes, start)
        self._blocks = RecordBlocks(stream, batch_bytes, quoted=True)
        header = _header_text(self._blocks)
        if match := _DELIMITER_LINE.match(header):
            delimiter = delimiter or match[1]
            header = _header_text(self._blocks)
        self.delimiter = _sniffed(header) if delimiter is None else delimiter
        self.columns = _names(header, self.delimiter, self.name)
        self._parse = _Parser(self.columns, self.delimiter)
        if self._parse.is_wide:
            self._blocks.batch_bytes = max(batch_bytes, _BYTES_A_COLUMN * len(self.columns))
        if start is not None:
            self._blocks.go_to(self._start["offset"], self._start["line"])
            self.rows = self._start["rows"]

    @property
    def position(self) -> Position:
        """Where the next batch begins."""
        return super().position | {"offset": self._blocks.offset, "line": self._blocks.line}

    def _next_batch(self) -> pl.DataFrame | None:
        block = self._blocks.next_block()
        if not block:
            return None
        frame, plain, whole = None, _is_plain(block), block
        if len(self.columns) > 1 and _has_blank_lines(block):
            # Polars would read them as rows.
            block = without_blank_lines(block)
        if self.numbers and plain:
            frame = self._parse.attempt(block, self.numbers)
            if frame is None:
                # Usually a word for a missing number, and more will follow.
                self.numbers = ()
        if frame is None:
            frame = self._parse.attempt(block)
        if frame is None:
            self._raise_for(whole)
        self.lines = block if plain else None
        # Counting lines would take a tenth of the time.
        self._blocks.line += frame.height if plain and block is whole else whole.count(b"\n")
        return frame

    def _raise_for(self, block: bytes) -> NoReturn:
        """Find the first row that cannot be read, by bisection, and say why."""
        line = self._blocks.line + 1
        while True:
            half = end_of_records(block[: len(block) // 2]) or first_record_end(block)
            if not half or half == len(block):
                break
            if self._readable(block[:half]):
                line += block.count(b"\n", 0, half)
                block = block[half:]
            else:
                block = block[:half]
        raise TableError(f"{self.name}, line {line}: {self._complaint(block)}")

    def _readable(self, block: bytes) -> bool:
        rows = without_blank_lines(block) if len(self.columns) > 1 else block
        return self._parse.attempt(rows) is not None

    def _complaint(self, record: bytes) -> str:
        try:
            text = record.decode()
        except UnicodeDecodeError as error:
            return f"{not_utf8(record[error.start])}."
        cells = text.count(self.delimiter) + 1
        if cells != len(self.columns) and '"' not in text:
            remedy = "Correct the row, remove it if it is a comment"
            if len(self.columns) == 1:
                remedy = "The first line must name the columns: remove titles and comments above it"
            return (
                f"{counted(cells, 'cell')} where the header has {len(self.columns):,} (delimiter "
                f"{self.delimiter!r}). {remedy}, or give the right delimiter (--delimiter)."
            )
        return (
            f"the quotes and cells of this row do not fit the header's {len(self.columns)} columns "
            f"({self._parse.complaint(record)}). Put a cell with quotes, delimiters or newlines in quotes, "
            f"and double the quotes inside."
        )


class _Parser:
    """Blocks of whole rows to frames; None if a row does not have as many cells as the header."""

    def __init__(self, columns: list[str], delimiter: str) -> None:
        self._schema: dict[str, pl.DataType] = dict.fromkeys(columns, pl.String())
        self._delimiter = delimiter
        self.is_wide = len(columns) > _COLUMNS_AT_ONCE

    def attempt(self, block: bytes, numbers: Collection[str] = ()) -> pl.DataFrame | None:
        if not block:
            return pl.DataFrame(schema=self._schema)
        if self.is_wide and b'"' not in block:
            return self._cut(block)
        try:
            frame = self._read(block, numbers)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        if b'"' in block and any(frame.select((pl.all() == "").any()).row(0)):
            frame = frame.with_columns(pl.when(pl.all() != "").then(pl.all()))
        # Polars pads short rows and blank lines silently and, where columns are read in groups, accepts long
        # rows too.
        doubtful = self.is_wide or (frame.width > 1 and frame[:, -1].null_count())
        if doubtful and not self._is_rectangular(frame, block):
            return None
        return frame

    def _cut(self, block: bytes) -> pl.DataFrame | None:
        """Read rows without quotes as one column of cells, and cut it into the columns of the table."""
        block = block.removesuffix(b"\n").replace(b"\r\n", b"\n").removesuffix(b"\r")
        width, letters = len(self._schema), np.frombuffer(block, np.uint8)
        delimiters = np.flatnonzero(letters == ord(self._delimiter))
        ends = np.append(np.flatnonzero(letters == ord("\n")), len(block))
        if (np.diff(np.searchsorted(delimiters, ends), prepend=0) != width - 1).any():
            return None
        try:
            text = block.replace(b"\n", self._delimiter.encode()).decode()
        except UnicodeDecodeError:
            return None
        cells = pl.Series([text], dtype=pl.String).str.split(self._delimiter).explode()
        if (cells == "").any():
            cells = pl.select(pl.when(cells != "").then(cells)).to_series()
        by_column = np.arange(cells.len(), dtype=np.uint32).reshape(-1, width).ravel(order="F")
        cells = cells.gather(pl.Series(by_column))
        height = len(ends)
        return pl.DataFrame(
            [cells.slice(at * height, height).alias(name) for at, name in enumerate(self._schema)]
        )

    def complaint(self, block: bytes) -> str:
        try:
            self._read(block)
        except pl.exceptions.SchemaError:
            # Its message is about parameters of polars.
            return "too few or too many cells"
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            return reason(error)
        return "too few cells"

    def _read(self, block: bytes, numbers: Collection[str] = ()) -> pl.DataFrame:
        schema = self._schema | dict.fromkeys(numbers, pl.Float64())

        def read(columns: range | None) -> pl.DataFrame:
            return pl.read_csv(
                block, has_header=False, separator=self._delimiter, schema=schema, columns=columns
            )

        if not self.is_wide:
            return read(None)
        starts = range(0, len(schema), _COLUMNS_AT_ONCE)
        groups = [range(at, min(at + _COLUMNS_AT_ONCE, len(schema))) for at in starts]
        return pl.concat([read(group).shrink_to_fit() for group in groups], how="horizontal")

    def _is_rectangular(self, frame: pl.DataFrame, block: bytes) -> bool:
        """Compare the number of delimiters with what the shape of the frame requires."""
        delimiters = int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord(self._delimiter)))
        if b'"' in block:
            inside = frame.select(pl.all().str.count_matches(self._delimiter, literal=True).sum())
            delimiters -= sum(inside.row(0))
        return delimiters == frame.height * (frame.width - 1)


def _is_plain(block: bytes) -> bool:
    """Return whether cells are exactly the text between delimiters and line ends: no quotes or lone CRs."""
    if b'"' in block or block.endswith(b"\r"):
        return False
    if b"\r" not in block:
        return True
    # In pieces that fit the cache: counting both takes a tenth of the time of scoring.
    text = np.frombuffer(block, np.uint8)
    returns, newlines = text[:-1], text[1:]
    return not any(
        ((returns[at : at + _PIECE] == ord("\r")) > (newlines[at : at + _PIECE] == ord("\n"))).any()
        for at in range(0, returns.size, _PIECE)
    )


def without_blank_lines(block: bytes) -> bytes:
    r"""Remove blank lines outside quotes.

    >>> without_blank_lines(b'1,2\n\n3,"\n\n"\n')
    b'1,2\n3,"\n\n"\n'
    """
    # The first, third, fifth... part is outside quotes.
    parts = block.split(b'"')
    parts[0] = _single_spaced(b"\n" + parts[0])[1:]
    return b'"'.join(part if at % 2 else _single_spaced(part) for at, part in enumerate(parts))


def _has_blank_lines(block: bytes) -> bool:
    # Searching for b"\n\n" takes several times as long: it stops at every line end.
    text = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    lengths = np.diff(ends, prepend=-1)
    return bool((lengths == 1).any() or (text[ends[lengths == 2] - 1] == ord("\r")).any())


def _single_spaced(text: bytes) -> bytes:
    if b"\n\r\n" in text:
        # Not by a regular expression, which would keep every line of a run in memory.
        codes = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(codes == ord("\n"))
        returns = ends[1:][(ends[1:] - ends[:-1] == 2) & (codes[ends[1:] - 1] == ord("\r"))]
        kept = np.ones(len(text), bool)
        kept[returns] = kept[returns - 1] = False
        text = codes[kept].tobytes()
    return re.sub(rb"\n\n+", b"\n", text) if b"\n\n" in text else text


def _sniffed(header: str) -> str:
    """Return the most common delimiter of the header, outside quotes."""
    bare = re.sub(r'"[^"]*"', "", header)
    return max(DELIMITERS, key=bare.count)


def _header_text(blocks: RecordBlocks) -> str:
    name = blocks.stream.name
    blocks.skip_blank_lines()
    record = blocks.first_record()
    if not record.strip():
        raise TableError(f"{name} is empty; a table begins with a line of column names.")
    if b"\0" in record:
        blocks.line = 0
        blocks.check_nul(record)
    try:
        header = record.decode()
    except UnicodeDecodeError as error:
        complaint = not_utf8(record[error.start], " in the column names")
        raise TableError(f"{name}, line 1: {complaint}.") from error
    for beginnings, what in _NOT_CSV.items():
        if header.lstrip().lower().startswith(beginnings):
            raise TableError(f"{name} is not CSV: it begins like {what}.")
    header = header.rstrip("\r\n")
    if "\r" in header:
        raise TableError(
            f"{name}, line 1: carriage returns without newlines. Convert the line ends: "
            f"tr '\\r' '\\n' < OLD > NEW."
        )
    return header


def _names(header: str, delimiter: str, file: str) -> list[str]:
    try:
        records = csv.reader(io.StringIO(header, newline=""), delimiter=delimiter, strict=True)
        names, more = next(records), next(records, None)
    except csv.Error as error:
        raise TableError(f"{file}, line 1: the column names cannot be read: {error}.") from error
    if more is not None:
        # An odd quote makes the following lines look like part of the header.
        raise TableError(
            f"{file}, line 1: a quote in the column names is never closed. Put a name with quotes in quotes, "
            f"and double those inside."
        )
    unnamed = [place for place, name in enumerate(names, 1) if not name.strip()]
    if 2 * len(unnamed) >= len(names) > 2:
        raise TableError(
            f"{file}, line 1: only {len(names) - len(unnamed)} of {len(names)} columns have a name. The "
            f"first line must name them all: remove titles above it."
        )
    if unnamed:
        remedy = "Name it (pandas leaves the index without one; write with index=False)."
        if 1 < unnamed[0] == len(names):
            remedy = "Name it, or remove the delimiter at the end of every line."
        raise TableError(f"{file}, line 1: column {unnamed[0]} has no name. {remedy}")
    check_names(names, f"{file}, line 1")
    return names
