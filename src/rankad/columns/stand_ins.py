"""Values that stand for missing ones, as the user says: -999 in all columns, 0 in one."""

from __future__ import annotations

import datetime
import math
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rankad.columns.formats import PLAIN
from rankad.columns.times import TimeFormat, recognize_times
from rankad.io.numbers import is_text, read_numbers

__all__ = ["StandIn", "blanked", "missing_option", "plainly", "read_stand_ins", "unused"]


class StandIn(NamedTuple):
    """A value that stands for a missing one.

    Attributes
    ----------
    column : str or None
        Where it does; None is everywhere.
    value : str
        As it would be written.

    Examples
    --------
    >>> StandIn(None, "-999").found_in(pl.Series(["-999", " -999.0 ", "12", None])).to_list()
    [True, True, False, False]
    """

    column: str | None
    value: str

    def found_in(self, series: pl.Series) -> pl.Series:
        """Tell which cells have it: as text, as a number or as a time, whatever the type of the column is."""
        kind, none = series.dtype, pl.Series([False]).new_from_index(0, len(series))
        found = none
        number = PLAIN.read(pl.Series([self.value]))[0]
        if is_text(kind):
            text = series.cast(pl.String)
            found = text.str.strip_chars() == self.value
            if number is not None:
                found |= PLAIN.read(text) == number
            elif (moment := TimeFormat(("ymd",)).read(pl.Series([self.value]))[0]) is not None:
                found |= (TimeFormat(("ymd",)).read(text) == moment).fill_null(False)
        elif kind.is_temporal() and not isinstance(kind, pl.Duration):
            read = recognize_times(pl.Series([self.value]))
            if read is not None:
                found = TimeFormat().read(series) == read.format.read(pl.Series([self.value]))[0]
        elif kind == pl.Boolean:
            found = series.cast(pl.String) == self.value.lower()
        elif number is not None and (kind.is_numeric() or isinstance(kind, pl.Duration)):
            values = read_numbers(series)
            # What was written as 999.9 is another number in four bytes.
            close = float(np.float32(number)) if kind == pl.Float32 else number
            found = pl.Series((values == number) | (values == close))
        return found.fill_null(False)


def read_stand_ins(given: Any) -> tuple[StandIn, ...]:
    """Return what the user says stands for missing values; raise where that is no value.

    Parameters
    ----------
    given : value, collection of values, or mapping of columns to these
        Values are for all columns; so are those of None in a mapping.

    Examples
    --------
    >>> read_stand_ins({None: -999, "pressure": [0, "off"]})
    (StandIn(column=None, value='-999'), StandIn(column='pressure', value='0'),
     StandIn(column='pressure', value='off'))
    """
    by_column: Iterable[tuple[Any, Any]] = given.items() if isinstance(given, Mapping) else [(None, given)]
    found = []
    for column, values in by_column:
        if not (column is None or isinstance(column, str)):
            raise ValueError(
                f"missing must name columns by text, got {column!r}; None stands for all columns."
            )
        several = isinstance(values, (Collection, np.ndarray)) and not isinstance(values, (str, bytes))
        found += [StandIn(column, _written(value)) for value in (values if several else [values])]
    return tuple(dict.fromkeys(found))


def _written(value: Any) -> str:
    """Return a value as it would be written."""
    value = value.item() if isinstance(value, np.generic) else value
    text = ""
    if isinstance(value, str):
        text = value.strip()
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, (int, float)):
        text = "" if math.isnan(value) else repr(value).removesuffix(".0")
    elif isinstance(value, (datetime.date, datetime.datetime)):
        text = value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if not text:
        raise ValueError(
            f"missing must be numbers, texts or dates that stand for missing values, got {value!r}; empty "
            f"cells and NaN are missing anyway."
        )
    return text


def blanked(series: pl.Series, stand_ins: Sequence[StandIn]) -> pl.Series:
    """Return a column with missing values where something stands for them."""
    for each in stand_ins:
        if each.column is None or each.column == series.name:
            there = each.found_in(series)
            if there.any():
                series = pl.select(pl.when(~there).then(series).alias(series.name)).to_series()
    return series


def unused(table: pl.DataFrame, stand_ins: Sequence[StandIn]) -> list[str]:
    """Say which values stand for missing ones and are nowhere in a nominal table: likely misspelt."""
    said = []
    for each in stand_ins:
        columns = table.columns if each.column is None else [each.column]
        if not any(each.found_in(table[name]).any() for name in columns):
            where = "the table" if each.column is None else f"column {each.column!r}"
            said.append(
                f"no cell of {where} is {each.value!r}, which is to stand for missing values (--missing, "
                f"missing): write it as the cells are, or leave it out. It counts as missing in new rows all "
                f"the same."
            )
    return said


def plainly(value: float) -> str:
    """Write a number.

    >>> plainly(-999.0), plainly(0.1)
    ('-999', '0.1')
    """
    return f"{value:.15g}"


def missing_option(name: str, value: str) -> str:
    """Name the option and the parameter that say that a value of a column stands for missing ones.

    >>> missing_option("flow", "-999")
    "--missing flow=-999 (missing={'flow': '-999'})"
    """
    return f"--missing {shlex.quote(f'{name}={value}')} (missing={{{name!r}: {value!r}}})"
