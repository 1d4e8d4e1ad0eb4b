"""A column of numbers, and what becomes of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import LARGEST, Bools, Floats, Ints
from rankad.columns.formats import PLAIN, NumberFormat
from rankad.columns.stand_ins import missing_option
from rankad.io.errors import shown
from rankad.io.numbers import is_text, read_numbers, unread
from rankad.tables.strange import (
    INDICATOR,
    INFINITE,
    MISSING_HERE,
    NEW_VALUE,
    NOT_CONSTANT,
    NOT_POSITIVE,
    Learned,
    Strange,
    no_number,
    single_words,
    strange_cells,
)

__all__ = ["NumberColumn"]

# Few values, each in several rows, of so many rows at least, are all that there are.
_MOST_VALUES, _ENOUGH_FOR_VALUES = 30, 50
# So many rows show that zero is never passed, where the mean is within so many standard deviations of it.
_ENOUGH_FOR_WALL, _NEAR_ZERO = 100, 2.0


@dataclass(frozen=True)
class NumberColumn:
    """Numbers: ``(value - center) / scale``; the median and an indicator where a value is missing.

    Attributes
    ----------
    name : str
    median : float
        Of the nominal values; it stands for missing and strange ones.
    center, scale : float
    missing : bool
        Whether nominal rows had missing values, so that there is an indicator.
    constant : bool
        Whether all nominal values are the same: any other is strange.
    format : NumberFormat
        How they are written in text.
    odd_words : tuple of str
        Words in nominal cells that are not numbers; they count as missing.
    any_word : bool
        Whether any other word counts as missing, too, as nominal rows had many; else it is strange.
    values : tuple of float
        All nominal values, ascending, where they are few and each is frequent: any other is strange.
    wall : {"", "positive", "not negative"}
        The sign of all nominal values, where they come close to zero and never pass it: others are strange.

    Examples
    --------
    >>> column = NumberColumn.learn(pl.Series("x", ["1,5", "2,5"] * 9), format=NumberFormat(",")).column
    >>> column.read(pl.Series(["3,25", "oops"]))
    array([3.25,  nan])
    """

    kind: ClassVar[str] = "number"
    name: str
    median: float
    center: float
    scale: float
    missing: bool
    constant: bool
    format: NumberFormat = PLAIN
    odd_words: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    wall: str = ""
    any_word: bool = False

    @classmethod
    def learn(
        cls,
        series: pl.Series,
        *,
        format: NumberFormat = PLAIN,
        odd_words: tuple[str, ...] = (),
        min_count: int = 5,
    ) -> Learned:
        """Learn from nominal cells, of which at least one is a number."""
        values = _read(series, format)
        _check_size(series, values)
        absent = np.isnan(values)
        seen = np.flatnonzero(~absent)
        present = values[seen]
        low, high = float(present.min()), float(present.max())
        n_low, n_high = int(np.count_nonzero(present == low)), int(np.count_nonzero(present == high))
        constant = low == high
        alone = [seen[:0]]
        if seen.size == values.size - 1:
            alone.append(np.flatnonzero(absent))
        if seen.size == 1:
            alone.append(seen)
        elif not constant and n_low + n_high == seen.size:
            alone += [seen[present == end] for end, n in ((low, n_low), (high, n_high)) if n == 1]
        center = low if constant else float(present.mean())
        spread = 0.0 if constant else _deviation(present - center)
        median = low if constant else float(np.median(present))
        known = _Values.of(present, min_count)
        wall = _Wall.of(present, center, spread)
        alone += [seen[known.alone], seen[wall.alone]]
        column = cls(
            series.name,
            median,
            center,
            spread or 1.0,
            seen.size < values.size,
            constant,
            format,
            odd_words,
            known.values,
            wall.sign,
        )
        words = single_words(series, odd_words, column._unreadable(series, values))
        alone.append(words.alone)
        return Learned(replace(column, any_word=words.any_word), np.unique(np.concatenate(alone)))

    @property
    def width(self) -> int:
        """How many encoded columns there are."""
        return 1 + self.missing

    @property
    def plainly_written(self) -> bool:
        """Whether any parser reads its text as the same numbers."""
        return self.format == PLAIN and not self.odd_words and not self.any_word

    def read(self, series: pl.Series) -> Floats:
        """Return cells as numbers, NaN where one is missing or is no number."""
        return _read(series, self.format)

    def cells(self, series: pl.Series) -> list[Any]:
        """Return the cells as they are shown: numbers, but for what is none."""
        values = self.read(series)
        shown: list[Any] = [None if math.isnan(value) else value for value in values.tolist()]
        for row in self._unreadable(series, values):
            shown[row] = series[int(row)]
        return shown

    def _unreadable(self, series: pl.Series, values: Floats) -> Ints:
        """Return the rows whose text is neither a number nor a word for a missing one."""
        if self.any_word or not is_text(series.dtype):
            return np.empty(0, dtype=np.int64)
        rows = unread(series, values)
        if rows.size and self.odd_words:
            rows = rows[~series.cast(pl.String).gather(rows).is_in(self.odd_words).to_numpy()]
        return rows

    def encode(self, series: pl.Series, out: Floats) -> list[Strange]:
        """Write n cells into `out`, of shape (n, width), and return the strange ones."""
        values = self.read(series)
        strange: list[Strange] = []
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
        """Return which values are such as no nominal row has, and in what respect."""
        found = []
        if self.constant:
            found.append((values != self.median, NOT_CONSTANT))
        elif self.values:
            found.append((~np.isin(values, self.values), NEW_VALUE))
        if self.wall:
            beyond = values <= 0 if self.wall == "positive" else values < 0
            if beyond.any():
                found.append((beyond, NOT_POSITIVE))
        return found

    def decode(self, encoded: Floats) -> pl.Series:
        """Return the numbers that encoded cells stand for, but for what standardizing has rounded."""
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
        missing = (
            f"missing becomes {self.median:.4g} (the median) and an indicator"
            if self.missing
            else "missing is strange"
        )
        if self.odd_words:
            missing += f"; {', '.join(map(shown, self.odd_words[:3]))} count as missing"
            missing += ", and any other word" if self.any_word else ""
        return f"{self.name}: {what}; {missing}"

    def to_dict(self) -> dict[str, Any]:
        """Return what can be written as JSON."""
        stored = asdict(self) | {"odd_words": list(self.odd_words), "values": list(self.values)}
        return {"kind": self.kind, **stored}


class _Values(NamedTuple):
    """The values of a column, where they are few and frequent, and the one row that keeps them from it."""

    values: tuple[float, ...]
    alone: Ints

    @classmethod
    def of(cls, present: Floats, min_count: int) -> _Values:
        none = cls((), np.empty(0, dtype=np.int64))
        if present.size < _ENOUGH_FOR_VALUES or np.unique(present[:1000]).size > _MOST_VALUES + 1:
            return none
        different, counts = np.unique(present, return_counts=True)
        rare = np.flatnonzero(counts < max(min_count, 2))
        if not 2 <= different.size - rare.size <= _MOST_VALUES or rare.size > 1:
            return none
        if not rare.size:
            return cls(tuple(different.tolist()), none.alone)
        if counts[rare[0]] == 1 and present.size > _ENOUGH_FOR_VALUES:
            return cls((), np.flatnonzero(present == different[rare[0]]))
        return none


class _Wall(NamedTuple):
    """The sign of all values that come close to zero, and the one row that has another."""

    sign: str
    alone: Ints

    @classmethod
    def of(cls, present: Floats, mean: float, spread: float) -> _Wall:
        none = cls("", np.empty(0, dtype=np.int64))
        if present.size < _ENOUGH_FOR_WALL or mean >= _NEAR_ZERO * spread:
            return none
        negative, zero = present < 0, present == 0
        n_negative, n_zero = np.count_nonzero(negative), np.count_nonzero(zero)
        sign = "" if n_negative else "not negative" if n_zero else "positive"
        odd = negative if n_negative else zero
        alone = np.flatnonzero(odd) if np.count_nonzero(odd) == 1 else none.alone
        return cls(sign, alone)


def _read(series: pl.Series, format: NumberFormat) -> Floats:
    if format == PLAIN or not is_text(series.dtype):
        return read_numbers(series)
    return format.read(series.cast(pl.String)).to_numpy()


def _deviation(centered: Floats) -> float:
    """Return the standard deviation of numbers whose squares may be too small to be told from zero."""
    largest = float(np.abs(centered).max())
    return largest * math.sqrt(float(np.square(centered / largest).mean())) if largest else 0.0


def _check_size(series: pl.Series, values: Floats) -> None:
    """Raise where a nominal value is infinite, or so large that squares overflow."""
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(np.abs(values) > LARGEST)
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(
            f"column {series.name!r} has {shown(series[row])} in data row {row + 1:,} (the first row is 1); "
            f"nominal numbers must lie within {LARGEST:g} of zero. Drop the row, say "
            f"{missing_option(series.name, str(series[row]))} if it stands for a missing value, or divide "
            f"the column by a constant."
        )


def _rounded(values: Floats, size: float) -> Floats:
    """Round away what standardizing numbers of that size and back has put off."""
    decimals = 14 - math.ceil(math.log10(size))
    # Beyond these, powers of ten are no longer exact.
    return np.round(values, decimals) if -22 <= decimals <= 22 else values
