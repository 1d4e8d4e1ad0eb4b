"""Scores and levels to the pair loss, its gradient and its Hessian products, over all pairs.

The preference pairs of Algorithm 1, step (b), are all ``(i, j)`` with ``levels[i] > levels[j]``. There are
about ``n ** 2 / 3`` of them, and none is ever stored. The loss is the squared hinge of the paper's
experiments, ``sum over pairs of max(0, 1 - (f_i - f_j)) ** 2``.

Sort ``f`` once. A sweep from the highest score down meets, for each ``i``, exactly the rows ``j`` with
``f_j > f_i - 1``; a Fenwick tree over the levels adds up those of a lower level. A second sweep from below
serves ``j``. That is O(n log n) for any number of levels. Sums are only ever added to, so that rounding stays
near machine precision times the squared spread of the scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Floats, Ints
from rankad._loops.cache import compiled

# A pair counts where the upper score is less than this above the lower one.
_MARGIN = 1.0


@compiled
def _hinge_sums(f, centred, levels, order, n_levels, gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of the loss over all pairs to `gradient`, and return that loss."""
    n = f.shape[0]
    count, first, second = np.zeros(n_levels + 1), np.zeros(n_levels + 1), np.zeros(n_levels + 1)
    loss = 0.0
    # From the top: row i as the upper one of the pair meets every lower-level j with f_j > f_i - margin.
    start = n
    for position in range(n - 1, -1, -1):
        i = order[position]
        while start > 0 and f[order[start - 1]] > f[i] - _MARGIN:
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
        c = s1 = s2 = 0.0
        while node > 0:
            c += count[node]
            s1 += first[node]
            s2 += second[node]
            node -= node & -node
        gap = _MARGIN - centred[i]
        loss += c * gap * gap + 2.0 * gap * s1 + s2
        gradient[i] -= 2.0 * (c * gap + s1)
    # From the bottom: row j as the lower one meets every higher-level i with f_i < f_j + margin.
    count[:], first[:] = 0.0, 0.0
    stop = 0
    for position in range(n):
        j = order[position]
        while stop < n and f[order[stop]] - _MARGIN < f[j]:
            i = order[stop]
            node = n_levels + 1 - levels[i]
            while node <= n_levels:
                count[node] += 1.0
                first[node] += centred[i]
                node += node & -node
            stop += 1
        node = n_levels - levels[j]
        c = s1 = 0.0
        while node > 0:
            c += count[node]
            s1 += first[node]
            node -= node & -node
        gradient[j] += 2.0 * (c * (_MARGIN + centred[j]) - s1)
    return loss


@compiled
def _hessian_product(f, levels, order, n_levels, far, vectors, out):  # type: ignore[no-untyped-def]
    """Fill in the Hessian times `vectors`: twice the graph Laplacian of the active pairs, plus diag(far)."""
    n, width = vectors.shape
    # No query asks for all levels together, so the trees end one level below.
    count = np.zeros(n_levels)
    total = np.zeros((n_levels, width), vectors.dtype)
    met = np.zeros(width, vectors.dtype)
    two = vectors.dtype.type(2.0)
    # From the top, rows meet those of lower levels; from the bottom, those of higher ones.
    for upward in (False, True):
        count[:] = 0.0
        total[:] = 0.0
        entered = 0
        for position in range(n):
            i = order[position] if upward else order[n - 1 - position]
            while entered < n:
                j = order[entered] if upward else order[n - 1 - entered]
                if not (f[j] - _MARGIN < f[i] if upward else f[j] > f[i] - _MARGIN):
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
            if not upward:
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
                product[column] += two * (own * vector[column] - sums[column])


@dataclass(frozen=True)
class PairLossAt:
    """The pair loss at one vector of scores."""

    value: float  # over all pairs, the far field included
    gradient: Floats  # with respect to the scores
    _loss: PairLoss
    _scores: Floats
    _order: Ints

    def hessian_product(self, vectors: Any, out: Any = None) -> Any:
        """Return the (generalized) Hessian times `vectors`, of shape (n,) or (n, s), in their precision.

        A result of shape (n, s) may be written into `out`.
        """
        precision = np.result_type(vectors, np.float32)
        columns = np.ascontiguousarray(vectors.reshape(len(vectors), -1), dtype=precision)
        loss = self._loss
        out = np.empty_like(columns) if out is None else out
        far = (loss.far_weight * (2.0 * (self._scores < _MARGIN))).astype(precision)
        _hessian_product(self._scores, loss.levels, self._order, loss.n_levels, far, columns, out)
        return out.reshape(vectors.shape)


class PairLoss:
    """The loss of a ranking, ``sum over pairs of max(0, 1 - (f_i - f_j)) ** 2``, for fixed levels.

    Parameters
    ----------
    levels : array-like of int, shape (n,)
        The level of every row; a higher level is more nominal.
    far_weight : float
        How many rows the point at infinity counts for. It is below every level and its score is zero (an RBF
        kernel vanishes there), so it adds ``far_weight * sum_i max(0, 1 - f_i) ** 2``. 0 leaves it out.

    Examples
    --------
    One pair, one score short of its margin by a half:

    >>> loss = PairLoss([2, 1])
    >>> at = loss.at(np.array([0.5, 0.0]))
    >>> float(at.value), at.gradient
    (0.25, array([-1.,  1.]))
    """

    def __init__(self, levels: ArrayLike, *, far_weight: float = 0.0) -> None:
        labels = np.asarray(levels)
        if labels.ndim != 1 or labels.size == 0:
            raise ValueError(f"levels must be a non-empty vector, got shape {labels.shape}.")
        if not (math.isfinite(far_weight) and far_weight >= 0):
            raise ValueError(f"far_weight must be finite and >= 0, got {far_weight!r}.")
        # Only the order of levels matters; 1..m without gaps keeps the trees small.
        distinct, compact = np.unique(labels, return_inverse=True)
        self.levels: Ints = compact.astype(np.int64) + 1
        self.n_levels = int(distinct.size)
        self.far_weight = float(far_weight)

    @property
    def n_pairs(self) -> float:
        """Number of pairs in the loss; the point at infinity counts `far_weight` times."""
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
        # Only differences count for the pairs: centred scores keep squares small. The scores themselves
        # decide which pairs are active.
        value = _hinge_sums(f, f - f.mean(), self.levels, order, self.n_levels, gradient)
        if self.far_weight:
            short = np.maximum(0.0, _MARGIN - f)
            value += self.far_weight * float((short**2).sum())
            gradient -= self.far_weight * (2.0 * short)
        return PairLossAt(value, gradient, self, f, order)
