"""Dates and times written as one number, which only the name of the column or the digits give away."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Bools, Floats
from rankad.columns.times import excel_days

__all__ = ["date_in_digits", "days_since"]

_OLDEST_YEAR, _LATEST_YEAR = 1980, 2040
# Dates span 1 to 15 years, and the middle half of this holds at most this share of them; of measurements it
# holds three quarters and more. Fewer values do not show how they are spread.
_ENOUGH, _SPAN, _IN_THE_MIDDLE = 100, (1.0, 15.0), 0.65
# Days from 1995 to 2040 as Excel counts them, and the offset of Julian dates.
_OLDEST_DAY, _LATEST_DAY, _JULIAN = 34_700.0, 51_500.0, 2_415_018.5
_DAYS_A_YEAR = 365.25


class _Digits(NamedTuple):
    """A way to write a date as one whole number; fewer distinct numbers than these may fit by chance."""

    what: str
    least: float
    most: float
    least_distinct: int
    fits: Callable[[Floats], Bools]


def _between(values: Floats, low: float, high: float) -> Bools:
    return (values >= low) & (values <= high)


def _year_and(digits: int, last: int, least_distinct: int, what: str) -> _Digits:
    """Return the way to write a year, and then a number of so many digits up to `last`."""
    base = 10**digits
    return _Digits(
        f"year and {what}",
        base * _OLDEST_YEAR,
        base * _LATEST_YEAR + last,
        least_distinct,
        lambda v: _between(v // base, _OLDEST_YEAR, _LATEST_YEAR) & _between(v % base, 1, last),
    )


def _is_clock(values: Floats) -> Bools:
    """Tell which numbers are times of day; none if all are multiples of 50, or of a few hours only."""
    varied = np.unique(values % 100).size >= 3 and np.unique(values // 100).size >= 4
    return (values // 100 < 24) & (values % 100 < 60) & varied


_WAYS = (
    _year_and(2, 12, 6, "month, such as 202407"),
    _year_and(2, 53, 25, "week, such as 202431"),
    _year_and(3, 366, 12, "day of the year, such as 2024213"),
    _Digits(
        "year, month and day in two digits each, such as 240731",
        101,
        991_231,
        8,
        lambda v: (v >= 10_101) & _between(v // 100 % 100, 1, 12) & _between(v % 100, 1, 31),
    ),
    _Digits("hours and minutes, such as 1430", 0, 2359, 40, _is_clock),
)


def date_in_digits(values: Floats) -> str:
    """Say how whole numbers may be dates or times written in digits; "" if they cannot be.

    >>> date_in_digits(np.array([202311.0, 202312, 202401, 202402, 202403, 202404]))
    'year and month, such as 202407'
    >>> date_in_digits(np.arange(202300.0, 202400))
    ''
    """
    distinct = np.unique(values)
    for way in _WAYS:
        within = distinct[0] >= way.least and distinct[-1] <= way.most
        if within and distinct.size >= way.least_distinct and way.fits(distinct).all():
            return way.what
    return ""


def days_since(values: Floats) -> str:
    """Say how numbers may count days, or be years with decimals; "" if they cannot be.

    Such numbers are recent, span 1 to 15 years, and are spread more evenly than measurements.

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
    if _SPAN[0] <= (high - low) / _DAYS_A_YEAR <= _SPAN[1]:
        if whole and excel_days(values, _OLDEST_DAY, _LATEST_DAY):
            return "days as Excel counts them"
        if excel_days(values - _JULIAN, _OLDEST_DAY, _LATEST_DAY):
            return "days as astronomers count them (Julian dates)"
    recent = low >= _OLDEST_YEAR and high <= _LATEST_YEAR
    return "years with decimals" if not whole and recent and _SPAN[0] <= high - low <= _SPAN[1] else ""
