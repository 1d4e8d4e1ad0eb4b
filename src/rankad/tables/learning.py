"""Learning an encoder from nominal rows, and what it would be had single rows been left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.columns.inference import infer_column
from rankad.columns.inferred import PARAMETERS, ColumnOptions, InferredColumn
from rankad.columns.missing_values import parse_markers, unused_markers, without_markers
from rankad.io.errors import listed, not_split
from rankad.tables.encoded_columns import CategoryColumn, EmptyColumn, NumberColumn, TimeColumn
from rankad.tables.encoding import TableEncoder, is_plain
from rankad.tables.frames import Untyped, as_frame
from rankad.tables.row_warnings import row_warnings
from rankad.tables.stored import Note
from rankad.tables.strange_cells import LearnedColumn

S = TypeVar("S")
T = TypeVar("T")

# The columns that `rankad score` adds to a table.
_SCORED = ("p_value", "score", "alarm")
_OPTIONS = {parameter: f"--{kind}" for kind, parameter in PARAMETERS.items()}


class Regrouped(NamedTuple):
    """Rows whose category would be rare had they been left out, and its encoding from column `first` on."""

    rows: Ints
    first: int
    as_rare: Floats


class LearnedEncoder(NamedTuple):
    """An encoder, and what it would be had single nominal rows been left out."""

    encoder: TableEncoder
    singletons: Ints  # rows that would be strange
    regrouped: list[Regrouped]  # rows that would be encoded differently
    singleton_columns: tuple[str, ...]  # columns in which rows would be strange, the most rows first
    warnings: tuple[str, ...]  # about rows that are likely no data, and unused markers

    def left_out(self, rows: Floats) -> tuple[Ints, Floats]:
        """Return which encoded rows would be encoded differently had they been left out, and how."""
        changed = np.unique(np.concatenate([regrouped.rows for regrouped in self.regrouped]))
        encoded = rows[changed]
        for regrouped in self.regrouped:
            at = np.searchsorted(changed, regrouped.rows)
            encoded[at, regrouped.first : regrouped.first + regrouped.as_rare.size] = regrouped.as_rare
        return changed, encoded


def learn_encoder(frame: Any, options: ColumnOptions, *, min_count: int) -> LearnedEncoder:
    """Learn an encoder from nominal rows: see `TableEncoder.fit`."""
    table = as_frame(frame)
    options = _checked(options, table)
    if not isinstance(min_count, int) or isinstance(min_count, bool) or min_count < 1:
        raise ValueError(f"min_count must be an integer >= 1, got {min_count!r}.")
    used = [name for name in table.columns if name not in {*options.ids, *options.drop}]
    if not used or not table.height:
        raise ValueError(
            f"a detector needs rows and columns to learn from, but the table has {table.height} rows and "
            f"{len(used)} columns (beside ids and dropped ones)."
        )
    _check_not_scored(used, options)
    warnings = unused_markers(table, options.missing)
    if options.missing:
        table = pl.DataFrame({each.name: without_markers(each, options.missing) for each in table})
    series = [table[name] for name in used]
    inferred = _infer_all(series, typed=not isinstance(frame, Untyped), options=options, min_count=min_count)
    learned = _for_all(
        lambda each: _learn(table[each.name], each, min_count, asked_for=each.name in options.categories),
        [each for each in inferred if each.learned],
    )
    columns = [each.column for each in learned]
    if not any(column.width for column in columns):
        if hint := not_split(table.columns):
            raise ValueError(f"there is no column to learn from. {hint}")
        doubts = [each.doubt for each in inferred if each.doubt]
        if doubts:
            raise ValueError(f"there is no column to learn from: {' '.join(doubts)}")
        raise ValueError(
            "all columns are empty: every normal value is missing, so there is nothing to learn."
        )
    if all(is_plain(column) for column in columns):
        columns = [replace(c, center=0.0, scale=1.0) if isinstance(c, NumberColumn) else c for c in columns]
    singletons = np.unique(np.concatenate([each.singletons for each in learned]))
    begins = np.cumsum([0, *(column.width for column in columns)]).tolist()
    encoder = TableEncoder(
        tuple(columns),
        (*options.ids, *(each.name for each in inferred if each.kind == "id")),
        (*options.drop, *(each.name for each in inferred if each.kind == "text")),
        table.height,
        singletons.size,
        tuple(options.categories),
        tuple(Note(*map(str, each[:5])) for each in inferred),
        options.missing,
    )
    by_singletons = sorted(learned, key=lambda each: -each.singletons.size)
    return LearnedEncoder(
        encoder,
        singletons,
        [
            Regrouped(each.regrouped, begin, each.as_rare)
            for each, begin in zip(learned, begins, strict=False)
            if each.regrouped.size
        ],
        tuple(each.column.name for each in by_singletons if each.singletons.size),
        (*warnings, *row_warnings(table, columns)),
    )


def _infer_all(
    columns: Sequence[pl.Series], *, typed: bool, options: ColumnOptions, min_count: int
) -> list[InferredColumn]:
    """Infer what all columns are; where cells fit both decimal marks, other columns decide."""

    def infer(series: pl.Series, elsewhere: str | None = None) -> InferredColumn:
        return infer_column(series, typed=typed, options=options, min_count=min_count, elsewhere=elsewhere)

    inferred = _for_all(infer, columns)
    commas = any(c.kind == "number" and c.number.decimal == "," and c.sure != "unsure" for c in inferred)
    if commas and options.decimal is None:
        inferred = [infer(series, ",") for series in columns]
    return inferred


def _for_all(make: Callable[[S], T], columns: Sequence[S]) -> list[T]:
    """Make something of every column, and raise one error for all columns that fail."""
    made, errors = [], []
    for column in columns:
        try:
            made.append(make(column))
        except ValueError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ValueError(f"{len(errors)} columns cannot be used: {' '.join(map(str, errors))}")
    return made


def _learn(series: pl.Series, inferred: InferredColumn, min_count: int, *, asked_for: bool) -> LearnedColumn:
    if inferred.kind == "number":
        return NumberColumn.learn(series, inferred.number, inferred.odd_words, min_count)
    if inferred.kind == "time":
        return TimeColumn.learn(series, inferred.time, inferred.odd_words)
    if inferred.kind == "empty":
        return LearnedColumn(EmptyColumn(series.name))
    return CategoryColumn.learn(series, min_count, asked_for=asked_for)


def _check_not_scored(used: Sequence[str], options: ColumnOptions) -> None:
    """Refuse the output of `rankad score`: its p-values do not describe normal rows."""
    named = {*options.numbers, *options.categories, *options.times}
    if set(_SCORED) <= set(used) and not set(_SCORED) & named:
        raise ValueError(
            "the table has columns p_value, score and alarm, as rankad score writes them: fit on the table "
            "that was scored, or leave them out (--drop p_value,score,alarm or "
            "drop=['p_value', 'score', 'alarm'])."
        )


def _checked(options: ColumnOptions, table: pl.DataFrame) -> ColumnOptions:
    """Return options with tuples of different names; raise if they contradict the table or one another."""
    given: dict[str, Any] = {kind: _names(getattr(options, kind)) for kind in _OPTIONS}
    markers = parse_markers(options.missing)
    marked = _names(marker.column for marker in markers if marker.column is not None)
    there, wrong = set(table.columns), []
    for kind, names in {**given, "missing": marked}.items():
        absent = [name for name in names if name not in there]
        if absent:
            option = _OPTIONS.get(kind, "--missing")
            wrong.append(
                f"the table has no column {listed(absent)}, which {kind} ({option}) names; it has "
                f"{listed(table.columns)}."
            )
    for one, other in combinations(given, 2):
        both = [name for name in given[one] if name in given[other]]
        if both and {one, other} != {"ids", "drop"}:
            wrong.append(
                f"column {both[0]!r} is named by both {one} ({_OPTIONS[one]}) and {other} "
                f"({_OPTIONS[other]}), but can be of one kind only; remove it from one of them."
            )
    if options.decimal not in (None, ".", ","):
        wrong.append(f"decimal must be '.' or ',', got {options.decimal!r}.")
    if options.day_first not in (None, True, False):
        wrong.append(f"day_first must be True, False or None, got {options.day_first!r}.")
    if wrong:
        raise ValueError(" ".join(wrong))
    return options._replace(**given, missing=markers)


def _names(names: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys((names,) if isinstance(names, str) else names))
