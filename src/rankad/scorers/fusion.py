"""Several scores of a row as one: each in its own unit, and the least of them has the most say.

No one way to look at rows is right for all data. To choose one without labels is a bet; a vote is not. A row
is about as abnormal as the part says that finds it most abnormal, and a little less where others disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankad._base.arrays import Floats
from rankad._base.threads import in_blocks
from rankad.scorers.kernel import KernelScorer
from rankad.scorers.mixture import GaussianMixture
from rankad.scorers.nearfield import NearField

# So many units below the middle, scores go on as logarithms: no part is to outvote the others by being
# measured in small units, and yet far rows keep their order.
_REACH = 4.0
# The outermost shares of scores do not count for the unit: a few wild rows are not to decide. Where all the
# others are alike, fewer are left out.
_OUTERMOST = (0.05, 0.01)
# Scores that spread by no more than this share of their size are all alike.
_ALIKE = 1e-9
# Fewer rows than this are not worth a second thread; a block is of so many numbers.
_FEW, _BLOCK = 4_096, 2**16


class Units(NamedTuple):
    """What the scores of parts are measured in, both of shape (p,)."""

    centers: Floats  # median scores
    # Standard deviations, with the outermost twentieths drawn in; zero for a part that tells no rows apart.
    spreads: Floats


def units_of(parts: Floats) -> Units:
    """Learn the units from the scores of nominal rows, of shape (p, n), by parts that had not seen them.

    A part that follows the rows it was made of says wilder things of others, so that its unit is larger, and
    it has less say.
    """
    spreads = np.zeros(len(parts))
    for at, scores in enumerate(parts):
        for share in _OUTERMOST:
            low = np.quantile(scores, share, method="higher")
            high = np.quantile(scores, 1 - share, method="lower")
            inner = np.clip(scores, low, max(low, high))
            spread = float(inner.std())
            if spread > _ALIKE * float(np.abs(inner).max()):
                spreads[at] = spread
                break
    return Units(np.median(parts, axis=1), spreads)


def fuse(parts: Floats, units: Units) -> Floats:
    """Return the soft minimum of scores of shape (p, n), ``-log mean exp(-z)``, each in its units as ``z``.

    Four units below the middle, ``z`` goes on as ``-4 - log(-3 - z)``.

    Examples
    --------
    >>> units = Units(np.array([0.0, 10.0]), np.array([1.0, 5.0]))
    >>> fuse(np.array([[0.0, -1.0, -1e6], [10.0, 10.0, 10.0]]), units).round(2)
    array([  0.  ,  -0.62, -17.12])
    """
    from rankad._loops.soft_minimum import soft_minimum

    fused = np.empty(parts.shape[1])
    soft_minimum(parts, units.centers, units.spreads, _REACH, fused)
    return fused


@dataclass(frozen=True)
class FusedScorer:
    """The scorer of a fitted `RankAD`: the kernel's, or the soft minimum of that and of other parts."""

    kernel: KernelScorer  # what RankSVM has learned
    near: NearField | None = None  # how near the nearest nominal rows are
    mixture: GaussianMixture | None = None  # how likely the row is, by the shape of nominal rows about it
    # Of the parts there are, in this order; None where the kernel is alone, whose score is then the score.
    units: Units | None = None

    @property
    def n_parts(self) -> int:
        """How many parts there are."""
        return 1 + (self.near is not None) + (self.mixture is not None)

    def score(self, rows: Floats, *, n_jobs: int | None = None) -> Floats:
        """Return the scores of rows; each row's depends on that row alone, to the last bit.

        A row that is not all finite numbers scores NaN. `n_jobs` threads change the time taken and nothing
        else.
        """
        if self.units is None:
            return self.kernel.score(rows, n_jobs=n_jobs)
        units = self.units
        scores = np.empty(len(rows))

        def block(begin: int, end: int) -> None:
            scores[begin:end] = fuse(self.parts(rows[begin:end]), units)

        if len(rows) <= _FEW:
            block(0, len(rows))
        else:
            # What parts lay out when they first score is made once, and not by every thread.
            self.parts(rows[:1])
            in_blocks(block, len(rows), max(_FEW, _BLOCK // rows.shape[1]), n_jobs, few=_FEW)
        return scores

    def parts(self, rows: Floats) -> Floats:
        """Return what each part says of rows, of shape (p, n)."""
        # A copy where rows cannot be written to: else all would be compiled once more.
        rows = np.require(rows, np.float64, ["C", "W"])
        scores = np.empty((self.n_parts, len(rows)))
        scores[0] = self.kernel.score(rows)
        others = [part for part in (self.near, self.mixture) if part is not None]
        for at, part in enumerate(others, 1):
            scores[at] = part.score(rows)
        return scores
