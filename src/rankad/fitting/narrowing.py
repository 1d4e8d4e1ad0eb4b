"""Rows of very many columns as rows of few, at the same distances: enough to select by.

n rows span n - 1 directions. In these, and in how far a row is from all of them, every distance between a row
and those that they span is what it was. Columns are taken some at a time, so that no further copy of the rows
is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Floats
from rankad.stages.scaling import Scaling

_COLUMNS = 4_096
# Directions in which rows differ by no more than this share of the most are rounding.
_ROUNDING = 1e-12


class Narrowed(NamedTuple):
    """Scaled rows in few columns: the directions that they span, and last the distance from these, zero.

    `center` is the mean of the scaled rows. Products with the centred rows, times `weights`, are coordinates.
    """

    rows: Floats
    scaling: Scaling
    center: Floats
    weights: Floats

    def placed(self, rows: Floats, columns: slice) -> Floats:
        """Return some columns of rows, scaled and less the center."""
        some = Scaling(self.scaling.center[columns], self.scaling.scale[columns])
        return some.apply(rows) - self.center[columns]


def narrowed(rows: Floats, scaling: Scaling) -> Narrowed:
    """Return rows in few columns, at the distances that they have once they are scaled."""
    n, d = rows.shape
    view = Narrowed(rows, scaling, np.zeros(d), np.zeros((n, 0)))
    products = np.zeros((n, n))
    for columns in _parts(d):
        scaled = view.placed(rows[:, columns], columns)
        view.center[columns] = scaled.mean(axis=0)
        scaled -= view.center[columns]
        products += scaled @ scaled.T
    squares, directions = np.linalg.eigh(products)
    kept = squares > _ROUNDING * squares[-1]
    lengths, directions = np.sqrt(squares[kept]), directions[:, kept]
    return view._replace(
        rows=np.column_stack([directions * lengths, np.zeros(n)]), weights=directions / lengths
    )


def narrow_others(
    views: Sequence[Narrowed], rows: Floats, draw: Callable[[slice], Floats], n: int
) -> list[Floats]:
    """Return n other rows in the few columns of each of several views of the same rows.

    ``draw(columns)`` returns a range of columns of the other rows.
    """
    products = [np.zeros((n, len(rows))) for _ in views]
    squares = [np.zeros(n) for _ in views]
    for columns in _parts(rows.shape[1]):
        others = draw(columns)
        for at, view in enumerate(views):
            there = view.placed(others, columns)
            products[at] += there @ view.placed(rows[:, columns], columns).T
            squares[at] += np.einsum("ij,ij->i", there, there)
    placed = []
    for view, product, squared in zip(views, products, squares, strict=True):
        along = product @ view.weights
        beside = np.sqrt(np.maximum(0.0, squared - np.einsum("ij,ij->i", along, along)))
        placed.append(np.column_stack([along, beside]))
    return placed


def shuffled_cells(rows: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw n rows whose columns come, each independently, from the rows."""
    return np.take_along_axis(rows, rng.integers(len(rows), size=(n, rows.shape[1])), axis=0)


def _parts(d: int) -> Iterator[slice]:
    return (slice(begin, min(begin + _COLUMNS, d)) for begin in range(0, d, _COLUMNS))
