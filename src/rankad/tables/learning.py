"""An encoder learned from nominal rows, and what it would be without each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.columns.kinds import Told, Understood, understand
from rankad.columns.stand_ins import StandIn, blanked, read_stand_ins, unused
from rankad.io.errors import listed
from rankad.tables.doubtful_rows import doubtful_rows
from rankad.tables.encoded_columns import CategoryColumn, EmptyColumn, Learned, NumberColumn, TimeColumn
from rankad.tables.encoding import TableEncoder, is_plain
from rankad.tables.frames import Untyped, as_frame
from rankad.tables.stored import Note

__all__ = ["LearnedEncoder", "Moved", "learn_encoder"]

S = TypeVar("S")
T = TypeVar("T")

# What `rankad score` adds to a table.
_SCORED = ("p_value", "score", "alarm")


class Moved(NamedTuple):
    """Rows that would be encoded otherwise had they not been among the nominal ones.

    Attributes
    ----------
    rows : ndarray of int
    first : int
        The first of the encoded columns that would be others.
    instead : ndarray of shape (width,)
        What these would be.
    """

    rows: Ints
    first: int
    instead: Floats


class LearnedEncoder(NamedTuple):
    """An encoder, and what it would say of nominal rows had it been learned from the others.

    Attributes
    ----------
    encoder : TableEncoder
    alone : ndarray of int
        The rows that would be strange.
    moved : list of Moved
        The rows that would be encoded otherwise.
    lonely : tuple of str
        The columns in which rows would be strange, the most rows first.
    doubts : tuple of str
        What is to be said of rows that are likely none.
    """

    encoder: TableEncoder
    alone: Ints
    moved: list[Moved]
    lonely: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def learn_encoder(frame: Any, told: Told, *, min_count: int) -> LearnedEncoder:
    """Learn an encoder from nominal rows: see `TableEncoder.fit`."""
    table = as_frame(frame)
    told = _checked(told, table)
    stand_ins: tuple[StandIn, ...] = told.missing
    if not isinstance(min_count, int) or isinstance(min_count, bool) or min_count < 1:
        raise ValueError(f"min_count must be an integer >= 1, got {min_count!r}.")
    left_out = {*told.ids, *told.drop}
    used = [name for name in table.columns if name not in left_out]
    if not used or not table.height:
        raise ValueError(
            f"a detector needs rows and columns to learn from, but the table has {table.height} rows and "
            f"{len(used)} columns (beside ids and dropped ones)."
        )
    _check_not_scored(used, told)
    said = unused(table, stand_ins)
    if stand_ins:
        table = pl.DataFrame([blanked(series, stand_ins) for series in table])
    understood = _understand_all(
        [table[name] for name in used], typed=not isinstance(frame, Untyped), told=told, min_count=min_count
    )
    learned = _all_of(
        lambda u: _learn(table[u.name], u, min_count, asked_for=u.name in told.categories),
        [u for u in understood if u.learned],
    )
    columns = [found.column for found in learned]
    if not any(column.width for column in columns):
        raise ValueError(_nothing_left(understood))
    if all(is_plain(column) for column in columns):
        columns = [replace(c, center=0.0, scale=1.0) if isinstance(c, NumberColumn) else c for c in columns]
    alone = np.unique(np.concatenate([found.alone for found in learned]))
    begins = np.cumsum([0, *(column.width for column in columns)]).tolist()
    moved = [
        Moved(found.moved, begin, found.instead)
        for found, begin in zip(learned, begins, strict=False)
        if found.moved.size
    ]
    encoder = TableEncoder(
        tuple(columns),
        (*told.ids, *(u.name for u in understood if u.kind == "id")),
        (*told.drop, *(u.name for u in understood if u.kind == "text")),
        table.height,
        alone.size,
        tuple(told.categories),
        tuple(Note(u.name, u.kind, u.sure, u.why, u.doubt) for u in understood),
        stand_ins,
    )
    lonely = sorted((found for found in learned if found.alone.size), key=lambda found: -found.alone.size)
    return LearnedEncoder(
        encoder,
        alone,
        moved,
        tuple(found.column.name for found in lonely),
        (*said, *doubtful_rows(table, columns)),
    )


def _understand_all(
    series: Sequence[pl.Series], *, typed: bool, told: Told, min_count: int
) -> list[Understood]:
    """Understand all columns; where cells fit two readings, those of other columns decide."""

    def understood(each: pl.Series, elsewhere: str | None) -> Understood:
        return understand(each, typed=typed, told=told, min_count=min_count, elsewhere=elsewhere)

    found = _all_of(lambda each: understood(each, None), series)
    commas = any(u.kind == "number" and u.number.decimal == "," and u.sure != "unsure" for u in found)
    if commas and told.decimal is None:
        found = [understood(each, ",") for each in series]
    return found


def _all_of(make: Callable[[S], T], columns: Sequence[S]) -> list[T]:
    """Make something of every column, and raise one error for all columns that are wrong."""
    found, wrong = [], []
    for column in columns:
        try:
            found.append(make(column))
        except ValueError as error:
            wrong.append(error)
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        raise ValueError(f"{len(wrong)} columns cannot be used: " + " ".join(str(error) for error in wrong))
    return found


def _learn(series: pl.Series, found: Understood, min_count: int, *, asked_for: bool) -> Learned:
    if found.kind == "number":
        return NumberColumn.learn(series, format=found.number, odd_words=found.odd_words, min_count=min_count)
    if found.kind == "time":
        return TimeColumn.learn(series, found.time, found.odd_words)
    if found.kind == "empty":
        return Learned(EmptyColumn(series.name), np.empty(0, dtype=np.int64))
    return CategoryColumn.learn(series, min_count, asked_for=asked_for)


def _nothing_left(understood: Sequence[Understood]) -> str:
    doubts = [u.doubt for u in understood if u.doubt]
    if not doubts:
        return "all columns are empty: every nominal value is missing, so there is nothing to learn."
    return f"there is no column to learn from: {' '.join(doubts)}"


def _check_not_scored(used: Sequence[str], told: Told) -> None:
    """Refuse the output of `rankad score`: its p-values are not what normal rows are like."""
    named = {*told.numbers, *told.categories, *told.times}
    if set(_SCORED) <= set(used) and not set(_SCORED) & named:
        raise ValueError(
            "the table has columns p_value, score and alarm, as rankad score writes them: fit on the table "
            "that was scored, or leave them out (--drop p_value,score,alarm or "
            "drop=['p_value', 'score', 'alarm'])."
        )


def _checked(told: Told, table: pl.DataFrame) -> Told:
    """Return what the user says of columns, as tuples without repetition; raise where it cannot be."""
    kinds = ("numbers", "categories", "times", "ids", "drop")
    given = {kind: _names(kind, getattr(told, kind)) for kind in kinds}
    stand_ins = read_stand_ins(told.missing)
    there, wrong = set(table.columns), []
    of_missing = tuple(dict.fromkeys(each.column for each in stand_ins if each.column is not None))
    for kind, names in {**given, "missing": of_missing}.items():
        absent = [name for name in names if name not in there]
        if absent:
            wrong.append(
                f"{kind} names {listed(absent)}, which the table lacks; it has {listed(table.columns)}."
            )
    for at, one in enumerate(kinds):
        for other in kinds[at + 1 :]:
            both = [name for name in given[one] if name in given[other]]
            if both and {one, other} != {"ids", "drop"}:
                wrong.append(
                    f"column {both[0]!r} cannot be both, but {one} ({_OPTIONS[one]}) and {other} "
                    f"({_OPTIONS[other]}) name it; take it out of one."
                )
    if told.decimal not in (None, ".", ","):
        wrong.append(f"decimal must be '.' or ',', got {told.decimal!r}.")
    if told.day_first not in (None, True, False):
        wrong.append(f"day_first must be True, False or None, got {told.day_first!r}.")
    if wrong:
        raise ValueError(" ".join(wrong))
    return Told(
        given["numbers"],
        given["categories"],
        given["times"],
        given["ids"],
        given["drop"],
        told.decimal,
        told.day_first,
        stand_ins,
    )


_OPTIONS = {
    "numbers": "--number",
    "categories": "--category",
    "times": "--time",
    "ids": "--id",
    "drop": "--drop",
}


def _names(parameter: str, names: Any) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names)
    return tuple(dict.fromkeys(found))
