"""What fitting asks of every partition: results are small, or 8 bytes a row, and can be merged in any order.

Each step is a function whose last two arguments are the number of a partition and its blocks. Bound to the
others by `functools.partial`, it is what an engine runs (`rankad.engines.partitions.Work`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankad._base.arrays import LARGEST, Floats, Ints
from rankad.engines.partitions import Block, Layout, Partitions
from rankad.stages.copies import count_equal, row_hashes, row_variates
from rankad.stages.neighbors import nearest_neighbors

if TYPE_CHECKING:
    from rankad.scorers.fusion import FusedScorer


def is_sampled(numbers: Ints, share: float) -> np.ndarray:
    """Return which rows belong to a uniform sample of this share; it depends on the row numbers alone.

    Examples
    --------
    >>> float(is_sampled(np.arange(100_000), 0.25).mean().round(2))
    0.25
    """
    if share >= 1:
        return np.ones(len(numbers), dtype=bool)
    return np.asarray(row_variates(numbers[:, None].astype(np.float64)) < share)


@dataclass(frozen=True)
class Numbering:
    """Number the rows of each partition.

    Attributes
    ----------
    layout : Layout
    begins : mapping of int to int
        The number of the first row of each partition, where no column has the numbers.
    """

    layout: Layout
    begins: Mapping[int, int]

    def blocks(self, partition: int, blocks: Iterable[Block]) -> Iterator[tuple[Ints, Block]]:
        """Return each block that is not empty with the numbers of its rows."""
        begin = self.begins.get(partition, 0)
        for block in blocks:
            n = len(block)
            if n and self.layout.number is not None:
                yield self.layout.row_numbers(block), block
            elif n:
                yield np.arange(begin, begin + n), block
            begin += n


def count_rows_of(partition: int, blocks: Iterable[Block]) -> int:
    """Count the rows of a partition."""
    return sum(len(block) for block in blocks)


class ColumnSummary(NamedTuple):
    """How many cells of each column a fit cannot take; summaries of disjoint rows are merged by `merged`.

    Attributes
    ----------
    counts : ndarray of int, shape (3, d)
        Of NaN, of infinities, and of values above `LARGEST`.
    first : ndarray of int, shape (d,)
        The number of the first row with such a cell.
    """

    counts: Ints
    first: Ints

    @classmethod
    def of(cls, rows: Floats, numbers: Ints) -> ColumnSummary:
        """Summarize the columns of some rows."""
        d, never = rows.shape[1], np.iinfo(np.int64).max
        fine = np.abs(rows) <= LARGEST
        if fine.all():
            return cls(np.zeros((3, d), dtype=np.int64), np.full(d, never))
        nan, infinite = np.isnan(rows), np.isinf(rows)
        kinds = np.stack([nan, infinite, ~fine & ~nan & ~infinite])
        return cls(kinds.sum(axis=1), np.where(fine, never, numbers[:, None]).min(axis=0))

    def merged(self, other: ColumnSummary) -> ColumnSummary:
        """Return the summary of the rows of both."""
        if self.first.size != other.first.size:
            raise ValueError(
                f"rows must have as many columns in all partitions, got {self.first.size} and "
                f"{other.first.size}."
            )
        return ColumnSummary(self.counts + other.counts, np.minimum(self.first, other.first))


class Surveyed(NamedTuple):
    """What `survey` returns for a partition.

    Attributes
    ----------
    summary : ColumnSummary or None
        None where there are no rows.
    numbers : ndarray of int or None
        The numbers of the sampled rows, where a column has them.
    hashes : ndarray of uint64
        Of the sampled rows.
    """

    summary: ColumnSummary | None
    numbers: Ints | None
    hashes: np.ndarray


def survey(numbering: Numbering, share: float, partition: int, blocks: Iterable[Block]) -> Surveyed:
    """Check all rows, and hash those in the sample, 8 bytes a row, so that repeated rows are found."""
    summary: ColumnSummary | None = None
    numbers, hashes = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint64)]
    for here, block in numbering.blocks(partition, blocks):
        rows = numbering.layout.rows(block)
        found = ColumnSummary.of(rows, here)
        summary = found if summary is None else summary.merged(found)
        chosen = is_sampled(here, share)
        numbers.append(here[chosen])
        hashes.append(row_hashes(rows if chosen.all() else rows[chosen]))
    told = None if numbering.layout.number is None else np.concatenate(numbers)
    return Surveyed(summary, told, np.concatenate(hashes))


def take_rows(
    numbering: Numbering, wanted: Ints, partition: int, blocks: Iterable[Block]
) -> tuple[Ints, list[Floats]]:
    """Return the rows whose numbers are wanted, which ascend, with their numbers."""
    numbers, rows = [np.empty(0, dtype=np.int64)], []
    for here, block in numbering.blocks(partition, blocks):
        chosen = np.flatnonzero(_among(here, wanted))
        if chosen.size:
            numbers.append(here[chosen])
            rows.append(numbering.layout.rows(block)[chosen])
    return np.concatenate(numbers), rows


def score_others(
    numbering: Numbering,
    share: float,
    left_out: Ints,
    scorer: FusedScorer,
    partition: int,
    blocks: Iterable[Block],
) -> Floats:
    """Score the sampled rows whose numbers are not in `left_out`, which ascend."""
    scores = [np.empty(0)]
    for here, block in numbering.blocks(partition, blocks):
        chosen = is_sampled(here, share) & ~_among(here, left_out)
        rows = numbering.layout.rows(block)
        scores.append(scorer.score(rows if chosen.all() else rows[chosen]))
    return np.concatenate(scores)


def count_equal_values(
    numbering: Numbering, share: float, asked: Floats, partition: int, blocks: Iterable[Block]
) -> Ints:
    """Count the sampled rows that share each value of the rows asked about, column by column."""
    counts = np.zeros(asked.shape, dtype=np.int64)
    for here, block in numbering.blocks(partition, blocks):
        counts += count_equal(numbering.layout.rows(block)[is_sampled(here, share)], asked)
    return counts


def nearest_distances(partitions: Partitions, layout: Layout, asked: Floats, k: int) -> Floats:
    """Return the exact distances of some rows to the k nearest of all rows in partitions.

    Every partition answers for its own rows, and the k smallest distances are kept. Rows that are in a
    partition themselves find themselves first, at distance zero.

    Parameters
    ----------
    partitions : Partitions
    layout : Layout
    asked : ndarray of shape (m, d)
    k : int

    Returns
    -------
    ndarray of shape (m, k)
        Ascending; inf where there are fewer than k rows.

    Examples
    --------
    >>> from rankad.engines.partitions import InProcess
    >>> partitions = InProcess([[np.array([[0.0], [4.0]])], [], [np.array([[1.0]])]])
    >>> nearest_distances(partitions, Layout(), np.array([[1.5]]), 2)
    array([[0.5, 1.5]])
    """
    nearest = np.full((len(asked), k), np.inf)
    for _, here in partitions.map(partial(_nearest_of, layout, asked, k)):
        nearest = _k_smallest(nearest, here)
    return nearest


def _nearest_of(layout: Layout, asked: Floats, k: int, partition: int, blocks: Iterable[Block]) -> Floats:
    """Return the distances of some rows to the k nearest rows of a partition; inf if it has fewer."""
    nearest = np.full((len(asked), k), np.inf)
    for block in blocks:
        if len(block):
            rows = layout.rows(block)
            nearest = _k_smallest(nearest, nearest_neighbors(rows, min(k, len(rows)), asked).distances)
    return nearest


def _k_smallest(nearest: Floats, others: Floats) -> Floats:
    return np.sort(np.concatenate([nearest, others], axis=1), axis=1)[:, : nearest.shape[1]]


def _among(numbers: Ints, ascending: Ints) -> np.ndarray:
    """Return which numbers are among others, which ascend."""
    if not ascending.size:
        return np.zeros(len(numbers), dtype=bool)
    at = np.minimum(np.searchsorted(ascending, numbers), ascending.size - 1)
    return np.asarray(ascending[at] == numbers)
