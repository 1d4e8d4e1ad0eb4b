"""Markers of missing values that the user gives: -999 in all columns, 0 in one."""

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

__all__ = ["MissingMarker", "missing_option", "parse_markers", "unused_markers", "without_markers"]


class MissingMarker(NamedTuple):
    """A value, as text, that marks missing ones in a column; in all columns if `column` is None.

    Examples
    --------
    >>> MissingMarker(None, "-999").matches(pl.Series(["-999", " -999.0 ", "12", None])).to_list()
    [True, True, False, False]
    """

    column: str | None
    value: str

    def matches(self, series: pl.Series) -> pl.Series:
        """Tell which cells equal it as text, as a number or as a time, whatever the type of the column."""
        kind, value = series.dtype, pl.Series([self.value])
        number = PLAIN.read(value)[0]
        mask = pl.Series([False]).new_from_index(0, len(series))
        if is_text(kind):
            text = series.cast(pl.String)
            mask = text.str.strip_chars() == self.value
            if number is not None:
                mask |= PLAIN.read(text) == number
            elif (moment := TimeFormat(("ymd",)).read(value)[0]) is not None:
                mask |= (TimeFormat(("ymd",)).read(text) == moment).fill_null(False)
        elif kind.is_temporal() and not isinstance(kind, pl.Duration):
            if recognized := recognize_times(value):
                mask = TimeFormat().read(series) == recognized.format.read(value)[0]
        elif kind == pl.Boolean:
            mask = series.cast(pl.String) == self.value.lower()
        elif number is not None and (kind.is_numeric() or isinstance(kind, pl.Duration)):
            values = read_numbers(series)
            # 999.9 is another number in four bytes.
            close = float(np.float32(number)) if kind == pl.Float32 else number
            mask = pl.Series((values == number) | (values == close))
        return mask.fill_null(False)


def parse_markers(missing: Any) -> tuple[MissingMarker, ...]:
    """Return the markers that the user gives: values for all columns, or a mapping of columns to values.

    >>> parse_markers({None: -999, "pressure": [0, "off"]})
    (MissingMarker(column=None, value='-999'), MissingMarker(column='pressure', value='0'),
     MissingMarker(column='pressure', value='off'))
    """
    by_column: Iterable[tuple[Any, Any]] = (
        missing.items() if isinstance(missing, Mapping) else [(None, missing)]
    )
    markers = []
    for column, values in by_column:
        if not (column is None or isinstance(column, str)):
            raise ValueError(
                f"missing must name columns by text, got {column!r}; None stands for all columns."
            )
        several = isinstance(values, (Collection, np.ndarray)) and not isinstance(values, (str, bytes))
        markers += [MissingMarker(column, _as_text(value)) for value in (values if several else [values])]
    return tuple(dict.fromkeys(markers))


def _as_text(value: Any) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    text = ""
    if isinstance(value, str):
        text = value.strip()
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, (int, float)):
        text = "" if math.isnan(value) else repr(value).removesuffix(".0")
    elif isinstance(value, datetime.date):
        text = value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if not text:
        raise ValueError(
            f"missing must be numbers, texts or dates that mark missing values, got {value!r}; empty cells "
            f"and NaN are missing anyway."
        )
    return text


def without_markers(series: pl.Series, markers: Sequence[MissingMarker]) -> pl.Series:
    """Return a column with null in place of its markers."""
    for marker in markers:
        if marker.column is None or marker.column == series.name:
            marked = marker.matches(series)
            if marked.any():
                series = pl.select(pl.when(~marked).then(series).alias(series.name)).to_series()
    return series


def unused_markers(table: pl.DataFrame, markers: Sequence[MissingMarker]) -> list[str]:
    """Return a warning for each marker that no cell has, since it is likely misspelt."""
    return [
        f"no cell of {'the table' if marker.column is None else f'column {marker.column!r}'} is "
        f"{marker.value!r}, which is to mark missing values (--missing, missing): write it as the cells do, "
        f"or leave it out. It counts as missing in new rows all the same."
        for marker in markers
        if not any(
            marker.matches(table[name]).any()
            for name in (table.columns if marker.column is None else [marker.column])
        )
    ]


def missing_option(name: str, value: str) -> str:
    """Return the command-line option and the parameter that make a value mark missing ones.

    >>> missing_option("flow", "-999")
    "--missing flow=-999 (missing={'flow': '-999'})"
    """
    return f"--missing {shlex.quote(f'{name}={value}')} (missing={{{name!r}: {value!r}}})"
