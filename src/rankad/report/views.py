"""Counts of a column's values among normal rows, rows scored and alarms, added up batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Bools, Floats

_N_BINS = 30
_MOST_LABELS = 12
# The histogram spans all but this share of normal rows at either end, and this much of its width beyond.
_TAIL, _MARGIN = 0.005, 0.15

OTHERS, UNSEEN, MISSING = "all other normal values", "never seen in normal rows", "missing"


@dataclass(frozen=True)
class Counts:
    """One count per bin or label, for each kind of row; alarms are among the rows scored."""

    nominal: tuple[int, ...]
    scored: tuple[int, ...]
    alarms: tuple[int, ...]

    @classmethod
    def begin(cls, nominal: Iterable[int]) -> Counts:
        """Start with normal rows only."""
        counts = tuple(int(n) for n in nominal)
        return cls(counts, (0,) * len(counts), (0,) * len(counts))

    def add(self, scored: Iterable[int], alarms: Iterable[int]) -> Counts:
        """Return the sums."""
        sums = [
            tuple(n + int(more) for n, more in zip(*pair, strict=True))
            for pair in ((self.scored, scored), (self.alarms, alarms))
        ]
        return Counts(self.nominal, *sums)


@dataclass(frozen=True)
class NumericView:
    """A column of numbers.

    Examples
    --------
    >>> view = NumericView.of("age", [1, 2, 2, 3]).add([2, 90, None], [False, True, False])
    >>> view.edges
    (0.5, 1.5, 2.5, 3.5)
    >>> view.counts.nominal, view.counts.scored, view.counts.alarms
    ((0, 1, 2, 1, 0, 0), (0, 0, 1, 0, 1, 1), (0, 0, 0, 0, 1, 0))
    """

    name: str
    edges: tuple[float, ...]  # of the bins; values beyond are counted below or above all
    whole: bool  # whether there is one bin for each integer
    counts: Counts  # below the first edge, in each bin, above the last edge, missing

    @classmethod
    def of(cls, name: str, nominal: Any) -> NumericView:
        """Choose the bins by normal values."""
        values = _numbers(nominal)
        # Beyond 1e300 differences would overflow.
        finite = np.clip(values[np.isfinite(values)], -1e300, 1e300)
        whole = _are_few_integers(finite)
        edges = np.arange(finite.min(), finite.max() + 2) - 0.5 if whole else _even_edges(finite)
        return cls(name, tuple(edges.tolist()), whole, Counts.begin(_binned(edges, values)))

    def add(self, values: Any, alarms: ArrayLike) -> NumericView:
        """Return the view with more rows scored; `alarms` says which of them raised one."""
        numbers, edges = _numbers(values), np.array(self.edges)
        flags = _flags(alarms, len(numbers))
        return replace(self, counts=self.counts.add(_binned(edges, numbers), _binned(edges, numbers[flags])))


@dataclass(frozen=True)
class CategoryView:
    """A column of categories.

    Examples
    --------
    >>> view = CategoryView.of("color", ["red", "blue", "red"]).add(["red", "pink"], [False, True])
    >>> view.labels, view.counts.nominal
    (('red', 'blue'), (2, 1, 0, 0, 0))
    >>> view.counts.scored, view.counts.alarms
    ((1, 0, 0, 1, 0), (0, 0, 0, 1, 0))
    """

    name: str
    labels: tuple[str, ...]  # the most frequent among normal rows, most frequent first
    rarer: frozenset[str]  # the other values of normal rows
    counts: Counts  # of each label, of all rarer ones, of values never seen in normal rows, missing

    @classmethod
    def of(cls, name: str, nominal: Any) -> CategoryView:
        """Choose the labels by normal values."""
        tally = _tally(nominal)
        seen = sorted((label for label in tally if label is not None), key=lambda at: (-tally[at], at))
        # One rare value more takes no more room than a bar for all rarer ones.
        n_shown = _MOST_LABELS if len(seen) > _MOST_LABELS + 1 else len(seen)
        empty = cls(name, tuple(seen[:n_shown]), frozenset(seen[n_shown:]), Counts.begin(()))
        return replace(empty, counts=Counts.begin(empty._laid_out(tally)))

    def add(self, values: Any, alarms: ArrayLike) -> CategoryView:
        """Return the view with more rows scored; `alarms` says which of them raised one."""
        every = list(values)
        alarming = compress(every, _flags(alarms, len(every)))
        scored, alarmed = (self._laid_out(_tally(each)) for each in (every, alarming))
        return replace(self, counts=self.counts.add(scored, alarmed))

    @property
    def all_labels(self) -> tuple[str, ...]:
        """The labels of all counts."""
        return (*self.labels, OTHERS, UNSEEN, MISSING)

    def _laid_out(self, tally: Counter[str | None]) -> list[int]:
        """Return the counts in the order of `all_labels`."""
        shown = [tally[label] for label in self.labels]
        rarer = sum(tally[label] for label in self.rarer if label in tally)
        return [*shown, rarer, tally.total() - sum(shown) - rarer - tally[None], tally[None]]


def _numbers(values: Any) -> Floats:
    """Return values as floats; None is NaN."""
    return np.asarray(values, dtype=np.float64).reshape(-1)


def _flags(alarms: ArrayLike, n: int) -> Bools:
    flags = np.asarray(alarms, dtype=np.bool_).reshape(-1)
    if len(flags) != n:
        raise ValueError(f"alarms must have one entry per value, {n}; got {len(flags)}.")
    return flags


def _tally(values: Iterable[Any]) -> Counter[str | None]:
    """Count values by how they are written; None and NaN are missing."""
    tally: Counter[str | None] = Counter()
    for value, n in Counter(values).items():
        # NaN is the one value that is not itself.
        tally[None if value is None or value != value else str(value)] += n
    return tally


def _are_few_integers(values: Floats) -> bool:
    """Return whether all values are integers in a range small enough for a bin each."""
    if values.size == 0 or values.max() - values.min() >= _N_BINS or np.abs(values).max() >= 2**50:
        return False
    return bool((values == np.floor(values)).all())


def _even_edges(values: Floats) -> Floats:
    """Return the edges of bins of equal widths."""
    if values.size == 0:
        return np.array([0.0, 1.0])
    least, most = float(values.min()), float(values.max())
    low, high = (float(at) for at in np.quantile(values, [_TAIL, 1 - _TAIL]))
    margin = _MARGIN * (high - low)
    # If all normal rows end not far beyond, they are shown to their end.
    low, high = max(least, low - margin), min(most, high + margin)
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        half = max(abs(low), 1.0) / 2
        low, high = low - half, high + half
    return np.linspace(low, high, _N_BINS + 1)


def _binned(edges: Floats, values: Floats) -> list[int]:
    """Count values below, in each bin, above, missing. The last bin holds its upper edge."""
    inside = values[~np.isnan(values)]
    places = np.searchsorted(edges, inside, side="right")
    places[inside == edges[-1]] -= 1
    counts = np.bincount(places, minlength=len(edges) + 1)
    return [*(int(n) for n in counts), len(values) - len(inside)]
