"""Parquet files to frames."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from rankad.io.arrow import RecordBatchReader, frame_of, small_parts
from rankad.io.errors import TableError, blamed_on, imported
from rankad.io.reader import Start
from rankad.io.streams import ByteStream

_GUESSED_WIDTH = 8
# Pages are read one by one; otherwise pyarrow holds whole row groups, and a file may be one row group.
_BUFFER_BYTES = 1 << 20
# Text that a batch could decode to before it is measured: of dictionaries, which are decoded piece by piece
# beyond this, and of words that share their beginnings, for which batches are shorter.
_MOST_DECODED, _MOST_SHARED = 64 << 20, 256 << 20
_LEAST_GROUP = 1 << 20
# A row group of more bytes than this, and that many times the size of the file, is a decompression bomb.
_MOST_PACKED, _PACKED = 64 << 20, 100


class ParquetReader(RecordBatchReader):
    """Rows of a Parquet file, page by page: polars would hold whole row groups."""

    unit = "rows"
    format = "parquet"
    total: int

    def __init__(self, stream: ByteStream, batch_bytes: int, start: Start) -> None:
        super().__init__(stream, batch_bytes, start)
        path, size = self.name, stream.size
        if size is None or stream.compressed:
            raise TableError(
                f"{path} cannot be read as Parquet, which needs a plain file; save it and give the path, or "
                f"send CSV."
            )
        needed = f"{path} is a Parquet file; pip install pyarrow to read it, or save it as CSV."
        parquet = imported("pyarrow.parquet", needed)
        stream.close()
        with blamed_on(self._blame):
            opened = partial(parquet.ParquetFile, path, pre_buffer=False, buffer_size=_BUFFER_BYTES)
            self._file: Any = opened()
            self._long, shared = self._long_texts(batch_bytes)
            if self._long:
                self._file.close()
                self._file = opened(read_dictionary=self._long)
            self.total = self._file.metadata.num_rows
        self._begin(self._file.schema_arrow)
        self.rows = self._first_row()
        unpacked = self._checked_unpacked(size)
        width = max(_GUESSED_WIDTH * len(self.columns), max(size, unpacked) // max(self.total, 1))
        with blamed_on(self._blame):
            n_rows = min(batch_bytes // width, _MOST_SHARED // max(shared, 1))
            self._frames = self._pieces(max(1, n_rows), self.rows)

    def _long_texts(self, batch_bytes: int) -> tuple[list[str], int]:
        """Return columns whose dictionary may hold long words, and the length of words that share beginnings.

        A word is no longer than what holds it; a batch may have it in each of its rows.
        """
        from pyarrow import types

        about = self._file.metadata
        kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        fields = self._file.schema_arrow
        texts = {field.name for field in fields if any(is_one(field.type) for is_one in kinds)}
        columns = range(about.num_columns if texts else 0)
        places = [at for at in columns if about.schema.column(at).path in texts]
        groups = [about.row_group(at) for at in range(about.num_row_groups)]
        n_rows = min(about.num_rows, batch_bytes // (_GUESSED_WIDTH * max(len(fields), 1)))
        longest = _MOST_DECODED // max(n_rows * len(places), 1)
        long, shared = list[str](), 0
        for at in places:
            chunks = [group.column(at) for group in groups]
            named = [chunk for chunk in chunks if any("DICTIONARY" in each for each in chunk.encodings)]
            delta = [chunk for chunk in chunks if "DELTA_BYTE_ARRAY" in chunk.encodings]
            if max((chunk.total_uncompressed_size for chunk in named), default=0) > longest:
                long.append(chunks[0].path_in_schema)
            shared += max((chunk.total_uncompressed_size for chunk in delta), default=0)
        return sorted(long), shared

    def _checked_unpacked(self, size: int) -> int:
        """Return the uncompressed size; raise for rows longer than a batch, and for decompression bombs."""
        about, unpacked = self._file.metadata, 0
        for at in range(about.num_row_groups):
            group = about.row_group(at)
            unpacked += max(0, group.total_byte_size)
            if group.total_byte_size > max(self._batch_bytes * group.num_rows, _LEAST_GROUP):
                raise TableError(
                    f"{self.name}: rows of {group.total_byte_size // max(1, group.num_rows):,} bytes; no row "
                    f"may be longer than {self._batch_bytes:,} (batch_bytes). Leave out the long texts."
                )
            if group.total_byte_size > max(_PACKED * size, _MOST_PACKED):
                raise TableError(
                    f"{self.name}, of {size:,} bytes, holds {group.total_byte_size:,} in one row group. If "
                    f"that is right, write it with smaller row groups, or without compression."
                )
        return unpacked

    def _next_batch(self) -> pl.DataFrame | None:
        frame = super()._next_batch()
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
            for part in small_parts(batch.slice(begin), self._long, self._batch_bytes):
                yield frame_of(self._decoded(part), self.name)

    def _decoded(self, batch: Any) -> Any:
        for name in self._long:
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, name, batch.column(at).dictionary_decode())
        return batch

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._file.close()
