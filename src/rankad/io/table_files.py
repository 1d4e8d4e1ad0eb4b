"""Tables from files, batch by batch: CSV, JSON, Parquet, Arrow, NumPy, Excel."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from rankad.io.arrow import ArrowReader
from rankad.io.delimited import DelimitedReader
from rankad.io.errors import TableError as TableError
from rankad.io.errors import shown
from rankad.io.excel import ExcelReader, is_workbook
from rankad.io.forks import check_polars
from rankad.io.json_arrays import ArrayLines, JsonArrayReader
from rankad.io.json_lines import JsonLinesReader
from rankad.io.numbers import is_text, read_numbers, unread
from rankad.io.numpy_files import NumpyReader
from rankad.io.output import open_output as open_output
from rankad.io.parquet import ParquetReader
from rankad.io.reader import Start
from rankad.io.reader import TableReader as TableReader
from rankad.io.streams import ByteStream
from rankad.io.suffixes import SUFFIXES, format_of
from rankad.io.text_encodings import Recoder, checked_encoding, encoding_by_mark

_TEXT = ("csv", "tsv", "jsonl", "json")

# Larger batches do not fit the processor's caches: 8 MiB are parsed faster than 32.
_BATCH_BYTES = 8 << 20
_LEAST_BATCH_BYTES = 64
_IDENTITY_BYTES = 1 << 20
_HEAD_BYTES = 1 << 12
_UTF8_MARK = b"\xef\xbb\xbf"
# Rows of more memory than this, and that many times the size of their file, are a decompression bomb.
_VIEW_BYTES = 16
_MOST_UNPACKED, _UNPACKED = 64 << 20, 50
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "npy",
    b"PK": "npz",
}
# Other files with tables, which are not supported.
_UNSUPPORTED = {
    "an OpenDocument sheet": ".ods",
    "a binary Excel workbook": ".xlsb",
    "a Numbers sheet": ".numbers",
    "a PDF page": ".pdf",
    "a pickle, which could run any code": ".pkl .pickle",
    "a file of R": ".rds",
    "a file of SPSS": ".sav",
    "a file of Stata": ".dta",
    "a file of SAS": ".sas7bdat",
    "an HDF5 file": ".h5",
    "a database": ".db .sqlite",
    "an archive": ".zip",
}


def open_table(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    batch_bytes: int = _BATCH_BYTES,
    start: Start = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> TableReader:
    r"""Open a table; iterating over it yields polars frames of about `batch_bytes` each.

    Memory stays at a few batches, whatever the size of the file.

    Parameters
    ----------
    path : str or path
        The file, ``-`` for standard input. CSV and JSON may be compressed by gzip or zstd.
    format : {"csv", "tsv", "jsonl", "json", "parquet", "arrow", "npy", "npz", "excel"} or None
        None: by the suffix or else the first bytes. JSON may be one object per line, or an array of them.
    batch_bytes : int
        Size of a batch; no row of CSV or JSON may be longer.
    start : mapping or None
        The `position` of an earlier reader of the same file, to continue there.
    delimiter : str or None
        Of CSV; None: the most common in the header among ``,``, ``;``, tab and ``|``.
    encoding : str or None
        Of text, such as "latin-1"; None: UTF-8, or UTF-16 or UTF-32 by the byte order mark.
    sheet : str or None
        Of an Excel workbook, which is read as a whole; None: the only one that is not empty.

    Returns
    -------
    TableReader
        Columns of CSV are text, exactly as in the file. Here or while iterating, a table that cannot be read
        raises `TableError`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pumps.csv")
    ...     _ = path.write_text("id,flow\n7,1.50\n8,\n")
    ...     with open_table(path) as table:
    ...         print(table.columns, [frame.rows() for frame in table])
    ['id', 'flow'] [[('7', '1.50'), ('8', None)]]
    """
    check_polars()
    path = os.fspath(path)
    _check(format, batch_bytes, delimiter)
    recode = checked_encoding(encoding) if encoding is not None else None
    if path != "-" and Path(path).is_dir():
        raise TableError(f"{path} is a folder; give a file.")
    stream = ByteStream(path)
    try:
        format = _format(stream, path, format, recode)
        _check_use(stream.name, format, encoding, sheet)
        given = (stream, batch_bytes, start)
        if format == "excel":
            return ExcelReader(*given, sheet)
        if format in ("jsonl", "json"):
            return _json_reader(*given)
        if format in ("csv", "tsv"):
            return DelimitedReader(*given, format, delimiter or ("\t" if format == "tsv" else None))
        if format in ("npy", "npz"):
            return NumpyReader(*given, format)
        if not stream.peek(1):
            raise TableError(f"{stream.name} is empty.")
        return ArrowReader(*given) if format == "arrow" else ParquetReader(*given)
    except BaseException:
        stream.close()
        raise


def _format(stream: ByteStream, path: str, format: str | None, encoding: str | None) -> str:
    """Return the format of a file, and convert its text to UTF-8."""
    named = format or format_of(path)
    if named is not None and named not in _TEXT:
        return named
    encoding = encoding or encoding_by_mark(stream.peek(4))
    if encoding is not None:
        stream.through(Recoder(encoding, stream.name).feed)
    return named or _sniffed(stream)


def _json_reader(stream: ByteStream, batch_bytes: int, start: Start) -> TableReader:
    head = stream.peek(_HEAD_BYTES).removeprefix(_UTF8_MARK).lstrip()
    if head.startswith(b"["):
        stream.through(ArrayLines(stream.name).feed)
        return JsonArrayReader(stream, batch_bytes, start)
    if re.match(rb"\{\s*\n", head) or re.match(rb'\{\s*"[^"]*"\s*:\s*\[\s*\n', head):
        key = re.search(rb'"([^"\\]+)"\s*:\s*\[\s*\{', head)
        name = key[1].decode(errors="replace") if key else "rows"
        raise TableError(
            f"{stream.name} holds one JSON object over several lines; a table is an array of objects, or one "
            f"object per line. Extract the array: jq -c '.{name}[]' OLD > NEW"
            + ("." if key else " if it is called rows.")
        )
    if re.match(rb'\{\s*"[^"]*"\s*:\s*\{\s*"0"\s*:', head) and b"\n{" not in head:
        raise TableError(
            f"{stream.name} holds columns of cells, the default of pandas; a table is an array of objects. "
            f"Write it with to_json(NAME, orient='records')."
        )
    return JsonLinesReader(stream, batch_bytes, start)


def _check_use(name: str, format: str, encoding: str | None, sheet: str | None) -> None:
    """Raise for options that do not apply to the format."""
    if encoding is not None and format not in _TEXT:
        raise TableError(f"{name} is read as {format}, which has no encoding; leave out --encoding.")
    if sheet is not None and format != "excel":
        raise TableError(f"{name} is read as {format}, which has no sheets; leave out --sheet.")


def _check(format: str | None, batch_bytes: int, delimiter: str | None) -> None:
    if format is not None and format not in SUFFIXES:
        raise TableError(f"format must be one of {', '.join(SUFFIXES)}, got {format!r}.")
    if batch_bytes < _LEAST_BATCH_BYTES:
        raise TableError(f"batch_bytes must be {_LEAST_BATCH_BYTES} or more, got {batch_bytes}.")
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0'):
        raise TableError(f"delimiter must be one ASCII character such as ';', got {delimiter!r}.")


def _sniffed(stream: ByteStream) -> str:
    head = stream.peek(64)
    if is_workbook(head):
        return "excel"
    suffix = Path(stream.name).suffix.lower()
    for what, suffixes in _UNSUPPORTED.items():
        if suffix in suffixes.split():
            raise TableError(
                f"{stream.name} is {what}, which is not supported. Save it as CSV, Parquet or .xlsx."
            )
    for magic, format in _MAGIC.items():
        if head.startswith(magic):
            return format
    return "jsonl" if head.lstrip(_UTF8_MARK + b" \t\r\n").startswith((b"{", b"[")) else "csv"


def as_numbers(frame: pl.DataFrame, columns: Iterable[str], *, rows_before: int = 0) -> pl.DataFrame:
    """Return the frame with the columns as Float64, null where a value is missing.

    In text, words for missing numbers are missing values. So is, with a warning that counts `rows_before`, a
    cell that is not a number.

    >>> as_numbers(pl.DataFrame({"a": ["1.5", "NA"], "b": ["x", "y"]}), ["a"]).rows()
    [(1.5, 'x'), (None, 'y')]
    """
    numbers = []
    for name in columns:
        if name not in frame.columns:
            raise TableError(f"there is no column {name!r}.")
        series = frame[name]
        values = read_numbers(series)
        row = next(iter(unread(series, values)), None) if is_text(series.dtype) else None
        if row is not None:
            warnings.warn(
                f"column {name!r} is written as numbers, but data row {rows_before + row + 1:,} (the first "
                f"row is 1) has {shown(series[int(row)])}: such cells are left empty. Write CSV to keep "
                f"them.",
                stacklevel=2,
            )
        numbers.append(pl.Series(name, values, nan_to_null=True))
    return frame.with_columns(numbers)


def file_identity(path: str | os.PathLike[str], *, whole: bool = False) -> dict[str, Any]:
    """Return size, time of change and SHA-256 (of the first and last mebibyte, or of the `whole` file)."""
    try:
        with open(path, "rb") as file:
            about = os.fstat(file.fileno())
            if whole:
                digest = hashlib.file_digest(file, "sha256")
            else:
                digest = hashlib.sha256(file.read(_IDENTITY_BYTES))
                file.seek(max(0, about.st_size - _IDENTITY_BYTES))
                digest.update(file.read(_IDENTITY_BYTES))
    except OSError as error:
        raise TableError(f"Cannot open {os.fspath(path)!r}: {error.strerror}.") from error
    return {"size": about.st_size, "changed": about.st_mtime_ns, "sha256": digest.hexdigest()}


def check_unpacked(path: str | os.PathLike[str], n_bytes: int) -> None:
    """Raise if rows in memory, of `n_bytes` so far, take far more than their file: a decompression bomb."""
    if n_bytes <= _MOST_UNPACKED or not os.path.isfile(path):
        return
    size = os.path.getsize(path)
    if n_bytes > _UNPACKED * size:
        raise TableError(
            f"{os.fspath(path)} has {size:,} bytes, but its rows take more than {n_bytes >> 20:,} MiB of "
            f"memory, all of which is needed at once. If that is right, unpack the file first."
        )


def held_bytes(frame: pl.DataFrame) -> int:
    """Return the memory that a frame takes, with words of categories counted for every row."""
    kinds = frame.schema
    texts = sum(kind == pl.String for kind in kinds.values())
    words = [name for name, kind in kinds.items() if isinstance(kind, (pl.Categorical, pl.Enum))]
    long = sum(int(frame[name].cast(pl.String).str.len_bytes().sum() or 0) for name in words)
    return int(frame.estimated_size()) + _VIEW_BYTES * frame.height * (texts + len(words)) + long


class BeginningDigest:
    """SHA-256 of a file up to an offset that only grows, so that every byte is read once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self._done = path, 0
        self._digest = hashlib.sha256()

    def up_to(self, offset: int) -> str:
        """Return the digest of the first `offset` bytes, or of all there are."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._done)
                while piece := file.read(min(_IDENTITY_BYTES, offset - self._done)):
                    self._digest.update(piece)
                    self._done += len(piece)
        except OSError as error:
            raise TableError(f"Cannot open {os.fspath(self._path)!r}: {error.strerror}.") from error
        return self._digest.hexdigest()
