"""Cells of a column to words: the categories that they name."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import polars as pl

from rankad.io.errors import TableError
from rankad.io.numbers import MISSING, is_text, parse

__all__ = ["MOST_CATEGORIES", "TRUE_OR_FALSE", "all_booleans", "has_value", "least_count", "read_words"]

TRUE_OR_FALSE = ("true", "false")
# More categories than these are not told apart: every one is a column to score.
MOST_CATEGORIES = 100

# An indicator of its own is for words of one row in so many, at least: the places of rarer ones are so empty
# that their rows alone would make up the alarms at small rates.
_ONE_IN = 200
_HEAD = 100


def read_words(series: pl.Series, *, known: Collection[str | None] = (), boolean: bool = False) -> pl.Series:
    """Return a column as text, null where a value is missing.

    Parameters
    ----------
    series : polars Series of shape (n,)
        Text, numbers, booleans, dates.
    known : collection of str
        The words that there are; nothing where they are yet to be learned. Other words that stand for a
        missing value (`MISSING`) are missing then. A whole number that came as 1.0 is "1" unless "1.0" is
        known: a single missing value makes decimals of whole numbers.
    boolean : bool
        Whether these are true and false: in any case, or 1 and 0.

    Examples
    --------
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
    # Null where a cell is missing, and so left alone by all that follows.
    strangers = ~words.is_in([word for word in known if word is not None])
    if not strangers.any():
        return words
    if kind.is_float():
        words = words.str.strip_suffix(".0").zip_with(strangers.fill_null(False), words)
    plain = words.str.strip_chars().str.to_lowercase()
    if boolean:
        plain = plain.replace(["1", "0"], TRUE_OR_FALSE)
        words = plain.zip_with(plain.is_in(TRUE_OR_FALSE).fill_null(False), words)
    if known:
        words = words.set((strangers & plain.is_in(list(MISSING))).fill_null(False), None)
    return words


def least_count(n_rows: int, min_count: int) -> int:
    """Return how many rows a word needs for an indicator of its own.

    >>> least_count(300, 5), least_count(5000, 5)
    (5, 25)
    """
    return max(min_count, math.ceil(n_rows / _ONE_IN))


def has_value(series: pl.Series) -> pl.Series:
    """Tell which cells of a column are not missing: neither null nor NaN nor a word for these (`MISSING`)."""
    if series.dtype.is_float():
        # By polars it would take ten times as long, which counts where there are many columns.
        return pl.Series(series.name, ~np.isnan(parse(series)))
    given = series.is_not_null()
    if is_text(series.dtype):
        words = series.cast(pl.String).str.strip_chars().str.to_lowercase()
        given &= ~words.is_in(list(MISSING)).fill_null(True)
    return given


def all_booleans(series: pl.Series) -> bool:
    """Tell whether a text column says true and false, in any case, or nothing, throughout."""
    return _throughout(series, r"^\s*(?i:true|false)\s*$")


def _throughout(series: pl.Series, pattern: str) -> bool:
    """Tell whether all cells that are not missing match, of which there is one."""
    words = series.filter(has_value(series))
    return (
        all(bool(part.str.contains(pattern).all()) for part in (words.head(_HEAD), words)) and len(words) > 0
    )
