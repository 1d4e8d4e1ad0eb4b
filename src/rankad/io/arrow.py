"""Arrow files and streams to frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from rankad.io.arrow_columns import check_types, read_column
from rankad.io.errors import TableError, blamed_on
from rankad.io.reader import TableReader, checked_start
from rankad.io.streams import ByteStream

__all__ = ["ArrowReader", "frame_of", "small_parts"]

_FILE = b"ARROW1"
_LEAST_WIDTH = 8


class ArrowReader(TableReader):
    """Rows of an Arrow (Feather) file, or of an Arrow stream as programs send it through a pipe.

    Read by pyarrow, which checks every buffer: polars ends the process if a damaged file promises a large
    one.
    Files are mapped into memory; of a stream, or if it is compressed, one record batch is held.

    Parameters
    ----------
    stream : ByteStream
    path : str
        The same file.
    batch_bytes : int
    start : mapping or None
        A `position`.
    """

    unit = "bytes"
    format = "arrow"

    def __init__(
        self, stream: ByteStream, path: str, *, batch_bytes: int, start: Mapping[str, Any] | None
    ) -> None:
        try:
            import pyarrow.ipc
        except ImportError as error:
            raise TableError(
                f"{stream.name} is an Arrow table; pip install pyarrow to read it, or save it as Parquet."
            ) from error
        self.name, self.total = stream.name, stream.size
        self._stream = stream
        self._batch_bytes = batch_bytes
        self.rows = checked_start(start, self.format, "rows")["rows"]
        self._mapped: Any = None
        self._share_read = 0.0
        with blamed_on(self._blame):
            if stream.peek(len(_FILE)) == _FILE and stream.size is not None and not stream.compressed:
                self._mapped = pyarrow.memory_map(path)
                batches = pyarrow.ipc.open_file(self._mapped)
            elif stream.peek(len(_FILE)) == _FILE:
                raise TableError(
                    f"{stream.name} is an Arrow file, which cannot be read on the way; save it and give the "
                    f"path, or send an Arrow stream."
                )
            else:
                batches = pyarrow.ipc.open_stream(_Readable(stream))
            self.columns = list(batches.schema.names)
        if len(set(self.columns)) < len(self.columns) or not self.columns:
            raise TableError(f"{self.name} has no columns, or two of the same name. Rename one.")
        check_types(batches.schema, self.name)
        self._frames: Iterator[pl.DataFrame] = self._pieces(batches, self.rows)

    @property
    def _blame(self) -> str:
        return f"{self.name} cannot be read as Arrow (is it damaged or cut off?)"

    @property
    def done(self) -> int:
        """Bytes read; of a mapped file, as far as record batches tell."""
        if self._mapped is None:
            return self._stream.done
        return int(self._share_read * (self.total or 0))

    def _next_batch(self) -> pl.DataFrame | None:
        with blamed_on(self._blame):
            return next(self._frames, None)

    def _pieces(self, batches: Any, skip: int) -> Iterator[pl.DataFrame]:
        for batch in self._record_batches(batches):
            # The whole batch, and first of all: slices no longer tell all that is wrong.
            batch.validate(full=True)
            # Runs of equal values and columns of nulls take no bytes before they are read.
            most = self._batch_bytes // (_LEAST_WIDTH * len(self.columns))
            long = _dictionaries(batch)
            n_rows = max(1, min(most, self._batch_bytes * batch.num_rows // max(batch.nbytes, 1)))
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

    def close(self) -> None:
        """Close the file."""
        # Not the mapped file: frames may still look into it, and it goes with the last of them.
        self._frames = iter(())
        self._stream.close()


def small_parts(batch: Any, long: list[str], most: int) -> Iterator[Any]:
    """Yield a record batch in parts, none of which has more bytes of text than `most`, but for single rows.

    A text in a dictionary is stored once, however many rows have it, and is read for each of them.
    """
    if batch.num_rows > 1 and sum(_text_bytes(batch.column(name)) for name in long) > most:
        half = batch.num_rows // 2
        yield from small_parts(batch.slice(0, half), long, most)
        yield from small_parts(batch.slice(half), long, most)
    else:
        yield batch


def _dictionaries(batch: Any) -> list[str]:
    """Name the columns that are dictionaries of texts."""
    from pyarrow import types

    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return [
        field.name
        for field in batch.schema
        if types.is_dictionary(field.type) and any(is_one(field.type.value_type) for is_one in texts)
    ]


def _text_bytes(column: Any) -> int:
    """Return how many bytes a column of a dictionary of texts has when every row has its own."""
    import pyarrow.compute

    lengths = pyarrow.compute.binary_length(column.dictionary).cast("int64")
    return int(pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0)


def frame_of(batch: Any, table: str) -> pl.DataFrame:
    """Return a record batch as a frame. It must have been validated."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return pl.DataFrame({name: read_column(column, name, table) for name, column in columns})


class _Readable:
    """What pyarrow wants of a Python file."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.closed = False

    def read(self, n: int) -> bytes:
        return self._stream.read(n)

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False
