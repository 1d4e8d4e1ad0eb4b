"""What fitting asks of every partition: results are small, or 8 bytes a row, and can be merged in any order.

Each step is a class with the arguments that every partition gets; its instances are called with the number of
a partition and its blocks (`rankad.engines.partitions.Work`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankad._base.arrays import LARGEST, Floats, Ints
from rankad.engines.partitions import Block, Layout, Partitions
from rankad.stages.copies import count_equal, row_hashes, row_variates
from rankad.stages.neighbors import nearest_neighbors

if TYPE_CHECKING:
    from rankad.scorers.fusion import FusedScorer

__all__ = [
    "ColumnSummary",
    "Count",
    "CountEqual",
    "Nearest",
    "Numbering",
    "ScoreOthers",
    "Survey",
    "Surveyed",
    "TakeRows",
    "is_sampled",
    "nearest_distances",
]


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


@dataclass(frozen=True)
class Count:
    """Count the rows of a partition."""

    def __call__(self, partition: int, blocks: Iterable[Block]) -> int:
        """Work on one partition."""
        return sum(len(block) for block in blocks)


class ColumnSummary(NamedTuple):
    """How many cells of each column a fit cannot take; summaries of disjoint rows are merged by `merged`.

    Attributes
    ----------
    n_nan, n_infinite, n_large : ndarray of int, shape (d,)
    first : ndarray of int, shape (d,)
        The number of the first row with such a cell.
    """

    n_nan: Ints
    n_infinite: Ints
    n_large: Ints
    first: Ints

    @classmethod
    def of(cls, rows: Floats, numbers: Ints) -> ColumnSummary:
        """Summarize the columns of some rows."""
        d, never = rows.shape[1], np.iinfo(np.int64).max
        fine = np.abs(rows) <= LARGEST
        if fine.all():
            none = np.zeros(d, dtype=np.int64)
            return cls(none, none, none, np.full(d, never))
        nan, infinite = np.isnan(rows), np.isinf(rows)
        large = ~fine & ~nan & ~infinite
        first = np.where(fine, never, numbers[:, None]).min(axis=0)
        return cls(nan.sum(axis=0), infinite.sum(axis=0), large.sum(axis=0), first)

    def merged(self, other: ColumnSummary) -> ColumnSummary:
        """Return the summary of the rows of both."""
        if self.first.size != other.first.size:
            raise ValueError(
                f"rows must have as many columns in all partitions, got {self.first.size} and "
                f"{other.first.size}."
            )
        return ColumnSummary(
            self.n_nan + other.n_nan,
            self.n_infinite + other.n_infinite,
            self.n_large + other.n_large,
            np.minimum(self.first, other.first),
        )


class Surveyed(NamedTuple):
    """What `Survey` returns for a partition.

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


@dataclass(frozen=True)
class Survey:
    """Check all rows, and hash those in the sample, 8 bytes a row, so that repeated rows are found."""

    numbering: Numbering
    share: float

    def __call__(self, partition: int, blocks: Iterable[Block]) -> Surveyed:
        """Work on one partition."""
        summary: ColumnSummary | None = None
        numbers, hashes = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint64)]
        for here, block in self.numbering.blocks(partition, blocks):
            rows = self.numbering.layout.rows(block)
            found = ColumnSummary.of(rows, here)
            summary = found if summary is None else summary.merged(found)
            chosen = is_sampled(here, self.share)
            numbers.append(here[chosen])
            hashes.append(row_hashes(rows if chosen.all() else rows[chosen]))
        told = None if self.numbering.layout.number is None else np.concatenate(numbers)
        return Surveyed(summary, told, np.concatenate(hashes))


@dataclass(frozen=True)
class TakeRows:
    """Return some of the rows with their numbers.

    Attributes
    ----------
    numbering : Numbering
    wanted : ndarray of int
        Row numbers, ascending.
    """

    numbering: Numbering
    wanted: Ints

    def __call__(self, partition: int, blocks: Iterable[Block]) -> tuple[Ints, list[Floats]]:
        """Work on one partition."""
        numbers, rows = [np.empty(0, dtype=np.int64)], []
        for here, block in self.numbering.blocks(partition, blocks):
            chosen = np.flatnonzero(_among(here, self.wanted))
            if chosen.size:
                numbers.append(here[chosen])
                rows.append(self.numbering.layout.rows(block)[chosen])
        return np.concatenate(numbers), rows


@dataclass(frozen=True)
class ScoreOthers:
    """Score all sampled rows of a partition but those that took part in training.

    Attributes
    ----------
    numbering : Numbering
    share : float
        Of the sample.
    left_out : ndarray of int
        Row numbers, ascending.
    scorer : FusedScorer
    """

    numbering: Numbering
    share: float
    left_out: Ints
    scorer: FusedScorer

    def __call__(self, partition: int, blocks: Iterable[Block]) -> Floats:
        """Work on one partition."""
        scores = [np.empty(0)]
        for here, block in self.numbering.blocks(partition, blocks):
            chosen = is_sampled(here, self.share) & ~_among(here, self.left_out)
            rows = self.numbering.layout.rows(block)
            scores.append(self.scorer.score(rows if chosen.all() else rows[chosen]))
        return np.concatenate(scores)


@dataclass(frozen=True)
class CountEqual:
    """Count the sampled rows that share each value of some rows, column by column."""

    numbering: Numbering
    share: float
    asked: Floats

    def __call__(self, partition: int, blocks: Iterable[Block]) -> Ints:
        """Work on one partition."""
        counts = np.zeros(self.asked.shape, dtype=np.int64)
        for here, block in self.numbering.blocks(partition, blocks):
            counts += count_equal(self.numbering.layout.rows(block)[is_sampled(here, self.share)], self.asked)
        return counts


@dataclass(frozen=True)
class Nearest:
    """Return the distances of some rows to the k nearest rows of a partition; inf if it has fewer."""

    layout: Layout
    asked: Floats
    k: int

    def __call__(self, partition: int, blocks: Iterable[Block]) -> Floats:
        """Work on one partition."""
        nearest = np.full((len(self.asked), self.k), np.inf)
        for block in blocks:
            if len(block):
                rows = self.layout.rows(block)
                here = nearest_neighbors(rows, min(self.k, len(rows)), self.asked).distances
                nearest = _k_smallest(nearest, here)
        return nearest


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
    for _, here in partitions.map(Nearest(layout, asked, k)):
        nearest = _k_smallest(nearest, here)
    return nearest


def _k_smallest(nearest: Floats, others: Floats) -> Floats:
    return np.sort(np.concatenate([nearest, others], axis=1), axis=1)[:, : nearest.shape[1]]


def _among(numbers: Ints, ascending: Ints) -> np.ndarray:
    """Return which numbers are among others, which ascend."""
    if not ascending.size:
        return np.zeros(len(numbers), dtype=bool)
    at = np.minimum(np.searchsorted(ascending, numbers), ascending.size - 1)
    return np.asarray(ascending[at] == numbers)
