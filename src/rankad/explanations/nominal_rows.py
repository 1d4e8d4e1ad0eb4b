"""What nominal rows near a row have in one column, or in several: near in the *other* columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankad._base.arrays import LARGEST, Bools, Floats, Ints
from rankad._loops import typical as _loops
from rankad.stages.neighbors import Neighbors, nearest_neighbors
from rankad.stages.scaling import Scaling

# So many nominal rows tell what is typical.
N_NEAR = 10
# So many standard deviations outside the range of nominal rows are far enough to tell rows apart by.
_REACH = 4.0
# A column is expected from the others by linear regression where there are so many rows for every column, and
# no more columns than these. A relation may be kept to so small a part of what columns vary, and is seen.
_ROWS_PER_COLUMN, _MOST_COLUMNS, _RIDGE = 4, 200, 1e-9
# Patterns are compared where there is so many times less to compare.
_WORTH_WHILE = 4


class Surroundings(NamedTuple):
    """The nominal rows near each row, one set for every group of columns that is asked about.

    `near`, of shape (m, n_groups, k), are their positions, the nearest first; of shape (1, 1, n) where all
    rows are near to any. `typical`, of shape (m, n_groups), is the one nearest to the others in the columns
    asked about.
    """

    near: Ints
    typical: Ints


class NominalRows:
    """Nominal rows, laid out to be searched with any group of columns left out; each column is in a group."""

    def __init__(self, rows: Floats, scaling: Scaling, groups: tuple[tuple[int, ...], ...]) -> None:
        self.rows, self.scaling, self.groups = rows, scaling, groups
        self.scaled = scaling.apply(rows)
        self.n_groups, self.n_near = len(groups), min(N_NEAR, len(rows))
        self._group = np.empty(rows.shape[1], dtype=np.int64)
        for group, columns in enumerate(groups):
            self._group[list(columns)] = group
        self._layout = _loops.lay_out(self.scaled, groups)
        has_patterns = np.diff(self._layout.begins) > 0
        self._n_compared = np.where(has_patterns, 1, np.diff(self._layout.starts)).sum()
        self._deviation = rows.std(axis=0)
        self._regression = _regression(rows)
        reach = _REACH * self.scaled.std(axis=0)
        self._low, self._high = self.scaled.min(axis=0) - reach, self.scaled.max(axis=0) + reach

    def within_reach(self, rows: Floats) -> Floats:
        """Return rows in the units of distances, none so far out that other columns no longer count."""
        return np.clip(self.scaling.apply(rows), self._low, self._high)

    def expected(self, rows: Floats) -> Floats | None:
        """Return what to expect in every column of each row, given its other columns.

        By linear regression of each column on all others, and within the range of nominal rows; None where
        these are too few for that.
        """
        if self._regression is None:
            return None
        low, high, center = self.rows.min(axis=0), self.rows.max(axis=0), self.rows.mean(axis=0)
        reach = _REACH * self._deviation
        expected = center + (np.clip(rows, low - reach, high + reach) - center) @ self._regression
        return np.asarray(np.clip(expected, low, high))

    def columns_of(self, groups: Bools) -> Bools:
        """Return which columns, of shape (m, d), belong to some of the groups, of shape (m, n_groups)."""
        return groups[:, self._group]

    def groups_of(self, columns: Bools) -> Bools:
        """Return which groups, of shape (m, n_groups), have any of the columns, of shape (m, d)."""
        order, starts = self._layout.order, self._layout.starts
        return np.logical_or.reduceat(columns[:, order], starts[:-1], axis=1)

    def members(self, groups: Ints) -> Bools:
        """Return the columns of m groups, of shape (m, d)."""
        inside: Bools = self._group == groups[:, None]
        return inside

    def made_typical(self, rows: Floats, typical: Ints, left_out: Bools) -> Floats:
        """Return each row once for every group, with it and those left out typical: (m, n_groups, d)."""
        own = np.arange(self.n_groups)[:, None] == self._group
        is_typical = own | self.columns_of(left_out)[:, None]
        return np.where(is_typical, self.rows[typical], rows[:, None])

    def around(self, rows: Floats, left_out: Bools, some: Ints | None = None) -> Surroundings:
        """Find, for every row and group, the nominal rows nearest to it in all other columns.

        Groups in `left_out`, of shape (m, n_groups), are left out and asked about too, and have no answer of
        their own. `some`, of shape (m, k), are nominal rows to begin with: the nearer, the sooner the search
        ends. By default those nearest in all columns. Where there is no other column, all nominal rows are
        near.
        """
        if self.n_groups == 1:
            return self._everyone(len(rows))
        near = np.zeros((len(rows), self.n_groups, self.n_near), dtype=np.int64)
        within = self.within_reach(rows)
        if some is None:
            some = self.nearest(within, self.n_near, np.arange(len(self.rows))).indices
        _loops.nearest_without(self._layout, within, left_out, some, near)
        return Surroundings(near, _loops.medoids(self._layout, near, left_out))

    def nearest(self, rows: Floats, k: int, which: Ints) -> Neighbors:
        """Find the k nearest, in all columns, of the nominal rows at the positions `which`, ascending.

        Rows are in the units of distances.
        """
        if rows.shape[1] < _WORTH_WHILE * self._n_compared:
            near = nearest_neighbors(self.scaled[which], k, rows, n_jobs=1)
            return Neighbors(near.distances, which[near.indices])
        distances, indices = np.empty((len(rows), k)), np.empty((len(rows), k), dtype=np.int64)
        _loops.nearest(self._layout, rows, which, distances, indices)
        order = np.argsort(distances, axis=1, kind="stable")
        return Neighbors(np.take_along_axis(distances, order, 1), np.take_along_axis(indices, order, 1))

    def _everyone(self, m: int) -> Surroundings:
        near = np.arange(len(self.rows)).reshape(1, 1, -1)
        typical = _loops.medoids(self._layout, near, np.zeros((1, 1), dtype=np.bool_))
        return Surroundings(near, np.broadcast_to(typical, (m, 1)))

    def quantiles(self, near: Ints, low: float, high: float) -> tuple[Floats, Floats]:
        """Return two quantiles of what near rows have in every column; both of shape (m, d)."""
        if self.n_groups == 1:
            of_all = np.quantile(self.rows, [low, high], axis=0)
            return of_all[:1], of_all[1:]
        # Of each column, what those rows have that are near without its group.
        values = self.rows[near[:, self._group], np.arange(len(self._group))[:, None]]
        of_low, of_high = np.quantile(values, [low, high], axis=2)
        return of_low, of_high

    def surprise(self, rows: Floats, low: Floats, high: Floats) -> Floats:
        """Return how far outside of `low` to `high` each group is, in standard deviations: (m, n_groups).

        Where the columns of a group differ, the farthest counts.
        """
        outside = np.maximum(0.0, np.maximum(low - rows, rows - high))
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            # A column that does not vary: any other value is as surprising as can be.
            units = np.where(outside > 0, np.minimum(outside / self._deviation, LARGEST), 0.0)
        return np.stack([units[:, list(columns)].max(axis=1) for columns in self.groups], axis=1)


def _regression(rows: Floats) -> Floats | None:
    """Return the coefficients of the linear regression of each column on all others, one column for each.

    They are in the inverse of the covariance matrix; centred rows times these are what is to be expected.
    """
    n, d = rows.shape
    if d == 1 or d > _MOST_COLUMNS or n < _ROWS_PER_COLUMN * d:
        return None
    unit = rows.std(axis=0)
    # A column that does not vary tells nothing and is told nothing.
    unit[unit == 0] = 1.0
    standard = (rows - rows.mean(axis=0)) / unit
    precision = np.linalg.inv(standard.T @ standard / n + _RIDGE * np.eye(d))
    coefficients = -(precision / np.diag(precision)) * unit / unit[:, None]
    np.fill_diagonal(coefficients, 0.0)
    return np.asarray(coefficients)
