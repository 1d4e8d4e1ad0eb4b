"""A column of times: hour, weekday and season, each encoded as a point on a circle."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.columns.inferred import ColumnWarning
from rankad.columns.missing_values import without_likely_marker
from rankad.columns.times import TimeFormat, fractions, label, parts_of
from rankad.columns.words import has_value
from rankad.io.errors import TableError
from rankad.io.numbers import is_text
from rankad.tables.strange_cells import (
    INDICATOR,
    MISSING_HERE,
    NO_CLOCK,
    NO_TIME,
    LearnedColumn,
    StrangeCell,
    any_word_counts,
    not_remembered,
    strange_cells,
)

_TURN = 2 * math.pi


@dataclass(frozen=True)
class TimeColumn:
    """Times: sine and cosine of the hour of the day, the weekday and the day of the year.

    Never the time itself, since new rows are later than all nominal ones, and only parts that vary and whose
    cycle nominal rows span.

    Examples
    --------
    >>> cells = [f"2024-{month:02d}-01 0{month % 3}:30" for month in range(1, 13)]
    >>> column = TimeColumn.learn(pl.Series("t", cells), TimeFormat(("ymd",))).column
    >>> column.parts, column.cells(pl.Series(["2025-03-01 12:00"]))
    (('hour', 'weekday'), ['12:00, Saturday'])
    """

    kind: ClassVar[str] = "time"
    name: str
    parts: tuple[str, ...]  # those of "hour", "weekday" and "month" that are learned from
    missing: bool  # whether nominal rows had missing values, so that there is an indicator
    format: TimeFormat
    odd_words: tuple[str, ...] = ()  # words in nominal cells that count as missing
    any_word: bool = False  # whether any other word counts as missing too, or else is strange
    bare_dates: bool = True  # whether dates without a time of day are allowed, if hours are learned from
    zone: str = ""  # the time zone of nominal times; "" if they were without one

    @classmethod
    def learn(cls, series: pl.Series, format: TimeFormat, odd_words: tuple[str, ...] = ()) -> LearnedColumn:
        """Learn from nominal cells, of which at least one is a time."""
        zone = series.dtype.time_zone if isinstance(series.dtype, pl.Datetime) else None
        times = format.read(series)
        absent = np.flatnonzero(times.is_null().to_numpy())
        column = cls(series.name, parts_of(without_likely_marker(times)), absent.size > 0, format, odd_words)
        any_word, single_words = any_word_counts(series, odd_words, column._unreadable(series, times))
        bare = column._bare_dates(series, times)
        singletons = [single_words, *(rows for rows in (absent, bare) if rows.size == 1)]
        column = replace(column, any_word=any_word, bare_dates=bare.size > 0, zone=zone or "")
        return LearnedColumn(column, np.unique(np.concatenate(singletons)))

    @property
    def width(self) -> int:
        """How many encoded columns there are."""
        return 2 * len(self.parts) + (self.missing and bool(self.parts))

    def times(self, series: pl.Series) -> pl.Series:
        """Return cells as times on the wall clock, null where one is missing or unreadable.

        Times with a zone are brought to that of nominal times, if these had one.
        """
        kind = series.dtype
        if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Boolean) or isinstance(kind, pl.Duration):
            raise TableError(
                f"column {series.name!r} must hold times, as it did when the detector was fitted, but is of "
                f"type {kind}; turn it into times."
            )
        zone = kind.time_zone if isinstance(kind, pl.Datetime) else None
        if self.zone and zone not in (None, self.zone):
            series = series.dt.convert_time_zone(self.zone)
        return self.format.read(series)

    def cells(self, series: pl.Series) -> list[Any]:
        """Return the cells for display: the parts that matter, or unreadable text."""
        times = self.times(series)
        parts = fractions(times)
        cells: list[Any] = [
            ", ".join(label(part, parts[part][row]) for part in self.parts)
            if self.parts and not math.isnan(parts["hour"][row])
            else None
            for row in range(len(series))
        ]
        for row in self._unreadable(series, times):
            cells[row] = series[int(row)]
        return cells

    def _warn_of_zone(self, series: pl.Series) -> None:
        """Warn of times in a zone where nominal times had none, if hours are learned from."""
        zone = series.dtype.time_zone if isinstance(series.dtype, pl.Datetime) else None
        if zone and not self.zone and "hour" in self.parts:
            warnings.warn(
                f"column {series.name!r} has times in the zone {zone}, and those of normal rows had none: "
                f"hours are taken as the clock of {zone} shows them. If normal rows had another clock, "
                f"convert the column to it.",
                ColumnWarning,
                stacklevel=2,
            )

    def _unreadable(self, series: pl.Series, times: pl.Series) -> Ints:
        if self.any_word:
            return np.empty(0, dtype=np.int64)
        rows = np.flatnonzero((times.is_null() & has_value(series)).to_numpy())
        return not_remembered(series, rows, self.odd_words)

    def _bare_dates(self, series: pl.Series, times: pl.Series) -> Ints:
        """Return the rows with a date and no time of day, if hours are learned from."""
        numeric = self.format.epoch or {"compact", "clock"} & set(self.format.orders)
        if "hour" not in self.parts or numeric or not (series.dtype == pl.Date or is_text(series.dtype)):
            return np.empty(0, dtype=np.int64)
        bare = ~series.cast(pl.String).str.contains(":", literal=True)
        return np.flatnonzero((bare.fill_null(False) & times.is_not_null()).to_numpy())

    def encode(self, series: pl.Series, out: Floats) -> list[StrangeCell]:
        """Write n cells into `out`, of shape (n, width), and return the strange ones."""
        self._warn_of_zone(series)
        times = self.times(series)
        absent = times.is_null().to_numpy()
        wrong = self._unreadable(series, times)
        strange = strange_cells(series, wrong, NO_TIME)
        if not self.bare_dates:
            strange += strange_cells(series, self._bare_dates(series, times), NO_CLOCK)
        if not self.missing:
            gone = absent.copy()
            gone[wrong] = False
            strange += strange_cells(series, np.flatnonzero(gone), MISSING_HERE)
        parts = fractions(times)
        for at, part in enumerate(self.parts):
            angle = _TURN * np.where(absent, 0.0, parts[part])
            out[:, 2 * at] = np.where(absent, 0.0, np.cos(angle))
            out[:, 2 * at + 1] = np.where(absent, 0.0, np.sin(angle))
        if self.missing and self.parts:
            out[:, -1] = absent * INDICATOR
        return strange

    def decode(self, encoded: Floats) -> pl.Series:
        """Return in words the hours, weekdays and months that encoded cells are nearest to."""
        angles = [np.arctan2(encoded[:, 2 * at + 1], encoded[:, 2 * at]) for at in range(len(self.parts))]
        words: list[str | None] = [
            ", ".join(
                label(part, float(angle[row] / _TURN % 1.0))
                for part, angle in zip(self.parts, angles, strict=True)
            )
            for row in range(len(encoded))
        ]
        text = pl.Series(self.name, words if self.parts else [None] * len(encoded), dtype=pl.String)
        if self.missing and self.parts:
            text = text.set(pl.Series(encoded[:, -1] > INDICATOR / 2), None)
        return text

    def describe(self) -> str:
        """Say in one line what the column became."""
        zone = f"on the clock of {self.zone}" if self.zone else ""
        what = ", ".join(filter(None, ["a time", self.format.describe(), zone]))
        if self.parts:
            names = {"hour": "hour of the day", "weekday": "weekday", "month": "season"}
            what += f"; learned from: {', '.join(names[part] for part in self.parts)}"
        else:
            what += "; not learned from, as the rows span no whole cycle of it"
        present = "missing has an indicator" if self.parts else "missing is allowed"
        return f"{self.name}: {what}; {present if self.missing else 'missing is strange'}"
