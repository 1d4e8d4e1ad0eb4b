"""A column of categories, and the indicators it becomes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.columns.words import MOST_CATEGORIES, TRUE_OR_FALSE, all_booleans, least_count, read_words
from rankad.io.errors import shown
from rankad.tables.strange import (
    INDICATOR,
    MISSING_HERE,
    NEW_CATEGORY,
    Learned,
    Strange,
    strange_cells,
)

__all__ = ["CategoryColumn"]

_OTHER = "(other)"
_BOOLEANS: dict[str | None, bool] = {"true": True, "false": False}


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
    edge : float
        The share of nominal rows whose word would be one of the others, had they not been there. Rows to come
        have the others so much more often: which words are frequent enough was chance.
    """

    kind: ClassVar[str] = "category"
    name: str
    categories: tuple[str | None, ...]
    n_other: int
    boolean: bool
    edge: float = 0.0

    @classmethod
    def learn(cls, series: pl.Series, min_count: int, *, asked_for: bool = False) -> Learned:
        """Learn from nominal cells, of which at least one is not missing.

        A word has an indicator if `min_count` rows have it, and one in 200 unless it was `asked_for`.
        """
        boolean = series.dtype == pl.Boolean or (series.dtype == pl.String and all_booleans(series))
        text = read_words(series, known=TRUE_OR_FALSE if boolean else (), boolean=boolean)
        # The column's own name could be that of what polars adds.
        counted = text.alias("word").value_counts(name="rows").sort("rows", "word", descending=[True, False])
        counts = dict(zip(counted["word"].to_list(), counted["rows"].to_list(), strict=True))

        def least_of(n_rows: int) -> int:
            return 1 if boolean else min_count if asked_for else least_count(n_rows, min_count)

        least = least_of(len(text))
        kept = [word for word, n in counts.items() if n >= least][:MOST_CATEGORIES]
        if not any(word is not None for word in kept):
            name, n_words = series.name, len([word for word in counts if word is not None])
            raise ValueError(
                f"column {name!r} has {n_words:,} different values in {len(series):,} rows, none of them in "
                f"as many as {least} rows, so it says nothing about new rows. If it names rows, pass it as "
                f"an id (ids=[{name!r}] or --id {name}); else drop it (drop=[{name!r}] or --drop {name}), or "
                f"lower min_count."
            )
        others = [word for word in counts if word not in set(kept)]
        # Without its row, the only cell of its kind would find no indicator that it could share.
        lonely = [word for word, n in counts.items() if n == 1 and not set(others) - {word}]
        column = cls(series.name, tuple(kept), len(others), boolean)
        if not others:
            return Learned(column, _rows_of(text, lonely))
        # Without one of its rows, a word may be too rare for an indicator of its own, or another commoner.
        least_without = least_of(len(text) - 1)
        rival = others[0]
        full = len(kept) == MOST_CATEGORIES and counts[rival] >= least_without
        fallen = [
            word
            for word in kept
            if counts[word] - 1 < least_without
            or (full and _place(rival, counts[rival]) < _place(word, counts[word] - 1))
        ]
        instead = np.zeros(column.width)
        instead[-1] = INDICATOR
        moved = _rows_of(text, fallen)
        column = replace(column, edge=moved.size / len(text))
        return Learned(column, _rows_of(text, lonely), moved, instead)

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

    def encode(self, series: pl.Series, out: Floats) -> list[Strange]:
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
                strange += strange_cells(series, unsure[unseen & absent], MISSING_HERE)
                strange += strange_cells(series, unsure[unseen & ~absent], NEW_CATEGORY)
            places[unseen] = len(self.categories) if self.n_other else 0
            found[unsure] = places
        out[:] = 0.0
        out[np.arange(len(found)), found] = INDICATOR
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


def _rows_of(text: pl.Series, words: list[str | None]) -> Ints:
    if not words:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(text.is_in(words, nulls_equal=True).to_numpy())


def _place(word: str | None, n_rows: int) -> tuple[int, bool, str]:
    """Return what words are sorted by: the most frequent first, then by the alphabet."""
    return -n_rows, word is not None, word or ""
