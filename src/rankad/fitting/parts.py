"""The parts of a score beside RankSVM's, and what they say of rows that they were made without.

Like RankSVM's, the left-out scores of a part are those of the same part made anew, units included, from the
rows outside a fold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Bools, Floats, Ints
from rankad.scorers.mixture import GaussianMixture, fit_mixture, n_gaussians
from rankad.scorers.nearfield import NearField
from rankad.stages.kernels import choose_landmarks
from rankad.stages.neighbors import nearest_neighbors
from rankad.stages.scaling import fit_scaling, notable_change

__all__ = ["ALIKE_UNITS", "MixturePlan", "near_left_out", "near_unit", "within_range"]

# Units whose logarithms differ by no more than this measure equally far.
ALIKE_UNITS = 0.2
# A mixture takes about as many multiplications a step at most.
_MOST_WORK = 5e8
# The median over rows is taken of a strided subset of about so many.
_MEDIAN_ROWS = 1_000
# With fewer rows for every column than these there is none.
_ROWS_A_COLUMN = 4


def near_unit(rows: Floats, n_all: int | None = None) -> Floats:
    """Return the unit of each column by which nominal rows are near, of shape (d,).

    The geometric mean of standard deviation and range: columns vary alike by the one, and those with long
    tails or rare values have less say by the other. For a constant column, as if one of the rows had
    differed.
    """
    low, high = rows.min(axis=0), rows.max(axis=0)
    ranges = np.where(high > low, high - low, notable_change(low))
    return np.sqrt(fit_scaling(rows, "standard", n_all).scale * ranges)


def near_left_out(rows: Floats, held: Ints, unit: Floats) -> Floats:
    """Return how near each of the held rows is to the others.

    In the unit of the others: a row must not stretch the unit it is measured in. But where that is far from
    `unit`, that of all rows, because an outlier is held too, the latter is right for rows within the range of
    the others.
    """
    others, here = np.delete(rows, held, axis=0), rows[held]
    own = near_unit(others, len(rows))
    scores = NearField.of(others, own).score(here)
    unlike = np.abs(np.log(own / unit)) > ALIKE_UNITS
    if unlike.any() and len(held) > 1:
        inside = within_range(here, others, unlike)
        if inside.any():
            scores[inside] = NearField.of(others, unit).score(here[inside])
    return scores


def within_range(rows: Floats, others: Floats, columns: Bools) -> Bools:
    """Tell which rows lie within the range of other rows, in some of the columns."""
    rows, others = rows[:, columns], others[:, columns]
    return np.asarray(((rows >= others.min(axis=0)) & (rows <= others.max(axis=0))).all(axis=1))


class MixturePlan(NamedTuple):
    """How a mixture is made, whichever the rows: no Gaussians for none; all folds draw by the same seed."""

    n_gaussians: int
    seed: int

    @classmethod
    def of(cls, most: int, rows: Floats, seed: int) -> MixturePlan:
        """Plan a mixture of `most` Gaussians, or fewer: for rows that are few, or columns that are many.

        None with fewer than four rows for every column: too few to estimate a covariance.
        """
        n, d = rows.shape
        affordable = int(_MOST_WORK / (max(n, d) * d**2))
        if most == 0 or n < _ROWS_A_COLUMN * d or affordable == 0:
            return cls(0, seed)
        return cls(min(n_gaussians(most, n), affordable), seed)

    def fit(self, rows: Floats, names: Ints, n_all: int | None = None) -> GaussianMixture:
        """Fit the mixture in units of the rows, with a median score of zero on them.

        How large densities are depends on how well the Gaussians happen to fit; only relative to the median
        row do mixtures of nearly the same rows agree. What is drawn for a row goes by its name; `n_all`
        counts the rows left out too.
        """
        scaling = fit_scaling(rows, "standard", n_all)
        scaled = scaling.apply(rows)
        centers = choose_landmarks(scaled, self.n_gaussians, "kmeans", seed=self.seed, names=names)
        owners = nearest_neighbors(centers, 1, scaled).indices[:, 0]
        mixture = fit_mixture(scaled, owners).in_units(*scaling)
        return mixture.relative_to(rows[:: -(-len(rows) // _MEDIAN_ROWS)])
