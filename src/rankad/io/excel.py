"""Sheets of Excel workbooks to frames."""

from __future__ import annotations

import io
import logging
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import polars as pl

from rankad.io.errors import TableError, blamed_on, imported, listed, shown
from rankad.io.reader import Start, TableReader, check_names
from rankad.io.streams import ByteStream

# Limits of an uncompressed workbook, since a sheet is held in memory. A lone cell in a far corner makes a
# sheet with all the cells between.
_MOST_BYTES, _MOST_CELLS = 1 << 30, 1 << 26
# Beyond this many bytes of XML or of cells, the workbook may be at most so many times the size of its file.
_MANY_BYTES, _MANY_CELL_BYTES, _UNPACKED = 48 << 20, 192 << 20, 50
_CELL_BYTES = 32
_ZIP, _OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_MEMBERS = (b"[Content_Types].xml", b"_rels/", b"xl/", b"docProps/")
_PIECE_BYTES = 1 << 20
# Cells and rows with references as nearly all programs write them, which is fast; empty for any others.
_USUAL = re.compile(
    rb'<(?:[^\s<>/:]*:)?(?:c(?: r="([A-Z]{1,3})([0-9]{1,7})"|(?=[\s/>]))|row(?: r="([0-9]{1,7})"|(?=[\s/>])))'
)
# Cells and rows as XML allows them.
_TAG = re.compile(rb"""<(?:[^\s<>/:]*:)?(c|row)(?=[\s/>])((?:"[^"]*"|'[^']*'|[^"'>])*)""")
_ATTRIBUTE = re.compile(rb"""([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_DIGITS, _MOST_LETTERS, _MOST_DIGITS = b"0123456789", 3, 7
# Floats represent all integers up to this exactly.
_LARGEST_WHOLE = 2**53


def is_workbook(head: bytes) -> bool:
    """Return whether these are the first bytes of a workbook, and not of another archive."""
    return head.startswith(_OLD_EXCEL) or (head.startswith(_ZIP) and head[30:].startswith(_MEMBERS))


class ExcelReader(TableReader):
    """Rows of one sheet, by default the only one that is not empty; its first row names the columns.

    Cells keep their types: numbers, text, dates, true and false. Formulas are read as their last value,
    errors such as #N/A as missing. A column with several kinds of cells is text.
    """

    unit = "rows"
    format = "excel"
    total: int

    def __init__(self, stream: ByteStream, batch_bytes: int, start: Start, sheet: str | None) -> None:
        super().__init__(stream, batch_bytes, start)
        with _panics_blamed_on(f"{self.name} cannot be read as an Excel workbook"):
            workbook = _opened(_whole(stream), self.name)
            self.sheet = _chosen(workbook, sheet, self.name)
            self._frame = _table(workbook, self.sheet, f"{self.name}, sheet {self.sheet!r}")
        self.columns, self.total = self._frame.columns, self._frame.height
        row_bytes = max(1, self._frame.estimated_size() // max(1, self.total))
        self._batch_rows = max(1, int(batch_bytes // row_bytes))
        self.rows = self._first_row()

    def _next_batch(self) -> pl.DataFrame | None:
        frame = self._frame[self.rows : self.rows + self._batch_rows]
        return frame if frame.height else None


def _whole(stream: ByteStream) -> bytes:
    """Return all bytes of a workbook, or raise if it would take too much memory."""
    _check_beginning(stream.peek(len(_ZIP)), stream.name)
    data = bytearray()
    while piece := stream.read(1 << 20):
        data += piece
        if len(data) > _MOST_BYTES or (stream.compressed and _is_bomb(len(data), stream.size)):
            _raise_too_large(stream.name)
    with blamed_on(f"{stream.name} cannot be read as an Excel workbook (is it damaged or cut off?)"):
        size = len(data) if stream.size is None else stream.size
        _check_archive(zipfile.ZipFile(io.BytesIO(data)), stream.name, size)
    return bytes(data)


def _check_beginning(head: bytes, name: str) -> None:
    if not head:
        raise TableError(f"{name} is empty.")
    if head.startswith(_OLD_EXCEL):
        raise TableError(
            f"{name} is in Excel's old format (.xls), or locked by a password. Save it as .xlsx without a "
            f"password, or the sheet as CSV."
        )
    if not head.startswith(_ZIP):
        raise TableError(
            f"{name} cannot be read as an Excel workbook (.xlsx): it is something else. If it is text, as "
            f"many files named .xls are, give its format (--format csv); otherwise save it as .xlsx or CSV."
        )


def _is_bomb(n_bytes: int, size: int | None) -> bool:
    """Return whether uncompressed data is large, and out of proportion to the file."""
    return n_bytes > _MANY_BYTES and size is not None and n_bytes > _UNPACKED * size


def _check_archive(archive: zipfile.ZipFile, name: str, size: int) -> None:
    """Raise for an archive that is damaged, not .xlsx, or would take too much memory."""
    members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    if unpacked > _MOST_BYTES or _is_bomb(unpacked, size):
        _raise_too_large(name)
    names = {member.filename for member in members}
    if "xl/workbook.xml" not in names or any(each.endswith(".bin") and "sheets/" in each for each in names):
        raise TableError(
            f"{name} cannot be read as an Excel workbook (.xlsx): it is another kind of archive."
        )
    most = min(_MOST_CELLS, max(_MANY_CELL_BYTES, _UNPACKED * size) // _CELL_BYTES)
    for member in members:
        # Reading verifies the declared size and the checksum of a member.
        with archive.open(member) as file:
            extent = _usual_extent(iter(lambda: file.read(_PIECE_BYTES), b""))
        n_rows, n_columns = extent or _any_extent(archive.read(member), name)
        if n_rows * n_columns > most:
            raise TableError(
                f"{name}: a sheet reaches to row {n_rows:,} and column {n_columns:,}; a file of {size:,} "
                f"bytes may have {most:,} cells. Delete the cells far out, or save the sheet as CSV."
            )


def _usual_extent(pieces: Iterator[bytes]) -> tuple[int, int] | None:
    """Return the last row and column of a sheet, None if it is not written in the usual way."""
    rest, rows, columns, ended = b"", {b"0"}, {b""}, False
    while not ended:
        piece = next(pieces, b"")
        ended = not piece
        # A tag that is cut off waits for the next piece.
        whole, sign, cut = (rest, b"", b"") if ended else (rest + piece).rpartition(b"<")
        rest = sign + cut
        found = _USUAL.findall(whole)
        columns.update(column for column, _, _ in found)
        rows.update(row or lone_row for _, row, lone_row in found)
        if b"" in rows or len(rest) > _PIECE_BYTES:
            return None
    return max(map(int, rows)), max(map(_number_of, columns))


def _any_extent(text: bytes, name: str) -> tuple[int, int]:
    """Return the last row and column of a sheet, tag by tag."""
    row = column = n_rows = n_columns = 0
    for kind, attributes in _TAG.findall(text):
        # The first attribute r is the reference; without one, a cell or row follows the previous one.
        values = (one or other for key, one, other in _ATTRIBUTE.findall(attributes) if key == b"r")
        reference = next(values, None)
        if kind == b"row":
            row, column = row + 1 if reference is None else _number(reference, name), 0
        elif reference is None:
            column += 1
        else:
            letters = reference.rstrip(_DIGITS)
            row = max(row, _number(reference[len(letters) :], name))
            if not letters.isalpha() or len(letters) > _MOST_LETTERS:
                _raise_bad_reference(reference, name)
            column = _number_of(letters)
        n_rows, n_columns = max(n_rows, row), max(n_columns, column)
    return n_rows, n_columns


def _number(digits: bytes, name: str) -> int:
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        _raise_bad_reference(digits, name)
    return int(digits)


def _raise_bad_reference(reference: bytes, name: str) -> NoReturn:
    raise TableError(
        f"{name} cannot be read as an Excel workbook: {shown(reference.decode(errors='replace'))} is not a "
        f"cell or row reference. Save it again, or the sheet as CSV."
    )


def _number_of(column: bytes) -> int:
    """Return the number of a column from its letters.

    >>> _number_of(b"A"), _number_of(b"AA"), _number_of(b"XFD")
    (1, 27, 16384)
    """
    number = 0
    for letter in column.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def _raise_too_large(name: str) -> NoReturn:
    raise TableError(
        f"{name} holds more than {_MOST_BYTES >> 30} GiB, or more than {_MANY_BYTES >> 20} MiB and "
        f"{_UNPACKED} times its size, and a workbook is read as a whole. Save the sheet as CSV, which is "
        f"read in batches."
    )


def _opened(data: bytes, name: str) -> Any:
    needed = f"{name} is an Excel workbook; pip install 'rankad[excel]' to read it, or save the sheet as CSV."
    fastexcel = imported("fastexcel", needed)
    # Its warnings go to loggers that are set up, not to the screen.
    logging.getLogger("calamine").addHandler(logging.NullHandler())
    return fastexcel.read_excel(data)


def _chosen(workbook: Any, wanted: str | None, name: str) -> str:
    names: list[str] = list(workbook.sheet_names)
    if wanted is not None:
        if wanted in names:
            return wanted
        raise TableError(f"{name} has no sheet {wanted!r:.100}; it has {listed(names)}.")
    if len(names) > 1:
        names = [each for each in names if _cells(workbook, each, n_rows=1).width]
    if len(names) == 1:
        return names[0]
    if not names:
        raise TableError(f"all sheets of {name} are empty.")
    raise TableError(
        f"{name} has {len(names)} sheets that are not empty, {listed(names)}; choose one, for instance with "
        f"--sheet {names[0]!r}."
    )


def _table(workbook: Any, sheet: str, place: str) -> pl.DataFrame:
    header = _cells(workbook, sheet, header_row=None, n_rows=1, dtypes="string")
    if not header.width or not header.height:
        raise TableError(f"{place} is empty; a table begins with a row of column names.")
    names = _names(header.row(0), place)
    # Infer types from all rows: a word in the last one would be lost otherwise.
    rows = _cells(workbook, sheet, schema_sample_rows=None)
    if rows.width != len(names):
        raise TableError(f"{place} has {len(names)} column names for {rows.width} columns. Save it as CSV.")
    rows = rows.rename(dict(zip(rows.columns, names, strict=True)))
    rows = rows.filter(~pl.all_horizontal(pl.all().is_null()))
    return rows.with_columns(map(_plain, rows.get_columns()))


def _cells(workbook: Any, sheet: str, **options: Any) -> pl.DataFrame:
    frame: pl.DataFrame = workbook.load_sheet(sheet, **options).to_polars()
    return frame


def _names(cells: tuple[str | None, ...], place: str) -> list[str]:
    for at, name in enumerate(cells, 1):
        if name is None or not name.strip():
            raise TableError(
                f"{place}: column {at} has no name in the first row that is not empty. That row must name "
                f"all columns; delete titles above it, and columns without a name."
            )
    names = [str(name) for name in cells]
    check_names(names, place)
    return names


def _plain(column: pl.Series) -> pl.Series:
    """Return whole floats as integers, since workbooks have only floats, and an empty column as text."""
    if column.dtype == pl.Null:
        return column.cast(pl.String)
    if column.dtype != pl.Float64 or column.is_null().all():
        return column
    whole = (column.is_finite() & (column == column.round()) & (column.abs() <= _LARGEST_WHOLE)).all()
    return column.cast(pl.Int64) if whole else column


@contextmanager
def _panics_blamed_on(what: str) -> Iterator[None]:
    """Turn errors of the library into a `TableError`, also its panics, which are not an `Exception`."""
    try:
        with blamed_on(what):
            yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise TableError(f"{what}: it is damaged.") from error
