"""What nominal rows near a row have in one column, or in several: near in the *other* columns."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from rankad._arrays import LARGEST, Bools, Floats, Ints
from rankad.scaling import Scaling

__all__ = ["N_NEAR", "NominalRows", "Surroundings"]

# So many nominal rows tell what is typical.
N_NEAR = 10
# So many standard deviations outside the range of nominal rows are far enough to tell rows apart by.
_REACH = 4.0


class Surroundings(NamedTuple):
    """The nominal rows near each row, one set for every group of columns that is asked about.

    Attributes
    ----------
    near : ndarray of int, shape (m, n_groups, k)
        Positions of nominal rows, the nearest first; of shape (1, 1, n) where all rows are near to any.
    typical : ndarray of int, shape (m, n_groups)
        That one of them which is nearest to the others in the columns asked about.
    """

    near: Ints
    typical: Ints


class NominalRows:
    """Nominal rows, laid out to be searched with any group of columns left out.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    scaling : Scaling
        The units of distances.
    groups : tuple of tuples of int
        Columns that are left out together; every column is in one group.
    """

    def __init__(self, rows: Floats, scaling: Scaling, groups: tuple[tuple[int, ...], ...]) -> None:
        self.rows, self.scaling, self.groups = rows, scaling, groups
        self.scaled = scaling.apply(rows)
        self.n_groups, self.n_near = len(groups), min(N_NEAR, len(rows))
        self.members = np.zeros((len(groups), rows.shape[1]), dtype=np.bool_)
        for group, columns in enumerate(groups):
            self.members[group, list(columns)] = True
        self._order = np.array([column for columns in groups for column in columns], dtype=np.int64)
        self._starts = np.cumsum([0, *map(len, groups)])
        self._columns = np.ascontiguousarray(self.scaled.T)
        self._patterns = _patterns(self.scaled, groups)
        self._deviation = rows.std(axis=0)
        reach = _REACH * self.scaled.std(axis=0)
        self._low, self._high = self.scaled.min(axis=0) - reach, self.scaled.max(axis=0) + reach

    def within_reach(self, rows: Floats) -> Floats:
        """Return rows in the units of distances, none so far out that other columns no longer count."""
        return np.clip(self.scaling.apply(rows), self._low, self._high)

    def around(self, rows: Floats, left_out: Bools) -> Surroundings:
        """Find, for every row and group, the nominal rows nearest to it in all other columns.

        Parameters
        ----------
        rows : ndarray of shape (m, d)
        left_out : ndarray of bool, shape (m, n_groups)
            Groups that are left out too, and then asked about as well. They have no answer of their own.

        Returns
        -------
        Surroundings
            Where there is no other column, all nominal rows are near.
        """
        if self.n_groups == 1:
            return self._everyone(len(rows))
        near = np.zeros((len(rows), self.n_groups, self.n_near), dtype=np.int64)
        within = self.within_reach(rows)
        _nearest_without(self._columns, *self._patterns, within, self._order, self._starts, left_out, near)
        return Surroundings(near, _medoids(self.scaled, near, self._order, self._starts, left_out))

    def _everyone(self, m: int) -> Surroundings:
        near = np.arange(len(self.rows)).reshape(1, 1, -1)
        typical = _medoids(self.scaled, near, self._order, self._starts, np.zeros((1, 1), dtype=np.bool_))
        return Surroundings(near, np.broadcast_to(typical, (m, 1)))

    def quantiles(self, near: Ints, low: float, high: float) -> tuple[Floats, Floats]:
        """Return two quantiles of what near rows have in every column; both of shape (m, d)."""
        found = np.empty((2, near.shape[0], self.rows.shape[1]))
        for group, columns in enumerate(self.groups):
            values = self.rows[near[:, group, :, None], list(columns)]
            found[:, :, list(columns)] = np.quantile(values, [low, high], axis=1)
        return found[0], found[1]

    def surprise(self, rows: Floats, low: Floats, high: Floats) -> Floats:
        """Return how far outside of `low` to `high` each group is, in standard deviations: (m, n_groups).

        Where the columns of a group differ, the farthest counts.
        """
        outside = np.maximum(0.0, np.maximum(low - rows, rows - high))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            # A column that does not vary: any other value is as surprising as can be.
            units = np.where(outside > 0, np.minimum(outside / self._deviation, LARGEST), 0.0)
        return np.stack([units[:, list(columns)].max(axis=1) for columns in self.groups], axis=1)


class _Patterns(NamedTuple):
    """What nominal rows have in groups of several columns: the indicators of a category repeat themselves.

    Attributes
    ----------
    first : ndarray of int, shape (n_patterns,)
        A nominal row of every pattern, group after group.
    begins : ndarray of int, shape (n_groups + 1,)
        Where those of a group begin; groups that are better looked at row by row have none.
    codes : ndarray of int, shape (n_groups, n)
        Which of its group's patterns each row has.
    """

    first: Ints
    begins: Ints
    codes: Ints


def _patterns(scaled: Floats, groups: tuple[tuple[int, ...], ...]) -> _Patterns:
    codes = np.zeros((len(groups), len(scaled)), dtype=np.int64)
    firsts, begins = [np.empty(0, dtype=np.int64)], np.zeros(len(groups) + 1, dtype=np.int64)
    for group, columns in enumerate(groups):
        if len(columns) > 1:
            # By their bytes: sorting the rows would take longer than it saves.
            seen: dict[bytes, int] = {}
            same = [
                seen.setdefault(cells.tobytes(), row) for row, cells in enumerate(scaled[:, list(columns)])
            ]
            if 2 * len(seen) <= len(scaled):
                firsts.append(np.array(list(seen.values())))
                codes[group] = np.searchsorted(firsts[-1], same)
        begins[group + 1] = sum(map(len, firsts))
    return _Patterns(np.concatenate(firsts), begins, codes)


# Nominal rows looked at together: few enough for all their squares to stay at hand.
_TOGETHER = 128


@numba.njit(cache=True, nogil=True)
def _nearest_without(nominal, first, begins, codes, rows, order, starts, left_out, near):  # type: ignore[no-untyped-def]
    """Find the nearest nominal rows by distance without each group in turn.

    The squares before a group and after it are added, rather than its own subtracted from all: no digits are
    lost where it has nearly all of the distance. Where rows share patterns, each pattern is compared once.
    """
    n, n_groups, k = nominal.shape[1], starts.shape[0] - 1, near.shape[2]
    of_pattern = np.empty(first.shape[0])
    before, total = np.empty(_TOGETHER), np.empty(_TOGETHER)
    own, after = np.empty((n_groups, _TOGETHER)), np.zeros((n_groups + 1, _TOGETHER))
    least = np.empty((n_groups, k))
    for i in range(rows.shape[0]):
        least[:] = np.inf
        of_pattern[:] = 0.0
        for group in range(n_groups):
            for column in order[starts[group] : starts[group + 1]]:
                for at in range(begins[group], begins[group + 1]):
                    of_pattern[at] += (nominal[column, first[at]] - rows[i, column]) ** 2
        for begin in range(0, n, _TOGETHER):
            size = min(_TOGETHER, n - begin)
            for group in range(n_groups - 1, -1, -1):
                squares, later, now = own[group], after[group + 1], after[group]
                squares[:] = 0.0
                if left_out[i, group]:
                    pass
                elif begins[group + 1] > begins[group]:
                    for j in range(size):
                        squares[j] = of_pattern[begins[group] + codes[group, begin + j]]
                else:
                    for column in order[starts[group] : starts[group + 1]]:
                        x, values = rows[i, column], nominal[column, begin : begin + size]
                        for j in range(size):
                            squares[j] += (values[j] - x) * (values[j] - x)
                for j in range(size):
                    now[j] = later[j] + squares[j]
            before[:] = 0.0
            for group in range(n_groups):
                if not left_out[i, group]:
                    later, squares = after[group + 1], own[group]
                    last, any_nearer = least[group, k - 1], False
                    for j in range(size):
                        total[j] = before[j] + later[j]
                        before[j] += squares[j]
                        any_nearer |= total[j] < last
                    if any_nearer:
                        _insert(total[:size], begin, least[group], near[i, group])


@numba.njit(cache=True, nogil=True)
def _insert(values, begin, least, found):  # type: ignore[no-untyped-def]
    """Insert values, counted from `begin`, into the least found before; of equal ones the first stay."""
    for j in range(values.shape[0]):
        at = least.shape[0]
        while at > 0 and least[at - 1] > values[j]:
            if at < least.shape[0]:
                least[at], found[at] = least[at - 1], found[at - 1]
            at -= 1
        if at < least.shape[0]:
            least[at], found[at] = values[j], begin + j


@numba.njit(cache=True, nogil=True)
def _medoids(nominal, near, order, starts, left_out):  # type: ignore[no-untyped-def]
    """Return the near row with the least sum of distances to the others, in the columns asked about."""
    m, n_groups, k = near.shape
    found = np.zeros((m, n_groups), dtype=np.int64)
    sums, asked = np.empty(k), np.empty((k, order.shape[0]))
    for i in range(m):
        for group in range(n_groups):
            if left_out[i, group]:
                continue
            n_asked = 0
            for other in range(n_groups):
                if other == group or left_out[i, other]:
                    for column in order[starts[other] : starts[other + 1]]:
                        for a in range(k):
                            asked[a, n_asked] = nominal[near[i, group, a], column]
                        n_asked += 1
            sums[:] = 0.0
            for a in range(k):
                for b in range(a):
                    square = 0.0
                    for at in range(n_asked):
                        square += (asked[a, at] - asked[b, at]) ** 2
                    sums[a] += np.sqrt(square)
                    sums[b] += np.sqrt(square)
            best = 0
            for a in range(1, k):
                # Equal but for rounding: the nearer one.
                if sums[a] < sums[best] * (1.0 - 1e-12):
                    best = a
            found[i, group] = near[i, group, best]
    return found
