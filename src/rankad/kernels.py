"""The RBF kernel, its landmarks, the features that stand for them, and the scorer they make.

The kernel is the paper's, ``k(x, x') = exp(-|x - x'|^2 / sigma^2)`` (Remark 2; there is no factor two). A
scorer is ``g(x) = sum_l a_l k(x, z_l)`` over landmarks ``z_l``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dpstrf
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from rankad._arrays import Floats, Ints, in_blocks

__all__ = ["KernelFeatures", "KernelMap", "KernelScorer", "choose_landmarks", "rbf_kernel"]

# The landmarks' kernel matrix, whose diagonal is one, is factorized until no more than this is left of it.
TOLERANCE = 1e-8
# Beyond this many bandwidths from every landmark the kernel is below 2e-7: the far field.
FAR_REACH = 4.0
# A kernel value below exp(-46), about 1e-20, counts as zero: sums cannot see it, but arithmetic on numbers so
# small, and on their products, is many times slower.
NEGLIGIBLE = 46.0
_BLOCK = 4_096


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
    distinct = np.unique(rows, axis=0)
    if len(distinct) <= n_landmarks:
        return distinct
    if method == "random":
        chosen = np.random.default_rng(seed).choice(len(distinct), n_landmarks, replace=False)
        return distinct[np.sort(chosen)]
    clusters = KMeans(n_landmarks, n_init=1, max_iter=20, tol=1e-3, random_state=seed).fit(rows)
    return np.ascontiguousarray(clusters.cluster_centers_, dtype=np.float64)


def rbf_kernel(rows: Floats, landmarks: Floats, sigma: float) -> Floats:
    """Return ``exp(-|x - z|^2 / sigma^2)`` for every row and landmark, of shape (n, s).

    Examples
    --------
    >>> rbf_kernel(np.array([[0.0], [2.0]]), np.array([[0.0]]), 2.0)
    array([[1.        ],
           [0.36787944]])
    """
    return _exponentiate(cdist(rows, landmarks, "sqeuclidean"), sigma)


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
        self._between = cdist(rows, landmarks, "sqeuclidean")
        self._among = cdist(landmarks, landmarks, "sqeuclidean")

    def features(self, sigma: float) -> KernelFeatures:
        """Return the features of the rows at bandwidth `sigma`."""
        among = _exponentiate(self._among, sigma)
        found, pivots, rank, _ = dpstrf(among, tol=TOLERANCE, lower=1)
        factor = np.tril(found[:rank, :rank])
        chosen = pivots[:rank].astype(np.int64) - 1
        between = _exponentiate(self._between[:, chosen], sigma)
        rows = linalg.solve_triangular(factor, between.T, lower=True, check_finite=False).T
        return KernelFeatures(np.ascontiguousarray(rows), factor, chosen, len(among))


@dataclass(frozen=True)
class KernelScorer:
    """``g(x) = sum_l a_l exp(-|(x - z_l) / width|^2)``, continued downward in the far field.

    Attributes
    ----------
    landmarks : ndarray of shape (s, d)
    coefficients : ndarray of shape (s,)
    widths : ndarray of shape (d,)
        The bandwidth along each column.
    far_field : bool
        Whether the score goes on falling where g has died away. Beyond `FAR_REACH` bandwidths of every
        landmark g is zero to six digits and cannot tell far from farther; there the distance to the nearest
        landmark is subtracted, in bandwidths beyond that reach.
    """

    landmarks: Floats
    coefficients: Floats
    widths: Floats
    far_field: bool = True

    def score(self, rows: Floats, *, far_widths: Floats | None = None, n_jobs: int | None = None) -> Floats:
        """Return the scores of rows; each row's depends on that row alone, to the last bit.

        Parameters
        ----------
        rows : ndarray of shape (n, d)
        far_widths : ndarray of shape (d,), optional
            The unit of far-field distances, where it is not the scorer's own `widths`.
        n_jobs : int, optional
            Threads; it changes the time taken and nothing else.
        """
        columns = np.ascontiguousarray(self.landmarks.T)
        own = 1.0 / self.widths
        far = own if far_widths is None else 1.0 / far_widths

        def block(begin: int, end: int) -> Floats:
            part = np.ascontiguousarray(rows[begin:end], dtype=np.float64)
            g, nearest = _kernel_sums(part, columns, own, self.coefficients)
            if not self.far_field:
                return np.asarray(g)
            if far_widths is not None:
                nearest = _kernel_sums(part, columns, far, self.coefficients)[1]
            return np.asarray(g - np.maximum(0.0, nearest - FAR_REACH))

        return np.concatenate(in_blocks(block, len(rows), _BLOCK, n_jobs))


@numba.njit(cache=True, nogil=True)
def _kernel_sums(rows, columns, inverse_widths, coefficients):  # type: ignore[no-untyped-def]
    """Return g and the distance to the nearest landmark, in bandwidths, for every row."""
    n, d = rows.shape
    s = columns.shape[1]
    g = np.empty(n)
    nearest = np.empty(n)
    squared = np.empty(s)
    for row in range(n):
        squared[:] = 0.0
        for column in range(d):
            value = rows[row, column]
            inverse = inverse_widths[column]
            for landmark in range(s):
                gap = (columns[column, landmark] - value) * inverse
                squared[landmark] += gap * gap
        total = 0.0
        least = np.inf
        for landmark in range(s):
            if squared[landmark] < least:
                least = squared[landmark]
            if squared[landmark] <= NEGLIGIBLE:
                total += coefficients[landmark] * math.exp(-squared[landmark])
        g[row] = total
        nearest[row] = math.sqrt(least)
    return g, nearest
