"""A table read as a whole, to learn from."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from rankad.cli.console import Meter
from rankad.cli.options import Learning, Reading
from rankad.detectors import RankAD
from rankad.detectors.table import TableDetector
from rankad.io.numbers import parse
from rankad.io.table_files import check_unpacked, held_bytes
from rankad.scoring.batches import frames_of, warn_of_unused
from rankad.tables.frames import Untyped


class WholeTable(NamedTuple):
    """All rows of a table; `typed` tells whether columns have types, which those of CSV do not."""

    frame: pl.DataFrame
    typed: bool
    name: str
    format: str
    delimiter: str | None

    @property
    def rows(self) -> pl.DataFrame | Untyped:
        """The rows to learn from."""
        return self.frame if self.typed else Untyped(self.frame)

    def detector(self, inner: RankAD, learning: Learning) -> TableDetector:
        """Return a detector with the columns that were named on the command line."""
        return TableDetector(
            inner,
            ids=self._split(learning.ids),
            drop=self._split(learning.drop),
            numbers=self._split(learning.numbers),
            categories=self._split(learning.categories),
            times=self._split(learning.times),
            missing=self._by_column(learning.missing),
            decimal=learning.decimal,
            day_first=learning.day_first,
            min_count=learning.min_count,
        )

    def _split(self, names: list[str] | None) -> list[str]:
        """Return column names, split at commas unless a column has that very name."""
        there = set(self.frame.columns)
        return [
            part.strip()
            for name in names or []
            for part in ([name] if name in there or "," not in name else name.split(","))
            if part.strip()
        ]

    def _by_column(self, given: list[str] | None) -> dict[str | None, list[str]]:
        """Return values that mean missing, from VALUE or COLUMN=VALUE, by column; None is all columns."""
        there = set(self.frame.columns)
        by_column: dict[str | None, list[str]] = {}
        for each in given or []:
            # Names and values may contain equals signs, too.
            signs = [at for at, letter in enumerate(each) if letter == "=" and at]
            end = next((at for at in signs if each[:at] in there), signs[0] if signs else None)
            column, value = (None, each) if end is None else (each[:end], each[end + 1 :])
            by_column.setdefault(column, []).append(value)
        return by_column


def read_whole(table: str, reading: Reading, meter: Meter) -> WholeTable:
    """Read all of a table."""
    with reading.open(table) as reader:
        warn_of_unused(reader)
        if reader.unit == "rows" and reader.total is not None and 0 < reader.total < RankAD._least_rows:
            # Before any column is looked at: there may be a million.
            raise ValueError(
                f"{reader.name} has {reader.total} rows, and RankAD needs {RankAD._least_rows} or more to "
                f"learn from. Give a table of more normal rows."
            )
        frames, held = [], 0
        for frame in frames_of(reader, "Reading", meter.reading):
            # Polars reserves memory for more rows, which is much for few rows of many columns.
            frames.append(frame.shrink_to_fit() if frame.width > frame.height else frame)
            held += held_bytes(frame)
            check_unpacked(table, held)
        if not frames:
            raise ValueError(f"{reader.name} has column names but no rows; there is nothing to learn from.")
        frame = pl.concat(frames, how="vertical_relaxed")
    if not reader.typed:
        _warn_of_no_header(reader.name, frame.columns)
        _warn_of_one_column(reader.name, frame)
    return WholeTable(frame, reader.typed, reader.name, reader.format, reader.delimiter)


def _warn_of_no_header(table: str, names: Sequence[str]) -> None:
    """Warn that the first line may be a row, if most column names are numbers."""
    values = parse(pl.Series("names", names, dtype=pl.String))
    numbers = [name for name, value in zip(names, values, strict=True) if math.isfinite(value)]
    if 2 * len(numbers) >= len(names):
        warnings.warn(
            f"the column names of {table} look like a row ({', '.join(map(repr, numbers[:3]))}): its first "
            f"line must name the columns. If it does not, add such a line above it.",
            stacklevel=2,
        )


def _warn_of_one_column(table: str, frame: pl.DataFrame) -> None:
    """Warn that the only column may be several, if its name and cells contain as many of some separator."""
    if frame.width > 1:
        return
    name = frame.columns[0].strip()
    cells = frame.to_series().drop_nulls().head(100).str.strip_chars()
    for mark in ",;|^~: \t":
        if mark in name and (cells.str.count_matches(mark, literal=True) == name.count(mark)).all():
            warnings.warn(
                f"{table} has only one column, {name!r}, and every cell contains as many {mark!r} as its "
                f"name: if that separates the columns, give --delimiter {mark!r}.",
                stacklevel=2,
            )
            return
