"""Tables to files that appear complete or not at all."""

from __future__ import annotations

import io
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, Any, Literal, cast

import polars as pl

from rankad._base.files import check_output, check_printing, is_stream, naming
from rankad.io.blocks import lines_of
from rankad.io.destinations import Destination, NewFile, Pipe, ResumableFile
from rankad.io.errors import TableError, blamed_on, imported, shown
from rankad.io.forks import check_polars
from rankad.io.numbers import is_text
from rankad.io.suffixes import compression_of, format_of

_TEXT = ("csv", "tsv", "jsonl")
_COLUMNAR = ("parquet", "arrow")
# How a formula may begin in a spreadsheet, with skipped characters; the last four are full-width.
_BEGINS = r"^[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"


# How zlib is asked for gzip's header, and for the largest window.
_GZIP_HEADER = 31


class TableWriter(ABC):
    """A table that is written frame by frame; a context manager.

    Leaving the ``with`` block without an error makes the file final; an error leaves what was there.
    `position` and `state` are what the last `commit` of an interrupted run recorded, None if nothing was.
    """

    delimiter: str | None = None  # of CSV

    def __init__(self, destination: Destination, format: str) -> None:
        self._destination, self._format = destination, format
        self._columns: list[str] | None = destination.columns
        self.position, self.state = destination.position, destination.state

    @property
    def _failed(self) -> str:
        return f"{self._destination.name} cannot be written as {self._format}"

    def write(self, frame: pl.DataFrame) -> None:
        """Append the rows of a frame; all frames have the same columns."""
        self._check_columns(frame.columns)
        self._write(frame)

    def _check_columns(self, columns: list[str]) -> None:
        if self._columns is None:
            self._columns = columns
        if columns != self._columns:
            raise TableError(
                f"every frame written to {self._destination.name} must have the columns {self._columns}, got "
                f"{columns}."
            )

    def write_beside(self, lines: bytes, columns: list[str], added: pl.DataFrame) -> None:
        """Append the reader's `lines` of CSV, with the same delimiter, and cells added to each."""
        raise TableError(f"{self._destination.name} does not take lines of text.")

    @abstractmethod
    def _write(self, frame: pl.DataFrame) -> None: ...

    def commit(self, position: Any, state: Any = None) -> None:
        """Make durable what has been written, with the reader's `position` and any state to resume from."""
        self._destination.commit(position, state, self._columns or [])

    def close(self) -> None:
        """Finish the table and make the file final."""
        self._destination.finish()

    def discard(self) -> None:
        """Leave nothing, or with `resume` what was committed."""
        self._destination.discard()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.close()
                return
        except BaseException:
            self.discard()
            raise
        self.discard()


def open_output(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    delimiter: str | None = None,
    inputs: Iterable[str | os.PathLike[str]] = (),
    resume: bool = False,
    fingerprint: Any = None,
    neutralize_formulas: bool = False,
) -> TableWriter:
    """Open a table for writing.

    Rows go to a temporary file, which replaces the target at the end if there was no error.

    Parameters
    ----------
    path : str or path
        The file, ``-`` for standard output. A suffix .gz or .zst compresses CSV and JSON lines.
    format : {"csv", "tsv", "jsonl", "parquet", "arrow"} or None
        None: by the name; standard output is CSV.
    delimiter : str or None
        Of CSV, by default a comma; of TSV a tab.
    inputs : iterable of paths
        Files that must not be overwritten.
    resume : bool
        Keep what was committed in ``PATH.part`` if the run is interrupted, and continue from there if it
        exists and its `fingerprint` (JSON-able) is the same. For uncompressed CSV and JSON lines.
    neutralize_formulas : bool
        Put a single quote before text that a spreadsheet would take for a formula. For CSV and TSV.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scored.csv")
    ...     with open_output(path) as table:
    ...         table.write(pl.DataFrame({"p_value": [0.25]}))
    ...         there = os.path.exists(path)
    ...     pl.read_csv(path).to_dicts(), there
    ([{'p_value': 0.25}], False)
    """
    check_polars()
    path, inputs = os.fspath(path), list(inputs)
    format = format or format_of(path) or ("csv" if path == "-" else None)
    compression, streams = compression_of(path), path == "-" or is_stream(path)
    if format not in (*_TEXT, *_COLUMNAR):
        raise TableError(
            f"{path} cannot be written as {format or 'a table: its suffix names no format'}; formats are "
            f"{', '.join((*_TEXT, *_COLUMNAR))}."
        )
    if neutralize_formulas and format not in ("csv", "tsv"):
        raise TableError(f"formulas are neutralized in CSV and TSV only, and {path} is written as {format}.")
    try:
        if path == "-":
            check_printing(inputs)
        else:
            for one in (path, f"{path}.part", f"{path}.part.json") if resume and not streams else (path,):
                check_output(one, inputs)
        if resume and (streams or compression or format not in _TEXT):
            raise TableError(f"resume needs an uncompressed file of CSV or JSON lines, got {path}.")
        if format in _COLUMNAR and (streams or compression):
            raise TableError(
                f"{format} is written to plain files only, got {path}; write CSV or JSON lines there."
            )
        if format in _COLUMNAR:
            imported("pyarrow", f"{path} needs pyarrow; pip install pyarrow, or write CSV or JSON lines.")
        destination: Destination
        if resume:
            destination = ResumableFile(path, fingerprint)
        else:
            destination = Pipe(path) if streams else NewFile(path, inputs)
    except OSError as error:
        if error.strerror is not None:
            raise
        raise TableError(str(error)) from error
    if format in _COLUMNAR:
        return _ColumnarWriter(destination, format)
    try:
        return _TextWriter(destination, format, delimiter, path, neutralize_formulas)
    except BaseException:
        destination.discard()
        raise


class _TextWriter(TableWriter):
    """CSV and JSON lines."""

    def __init__(
        self, destination: Destination, format: str, delimiter: str | None, path: str, neutralize: bool
    ) -> None:
        super().__init__(destination, format)
        self._neutralize = neutralize
        if format != "jsonl":
            self.delimiter = delimiter or ("\t" if format == "tsv" else ",")
        self._header_due = format != "jsonl" and destination.size == 0
        self._file: IO[bytes] = _compressed(destination, compression_of(path))

    def _write(self, frame: pl.DataFrame, quotes: Literal["necessary", "never"] = "necessary") -> None:
        for name, kind in frame.schema.items():
            # Polars would panic and print to standard error.
            if _holds_bytes(kind) or (self.delimiter and (kind.is_nested() or isinstance(kind, pl.Duration))):
                raise TableError(
                    f"{self._failed}: column {name!r} is of type {kind!s:.100}. Write Parquet or Arrow, or "
                    f"leave the column out."
                )
        # Through a buffer: given a file, polars would write past Python's own buffer.
        buffer = io.BytesIO()
        with blamed_on(self._failed):
            if self._neutralize:
                frame = without_formulas(frame)
            if self.delimiter is None:
                frame.write_ndjson(buffer)
            else:
                header = self._header_due
                frame.write_csv(buffer, separator=self.delimiter, include_header=header, quote_style=quotes)
        self._header_due = False
        with naming(self._destination.name):
            self._file.write(buffer.getbuffer())

    def write_beside(self, lines: bytes, columns: list[str], added: pl.DataFrame) -> None:
        if self.delimiter is None or self._neutralize:
            super().write_beside(lines, columns, added)
        self._check_columns(columns + added.columns)
        if self._header_due:
            self._write(pl.DataFrame(schema=columns + added.columns))
        self._write(added.select(lines_of(lines), pl.all()), quotes="never")

    def close(self) -> None:
        if self._file is not self._destination.file:
            with naming(self._destination.name):
                self._file.close()
        super().close()


def _holds_bytes(kind: Any) -> bool:
    """Return whether a column holds bytes, also in lists and structs."""
    inner = getattr(kind, "inner", None)
    fields = [field.dtype for field in getattr(kind, "fields", ())]
    return kind == pl.Binary or any(map(_holds_bytes, fields + ([inner] if inner is not None else [])))


class _ColumnarWriter(TableWriter):
    """Parquet and Arrow."""

    def __init__(self, destination: Destination, format: str) -> None:
        super().__init__(destination, format)
        self._schema: pl.Schema | None = None
        self._writer: Any = None

    def _write(self, frame: pl.DataFrame) -> None:
        if self._schema is None:
            self._schema = frame.schema
            # Polars would panic and print to standard error.
            if bad := next((name for name in frame.columns if "\0" in name), None):
                raise TableError(
                    f"{self._failed}: the column name {shown(bad)} has a NUL character. Rename it."
                )
        with blamed_on(f"{self._destination.name}: a column changed its type from one batch to another"):
            frame = frame.cast(self._schema)
        with blamed_on(self._failed):
            rows = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            if self._writer is None:
                import pyarrow.parquet

                file, schema = self._destination.file, rows.schema
                self._writer = (
                    pyarrow.parquet.ParquetWriter(file, schema, compression="zstd")
                    if self._format == "parquet"
                    else pyarrow.ipc.new_file(file, schema)
                )
            self._writer.write_table(rows)

    def close(self) -> None:
        if self._writer is None:
            raise TableError(f"{self._destination.name}: no frame was written; a table needs columns.")
        with naming(self._destination.name):
            self._writer.close()
        super().close()

    def discard(self) -> None:
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()
        super().discard()


class _Gzip:
    """Writes gzip; one that is dropped writes no end, so that what was cut off does not look whole."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._packed = file, zlib.compressobj(wbits=_GZIP_HEADER)

    def write(self, data: bytes) -> None:
        self._file.write(self._packed.compress(data))

    def close(self) -> None:
        self._file.write(self._packed.flush())


def _compressed(destination: Destination, compression: str | None) -> IO[bytes]:
    if compression == "gzip":
        return cast(IO[bytes], _Gzip(destination.file))
    if compression == "zstd":
        needed = f"{destination.name} needs zstd; pip install zstandard, or write .gz."
        zstandard = imported("zstandard", needed)
        return cast(IO[bytes], zstandard.ZstdCompressor().stream_writer(destination.file, closefd=False))
    return destination.file


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Put a single quote before cells and column names that a spreadsheet would take for formulas.

    Numbers are unchanged, also signed ones and those in text.

    >>> without_formulas(pl.DataFrame({"=a": ["=1+1", "-5", "-x", None], "b": [-1, 2, 3, 4]})).to_dict(
    ...     as_series=False
    ... )
    {"'=a": ["'=1+1", '-5', "'-x", None], 'b': [-1, 2, 3, 4]}
    """
    names = pl.Series(frame.columns, dtype=pl.String)
    texts = [name for name, kind in frame.schema.items() if is_text(kind)]
    cells = frame.with_columns(_neutral(frame[name].cast(pl.String)) for name in texts)
    return cells.rename(dict(zip(names, _neutral(names), strict=True)))


def _neutral(text: pl.Series) -> pl.Series:
    number = text.str.strip_chars().cast(pl.Float64, strict=False).is_not_null()
    odd = (text.str.contains(_BEGINS) & ~number).fill_null(False)
    return ("'" + text).zip_with(odd, text).alias(text.name) if odd.any() else text
