"""How near the nearest nominal rows are, among more than landmarks can stand for.

A few hundred landmarks see no gap that is smaller than what lies between them; a hundred thousand rows do.
They need not all be looked at: a row is compared with hubs, which are one in a hundred of them, and then with
the rows about those hubs that are nearest. So nearly all nearest rows are found, and the search is the
same for every row, nominal or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankad._arrays import LARGEST, Floats, Ints
from rankad._simd import ABREAST, NEAR, aligned, in_groups, lanes, near_distances, nearest_hubs
from rankad._threads import in_blocks, made_once

__all__ = ["NearField"]

# About how many hubs the nearest rows are looked for.
_VISITED = 4
# Logarithms begin at this fraction of the median distance: where rows repeat, many distances are zero.
_FLOOR = 1e-3
# Logarithms that vary no more than this differ by rounding alone.
_ALIKE = 1e-6
# Beyond this a place may as well be anywhere, and a distance is as good as infinite.
_FARTHEST, _MOST = 1e30, 1e15
# About a hub are at least so many rows, on average.
_CELL = 100


@dataclass(frozen=True)
class NearField:
    """What a score loses by the distance from nominal rows: its logarithm, as the mean of several scalings.

    Attributes
    ----------
    rows : ndarray of shape (m, d)
        Nominal rows, in their own units; the first of them are the hubs.
    n_hubs : int
    units : ndarray of shape (v, d)
        The units of columns in each scaling.
    floors : ndarray of shape (v,)
        What is added to distances before logarithms are taken.
    middle, weight : float
        What is lost is ``weight * (logarithm - middle)``.
    """

    rows: Floats
    n_hubs: int
    units: Floats
    floors: Floats
    middle: float
    weight: float

    @classmethod
    def of(
        cls, rows: Floats, units: Sequence[Floats], others: Floats, spread: float, n_jobs: int | None = None
    ) -> NearField | None:
        """Learn from nominal rows how near to them other nominal rows are.

        Parameters
        ----------
        rows : ndarray of shape (m, d)
        units : sequence of ndarray of shape (d,)
            Those of columns, in each scaling.
        others : ndarray of shape (n, d)
            Their losses are zero on average, with a standard deviation of `spread`.
        spread : float
        n_jobs : int, optional
            Threads; it changes the time taken and nothing else.

        Returns
        -------
        NearField or None
            None where the others are all equally near, or `spread` is zero: nothing tells them apart.
        """
        kept, n_distinct = _few_copies(rows, NEAR)
        # Comparing with so many hubs takes about as long as with the rows about a few of them.
        n_hubs = max(1, min(math.isqrt(8 * len(kept)), len(kept) // _CELL, n_distinct))
        hubs = np.arange(n_hubs) * n_distinct // n_hubs
        kept = np.concatenate([kept[hubs], np.delete(kept, hubs)])
        rows = rows[kept]
        own = np.array([unit * _size(rows[:n_hubs], unit) for unit in units])
        layout = _lay_out(rows, n_hubs, own, n_jobs)
        distances = layout.distances(others)
        floors = np.array(
            [_FLOOR * (np.median(found[found > 0]) if found.any() else 1.0) for found in distances]
        )
        logarithms = _mean_logarithms(distances, floors)
        deviation = float(logarithms.std())
        if not (deviation > _ALIKE and spread > 0):
            return None
        near = cls(rows, n_hubs, own, floors, float(logarithms.mean()), spread / deviation)
        near.__dict__["_layout"] = layout
        return near

    def losses(self, rows: Floats) -> Floats:
        """Return what rows lose; of each row, this depends on that row alone, to the last bit."""
        logarithms = _mean_logarithms(self._layout.distances(rows), self.floors)
        return self.weight * (logarithms - self.middle)

    def prepare(self, n_jobs: int | None = None) -> None:
        """Make what the first call of `losses` would make, on so many threads."""
        if "_layout" not in self.__dict__:
            self.__dict__["_layout"] = _lay_out(self.rows, self.n_hubs, self.units, n_jobs)

    @made_once
    def _layout(self) -> _Layout:
        return _lay_out(self.rows, self.n_hubs, self.units)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class _Layout(NamedTuple):
    """A near field as `near_distances` reads it."""

    center: Floats
    scales: Floats
    hubs: NDArray[np.float32]
    cells: NDArray[np.float32]
    begins: Ints

    def distances(self, rows: Floats) -> Floats:
        """Return how far away the nearest rows are, of shape (v, n)."""
        found = np.empty((len(self.scales), len(rows)))
        n_hubs = self.begins.shape[1] - 1
        near_distances(rows, *self, min(_VISITED, n_hubs), found)
        return np.minimum(found, _MOST, out=found)


def _size(hubs: Floats, unit: Floats) -> float:
    """Return about how far hubs lie from the median one: in that unit, float32 has room for distances.

    A tenth of them may lie anywhere.
    """
    with np.errstate(over="ignore"):
        far = np.abs((hubs - np.median(hubs, axis=0)) / unit).max(axis=1)
    size = float(np.quantile(far, 0.9, method="lower")) or float(far.max())
    return size if 0 < size < math.inf else 1.0


def _mean_logarithms(distances: Floats, floors: Floats) -> Floats:
    return np.asarray(np.log(distances + floors[:, None]).mean(axis=0))


def _lay_out(rows: Floats, n_hubs: int, units: Floats, n_jobs: int | None = None) -> _Layout:
    center = np.sort(rows[:n_hubs], axis=0)[n_hubs // 2]
    # Rows that are too far apart for a float32, or for any, are told apart as far as that goes.
    with np.errstate(over="ignore"):
        scales = np.minimum(1.0 / units, LARGEST)
    # A thread for each scaling.
    views = in_blocks(lambda at, _: _view(rows, n_hubs, center, scales[at]), len(scales), 1, n_jobs)
    hubs, cells, bounds = zip(*views, strict=True)
    starts = np.cumsum([0, *(len(part) for part in cells)])
    return _Layout(
        center,
        scales,
        _stacked(hubs).reshape(len(units), *hubs[0].shape),
        _stacked(cells),
        np.array([start + begins for start, begins in zip(starts, bounds, strict=False)]),
    )


def _view(
    rows: Floats, n_hubs: int, center: Floats, scale: Floats
) -> tuple[NDArray[np.float32], NDArray[np.float32], Ints]:
    """Return hubs and cells of one scaling, in groups, and where cells begin and the last one ends."""
    with np.errstate(over="ignore"):
        places = np.clip((rows - center) * scale, -_FARTHEST, _FARTHEST).astype(np.float32)
    hubs = in_groups(places[:n_hubs], np.float32)
    owners = np.empty((len(rows), 1), dtype=np.int64)
    nearest_hubs(rows, center, scale, hubs, owners)
    # At no finite distance from any hub is as good as at any.
    return hubs, *_in_cells(places, np.maximum(owners[:, 0], 0), n_hubs)


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


def _stacked(parts: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return groups one after another, aligned as they are."""
    stacked = aligned((sum(map(len, parts)), *parts[0].shape[1:]), np.float32)
    return np.concatenate(parts, out=stacked)


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
