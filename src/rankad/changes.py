"""The smallest change that makes an alarm nominal: first in few columns, then no farther than needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankad._arrays import Bools, Floats, Ints
from rankad.typical import NominalRows

__all__ = ["Mover"]

# Halvings of the way from a value to a typical one: of all values together, then of each alone.
_TOGETHER, _ALONE = 24, 12


class Mover:
    """Moves rows toward nominal targets, and back again as far as they stay nominal.

    Parameters
    ----------
    nominal : NominalRows
    is_nominal : callable
        Tells which rows are no alarms.

    Notes
    -----
    A column in which nominal rows repeat one another, with fewer than half as many values as rows, is moved
    to values that some of them have: 2 or 3 rooms, never 2.4. So are the indicators of a category, which
    therefore is exchanged as a whole.
    """

    def __init__(self, nominal: NominalRows, is_nominal: Callable[[Floats], Bools]) -> None:
        self._nominal, self._is_nominal = nominal, is_nominal
        self._seen = [np.unique(values) for values in nominal.rows.T]
        self._repeats = np.array([2 * seen.size < len(nominal.rows) for seen in self._seen])

    def shrink(self, rows: Floats, targets: Floats, order: Ints) -> Floats:
        """Return rows between `rows` and `targets` that are nominal still and differ from `rows` in less.

        Parameters
        ----------
        rows, targets : ndarray of shape (m, d)
            Alarms, and nominal rows.
        order : ndarray of int, shape (m, n_groups)
            All groups, those first that shall be changed rather than others.
        """
        found = self._put_back(rows, targets, order)
        found = self._halve(rows, found, np.ones_like(rows, dtype=np.bool_), _TOGETHER)
        for groups in order.T[::-1]:
            mask = self._nominal.members[groups]
            moved = np.flatnonzero(((found != rows) & mask).any(axis=1))
            if moved.size:
                found[moved] = self._halve(rows[moved], found[moved], mask[moved], _ALONE)
        return found

    def _put_back(self, rows: Floats, targets: Floats, order: Ints) -> Floats:
        """Give groups their own values back, the last in order first, where the row stays nominal."""
        found = targets.copy()
        for groups in order.T[::-1]:
            mask = self._nominal.members[groups]
            moved = np.flatnonzero(((found != rows) & mask).any(axis=1))
            if moved.size:
                tried = np.where(mask[moved], rows[moved], found[moved])
                fine = self._is_nominal(tried)
                found[moved[fine]] = tried[fine]
        return found

    def _halve(self, rows: Floats, found: Floats, mask: Bools, halvings: int) -> Floats:
        """Go back from `found` toward `rows` in the columns of the mask, by bisection."""
        mask = mask & (rows != found)
        best, back, forth = found.copy(), np.zeros(len(rows)), np.ones(len(rows))
        for _ in range(halvings):
            middle = (back + forth) / 2
            tried = self._between(rows, found, mask, middle)
            fine = self._is_nominal(tried)
            best[fine] = tried[fine]
            forth, back = np.where(fine, middle, forth), np.where(fine, back, middle)
        return best

    def _between(self, rows: Floats, found: Floats, mask: Bools, share: Floats) -> Floats:
        """Return `found`, but in the mask points at a share of the way, or the next seen values beyond."""
        points = np.where(mask, rows + share[:, None] * (found - rows), found)
        for column in np.flatnonzero(mask.any(axis=0) & self._repeats).tolist():
            at, seen = np.flatnonzero(mask[:, column]), self._seen[column]
            point, end = points[at, column], found[at, column]
            down = seen[np.maximum(np.searchsorted(seen, point, side="right") - 1, 0)]
            up = seen[np.minimum(np.searchsorted(seen, point, side="left"), seen.size - 1)]
            falling = rows[at, column] > end
            points[at, column] = np.where(falling, np.maximum(down, end), np.minimum(up, end))
        return points
