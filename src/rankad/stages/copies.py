"""Rows that repeat others: by nature, or because something went wrong before they arrived.

A table of a few categories holds equal rows, and so will the rows to come. A join gone wrong holds every row
twice, and the rows to come are copies of none of them: then no row is out of sample for a model fitted on its
copy, and the p-values of new rows are far too small. The two are told apart by how often rows repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import pdtr

from rankad._base.arrays import Floats, Ints

# Values that agree in so many leading bits, about five digits, count as equal: a copy may have been rounded.
_BITS = 16
# How unlikely a count of copies must be under independent rows.
_LEVEL, _STRICT_LEVEL = 0.05, 0.01
# A few copies that are dropped for no reason do no harm. Where there are more, allow for the noise of counts.
_FEW = 0.3
# Fewer rows than these are too few to tell by counting. There, rows that come no more often than this are
# looked at one by one.
_TOO_FEW, _FEW_TIMES = 50, 3
# Rows that come more often than this are never taken for an accident.
_MOST_TIMES = 10
# Rows are in one place if all others are so many times as far from them as they are from each other.
_FAR_APART = 10


class Repeats(NamedTuple):
    """Rows that repeat others more regularly than independent rows would."""

    copies: Ints  # which rows to leave out so that each is there once
    originals: Ints  # for each of them, the row that stays
    n_repeated: int  # how many rows have copies that are left out


def find_repeats(rows: Floats) -> Repeats:
    """Find rows that cannot be independent, since they repeat others too regularly.

    Let N_k be how many distinct rows come k times. For independent rows, each count is a Poisson variable
    given how likely its row is, whatever the law, so that the expected counts obey
    ``N_k^2 k / (k + 1) <= N_(k-1) N_(k+1)`` (Cauchy-Schwarz for the moments of a mixture). Every row twice
    and none three times clearly breaks this.

    Only rows with a value that no other row shares, but for their copies, are looked at: where every value is
    common, as in a table of categories, rows repeat by nature.

    Of fewer than 50 rows, counts tell little. There a row that comes two or three times is also taken for
    copies if it has several values and no other row shares any of them. If rows repeat by nature after all,
    fewer alarms are raised; if they do not, and copies stayed, there would be up to twice as many.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(50, 2))
    >>> find_repeats(rows).copies.size, find_repeats(np.vstack([rows, rows])).copies.size
    (0, 50)
    >>> categories = np.random.default_rng(0).integers(0, 3, size=(100, 2)).astype(float)
    >>> find_repeats(categories).copies.size
    0
    >>> find_repeats(rows[[0, 1, 2, 3, 4, 5, 6, 0, 1]]).copies
    array([7, 8])
    """
    rounded = _rounded(rows)
    return repeats_among(_hashes(rounded), rows.shape[1], lambda *asked: _count_own_values(rounded, *asked))


def row_hashes(rows: Floats) -> np.ndarray:
    """Return a number for each row by which `repeats_among` finds rows that are equal up to rounding."""
    return _hashes(_rounded(rows))


def repeats_among(hashes: np.ndarray, d: int, count_own: Callable[[Ints, Ints, int], Ints]) -> Repeats:
    """Find repeats from the hashes of rows in d columns (`row_hashes`): see `find_repeats`.

    ``count_own(which, times, enough)`` returns for some of the rows how many values of each occur no more
    often in their columns than the row does; beyond `enough`, it need not count.
    """
    n = len(hashes)
    nothing = np.empty(0, dtype=np.int64)
    none = Repeats(nothing, nothing, 0)
    ordered = np.sort(hashes)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    del ordered
    if not repeated.size:
        return none
    candidates = np.flatnonzero(np.isin(hashes, repeated))
    _, first, which, times = np.unique(
        hashes[candidates], return_index=True, return_inverse=True, return_counts=True
    )
    is_few = n < _TOO_FEW and d > 1
    n_own = count_own(candidates[first], times, d if is_few else 1)
    own = np.flatnonzero(n_own > 0)
    if not own.size:
        return none
    counts = np.bincount(times[own], minlength=_MOST_TIMES + 2).astype(np.float64)
    counts[1] = n - len(candidates)
    share = float((times[own] - 1).sum() / n)
    too_regular = [k for k in range(2, _MOST_TIMES + 1) if _too_regular(counts, k, share)]
    dropped = np.zeros(len(times), dtype=bool)
    if too_regular:
        dropped[own[times[own] <= max(too_regular)]] = True
    if is_few:
        dropped[(n_own == d) & (times <= _FEW_TIMES)] = True
    is_copy = dropped[which]
    is_copy[first] = False
    copies = np.flatnonzero(is_copy)
    return Repeats(candidates[copies], candidates[first[which[copies]]], int(dropped.sum()))


def row_variates(rows: Floats) -> Floats:
    """Return a number between 0 and 1 for each row, as if drawn at random; equal rows have the same.

    Examples
    --------
    >>> row_variates(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])).round(3)
    array([0.234, 0.152, 0.234])
    """
    words = np.ascontiguousarray(rows, dtype=np.float64) + 0.0
    return np.asarray(((_hashes(words) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


def _too_regular(counts: Floats, k: int, share: float) -> bool:
    fewer, here, more, level = counts[k - 1], counts[k], counts[k + 1], _LEVEL
    if here < counts[2:].sum() / 2:
        # An accident repeats most rows equally often.
        return False
    if k > 2 or share > _FEW:
        level = _STRICT_LEVEL
        # A standard deviation of a Poisson count is one half on the scale of square roots.
        fewer, here = (np.sqrt(fewer) + 0.5) ** 2, max(np.sqrt(here) - 0.5, 0) ** 2
    expected = here**2 * k / ((k + 1) * max(fewer, 1.0))
    return bool(expected > 0 and pdtr(more, expected) < level)


def _rounded(rows: Floats) -> Floats:
    """Return rows with all but the leading bits of each value rounded away."""
    dropped = np.finfo(np.float64).nmant - _BITS
    # Minus zero becomes zero first. A carry out of the mantissa goes to the exponent, where it belongs.
    words = (np.ascontiguousarray(rows, dtype=np.float64) + 0.0).view(np.uint64)
    words += np.uint64(1 << (dropped - 1))
    words &= np.uint64(2**64 - (1 << dropped))
    return words.view(np.float64)


def _hashes(rows: Floats) -> np.ndarray:
    """Return a number for each row, the same for equal rows (and, by one chance in 2^64, for others)."""
    words = rows.view(np.uint64)
    total = np.zeros(len(rows), dtype=np.uint64)
    for column in words.T:
        # SplitMix64's mixing, over and over.
        total += column + np.uint64(0x9E3779B97F4A7C15)
        total = (total ^ (total >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        total = (total ^ (total >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        total ^= total >> np.uint64(31)
    return total


def count_equal(rows: Floats, asked: Floats) -> Ints:
    """Return how many rows have each value of the rows asked about, up to rounding."""
    rounded, asked = _rounded(rows), _rounded(asked)
    return np.stack([_n_equal(*pair) for pair in zip(rounded.T, asked.T, strict=True)], axis=1)


def _count_own_values(rows: Floats, which: Ints, times: Ints, enough: int) -> Ints:
    """Return how many values of each of some rows occur no more often in their columns than the row does.

    Columns are sorted one by one, until every row has enough such values.
    """
    n_own = np.zeros(len(which), dtype=np.int64)
    for column in rows.T:
        if n_own.min() >= enough:
            break
        n_own += _n_equal(column, column[which]) <= times
    return n_own


def _n_equal(column: Floats, values: Floats) -> Ints:
    ordered = np.sort(column)
    return np.searchsorted(ordered, values, "right") - np.searchsorted(ordered, values, "left")


def count_places(distances: Floats, indices: Ints) -> int:
    """Return in how many places rows lie: a place holds rows that are far from all others, copies say.

    `distances` and `indices` are of the k nearest others of each row, the nearest first. A place of more than
    k + 1 rows may count more than once.
    """
    n, k = distances.shape
    gaps = distances[:, 1:] > _FAR_APART * distances[:, :-1]
    # The neighbours before the last gap share a row's place, all of them where all are its copies.
    n_sharing = np.where(gaps.any(axis=1), k - 1 - np.argmax(gaps[:, ::-1], axis=1), 0)
    n_sharing[distances[:, -1] == 0] = k
    sharing = np.arange(k) < n_sharing[:, None]
    earlier = indices < np.arange(n)[:, None]
    return int(n - np.count_nonzero((sharing & earlier).any(axis=1)))
