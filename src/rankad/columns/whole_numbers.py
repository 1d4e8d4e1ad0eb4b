"""Numbers that are no measurements: counters and times, ids, codes."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.stats import kstest, rankdata

from rankad._base.arrays import Floats

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


def only_grows(values: Floats) -> bool:
    """Tell whether values only grow or only fall from row to row, and seldom repeat.

    >>> only_grows(np.arange(100.0)), only_grows(np.sort(np.random.default_rng(0).integers(0, 9, 100)))
    (True, False)
    """
    if values.size < ENOUGH:
        return False
    steps = np.diff(values)
    monotonic = bool((steps >= 0).all() or (steps <= 0).all())
    return monotonic and int(np.count_nonzero(steps)) + 1 >= max(ENOUGH, values.size / 3)


def follows_row_order(values: Floats) -> int:
    """Return 1 if values grow along the table but for some jitter, -1 if they fall, 0 otherwise.

    >>> rng = np.random.default_rng(0)
    >>> follows_row_order(np.arange(100.0) + rng.normal(size=100)), follows_row_order(rng.normal(size=100))
    (1, 0)
    """
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
    """Tell whether a few distinct values come one after the other and never again, as years and batches do.

    >>> never_returns(np.repeat([2021.0, 2022.0, 2023.0], 20)), never_returns(np.tile([1.0, 2.0, 3.0], 20))
    (True, False)
    """
    n_runs = int(np.count_nonzero(np.diff(values))) + 1
    return values.size >= ENOUGH and n_runs >= 3 and n_runs == np.unique(values).size <= values.size / 2


def regular_steps(values: Floats) -> bool:
    """Tell whether the steps of growing values vary no more than waiting times do.

    >>> regular_steps(np.arange(30) * 0.1), regular_steps(np.exp(np.arange(30.0)))
    (True, False)
    """
    steps = np.abs(np.diff(values))
    return bool(steps.std() <= 1.5 * steps.mean())


def is_permutation(values: Floats) -> bool:
    """Tell whether whole numbers never repeat, although n random ones in a range R make n^2 / 2R equal pairs.

    >>> rng = np.random.default_rng(0)
    >>> is_permutation(rng.permutation(1000) * 1.0), is_permutation(rng.integers(0, 10**9, 1000) * 1.0)
    (True, False)
    """
    n, distinct = values.size, np.unique(values)
    if n < ENOUGH or distinct.size < n:
        return False
    # Counters side by side, one for each device, say.
    consecutive = float(np.mean(np.diff(distinct) == 1)) >= _FOLLOWING
    return consecutive or bool(n * n / (2 * (float(distinct[-1] - distinct[0]) + 1)) > _EXPECTED_PAIRS)


def looks_like_ids(values: Floats) -> bool:
    """Tell whether whole numbers never repeat and have many digits, as account numbers and random ids.

    >>> looks_like_ids(np.random.default_rng(0).integers(0, 2**32, 100) * 1.0)
    True
    """
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
    """Tell whether whole numbers are uniform up to 999999, say, or from 10000 to 99999, as random ids are.

    >>> rng = np.random.default_rng(0)
    >>> [fill_their_digits(rng.integers(0, most, 200) * 1.0) for most in (10**6, 700_000)]
    [True, False]
    """
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

    >>> are_codes(np.array([200.0, 301, 404, 500] * 20)), are_codes(np.arange(60.0) % 6 * 10)
    (True, False)
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


def leading_zeros(words: pl.Series) -> bool:
    """Tell whether some text of digits starts with a zero that a number would not have.

    >>> leading_zeros(pl.Series(["01067", "80331"])), leading_zeros(pl.Series(["0", "12", "0.5"]))
    (True, False)
    """
    return bool(words.str.contains(r"^\s*0\d+\s*$").any())
