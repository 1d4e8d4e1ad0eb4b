"""Dates and times written as one number, of which only the name of the column or the digits tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Bools, Floats
from rankad.columns.times import excel_days

__all__ = ["date_in_digits", "days_since"]

_OLDEST_YEAR, _LATEST_YEAR = 1980, 2040
# Of fewer values nobody sees how they are spread; dates span one year to fifteen, and the middle half of
# this holds no more of them than that share. Of measurements, it holds three quarters and more.
_ENOUGH, _SPAN, _IN_THE_MIDDLE = 100, (1.0, 15.0), 0.65
# Days of 1995 to 2040 as Excel counts them, and how many days before these astronomers begin.
_OLDEST_DAY, _LATEST_DAY, _JULIAN = 34_700.0, 51_500.0, 2_415_018.5
_DAYS_A_YEAR = 365.25


class _Digits(NamedTuple):
    """A way to write a date or a time as one whole number.

    Attributes
    ----------
    what : str
    least, most : float
        Numbers that it makes.
    least_different : int
        So many different numbers are no chance if all of them fit.
    fits : callable
        Tells which whole numbers are dates or times so written.
    """

    what: str
    least: float
    most: float
    least_different: int
    fits: Callable[[Floats], Bools]


def _between(values: Floats, low: float, high: float) -> Bools:
    return (values >= low) & (values <= high)


def _is_year(values: Floats) -> Bools:
    return _between(values, _OLDEST_YEAR, _LATEST_YEAR)


_WAYS = (
    _Digits(
        "year and month, such as 202407",
        100 * _OLDEST_YEAR,
        100 * _LATEST_YEAR + 12,
        6,
        lambda v: _is_year(v // 100) & _between(v % 100, 1, 12),
    ),
    _Digits(
        "year and week, such as 202431",
        100 * _OLDEST_YEAR,
        100 * _LATEST_YEAR + 53,
        25,
        lambda v: _is_year(v // 100) & _between(v % 100, 1, 53),
    ),
    _Digits(
        "year and day of the year, such as 2024213",
        1000 * _OLDEST_YEAR,
        1000 * _LATEST_YEAR + 366,
        12,
        lambda v: _is_year(v // 1000) & _between(v % 1000, 1, 366),
    ),
    _Digits(
        "year, month and day in two digits each, such as 240731",
        101,
        991_231,
        8,
        lambda v: (v >= 10_101) & _between(v // 100 % 100, 1, 12) & _between(v % 100, 1, 31),
    ),
    _Digits("hours and minutes, such as 1430", 0, 2359, 40, lambda v: _of_the_day(v)),
)


def _of_the_day(values: Floats) -> Bools:
    """Tell which numbers are times of day; none where they are multiples of 50, or of a few hours only."""
    some = np.unique(values % 100).size >= 3 and np.unique(values // 100).size >= 4
    return (values // 100 < 24) & (values % 100 < 60) & some


def date_in_digits(values: Floats) -> str:
    """Say how whole numbers may be dates or times written in digits; nothing where they can be none.

    >>> date_in_digits(np.array([202311.0, 202312, 202401, 202402, 202403, 202404]))
    'year and month, such as 202407'
    >>> date_in_digits(np.arange(202300.0, 202400))
    ''
    """
    low, high = float(values.min()), float(values.max())
    for way in _WAYS:
        if low < way.least or high > way.most:
            continue
        different = np.unique(values)
        if different.size >= way.least_different and way.fits(different).all():
            return way.what
    return ""


def days_since(values: Floats) -> str:
    """Say since when numbers may count days, or whether they may be years; nothing where they can be neither.

    They are of our time, span one year to fifteen, and are spread more evenly than measurements are.

    >>> rng = np.random.default_rng(0)
    >>> days_since(rng.integers(43_000, 45_500, 200) * 1.0), days_since(rng.normal(45e3, 400, 200).round())
    ('days as Excel counts them', '')
    """
    if values.size < _ENOUGH:
        return ""
    low, high = float(values.min()), float(values.max())
    quarter = (high - low) / 4
    if np.mean(_between(values, low + quarter, high - quarter)) > _IN_THE_MIDDLE:
        return ""
    whole = bool((values == np.floor(values)).all())
    years = (high - low) / _DAYS_A_YEAR
    if _SPAN[0] <= years <= _SPAN[1]:
        if whole and excel_days(values, _OLDEST_DAY, _LATEST_DAY):
            return "days as Excel counts them"
        if excel_days(values - _JULIAN, _OLDEST_DAY, _LATEST_DAY):
            return "days as astronomers count them (Julian dates)"
    within = low >= _OLDEST_YEAR and high <= _LATEST_YEAR
    if not whole and within and _SPAN[0] <= high - low <= _SPAN[1]:
        return "years with decimals"
    return ""
