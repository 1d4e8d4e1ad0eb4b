"""A column of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from rankad._base.arrays import LARGEST, Bools, Floats, Ints
from rankad.columns.formats import PLAIN, NumberFormat
from rankad.columns.missing_values import missing_option
from rankad.io.errors import shown
from rankad.io.numbers import is_text, read_numbers, unread
from rankad.tables.strange_cells import (
    INDICATOR,
    INFINITE,
    MISSING_HERE,
    NEW_VALUE,
    NOT_CONSTANT,
    NOT_POSITIVE,
    LearnedColumn,
    StrangeCell,
    any_word_counts,
    no_number,
    not_remembered,
    strange_cells,
)

_NONE: Ints = np.empty(0, dtype=np.int64)
# A few distinct values, each in several of this many rows, are all that there are.
_MOST_VALUES, _ENOUGH_FOR_VALUES = 30, 50
# This many rows show that values do not change sign, if the mean is within so many deviations of zero.
_ENOUGH_FOR_SIGN, _NEAR_ZERO = 100, 2.0


@dataclass(frozen=True)
class NumberColumn:
    """Numbers: ``(value - center) / scale``; the median and an indicator where a value is missing.

    Examples
    --------
    >>> column = NumberColumn.learn(pl.Series("x", ["1,5", "2,5"] * 9), format=NumberFormat(",")).column
    >>> column.read(pl.Series(["3,25", "oops"]))
    array([3.25,  nan])
    """

    kind: ClassVar[str] = "number"
    name: str
    median: float  # of nominal values; it stands for missing and strange ones
    center: float
    scale: float
    missing: bool  # whether nominal rows had missing values, so that there is an indicator
    constant: bool  # whether all nominal values are the same; any other is strange
    format: NumberFormat = PLAIN  # how numbers are written in text
    odd_words: tuple[str, ...] = ()  # words in nominal cells that count as missing
    values: tuple[float, ...] = ()  # all nominal values, if few and frequent; any other is strange
    # "positive" or "not negative" if all nominal values are, and some close to zero; others are strange.
    wall: str = ""
    any_word: bool = False  # whether any other word counts as missing too, or else is strange

    @classmethod
    def learn(
        cls,
        series: pl.Series,
        format: NumberFormat = PLAIN,
        odd_words: tuple[str, ...] = (),
        min_count: int = 5,
    ) -> LearnedColumn:
        """Learn from nominal cells, of which at least one is a number."""
        values = _read(series, format)
        _check_size(series, values)
        absent = np.isnan(values)
        seen = np.flatnonzero(~absent)
        present = values[seen]
        low, high = float(present.min()), float(present.max())
        ends = [np.flatnonzero(present == end) for end in (low, high)]
        constant = low == high
        center = low if constant else float(present.mean())
        spread = 0.0 if constant else _deviation(present - center)
        median = low if constant else float(np.median(present))
        known, outlier = _few_values(present, min_count)
        sign, other_sign = _sign(present, center, spread)
        singletons = [seen[outlier], seen[other_sign]]
        if seen.size == values.size - 1:
            singletons.append(np.flatnonzero(absent))
        if seen.size == 1:
            singletons.append(seen)
        elif not constant and ends[0].size + ends[1].size == seen.size:
            # Left out, the only row of one of two values would be strange to a constant.
            singletons += [seen[end] for end in ends if end.size == 1]
        column = cls(series.name, median, center, spread or 1.0, bool(absent.any()), constant)
        column = replace(column, format=format, odd_words=odd_words, values=known, wall=sign)
        any_word, single_words = any_word_counts(series, odd_words, column._unreadable(series, values))
        singletons.append(single_words)
        return LearnedColumn(replace(column, any_word=any_word), np.unique(np.concatenate(singletons)))

    @property
    def width(self) -> int:
        """How many encoded columns there are."""
        return 1 + self.missing

    @property
    def plainly_written(self) -> bool:
        """Whether any parser reads its text as the same numbers."""
        return self.format == PLAIN and not self.odd_words and not self.any_word

    def read(self, series: pl.Series) -> Floats:
        """Return cells as numbers, NaN where one is missing or unreadable."""
        return _read(series, self.format)

    def cells(self, series: pl.Series) -> list[Any]:
        """Return the cells for display: numbers, or unreadable text."""
        values = self.read(series)
        cells: list[Any] = [None if math.isnan(value) else value for value in values.tolist()]
        for row in self._unreadable(series, values):
            cells[row] = series[int(row)]
        return cells

    def _unreadable(self, series: pl.Series, values: Floats) -> Ints:
        """Return the rows whose text is neither a number nor counts as missing."""
        if self.any_word or not is_text(series.dtype):
            return _NONE
        return not_remembered(series, unread(series, values), self.odd_words)

    def encode(self, series: pl.Series, out: Floats) -> list[StrangeCell]:
        """Write n cells into `out`, of shape (n, width), and return the strange ones."""
        values = self.read(series)
        strange: list[StrangeCell] = []
        if self.missing:
            out[:, 1] = np.isnan(values) * INDICATOR
        odd = np.zeros(len(values), dtype=np.bool_)
        if not np.isfinite(values).all():
            absent, odd = np.isnan(values), np.isinf(values)
            strange += strange_cells(series, np.flatnonzero(odd), INFINITE)
            wrong = self._unreadable(series, values)
            strange += strange_cells(series, wrong, no_number(self.format.describe()))
            if not self.missing:
                absent[wrong] = False
                strange += strange_cells(series, np.flatnonzero(absent), MISSING_HERE)
            odd |= np.isnan(values)
        for unseen, what in self._unseen(values):
            unseen &= ~odd
            strange += strange_cells(series, np.flatnonzero(unseen), what)
            odd |= unseen
        if odd.any():
            values = np.where(odd, self.median, values)
        if self.center != 0 or self.scale != 1:
            with np.errstate(over="ignore"):
                values = np.clip((values - self.center) / self.scale, -LARGEST, LARGEST)
        out[:, 0] = values
        return strange

    def _unseen(self, values: Floats) -> list[tuple[Bools, str]]:
        """Return masks of values that no nominal row has, each with the reason."""
        unseen = []
        if self.constant:
            unseen.append((values != self.median, NOT_CONSTANT))
        elif self.values:
            unseen.append((~np.isin(values, self.values), NEW_VALUE))
        if self.wall:
            unseen.append((values <= 0 if self.wall == "positive" else values < 0, NOT_POSITIVE))
        return unseen

    def decode(self, encoded: Floats) -> pl.Series:
        """Return the numbers that encoded cells stand for, up to rounding."""
        values = encoded[:, 0]
        if self.center != 0 or self.scale != 1:
            values = _rounded(values * self.scale + self.center, max(abs(self.center), self.scale))
        series = pl.Series(self.name, values, dtype=pl.Float64)
        if self.missing:
            series = series.set(pl.Series(encoded[:, 1] > INDICATOR / 2), None)
        return series

    def describe(self) -> str:
        """Say in one line what the column became."""
        if self.constant:
            what = f"always {self.median:g}, any other value is strange"
        elif self.center != 0 or self.scale != 1:
            what = f"a number, standardized (mean {self.center:.4g}, standard deviation {self.scale:.4g})"
        else:
            what = "a number, as it is"
        if written := self.format.describe():
            what += f", {written}"
        if self.values:
            few = ", ".join(f"{value:g}" for value in self.values[:5]) + (" ..." if self.values[5:] else "")
            what += f"; one of {len(self.values)} values ({few}), any other is strange"
        elif self.wall:
            what += f"; always {self.wall}, else strange"
        missing = "missing is strange"
        if self.missing:
            missing = f"missing becomes {self.median:.4g} (the median) and an indicator"
        if self.odd_words:
            missing += f"; {', '.join(map(shown, self.odd_words[:3]))} count as missing"
            missing += ", and any other word" if self.any_word else ""
        return f"{self.name}: {what}; {missing}"


def _few_values(present: Floats, min_count: int) -> tuple[tuple[float, ...], Ints]:
    """Return the values of a column if they are few and frequent, or else the one row that prevents it."""
    if present.size < _ENOUGH_FOR_VALUES or np.unique(present[:1000]).size > _MOST_VALUES + 1:
        return (), _NONE
    distinct, counts = np.unique(present, return_counts=True)
    rare = np.flatnonzero(counts < max(min_count, 2))
    if not 2 <= distinct.size - rare.size <= _MOST_VALUES or rare.size > 1:
        return (), _NONE
    if not rare.size:
        return tuple(distinct.tolist()), _NONE
    prevented = counts[rare[0]] == 1 and present.size > _ENOUGH_FOR_VALUES
    return (), np.flatnonzero(present == distinct[rare[0]]) if prevented else _NONE


def _sign(present: Floats, mean: float, spread: float) -> tuple[str, Ints]:
    """Return the sign of all values that come close to zero, and the one row that has another."""
    if present.size < _ENOUGH_FOR_SIGN or mean >= _NEAR_ZERO * spread:
        return "", _NONE
    negative, zero = np.flatnonzero(present < 0), np.flatnonzero(present == 0)
    sign = "" if negative.size else "not negative" if zero.size else "positive"
    other = negative if negative.size else zero
    return sign, other if other.size == 1 else _NONE


def _read(series: pl.Series, format: NumberFormat) -> Floats:
    if format == PLAIN or not is_text(series.dtype):
        return read_numbers(series)
    return format.read(series.cast(pl.String)).to_numpy()


def _deviation(centered: Floats) -> float:
    """Return the standard deviation of numbers whose squares may underflow."""
    largest = float(np.abs(centered).max())
    return largest * math.sqrt(float(np.square(centered / largest).mean())) if largest else 0.0


def _check_size(series: pl.Series, values: Floats) -> None:
    """Raise if a nominal value is infinite, or so large that squares overflow."""
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(np.abs(values) > LARGEST)
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(
            f"column {series.name!r} has {shown(series[row])} in data row {row + 1:,} (the first row is 1); "
            f"normal numbers must lie within {LARGEST:g} of zero. Drop the row, use "
            f"{missing_option(series.name, str(series[row]))} if it marks a missing value, or divide the "
            f"column by a constant."
        )


def _rounded(values: Floats, size: float) -> Floats:
    """Round away the error of standardizing numbers of that size and back."""
    decimals = 14 - math.ceil(math.log10(size))
    # Larger powers of ten are not exact.
    return np.round(values, decimals) if -22 <= decimals <= 22 else values
