"""Rows beyond the range of nominal rows, column by column.

A kernel sees a row only through one distance. Where columns keep their own units, a column of small numbers
hardly counts in that distance, and a row may leave its range a hundredfold unnoticed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Floats

# Up to so many units outside the range of nominal rows, the kernel alone counts.
_REACH = 4.0


class ColumnRanges(NamedTuple):
    """The range of nominal rows in each column, and a unit for how far outside a row lies."""

    low: Floats
    high: Floats
    unit: Floats  # the standard deviation; infinite for a constant column, which is left to the kernel

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
        """Return by how many units, beyond four, each row lies outside, in the column where that is most.

        `rankad.scorers.kernel.KernelScorer` subtracts the same from its scores.

        Examples
        --------
        >>> ranges = ColumnRanges.of(np.array([[0.0, 0.0, 7.0], [1.0, 6.0, 7.0]]))
        >>> ranges.unit
        array([0.5, 3. , inf])
        >>> ranges.excess(np.array([[0.5, 4.0, 7.0], [3.0, 6.0, 7.0], [4.0, -15.0, 99.0]]))
        array([0., 0., 2.])
        """
        from rankad._loops.kernel import column_excess

        excess = np.empty(len(rows))
        column_excess(rows, *self.limits, excess)
        return excess
