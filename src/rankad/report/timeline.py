"""Rows and alarms counted along the table, or along time, batch by batch and in constant memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankad._base.arrays import Bools, Floats, Ints

# Bins are doubled in width, or made of the next unit of time, when there are more than these.
_MOST_KEPT = 4_096
# Bars on the page, and rows that one should stand for.
_MOST_SHOWN, _FEWEST_ROWS = 48, 10
# Seconds; each is a multiple of the one before.
_SECONDS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_419_200, 31_449_600, 314_496_000)
_UNITS = (
    "second", "10 seconds", "minute", "10 minutes", "hour", "6 hours", "day", "week", "4 weeks", "year",
    "10 years",
)  # fmt: skip
# A few wrong dates must not squeeze the others: bars span all but this share of the rows at either end ...
_TAIL = 0.005
# ... where that is less than this share of the whole.
_SQUEEZED = 0.25


class Span(NamedTuple):
    """Some neighbouring rows.

    Begin and end are row numbers from 1, both included; or seconds since 1970, the end not included.
    """

    begin: int
    end: int
    n_rows: int
    n_alarms: int


@dataclass(frozen=True)
class Timeline:
    """Rows and alarms by place in the table, or by time.

    Examples
    --------
    >>> line = Timeline().add(0, [False] * 30).add(30, [True] * 10)
    >>> [(span.begin, span.end, span.n_alarms) for span in line.spans()]
    [(1, 16, 0), (17, 32, 2), (33, 40, 8)]
    """

    column: str | None = None  # that has the time; None where rows are counted by their place
    step: int = 0  # how wide bins are: the power of two of rows, or the position of a unit of time
    rows: Counter[int] = field(default_factory=Counter)  # by bin
    alarms: Counter[int] = field(default_factory=Counter)
    n_without: int = 0  # rows without a time

    def add(self, first: int, alarms: object) -> Timeline:
        """Return it with more rows: how many came before them, and which are alarms."""
        flags = np.asarray(alarms, dtype=np.bool_)
        return self._add(first + np.arange(flags.size), flags)

    def add_times(self, seconds: Floats, alarms: Bools) -> Timeline:
        """Return it with more rows: their seconds since 1970 (NaN: missing), and which are alarms."""
        there = np.isfinite(seconds)
        line = replace(self, n_without=self.n_without + int(np.count_nonzero(~there)))
        return line._add(np.floor(seconds[there]).astype(np.int64), np.asarray(alarms)[there])

    def _add(self, places: Ints, flags: Bools) -> Timeline:
        bins = places // self._width(self.step)
        line = replace(self, rows=self.rows + _counts(bins), alarms=self.alarms + _counts(bins[flags]))
        while len(line.rows) > _MOST_KEPT and line._can_widen():
            line = line._wider()
        return line

    def _width(self, step: int) -> int:
        """Return the width of bins in rows or seconds."""
        return 2**step if self.column is None else _SECONDS[step]

    def _can_widen(self) -> bool:
        return self.column is None or self.step + 1 < len(_SECONDS)

    def _wider(self) -> Timeline:
        factor = self._width(self.step + 1) // self._width(self.step)
        wide: list[Counter[int]] = [Counter(), Counter()]
        for counts, sums in zip((self.rows, self.alarms), wide, strict=True):
            for at, n in counts.items():
                sums[at // factor] += n
        return replace(self, step=self.step + 1, rows=wide[0], alarms=wide[1])

    @property
    def n_rows(self) -> int:
        """Rows with a place."""
        return self.rows.total()

    @property
    def unit(self) -> str:
        """What a bar stands for."""
        line = self._shown()
        if line.column is not None:
            return _UNITS[line.step]
        n = min(line._width(line.step), self.n_rows)
        return f"{n:,} rows" if n > 1 else "row"

    def spans(self) -> list[Span]:
        """Return a few dozen bins in order, empty ones between others included."""
        line = self._shown()
        if not line.rows:
            return []
        first, last = line._ends()
        width = line._width(line.step)
        spans = []
        for at in range(first, last + 1):
            begin, end = at * width, (at + 1) * width
            if self.column is None:
                begin, end = begin + 1, min(end, self.n_rows)
            spans.append(Span(begin, end, line.rows[at], line.alarms[at]))
        return spans

    @property
    def n_outside(self) -> int:
        """Rows whose time is so far from most others that no bar is drawn for them."""
        return self.n_rows - sum(span.n_rows for span in self.spans())

    def _shown(self) -> Timeline:
        line = self
        while line._can_widen():
            first, last = line._ends() if line.rows else (0, 0)
            few = line.column is None and line._width(line.step) < _FEWEST_ROWS
            if last - first < _MOST_SHOWN and not few:
                break
            line = line._wider()
        return line

    def _ends(self) -> tuple[int, int]:
        """Return the first bin and the last, but for a few rows far from all others."""
        bins: NDArray[np.int64] = np.array(sorted(self.rows))
        first, last = int(bins[0]), int(bins[-1])
        if self.column is None:
            return first, last
        shares = np.cumsum([self.rows[at] for at in bins.tolist()]) / self.n_rows
        low = int(bins[np.searchsorted(shares, _TAIL)])
        high = int(bins[min(int(np.searchsorted(shares, 1 - _TAIL)), bins.size - 1)])
        return (low, high) if high - low < _SQUEEZED * (last - first) else (first, last)


def written(seconds: int, unit: str) -> str:
    """Write a time, as precisely as the unit asks for.

    >>> written(1_700_000_000, "hour"), written(1_700_000_000, "day")
    ('2023-11-14 22:13', '2023-11-14')
    """
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:,} s"
    if "second" in unit:
        return f"{moment:%Y-%m-%d %H:%M:%S}"
    return f"{moment:%Y-%m-%d %H:%M}" if "minute" in unit or "hour" in unit else f"{moment:%Y-%m-%d}"


def _counts(bins: Ints) -> Counter[int]:
    return Counter(dict(zip(*(part.tolist() for part in np.unique(bins, return_counts=True)), strict=True)))
