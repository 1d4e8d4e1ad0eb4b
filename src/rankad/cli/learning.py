"""A table read as a whole, to learn from."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from rankad.cli.screen import Meter
from rankad.detectors import RankAD
from rankad.detectors.table import TableDetector
from rankad.io.files import check_unpacked, held_bytes, open_table
from rankad.io.numbers import parse
from rankad.scoring.batches import warn_of_unused
from rankad.tables.frames import Untyped

__all__ = ["Whole", "read_whole"]


class Whole(NamedTuple):
    """All of a table.

    Attributes
    ----------
    frame : polars DataFrame
    typed : bool
        Whether columns have types; those of CSV are text.
    name, format : str
    delimiter : str or None
    """

    frame: pl.DataFrame
    typed: bool
    name: str
    format: str
    delimiter: str | None

    @property
    def rows(self) -> pl.DataFrame | Untyped:
        """The rows to learn from."""
        return self.frame if self.typed else Untyped(self.frame)

    def detector(
        self,
        inner: RankAD,
        *,
        ids: list[str] | None,
        drop: list[str] | None,
        numbers: list[str] | None,
        categories: list[str] | None,
        times: list[str] | None,
        missing: list[str] | None,
        **how: Any,
    ) -> TableDetector:
        """Return a detector that is told of columns by the names that were given on the command line."""
        return TableDetector(
            inner,
            ids=self._split(ids),
            drop=self._split(drop),
            numbers=self._split(numbers),
            categories=self._split(categories),
            times=self._split(times),
            missing=self._by_column(missing),
            **how,
        )

    def _split(self, names: list[str] | None) -> list[str]:
        """Return names of columns, those with commas split unless a column is called just so."""
        there = set(self.frame.columns)
        return [
            part.strip()
            for name in names or []
            for part in ([name] if name in there or "," not in name else name.split(","))
            if part.strip()
        ]

    def _by_column(self, given: list[str] | None) -> dict[str | None, list[str]]:
        """Return values that stand for missing ones by column, None for all, from VALUE or COLUMN=VALUE."""
        there = set(self.frame.columns)
        found: dict[str | None, list[str]] = {}
        for each in given or []:
            # A name may have such a sign itself, and so may a value.
            signs = [at for at, letter in enumerate(each) if letter == "=" and at]
            end = next((at for at in signs if each[:at] in there), signs[0] if signs else None)
            column, value = (None, each) if end is None else (each[:end], each[end + 1 :])
            found.setdefault(column, []).append(value)
        return found


def read_whole(table: str, meter: Meter, **how: str | None) -> Whole:
    """Read all of a table."""
    with open_table(table, **how) as reader:  # type: ignore[arg-type]
        warn_of_unused(reader)
        if reader.unit == "rows" and reader.total is not None and 0 < reader.total < RankAD._least_rows:
            # Before any column is looked at, of which there may be a million.
            raise ValueError(
                f"{reader.name} has {reader.total} rows, and RankAD needs {RankAD._least_rows} or more to "
                f"learn from."
            )
        frames, held = [], 0
        meter.reading(reader, "Reading")
        for frame in reader:
            # Polars sets memory aside for rows to come, which is much where few rows have many columns.
            wide = frame.width > frame.height
            frames.append(frame.shrink_to_fit() if wide else frame)
            held += held_bytes(frame)
            check_unpacked(table, held)
            meter.reading(reader, "Reading")
        if not frames:
            raise ValueError(f"{reader.name} has column names but no rows; there is nothing to learn from.")
        frame = pl.concat(frames, how="vertical_relaxed")
    if not reader.typed:
        _warn_of_no_header(reader.name, frame.columns)
        _warn_of_one_column(reader.name, frame)
    return Whole(frame, reader.typed, reader.name, reader.format, reader.delimiter)


def _warn_of_no_header(table: str, names: Sequence[str]) -> None:
    """Say that the first line may be a row, if most column names are numbers."""
    values = parse(pl.Series("names", names, dtype=pl.String))
    numbers = [name for name, value in zip(names, values, strict=True) if math.isfinite(value)]
    if 2 * len(numbers) >= len(names):
        warnings.warn(
            f"column names of {table} look like a row ({', '.join(map(repr, numbers[:3]))}): its first line "
            f"must name the columns. If it does not, write such a line before it.",
            stacklevel=2,
        )


def _warn_of_one_column(table: str, frame: pl.DataFrame) -> None:
    """Say that the only column may be several, if its name and its cells have as many of some separator."""
    if frame.width > 1:
        return
    name = frame.columns[0].strip()
    cells = frame.to_series().drop_nulls().head(100).str.strip_chars()
    for mark in ",;|^~: \t":
        if mark in name and (cells.str.count_matches(mark, literal=True) == name.count(mark)).all():
            warnings.warn(
                f"{table} has one column only, {name!r}, and every cell has as many {mark!r} as its name: if "
                f"that is what separates columns, say --delimiter {mark!r}.",
                stacklevel=2,
            )
            return
