"""Numbers that are no measurements: counters and times, names of rows, codes."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.stats import kstest, rankdata

from rankad._base.arrays import Floats

__all__ = [
    "ENOUGH",
    "all_whole",
    "along_the_table",
    "are_codes",
    "fill_their_digits",
    "is_permutation",
    "leading_zeros",
    "looks_like_names",
    "never_returns",
    "only_grows",
    "regular_steps",
]

# With fewer values than these nothing is said about their order.
ENOUGH = 20
# Of different values that come at random, in the range they have: so many pairs of equal ones expected, and
# none seen. Chance would do that once in e to the 12th times.
_EXPECTED_PAIRS = 12.0
# Codes are this many different values at most, each so often on average, in so small a part of the numbers
# that they could be.
_MOST_CODES, _EACH, _COVERED = 100, 10, 0.2
# Of the values, in order, so many follow the one before in counters side by side.
_FOLLOWING = 0.9
_DIGITS = 6
# Of so many numbers with so many digits, some fewer where all have as many, one sees whether they are spread
# evenly, by Kolmogorov's and Smirnov's test, and to the ends. So many are to be different.
_ENDS = 0.05
_ENOUGH_IDS, _FIXED_DIGITS, _EVENLY, _SELDOM = 100, 5, 0.01, 0.9
# Numbers of so many digits are names where most of them are of the order of the largest, as random ones are.
_MANY_DIGITS, _MOST = 9, 0.8
# Values grow along the table if their ranks go with the order of rows so closely. Of measurements in a random
# order not one in a billion columns does, with `ENOUGH` of them. A few rows will do to rule it out.
_ALONG, _FEW_ROWS = 0.98, 2_000


def only_grows(values: Floats) -> bool:
    """Tell whether values go up or down only, in the order of rows, and are seldom the same.

    Measurements in a random order never do. (Those of a table sorted by them do.)

    >>> only_grows(np.arange(100.0)), only_grows(np.sort(np.random.default_rng(0).integers(0, 9, 100)))
    (True, False)
    """
    if values.size < ENOUGH:
        return False
    steps = np.diff(values)
    up, down = bool((steps >= 0).all()), bool((steps <= 0).all())
    return (up or down) and int(np.count_nonzero(steps)) + 1 >= max(ENOUGH, values.size / 3)


def along_the_table(values: Floats) -> int:
    """Return 1 where values grow along the table but for some jitter, -1 where they fall, 0 otherwise.

    So do meters, and times that come a little out of order.

    >>> rng = np.random.default_rng(0)
    >>> along_the_table(np.arange(100.0) + rng.normal(size=100)), along_the_table(rng.normal(size=100))
    (1, 0)
    """
    if values.size < ENOUGH:
        return 0
    for some in (values[:: max(1, values.size // _FEW_ROWS)], values):
        ranks = rankdata(some)
        if ranks.min() == ranks.max():
            return 0
        closeness = float(np.corrcoef(ranks, np.arange(some.size))[0, 1])
        if abs(closeness) < _ALONG:
            return 0
    return 1 if closeness > 0 else -1


def never_returns(values: Floats) -> bool:
    """Tell whether few different values come one after the other, and none again: as years and batches do.

    >>> never_returns(np.repeat([2021.0, 2022.0, 2023.0], 20)), never_returns(np.tile([1.0, 2.0, 3.0], 20))
    (True, False)
    """
    if values.size < ENOUGH:
        return False
    n_runs = int(np.count_nonzero(np.diff(values))) + 1
    return n_runs >= 3 and n_runs == np.unique(values).size <= values.size / 2


def regular_steps(values: Floats) -> bool:
    """Tell whether the steps of growing values vary no more than waiting times do: as counters and clocks do.

    >>> regular_steps(np.arange(30) * 0.1), regular_steps(np.exp(np.arange(30.0)))
    (True, False)
    """
    steps = np.abs(np.diff(values))
    return bool(steps.std() <= 1.5 * steps.mean())


def is_permutation(values: Floats) -> bool:
    """Tell whether whole numbers never repeat, where any that come at random in their range would.

    Equal ones are rarest among numbers that are uniform in the range: n values make ``n^2 / 2 R`` pairs then.

    >>> rng = np.random.default_rng(0)
    >>> is_permutation(rng.permutation(1000) * 1.0), is_permutation(rng.integers(0, 10**9, 1000) * 1.0)
    (True, False)
    """
    n = values.size
    different = np.unique(values)
    if n < ENOUGH or different.size < n:
        return False
    steps = np.diff(different)
    # Several counters side by side, one of each device, say: each value is one more than another.
    in_rows = float(np.mean(steps == 1)) >= _FOLLOWING
    return in_rows or bool(n * n / (2 * (float(different[-1] - different[0]) + 1)) > _EXPECTED_PAIRS)


def looks_like_names(values: Floats) -> bool:
    """Tell whether whole numbers never repeat and have many digits, as account numbers and random ids have.

    All have as many, or so many that most random numbers would have them.

    >>> looks_like_names(np.random.default_rng(0).integers(0, 2**32, 100) * 1.0)
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
    """Tell whether whole numbers are spread evenly over all numbers of some digits, as random ids are.

    Over all up to 999999, or over all from 10000 to 99999. Measurements have a shape, or end elsewhere.

    >>> rng = np.random.default_rng(0)
    >>> (
    ...     fill_their_digits(rng.integers(0, 10**6, 200) * 1.0),
    ...     fill_their_digits(rng.integers(0, 7e5, 200) * 1.0),
    ... )
    (True, False)
    """
    if values.size < _ENOUGH_IDS or values.min() < 0 or np.unique(values).size < _SELDOM * values.size:
        return False
    digits = len(f"{values.max():.0f}")
    least = 10.0 ** (digits - 1)
    some = values[:_FEW_ROWS]
    for begin, few in ((least, _FIXED_DIGITS), (0.0, _DIGITS)):
        if digits >= few and values.min() >= begin:
            spread = (some - begin) / (10.0**digits - begin)
            to_the_ends = spread.min() <= _ENDS and spread.max() >= 1 - _ENDS
            return bool(to_the_ends and kstest(spread, "uniform").pvalue > _EVENLY)
    return False


def are_codes(values: Floats) -> bool:
    """Tell whether whole numbers are a few that repeat, far apart and at irregular distances: 200, 301, 404.

    Grades, counts and steps of a scale cover most of the numbers that they could be: all multiples of their
    common step between the least and the largest.

    >>> are_codes(np.array([200.0, 301, 404, 500] * 20)), are_codes(np.arange(60.0) % 6 * 10)
    (True, False)
    """
    different = np.unique(values)
    if not 3 <= different.size <= _MOST_CODES or values.size < _EACH * different.size:
        return False
    if np.abs(different).max() >= 2**53:
        return False
    step = int(np.gcd.reduce(np.diff(different).astype(np.int64)))
    possible = float(different[-1] - different[0]) / step + 1
    return bool(different.size / possible < _COVERED)


def all_whole(values: Floats) -> bool:
    """Tell whether finite values are whole numbers."""
    return bool((values == np.floor(values)).all())


def leading_zeros(words: pl.Series) -> bool:
    """Tell whether text of digits begins with a zero somewhere that a number would not have.

    >>> leading_zeros(pl.Series(["01067", "80331"])), leading_zeros(pl.Series(["0", "12", "0.5"]))
    (True, False)
    """
    return bool(words.str.contains(r"^\s*0\d+\s*$").any())
