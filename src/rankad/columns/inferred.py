"""What a column is inferred to be, and the warning that says which option settles it."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Ints
from rankad.columns.formats import PLAIN, NumberFormat
from rankad.columns.times import TimeFormat
from rankad.columns.words import has_value
from rankad.io.errors import shown

_SHOWN_CELLS = 3
PARAMETERS = {"number": "numbers", "category": "categories", "time": "times", "id": "ids", "drop": "drop"}
_TAKEN_AS = {
    "number": "a number",
    "category": "a category",
    "time": "a time",
    "id": "an id and not learned from",
    "text": "free text and not learned from",
}


class ColumnWarning(UserWarning):
    """A column may be something else than it was taken for; the message names the option that settles it."""


class ColumnOptions(NamedTuple):
    """What the user says about columns; those named are of that kind, whatever they look like."""

    numbers: Collection[str] = ()
    categories: Collection[str] = ()
    times: Collection[str] = ()
    ids: Collection[str] = ()
    drop: Collection[str] = ()
    decimal: str | None = None  # the decimal mark in text; None infers it
    day_first: bool | None = None  # whether 03/04/2024 is in April; None infers it
    missing: Any = ()  # markers of missing values, for all columns or by column


class InferredColumn(NamedTuple):
    """What a column is taken as, how sure that is, and how its cells are read."""

    name: str
    kind: str  # number, category, time, id, text or empty; ids and text are not learned from
    sure: str = "sure"  # sure, likely or unsure
    why: str = ""  # the evidence in a few words; "" where it is obvious
    doubt: str = ""  # a warning where the guess could be wrong
    number: NumberFormat = PLAIN
    time: TimeFormat = TimeFormat()
    odd_words: tuple[str, ...] = ()  # cells that are neither numbers nor times; they count as missing

    @property
    def learned(self) -> bool:
        """Whether the detector learns from it."""
        return self.kind not in ("id", "text")

    def doubted(self, sure: str, why: str, evidence: str, other: str) -> InferredColumn:
        """Return the same column with a warning, unless it has one already."""
        doubt = self.doubt or doubtful(self.name, self.kind, sure, why, evidence, other).doubt
        return self._replace(sure=sure, why=why, doubt=doubt)


def doubtful(
    name: str, kind: str, sure: str, why: str, evidence: str, other: str, *, settled: str = "", **formats: Any
) -> InferredColumn:
    """Return a guess with a warning: what the column is taken as, the evidence, and the options to settle it.

    >>> print(doubtful("tx", "id", "likely", "", "its values never repeat", "number").doubt)
    column 'tx' is taken as an id and not learned from: its values never repeat. Confirm with --id tx
    (ids=['tx']), or learn from it with --number tx (numbers=['tx']).
    """
    doubt = (
        f"column {name!r} is taken as {_TAKEN_AS[kind]}: {evidence}. {settled or settle(name, kind, other)}"
    )
    return InferredColumn(name, kind, sure, why, doubt, **formats)


def option(name: str, kind: str) -> str:
    """Return the command-line option and the parameter that set the kind of a column."""
    return f"--{kind} {shlex.quote(name)} ({PARAMETERS[kind]}=[{name!r}])"


def settle(name: str, taken: str, other: str) -> str:
    """Say which option confirms the kind of a column, and which one changes it."""
    change = "learn from it" if taken == "id" else "leave it out" if other == "id" else f"make it a {other}"
    return f"Confirm with {option(name, taken)}, or {change} with {option(name, other)}."


def cells_at(series: pl.Series, words: pl.Series, places: Ints) -> str:
    """Name cells by row and text; `places` count the cells that have a value."""
    rows = np.flatnonzero(has_value(series).to_numpy())
    named = [f"row {rows[at] + 1:,}: {shown(words[int(at)])}" for at in places[:_SHOWN_CELLS]]
    more = f" and {places.size - _SHOWN_CELLS:,} more" if places.size > _SHOWN_CELLS else ""
    return ", ".join(named) + more
