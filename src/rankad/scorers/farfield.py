"""Rows beyond the range of nominal rows, column by column.

A kernel sees a row only through one distance. Where columns keep their own units, a column of small numbers
hardly counts in that distance, and a row may leave its range a hundredfold unseen. Hence a second look.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankad._base.arrays import LARGEST, Floats

__all__ = ["ColumnRanges"]

# So many units outside the range of nominal rows are left to the kernel.
_REACH = 4.0
# So many numbers are compared at a time.
_AT_ONCE = 2**14


class ColumnRanges(NamedTuple):
    """The range of nominal rows in each column, and a unit to measure in how far outside a row lies.

    Attributes
    ----------
    low, high : ndarray of shape (d,)
    unit : ndarray of shape (d,)
        The standard deviation; infinite for a column that does not vary, which is left to the kernel.
    """

    low: Floats
    high: Floats
    unit: Floats

    @classmethod
    def of(cls, rows: Floats) -> ColumnRanges:
        """Return the ranges of some rows."""
        low, high = rows.min(axis=0), rows.max(axis=0)
        unit = rows.std(axis=0)
        return cls(low, high, np.where((low < high) & (unit > 0), unit, np.inf))

    @property
    def limits(self) -> tuple[Floats, Floats, Floats]:
        """Where excess begins below and above, and its unit, for each column."""
        return self.low - _REACH * self.unit, self.high + _REACH * self.unit, self.unit

    def excess(self, rows: Floats) -> Floats:
        """Return by how many units, beyond four, each row lies outside in the column where that is most.

        Examples
        --------
        >>> ranges = ColumnRanges.of(np.array([[0.0, 0.0, 7.0], [1.0, 6.0, 7.0]]))
        >>> ranges.unit
        array([0.5, 3. , inf])
        >>> ranges.excess(np.array([[0.5, 4.0, 7.0], [3.0, 6.0, 7.0], [4.0, -15.0, 99.0]]))
        array([0., 0., 2.])
        """
        total = np.zeros(len(rows))
        # Some columns at a time, so that they stay in the cache, and that many do not take long.
        step = max(1, _AT_ONCE // max(1, len(rows)))
        with np.errstate(over="ignore"):
            for begin in range(0, rows.shape[1], step):
                some = slice(begin, begin + step)
                part = rows[:, some]
                outside = np.maximum(self.low[some] - part, part - self.high[some]) / self.unit[some] - _REACH
                np.maximum(total, outside.max(axis=1, initial=0.0), out=total)
        return np.minimum(total, LARGEST)
