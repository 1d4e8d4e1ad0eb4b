"""The RBF kernel, its landmarks, and the features that stand for them.

The kernel is the paper's, ``k(x, x') = exp(-|x - x'|^2 / sigma^2)`` (Remark 2; there is no factor two).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.lapack import dpstrf

from rankad._base.arrays import Floats, Ints
from rankad._base.checks import check_range
from rankad._base.scratch import Scratch
from rankad._loops.cache import compiled
from rankad._loops.nearest import nearest_hubs
from rankad._loops.vectors import in_groups
from rankad._loops.wide import WIDE, squared_distances

# The landmarks' kernel matrix, whose diagonal is one, is factorized until no more than this is left of it.
TOLERANCE = 1e-8
# Kernel values below exp(-46), about 1e-20, are set to zero: they do not change sums, and arithmetic on their
# products, which are subnormal, is many times slower.
NEGLIGIBLE = 46.0
# Triangular systems are solved in blocks of so many unknowns.
_BLOCK = 64
# Less than one by more than rounding.
_NEARLY = 1 - 1e-9
_FIRST_COLUMNS = 16
# k-means stops after so many rounds, or when the sum of the centres' squared shifts, over the mean variance
# of the columns, is at most this.
_K_MEANS_ROUNDS, _K_MEANS_SHIFT = 5, 1e-3


def choose_landmarks(
    rows: Floats, n_landmarks: int, method: str = "kmeans", *, seed: int, names: Ints | None = None
) -> Floats:
    """Choose the landmarks of the kernel expansion: centres of k-means ("kmeans"), or rows ("random").

    If there are no more distinct rows than `n_landmarks`, these are the landmarks. `names` identify each row
    among more rows, by default by its position. The random numbers of a row depend on it, so that nearly the
    same rows have nearly the same landmarks.
    """
    if n_landmarks < 1:
        raise ValueError(f"n_landmarks must be >= 1, got {n_landmarks!r}.")
    if method not in ("kmeans", "random"):
        raise ValueError(f"method must be 'kmeans' or 'random', got {method!r}.")
    check_range(rows)
    named = np.arange(len(rows)) if names is None else np.asarray(names)
    if named.shape != (len(rows),) or named.dtype.kind not in "iu":
        raise ValueError(
            f"names must be {len(rows)} integers, one for each row, got shape {named.shape} of {named.dtype}."
        )
    # Sorting all rows is slow. Mostly the first few show that there are more distinct ones than landmarks.
    if method == "random" or len(_distinct(rows[: 2 * n_landmarks])[0]) <= n_landmarks:
        distinct, first = _distinct(rows)
        if len(distinct) <= n_landmarks:
            return distinct
        if method == "random":
            lots = _lots(_keys(seed, 1)[0], named[first])
            return distinct[np.sort(np.argpartition(lots, n_landmarks)[:n_landmarks])]
    return _k_means(rows, rows[_spread_out(rows, named, _keys(seed, n_landmarks))])


def _distinct(rows: Floats) -> tuple[Floats, Ints]:
    """Return the distinct rows, sorted, and where each comes first."""
    if rows.shape[1] > _FIRST_COLUMNS:
        # Mostly a few columns distinguish all rows; comparing all columns is slow.
        first = np.unique(rows[:, :_FIRST_COLUMNS], axis=0, return_index=True)[1]
        if len(first) == len(rows):
            return rows[first], first
    return np.unique(rows, axis=0, return_index=True)


def _k_means(rows: Floats, centers: Floats) -> Floats:
    """Move centres to the means of their nearest rows, a few times; a centre without rows stays."""
    enough = _K_MEANS_SHIFT * float(rows.var(axis=0).mean())
    nearest = np.full(len(rows), -1)
    for _ in range(_K_MEANS_ROUNDS):
        before, nearest = nearest, _nearest_centers(rows, centers)
        if np.array_equal(nearest, before):
            break
        moved = _means(rows, nearest, centers)
        shift = float(((moved - centers) ** 2).sum())
        centers = moved
        if shift <= enough:
            break
    return centers


def _nearest_centers(rows: Floats, centers: Floats) -> Ints:
    """Return the index of the nearest centre of every row, the first of equally near ones."""
    n, d = rows.shape
    if d > WIDE:
        return np.asarray(squared_distances(rows, centers).argmin(axis=1))
    nearest = np.empty((n, 1), dtype=np.int64)
    nearest_hubs(rows, np.zeros(d), np.ones(d), in_groups(centers, np.float64), nearest)
    return nearest[:, 0]


@compiled
def _means(rows, nearest, centers):  # type: ignore[no-untyped-def]
    """Return the means of the rows nearest to each centre; the centre itself if there are none."""
    means, counts = np.zeros_like(centers), np.zeros(centers.shape[0])
    for row in range(rows.shape[0]):
        counts[nearest[row]] += 1.0
        for column in range(rows.shape[1]):
            means[nearest[row], column] += rows[row, column]
    for center in range(centers.shape[0]):
        for column in range(rows.shape[1]):
            if counts[center]:
                means[center, column] /= counts[center]
            else:
                means[center, column] = centers[center, column]
    return means


def _keys(seed: int, n: int) -> NDArray[np.uint64]:
    """Return the keys of n streams of random numbers."""
    return np.random.default_rng(seed).integers(2**64, size=n, dtype=np.uint64)


@compiled
def _lot(key, name):  # type: ignore[no-untyped-def]
    """Return number ``name`` of the stream of a key, in (0, 1), by SplitMix64."""
    bits = key + np.uint64(name + 1) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = bits ^ (bits >> np.uint64(31))
    return (np.float64(bits >> np.uint64(12)) + 0.5) * 2.0**-52


@compiled
def _lots(key, names):  # type: ignore[no-untyped-def]
    """Return `_lot` for all names."""
    lots = np.empty(names.shape[0])
    for i in range(names.shape[0]):
        lots[i] = _lot(key, names[i])
    return lots


def _spread_out(rows: Floats, names: Ints, keys: NDArray[np.uint64]) -> Ints:
    """Choose one row per key: k-means++ with one trial a centre.

    Each is drawn with probability proportional to the squared distance to those before it. Leaving out a row
    that is not chosen does not change the choice.
    """
    return np.asarray(_spread_columns(np.ascontiguousarray(rows.T), names, keys))


@compiled
def _draw(key, names, weights):  # type: ignore[no-untyped-def]
    """Choose a row with probability proportional to its weight; -1 if all weights are zero.

    A race of exponential variates: row i arrives after ``-log(lot) / weight``, and the first is chosen.
    """
    chosen, fastest, top = -1, 0.0, weights.max()
    lots = _lots(key, names)
    for row in range(weights.shape[0]):
        # -log(lot) is at least 1 - lot: mostly that decides.
        if weights[row] > fastest * (1.0 - lots[row]) * top * _NEARLY:
            weight = weights[row] / top
            speed = weight / -math.log(lots[row])
            if speed > fastest:
                chosen, fastest = row, speed
    return chosen


@compiled
def _draw_or_any(key, names, weights, first):  # type: ignore[no-untyped-def]
    """Choose like `_draw`, but uniformly for the first, and where all weights are zero."""
    chosen = -1 if first else _draw(key, names, weights)
    return chosen if chosen >= 0 else _draw(key, names, np.ones_like(weights))


@compiled
def _spread_columns(columns, names, keys):  # type: ignore[no-untyped-def]
    """Do the work of `_spread_out` column by column: rows in a line, for vector units."""
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


def _exponentiate(squared: Floats, which: Ints, sigma: float, out: Floats) -> Floats:
    """Fill in the kernel values of the rows `which` of squared distances, and return them."""
    if not (math.isfinite(sigma) and sigma > 0):
        raise ValueError(f"sigma must be finite and > 0, got {sigma!r}.")
    _exponents(squared, which, float(sigma), out)
    return np.exp(out, out=out)


@compiled(error_model="numpy")
def _exponents(squared, which, sigma, out):  # type: ignore[no-untyped-def]
    """Fill in ``-q / sigma^2``; minus infinity where the kernel is set to zero."""
    for at in range(which.shape[0]):
        row, own = squared[which[at]], out[at]
        for column in range(squared.shape[1]):
            value = row[column] / -sigma / sigma
            own[column] = -np.inf if value < -NEGLIGIBLE else value


class KernelFeatures(NamedTuple):
    """Features whose inner products approximate the kernel, by the landmarks (Nystroem).

    ``Z Z' = K_nr K_rr^-1 K_rn``, which is K where every row is a landmark. The r chosen landmarks are those
    needed: the others are combinations of these, to `TOLERANCE`. At wide bandwidths they are few.
    """

    rows: Floats  # Z = K_nr L^-T, of shape (n, r)
    factor: Floats  # L, lower triangular, with L L' = K_rr
    chosen: Ints
    n_landmarks: int

    def coefficients(self, weights: Floats) -> Floats:
        """Return the coefficients ``a`` of the landmarks for weights of the features."""
        out = np.zeros(self.n_landmarks)
        out[self.chosen] = linalg.solve_triangular(
            self.factor, weights, lower=True, trans=1, check_finite=False
        )
        return out


class KernelMap:
    """Squared distances of rows and landmarks, computed once for all bandwidths."""

    def __init__(self, rows: Floats, landmarks: Floats) -> None:
        self.landmarks = landmarks
        self._between = squared_distances(landmarks, rows)
        self._among = squared_distances(landmarks, landmarks)

    def features(self, sigma: float, scratch: Scratch | None = None) -> KernelFeatures:
        """Return the features of the rows at bandwidth `sigma`; `scratch` holds them until its next use."""
        scratch, (s, n) = scratch or Scratch(), self._between.shape
        among = _exponentiate(self._among, np.arange(s), sigma, scratch.empty("among", (s, s))).T
        factored, pivots, rank, _ = dpstrf(among, tol=TOLERANCE, lower=1, overwrite_a=True)
        factor = np.tril(factored[:rank, :rank])
        chosen = pivots[:rank].astype(np.int64) - 1
        between = _exponentiate(self._between, chosen, sigma, scratch.empty("between", (rank, n)))
        columns = scratch.empty("features", (rank, n))
        _unmix(between, factor, columns, scratch.empty("part", (_BLOCK, n)))
        return KernelFeatures(columns.T, factor, chosen, s)


def _unmix(columns: Floats, factor: Floats, out: Floats, part: Floats) -> None:
    """Fill in ``L^-1 columns`` for a lower triangular L; `part` is overwritten.

    By blocks whose triangles are inverted: the rest are matrix products, which are faster than SciPy's solver
    and, unlike it, release the GIL.
    """
    for begin in range(0, len(factor), _BLOCK):
        block = slice(begin, min(begin + _BLOCK, len(factor)))
        rest = part[: block.stop - begin]
        np.matmul(factor[block, :begin], out[:begin], out=rest)
        np.subtract(columns[block], rest, out=rest)
        np.matmul(_inverse_of(np.ascontiguousarray(factor[block, block])), rest, out=out[block])


@compiled
def _inverse_of(factor):  # type: ignore[no-untyped-def]
    """Return the inverse of a small lower triangular matrix, by forward substitution."""
    inverse = np.zeros_like(factor)
    for row in range(factor.shape[0]):
        own = inverse[row]
        for before in range(row):
            share = -factor[row, before] / factor[row, row]
            for column in range(before + 1):
                own[column] += share * inverse[before, column]
        own[row] = 1.0 / factor[row, row]
    return inverse
