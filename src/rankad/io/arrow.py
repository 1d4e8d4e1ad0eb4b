"""Arrow files and streams to frames."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import polars as pl

from rankad.io.arrow_columns import check_types, read_column
from rankad.io.errors import TableError, blamed_on, imported
from rankad.io.reader import Start, TableReader, check_names
from rankad.io.streams import ByteStream

_FILE = b"ARROW1"
_LEAST_WIDTH = 8


class RecordBatchReader(TableReader):
    """Rows that pyarrow reads: it checks every buffer, where polars would abort the process.

    Set `columns` by `_begin`, and then `_frames`.
    """

    _frames: Iterator[pl.DataFrame]

    @property
    def _blame(self) -> str:
        return f"{self.name} cannot be read as {self.format.capitalize()} (is it damaged or cut off?)"

    def _begin(self, schema: Any) -> None:
        """Take the columns from the schema."""
        self.columns = list(schema.names)
        check_names(self.columns, self.name)
        check_types(schema, self.name)

    def _next_batch(self) -> pl.DataFrame | None:
        with blamed_on(self._blame):
            return next(self._frames, None)

    def close(self) -> None:
        """Close the file."""
        # Not a mapped file: frames may still use it; it is closed with the last of them.
        self._frames = iter(())
        self._stream.close()


class ArrowReader(RecordBatchReader):
    """Rows of an Arrow (Feather) file, or of an Arrow stream from a pipe.

    Files are mapped into memory; of a stream or a compressed file, one record batch is held.
    """

    unit = "bytes"
    format = "arrow"

    def __init__(self, stream: ByteStream, batch_bytes: int, start: Start) -> None:
        super().__init__(stream, batch_bytes, start)
        needed = f"{self.name} is an Arrow table; pip install pyarrow to read it, or save it as CSV."
        pyarrow = imported("pyarrow", needed)
        ipc = imported("pyarrow.ipc", needed)
        self.rows = self._start["rows"]
        self._mapped: Any = None
        self._share_read = 0.0
        with blamed_on(self._blame):
            if stream.peek(len(_FILE)) != _FILE:
                batches = ipc.open_stream(_Readable(stream))
            elif stream.size is None or stream.compressed:
                raise TableError(
                    f"{stream.name} is an Arrow file, which cannot be read from a pipe or compressed; save "
                    f"it and give the path, or send an Arrow stream."
                )
            else:
                self._mapped = pyarrow.memory_map(self.name)
                batches = ipc.open_file(self._mapped)
            schema = batches.schema
        self._begin(schema)
        self._frames = self._pieces(batches, self.rows)

    @property
    def done(self) -> int:
        """Bytes read; of a mapped file, by its record batches."""
        if self._mapped is None:
            return self._stream.done
        return int(self._share_read * (self.total or 0))

    def _pieces(self, batches: Any, skip: int) -> Iterator[pl.DataFrame]:
        for batch in self._record_batches(batches):
            # Before slicing, which hides some errors.
            batch.validate(full=True)
            # Runs of equal values and columns of nulls take no bytes until they are decoded.
            most = self._batch_bytes // (_LEAST_WIDTH * len(self.columns))
            long = _dictionaries(batch)
            n_rows = max(1, min(most, self._batch_bytes * batch.num_rows // max(_bytes(batch), 1)))
            first = min(skip, batch.num_rows)
            skip -= first
            for begin in range(first, batch.num_rows, n_rows):
                for part in small_parts(batch.slice(begin, n_rows), long, self._batch_bytes):
                    yield frame_of(part, self.name)
        if skip:
            raise TableError(f"{self.name} ends {skip:,} rows before the start. Start over.")

    def _record_batches(self, batches: Any) -> Iterator[Any]:
        if self._mapped is None:
            yield from batches
            return
        count = batches.num_record_batches
        for i in range(count):
            batch = batches.get_batch(i)
            self._share_read = (i + 1) / count
            yield batch


def _bytes(batch: Any) -> int:
    try:
        return int(batch.nbytes)
    except TypeError:
        # pyarrow before 24 cannot tell how much of the buffers texts of type string_view take.
        return int(batch.get_total_buffer_size())


def small_parts(batch: Any, long: list[str], most: int) -> Iterator[Any]:
    """Split a record batch so that each part, unless a single row, decodes to at most `most` bytes of text.

    A dictionary stores a text once, but every row that has it gets a copy.
    """
    if batch.num_rows > 1 and sum(_text_bytes(batch.column(name)) for name in long) > most:
        half = batch.num_rows // 2
        yield from small_parts(batch.slice(0, half), long, most)
        yield from small_parts(batch.slice(half), long, most)
    else:
        yield batch


def _dictionaries(batch: Any) -> list[str]:
    """Return the names of the columns that are dictionaries of text."""
    from pyarrow import types

    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return [
        field.name
        for field in batch.schema
        if types.is_dictionary(field.type) and any(is_one(field.type.value_type) for is_one in texts)
    ]


def _text_bytes(column: Any) -> int:
    """Return the bytes of text in a dictionary column once decoded."""
    import pyarrow.compute

    lengths = pyarrow.compute.binary_length(column.dictionary).cast("int64")
    return int(pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0)


def frame_of(batch: Any, table: str) -> pl.DataFrame:
    """Return a validated record batch as a frame."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return pl.DataFrame({name: read_column(column, name, table) for name, column in columns})


class _Readable(io.RawIOBase):
    """The stream as a Python file, for pyarrow."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def read(self, n: int = -1) -> bytes:
        return self._stream.read(n)
