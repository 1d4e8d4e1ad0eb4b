"""Strange cells, which no nominal row has, and the rows that would be strange had they been left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.io.numbers import is_text

if TYPE_CHECKING:
    from rankad.tables.encoded_columns import Column

# With this many unreadable words that no other nominal row has, any such word counts as missing.
_SEVERAL_WORDS = 2

# Two rows of different categories are at distance one.
INDICATOR = math.sqrt(0.5)

MISSING_HERE = "missing, but in no normal row"
INFINITE = "infinite"
NO_NUMBER = "not a number, as normal cells are"
NO_TIME = "not a time, as normal cells are"
NO_CLOCK = "a date without the time of day, which normal cells have"
NOT_CONSTANT = "other than the one value of all normal rows"
NEW_VALUE = "not among the few values of normal rows"
NOT_POSITIVE = "of a sign that no normal value has"
NEW_CATEGORY = "not among the categories of normal rows"
SAME_CATEGORY = "the same as a category of normal rows but for case, spaces or leading zeros"
NO_BOOLEAN = "neither true nor false, as normal cells are"
NOT_EMPTY = "a value, but missing in all normal rows"


class StrangeCell(NamedTuple):
    """A cell that no nominal row has."""

    row: int  # counted from 0 in the table that was encoded
    column: str
    what: str  # why it is strange, to be read after the value
    value: Any  # the cell as it came; None where it is missing


class LearnedColumn(NamedTuple):
    """A column learned from nominal rows, and what it would be had single rows been left out."""

    column: Column
    singletons: Ints = np.empty(0, dtype=np.int64)  # rows that would be strange
    regrouped: Ints = np.empty(0, dtype=np.int64)  # rows whose category would be rare
    as_rare: Floats = np.empty(0)  # how a rare category is encoded


def may_be_written_otherwise(what: str) -> bool:
    """Tell whether cells that are strange for this reason may be usual ones in another notation.

    >>> (
    ...     may_be_written_otherwise(no_number("written with a decimal comma")),
    ...     may_be_written_otherwise(INFINITE),
    ... )
    (True, False)
    """
    return what in (NO_TIME, NO_BOOLEAN, SAME_CATEGORY) or what.startswith("not a number")


def no_number(written: str) -> str:
    """Say that a cell is not a number in the format of the column.

    >>> no_number("written with a decimal comma")
    'not a number written with a decimal comma, as normal cells are'
    """
    return NO_NUMBER.replace("a number", f"a number {written}") if written else NO_NUMBER


def strange_cells(series: pl.Series, rows: Ints, what: str) -> list[StrangeCell]:
    """Return the cells of these rows as strange ones."""
    values = [None if value != value else value for value in series.gather(rows).to_list()]
    return [StrangeCell(int(row), series.name, what, value) for row, value in zip(rows, values, strict=True)]


def not_remembered(series: pl.Series, unreadable: Ints, odd_words: tuple[str, ...]) -> Ints:
    """Return the unreadable rows whose word is none of those that count as missing."""
    if not unreadable.size or not odd_words or not is_text(series.dtype):
        return unreadable
    rows: Ints = unreadable[~series.cast(pl.String).gather(unreadable).is_in(odd_words).to_numpy()]
    return rows


def any_word_counts(series: pl.Series, odd_words: tuple[str, ...], unknown: Ints) -> tuple[bool, Ints]:
    """Decide from nominal cells whether any unreadable word counts as missing; also return the singletons.

    With error codes of all kinds, say, most words of new normal rows would be new. `unknown` are the rows
    with words that are not remembered.
    """
    rows: Ints = unknown
    if odd_words:
        words = series.cast(pl.String)
        # The column itself may be called "count".
        counts = words.filter(words.is_in(odd_words)).alias("word").value_counts()
        once = [word for word, n in counts.iter_rows() if n == 1]
        rows = np.union1d(rows, np.flatnonzero(words.is_in(once).fill_null(False).to_numpy()))
    # With one of them left out, there must still be enough.
    return rows.size >= _SEVERAL_WORDS, rows if rows.size <= _SEVERAL_WORDS else rows[:0]
