"""Mixed tables to rows of numbers, by what nominal rows were like."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.columns.kinds import Told
from rankad.columns.stand_ins import StandIn, blanked
from rankad.io.errors import listed, shown
from rankad.tables.encoded_columns import CategoryColumn, Column, EmptyColumn, NumberColumn, Strange
from rankad.tables.frames import as_frame
from rankad.tables.stored import Note, read_columns, read_count, read_names, read_notes, read_stored_stand_ins

__all__ = ["Encoded", "TableEncoder"]

# Since the second, numbers have a format, and there are times.
_SCHEMA, _OLDEST = 2, 1


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

    Of a time, the hour of the day, the weekday and the season become places on circles.

    What no nominal row has is not encoded, it is *strange*: a new category, a missing value in a column that
    was complete, a change of a constant, infinity, text that is no number in a column of numbers.

    Attributes
    ----------
    columns : tuple of NumberColumn, CategoryColumn, TimeColumn or EmptyColumn
    ids, dropped : tuple of str
        Columns left out: those that name rows, and others. Those that were found to be so are among them.
    n_rows : int
        How many nominal rows there were.
    n_alone : int
        How many of them would have been strange to the others. Nominal rows to come will be so about as
        often; see `TableDetector`.
    categories : tuple of str
        Columns that were to be taken as categories, whatever they look like.
    notes : tuple of Note
        How each column of the nominal table was understood, and how sure that is.
    missing : tuple of StandIn
        Values that count as missing, as the user says.

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
    notes: tuple[Note, ...] = ()
    missing: tuple[StandIn, ...] = ()

    @classmethod
    def fit(
        cls,
        frame: Any,
        *,
        ids: Sequence[str] = (),
        drop: Sequence[str] = (),
        numbers: Sequence[str] = (),
        categories: Sequence[str] = (),
        times: Sequence[str] = (),
        decimal: str | None = None,
        day_first: bool | None = None,
        missing: Any = (),
        min_count: int = 5,
    ) -> TableEncoder:
        """Learn from a table of nominal rows.

        What each column is, is decided by `rankad.columns.kinds.understand`; `notes` says what was decided,
        and which guesses could be wrong. Parameters are those of `TableDetector`.

        Parameters
        ----------
        frame : polars or pandas DataFrame, pyarrow Table, dict of columns, or Untyped
        ids, drop, numbers, categories, times : sequence of str
            Columns that are of this kind, whatever they look like.
        decimal : {".", ","}, optional
        day_first : bool, optional
        missing : value, collection of values, or mapping of columns to these
        min_count : int
            Categories of fewer nominal rows, or of fewer than one in 200, share one indicator.
        """
        from rankad.tables.learning import learn_encoder

        told = Told(numbers, categories, times, ids, drop, decimal, day_first, missing)
        return learn_encoder(frame, told, min_count=min_count).encoder

    def encode(self, frame: Any) -> Encoded:
        """Turn a table into rows of numbers.

        Parameters
        ----------
        frame : polars or pandas DataFrame, pyarrow Table, or dict of columns
            With the columns of the nominal rows, by name, in any order; others are ignored.

        Returns
        -------
        Encoded
        """
        table = as_frame(frame)
        there = set(table.columns)
        absent = [column.name for column in self.columns if column.name not in there]
        if absent:
            raise ValueError(
                f"the table lacks {listed(absent)}, which the detector was fitted with; it has "
                f"{listed(table.columns) or 'no columns'}. "
                f"{_renaming(absent, table.columns, len(self.columns))}"
            )
        # Column by column in memory, so that each is written in one go; detectors take rows.
        encoded = np.empty((table.height, self.n_encoded), order="F")
        strange: list[Strange] = []
        begin = 0
        for column in self.columns:
            end = begin + column.width
            strange += column.encode(self.cells(table, column.name), encoded[:, begin:end])
            begin = end
        return Encoded(np.ascontiguousarray(encoded), strange)

    def cells(self, table: pl.DataFrame, name: str) -> pl.Series:
        """Return the cells of a column, missing where a value stands for a missing one."""
        return blanked(table[name], self.missing)

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
        """The source columns that are encoded: all but those from which there is nothing to learn."""
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
            line += self._said_missing(column.name)
            lines.append(line)
        lines += [f"{name}: names rows, not used" for name in self.ids]
        return lines + [f"{name}: dropped" for name in self.dropped]

    def _said_missing(self, name: str) -> str:
        """Say which values of a column count as missing because the user says so."""
        values = [shown(each.value) for each in self.missing if each.column in (None, name)]
        if not values:
            return ""
        return f"; {', '.join(values)} {'counts' if len(values) == 1 else 'count'} as missing"

    def to_dict(self) -> dict[str, Any]:
        """Return all there is in a form that can be written as JSON."""
        return {
            "schema": _SCHEMA,
            "columns": [column.to_dict() for column in self.columns],
            "ids": list(self.ids),
            "dropped": list(self.dropped),
            "categories": list(self.categories),
            "notes": [note._asdict() for note in self.notes],
            "missing": [each._asdict() for each in self.missing],
            "n_rows": self.n_rows,
            "n_alone": self.n_alone,
        }

    @classmethod
    def from_dict(cls, stored: Any) -> TableEncoder:
        """Return the encoder that `to_dict` was called on; a ValueError says what is wrong with any other."""
        if not isinstance(stored, dict):
            raise ValueError(f"an encoder must be stored as an object, got {type(stored).__name__}.")
        schema = stored.get("schema")
        if not isinstance(schema, int) or isinstance(schema, bool) or not _OLDEST <= schema <= _SCHEMA:
            raise ValueError(
                f"the encoder is stored in schema {reprlib.repr(schema)}, this rankad reads {_OLDEST} to "
                f"{_SCHEMA}."
            )
        columns = read_columns(stored.get("columns"), old=schema < _SCHEMA)
        n_rows = read_count("n_rows", stored.get("n_rows"), least=1)
        n_alone = read_count("n_alone", stored.get("n_alone"))
        if n_alone > n_rows:
            raise ValueError(f"n_alone must be at most n_rows, got {n_alone} of {n_rows}.")
        ids, dropped, categories = (
            read_names(name, stored.get(name)) for name in ("ids", "dropped", "categories")
        )
        wrong = set(categories).difference(
            c.name for c in columns if isinstance(c, (CategoryColumn, EmptyColumn))
        )
        if wrong:
            raise ValueError(f"categories names {min(wrong)!r:.200}, which is not stored as one.")
        notes = () if schema < _SCHEMA else read_notes(stored.get("notes"))
        # Older models do not have it.
        missing = read_stored_stand_ins(stored.get("missing", []))
        return cls(columns, ids, dropped, n_rows, n_alone, categories, notes, missing)


def _renaming(absent: Sequence[str], there: Sequence[str], n_columns: int) -> str:
    """Say what to do about columns that are not there: maybe they are, with other blanks or capitals."""
    alike = {name.strip().casefold(): name for name in there}
    for name in absent:
        if found := alike.get(name.strip().casefold()):
            return f"Is {found!r} it? Name it {name!r} then, letter by letter."
    if len(absent) == n_columns > 1:
        return "Does the first line of the table name its columns?"
    return "Add it, rename the column that it is, or fit without it."


def is_plain(column: Column) -> bool:
    """Tell whether a column is encoded as it is, or not at all."""
    if isinstance(column, NumberColumn):
        return not column.missing
    return not column.width
