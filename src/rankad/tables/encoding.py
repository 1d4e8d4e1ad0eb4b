"""Encoding tables of mixed columns as rows of numbers, as learned from nominal rows."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.columns.inferred import ColumnOptions
from rankad.columns.missing_values import MissingMarker, without_markers
from rankad.io.errors import listed, not_split, shown
from rankad.tables.encoded_columns import CategoryColumn, Column, EmptyColumn, NumberColumn, to_stored
from rankad.tables.frames import as_frame
from rankad.tables.stored import Note, read_columns, read_count, read_markers, read_names, read_notes
from rankad.tables.strange_cells import StrangeCell

# The version of what is stored.
_SCHEMA = 2


class Encoded(NamedTuple):
    """A table as rows of numbers."""

    rows: Floats  # of shape (n, d), always finite: a typical value stands for a strange cell
    strange: list[StrangeCell]  # cells that no nominal row has, column by column

    @property
    def strange_rows(self) -> Ints:
        """The rows with a strange cell, ascending."""
        return np.unique(np.array([cell.row for cell in self.strange], dtype=np.int64))


@dataclass(frozen=True)
class TableEncoder:
    """Turns the columns of a table into numbers, as learned from nominal rows by `fit`.

    Numbers stay numbers. A category becomes an indicator (0 or 1 / sqrt(2), so that two categories are at
    distance one), and so does a missing value. If there is any indicator, numbers are standardized, so that
    both weigh alike; a table of numbers without gaps is left unchanged. Of a time, the hour of the day, the
    weekday and the season become points on circles.

    Cells that no nominal row has are *strange* instead: a new category, a missing value in a column that was
    complete, another value of a constant, infinity, text in a column of numbers.

    Examples
    --------
    >>> nominal = {"x": [1.0, 2.0, 3.0, 4.0], "color": ["red", "red", "blue", "blue"]}
    >>> encoder = TableEncoder.fit(nominal, min_count=2)
    >>> encoder.encode({"color": ["red", "green"], "x": [2.5, 1.0]})
    Encoded(rows=array([[ 0.        ,  0.        ,  0.70710678],
           [-1.34164079,  0.70710678,  0.        ]]),
           strange=[StrangeCell(row=1, column='color', what='not among the categories of normal rows',
           value='green')])
    """

    columns: tuple[Column, ...]
    ids: tuple[str, ...]  # columns left out as ids, as asked for or as inferred
    dropped: tuple[str, ...]  # other columns left out
    n_rows: int  # nominal rows
    # Nominal rows that would be strange had they been left out. About as many of the new normal rows are
    # strange; see `TableDetector`.
    n_singletons: int
    categories: tuple[str, ...] = ()  # columns that the user declared to be categories
    notes: tuple[Note, ...] = ()  # what each column was inferred to be, and how sure that is
    missing: tuple[MissingMarker, ...] = ()  # values that count as missing

    @classmethod
    def fit(cls, frame: Any, *, min_count: int = 5, **options: Any) -> TableEncoder:
        """Learn from a table of nominal rows: any that `as_frame` takes.

        `rankad.columns.inference.infer_column` infers what each column is; `notes` says which of these
        guesses could be wrong. Categories of fewer than `min_count` nominal rows, or of fewer than one in
        200, share one indicator. Options are the fields of `rankad.columns.inferred.ColumnOptions`.
        """
        from rankad.tables.learning import learn_encoder

        return learn_encoder(frame, ColumnOptions(**options), min_count=min_count).encoder

    def encode(self, frame: Any) -> Encoded:
        """Turn a table with the columns of the nominal rows into rows of numbers.

        Columns are found by name, in any order; others are ignored.
        """
        table = self.table_of(frame)
        # Contiguous columns are faster to write; detectors need contiguous rows.
        encoded = np.empty((table.height, self.n_encoded), order="F")
        strange: list[StrangeCell] = []
        for column, part in self._parts(encoded):
            strange += column.encode(self.cells(table, column.name), part)
        return Encoded(np.ascontiguousarray(encoded), strange)

    def table_of(self, frame: Any) -> pl.DataFrame:
        """Return a table as a polars frame, or raise if it lacks a column."""
        table = as_frame(frame)
        there = set(table.columns)
        absent = [column.name for column in self.columns if column.name not in there]
        if absent:
            raise ValueError(
                f"the table lacks {listed(absent)}, which the detector was fitted with; it has "
                f"{listed(table.columns) or 'no columns'}. "
                f"{_in_the_index(frame, absent) or _renaming(absent, table.columns, len(self.columns))}"
            )
        return table

    def names_of_rows(self, table: pl.DataFrame) -> list[str | None]:
        """Return the cells of the id columns of each row, None if the table has no such columns."""
        ids = [name for name in self.ids if name in table.columns]
        if not ids:
            return [None] * table.height
        return [
            " ".join(str(part) for part in row if part is not None) for row in table.select(ids).iter_rows()
        ]

    def cells(self, table: pl.DataFrame, name: str) -> pl.Series:
        """Return the cells of a column, null where a marker of missing values stands."""
        return without_markers(table[name], self.missing)

    def decode(self, rows: Floats) -> pl.DataFrame:
        """Return the table that encoded rows stand for.

        Rows may be made up: a category is the one with the largest indicator. Rare categories are "(other)".
        """
        parts = self._parts(np.asarray(rows, dtype=np.float64))
        return pl.DataFrame({column.name: column.decode(part) for column, part in parts})

    def _parts(self, rows: Floats) -> Iterator[tuple[Column, Floats]]:
        """Yield each column with its encoded columns."""
        begin = 0
        for column in self.columns:
            yield column, rows[:, begin : begin + column.width]
            begin += column.width

    @property
    def n_encoded(self) -> int:
        """The number of encoded columns."""
        return sum(column.width for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table that are encoded: all but those from which there is nothing to learn."""
        return tuple(column.name for column in self.columns if column.width)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The encoded columns of each of `names`."""
        widths = [column.width for column in self.columns if column.width]
        ends = np.cumsum(widths).tolist()
        return tuple(tuple(range(end - width, end)) for width, end in zip(widths, ends, strict=True))

    @property
    def is_plain(self) -> bool:
        """Whether rows are numbers without gaps, which are left unchanged."""
        return all(is_plain(column) for column in self.columns)

    def describe(self) -> list[str]:
        """Say in a line for each column what it became, and how missing values are treated."""
        notes = {note.name: note for note in self.notes}
        lines = []
        for column in self.columns:
            line = column.describe()
            if column.name in self.categories and column.width:
                line += "; a category because asked for"
            elif column.name in notes and notes[column.name].sure != "sure":
                line += f"; {notes[column.name].sure}"
            markers = [shown(marker.value) for marker in self.missing if marker.column in (None, column.name)]
            if markers:
                line += f"; {', '.join(markers)} {'counts' if len(markers) == 1 else 'count'} as missing"
            lines.append(line)
        lines += [f"{name}: names rows, not used" for name in self.ids]
        return lines + [f"{name}: dropped" for name in self.dropped]

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as an object that JSON can write."""
        return {
            "schema": _SCHEMA,
            "columns": [to_stored(column) for column in self.columns],
            "ids": list(self.ids),
            "dropped": list(self.dropped),
            "categories": list(self.categories),
            "notes": [note._asdict() for note in self.notes],
            "missing": [marker._asdict() for marker in self.missing],
            "n_rows": self.n_rows,
            "n_alone": self.n_singletons,
        }

    @classmethod
    def from_dict(cls, stored: Any) -> TableEncoder:
        """Return the encoder stored by `to_dict`; a ValueError says what is wrong with anything else."""
        if not isinstance(stored, dict):
            raise ValueError(f"an encoder must be stored as an object, got {type(stored).__name__}.")
        schema = stored.get("schema")
        if type(schema) is not int or schema != _SCHEMA:
            shown_schema = reprlib.repr(schema)
            raise ValueError(
                f"the encoder has schema {shown_schema}, and this rankad reads {_SCHEMA}: fit again."
            )
        columns = read_columns(stored.get("columns"))
        n_rows = read_count("n_rows", stored.get("n_rows"), least=1)
        n_singletons = read_count("n_alone", stored.get("n_alone"))
        if n_singletons > n_rows:
            raise ValueError(f"n_alone must be at most n_rows, got {n_singletons} of {n_rows}.")
        ids, dropped, categories = (
            read_names(each, stored.get(each)) for each in ("ids", "dropped", "categories")
        )
        if wrong := set(categories) - {
            c.name for c in columns if isinstance(c, (CategoryColumn, EmptyColumn))
        }:
            raise ValueError(f"categories names {min(wrong)!r:.200}, which is not stored as one.")
        notes = read_notes(stored.get("notes"))
        # Older models do not have it.
        missing = read_markers(stored.get("missing", []))
        return cls(columns, ids, dropped, n_rows, n_singletons, categories, notes, missing)


def _in_the_index(frame: Any, absent: Sequence[str]) -> str:
    """Say what to do about a missing column that a pandas frame has as its index, "" if it has none."""
    names = getattr(getattr(frame, "index", None), "names", ())
    name = next((name for name in absent if name in names), None)
    return f"{name!r} is in its index, which is not read: pass frame.reset_index()." if name else ""


def _renaming(absent: Sequence[str], there: Sequence[str], n_columns: int) -> str:
    """Say what to do about missing columns, which may be there with other spaces or capitals."""
    alike = {name.strip().casefold(): name for name in there}
    for name in absent:
        if similar := alike.get(name.strip().casefold()):
            return f"Is {similar!r} it? Then rename it to {name!r}, letter by letter."
    if hint := not_split(there):
        return hint
    if len(absent) == n_columns > 1:
        return "Does the first line of the table name its columns?"
    return "Add it, rename the column that holds it, or fit without it."


def is_plain(column: Column) -> bool:
    """Tell whether a column is left unchanged, or not encoded at all."""
    return not column.missing if isinstance(column, NumberColumn) else not column.width
