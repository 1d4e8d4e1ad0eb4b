"""Mixed tables to rows of numbers, by what nominal rows were like."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rankad._arrays import Floats, Ints
from rankad.tables.columns import CategoryColumn, Column, EmptyColumn, Learned, NumberColumn, Strange
from rankad.tables.frames import as_frame
from rankad.tables.numbers import all_numbers
from rankad.tables.stored import read_columns, read_count, read_names
from rankad.tables.words import all_dates, has_value

__all__ = ["Encoded", "LearnedEncoder", "TableEncoder", "learn_encoder"]

_SCHEMA = 1


class Encoded(NamedTuple):
    """A table in numbers.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
        Always finite: a typical value stands for a strange cell.
    strange : list of Strange
        Cells such as no nominal row has, column by column.
    """

    rows: Floats
    strange: list[Strange]

    @property
    def strange_rows(self) -> Ints:
        """The rows with a strange cell, ascending."""
        return np.unique(np.array([cell.row for cell in self.strange], dtype=np.int64))


@dataclass(frozen=True)
class TableEncoder:
    """What each column of a table becomes, learned from nominal rows by `fit`.

    Numbers stay numbers. A category becomes an indicator (0 or 1 / sqrt(2), so that two categories are at
    distance one), and so does a missing value. Where there is any indicator, numbers are standardized, so
    that both weigh alike; a table of numbers without gaps is left as it is.

    What no nominal row has is not encoded, it is *strange*: a new category, a missing value in a column that
    was complete, a change of a constant, infinity.

    Attributes
    ----------
    columns : tuple of NumberColumn, CategoryColumn or EmptyColumn
    ids, dropped : tuple of str
        Columns left out: those that name rows, and others.
    n_rows : int
        How many nominal rows there were.
    n_alone : int
        How many of them would have been strange to the others. Nominal rows to come will be so about as
        often; see `TableDetector`.
    categories : tuple of str
        Columns that were to be taken as categories, whatever they look like.

    Examples
    --------
    >>> nominal = {"x": [1.0, 2.0, 3.0, 4.0], "color": ["red", "red", "blue", "blue"]}
    >>> encoder = TableEncoder.fit(nominal, min_count=2)
    >>> encoder.encode({"color": ["red", "green"], "x": [2.5, 1.0]})
    Encoded(rows=array([[ 0.        ,  0.        ,  0.70710678],
           [-1.34164079,  0.70710678,  0.        ]]),
           strange=[Strange(row=1, column='color', what='not among the categories of nominal rows',
           value='green')])
    """

    columns: tuple[Column, ...]
    ids: tuple[str, ...]
    dropped: tuple[str, ...]
    n_rows: int
    n_alone: int
    categories: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls,
        frame: Any,
        *,
        ids: Sequence[str] = (),
        drop: Sequence[str] = (),
        categories: Sequence[str] = (),
        min_count: int = 5,
    ) -> TableEncoder:
        """Learn from a table of nominal rows.

        Numbers, durations (in seconds) and text that can be read as numbers throughout are numbers. Booleans,
        also as text, categories and other text are categories. Dates and times, also as text, are an error:
        new rows are later than all nominal ones, so a date as such tells nothing. Turn them into what
        matters, as the hour of the day.

        Parameters
        ----------
        frame : polars or pandas DataFrame, pyarrow Table, or dict of columns
        ids, drop : sequence of str
            Columns to leave out: those that name rows, and others.
        categories : sequence of str
            Columns to take as categories even if they look like numbers, as zip codes do. Text is taken as it
            is written: "01234" and "1234" are two categories.
        min_count : int
            Categories of fewer nominal rows share one indicator.
        """
        return learn_encoder(frame, ids=ids, drop=drop, categories=categories, min_count=min_count).encoder

    def encode(self, frame: Any, *, first_row: int = 0) -> Encoded:
        """Turn a table into rows of numbers.

        Parameters
        ----------
        frame : polars or pandas DataFrame, pyarrow Table, or dict of columns
            With the columns of the nominal rows, by name, in any order; others are ignored.
        first_row : int
            How many rows came before this batch, for error messages.

        Returns
        -------
        Encoded
        """
        table = as_frame(frame)
        there = set(table.columns)
        absent = [column.name for column in self.columns if column.name not in there]
        if absent:
            raise ValueError(
                f"the table lacks {_listed(absent)}, which the detector was fitted with; it has "
                f"{_listed(table.columns) or 'no columns'}."
            )
        # Column by column in memory, so that each is written in one go; detectors take rows.
        encoded = np.empty((table.height, self.n_encoded), order="F")
        strange: list[Strange] = []
        begin = 0
        for column in self.columns:
            end = begin + column.width
            strange += column.encode(table[column.name], encoded[:, begin:end], first_row)
            begin = end
        return Encoded(np.ascontiguousarray(encoded), strange)

    def decode(self, rows: Floats) -> pl.DataFrame:
        """Return the table that encoded rows stand for, with the source columns.

        Rows may be made up: a category is the one with the largest indicator. Rare categories are "(other)".
        """
        parts, begin = [], 0
        values = np.asarray(rows, dtype=np.float64)
        for column in self.columns:
            parts.append(column.decode(values[:, begin : begin + column.width]))
            begin += column.width
        return pl.DataFrame({series.name: series for series in parts})

    @property
    def n_encoded(self) -> int:
        """The number of encoded columns."""
        return sum(column.width for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The source columns that are encoded: all but those without a nominal value."""
        return tuple(column.name for column in self.columns if column.width)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The encoded columns of each of `names`."""
        widths = [column.width for column in self.columns if column.width]
        ends = np.cumsum(widths).tolist()
        return tuple(tuple(range(end - width, end)) for width, end in zip(widths, ends, strict=True))

    @property
    def is_plain(self) -> bool:
        """Whether rows are encoded as they are: numbers alone, without gaps."""
        return all(_is_plain(column) for column in self.columns)

    def describe(self) -> list[str]:
        """Say in a line for each column what it became, and how missing values are treated."""
        lines = [
            column.describe()
            + ("; a category because asked for" if column.name in self.categories and column.width else "")
            for column in self.columns
        ]
        lines += [f"{name}: names rows, not used" for name in self.ids]
        return lines + [f"{name}: dropped" for name in self.dropped]

    def to_dict(self) -> dict[str, Any]:
        """Return all there is in a form that can be written as JSON."""
        return {
            "schema": _SCHEMA,
            "columns": [column.to_dict() for column in self.columns],
            "ids": list(self.ids),
            "dropped": list(self.dropped),
            "categories": list(self.categories),
            "n_rows": self.n_rows,
            "n_alone": self.n_alone,
        }

    @classmethod
    def from_dict(cls, stored: Any) -> TableEncoder:
        """Return the encoder that `to_dict` was called on; a ValueError says what is wrong with any other."""
        if not isinstance(stored, dict):
            raise ValueError(f"an encoder must be stored as an object, got {type(stored).__name__}.")
        if stored.get("schema") != _SCHEMA or isinstance(stored["schema"], bool):
            raise ValueError(
                f"the encoder is stored in schema {reprlib.repr(stored.get('schema'))}, this rankad reads "
                f"{_SCHEMA}."
            )
        columns = read_columns(stored.get("columns"))
        n_rows = read_count("n_rows", stored.get("n_rows"), least=1)
        n_alone = read_count("n_alone", stored.get("n_alone"))
        if n_alone > n_rows:
            raise ValueError(f"n_alone must be at most n_rows, got {n_alone} of {n_rows}.")
        ids, dropped, categories = (
            read_names(name, stored.get(name)) for name in ("ids", "dropped", "categories")
        )
        wrong = set(categories).difference(c.name for c in columns if not isinstance(c, NumberColumn))
        if wrong:
            raise ValueError(f"categories names {min(wrong)!r:.200}, which is not stored as one.")
        return cls(columns, ids, dropped, n_rows, n_alone, categories)


class LearnedEncoder(NamedTuple):
    """An encoder, and the nominal rows that would have been strange to the others."""

    encoder: TableEncoder
    alone: Ints


def learn_encoder(
    frame: Any, *, ids: Sequence[str], drop: Sequence[str], categories: Sequence[str], min_count: int
) -> LearnedEncoder:
    """Learn an encoder from nominal rows: see `TableEncoder.fit`."""
    table = as_frame(frame)
    ids, drop = _names("ids", ids, table), _names("drop", drop, table)
    categories = _names("categories", categories, table)
    for name in categories:
        if name in {*ids, *drop}:
            raise ValueError(
                f"column {name!r} cannot be a category and be left out, but categories (--category) and "
                f"{'ids (--id)' if name in ids else 'drop (--drop)'} both name it; take it out of one."
            )
    if not isinstance(min_count, int) or isinstance(min_count, bool) or min_count < 1:
        raise ValueError(f"min_count must be an integer >= 1, got {min_count!r}.")
    left_out, as_category = {*ids, *drop}, set(categories)
    used = [name for name in table.columns if name not in left_out]
    if not used or not table.height:
        raise ValueError(
            f"a detector needs rows and columns to learn from, but the table has {table.height} rows and "
            f"{len(used)} columns (beside ids and dropped ones)."
        )
    learned = [_learn(table[name], min_count, is_category=name in as_category) for name in used]
    columns = [found.column for found in learned]
    if not any(column.width for column in columns):
        raise ValueError(
            "all columns are empty: every nominal value is missing, so there is nothing to learn."
        )
    if all(_is_plain(column) for column in columns):
        columns = [replace(c, center=0.0, scale=1.0) if isinstance(c, NumberColumn) else c for c in columns]
    alone = np.unique(np.concatenate([found.alone for found in learned]))
    encoder = TableEncoder(tuple(columns), ids, drop, table.height, alone.size, categories)
    return LearnedEncoder(encoder, alone)


def _is_plain(column: Column) -> bool:
    return isinstance(column, EmptyColumn) or (isinstance(column, NumberColumn) and not column.missing)


def _learn(series: pl.Series, min_count: int, *, is_category: bool) -> Learned:
    kind, name = series.dtype, series.name
    if kind == pl.String and not is_category and all_numbers(series):
        # The most common by far, and dates are no numbers.
        return NumberColumn.learn(series)
    is_date = kind.is_temporal() and not isinstance(kind, pl.Duration)
    if is_date or (kind == pl.String and not is_category and all_dates(series)):
        raise ValueError(
            f"column {name!r} holds dates or times ({kind}): new rows are later than all nominal ones, so it "
            f"tells nothing. Drop it (drop=[{name!r}] or --drop {name}), or turn it into a number, as the "
            f"hour of the day."
        )
    if not has_value(series).any():
        return Learned(EmptyColumn(name), np.empty(0, dtype=np.int64))
    text = kind == pl.String
    is_number = kind.is_numeric() or isinstance(kind, pl.Duration)
    if not is_category and is_number:
        return NumberColumn.learn(series)
    if text or kind.is_numeric() or kind == pl.Boolean or isinstance(kind, (pl.Categorical, pl.Enum)):
        return CategoryColumn.learn(series, min_count)
    raise ValueError(
        f"column {name!r} is of type {kind}, but must hold numbers, booleans or text; drop it "
        f"(drop=[{name!r}] or --drop {name}), or turn it into one of them."
    )


def _names(parameter: str, names: Sequence[str], table: pl.DataFrame) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names)
    there = set(table.columns)
    absent = [name for name in found if name not in there]
    if absent:
        raise ValueError(
            f"{parameter} names {_listed(absent)}, which the table lacks; it has {_listed(table.columns)}."
        )
    return tuple(dict.fromkeys(found))


def _listed(names: Sequence[Any], shown: int = 10) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(repr(name) for name in names[:shown]) + more
