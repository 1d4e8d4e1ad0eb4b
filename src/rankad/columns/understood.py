"""What a column is taken for, and the words that say what settles it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Ints
from rankad.columns.formats import PLAIN, NumberFormat
from rankad.columns.times import TimeFormat
from rankad.columns.words import has_value
from rankad.io.errors import shown

__all__ = [
    "ColumnWarning",
    "Told",
    "Understood",
    "as_taken",
    "cells_of",
    "counted",
    "is_or_are",
    "odd_words_of",
    "option",
    "settle",
]

_SHOWN_CELLS = 3
# Models remember no more than these, and rows with others are strange.
_LONGEST_WORD, _MOST_ODD_WORDS = 100, 1_000


class ColumnWarning(UserWarning):
    """A column was taken for what it may not be; the message says what settles it."""


class Told(NamedTuple):
    """What the user says about columns.

    Attributes
    ----------
    numbers, categories, times, ids, drop : collection of str
        Columns that are of this kind, whatever they look like.
    decimal : {".", ","} or None
        What stands before decimals in text; None lets the cells decide.
    day_first : bool or None
        Whether 03/04/2024 is in April; None lets the cells decide.
    missing : value, collection of values, or mapping of columns to these
        What stands for missing values, in all columns or in some.
    """

    numbers: Collection[str] = ()
    categories: Collection[str] = ()
    times: Collection[str] = ()
    ids: Collection[str] = ()
    drop: Collection[str] = ()
    decimal: str | None = None
    day_first: bool | None = None
    missing: Any = ()


class Understood(NamedTuple):
    """What a column is taken for.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "time", "id", "text", "empty"}
        An id names or counts rows; it and free text are not learned from.
    sure : {"sure", "likely", "unsure"}
    why : str
        What was seen, in plain words; nothing where it is obvious.
    doubt : str
        A warning, where the guess could be wrong: it names the column, the cells and what settles it.
    number : NumberFormat
        How numbers are written.
    time : TimeFormat
        How times are written.
    odd_words : tuple of str
        Cells that are neither numbers nor times; they count as missing.
    """

    name: str
    kind: str
    sure: str = "sure"
    why: str = ""
    doubt: str = ""
    number: NumberFormat = PLAIN
    time: TimeFormat = TimeFormat()
    odd_words: tuple[str, ...] = ()

    @property
    def learned(self) -> bool:
        """Whether the detector looks at it."""
        return self.kind not in ("id", "text")


def option(name: str, kind: str) -> str:
    """Name the option and the parameter that say what a column is."""
    parameter = {"number": "numbers", "category": "categories", "time": "times", "id": "ids", "drop": "drop"}
    return f"--{kind} {name} ({parameter[kind]}=[{name!r}])"


def settle(name: str, taken: str, other: str) -> str:
    """Say how to confirm what a column was taken for, and how to take it for another kind."""
    verb = {
        "number": "as a number",
        "category": "as a category",
        "time": "as a time",
        "id": "as a name of rows",
    }
    if taken == "id":
        return f"If so, say {option(name, 'id')}; to learn from it, {option(name, other)}."
    return f"If so, say {option(name, taken)}; to take it {verb[other]}, {option(name, other)}."


def as_taken(found: Understood) -> str:
    """Say whether words were taken as a category."""
    return "taken as a category" if found.learned else "not learned from"


def cells_of(series: pl.Series, words: pl.Series, odd: Ints) -> str:
    """Name cells by row and text; `odd` are places among the cells that have a value."""
    rows = np.flatnonzero(has_value(series).to_numpy())
    named = [f"row {rows[at] + 1:,}: {shown(words[int(at)])}" for at in odd[:_SHOWN_CELLS]]
    more = f" and {odd.size - _SHOWN_CELLS:,} more" if odd.size > _SHOWN_CELLS else ""
    return ", ".join(named) + more


def odd_words_of(words: pl.Series, odd: Ints) -> tuple[str, ...]:
    """Return the words of odd cells that are to be remembered: none too long, and the first of very many."""
    found = words.gather(odd).unique(maintain_order=True)
    return tuple(found.filter(found.str.len_chars() <= _LONGEST_WORD).head(_MOST_ODD_WORDS).to_list())


def counted(n: int, what: str) -> str:
    """Write a number of things."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def is_or_are(n: int) -> str:
    """Return the verb for so many."""
    return "is" if n == 1 else "are"
