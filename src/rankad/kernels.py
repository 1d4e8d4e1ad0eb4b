"""The RBF kernel, its landmarks, and the features that stand for them.

The kernel is the paper's, ``k(x, x') = exp(-|x - x'|^2 / sigma^2)`` (Remark 2; there is no factor two).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dpstrf

from rankad._arrays import Floats, Ints
from rankad._wide import WIDE, Placed, squared_distances

__all__ = ["KernelFeatures", "KernelMap", "choose_landmarks", "rbf_kernel"]

# The landmarks' kernel matrix, whose diagonal is one, is factorized until no more than this is left of it.
TOLERANCE = 1e-8
# A kernel value below exp(-46), about 1e-20, counts as zero: sums cannot see it, but arithmetic on numbers so
# small, and on their products, is many times slower.
NEGLIGIBLE = 46.0


def choose_landmarks(rows: Floats, n_landmarks: int, method: str = "kmeans", *, seed: int) -> Floats:
    """Choose the landmarks of the kernel expansion.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    n_landmarks : int
        How many; where there are no more distinct rows than that, those are the landmarks.
    method : {"kmeans", "random"}
        Centres of k-means, or rows drawn at random.
    seed : int
        For the drawing and for the start of k-means.

    Returns
    -------
    ndarray of shape (s, d), with ``s <= n_landmarks``
    """
    if n_landmarks < 1:
        raise ValueError(f"n_landmarks must be >= 1, got {n_landmarks!r}.")
    if method not in ("kmeans", "random"):
        raise ValueError(f"method must be 'kmeans' or 'random', got {method!r}.")
    # Sorting all rows takes long. Mostly a few tell that there are more distinct ones than landmarks.
    if method == "random" or len(np.unique(rows[: 2 * n_landmarks], axis=0)) <= n_landmarks:
        distinct = np.unique(rows, axis=0)
        if len(distinct) <= n_landmarks:
            return distinct
        if method == "random":
            chosen = np.random.default_rng(seed).choice(len(distinct), n_landmarks, replace=False)
            return distinct[np.sort(chosen)]
    # Imported when it is needed: scoring does without, and should not wait for it.
    from sklearn.cluster import KMeans

    start = rows[_spread_out(rows, np.random.default_rng(seed).random(n_landmarks))]
    clusters = KMeans(n_landmarks, init=start, n_init=1, max_iter=5, tol=1e-3).fit(rows)
    return np.ascontiguousarray(clusters.cluster_centers_, dtype=np.float64)


def _spread_out(rows: Floats, draws: Floats) -> Ints:
    """Choose one row per draw from [0, 1): k-means++ with one trial a centre.

    Each is drawn with probability proportional to the squared distance to those before it. Where all of these
    are zero, the first row is drawn again.
    """
    n = len(rows)
    chosen, nearest = np.zeros(len(draws), dtype=np.int64), np.full(n, np.inf)
    chosen[0] = min(n - 1, int(draws[0] * n))
    placed, everyone = Placed.of(rows) if rows.shape[1] > WIDE else None, np.arange(n)
    for step, draw in enumerate(draws):
        if step:
            chosen[step] = _draw(nearest, draw)
        nearer = everyone if placed is None else placed[0].within(chosen[step], nearest)
        _come_nearer(rows, nearer, chosen[step], nearest)
    return chosen


@numba.njit(cache=True, nogil=True)
def _draw(weights, draw):  # type: ignore[no-untyped-def]
    """Choose a number with probability proportional to its weight; the first where there is no weight."""
    chosen, left = 0, draw * weights.sum()
    for row in range(weights.shape[0]):
        if weights[row] > 0.0:
            chosen = row
            left -= weights[row]
            if left < 0.0:
                break
    return chosen


@numba.njit(cache=True, nogil=True)
def _come_nearer(rows, which, center, nearest):  # type: ignore[no-untyped-def]
    """Lower the squared distances of some rows to what is nearest where the centre is nearer."""
    for row in which:
        squared = 0.0
        for column in range(rows.shape[1]):
            gap = rows[row, column] - rows[center, column]
            squared += gap * gap
        nearest[row] = min(nearest[row], squared)


def rbf_kernel(rows: Floats, landmarks: Floats, sigma: float) -> Floats:
    """Return ``exp(-|x - z|^2 / sigma^2)`` for every row and landmark, of shape (n, s).

    Examples
    --------
    >>> rbf_kernel(np.array([[0.0], [2.0]]), np.array([[0.0]]), 2.0)
    array([[1.        ],
           [0.36787944]])
    """
    return _exponentiate(squared_distances(rows, landmarks), sigma)


def _exponentiate(squared: Floats, sigma: float) -> Floats:
    if not (math.isfinite(sigma) and sigma > 0):
        raise ValueError(f"sigma must be finite and > 0, got {sigma!r}.")
    with np.errstate(over="ignore"):
        exponents = -(squared / sigma) / sigma
    kernel = np.exp(exponents)
    kernel[exponents < -NEGLIGIBLE] = 0.0
    return np.asarray(kernel)


class KernelFeatures(NamedTuple):
    """Features whose inner products are the kernel's, seen through the landmarks.

    Attributes
    ----------
    rows : ndarray of shape (n, r)
        ``Z = K_nr L^-T``, so that ``Z Z' = K_nr K_rr^-1 K_rn``; equal to K where every row is a landmark.
    factor : ndarray of shape (r, r)
        ``L``, lower triangular, with ``L L' = K_rr``.
    chosen : ndarray of int, shape (r,)
        The landmarks needed: the others are combinations of them, to `TOLERANCE`. At wide bandwidths these
        are few.
    n_landmarks : int
    """

    rows: Floats
    factor: Floats
    chosen: Ints
    n_landmarks: int

    def coefficients(self, weights: Floats) -> Floats:
        """Turn weights of the features into coefficients ``a`` of the landmarks, zero where not needed."""
        out = np.zeros(self.n_landmarks)
        out[self.chosen] = linalg.solve_triangular(
            self.factor, weights, lower=True, trans=1, check_finite=False
        )
        return out


class KernelMap:
    """Rows and landmarks, ready for any bandwidth: distances are computed once.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    landmarks : ndarray of shape (s, d)
    """

    def __init__(self, rows: Floats, landmarks: Floats) -> None:
        self.landmarks = landmarks
        self._between = squared_distances(rows, landmarks)
        self._among = squared_distances(landmarks, landmarks)

    def features(self, sigma: float) -> KernelFeatures:
        """Return the features of the rows at bandwidth `sigma`."""
        among = _exponentiate(self._among, sigma)
        found, pivots, rank, _ = dpstrf(among, tol=TOLERANCE, lower=1)
        factor = np.tril(found[:rank, :rank])
        chosen = pivots[:rank].astype(np.int64) - 1
        between = _exponentiate(self._between[:, chosen], sigma)
        rows = linalg.solve_triangular(factor, between.T, lower=True, check_finite=False).T
        return KernelFeatures(np.ascontiguousarray(rows), factor, chosen, len(among))
