"""Parquet files to frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from rankad.tables.arrow import frame_of
from rankad.tables.arrow_columns import check_types
from rankad.tables.errors import TableError, blamed_on
from rankad.tables.reader import TableReader, checked_start

__all__ = ["ParquetReader"]

_GUESSED_WIDTH = 8
# Pages are read one by one; else pyarrow holds whole row groups, of which a file may have one only.
_BUFFER_BYTES = 1 << 20


class ParquetReader(TableReader):
    """Rows of a Parquet file.

    Read by pyarrow: polars ends the process if a damaged file promises a large column, and holds whole row
    groups.

    Parameters
    ----------
    path : str
    size : int
        Of the file, in bytes.
    batch_bytes : int
    start : mapping or None
        A `position`.
    """

    unit = "rows"
    format = "parquet"

    def __init__(self, path: str, *, size: int, batch_bytes: int, start: Mapping[str, Any] | None) -> None:
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise TableError(
                f"{path} is a Parquet file; pip install pyarrow to read it, or save CSV."
            ) from error
        self.name = path
        self.total: int
        self.rows = checked_start(start, self.format, "rows")["rows"]
        with blamed_on(self._blame):
            self._file: Any = pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES)
            self.columns = list(self._file.schema_arrow.names)
            self.total = self._file.metadata.num_rows
        if len(set(self.columns)) < len(self.columns) or not self.columns:
            raise TableError(f"{path} has no columns, or two of the same name. Rename one.")
        check_types(self._file.schema_arrow, path)
        if not 0 <= self.rows <= self.total:
            raise TableError(f"{path} has {self.total:,} rows and no row {self.rows:,}. Begin anew.")
        width = max(_GUESSED_WIDTH * len(self.columns), size // max(self.total, 1))
        with blamed_on(self._blame):
            self._frames = self._pieces(max(1, batch_bytes // width), self.rows)

    @property
    def _blame(self) -> str:
        return f"{self.name} cannot be read as Parquet (is it damaged or cut off?)"

    @property
    def done(self) -> int:
        """Rows read."""
        return self.rows

    def _next_batch(self) -> pl.DataFrame | None:
        with blamed_on(self._blame):
            frame = next(self._frames, None)
        if frame is None and self.rows != self.total:
            raise TableError(f"{self._blame}: {self.rows:,} of {self.total:,} rows could be read.")
        return frame

    def _pieces(self, n_rows: int, skip: int) -> Iterator[pl.DataFrame]:
        about = self._file.metadata
        groups = list(range(about.num_row_groups))
        while groups and skip >= about.row_group(groups[0]).num_rows:
            skip -= about.row_group(groups.pop(0)).num_rows
        for batch in self._file.iter_batches(batch_size=n_rows, row_groups=groups):
            batch.validate(full=True)
            begin = min(skip, batch.num_rows)
            skip -= begin
            yield frame_of(batch.slice(begin), self.name)

    def close(self) -> None:
        """Close the file."""
        self._frames = iter(())
        self._file.close()
