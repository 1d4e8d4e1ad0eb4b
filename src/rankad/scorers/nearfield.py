"""How near the nearest nominal rows are, among more than landmarks can stand for.

A few hundred landmarks see no gap that is smaller than what lies between them; a hundred thousand rows do.
They need not all be looked at: a row is compared with hubs, which are one in a hundred of them, and then with
the rows about those hubs that are nearest. So nearly all nearest rows are found, and the search is the
same for every row, nominal or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankad._base.arrays import Floats, Ints
from rankad._base.threads import cached_property
from rankad._loops.nearest import ABREAST, NEAR, near_distances, nearest_hubs
from rankad._loops.vectors import in_groups, lanes
from rankad.stages.scaling import fit_scaling, notable_change

# About how many hubs the nearest rows are looked for.
_VISITED = 4
# Beyond this a place may as well be anywhere, and a distance is as good as infinite.
_FARTHEST, _MOST = 1e30, 1e15
# Units smaller than one over this have no numbers left.
_LARGEST_SCALE = 1e300
# About a hub are at least so many rows on average, or so many for every column: where columns are many, to be
# near a hub says little.
_CELL, _CELL_A_COLUMN = 50, 5


@dataclass(frozen=True)
class NearField:
    """How near the nearest nominal rows are."""

    rows: Floats  # nominal rows, as they come; the first of them are the hubs
    n_hubs: int
    unit: Floats  # of each column

    @classmethod
    def of(cls, rows: Floats, unit: Floats) -> NearField:
        """Choose which of some nominal rows are the hubs; `unit` is that of each column."""
        kept, n_distinct = _few_copies(rows, NEAR)
        # Comparing with so many hubs takes about as long as with the rows about a few of them.
        cell = max(_CELL, _CELL_A_COLUMN * rows.shape[1])
        n_hubs = max(1, min(math.isqrt(8 * len(kept)), len(kept) // cell, n_distinct))
        hubs = np.arange(n_hubs) * n_distinct // n_hubs
        kept = np.concatenate([kept[hubs], np.delete(kept, hubs)])
        return cls(rows[kept], n_hubs, unit)

    def score(self, rows: Floats) -> Floats:
        """Return minus the mean distance to the five nearest; of each row, this depends on that row alone."""
        return -self._layout.distances(rows)

    @cached_property
    def _layout(self) -> _Layout:
        return _lay_out(self.rows, self.n_hubs, self.unit)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def near_unit(rows: Floats, n_all: int | None = None) -> Floats:
    """Return the unit of each column by which nominal rows are near, of shape (d,).

    The geometric mean of standard deviation and range: columns vary alike by the one, and those with long
    tails or rare values have less say by the other. For a constant column, as if one of the rows had
    differed.
    """
    low, high = rows.min(axis=0), rows.max(axis=0)
    ranges = np.where(high > low, high - low, notable_change(low))
    return np.sqrt(fit_scaling(rows, "standard", n_all).scale * ranges)


class _Layout(NamedTuple):
    """A near field as `near_distances` reads it, and the size by which its unit was multiplied."""

    center: Floats
    scale: Floats
    hubs: NDArray[np.float32]
    cells: NDArray[np.float32]
    begins: Ints
    size: float

    def distances(self, rows: Floats) -> Floats:
        """Return how far away the nearest rows are."""
        distances = np.empty(len(rows))
        near_distances(rows, *self[:-1], min(_VISITED, len(self.begins) - 1), distances)
        np.minimum(distances, _MOST, out=distances)
        distances *= self.size
        return distances


def _size(hubs: Floats, unit: Floats) -> float:
    """Return about how far hubs lie from the median one: in that unit, float32 has room for distances.

    A tenth of them may lie anywhere.
    """
    with np.errstate(over="ignore"):
        far = np.abs((hubs - np.median(hubs, axis=0)) / unit).max(axis=1)
    size = float(np.quantile(far, 0.9, method="lower")) or float(far.max())
    return size if 0 < size < math.inf else 1.0


def _lay_out(rows: Floats, n_hubs: int, unit: Floats) -> _Layout:
    center = np.sort(rows[:n_hubs], axis=0)[n_hubs // 2]
    size = _size(rows[:n_hubs], unit)
    # Rows that are too far apart for a float32, or for any, are told apart as far as that goes.
    with np.errstate(over="ignore"):
        scale = np.minimum(1.0 / (unit * size), _LARGEST_SCALE)
        places = np.clip((rows - center) * scale, -_FARTHEST, _FARTHEST).astype(np.float32)
    hubs = in_groups(places[:n_hubs], np.float32)
    owners = np.empty((len(rows), 1), dtype=np.int64)
    nearest_hubs(rows, center, scale, hubs, owners)
    # At no finite distance from any hub is as good as at any.
    cells, begins = _in_cells(places, np.maximum(owners[:, 0], 0), n_hubs)
    return _Layout(center, scale, hubs, cells, begins, size)


def _in_cells(places: NDArray[np.float32], owners: Ints, n_cells: int) -> tuple[NDArray[np.float32], Ints]:
    """Return places in groups, cell by cell, and where cells begin and the last one ends, in groups."""
    full = ABREAST * lanes(np.float32)
    counts = np.bincount(owners, minlength=n_cells)
    begins = np.concatenate([[0], np.cumsum(-(-counts // full) * full)])
    order = np.argsort(owners, kind="stable")
    firsts = np.concatenate([[0], np.cumsum(counts)])[:-1]
    filled = np.full((begins[-1], places.shape[1]), np.inf, dtype=np.float32)
    filled[begins[owners[order]] + np.arange(len(order)) - firsts[owners[order]]] = places[order]
    return in_groups(filled, np.float32), begins // lanes(np.float32)


def _few_copies(rows: Floats, most: int) -> tuple[Ints, int]:
    """Name so many copies of each row at most, the first of each first; and say how many are the first.

    Rows are told apart by 64 bits made from their numbers. Two that differ have the same ones hardly ever,
    and then no more happens than if they were copies.
    """
    words = np.ascontiguousarray(rows, dtype=np.float64).view(np.uint64)
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    keys = ((words ^ (words >> np.uint64(32))) * factors).sum(axis=1, dtype=np.uint64)
    order = np.argsort(keys, kind="stable")
    new = np.concatenate([[True], keys[order][1:] != keys[order][:-1]])
    runs = np.flatnonzero(new)
    copy = np.arange(len(rows)) - np.repeat(runs, np.diff([*runs, len(rows)]))
    number = np.empty_like(copy)
    number[order] = copy
    first = np.flatnonzero(number == 0)
    return np.concatenate([first, np.flatnonzero((number > 0) & (number < most))]), len(first)
