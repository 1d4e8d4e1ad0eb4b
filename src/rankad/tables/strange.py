"""What columns have in common: strange cells, and what rows would be had others alone taught."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints

if TYPE_CHECKING:
    from rankad.tables.encoded_columns import Column

__all__ = [
    "INDICATOR",
    "INFINITE",
    "MISSING_HERE",
    "NEW_CATEGORY",
    "NEW_VALUE",
    "NOT_CONSTANT",
    "NOT_EMPTY",
    "NOT_POSITIVE",
    "NO_CLOCK",
    "NO_NUMBER",
    "NO_TIME",
    "Learned",
    "Strange",
    "no_number",
    "single_words",
    "strange_cells",
]

# Where so many nominal rows have a word of their own that cannot be read, any such word counts as missing.
_WORDS_OF_ALL_KINDS = 2

# Two rows of different categories are at distance one.
INDICATOR = math.sqrt(0.5)

MISSING_HERE = "missing, but in no nominal row"
INFINITE = "infinite"
NO_NUMBER = "not a number, as nominal cells are"
NO_TIME = "not a time, as nominal cells are"
NO_CLOCK = "a date without the time of day, which nominal cells have"
NOT_CONSTANT = "other than the one value of all nominal rows"
NEW_VALUE = "not among the few values of nominal rows"
NOT_POSITIVE = "of a sign that no nominal value has"
NEW_CATEGORY = "not among the categories of nominal rows"
NOT_EMPTY = "a value, but missing in all nominal rows"


def no_number(written: str) -> str:
    """Say that a cell is no number, written as those of nominal rows are.

    >>> no_number("written with a decimal comma")
    'not a number written with a decimal comma, as nominal cells are'
    """
    return NO_NUMBER.replace("a number", f"a number {written}") if written else NO_NUMBER


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
    """A column as learned, and what nominal rows would be had they not been there.

    Attributes
    ----------
    column : Column
    alone : ndarray of int
        The rows that would be strange.
    moved : ndarray of int
        The rows that would be encoded otherwise.
    instead : ndarray of shape (width,)
        As what these would be encoded.
    """

    column: Column
    alone: Ints
    moved: Ints = np.empty(0, dtype=np.int64)
    instead: Floats = np.empty(0)


def strange_cells(series: pl.Series, rows: Ints, what: str) -> list[Strange]:
    """Return some cells of a column as strange ones."""
    values = [None if value != value else value for value in series.gather(rows).to_list()]
    return [Strange(int(row), series.name, what, value) for row, value in zip(rows, values, strict=True)]


class SingleWords(NamedTuple):
    """Words that cannot be read and that no other nominal row has.

    Attributes
    ----------
    any_word : bool
        Whether they are so common that any such word counts as missing.
    alone : ndarray of int
        The rows whose word would be strange had they not been there.
    """

    any_word: bool
    alone: Ints


def single_words(series: pl.Series, odd_words: tuple[str, ...], unknown: Ints) -> SingleWords:
    """Decide what words count as that cannot be read, from nominal cells.

    Error codes of all kinds, say: if every one of them were strange, so would be normal rows to come.

    Parameters
    ----------
    series : polars Series
    odd_words : tuple of str
        Words that are remembered.
    unknown : ndarray of int
        Rows with other words that cannot be read.
    """
    rows = unknown
    if odd_words:
        words = series.cast(pl.String)
        # A column may well be called "count", as what polars adds is.
        counts = words.filter(words.is_in(odd_words)).alias("word").value_counts()
        once = [word for word, n in counts.iter_rows() if n == 1]
        rows = np.union1d(rows, np.flatnonzero(words.is_in(once).fill_null(False).to_numpy()))
    # Without one of them, there must still be so many.
    return SingleWords(
        rows.size >= _WORDS_OF_ALL_KINDS, rows if rows.size <= _WORDS_OF_ALL_KINDS else rows[:0]
    )
