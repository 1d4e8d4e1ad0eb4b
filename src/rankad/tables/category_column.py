"""A column of categories, encoded as indicators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from rankad._base.arrays import Bools, Floats, Ints
from rankad.columns.words import MOST_CATEGORIES, TRUE_OR_FALSE, all_booleans, least_count, read_words
from rankad.io.errors import shown
from rankad.tables.strange_cells import (
    INDICATOR,
    MISSING_HERE,
    NEW_CATEGORY,
    NO_BOOLEAN,
    SAME_CATEGORY,
    LearnedColumn,
    StrangeCell,
    strange_cells,
)

_OTHER = "(other)"
_BOOLEANS: dict[str | None, bool] = {"true": True, "false": False}


@dataclass(frozen=True)
class CategoryColumn:
    """Categories: an indicator for each frequent one, and one for all rare ones, if there are any."""

    kind: ClassVar[str] = "category"
    name: str
    categories: tuple[str | None, ...]  # the frequent ones; None is a missing value
    n_other: int  # how many rare ones there were; if none, new words are strange
    boolean: bool  # whether the categories are "true" and "false"
    edge: float = 0.0  # the share of nominal rows whose category would be rare had they been left out

    @classmethod
    def learn(cls, series: pl.Series, min_count: int, *, asked_for: bool = False) -> LearnedColumn:
        """Learn from nominal cells, of which at least one is not missing.

        A word gets an indicator if `min_count` rows have it, and one in 200 unless it was `asked_for`.
        """
        boolean = series.dtype == pl.Boolean or (series.dtype == pl.String and all_booleans(series))
        text = read_words(series, known=TRUE_OR_FALSE if boolean else (), boolean=boolean)
        # The column itself may be called "rows".
        table = text.alias("word").value_counts(name="rows").sort("rows", "word", descending=[True, False])
        counts: dict[str | None, int] = dict(table.iter_rows())

        def least_of(n_rows: int) -> int:
            return 1 if boolean else min_count if asked_for else least_count(n_rows, min_count)

        least = least_of(len(text))
        kept = [word for word, n in counts.items() if n >= least][:MOST_CATEGORIES]
        if not any(word is not None for word in kept):
            name, n_words = series.name, len(counts.keys() - {None})
            raise ValueError(
                f"column {name!r} has {n_words:,} different values in {len(series):,} rows, none of them in "
                f"as many as {least} rows, so there is nothing to learn from it. If it is an id, say so "
                f"(ids=[{name!r}] or --id {name}); else drop it (drop=[{name!r}] or --drop {name}), or lower "
                f"min_count (--min-count)."
            )
        rare = [word for word in counts if word not in set(kept)]
        # Left out, the only row of a word would find no indicator to share.
        single = [word for word, n in counts.items() if n == 1 and not set(rare) - {word}]
        singletons = _rows_of(text, single)
        column = cls(series.name, tuple(kept), len(rare), boolean)
        if not rare:
            return LearnedColumn(column, singletons)
        # With one of its rows left out, a word may be too rare, or less frequent than the first rare one.
        least_without = least_of(len(text) - 1)
        first = _order(rare[0], counts[rare[0]])
        full = len(kept) == MOST_CATEGORIES and counts[rare[0]] >= least_without
        fallen = [
            word
            for word in kept
            if counts[word] - 1 < least_without or (full and first < _order(word, counts[word] - 1))
        ]
        regrouped = _rows_of(text, fallen)
        as_rare = np.zeros(column.width)
        as_rare[-1] = INDICATOR
        return LearnedColumn(replace(column, edge=regrouped.size / len(text)), singletons, regrouped, as_rare)

    @property
    def width(self) -> int:
        """How many encoded columns there are."""
        return len(self.categories) + (self.n_other > 0)

    def words(self, series: pl.Series) -> pl.Series:
        """Return the cells as words to look up among the categories; null where missing."""
        return read_words(series, known=self.categories, boolean=self.boolean)

    def labels(self, series: pl.Series) -> list[str | None]:
        """Return the category of each cell, "(other)" where it is rare."""
        words = self.words(series)
        if self.n_other:
            words = words.set(~words.is_in(list(self.categories), nulls_equal=True), _OTHER)
        return words.to_list()

    def cells(self, series: pl.Series) -> list[Any]:
        """Return the cells for display."""
        words = self.words(series).to_list()
        return [_BOOLEANS.get(word, word) for word in words] if self.boolean else words

    def encode(self, series: pl.Series, out: Floats) -> list[StrangeCell]:
        """Write n cells into `out`, of shape (n, width), and return the strange ones."""
        # Most cells are categories as they are; only the others need a closer look.
        places = self._places(series) if series.dtype == pl.String else np.full(len(series), -1)
        unknown = np.flatnonzero(places < 0)
        strange: list[StrangeCell] = []
        if unknown.size:
            words = self.words(series.gather(unknown))
            absent = words.is_null().to_numpy()
            closer = self._places(words)
            if None in self.categories:
                closer[absent] = self.categories.index(None)
            unseen = closer < 0
            if not self.n_other:
                strange += strange_cells(series, unknown[unseen & absent], MISSING_HERE)
                strange += self._new(series, unknown[unseen & ~absent])
            closer[unseen] = len(self.categories) if self.n_other else 0
            places[unknown] = closer
        out[:] = 0.0
        out[np.arange(len(places)), places] = INDICATOR
        return strange

    def _new(self, series: pl.Series, rows: Ints) -> list[StrangeCell]:
        """Return cells whose words no normal row has, in the order of the rows."""
        words = self.words(series.gather(rows))
        if self.boolean:
            alike, what = ~words.is_in(TRUE_OR_FALSE).to_numpy(), NO_BOOLEAN
        else:
            alike, what = self._but_for_spelling(words), SAME_CATEGORY
        found = strange_cells(series, rows[alike], what) + strange_cells(series, rows[~alike], NEW_CATEGORY)
        return sorted(found, key=lambda cell: cell.row)

    def respelt(self, series: pl.Series) -> list[str]:
        """Return the words of cells that are categories but for case, spaces or leading zeros."""
        words = self.words(series).drop_nulls()
        words = words.filter(~words.is_in([word for word in self.categories if word is not None]))
        return words.filter(self._but_for_spelling(words)).to_list()

    def _but_for_spelling(self, words: pl.Series) -> Bools:
        known = pl.Series([word for word in self.categories if word is not None])
        alike: Bools = _plainest(words).is_in(_plainest(known).to_list()).to_numpy()
        return alike

    def _places(self, words: pl.Series) -> Ints:
        """Return the indicator of each word, -1 where it has none or is missing."""
        known = [word for word in self.categories if word is not None]
        places = [place for place, word in enumerate(self.categories) if word is not None]
        codes = words.cast(pl.Enum(known), strict=False).to_physical().fill_null(len(known))
        return np.array([*places, -1]).take(codes.to_numpy())

    def decode(self, encoded: Floats) -> pl.Series:
        """Return the categories nearest to encoded cells, "(other)" for rare ones."""
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


def _plainest(words: pl.Series) -> pl.Series:
    """Return words without what people and programs change: case, spaces around, zeros before digits."""
    return words.str.strip_chars().str.to_lowercase().str.replace(r"^0+(\d+)$", "$1")


def _rows_of(text: pl.Series, words: list[str | None]) -> Ints:
    if not words:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(text.is_in(words, nulls_equal=True).to_numpy())


def _order(word: str | None, n_rows: int) -> tuple[int, bool, str]:
    """Return the sort key of words: the most frequent first, then by the alphabet."""
    return -n_rows, word is not None, word or ""
