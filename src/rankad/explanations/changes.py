"""The smallest change that makes an alarm nominal: first in few columns, then no farther than needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rankad._base.arrays import Bools, Floats, Ints
from rankad._loops.cache import compiled
from rankad.explanations.nominal_rows import NominalRows

# Halvings of the way from a value to a typical one: of all values together, then of each alone.
_TOGETHER, _ALONE = 24, 12


class Mover:
    """Moves rows toward nominal targets, and back again as far as they stay nominal.

    A column in which nominal rows repeat one another (`repeats`: fewer than half as many values as rows) is
    moved to values that some of them have: 2 or 3 rooms, never 2.4. So are the indicators of a category,
    which is exchanged as a whole.
    """

    def __init__(self, nominal: NominalRows, is_nominal: Callable[[Floats], Bools]) -> None:
        self._nominal, self._is_nominal = nominal, is_nominal
        values = np.sort(nominal.rows.T, axis=1)
        first = np.ones(values.shape, dtype=np.bool_)
        first[:, 1:] = values[:, 1:] != values[:, :-1]
        n_seen = np.count_nonzero(first, axis=1)
        self._seen, self._begins = values[first], np.cumsum([0, *n_seen])
        self.repeats = 2 * n_seen < len(nominal.rows)

    def shrink(self, rows: Floats, targets: Floats, order: Ints) -> Floats:
        """Return rows between alarms and nominal targets that stay nominal and differ less from the alarms.

        `order`, of shape (m, n_groups), lists first the groups that shall be changed rather than others.
        """
        changed = self._put_back(rows, targets, order)
        changed = self._halve(rows, changed, np.ones_like(rows, dtype=np.bool_), _TOGETHER)
        for now, groups in self._turns(rows, changed, order):
            changed[now] = self._halve(rows[now], changed[now], self._nominal.members(groups), _ALONE)
        return changed

    def _put_back(self, rows: Floats, targets: Floats, order: Ints) -> Floats:
        """Give groups their own values back, the last in order first, where the row stays nominal."""
        changed = targets.copy()
        for now, groups in self._turns(rows, changed, order):
            tried = np.where(self._nominal.members(groups), rows[now], changed[now])
            fine = self._is_nominal(tried)
            changed[now[fine]] = tried[fine]
        return changed

    def _turns(self, rows: Floats, changed: Floats, order: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Go through the groups in which rows have moved, the last in order first, all rows side by side.

        Yields rows, and a group for each.
        """
        moved = np.take_along_axis(self._nominal.groups_of(changed != rows), order, axis=1)
        places, left = np.argsort(~moved, axis=1, kind="stable"), np.count_nonzero(moved, axis=1)
        while left.any():
            now = np.flatnonzero(left)
            left[now] -= 1
            yield now, order[now, places[now, left[now]]]

    def _halve(self, rows: Floats, changed: Floats, mask: Bools, halvings: int) -> Floats:
        """Go back from `changed` toward `rows` in the columns of the mask, by bisection."""
        mask = mask & (rows != changed)
        # A category is there at the first step already, and so at all others.
        mask &= self._between(rows, changed, mask, np.full(len(rows), 0.5**halvings)) != changed
        best, on_the_way = changed.copy(), np.flatnonzero(mask.any(axis=1))
        rows, changed, mask = rows[on_the_way], changed[on_the_way], mask[on_the_way]
        back, forth = np.zeros(len(rows)), np.ones(len(rows))
        for _ in range(halvings if len(rows) else 0):
            middle = (back + forth) / 2
            tried = self._between(rows, changed, mask, middle)
            fine = self._is_nominal(tried)
            best[on_the_way[fine]] = tried[fine]
            forth, back = np.where(fine, middle, forth), np.where(fine, back, middle)
        return best

    def _between(self, rows: Floats, changed: Floats, mask: Bools, share: Floats) -> Floats:
        """Return `changed`, but in the mask points at a share of the way, or the next seen values beyond."""
        points = changed.copy()
        _go(rows, mask, share, self.repeats, self._seen, self._begins, points)
        return points


@compiled
def _go(rows, mask, share, repeats, seen, begins, points):  # type: ignore[no-untyped-def]
    """Put points, at their ends yet, at a share of the way from rows, or at the next seen values beyond."""
    for i in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            if mask[i, column]:
                begin, end = rows[i, column], points[i, column]
                point = begin + share[i] * (end - begin)
                if repeats[column]:
                    values = seen[begins[column] : begins[column + 1]]
                    if begin > end:
                        at = np.searchsorted(values, point, side="right") - 1
                        point = max(values[max(at, 0)], end)
                    else:
                        at = np.searchsorted(values, point, side="left")
                        point = min(values[min(at, values.size - 1)], end)
                points[i, column] = point
