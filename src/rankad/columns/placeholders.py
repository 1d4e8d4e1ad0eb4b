"""Values that likely mark missing ones: -999 or 9999 among numbers, 1900-01-01 among dates."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import numpy as np
import polars as pl

from rankad._base.arrays import Floats, Ints

__all__ = ["Placeholder", "placeholder_among", "placeholder_time", "without_placeholder"]

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


class Placeholder(NamedTuple):
    """A value that may mark missing ones, how many cells have it, and what sets it apart."""

    value: float
    n_cells: int
    why: str


def placeholder_among(values: Floats) -> Placeholder | None:
    """Return the least or the largest value if it likely marks missing ones, None otherwise.

    Zero does if it is rare, since idle machines measure it. Positive values do if they are usual codes, since
    machines on standby repeat one value too.

    >>> rng = np.random.default_rng(0)
    >>> placeholder_among(np.append(rng.normal(20, 2, size=97).round(1), [-999.0] * 3)).value
    -999.0
    >>> placeholder_among(np.append(rng.normal(20, 2, size=97).round(1), [0.0] * 3)).value
    0.0
    >>> placeholder_among(np.append(rng.gamma(2, 2, size=97).round(1), [0.0] * 3)) is None
    True
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
            return Placeholder(value, n, "lies far from all others")
        if gap > _NEAR and (value == 0 or (often and code)):
            return Placeholder(value, n, "lies apart from all others")
        only = width > 0 and value < 0 <= others.min() and value == np.floor(value)
        if only and n >= (2 if code else _SEVERAL):
            return Placeholder(value, n, "is the only one below zero")
    return None


def _is_code(value: float) -> bool:
    """Tell whether people and programs write this number for a missing one: -1, -99, 999.9, 65535.

    >>> [value for value in (-1.0, 1.0, -9.0, 99.0, 99.99, 98.0, 65535.0) if _is_code(value)]
    [-1.0, -9.0, 99.0, 99.99, 65535.0]
    """
    size = abs(value)
    if value in (-1.0, -9.0) or size in _LIMITS or size >= _HUGE:
        return True
    return size >= _LEAST_NINES and set(f"{size:.15g}") <= set("9.")


def placeholder_time(times: pl.Series) -> Placeholder | None:
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
            return Placeholder(value, n, "lies years from all others")
    return None


def without_placeholder(times: pl.Series) -> pl.Series:
    """Return times without the one that likely marks missing ones."""
    marker = placeholder_time(times)
    return times if marker is None else times.filter(times.to_physical() != int(marker.value))
