"""The paper's two-dimensional densities, with their true level sets and p-values.

The paper prints the mixture of its table 1 with covariances [1, 0; 0, 9] and [9, 0; 0, 1]. `PRINTED` takes
them as they stand; `DEVIATIONS` takes the same numbers as standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Bools, Floats
from rankad.experiments.datasets import Split

# The anomalies of table 1 are uniform on this range in both columns.
UNIFORM_BOX = (-18.0, 18.0)

_DRAWS = 10**6
_SEED = 20_160
# The box of a grid reaches this many standard deviations beyond every mean.
_REACH = 5.0


@dataclass(frozen=True)
class Mixture:
    """A mixture of Gaussians with diagonal covariances: weights, means and variances of each component.

    Examples
    --------
    >>> disc = Mixture("disc", weights=(1.0,), means=((0.0, 0.0),), variances=((1.0, 1.0),))
    >>> disc.density([[0.0, 0.0]]).round(4)
    array([0.1592])
    >>> disc.p_values([[0.0, 0.0], [9.0, 9.0]])
    array([1., 0.])
    """

    name: str
    weights: tuple[float, ...]
    means: tuple[tuple[float, ...], ...]
    variances: tuple[tuple[float, ...], ...]

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n independent rows."""
        component = rng.choice(len(self.weights), size=n, p=self.weights)
        noise = rng.standard_normal((n, len(self.means[0])))
        return np.asarray(
            np.array(self.means)[component] + np.sqrt(np.array(self.variances))[component] * noise
        )

    def density(self, rows: ArrayLike) -> Floats:
        """Return the density at each row."""
        rows = np.asarray(rows, dtype=np.float64)
        total = np.zeros(len(rows))
        for weight, mean, variance in zip(self.weights, self.means, self.variances, strict=True):
            squares = ((rows - np.array(mean)) ** 2 / np.array(variance)).sum(axis=1)
            total += weight / np.sqrt(np.prod(2 * np.pi * np.array(variance))) * np.exp(-squares / 2)
        return total

    def p_values(self, rows: ArrayLike) -> Floats:
        """Return the true p-value of each row: the probability of a density no greater than there.

        From 10^6 draws of a fixed seed, hence to about 0.0005.
        """
        drawn = _sorted_densities(self)
        return np.asarray(np.searchsorted(drawn, self.density(rows), side="right") / drawn.size)

    def level(self, alpha: float) -> float:
        """Return the density below which a row lies with probability alpha.

        The rows at or above it are the minimum volume set of mass 1 - alpha. From the draws of `p_values`.
        """
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha={alpha} must lie strictly between 0 and 1; choose for example 0.05")
        return float(np.quantile(_sorted_densities(self), alpha))


@lru_cache(maxsize=8)
def _sorted_densities(mixture: Mixture) -> Floats:
    """Return the densities at many draws from the mixture itself, ascending."""
    return np.sort(mixture.density(mixture.sample(_DRAWS, np.random.default_rng(_SEED))))


_TABLE_1: Any = {"weights": (0.2, 0.8), "means": ((5.0, 0.0), (-5.0, 0.0))}
PRINTED = Mixture("variances 1 and 9, as printed", variances=((1.0, 9.0), (9.0, 1.0)), **_TABLE_1)
DEVIATIONS = Mixture("standard deviations 1 and 9", variances=((1.0, 81.0), (81.0, 1.0)), **_TABLE_1)
TOY = Mixture("toy example of figure 1", (0.5, 0.5), ((4.0, 1.0), (4.0, -1.0)), ((0.5, 0.5), (0.5, 0.5)))


def mixture_split(mixture: Mixture, seed: int, n_train: int, n_nominal: int, n_anomalous: int) -> Split:
    """Draw rows of a mixture to train on, and nominal and uniform ones to test on."""
    rng = np.random.default_rng(seed)
    train, nominal = mixture.sample(n_train, rng), mixture.sample(n_nominal, rng)
    anomalous = rng.uniform(*UNIFORM_BOX, size=(n_anomalous, train.shape[1]))
    return Split(train, np.vstack([nominal, anomalous]), np.repeat([True, False], [n_nominal, n_anomalous]))


class Grid(NamedTuple):
    """The centres of equal cells that tile a box.

    The rows are all centres, x fastest: values at the rows, reshaped to (n, n), are indexed by y, then x, as
    matplotlib's ``contour(x, y, values)`` expects them.
    """

    x: Floats
    y: Floats
    rows: Floats
    cell_area: float


def grid(mixture: Mixture, n: int = 400) -> Grid:
    """Tile the box that reaches five standard deviations beyond every mean with n by n cells."""
    means, reach = np.array(mixture.means), _REACH * np.sqrt(np.array(mixture.variances))
    low, high = (means - reach).min(axis=0), (means + reach).max(axis=0)
    step = (high - low) / n
    x, y = low[:, None] + step[:, None] * (np.arange(n) + 0.5)
    rows = np.column_stack([np.tile(x, n), np.repeat(y, n)])
    return Grid(x, y, rows, float(np.prod(step)))


def symmetric_difference(true_inside: Bools, found_inside: Bools) -> float:
    """Return the volume on which two sets of grid cells differ, relative to the volume of the true one.

    Examples
    --------
    >>> symmetric_difference(np.array([True, True, False, False]), np.array([True, False, True, False]))
    1.0
    """
    true_inside, found_inside = np.asarray(true_inside, dtype=bool), np.asarray(found_inside, dtype=bool)
    if true_inside.shape != found_inside.shape:
        raise ValueError(
            f"found_inside has the shape {found_inside.shape}, true_inside has {true_inside.shape}; evaluate "
            "both sets on the same grid"
        )
    if not true_inside.any():
        raise ValueError("true_inside has no cell, so nothing can be relative to it; refine the grid")
    return float((true_inside != found_inside).sum() / true_inside.sum())
