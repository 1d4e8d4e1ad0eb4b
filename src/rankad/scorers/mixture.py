"""How likely a row is, by the shape of nominal rows about it: a mixture of Gaussians.

Distances treat all directions alike. Where columns go together, a row may be near to others and yet break
what all of them obey; the covariance of the rows about it tells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from rankad._base.arrays import Floats, Ints
from rankad._base.threads import cached_property
from rankad.stages.kernels import choose_landmarks
from rankad.stages.neighbors import nearest_neighbors
from rankad.stages.scaling import Scaling, fit_scaling

# Steps of expectation and maximization after the first covariances. Few, so that every fold can take them.
_STEPS = 3
# Added to every variance, in units of the standardized columns.
_LEAST_VARIANCE = 1e-4
# A Gaussian of fewer rows than this is dropped; smaller shares in a row change no covariance.
_FEWEST, _LEAST_SHARE = 1e-6, 1e-12
# About each Gaussian are at least so many rows, on average.
_ROWS_EACH = 20
# With fewer rows for every column than these there is no mixture.
_ROWS_A_COLUMN = 4
# A mixture takes about as many multiplications a step at most.
_MOST_WORK = 5e8
# The median over rows is taken of a strided subset of about so many.
_MEDIAN_ROWS = 1_000
# So many numbers are worked on at a time.
_AT_ONCE = 2**21


@dataclass(frozen=True)
class GaussianMixture:
    """The logarithm of ``sum_k exp(c_k - |F_k (x - m_k)|^2 / 2)``: of a density, or of a multiple of one."""

    means: Floats  # of shape (K, d)
    factors: Floats  # of shape (K, d, d), lower triangular; F' F is the inverse of a covariance
    constants: Floats

    def score(self, rows: Floats) -> Floats:
        """Return the logarithm of the density at rows; of each row, this depends on that row alone.

        A row that is not all finite numbers scores NaN, one too far away for any number minus infinity.
        """
        from rankad._loops.likelihood import log_likelihoods

        logs = np.empty(len(rows))
        with np.errstate(over="ignore"):
            log_likelihoods(rows, *self._layout, self.constants, logs)
        return logs

    @cached_property
    def _layout(self) -> _Layout:
        d = self.means.shape[1]
        # With a common offset gone, subtracting after the product costs no digits.
        center = self.means.mean(axis=0)
        places = np.einsum("kij,kj->ki", self.factors, self.means - center)
        below = np.tril_indices(d)
        packed = np.empty((len(self.means), d * (d + 3) // 2))
        # Of each row of a triangle, first what is subtracted, then the triangle.
        begins = np.arange(d) * (np.arange(d) + 3) // 2
        packed[:, begins] = -places
        packed[:, np.delete(np.arange(packed.shape[1]), begins)] = self.factors[:, below[0], below[1]]
        return _Layout(center, packed.ravel())

    def in_units(self, center: Floats, scale: Floats) -> GaussianMixture:
        """Return the mixture of rows ``center + scale * x``, where this one is of rows x."""
        return GaussianMixture(
            center + scale * self.means, self.factors / scale, self.constants - np.log(scale).sum()
        )

    def relative_to(self, rows: Floats) -> GaussianMixture:
        """Return the mixture with its scores shifted so that the median over some rows is zero."""
        return replace(self, constants=self.constants - np.median(self.score(rows)))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class _Layout(NamedTuple):
    """A mixture as `log_likelihoods` reads it."""

    center: Floats
    factors: Floats


def fit_mixture(rows: Floats, owners: Ints) -> GaussianMixture:
    """Fit a mixture of Gaussians to rows in cells: three steps of expectation and maximization.

    Every covariance borrows d rows from the one that all Gaussians have in common,
    ``(S_k + d S / n) / (n_k + d)`` for the sums of squares S_k of its own n_k rows and S of all n, so that
    one of few rows has a shape. To each variance 0.0001 is added. A column that does not vary has the
    variance one: its unit says how far is far there.

    Rows are on standardized columns; `owners` are their cells, counted from zero.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(500, 2)) @ [[1.0, 0.9], [0.0, 0.3]]
    >>> mixture = fit_mixture(rows, np.zeros(500, dtype=np.int64))
    >>> along, across = mixture.score(np.array([[1.0, 1.0], [1.0, -1.0]]))
    >>> bool(along > across + 3)
    True
    """
    shares = np.zeros((len(rows), int(owners.max()) + 1))
    shares[np.arange(len(rows)), owners] = 1.0
    # Standardized columns vary by more than one deviation, or not at all.
    still = np.flatnonzero(np.ptp(rows, axis=0) < 1)
    mixture = _maximize(rows, shares, still)
    for _ in range(_STEPS):
        terms = _terms(rows, mixture)
        terms -= terms.max(axis=1, keepdims=True)
        np.exp(terms, out=terms)
        mixture = _maximize(rows, terms / terms.sum(axis=1, keepdims=True), still)
    return mixture


def _maximize(rows: Floats, shares: Floats, still: Ints) -> GaussianMixture:
    """Return the Gaussians that rows make, of which each has these shares in them.

    Columns that are `still` do not vary.
    """
    n, d = rows.shape
    shares = shares[:, shares.sum(axis=0) > _FEWEST]
    sizes = shares.sum(axis=0)
    means = shares.T @ rows / sizes[:, None]
    squares = np.empty((len(sizes), d, d))
    for k, share in enumerate(shares.T):
        own = np.flatnonzero(share > _LEAST_SHARE)
        weighted = rows[own] * np.sqrt(share[own])[:, None]
        np.matmul(weighted.T, weighted, out=squares[k])
    squares -= sizes[:, None, None] * means[:, :, None] * means[:, None, :]
    common = d * squares.sum(axis=0) / n
    covariances = (squares + common) / (sizes + d)[:, None, None]
    covariances[:, np.arange(d), np.arange(d)] += _LEAST_VARIANCE
    covariances[:, still, still] = 1.0
    roots = np.linalg.cholesky(covariances)
    # In Fortran's order, a lower triangle is an upper one.
    factors = np.stack([np.asarray(dtrtri(root.T, lower=0)[0]).T for root in roots])
    diagonals = np.diagonal(factors, axis1=1, axis2=2)
    constants = np.log(sizes / n) + np.log(diagonals).sum(axis=1) - d / 2 * math.log(2 * math.pi)
    return GaussianMixture(means, factors, constants)


def _terms(rows: Floats, mixture: GaussianMixture) -> Floats:
    """Return what each Gaussian says of each row, of shape (n, K)."""
    n_all, d = mixture.means.shape
    side_by_side = mixture.factors.transpose(2, 0, 1).reshape(d, -1)
    places = np.einsum("kij,kj->ki", mixture.factors, mixture.means).ravel()
    terms = np.empty((len(rows), n_all))
    step = max(1, _AT_ONCE // (n_all * d))
    for begin in range(0, len(rows), step):
        gaps = rows[begin : begin + step] @ side_by_side
        gaps -= places
        gaps *= gaps
        terms[begin : begin + step] = mixture.constants - gaps.reshape(-1, n_all, d).sum(axis=2) / 2
    return terms


class MixturePlan(NamedTuple):
    """How a mixture is made, whichever the rows: no Gaussians for none; all folds draw by the same seed."""

    n_gaussians: int
    seed: int

    @classmethod
    def of(cls, most: int, rows: Floats, seed: int) -> MixturePlan:
        """Plan a mixture of `most` Gaussians, or fewer: one for every 20 rows, and what many columns allow.

        None with fewer than four rows for every column: too few to estimate a covariance.
        """
        n, d = rows.shape
        affordable = int(_MOST_WORK / (max(n, d) * d**2))
        if most == 0 or n < _ROWS_A_COLUMN * d or affordable == 0:
            return cls(0, seed)
        return cls(min(most, max(1, n // _ROWS_EACH), affordable), seed)

    def fit(self, rows: Floats, names: Ints, scaling: Scaling | None = None) -> GaussianMixture:
        """Fit the mixture in units of the rows, with a median score of zero on them.

        How large densities are depends on how well the Gaussians happen to fit; only relative to the median
        row do mixtures of nearly the same rows agree. What is drawn for a row goes by its name.
        """
        scaling = scaling or fit_scaling(rows, "standard")
        scaled = scaling.apply(rows)
        centers = choose_landmarks(scaled, self.n_gaussians, "kmeans", seed=self.seed, names=names)
        owners = nearest_neighbors(centers, 1, scaled).indices[:, 0]
        mixture = fit_mixture(scaled, owners).in_units(*scaling)
        return mixture.relative_to(rows[:: -(-len(rows) // _MEDIAN_ROWS)])
