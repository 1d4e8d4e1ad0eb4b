"""The RBF kernel, its landmarks, and the features that stand for them.

The kernel is the paper's, ``k(x, x') = exp(-|x - x'|^2 / sigma^2)`` (Remark 2; there is no factor two).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
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
# Triangular systems are solved for so many unknowns at a time.
_BLOCK = 64


def choose_landmarks(
    rows: Floats, n_landmarks: int, method: str = "kmeans", *, seed: int, names: Ints | None = None
) -> Floats:
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
    names : ndarray of int, shape (n,), optional
        Which of more rows these are; 0, 1 and so on by default. What is drawn for a row goes by its name, so
        that nearly the same rows have nearly the same landmarks.

    Returns
    -------
    ndarray of shape (s, d), with ``s <= n_landmarks``
    """
    if n_landmarks < 1:
        raise ValueError(f"n_landmarks must be >= 1, got {n_landmarks!r}.")
    if method not in ("kmeans", "random"):
        raise ValueError(f"method must be 'kmeans' or 'random', got {method!r}.")
    named = np.arange(len(rows)) if names is None else np.asarray(names)
    if named.shape != (len(rows),) or named.dtype.kind not in "iu":
        raise ValueError(
            f"names must be {len(rows)} integers, one for each row, got shape {named.shape} of {named.dtype}."
        )
    # Sorting all rows takes long. Mostly a few tell that there are more distinct ones than landmarks.
    if method == "random" or len(np.unique(rows[: 2 * n_landmarks], axis=0)) <= n_landmarks:
        distinct, first = np.unique(rows, axis=0, return_index=True)
        if len(distinct) <= n_landmarks:
            return distinct
        if method == "random":
            lots = _lots(_keys(seed, 1)[0], named[first])
            return distinct[np.sort(np.argpartition(lots, n_landmarks)[:n_landmarks])]
    # Imported when it is needed: scoring does without, and should not wait for it.
    from sklearn.cluster import KMeans

    start = rows[_spread_out(rows, named, _keys(seed, n_landmarks))]
    clusters = KMeans(n_landmarks, init=start, n_init=1, max_iter=5, tol=1e-3).fit(rows)
    return np.ascontiguousarray(clusters.cluster_centers_, dtype=np.float64)


def _keys(seed: int, many: int) -> NDArray[np.uint64]:
    """Return the keys of as many drawings of lots."""
    return np.random.default_rng(seed).integers(2**64, size=many, dtype=np.uint64)


@numba.njit(cache=True, nogil=True)
def _lot(key, name):  # type: ignore[no-untyped-def]
    """Draw from (0, 1) what belongs to a name: by SplitMix64 from the key on, its number ``name``."""
    bits = key + np.uint64(name + 1) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = bits ^ (bits >> np.uint64(31))
    return (np.float64(bits >> np.uint64(12)) + 0.5) * 2.0**-52


@numba.njit(cache=True, nogil=True)
def _lots(key, names):  # type: ignore[no-untyped-def]
    """Draw for all names."""
    lots = np.empty(names.shape[0])
    for i in range(names.shape[0]):
        lots[i] = _lot(key, names[i])
    return lots


def _spread_out(rows: Floats, names: Ints, keys: NDArray[np.uint64]) -> Ints:
    """Choose one row per key: k-means++ with one trial a centre.

    Each is drawn with probability proportional to the squared distance to those before it. A row that is not
    chosen may be taken away and changes nothing.
    """
    if rows.shape[1] <= WIDE:
        return np.asarray(_spread_columns(np.ascontiguousarray(rows.T), names, keys))
    nearest, everyone = np.full(len(rows), np.inf), np.arange(len(rows))
    chosen = np.empty(len(keys), dtype=np.int64)
    placed = Placed.of(rows)
    for step, key in enumerate(keys):
        chosen[step] = _draw_or_any(key, names, nearest, step == 0)
        nearer = everyone if placed is None else placed[0].within(chosen[step], nearest)
        _come_nearer(rows, nearer, chosen[step], nearest)
    return chosen


@numba.njit(cache=True, nogil=True)
def _draw(key, names, weights):  # type: ignore[no-untyped-def]
    """Choose a row with probability proportional to its weight; -1 where there is no weight.

    A race of exponential variates: row i arrives after ``-log(lot) / weight``, and the first one is chosen.
    """
    chosen, fastest, top = -1, 0.0, weights.max()
    for row in range(weights.shape[0]):
        weight = weights[row] / top if weights[row] > 0.0 else 0.0
        if weight > 0.0:
            lot = _lot(key, names[row])
            # -log(lot) is no less than 1 - lot: mostly that is enough to know.
            if weight > fastest * (1.0 - lot):
                speed = weight / -math.log(lot)
                if speed > fastest:
                    chosen, fastest = row, speed
    return chosen


@numba.njit(cache=True, nogil=True)
def _draw_or_any(key, names, weights, first):  # type: ignore[no-untyped-def]
    """Choose like `_draw`; each row alike for the first, and where all rows are at one place."""
    chosen = -1 if first else _draw(key, names, weights)
    return chosen if chosen >= 0 else _draw(key, names, np.ones_like(weights))


@numba.njit(cache=True, nogil=True)
def _come_nearer(rows, which, center, nearest):  # type: ignore[no-untyped-def]
    """Lower the squared distances of some rows to what is nearest where the centre is nearer."""
    for row in which:
        squared = 0.0
        for column in range(rows.shape[1]):
            gap = rows[row, column] - rows[center, column]
            squared += gap * gap
        nearest[row] = min(nearest[row], squared)


@numba.njit(cache=True, nogil=True)
def _spread_columns(columns, names, keys):  # type: ignore[no-untyped-def]
    """Do the work of `_spread_out` for few columns, one after another: rows in a line, for vector units."""
    n = columns.shape[1]
    chosen = np.empty(keys.shape[0], dtype=np.int64)
    nearest, squared = np.full(n, np.inf), np.empty(n)
    for step in range(keys.shape[0]):
        center = _draw_or_any(keys[step], names, nearest, step == 0)
        chosen[step] = center
        squared[:] = 0.0
        for column in range(columns.shape[0]):
            line = columns[column]
            for row in range(n):
                gap = line[row] - line[center]
                squared[row] += gap * gap
        for row in range(n):
            nearest[row] = min(nearest[row], squared[row])
    return chosen


def rbf_kernel(rows: Floats, landmarks: Floats, sigma: float) -> Floats:
    """Return ``exp(-|x - z|^2 / sigma^2)`` for every row and landmark, of shape (n, s).

    Examples
    --------
    >>> rbf_kernel(np.array([[0.0], [2.0]]), np.array([[0.0]]), 2.0)
    array([[1.        ],
           [0.36787944]])
    """
    squared = squared_distances(rows, landmarks)
    return np.ascontiguousarray(_exponentiate(squared, np.arange(squared.shape[1]), sigma))


def _exponentiate(squared: Floats, columns: Ints, sigma: float) -> Floats:
    """Return kernel values, of some columns of squared distances, column by column in memory."""
    if not (math.isfinite(sigma) and sigma > 0):
        raise ValueError(f"sigma must be finite and > 0, got {sigma!r}.")
    if 2 * len(columns) < squared.shape[1]:
        squared, columns = np.ascontiguousarray(squared[:, columns]), np.arange(len(columns))
    values = np.empty((len(squared), len(columns)), order="F")
    _exponents(squared, columns, float(sigma), values.T)
    return np.exp(values, out=values)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _exponents(squared, columns, sigma, out):  # type: ignore[no-untyped-def]
    """Fill in ``-q / sigma^2``, of columns in turn; minus infinity where the kernel is as good as zero."""
    n, s = squared.shape
    block = np.empty((_BLOCK, s))
    for begin in range(0, n, _BLOCK):
        several = min(_BLOCK, n - begin)
        for row in range(several):
            for column in range(s):
                value = squared[begin + row, column] / -sigma / sigma
                block[row, column] = -np.inf if value < -NEGLIGIBLE else value
        for at in range(columns.shape[0]):
            for row in range(several):
                out[at, begin + row] = block[row, columns[at]]


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
        among = _exponentiate(self._among, np.arange(len(self._among)), sigma)
        found, pivots, rank, _ = dpstrf(among, tol=TOLERANCE, lower=1)
        factor = np.tril(found[:rank, :rank])
        chosen = pivots[:rank].astype(np.int64) - 1
        between = _exponentiate(self._between, chosen, sigma)
        return KernelFeatures(_unmixed(between, factor), factor, chosen, len(among))


def _unmixed(rows: Floats, factor: Floats) -> Floats:
    """Return ``rows L^-T``, for a lower triangular L.

    By blocks of columns, whose own triangles are inverted: all that is left are products of matrices, which
    take less time than SciPy's solver and, unlike it, let other threads run.
    """
    out = np.empty_like(rows)
    for begin in range(0, len(factor), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        part = rows[:, block] - out[:, :begin] @ factor[block, :begin].T
        np.matmul(part, np.linalg.inv(factor[block, block]).T, out=out[:, block])
    return out
