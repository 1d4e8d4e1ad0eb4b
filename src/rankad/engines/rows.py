"""All rows of a partitioned table as a fit sees them: it takes a few and has the others scored in place."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rankad._base.arrays import LARGEST, Floats, Ints
from rankad.engines.partitions import Layout, Partitions
from rankad.engines.steps import (
    ColumnSummary,
    Numbering,
    count_equal_values,
    count_rows_of,
    is_sampled,
    score_others,
    survey,
    take_rows,
)
from rankad.stages.copies import Repeats, repeats_among

if TYPE_CHECKING:
    from rankad.scorers.fusion import FusedScorer

# Repeated rows are compared with all others so many at a time.
_ASKED = 200_000
_CHUNK = 2**22


def count_rows(partitions: Partitions, layout: Layout) -> tuple[int, Numbering]:
    """Count all rows, and number them in the order of their partitions or by a column."""
    counts = dict(sorted(partitions.map(count_rows_of)))
    ends = np.cumsum([0, *counts.values()]).tolist()
    begins = {} if layout.number is not None else dict(zip(counts, ends[:-1], strict=True))
    return ends[-1], Numbering(layout, begins)


class PartitionedRows:
    """Rows in partitions; a `rankad.fitting.task.RowSource`.

    Of more than `max_rows` rows, a uniform sample of about so many takes part, the same whatever the seed
    and the partitions. `n` rows are there in all (`count_rows`).

    Attributes
    ----------
    repeats : Repeats
        Rows that repeat others too regularly, as places among the sampled rows.
    """

    def __init__(
        self, partitions: Partitions, layout: Layout, n: int, numbering: Numbering, max_rows: int
    ) -> None:
        self._partitions, self._layout, self._numbering = partitions, layout, numbering
        self._share = min(1.0, max_rows / n)
        # The row number of each place; None where they are the same.
        self._numbers = _sampled_numbers(n, self._share) if self._share < 1 else None
        hashes, self._n_columns = self._survey(n)
        self._left_out = np.empty(0, dtype=np.int64)
        self.repeats: Repeats = repeats_among(hashes, self._n_columns, self._count_own)

    def leave_out(self, places: Ints) -> None:
        """Leave some of the rows out; those after them move up."""
        if places.size:
            self._left_out = self.numbers(places)
            numbers = np.arange(len(self)) if self._numbers is None else self._numbers
            self._numbers = np.delete(numbers, places)

    def numbers(self, places: Ints) -> Ints:
        """Return the row numbers of rows by their places among those that take part."""
        return places if self._numbers is None else self._numbers[places]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows that take part, and of columns."""
        return len(self), self._n_columns

    def __len__(self) -> int:
        return self._size if self._numbers is None else len(self._numbers)

    def __getitem__(self, which: Ints) -> Floats:
        """Gather some of the rows, in the order asked for."""
        wanted = self.numbers(which)
        ascending = np.sort(wanted)
        rows = np.empty((len(wanted), self._n_columns))
        n_taken = 0
        for _, (numbers, parts) in self._partitions.map(partial(take_rows, self._numbering, ascending)):
            if len(numbers):
                rows[np.searchsorted(ascending, numbers)] = np.concatenate(parts)
                n_taken += len(numbers)
        if n_taken != len(wanted):
            raise RuntimeError(
                f"{len(wanted)} rows were asked for and {n_taken} came: the rows, or their order, changed "
                f"between two passes. Persist the table, or name a column of row numbers."
            )
        return rows[np.searchsorted(ascending, wanted)]

    def score(self, which: Ints, scorer: FusedScorer) -> Floats:
        """Score some of the rows where they are; the scores come in the order of partitions."""
        others = np.ones(len(self), dtype=bool)
        others[which] = False
        left_out = np.flatnonzero(others)
        if self._numbers is not None:
            left_out = np.sort(np.concatenate([self._numbers[left_out], self._left_out]))
        scores = np.empty(len(which))
        end = 0
        work = partial(score_others, self._numbering, self._share, left_out, scorer)
        for _, here in self._partitions.map(work):
            scores[end : end + len(here)] = here[: len(scores) - end]
            end += len(here)
        if end != len(which):
            raise RuntimeError(
                f"{len(which)} rows were to be scored and {end} were: the rows changed between two passes. "
                f"Persist the table."
            )
        return scores

    def _survey(self, n: int) -> tuple[np.ndarray, int]:
        """Check all rows, and return the hash of each that takes part, and the number of columns."""
        self._size = n if self._numbers is None else len(self._numbers)
        hashes = np.empty(self._size, dtype=np.uint64)
        seen = np.zeros(self._size, dtype=bool)
        summary: ColumnSummary | None = None
        for partition, here in self._partitions.map(partial(survey, self._numbering, self._share)):
            if here.summary is None:
                continue
            summary = here.summary if summary is None else summary.merged(here.summary)
            if here.numbers is None:
                begin = self._numbering.begins[partition]
                begin = begin if self._numbers is None else int(np.searchsorted(self._numbers, begin))
                places: Ints | slice = slice(begin, begin + len(here.hashes))
            else:
                self._check_numbers(here.numbers, n)
                places = (
                    here.numbers if self._numbers is None else np.searchsorted(self._numbers, here.numbers)
                )
            hashes[places], seen[places] = here.hashes, True
        if not seen.all():
            column = self._layout.number
            raise ValueError(
                f"column {column!r} must hold each of the row numbers 0 to {n - 1} once, but some come twice."
                if column is not None
                else "the number of rows changed between two passes. Persist the table."
            )
        assert summary is not None
        _check_cells(summary, n, self._layout)
        return hashes, summary.first.size

    def _check_numbers(self, numbers: Ints, n: int) -> None:
        if numbers.size and (numbers.min() < 0 or numbers.max() >= n):
            raise ValueError(
                f"column {self._layout.number!r} must hold each of the row numbers 0 to {n - 1} once, got "
                f"{int(numbers.min())} to {int(numbers.max())}."
            )

    def _count_own(self, which: Ints, times: Ints, enough: int) -> Ints:
        counts = []
        for begin in range(0, len(which), _ASKED):
            asked = self[which[begin : begin + _ASKED]]
            work = partial(count_equal_values, self._numbering, self._share, asked)
            n_equal = sum((here for _, here in self._partitions.map(work)), np.zeros(asked.shape, np.int64))
            counts.append((n_equal <= times[begin : begin + _ASKED, None]).sum(axis=1))
        return np.concatenate(counts)


def _sampled_numbers(n: int, share: float) -> Ints:
    parts = []
    for begin in range(0, n, _CHUNK):
        numbers = np.arange(begin, min(n, begin + _CHUNK))
        parts.append(numbers[is_sampled(numbers, share)])
    return np.concatenate(parts)


def _check_cells(summary: ColumnSummary, n: int, layout: Layout) -> None:
    """Raise where there are cells that a fit cannot take, and name their columns."""
    kinds, wrong = ("NaN", "infinity", f"values above {LARGEST:g}"), []
    n_bad = summary.counts.sum(axis=0)
    for at in np.flatnonzero(n_bad):
        name = repr(layout.columns[at]) if layout.columns is not None else f"column {at}"
        what = " and ".join(kind for kind, n_here in zip(kinds, summary.counts[:, at], strict=True) if n_here)
        wrong.append(f"{name} ({what} in {n_bad[at]} of {n} rows, the first is row {summary.first[at]})")
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise ValueError(
            f"Input X contains numbers that RankAD cannot take in {', '.join(wrong[:5])}{more}. "
            f"TableDetector takes missing cells as they are; else fill the cells or drop the rows."
        )
