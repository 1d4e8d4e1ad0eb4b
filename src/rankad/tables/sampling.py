"""A random sample of a table that is read in batches; it does not depend on their sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankad._base.arrays import Floats, Ints


class SampledRows(NamedTuple):
    """Rows of one schema, in the order of the table, with their row numbers from 0 and p-values."""

    frame: pl.DataFrame
    numbers: Ints
    p_values: Floats


class RowSample:
    """The `k` rows that come first in a random order which depends on row numbers only.

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
        """Add the rows of another batch."""
        chosen = np.flatnonzero(_hashes(numbers) <= self._last)
        if chosen.size > self._k:
            chosen = np.sort(chosen[np.argsort(_hashes(numbers[chosen]))[: self._k]])
        if not chosen.size:
            return
        self._parts.append(SampledRows(frame[chosen], numbers[chosen], p_values[chosen]))
        if sum(len(part.numbers) for part in self._parts) > 2 * self._k:
            self._parts = self._pruned()

    @property
    def rows(self) -> list[SampledRows]:
        """The sample, with a part for each schema, since text and numbers are read differently."""
        self._parts = self._pruned()
        return self._parts

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(len(part.numbers) for part in self.rows)

    def _pruned(self) -> list[SampledRows]:
        hashes = [_hashes(part.numbers) for part in self._parts]
        ordered = np.sort(np.concatenate(hashes or [np.empty(0, "u8")]))
        if ordered.size > self._k:
            self._last = ordered[self._k - 1]
        by_schema: dict[str, list[SampledRows]] = {}
        for part, own in zip(self._parts, hashes, strict=True):
            kept = np.flatnonzero(own <= self._last)
            if kept.size:
                rows = SampledRows(part.frame[kept], part.numbers[kept], part.p_values[kept])
                by_schema.setdefault(str(part.frame.schema), []).append(rows)
        return [
            SampledRows(pl.concat(frames), np.concatenate(numbers), np.concatenate(p_values))
            for frames, numbers, p_values in (zip(*parts, strict=True) for parts in by_schema.values())
        ]


def _hashes(numbers: Ints) -> NDArray[np.uint64]:
    """Return a pseudo-random number for each row number, by the mixing of splitmix64."""
    with np.errstate(over="ignore"):
        mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)
