"""Points and commas that could be decimal marks or thousands separators."""

from __future__ import annotations

from enum import Enum

import numpy as np
import polars as pl

from rankad._base.arrays import Ints

__all__ = ["Points", "ambiguous_groups", "points_among_whole_numbers", "stray_groups"]

# Values this many times as large as all others are far from them.
_FAR = 10.0
_SIGN = r"^\s*[+-]?"


class Points(Enum):
    """What points among whole numbers are."""

    CLEAR = "unambiguous"
    THOUSANDS = "likely thousands separators"
    DECIMALS = "likely decimal marks"


def points_among_whole_numbers(words: pl.Series) -> Points:
    """Infer what points are if three digits follow each, and other cells are whole numbers up to 999.

    They are likely thousands separators, unless the whole numbers are far below what this would make.

    >>> [points_among_whole_numbers(pl.Series(["950", cell])).name for cell in ("1.050", "1.05")]
    ['THOUSANDS', 'CLEAR']
    >>> points_among_whole_numbers(pl.Series(["5", "5.123", "4.998"])).name
    'DECIMALS'
    """
    pointed = words.str.contains(_SIGN + r"[1-9]\d{0,2}\.\d{3}\s*$").fill_null(False)
    whole = words.str.contains(_SIGN + r"(?:0|[1-9]\d{0,2})\s*$").fill_null(False)
    if not (pointed | whole | words.is_null()).all() or not pointed.any():
        return Points.CLEAR
    largest = words.filter(whole).str.strip_chars().cast(pl.Int64).abs().max()
    if not isinstance(largest, int) or largest == 0:
        # A zero is often written without decimals where others have them.
        return Points.CLEAR
    grouped = words.filter(pointed).str.strip_chars().str.replace(".", "", literal=True)
    least = grouped.cast(pl.Int64).abs().min()
    return Points.THOUSANDS if isinstance(least, int) and _FAR * largest >= least else Points.DECIMALS


def stray_groups(digits: pl.Series, values: pl.Series, decimal: str, thousands: str) -> pl.Series:
    """Tell which cells, read as `values`, likely have decimals after the other mark: 5,123 among 5.1234.

    With thousands they would be far above all others, and with decimals they are like others.

    >>> cells = pl.Series(["5.1234", "4.98", "5,123"])
    >>> stray_groups(cells, pl.Series([5.1234, 4.98, 5123.0]), ".", ",").to_list()
    [False, False, True]
    """
    grouped = _one_group(digits, thousands)
    if not grouped.any() or not _has_decimals(digits, decimal):
        return grouped & False
    others = values.filter(~grouped).drop_nulls().to_numpy()
    low, high = float(others.min()), float(others.max())
    as_decimals = digits.filter(grouped).str.replace(thousands, ".", literal=True).cast(pl.Float64).to_numpy()
    inside = (as_decimals >= low - (high - low)) & (as_decimals <= high + (high - low))
    far = float(values.filter(grouped).to_numpy().min()) > _FAR * high
    return grouped if far and inside.any() else grouped & False


def ambiguous_groups(digits: pl.Series, decimal: str, thousands: str) -> Ints:
    """Return the cells such as 1,234, among others such as 12.5, if few cells show what commas are.

    >>> ambiguous_groups(pl.Series(["812.5", "1,234"]), ".", ",")
    array([1])
    >>> ambiguous_groups(pl.Series(["812.5", "1,234", "1,234.5"]), ".", ",")
    array([], dtype=int64)
    """
    grouped = _one_group(digits, thousands)
    more = rf"^[1-9]\d{{0,2}}\{thousands}\d{{3}}[\{thousands}\{decimal}]"
    n_clear = int(digits.str.contains(more).fill_null(False).sum())
    if int(grouped.sum()) <= n_clear or not _has_decimals(digits, decimal):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(grouped.to_numpy())


def _one_group(digits: pl.Series, thousands: str) -> pl.Series:
    return digits.str.contains(rf"^[1-9]\d{{0,2}}\{thousands}\d{{3}}$").fill_null(False)


def _has_decimals(digits: pl.Series, decimal: str) -> bool:
    """Tell whether a cell has decimals and no thousands separator."""
    return bool(digits.str.contains(rf"^\d*\{decimal}\d+$").any())
