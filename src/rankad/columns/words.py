"""The words of a column of categories."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import polars as pl

from rankad._base.arrays import Ints
from rankad.io.errors import TableError
from rankad.io.numbers import MISSING, is_text, parse

TRUE_OR_FALSE = ("true", "false")
# Further categories share one indicator, since each indicator is a column to score.
MOST_CATEGORIES = 100
# Words of fewer than one row in this many share one indicator: with indicators of their own, such rows would
# be so isolated that they would make up the alarms at small rates.
_ONE_IN = 200
# Odd words longer than this, or beyond this many, are not stored in models.
_LONGEST_WORD, _MOST_ODD_WORDS = 100, 1_000


def read_words(series: pl.Series, *, known: Collection[str | None] = (), boolean: bool = False) -> pl.Series:
    """Return a column of any plain type as text, null where a value is missing.

    `known` are the categories, if they are learned already: then any other word that means a missing value
    (`MISSING`) is missing, and 1.0 becomes "1" unless "1.0" is known, since a single missing value turns a
    column of integers into floats. A `boolean` column holds true and false in any case, or 1 and 0.

    >>> read_words(pl.Series(["red", "", "Red", "NA"])).to_list()
    ['red', None, 'Red', 'NA']
    >>> read_words(pl.Series(["TRUE", "0", "NA", "maybe"]), known=TRUE_OR_FALSE, boolean=True).to_list()
    ['true', 'false', None, 'maybe']
    """
    kind = series.dtype
    if kind.is_nested() or kind in (pl.Binary, pl.Object):
        raise TableError(
            f"column {series.name!r} must hold text, as it did when the detector was fitted, but is of type "
            f"{kind}; turn it into text."
        )
    words = (series.fill_nan(None) if kind.is_float() else series).cast(pl.String)
    words = words.set((words == "").fill_null(False), None)
    # Null where a cell is missing.
    unknown = ~words.is_in([word for word in known if word is not None])
    if not unknown.any():
        return words
    if kind.is_float():
        words = words.str.strip_suffix(".0").zip_with(unknown.fill_null(False), words)
    plain = words.str.strip_chars().str.to_lowercase()
    if boolean:
        plain = plain.replace(["1", "0"], TRUE_OR_FALSE)
        words = plain.zip_with(plain.is_in(TRUE_OR_FALSE).fill_null(False), words)
    if known:
        words = words.set((unknown & plain.is_in(list(MISSING))).fill_null(False), None)
    return words


def least_count(n_rows: int, min_count: int) -> int:
    """Return how many rows a word needs to get its own indicator."""
    return max(min_count, math.ceil(n_rows / _ONE_IN))


def has_value(series: pl.Series) -> pl.Series:
    """Tell which cells are neither null nor NaN nor a word for a missing value (`MISSING`)."""
    if series.dtype.is_float():
        # Ten times faster than with polars, which matters for tables of many columns.
        return pl.Series(series.name, ~np.isnan(parse(series)))
    present = series.is_not_null()
    if is_text(series.dtype):
        words = series.cast(pl.String).str.strip_chars().str.to_lowercase()
        present &= ~words.is_in(list(MISSING)).fill_null(True)
    return present


def all_booleans(series: pl.Series) -> bool:
    """Tell whether a column of text holds true and false in any case, and nothing else but missing values."""
    words, boolean = series.filter(has_value(series)), r"^\s*(?i:true|false)\s*$"
    # The first cells rule it out in most columns.
    return len(words) > 0 and all(part.str.contains(boolean).all() for part in (words.head(100), words))


def odd_words_at(words: pl.Series, places: Ints) -> tuple[str, ...]:
    """Return the words at these places that models are to remember: not too long, and not too many."""
    odd = words.gather(places).unique(maintain_order=True)
    return tuple(odd.filter(odd.str.len_chars() <= _LONGEST_WORD).head(_MOST_ODD_WORDS).to_list())


def leading_zeros(words: pl.Series) -> bool:
    """Tell whether some text of digits starts with a zero that a number would not have."""
    return bool(words.str.contains(r"^\s*0\d+\s*$").any())
