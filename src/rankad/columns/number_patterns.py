"""Patterns that tell numbers from measurements: counters and times, ids, codes, dates written in digits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import kstest, rankdata

from rankad._base.arrays import Bools, Floats
from rankad.columns.times import excel_days

# Fewer values decide nothing about their order.
ENOUGH = 20
# If distinct values were drawn at random from their range, this many pairs of equal ones would be expected;
# chance leaves none with probability exp(-12).
_EXPECTED_PAIRS = 12.0
# Codes have at most this many distinct values, each this frequent on average, and cover at most this share of
# the numbers that they could be.
_MOST_CODES, _EACH, _COVERED = 100, 10, 0.2
# In counters side by side, this share of the distinct values is one more than another.
_FOLLOWING = 0.9
# Random ids fill the numbers of this many digits evenly (by the Kolmogorov-Smirnov test) and to both ends;
# fewer digits are enough if all have the same number. Most of them are distinct.
_DIGITS, _FIXED_DIGITS, _ENDS, _ENOUGH_IDS, _EVENLY, _DISTINCT_SHARE = 6, 5, 0.05, 100, 0.01, 0.9
# Numbers of this many digits are ids if most are of the order of the largest, as random ones are.
_MANY_DIGITS, _MOST = 9, 0.8
# Values follow the rows at this rank correlation, which measurements in random order reach in fewer than one
# column in a billion. A strided subset is enough to rule it out.
_CORRELATION, _FEW_ROWS = 0.98, 2_000
# Fewer values decide nothing about counters.
_ENOUGH_IN_TURN = 60
# n values in random order form about 2 sqrt(n) growing chains, and never as few as a quarter of these.
_MOST_CHAINS = 0.5
# A counter starts in the first and is still there in the last fifth of the table, and has this many steps.
_EDGE, _LEAST_STEPS = 0.2, 5
_DISTINCT_IN_TURN = 2 / 3
_OLDEST_YEAR, _LATEST_YEAR = 1980, 2040
# Dates span 1 to 15 years, and the middle half of this holds at most this share of them; of measurements it
# holds three quarters and more. Fewer values do not show how they are spread.
_ENOUGH_DATES, _SPAN, _IN_THE_MIDDLE = 100, (1.0, 15.0), 0.65
# Days from 1995 to 2040 as Excel counts them, and the offset of Julian dates.
_OLDEST_DAY, _LATEST_DAY, _JULIAN = 34_700.0, 51_500.0, 2_415_018.5
_DAYS_A_YEAR = 365.25


def only_grows(values: Floats) -> bool:
    """Tell whether values only grow or only fall from row to row, and seldom repeat."""
    if values.size < ENOUGH:
        return False
    steps = np.diff(values)
    monotonic = bool((steps >= 0).all() or (steps <= 0).all())
    return monotonic and int(np.count_nonzero(steps)) + 1 >= max(ENOUGH, values.size / 3)


def follows_row_order(values: Floats) -> int:
    """Return 1 if values grow along the table but for some jitter, -1 if they fall, 0 otherwise."""
    if values.size < ENOUGH:
        return 0
    correlation = 0.0
    for sample in (values[:: max(1, values.size // _FEW_ROWS)], values):
        ranks = rankdata(sample)
        if ranks.min() == ranks.max():
            return 0
        correlation = float(np.corrcoef(ranks, np.arange(sample.size))[0, 1])
        if abs(correlation) < _CORRELATION:
            return 0
    return 1 if correlation > 0 else -1


def never_returns(values: Floats) -> bool:
    """Tell whether a few distinct values come in turn and never again, as years and batches do."""
    n_runs = int(np.count_nonzero(np.diff(values))) + 1
    return values.size >= ENOUGH and n_runs >= 3 and n_runs == np.unique(values).size <= values.size / 2


def regular_steps(values: Floats) -> bool:
    """Tell whether the steps of growing values vary no more than waiting times do."""
    steps = np.abs(np.diff(values))
    return bool(steps.std() <= 1.5 * steps.mean())


def is_permutation(values: Floats) -> bool:
    """Tell whether whole numbers never repeat, although n random ones in a range R make n^2 / 2R pairs."""
    n, distinct = values.size, np.unique(values)
    if n < ENOUGH or distinct.size < n:
        return False
    # Counters side by side, one for each device, say.
    consecutive = float(np.mean(np.diff(distinct) == 1)) >= _FOLLOWING
    return consecutive or bool(n * n / (2 * (float(distinct[-1] - distinct[0]) + 1)) > _EXPECTED_PAIRS)


def looks_like_ids(values: Floats) -> bool:
    """Tell whether whole numbers never repeat and have many digits, as account numbers and random ids."""
    if values.size < ENOUGH or np.unique(values).size < values.size:
        return False
    size = np.abs(values)
    if size.max() >= 10 ** (_MANY_DIGITS - 1) and np.mean(size >= size.max() / 10) >= _MOST:
        return True
    if values.min() <= 0:
        return False
    digits = np.unique(np.floor(np.log10(values)))
    return bool(digits.size == 1 and digits[0] + 1 >= _DIGITS)


def fill_their_digits(values: Floats) -> bool:
    """Tell whether whole numbers are uniform up to 999999, say, or from 10000 to 99999, as random ids are."""
    if (
        values.size < _ENOUGH_IDS
        or values.min() < 0
        or np.unique(values).size < _DISTINCT_SHARE * values.size
    ):
        return False
    digits = len(f"{values.max():.0f}")
    for begin, least_digits in ((10.0 ** (digits - 1), _FIXED_DIGITS), (0.0, _DIGITS)):
        if digits >= least_digits and values.min() >= begin:
            spread = (values[:_FEW_ROWS] - begin) / (10.0**digits - begin)
            to_the_ends = spread.min() <= _ENDS and spread.max() >= 1 - _ENDS
            return bool(to_the_ends and kstest(spread, "uniform").pvalue > _EVENLY)
    return False


def are_codes(values: Floats) -> bool:
    """Tell whether whole numbers are a few that repeat, far apart and irregular: 200, 301, 404.

    Grades, counts and steps of a scale cover most multiples of their common step instead.
    """
    distinct = np.unique(values)
    if not 3 <= distinct.size <= _MOST_CODES or values.size < _EACH * distinct.size:
        return False
    if np.abs(distinct).max() >= 2**53:
        return False
    step = int(np.gcd.reduce(np.diff(distinct).astype(np.int64)))
    return bool(distinct.size / (float(distinct[-1] - distinct[0]) / step + 1) < _COVERED)


def all_whole(values: Floats) -> bool:
    """Tell whether finite values are whole numbers."""
    return bool((values == np.floor(values)).all())


def interleaved_counters(values: Floats) -> int:
    """Return the number of counters whose values alternate in a column, 0 if there are none.

    Each value goes to the chain with the largest last value that is not above it, which makes the fewest
    chains. Cycles are no counters: each chain ends with its cycle.
    """
    head = values[:_FEW_ROWS]
    if head.size < _ENOUGH_IN_TURN or np.unique(head).size < _DISTINCT_IN_TURN * head.size:
        return 0
    most = int(_MOST_CHAINS * head.size**0.5)
    n_chains = _growing_chains(head.tolist(), most)
    return _growing_chains(values.tolist(), most) if n_chains and values.size > head.size else n_chains


def _growing_chains(values: list[float], most: int) -> int:
    """Return the number of growing chains, 0 if there are too many or some do not span the table."""
    # Last values of all chains, ascending, with the first row, the last row and the steps of each.
    ends: list[float] = []
    chains: list[list[int]] = []
    for row, value in enumerate(values):
        at = bisect_right(ends, value) - 1
        if at < 0:
            if len(ends) == most:
                return 0
            ends.insert(0, value)
            chains.insert(0, [row, row, 1])
        else:
            # A repeated value is no step.
            chains[at][1], chains[at][2] = row, chains[at][2] + (value > ends[at])
            ends[at] = value
    n = len(values)
    starts, stops, steps = zip(*chains, strict=True)
    spanning = max(starts) < _EDGE * n and min(stops) >= (1 - _EDGE) * n and min(steps) >= _LEAST_STEPS
    return len(ends) if spanning and len(ends) > 1 else 0


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
    """Say how whole numbers may be dates or times written in digits; "" if they cannot be."""
    distinct = np.unique(values)
    for way in _WAYS:
        within = distinct[0] >= way.least and distinct[-1] <= way.most
        if within and distinct.size >= way.least_distinct and way.fits(distinct).all():
            return way.what
    return ""


def days_since(values: Floats) -> str:
    """Say how numbers may count days, or be years with decimals; "" if they cannot be.

    Such numbers are recent, span 1 to 15 years, and are spread more evenly than measurements.
    """
    if values.size < _ENOUGH_DATES:
        return ""
    low, high = float(values.min()), float(values.max())
    quarter = (high - low) / 4
    if np.mean(_between(values, low + quarter, high - quarter)) > _IN_THE_MIDDLE:
        return ""
    whole = all_whole(values)
    if _SPAN[0] <= (high - low) / _DAYS_A_YEAR <= _SPAN[1]:
        if whole and excel_days(values, _OLDEST_DAY, _LATEST_DAY):
            return "days as Excel counts them"
        if excel_days(values - _JULIAN, _OLDEST_DAY, _LATEST_DAY):
            return "days as astronomers count them (Julian dates)"
    recent = low >= _OLDEST_YEAR and high <= _LATEST_YEAR
    return "years with decimals" if not whole and recent and _SPAN[0] <= high - low <= _SPAN[1] else ""
