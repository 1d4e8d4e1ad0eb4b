"""Markers of missing values, given by the user or likely: -999 among numbers, 1900-01-01 among dates."""

from __future__ import annotations

import datetime
import math
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints
from rankad.columns.formats import PLAIN
from rankad.columns.times import TimeFormat, recognize_times
from rankad.io.numbers import is_text, read_numbers

# Fewer other values do not show what is far from them.
_ENOUGH = 20
# Where it is the only negative value, and whole, this many cells with it are no chance.
_SEVERAL = 3
# A marker stands in this share of the rows, at least, unless it is farther away than any measurement.
_SHARE = 0.01
# More zeros than these are measured while a machine is idle.
_MOST_ZEROS = 0.2
# Distances in units of the width of the middle 80 % of the other values.
_NEAR, _FAR, _BEYOND_DOUBT = 0.5, 2.0, 20.0
# Beside 99, 999, 9999 ...: the largest and the least integers of two and four bytes.
_LIMITS = frozenset({32767.0, 65535.0, 2147483647.0, 4294967295.0, 32768.0, 2147483648.0})
_LEAST_NINES, _HUGE = 99.0, 1e20
_DATES = frozenset({datetime.date(1900, 1, 1), datetime.date(1970, 1, 1)})
_YEAR = 366 * 86_400e6


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


def as_written(value: float) -> str:
    """Return a number as text, without the decimals of a whole one."""
    return f"{value:.15g}"


def marker_among_numbers(name: str, numbers: Floats, written: Callable[[float], str] = as_written) -> str:
    """Say that one value may mark missing ones, and what to do; "" if none does."""
    values = numbers[np.isfinite(numbers)]
    marker = likely_marker(values)
    if marker is None:
        return ""
    return (
        f"{as_written(marker.value)} stands in {marker.n_cells:,} of {values.size:,} cells and {marker.why}; "
        f"if it marks missing values, which would distort the scale of the others, use "
        f"{missing_option(name, written(marker.value))}"
    )


def marker_among_times(name: str, times: pl.Series, cells: pl.Series) -> str:
    """Say that one time, read from `cells`, may mark missing ones, and what to do; "" if none does."""
    marker = likely_marker_time(times)
    if marker is None:
        return ""
    when = pl.Series([int(marker.value)]).cast(pl.Datetime("us")).dt.strftime("%Y-%m-%d")[0]
    at = int((times.to_physical() == int(marker.value)).arg_max() or 0)
    return (
        f"{when} stands in {marker.n_cells:,} of {len(times.drop_nulls()):,} cells and {marker.why}; if it "
        f"marks missing values, use {missing_option(name, str(cells[at]))}"
    )


class LikelyMarker(NamedTuple):
    """A value that may mark missing ones, how many cells have it, and what sets it apart."""

    value: float
    n_cells: int
    why: str


def likely_marker(values: Floats) -> LikelyMarker | None:
    """Return the least or the largest value if it likely marks missing ones, None otherwise.

    Zero does if it is rare, since idle machines measure it. Positive values do if they are usual codes, since
    machines on standby repeat one value too.
    """
    if values.size < _ENOUGH:
        return None
    for value in (float(values.min()), float(values.max())):
        code = _is_code(value)
        if value > 0 and not code:
            continue
        others = values[values != value]
        n = values.size - others.size
        if value == 0 and not _SEVERAL <= n <= _MOST_ZEROS * values.size:
            continue
        if not any(np.unique(part).size >= _ENOUGH for part in (others[:1000], others)):
            # A few distinct values are a scale such as -1, 0 and 1.
            continue
        width = float(np.subtract(*np.quantile(others, [0.9, 0.1])))
        gap = float(np.abs(others - value).min()) / width if width > 0 else 0.0
        often = n >= max(_SEVERAL, _SHARE * values.size)
        if (gap > _FAR and often and value < 0) or (gap > _BEYOND_DOUBT and code):
            return LikelyMarker(value, n, "lies far from all others")
        if gap > _NEAR and (value == 0 or (often and code)):
            return LikelyMarker(value, n, "lies apart from all others")
        only = width > 0 and value < 0 <= others.min() and value == np.floor(value)
        if only and n >= (2 if code else _SEVERAL):
            return LikelyMarker(value, n, "is the only one below zero")
    return None


def _is_code(value: float) -> bool:
    """Tell whether people and programs write this number for a missing one: -1, -99, 999.9, 65535."""
    size = abs(value)
    if value in (-1.0, -9.0) or size in _LIMITS or size >= _HUGE:
        return True
    return size >= _LEAST_NINES and set(f"{size:.15g}") <= set("9.")


def likely_marker_time(times: pl.Series) -> LikelyMarker | None:
    """Return the earliest or latest time, in microseconds, if it likely marks missing ones.

    It repeats, and lies a year or more from all others, and farther than these from one another unless it is
    1900-01-01 or 1970-01-01.
    """
    values: Ints = times.drop_nulls().to_physical().to_numpy()
    if values.size < _ENOUGH:
        return None
    for value in (int(values.min()), int(values.max())):
        others = values[values != value]
        n = values.size - others.size
        if others.size < _ENOUGH or n < 2:
            continue
        gap = float(np.abs(others - value).min())
        width = float(np.subtract(*np.quantile(others, [0.9, 0.1])))
        day = pl.Series([value], dtype=pl.Int64).cast(pl.Datetime("us")).dt.date()[0]
        if gap >= _YEAR and (gap > width or day in _DATES):
            return LikelyMarker(value, n, "lies years from all others")
    return None


def without_likely_marker(times: pl.Series) -> pl.Series:
    """Return times without the one that likely marks missing ones."""
    marker = likely_marker_time(times)
    return times if marker is None else times.filter(times.to_physical() != int(marker.value))
