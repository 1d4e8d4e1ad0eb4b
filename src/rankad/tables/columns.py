"""One column of a table, and the numbers it becomes.

Each kind of column learns from nominal cells, encodes others, and says which cells are *strange*: no nominal
row had any like them, so that no number can stand for them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from rankad._arrays import LARGEST, Floats, Ints
from rankad.tables.errors import shown
from rankad.tables.numbers import parse, read_numbers, unread
from rankad.tables.words import TRUE_OR_FALSE, all_booleans, has_value, read_words

__all__ = ["CategoryColumn", "Column", "EmptyColumn", "Learned", "NumberColumn", "Strange"]

# Two rows of different categories are at distance one.
_INDICATOR = math.sqrt(0.5)
_OTHER = "(other)"
_BOOLEANS: dict[str | None, bool] = {"true": True, "false": False}
# More categories than these are not told apart: every one is a column to score.
_MOST_CATEGORIES = 100

MISSING_HERE = "missing, but in no nominal row"
INFINITE = "infinite"
NOT_CONSTANT = "other than the one value of all nominal rows"
NEW_CATEGORY = "not among the categories of nominal rows"
NOT_EMPTY = "a value, but missing in all nominal rows"


class Strange(NamedTuple):
    """A cell such as no nominal row has.

    Attributes
    ----------
    row : int
        Counted from 0 in the table that was encoded.
    column : str
    what : str
        Why it is strange, to be read after the value.
    value : Any
        The cell as it came; None where it is missing.
    """

    row: int
    column: str
    what: str
    value: Any


class Learned(NamedTuple):
    """A column as learned, and the nominal rows that would be strange had they not been there."""

    column: Column
    alone: Ints


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
    """

    kind: ClassVar[str] = "number"
    name: str
    median: float
    center: float
    scale: float
    missing: bool
    constant: bool

    @classmethod
    def learn(cls, series: pl.Series) -> Learned:
        """Learn from nominal cells, of which at least one is a number."""
        values = read_numbers(series)
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
        column = cls(series.name, median, center, spread or 1.0, seen.size < values.size, constant)
        return Learned(column, np.unique(np.concatenate(alone)))

    @property
    def width(self) -> int:
        """How many encoded columns there are."""
        return 1 + self.missing

    def cells(self, series: pl.Series) -> list[Any]:
        """Return the cells as they are shown."""
        return [None if math.isnan(value) else value for value in read_numbers(series).tolist()]

    def encode(self, series: pl.Series, out: Floats, first_row: int) -> list[Strange]:
        """Write n cells into `out`, of shape (n, width), and return the strange ones."""
        values = read_numbers(series, first_row)
        strange: list[Strange] = []
        if self.missing:
            out[:, 1] = np.isnan(values) * _INDICATOR
        if self.constant or not np.isfinite(values).all():
            absent, unknown = np.isnan(values), np.isinf(values)
            strange += _cells(series, np.flatnonzero(unknown), INFINITE)
            if not self.missing:
                strange += _cells(series, np.flatnonzero(absent), MISSING_HERE)
            if self.constant:
                other = (values != self.median) & ~absent & ~unknown
                strange += _cells(series, np.flatnonzero(other), NOT_CONSTANT)
                unknown |= other
            values = np.where(absent | unknown, self.median, values)
        if self.center != 0 or self.scale != 1:
            with np.errstate(over="ignore"):
                values = np.clip((values - self.center) / self.scale, -LARGEST, LARGEST)
        out[:, 0] = values
        return strange

    def decode(self, encoded: Floats) -> pl.Series:
        """Return the numbers that encoded cells stand for, but for what standardizing has rounded."""
        values = encoded[:, 0]
        if self.center != 0 or self.scale != 1:
            values = _rounded(values * self.scale + self.center, max(abs(self.center), self.scale))
        series = pl.Series(self.name, values, dtype=pl.Float64)
        if self.missing:
            series = series.set(pl.Series(encoded[:, 1] > _INDICATOR / 2), None)
        return series

    def describe(self) -> str:
        """Say in one line what the column became."""
        if self.constant:
            what = f"always {self.median:g}, any other value is strange"
        elif self.center != 0 or self.scale != 1:
            what = f"a number, standardized (mean {self.center:.4g}, standard deviation {self.scale:.4g})"
        else:
            what = "a number, as it is"
        missing = (
            f"missing becomes {self.median:.4g} (the median) and an indicator"
            if self.missing
            else "missing is strange"
        )
        return f"{self.name}: {what}; {missing}"

    def to_dict(self) -> dict[str, Any]:
        """Return what can be written as JSON."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class CategoryColumn:
    """Categories: an indicator for each that is frequent, and one for all the others, if there are any.

    Attributes
    ----------
    name : str
    categories : tuple of str or None
        Those with an indicator of their own, most frequent first; None is a missing value.
    n_other : int
        How many others nominal rows had. They share an indicator; where there were none, others are strange.
    boolean : bool
        Whether these are "true" and "false".
    """

    kind: ClassVar[str] = "category"
    name: str
    categories: tuple[str | None, ...]
    n_other: int
    boolean: bool

    @classmethod
    def learn(cls, series: pl.Series, min_count: int) -> Learned:
        """Learn from nominal cells, of which at least one is not missing."""
        boolean = series.dtype == pl.Boolean or (series.dtype == pl.String and all_booleans(series))
        text = read_words(series, known=TRUE_OR_FALSE if boolean else (), boolean=boolean)
        counted = text.value_counts(sort=True, name="rows").sort("rows", text.name, descending=[True, False])
        counts = dict(zip(counted[text.name].to_list(), counted["rows"].to_list(), strict=True))
        least = 1 if boolean else min_count
        kept = [word for word, n in counts.items() if n >= least][:_MOST_CATEGORIES]
        if not any(word is not None for word in kept):
            raise ValueError(_like_an_id(series, counts, least))
        others = [word for word in counts if word not in set(kept)]
        # Without its row, the only cell of its kind would find no indicator that it could share.
        lonely = [word for word, n in counts.items() if n == 1 and not set(others) - {word}]
        alone = (
            np.flatnonzero(text.is_in(lonely, nulls_equal=True).to_numpy()) if lonely else np.empty(0, int)
        )
        return Learned(cls(series.name, tuple(kept), len(others), boolean), alone)

    @property
    def width(self) -> int:
        """How many encoded columns there are."""
        return len(self.categories) + (self.n_other > 0)

    def words(self, series: pl.Series) -> pl.Series:
        """Return the cells as words that can be found among the categories; null where missing."""
        return read_words(series, known=self.categories, boolean=self.boolean)

    def labels(self, series: pl.Series) -> list[str | None]:
        """Return what the cells are counted as: as words, or "(other)" where they share its indicator."""
        words = self.words(series)
        if self.n_other:
            words = words.set(~words.is_in(list(self.categories), nulls_equal=True), _OTHER)
        return words.to_list()

    def cells(self, series: pl.Series) -> list[Any]:
        """Return the cells as they are shown."""
        words = self.words(series).to_list()
        return [_BOOLEANS.get(word, word) for word in words] if self.boolean else words

    def encode(self, series: pl.Series, out: Floats, first_row: int) -> list[Strange]:
        """Write n cells into `out`, of shape (n, width), and return the strange ones."""
        # Most cells are words as they are known; only the others need a closer look.
        found = self._places(series) if series.dtype == pl.String else np.full(len(series), -1)
        unsure = np.flatnonzero(found < 0)
        strange: list[Strange] = []
        if unsure.size:
            words = self.words(series.gather(unsure))
            absent = words.is_null().to_numpy()
            places = self._places(words)
            if None in self.categories:
                places[absent] = self.categories.index(None)
            unseen = places < 0
            if not self.n_other:
                strange += _cells(series, unsure[unseen & absent], MISSING_HERE)
                strange += _cells(series, unsure[unseen & ~absent], NEW_CATEGORY)
            places[unseen] = len(self.categories) if self.n_other else 0
            found[unsure] = places
        out[:] = 0.0
        out[np.arange(len(found)), found] = _INDICATOR
        return strange

    def _places(self, words: pl.Series) -> Ints:
        """Return the indicator of each word, -1 where it has none or is missing."""
        known = [word for word in self.categories if word is not None]
        places = [place for place, word in enumerate(self.categories) if word is not None]
        codes = words.cast(pl.Enum(known), strict=False).to_physical().fill_null(len(known))
        return np.array([*places, -1]).take(codes.to_numpy())

    def decode(self, encoded: Floats) -> pl.Series:
        """Return the categories that encoded cells are nearest to; "(other)" for the rare ones."""
        labels = [*self.categories, _OTHER]
        text = pl.Series(self.name, [labels[i] for i in encoded.argmax(axis=1)], dtype=pl.String)
        return (text == "true") if self.boolean else text

    def describe(self) -> str:
        """Say in one line what the column became."""
        words = [shown(word) for word in self.categories if word is not None]
        named = ", ".join(words[:5]) + (f" and {len(words) - 5} more" if len(words) > 5 else "")
        what = f"{'true or false' if self.boolean else 'a category'}, one indicator each for {named}"
        if None in self.categories:
            what += " and for a missing value"
        rest = "missing or any other" if None not in self.categories else "any other"
        if self.n_other:
            return f"{self.name}: {what}, and one for the {self.n_other} rarer and for {rest}"
        return f"{self.name}: {what}; {rest} is strange"

    def to_dict(self) -> dict[str, Any]:
        """Return what can be written as JSON."""
        return {"kind": self.kind, **asdict(self), "categories": list(self.categories)}


@dataclass(frozen=True)
class EmptyColumn:
    """A column without a value in any nominal row: it becomes nothing, and any value in it is strange."""

    kind: ClassVar[str] = "empty"
    name: str
    width: ClassVar[int] = 0

    def cells(self, series: pl.Series) -> list[Any]:
        """Return the cells as they are shown."""
        return series.to_list()

    def encode(self, series: pl.Series, out: Floats, first_row: int) -> list[Strange]:
        """Return the strange cells; there is nothing to write."""
        return _cells(series, np.flatnonzero(has_value(series).to_numpy()), NOT_EMPTY)

    def decode(self, encoded: Floats) -> pl.Series:
        """Return missing values."""
        return pl.Series(self.name, [None] * len(encoded), dtype=pl.Null)

    def describe(self) -> str:
        """Say in one line what the column became."""
        return f"{self.name}: left out, as all nominal values are missing; any value is strange"

    def to_dict(self) -> dict[str, Any]:
        """Return what can be written as JSON."""
        return {"kind": self.kind, **asdict(self)}


Column: TypeAlias = NumberColumn | CategoryColumn | EmptyColumn


def _cells(series: pl.Series, rows: Ints, what: str) -> list[Strange]:
    values = [None if value != value else value for value in series.gather(rows).to_list()]
    return [Strange(int(row), series.name, what, value) for row, value in zip(rows, values, strict=True)]


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
            f"nominal numbers must lie within {LARGEST:g} of zero. Drop the row, leave the cell empty, or "
            f"divide the column by a constant."
        )


def _like_an_id(series: pl.Series, counts: dict[str | None, int], least: int) -> str:
    name = series.name
    text = series.cast(pl.String)
    words = [word for word in counts if word is not None]
    numbers = parse(text)
    hint, wrong = "", unread(text, numbers)
    if wrong.size and 2 * np.isfinite(numbers).sum() > len(series):
        at = int(wrong[0])
        hint = (
            f" Most of them are numbers, but data row {at + 1:,} (the first row is 1) has {shown(text[at])}."
        )
    return (
        f"column {name!r} has {len(words):,} different values in {len(series):,} rows, none of them in as "
        f"many as {least} rows, so it says nothing about new rows.{hint} If it names rows, pass it as an id "
        f"(ids=[{name!r}] or --id {name}); else drop it (drop=[{name!r}] or --drop {name}), or lower "
        f"min_count."
    )


def _rounded(values: Floats, size: float) -> Floats:
    """Round away what standardizing numbers of that size and back has put off."""
    decimals = 14 - math.ceil(math.log10(size))
    # Beyond these, powers of ten are no longer exact.
    return np.round(values, decimals) if -22 <= decimals <= 22 else values
