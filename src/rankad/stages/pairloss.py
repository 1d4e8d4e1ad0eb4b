"""Scores and levels to the pair loss, its gradient and its Hessian products, over all pairs.

The preference pairs of Algorithm 1, step (b), are every ``(i, j)`` with ``levels[i] > levels[j]``. There
are about ``n ** 2 / 3`` of them and none is ever stored. Everything here rests on one primitive, the
squared hinge with margin ``mu``::

    S(mu) = sum over pairs of max(0, mu - (f_i - f_j)) ** 2

Sort ``f`` once. A sweep from the highest score down meets, for each ``i``, exactly the rows ``j`` with
``f_j > f_i - mu``; a Fenwick tree over the levels then adds up those of a lower level. A second sweep from
below serves ``j``. That is O(n log n) for any number of levels. Sums are only ever added to, so that rounding
stays near the machine's precision times the squared spread of the scores. The linear slack of the paper's
equation is a difference of two such terms (`smoothed_hinge`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Floats, Ints
from rankad._loops.cache import compiled

__all__ = ["HingeShape", "PairLoss", "PairLossAt", "smoothed_hinge", "squared_hinge"]


class HingeShape(NamedTuple):
    """A hinge as a weighted sum of squared hinges: ``phi(t) = sum_k weights[k] max(0, margins[k] - t)^2``."""

    margins: tuple[float, ...]
    weights: tuple[float, ...]

    def value(self, t: Floats) -> Floats:
        """Return ``phi(t)`` elementwise."""
        out = np.zeros_like(t)
        for margin, weight in zip(self.margins, self.weights, strict=True):
            out += weight * np.maximum(0.0, margin - t) ** 2
        return out

    def slope(self, t: Floats) -> Floats:
        """Return ``phi'(t)`` elementwise."""
        out = np.zeros_like(t)
        for margin, weight in zip(self.margins, self.weights, strict=True):
            out -= 2.0 * weight * np.maximum(0.0, margin - t)
        return out

    def curvature(self, t: Floats) -> Floats:
        """Return ``phi''(t)`` elementwise; at a margin, from the side where the hinge is flat."""
        out = np.zeros_like(t)
        for margin, weight in zip(self.margins, self.weights, strict=True):
            out += 2.0 * weight * (t < margin)
        return out


def squared_hinge() -> HingeShape:
    """Return ``max(0, 1 - t) ** 2``, what the paper's experiments solve."""
    return HingeShape((1.0,), (1.0,))


def smoothed_hinge(width: float = 0.01) -> HingeShape:
    """Return the linear slack ``max(0, 1 - t)`` of the paper's equation, its corner rounded.

    The corner is a parabola of the given width: ``phi(t) = (1 - t)^2 / (2 width)`` for
    ``1 - width < t < 1`` and ``1 - t - width / 2`` below. It lies under the exact hinge by at most
    ``width / 2`` per pair.

    Parameters
    ----------
    width : float
        The width of the rounded corner, in units of the margin.

    Examples
    --------
    >>> import numpy as np
    >>> smoothed_hinge(0.01).value(np.array([-1.0, 0.0, 1.0, 2.0]))
    array([1.995, 0.995, 0.   , 0.   ])
    """
    if not 0.0 < width < 1.0:
        raise ValueError(f"width must lie strictly between 0 and 1, got {width!r}.")
    scale = 0.5 / width
    return HingeShape((1.0, 1.0 - width), (scale, -scale))


@compiled
def _hinge_sums(  # type: ignore[no-untyped-def]
    f, centred, levels, order, n_levels, margin, gradient, weight
):
    """Add ``weight * S(margin)``'s gradient to `gradient`; return ``weight * S(margin)``."""
    n = f.shape[0]
    count = np.zeros(n_levels + 1)
    first = np.zeros(n_levels + 1)
    second = np.zeros(n_levels + 1)
    loss = 0.0
    # From the top: row i as the upper one of the pair meets every lower-level j with f_j > f_i - margin.
    start = n
    for position in range(n - 1, -1, -1):
        i = order[position]
        while start > 0 and f[order[start - 1]] > f[i] - margin:
            start -= 1
            j = order[start]
            value = centred[j]
            node = levels[j]
            while node <= n_levels:
                count[node] += 1.0
                first[node] += value
                second[node] += value * value
                node += node & -node
        node = levels[i] - 1
        c = 0.0
        s1 = 0.0
        s2 = 0.0
        while node > 0:
            c += count[node]
            s1 += first[node]
            s2 += second[node]
            node -= node & -node
        gap = margin - centred[i]
        loss += c * gap * gap + 2.0 * gap * s1 + s2
        gradient[i] -= 2.0 * weight * (c * gap + s1)
    # From the bottom: row j as the lower one meets every higher-level i with f_i < f_j + margin.
    count[:] = 0.0
    first[:] = 0.0
    stop = 0
    for position in range(n):
        j = order[position]
        while stop < n and f[order[stop]] - margin < f[j]:
            i = order[stop]
            node = n_levels + 1 - levels[i]
            while node <= n_levels:
                count[node] += 1.0
                first[node] += centred[i]
                node += node & -node
            stop += 1
        node = n_levels - levels[j]
        c = 0.0
        s1 = 0.0
        while node > 0:
            c += count[node]
            s1 += first[node]
            node -= node & -node
        gradient[j] += 2.0 * weight * (c * (margin + centred[j]) - s1)
    return weight * loss


@compiled
def _laplacian_product(  # type: ignore[no-untyped-def]
    f, levels, order, n_levels, margin, weight, far, vectors, out
):
    """Fill in the rows of `vectors` times `far`, and ``weight`` times the Hessian of ``S(margin)`` times all.

    The Hessian is twice the graph Laplacian of the active pairs. Where `far` is empty, that is added to what
    is there.
    """
    n, width = vectors.shape
    # Of all levels together nothing is asked: the trees do without them.
    count = np.zeros(n_levels)
    total = np.zeros((n_levels, width), vectors.dtype)
    met = np.zeros(width, vectors.dtype)
    twice = vectors.dtype.type(2.0 * weight)
    # From the top, rows meet those of lower levels; from the bottom, those of higher ones.
    for upward in (False, True):
        count[:] = 0.0
        total[:] = 0.0
        entered = 0
        for position in range(n):
            i = order[position] if upward else order[n - 1 - position]
            while entered < n:
                j = order[entered] if upward else order[n - 1 - entered]
                if not (f[j] - margin < f[i] if upward else f[j] > f[i] - margin):
                    break
                entered += 1
                node = n_levels + 1 - levels[j] if upward else levels[j]
                vector = vectors[j]
                while node < n_levels:
                    count[node] += 1.0
                    sums = total[node]
                    for column in range(width):
                        sums[column] += vector[column]
                    node += node & -node
            vector, product = vectors[i], out[i]
            if far.shape[0] and not upward:
                share = far[i]
                for column in range(width):
                    product[column] = share * vector[column]
            node = n_levels - levels[i] if upward else levels[i] - 1
            if node == 0:
                continue
            c, sums = count[node], total[node]
            node -= node & -node
            if node > 0:
                met[:] = sums
                while node > 0:
                    c += count[node]
                    sums = total[node]
                    for column in range(width):
                        met[column] += sums[column]
                    node -= node & -node
                sums = met
            own = vectors.dtype.type(c)
            for column in range(width):
                product[column] += twice * (own * vector[column] - sums[column])


@dataclass(frozen=True)
class PairLossAt:
    """The pair loss at one vector of scores.

    Attributes
    ----------
    value : float
        The loss over all pairs, the far field included.
    gradient : ndarray of shape (n,)
        Its gradient with respect to the scores.
    """

    value: float
    gradient: Floats
    _loss: PairLoss
    _scores: Floats
    _order: Ints

    def hessian_product(self, vectors: Any, out: Any = None) -> Any:
        """Return the (generalised) Hessian times `vectors`, of shape (n,) or (n, s), in their precision.

        That of (n, s) may be written into `out`, of the same shape and precision.
        """
        precision = np.result_type(vectors, np.float32)
        columns = np.ascontiguousarray(vectors.reshape(len(vectors), -1), dtype=precision)
        loss = self._loss
        out = np.empty_like(columns) if out is None else out
        far = (loss.far_weight * loss.shape.curvature(self._scores)).astype(precision)
        for margin, weight in zip(loss.shape.margins, loss.shape.weights, strict=True):
            _laplacian_product(
                self._scores, loss.levels, self._order, loss.n_levels, margin, weight, far, columns, out
            )
            far = far[:0]
        return out.reshape(vectors.shape)


class PairLoss:
    """The loss of a ranking, ``sum over pairs of phi(f_i - f_j)``, for fixed levels.

    Parameters
    ----------
    levels : array-like of int, shape (n,)
        The level of every row; a higher level is more nominal.
    shape : HingeShape
        The hinge ``phi``; `squared_hinge` or `smoothed_hinge`.
    far_weight : float
        How many rows the point at infinity counts for. It stands below every level and its score is zero
        (an RBF kernel vanishes there), so it adds ``far_weight * sum_i phi(f_i)``. 0 leaves it out.

    Examples
    --------
    One pair, one score short of its margin by a half:

    >>> loss = PairLoss([2, 1])
    >>> at = loss.at(np.array([0.5, 0.0]))
    >>> float(at.value), at.gradient
    (0.25, array([-1.,  1.]))
    """

    def __init__(
        self, levels: ArrayLike, shape: HingeShape | None = None, *, far_weight: float = 0.0
    ) -> None:
        labels = np.asarray(levels)
        if labels.ndim != 1 or labels.size == 0:
            raise ValueError(f"levels must be a non-empty vector, got shape {labels.shape}.")
        if not (math.isfinite(far_weight) and far_weight >= 0):
            raise ValueError(f"far_weight must be finite and >= 0, got {far_weight!r}.")
        # Only the order of the levels matters: 1..m without gaps keeps the trees small.
        distinct, compact = np.unique(labels, return_inverse=True)
        self.levels: Ints = compact.astype(np.int64) + 1
        self.n_levels = int(distinct.size)
        self.shape = squared_hinge() if shape is None else shape
        self.far_weight = float(far_weight)

    @property
    def n_pairs(self) -> float:
        """How many pairs the loss sums over; the point at infinity counts `far_weight` times."""
        sizes = np.bincount(self.levels).astype(np.float64)
        n = sizes.sum()
        return float((n * n - (sizes**2).sum()) / 2.0 + self.far_weight * n)

    def at(self, scores: ArrayLike) -> PairLossAt:
        """Evaluate the loss and its gradient at `scores`, of shape (n,)."""
        f = np.ascontiguousarray(scores, dtype=np.float64)
        if f.shape != self.levels.shape:
            raise ValueError(f"scores must have shape {self.levels.shape}, got {f.shape}.")
        order = np.argsort(f, kind="stable")
        gradient = np.zeros_like(f)
        # Differences alone count for the pairs: sums of centred scores keep the squares small, while the
        # scores themselves say which pairs are active.
        centred = f - f.mean()
        value = 0.0
        for margin, weight in zip(self.shape.margins, self.shape.weights, strict=True):
            value += _hinge_sums(f, centred, self.levels, order, self.n_levels, margin, gradient, weight)
        if self.far_weight:
            value += self.far_weight * float(self.shape.value(f).sum())
            gradient += self.far_weight * self.shape.slope(f)
        return PairLossAt(value, gradient, self, f, order)
