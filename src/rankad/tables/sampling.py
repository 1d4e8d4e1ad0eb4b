"""A sample of the rows of a table that is read batch by batch, the same however the batches are cut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankad._base.arrays import Floats, Ints

__all__ = ["RowSample", "SampledRows"]


class SampledRows(NamedTuple):
    """Rows of one schema, in the order of the table.

    Attributes
    ----------
    frame : polars DataFrame of n rows
    numbers : ndarray of int, shape (n,)
        Where they are in the table; the first row is 0.
    p_values : ndarray of shape (n,)
    """

    frame: pl.DataFrame
    numbers: Ints
    p_values: Floats


class RowSample:
    """The k rows that are first in an order by chance, which goes by a row's number alone.

    Parameters
    ----------
    k : int
        How many rows to keep.

    Examples
    --------
    >>> sample = RowSample(2)
    >>> for begin in (0, 3):
    ...     frame = pl.DataFrame({"x": [begin, begin + 1, begin + 2]})
    ...     sample.add(frame, np.arange(begin, begin + 3), np.full(3, 0.5))
    >>> sample.size, sum(len(part.frame) for part in sample.rows)
    (2, 2)
    """

    def __init__(self, k: int) -> None:
        self._k = k
        self._last = np.iinfo(np.uint64).max
        self._parts: list[SampledRows] = []

    def add(self, frame: pl.DataFrame, numbers: Ints, p_values: Floats) -> None:
        """Look at more rows."""
        chosen = np.flatnonzero(_lots(numbers) <= self._last)
        if chosen.size > self._k:
            chosen = np.sort(chosen[np.argsort(_lots(numbers[chosen]))[: self._k]])
        if not chosen.size:
            return
        self._parts.append(SampledRows(frame[chosen], numbers[chosen], p_values[chosen]))
        if sum(len(part.numbers) for part in self._parts) > 2 * self._k:
            self._parts = self._pruned()

    @property
    def rows(self) -> list[SampledRows]:
        """The sample; a part for each schema, since text and numbers are not read alike."""
        self._parts = self._pruned()
        return self._parts

    @property
    def size(self) -> int:
        """How many rows it has."""
        return sum(len(part.numbers) for part in self.rows)

    def _pruned(self) -> list[SampledRows]:
        lots = np.sort(np.concatenate([_lots(part.numbers) for part in self._parts] or [np.empty(0, "u8")]))
        if lots.size > self._k:
            self._last = lots[self._k - 1]
        merged: dict[tuple[tuple[str, str], ...], list[SampledRows]] = {}
        for part in self._parts:
            kept = np.flatnonzero(_lots(part.numbers) <= self._last)
            if kept.size:
                schema = tuple((name, str(kind)) for name, kind in part.frame.schema.items())
                merged.setdefault(schema, []).append(
                    SampledRows(part.frame[kept], part.numbers[kept], part.p_values[kept])
                )
        return [
            SampledRows(
                pl.concat([part.frame for part in parts]),
                np.concatenate([part.numbers for part in parts]),
                np.concatenate([part.p_values for part in parts]),
            )
            for parts in merged.values()
        ]


def _lots(numbers: Ints) -> NDArray[np.uint64]:
    """Return a number drawn by chance for each row number: the mixing of splitmix64."""
    with np.errstate(over="ignore"):
        mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)
