"""Rows in partitions, and an engine that works on them in this process."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankad._base.arrays import Floats, Ints
from rankad._base.rows import NotNumbersError

T = TypeVar("T")

# Some rows of a partition: a float array or an Arrow record batch.
Block: TypeAlias = Any
# What is done with one partition: called with its number and its blocks.
Work: TypeAlias = Callable[[int, Iterator[Block]], T]

_BATCH_ROWS, _FILE_ROWS = 65_536, 2**22


class Partitions(Protocol):
    """Rows in numbered partitions, held by some engine."""

    def map(self, work: Work[T]) -> Iterable[tuple[int, T]]:
        """Run `work` on every partition, where its rows are.

        Returns pairs of the partition's number and the result, in any order; empty partitions may be left
        out.
        `work` must be picklable and give the same result when it is run again.
        """


class InProcess:
    """Partitions that are worked on one after another in this process.

    Parameters
    ----------
    partitions : sequence of iterables of blocks, or of callables that return such
        Callables are for blocks that are read again in every pass.

    Examples
    --------
    >>> partitions = InProcess([[np.zeros((3, 2))], [], [np.ones((1, 2))]])
    >>> list(partitions.map(lambda number, blocks: sum(len(block) for block in blocks)))
    [(0, 3), (1, 0), (2, 1)]
    """

    def __init__(self, partitions: Sequence[Any]) -> None:
        self._partitions = partitions

    def map(self, work: Work[T]) -> Iterator[tuple[int, T]]:
        """Run `work` on every partition in turn."""
        for number, blocks in enumerate(self._partitions):
            yield number, work(number, iter(blocks() if callable(blocks) else blocks))


def parquet_partitions(path: str) -> InProcess:
    """Return the files of a Parquet folder as partitions, which are read batch by batch.

    Parameters
    ----------
    path : str
        A file, a folder or a URL that fsspec knows, such as "s3://bucket/rows".
    """
    files = parquet_dataset(path).files
    return InProcess([partial(_read_file, path, at) for at in range(len(files))])


def _read_file(path: str, at: int) -> Iterator[pa.RecordBatch]:
    fragments = list(parquet_dataset(path).get_fragments())
    return iter(fragments[at].to_batches(batch_size=_BATCH_ROWS, batch_readahead=1))


def read_parquet_batches(path: str) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file, folder or URL batch by batch."""
    return iter(
        parquet_dataset(path).to_batches(batch_size=_BATCH_ROWS, batch_readahead=1, fragment_readahead=1)
    )


def parquet_dataset(path: str) -> Any:
    """Open a Parquet file, folder or URL as a pyarrow dataset."""
    import pyarrow.dataset as ds

    inner, system = _located(path)
    try:
        return ds.dataset(inner, format="parquet", filesystem=system)
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{path} cannot be read as Parquet, which an engine needs. Give a Parquet file or a folder of "
            f"them; files of other formats are read without an engine (--engine)."
        ) from error


def write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: str) -> None:
    """Write record batches to a new folder of Parquet files, as they come; it may be a URL."""
    import pyarrow.parquet as pq

    folder, system = _located(path)
    if system is None:
        os.makedirs(folder)
    else:
        system.makedirs(folder, exist_ok=True)
    # One batch at a time: pyarrow's own writer of folders holds up to eight million rows.
    remaining, at = iter(batches), 0
    batch = next(remaining, None)
    while batch is not None or at == 0:
        name = f"{folder}/part-{at:05}.parquet"
        with (
            open(name, "wb") if system is None else system.open(name, "wb") as stream,
            pq.ParquetWriter(stream, schema) as writer,
        ):
            n_rows = 0
            while batch is not None and n_rows < _FILE_ROWS:
                writer.write_batch(batch)
                n_rows += batch.num_rows
                batch = next(remaining, None)
        at += 1


def _located(path: str) -> tuple[str, Any]:
    if "://" not in path:
        return path, None
    import fsspec

    system, inner = fsspec.core.url_to_fs(path)
    return inner, system


class Layout(NamedTuple):
    """Where the numbers of a row are in a block.

    Attributes
    ----------
    columns : tuple of str or None
        The columns to use, in this order; None for arrays and for a column of vectors.
    vector : str or None
        The one column whose cells are lists of numbers.
    number : str or None
        The column of row numbers, which count all rows from 0; None to number rows in the order of their
        partitions.
    """

    columns: tuple[str, ...] | None = None
    vector: str | None = None
    number: str | None = None

    def rows(self, block: Block) -> Floats:
        """Return the rows of a block as numbers; missing cells are NaN."""
        if isinstance(block, np.ndarray):
            if block.ndim != 2 or block.dtype.kind not in "biuf":
                raise ValueError(
                    f"X must be a two-dimensional array of numbers, got {block.ndim} dimensions of "
                    f"{block.dtype}."
                )
            return np.ascontiguousarray(block, dtype=np.float64)
        if self.vector is not None:
            return _vectors(block.column(self.vector), self.vector)
        assert self.columns is not None
        absent = [name for name in self.columns if name not in block.schema.names]
        if absent:
            raise ValueError(
                f"columns {', '.join(map(repr, absent))} are missing from a partition, which has "
                f"{', '.join(map(repr, block.schema.names))}."
            )
        rows = np.empty((block.num_rows, len(self.columns)))
        for at, name in enumerate(self.columns):
            rows[:, at] = _numbers(block.column(name), name)
        return rows

    def row_numbers(self, block: Block) -> Ints:
        """Return the row numbers that the block itself has."""
        column = block.column(self.number)
        if not pa.types.is_integer(column.type) or column.null_count:
            raise ValueError(
                f"column {self.number!r} must hold the row numbers 0 to n - 1 as integers, got "
                f"{column.null_count} missing values of type {column.type}."
            )
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def _numbers(column: Any, name: str) -> Floats:
    kind = column.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    ):
        raise NotNumbersError(
            f"X must hold numbers, but column {name!r} is of type {kind}. TableDetector takes text, "
            f"categories and missing values as they are; or leave this column out."
        )
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _vectors(column: Any, name: str) -> Floats:
    lengths = pc.list_value_length(column)
    widths = pc.unique(lengths).to_pylist()
    if len(widths) != 1 or widths[0] is None:
        raise ValueError(f"vectors of column {name!r} must have one length, got {widths[:5]}.")
    return np.ascontiguousarray(_numbers(column.flatten(), name).reshape(len(column), -1))
