"""The RBF kernel, its landmarks, the features that stand for them, and the scorer they make.

The kernel is the paper's, ``k(x, x') = exp(-|x - x'|^2 / sigma^2)`` (Remark 2; there is no factor two). A
scorer is ``g(x) = sum_l a_l k(x, z_l)`` over landmarks ``z_l``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dpstrf
from scipy.spatial.distance import cdist

from rankad._arrays import LARGEST, Floats, Ints, in_blocks

__all__ = ["KernelFeatures", "KernelMap", "KernelScorer", "choose_landmarks", "rbf_kernel", "score_many"]

# The landmarks' kernel matrix, whose diagonal is one, is factorized until no more than this is left of it.
TOLERANCE = 1e-8
# Beyond this many bandwidths from every landmark the kernel is below 2e-7: the far field.
FAR_REACH = 4.0
# A kernel value below exp(-46), about 1e-20, counts as zero: sums cannot see it, but arithmetic on numbers so
# small, and on their products, is many times slower.
NEGLIGIBLE = 46.0
_BLOCK = 4_096
_NO_LIMITS = (np.empty(0), np.empty(0), np.empty(0))

# The scorer computes exp(-t) as 2^-q, of squared distances q in units of this fraction of a bandwidth.
_UNIT = math.sqrt(math.log(2.0))
_NEGLIGIBLE_Q = NEGLIGIBLE / math.log(2.0)
# A float64 to which this is added is rounded to a whole number, which is then in its lowest bits.
_ROUNDING = 1.5 * 2.0**52
_INFINITY_BITS = int(np.float64(np.inf).view(np.int64))
# A cache line, in float64 numbers.
_LINE = 8
# Beyond this a landmark may as well be anywhere (an infinite coordinate would have no distance to itself),
# and a distance is as good as infinite.
_FARTHEST = 1e300


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
    # Imported when it is needed: scoring does without, and should not wait for it.
    from sklearn.cluster import KMeans

    start = rows[_spread_out(rows, np.random.default_rng(seed).random(n_landmarks))]
    clusters = KMeans(n_landmarks, init=start, n_init=1, max_iter=5, tol=1e-3).fit(rows)
    return np.ascontiguousarray(clusters.cluster_centers_, dtype=np.float64)


@numba.njit(cache=True, nogil=True)
def _spread_out(rows, draws):  # type: ignore[no-untyped-def]
    """Choose one row per draw from [0, 1): k-means++ with one trial a centre.

    Each is drawn with probability proportional to the squared distance to those before it. Where all of these
    are zero, the first row is drawn again.
    """
    n, d = rows.shape
    chosen = np.zeros(draws.shape[0], dtype=np.int64)
    chosen[0] = min(n - 1, int(draws[0] * n))
    nearest = np.full(n, np.inf)
    for step in range(draws.shape[0]):
        if step:
            left = draws[step] * nearest.sum()
            for row in range(n):
                if nearest[row] > 0.0:
                    chosen[step] = row
                    left -= nearest[row]
                    if left < 0.0:
                        break
        for row in range(n):
            squared = 0.0
            for column in range(d):
                gap = rows[row, column] - rows[chosen[step], column]
                squared += gap * gap
            nearest[row] = min(nearest[row], squared)
    return chosen


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
    limits : tuple of three ndarrays of shape (d,), optional
        A low and a high limit and a unit for every column: by how many units a row lies outside, in the
        column where that is most, is subtracted too.
    """

    landmarks: Floats
    coefficients: Floats
    widths: Floats
    far_field: bool = True
    limits: tuple[Floats, Floats, Floats] | None = None

    def score(self, rows: Floats, *, far_widths: Floats | None = None, n_jobs: int | None = None) -> Floats:
        """Return the scores of rows; each row's depends on that row alone, to the last bit.

        A row that is not all finite numbers scores NaN.

        Rounding puts g off by ``(2 R + d + s + 6) eps sum_l |a_l|`` at most, where eps is 2.2e-16 and R the
        largest distance of a landmark from the median one, in bandwidths.

        Parameters
        ----------
        rows : ndarray of shape (n, d)
        far_widths : ndarray of shape (d,), optional
            The unit of far-field distances, where it is not the scorer's own `widths`.
        n_jobs : int, optional
            Threads; it changes the time taken and nothing else.
        """
        own, limits, far = self._layout, self.limits or _NO_LIMITS, None
        reach = FAR_REACH if self.far_field else math.inf
        if self.far_field and far_widths is not None:
            far = _lay_out(self.landmarks, np.zeros_like(self.coefficients), far_widths)
            reach = math.inf

        def block(begin: int, end: int) -> Floats:
            part = np.ascontiguousarray(rows[begin:end], dtype=np.float64)
            scores: Floats = _kernel_scores(part, *own, reach, *limits)
            if far is not None:
                scores += _kernel_scores(part, *far, FAR_REACH, *_NO_LIMITS)
            return scores

        if len(rows) <= _BLOCK:
            return block(0, len(rows))
        return np.concatenate(in_blocks(block, len(rows), _BLOCK, n_jobs))

    @cached_property
    def _layout(self) -> _Layout:
        return _lay_out(self.landmarks, self.coefficients, self.widths)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def score_many(scorers: Sequence[KernelScorer], rows: Floats) -> Floats:
    """Return the scores of rows by scorers that share landmarks and differ by one factor in all widths.

    Distances are computed once. Equal to `KernelScorer.score` of each but for rounding.

    Parameters
    ----------
    scorers : sequence of KernelScorer
        With the very same landmarks and `far_field`, and without `limits`.
    rows : ndarray of shape (n, d)
        All finite.

    Returns
    -------
    ndarray of shape (n_scorers, n)
    """
    first = scorers[0]
    landmarks, far_field = first.landmarks, first.far_field
    if not all(s.landmarks is landmarks and s.far_field == far_field for s in scorers):
        raise ValueError("scorers must share their landmarks and far_field.")
    if any(scorer.limits is not None for scorer in scorers):
        raise ValueError("scorers must have no limits.")
    ratios = np.array([first.widths[0] / scorer.widths[0] for scorer in scorers])
    alike = [
        np.allclose(first.widths, r * s.widths, 1e-12, 0.0) for r, s in zip(ratios, scorers, strict=True)
    ]
    if not all(alike):
        raise ValueError("The widths of scorers must be multiples of one another.")
    # All landmarks are laid out, whichever have a coefficient: every scorer has others that have none.
    layout = _lay_out(landmarks, np.ones(len(landmarks)), first.widths)
    coefficients = np.zeros((len(scorers), layout.columns.shape[1]))
    coefficients[:, : len(landmarks)] = [scorer.coefficients for scorer in scorers]
    reach = FAR_REACH if far_field else math.inf

    def block(begin: int, end: int) -> Floats:
        part = np.ascontiguousarray(rows[begin:end], dtype=np.float64)
        center, scale, columns, *_ = layout
        return np.asarray(_many_scores(part, center, scale, columns, coefficients, ratios, reach))

    return np.concatenate(in_blocks(block, len(rows), _BLOCK), axis=1)


class _Layout(NamedTuple):
    """A scorer as `_kernel_scores` reads it: a landmark z is at ``(z - center) * scale``.

    Attributes
    ----------
    center : ndarray of shape (d,)
        The median landmark: with a common offset gone, scaling first and subtracting after costs no digits.
    scale : ndarray of shape (d,)
        One over `_UNIT` bandwidths.
    columns : ndarray of shape (d, r)
        The landmarks with a coefficient, column by column.
    coefficients : ndarray of shape (r,)
    silent : ndarray of shape (d, q)
        The landmarks without. They count for far distances only.
    """

    center: Floats
    scale: Floats
    columns: Floats
    coefficients: Floats
    silent: Floats


def _lay_out(landmarks: Floats, coefficients: Floats, widths: Floats) -> _Layout:
    center = np.sort(landmarks, axis=0)[len(landmarks) // 2]  # np.median takes three times as long
    scale = 1.0 / (_UNIT * widths)
    with np.errstate(over="ignore"):
        scaled = np.clip((landmarks - center) * scale, -_FARTHEST, _FARTHEST)
    heard = coefficients != 0
    columns = _line_up(scaled[heard])
    padded = np.zeros(columns.shape[1])
    padded[: np.count_nonzero(heard)] = coefficients[heard]
    return _Layout(center, scale, columns, padded, _line_up(scaled[~heard]))


def _line_up(points: Floats) -> Floats:
    """Return the columns of points as rows that begin at cache lines; the last point fills them up."""
    s, d = points.shape
    width = s + -s % _LINE
    room = np.empty(d * width + _LINE)
    begin = -(room.ctypes.data // room.itemsize) % _LINE
    columns = room[begin : begin + d * width].reshape(d, width)
    columns[:, :s] = points.T
    columns[:, s:] = points[-1:].T
    return columns


# The loops over landmarks below are such that compilers turn them into vector instructions. Of the licences
# of fast arithmetic they take two: to multiply and add in one rounding, and, in `_weigh` alone, to add up in
# another order, which is the same for every row.


@numba.njit(cache=True, nogil=True)
def _kernel_scores(  # type: ignore[no-untyped-def]
    rows, center, scale, columns, coefficients, silent, reach, low, high, unit
):
    """Return g less the distance to the nearest landmark, in bandwidths, beyond `reach`, for every row.

    With limits, less the excess over these as well. NaN for rows that are not finite.
    """
    n, d = rows.shape
    scores = np.empty(n)
    point = np.empty(d)
    squared = np.empty(max(columns.shape[1], silent.shape[1]))
    for row in range(n):
        finite = True
        for column in range(d):
            value = rows[row, column]
            finite &= math.isfinite(value)
            point[column] = (value - center[column]) * scale[column]
        if not finite:
            scores[row] = np.nan
            continue
        _square_distances(point, columns, squared)
        score = _weigh(squared, coefficients)
        if reach < np.inf:
            nearest = _least_root(squared, columns.shape[1]) * _UNIT
            if nearest > reach:
                _square_distances(point, silent, squared)
                nearest = min(nearest, _least_root(squared, silent.shape[1]) * _UNIT)
                score -= min(max(0.0, nearest - reach), _FARTHEST)
        excess = 0.0
        for column in range(low.shape[0]):
            beyond = max(low[column] - rows[row, column], rows[row, column] - high[column])
            if beyond > 0.0:
                excess = max(excess, beyond / unit[column])
        scores[row] = score - min(excess, LARGEST)
    return scores


@numba.njit(cache=True, nogil=True)
def _many_scores(rows, center, scale, columns, coefficients, ratios, reach):  # type: ignore[no-untyped-def]
    """Do as `_kernel_scores` for several coefficients and widths; `ratios` are of the first to each width."""
    n, d = rows.shape
    scores = np.empty((ratios.shape[0], n))
    point = np.empty(d)
    squared = np.empty(columns.shape[1])
    powers = np.empty(columns.shape[1])
    for row in range(n):
        for column in range(d):
            point[column] = (rows[row, column] - center[column]) * scale[column]
        _square_distances(point, columns, squared)
        nearest = _least_root(squared, columns.shape[1]) * _UNIT if reach < np.inf else 0.0
        for trial in range(ratios.shape[0]):
            ratio = ratios[trial]
            if trial == 0 or ratio != ratios[trial - 1]:
                _raise(squared, ratio * ratio, powers)
            score = _dot(powers, coefficients[trial])
            if reach < np.inf:
                score -= min(max(0.0, nearest * ratio - reach), _FARTHEST)
            scores[trial, row] = score
    return scores


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _raise(squared, factor, powers):  # type: ignore[no-untyped-def]
    for landmark in range(squared.shape[0]):
        powers[landmark] = _power(squared[landmark] * factor)


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _dot(powers, coefficients):  # type: ignore[no-untyped-def]
    total = 0.0
    for landmark in range(coefficients.shape[0]):
        total += coefficients[landmark] * powers[landmark]
    return total


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _square_distances(point, columns, squared):  # type: ignore[no-untyped-def]
    """Fill in the squared distances, two columns at a time: fewer would be slower, more are no faster."""
    d, s = columns.shape
    begin = 1 if d % 2 else 2
    first, second = point[0], point[begin - 1]
    if d % 2:
        for landmark in range(s):
            gap = columns[0, landmark] - first
            squared[landmark] = gap * gap
    else:
        for landmark in range(s):
            gap = columns[0, landmark] - first
            other = columns[1, landmark] - second
            squared[landmark] = gap * gap + other * other
    for column in range(begin, d, 2):
        first, second = point[column], point[column + 1]
        for landmark in range(s):
            gap = columns[column, landmark] - first
            other = columns[column + 1, landmark] - second
            squared[landmark] = (squared[landmark] + gap * gap) + other * other


@numba.njit(cache=True, nogil=True)
def _least_root(squared, s):  # type: ignore[no-untyped-def]
    """Return the root of the least of s numbers, none negative: the order of these is that of their bits."""
    least = np.int64(_INFINITY_BITS)
    for landmark in range(s):
        least = min(least, np.float64(squared[landmark]).view(np.int64))
    return math.sqrt(np.int64(least).view(np.float64))


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _weigh(squared, coefficients):  # type: ignore[no-untyped-def]
    total = 0.0
    for landmark in range(coefficients.shape[0]):
        total += coefficients[landmark] * _power(squared[landmark])
    return total


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _power(q):  # type: ignore[no-untyped-def]
    """Return ``2^-q`` for q >= 0, to within 1e-15 of itself, and zero where that is negligible.

    With n whole and ``f = n - q`` at most one half, it is ``2^-n 2^f``: n is subtracted from the exponent of
    a polynomial, which is the one through ``2^f`` at the Chebyshev nodes, off by 3e-16 at most.
    """
    rounded = _ROUNDING - q
    f = (_ROUNDING - rounded) - q
    p = 7.072585949269223e-09
    p = p * f + 1.0208690299958306e-07
    p = p * f + 1.321544258792169e-06
    p = p * f + 1.5252657260200837e-05
    p = p * f + 0.0001540353044173605
    p = p * f + 0.0013333558230164974
    p = p * f + 0.009618129107606888
    p = p * f + 0.05550410866444772
    p = p * f + 0.24022650695910097
    p = p * f + 0.69314718055995
    p = p * f + 1.0
    bits = np.float64(p).view(np.int64) + (np.float64(rounded).view(np.int64) << 52)
    return np.int64(bits).view(np.float64) if q <= _NEGLIGIBLE_Q else 0.0
