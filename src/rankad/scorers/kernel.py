"""The kernel scorer: ``g(x) = sum_l a_l k(x, z_l)`` over landmarks z_l, with the RBF kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankad._base.arrays import Floats
from rankad._base.threads import cached_property, in_blocks
from rankad._loops.kernel import NEAREST, UNIT, kernel_scores
from rankad._loops.vectors import in_groups

# Beyond this many bandwidths from every landmark the kernel is below 2e-7: the far field.
FAR_REACH = 4.0
# Float32 is accurate enough where rounding moves scores by at most this share of the standard deviation of
# the landmarks' scores. (Mostly it moves them by a thousandth of that.)
_GOOD_ENOUGH = 0.01
# Coefficients smaller than this, or larger than one over it, need float64.
_SMALL_SINGLE = 1e-20
# Fewer rows than this are not worth a second thread; a block has so many numbers.
_FEW, _BLOCK = 4_096, 2**18
# How many columns are sorted at a time.
_SORTED = 4_096
_NO_LIMITS = (np.empty(0), np.empty(0), np.empty(0))
# Landmarks are clipped to this: an infinite coordinate would have no distance to itself. Distances beyond it
# count as infinite.
_FARTHEST = {np.float32: 1e30, np.float64: 1e300}


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
        Whether the score keeps falling where g vanishes. Beyond `FAR_REACH` bandwidths from every landmark g
        is zero to six digits and cannot tell far from farther. Subtracted is the mean distance to the three
        nearest landmarks (or three times that to the nearest, if less), in bandwidths beyond that reach.
    limits : tuple of three ndarrays of shape (d,), optional
        A low and a high limit and a unit for every column (`ColumnRanges.limits`). Subtracted is by how many
        units a row lies outside, in the column where that is most.
    single : bool
        Whether to compute in float32, at twice the speed; see `rounding`.
    """

    landmarks: Floats
    coefficients: Floats
    widths: Floats
    far_field: bool = True
    limits: tuple[Floats, Floats, Floats] | None = None
    single: bool = False

    def score(self, rows: Floats, *, n_jobs: int | None = None) -> Floats:
        """Return the scores of rows: NaN for those that are not finite.

        Each depends on its row alone, to the last bit, whatever the number of threads, `n_jobs`.
        """
        layout, limits = self._layout, self.limits or _NO_LIMITS
        reach = FAR_REACH if self.far_field else math.inf
        scores = np.empty(len(rows))

        def block(begin: int, end: int) -> None:
            # Writeable, or numba would compile again for read-only arrays.
            part = np.require(rows[begin:end], np.float64, ["C", "W"])
            kernel_scores(part, *layout, reach, *limits, scores[begin:end])

        if len(rows) <= _FEW:
            block(0, len(rows))
        else:
            in_blocks(block, len(rows), max(_FEW, _BLOCK // rows.shape[1]), n_jobs, few=_FEW)
        if self.far_field and not scores.min(initial=0.0) > -math.inf:
            # Distances overflowed: score these rows in float64, or as the farthest.
            lost = np.flatnonzero(scores == -math.inf)
            if self.single:
                scores[lost] = replace(self, single=False).score(rows[lost])
            else:
                scores[lost] = -_FARTHEST[np.float64]
        return scores

    @property
    def rounding(self) -> float:
        """A bound on the rounding error of g, at any row.

        ``u sum_l |a_l| (b R_l + 0.4 d + s / w + 16)`` over the s landmarks with a nonzero coefficient, where
        R_l is the distance of landmark l from the median one, in bandwidths. For float32, u is 2^-24, w 16
        and b 1.8; for float64, 2^-53, 8 and 3.6. Coordinates are off by once or twice u, which moves a
        distance by as much of R_l and of itself, and its kernel value by at most 0.86 times that; a distance
        sums d terms, a lane s / w, and the power and the sum over lanes take the rest.
        """
        d, weighted = self.landmarks.shape[1], self.coefficients != 0
        u, width, roundings = (2.0**-24, 16, 1.8) if self.single else (2.0**-53, 8, 3.6)
        factors = (
            roundings * self._from_center()[weighted] + 0.4 * d + np.count_nonzero(weighted) / width + 16
        )
        return float(u * np.abs(self.coefficients[weighted]) @ factors)

    def _from_center(self) -> Floats:
        """Return the distances of landmarks from the median one, in bandwidths."""
        with np.errstate(over="ignore"):
            gaps = (self.landmarks - self._layout.center) / self.widths
            return np.asarray(np.linalg.norm(gaps, axis=1))

    def quickest(self) -> KernelScorer:
        """Return the same scorer in float32 where that is accurate enough, else in float64.

        Enough is a `rounding`, and a rounding of distances from landmarks, of at most a hundredth of the
        standard deviation of the landmarks' scores. Where large coefficients cancel, as at wide bandwidths,
        float32 is not accurate enough.
        """
        single, double = replace(self, single=True), replace(self, single=False)
        sizes = np.abs(self.coefficients)
        if not _SMALL_SINGLE < sizes.max(initial=0.0) < 1 / _SMALL_SINGLE:
            return double
        own = replace(double, far_field=False, limits=None).score(self.landmarks)
        of_distances = NEAREST * 2.0**-22 * double._from_center().max() if self.far_field else 0.0
        off = max(single.rounding, of_distances)
        return single if off <= _GOOD_ENOUGH * own.std() else double

    def in_units(self, center: Floats, scale: Floats) -> KernelScorer:
        """Return the scorer of rows ``center + scale * x``, where this one is of rows x."""
        return replace(self, landmarks=self.landmarks * scale + center, widths=self.widths * scale)

    @cached_property
    def _layout(self) -> _Layout:
        dtype = np.float32 if self.single else np.float64
        return _lay_out(self.landmarks, self.coefficients, self.widths, dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class _Layout(NamedTuple):
    """A scorer as `kernel_scores` reads it."""

    center: Floats  # the median landmark: without a common offset, scaling first loses no digits
    scale: Floats  # one over `UNIT` bandwidths
    landmarks: NDArray[Any]  # those with a nonzero coefficient, of shape (groups, d, lanes)
    coefficients: NDArray[Any]
    unweighted: NDArray[Any]  # the others, which only the far field depends on
    n_nearest: int  # how many distances to landmarks are averaged


def _middle(rows: Floats) -> Floats:
    """Return the upper median of every column, some columns at a time."""
    medians, middle = np.empty(rows.shape[1]), len(rows) // 2
    for begin in range(0, rows.shape[1], _SORTED):
        some = np.ascontiguousarray(rows[:, begin : begin + _SORTED].T)
        medians[begin : begin + _SORTED] = np.partition(some, middle, axis=1)[:, middle]
    return medians


def _lay_out(landmarks: Floats, coefficients: Floats, widths: Floats, dtype: Any) -> _Layout:
    center = _middle(landmarks)
    scale = 1.0 / (UNIT * widths)
    farthest = _FARTHEST[dtype]
    with np.errstate(over="ignore"):
        # In place: there may be very many columns.
        scaled = landmarks - center
        scaled *= scale
        np.clip(scaled, -farthest, farthest, out=scaled)
    weighted = coefficients != 0
    groups = in_groups(scaled[weighted], dtype)
    padded = np.zeros(groups.shape[0] * groups.shape[2], dtype=dtype)
    padded[: np.count_nonzero(weighted)] = coefficients[weighted]
    unweighted = in_groups(scaled[~weighted], dtype)
    return _Layout(center, scale, groups, padded, unweighted, min(NEAREST, len(landmarks)))
