"""Points and commas that could stand before decimals or between thousands."""

from __future__ import annotations

from enum import Enum

import numpy as np
import polars as pl

from rankad._base.arrays import Ints

__all__ = ["Points", "groups_in_doubt", "points_among_whole_numbers", "stray_groups"]

# Values this many times as large as all others are far from them.
_FAR = 10.0
_SIGN = r"^\s*[+-]?"


class Points(Enum):
    """What points among whole numbers likely are."""

    CLEAR = "they are not such that one could doubt"
    THOUSANDS = "likely between thousands"
    DECIMALS = "likely before decimals"


def points_among_whole_numbers(words: pl.Series) -> Points:
    """Tell what points are where three digits follow each, and other cells are whole numbers up to 999.

    Likely they stand between thousands, unless the whole numbers are far below those that this would make.

    >>> points_among_whole_numbers(pl.Series(["950", "999", "1.050"]))
    <Points.THOUSANDS: 'likely between thousands'>
    >>> points_among_whole_numbers(pl.Series(["5", "5.123", "4.998"]))
    <Points.DECIMALS: 'likely before decimals'>
    >>> points_among_whole_numbers(pl.Series(["950", "1.05"])).name
    'CLEAR'
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
    """Tell which cells are likely no thousands, but decimals after the other mark: 5,123 among 5.1234.

    As thousands they would be far above all others, and with decimals they are like others.

    Parameters
    ----------
    digits : polars Series of str
        Without signs.
    values : polars Series of float
        As what these are read.
    decimal, thousands : str

    Examples
    --------
    >>> cells = pl.Series(["5.1234", "4.98", "5,123"])
    >>> stray_groups(cells, pl.Series([5.1234, 4.98, 5123.0]), ".", ",").to_list()
    [False, False, True]
    """
    one = _one_group(digits, thousands)
    others = values.filter(~one).drop_nulls().to_numpy()
    if not one.any() or not _has_decimals(digits, decimal):
        return one & False
    low, high = float(others.min()), float(others.max())
    as_decimals = digits.filter(one).str.replace(thousands, ".", literal=True).cast(pl.Float64).to_numpy()
    inside = (as_decimals >= low - (high - low)) & (as_decimals <= high + (high - low))
    far = float(values.filter(one).to_numpy().min()) > _FAR * high
    return one if far and inside.any() else one & False


def groups_in_doubt(digits: pl.Series, decimal: str, thousands: str) -> Ints:
    """Return the cells such as 1,234, among others such as 12.5, where few cells show what commas are.

    >>> groups_in_doubt(pl.Series(["812.5", "1,234"]), ".", ",")
    array([1])
    >>> groups_in_doubt(pl.Series(["812.5", "1,234", "1,234.5"]), ".", ",")
    array([], dtype=int64)
    """
    one = _one_group(digits, thousands)
    more = rf"^[1-9]\d{{0,2}}\{thousands}\d{{3}}[\{thousands}\{decimal}]"
    n_clear = int(digits.str.contains(more).fill_null(False).sum())
    if int(one.sum()) <= n_clear or not _has_decimals(digits, decimal):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(one.to_numpy())


def _one_group(digits: pl.Series, thousands: str) -> pl.Series:
    return digits.str.contains(rf"^[1-9]\d{{0,2}}\{thousands}\d{{3}}$").fill_null(False)


def _has_decimals(digits: pl.Series, decimal: str) -> bool:
    """Tell whether a cell has decimals, and no thousands."""
    return bool(digits.str.contains(rf"^\d*\{decimal}\d+$").any())
