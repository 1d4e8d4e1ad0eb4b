"""The law from which points are drawn to find a volume."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from rankad._base.arrays import Floats

# Centres of the local part.
_MOST_CENTRES = 200
# Shares of the local part, of the wide part, and degrees of freedom of the wide one.
_LOCAL, _FREEDOM = 0.5, 5.0
# Added to variances of 1, so that columns which depend on one another entirely have a covariance.
_FLOOR = 1e-10


@dataclass(frozen=True)
class Proposal:
    """Half a Student law as wide as the rows, half a narrower one around each of many centres.

    The wide part covers sets that fill an ellipsoid, also where few rows are: near the boundary. The local
    part covers sets of several pieces, and thin ones.

    Columns are computed with as if they had mean 0 and standard deviation 1, whatever their units: seconds
    since 1970 would leave no digits for squared distances, and a column of small numbers would look constant.

    Attributes
    ----------
    mean, scale : ndarray of shape (d,)
        Of the columns.
    wide, local : ndarray of shape (d, d)
        Lower factors of the covariances, of columns without unit.
    centres : ndarray of shape (k, d)
        Without unit.
    """

    mean: Floats
    scale: Floats
    wide: Floats
    local: Floats
    centres: Floats

    @classmethod
    def around(cls, rows: Floats) -> Proposal:
        """Return the law around rows, at least two of them."""
        n, d = rows.shape
        mean = rows.mean(axis=0)
        # The squares of huge or tiny numbers are no numbers: first in units of the largest.
        largest = np.abs(rows - mean).max(axis=0)
        largest[np.ptp(rows, axis=0) == 0] = 1.0
        spread = ((rows - mean) / largest).std(axis=0)
        spread[spread == 0] = 1.0
        scale = largest * spread
        plain = (rows - mean) / scale
        covariance = np.atleast_2d(np.cov(plain, rowvar=False))
        factor = np.asarray(np.linalg.cholesky(covariance + _FLOOR * np.eye(d)), dtype=np.float64)
        # Evenly spread over a ball, a point is farther out than a row of a Gaussian: by this factor, about.
        wide = factor * math.sqrt(1 + 2 / d)
        centres = plain[:: math.ceil(n / _MOST_CENTRES)]
        # Silverman's rule for as many centres as there are.
        width = 1.5 * (4 / (d + 2) / len(centres)) ** (1 / (d + 4))
        return cls(mean, scale, wide, factor * min(width, 1.0), centres)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n points."""
        d = self.mean.size
        local = rng.random(n) < _LOCAL
        radius = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, size=(n, 1)))
        noise = rng.normal(size=(n, d)) * radius
        places = self.centres[rng.integers(0, len(self.centres), n)]
        plain = np.where(local[:, None], places + noise @ self.local.T, noise @ self.wide.T)
        points: Floats = self.mean + self.scale * plain
        return points

    def log_density(self, points: Floats) -> Floats:
        """Return the logarithm of the density at points."""
        out = np.empty(len(points))
        origin, unit = np.zeros((1, self.mean.size)), float(np.log(self.scale).sum())
        for start in range(0, len(points), 4_000):
            part = (points[start : start + 4_000] - self.mean) / self.scale
            wide = _log_student(_squares(part, origin, self.wide), self.wide)[:, 0]
            local = _log_student(_squares(part, self.centres, self.local), self.local)
            near = logsumexp(local, axis=1) - math.log(len(self.centres))
            out[start : start + 4_000] = np.logaddexp(math.log(1 - _LOCAL) + wide, math.log(_LOCAL) + near)
        return out - unit


def _squares(points: Floats, centres: Floats, factor: Floats) -> Floats:
    """Return squared Mahalanobis distances of points to centres."""
    inverse = np.linalg.inv(factor)
    first, second = points @ inverse.T, centres @ inverse.T
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T
    return np.asarray(np.maximum(squares, 0.0))


def _log_student(squares: Floats, factor: Floats) -> Floats:
    d = len(factor)
    constant = float(
        gammaln((_FREEDOM + d) / 2)
        - gammaln(_FREEDOM / 2)
        - d / 2 * math.log(_FREEDOM * math.pi)
        - np.log(np.abs(np.diag(factor))).sum()
    )
    return np.asarray(constant - (_FREEDOM + d) / 2 * np.log1p(squares / _FREEDOM))
