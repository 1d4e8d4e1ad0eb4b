"""Nominal scores to p-values, thresholds, and what can be promised about false alarms.

A new row's p-value is ``(1 + #{nominal scores <= its score}) / (n + 1)``. Where the nominal scores come from
rows that had no part in training, a fresh nominal row has ``P(p <= alpha) <= alpha`` for every alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from rankad._base.arrays import Floats

# For the spread of the realised rate, a row left out counts for so many that had no part in training.
_WORTH_LEFT_OUT = 1 / 3
# Scores left out are up to a millionth lower than those they tie with.
TIED_WITHIN = 2e-6
# With a larger share of tied scores left out, that spread is not known.
_MOST_TIED = 0.1

Kind = Literal["split", "cross-fit", "leave-one-out", "in-sample"]

EXACT_BETA = (
    "Beta law of order statistics: the calibration rows are independent of training, so the realised "
    "false-alarm rate is at most a Beta(r, n + 1 - r) variable, r = floor(alpha (n + 1))"
)
NO_ALARM = "alpha is below 1 / (n + 1), the smallest p-value: no row raises an alarm"
APPROXIMATE_BETA = (
    "Beta law of order statistics for a third of the rows: scores of rows left out depend on one another, "
    "and realised rates vary more than if one fixed scorer had made them. An approximation, not a "
    "theorem. calibration='split' gives the exact law"
)
UNKNOWN = (
    "not known: {n_tied} of {n} scores of rows left out are tied with others. The realised rate then moves "
    "in steps, which the Beta law does not describe. calibration='split' gives an exact bound"
)

TRIMMED = (
    ". The {n_trimmed} rows trimmed count as nominal rows of one region, in which every row is an alarm: so "
    "it is at worst, and if they were anomalies, there are fewer false alarms. That region has up to "
    "{mass:.3g} of all nominal rows, by the law of the sparsest ball around any of the rows"
)
ADDED = ". The {n_trimmed} rows trimmed are added as their share"


class FalseAlarmBound(NamedTuple):
    """What is promised about the realised false-alarm rate.

    Attributes
    ----------
    bound : float
        With probability at least ``1 - delta`` over samples of normal rows, a share of at most `bound` of all
        fresh normal rows raises an alarm at level alpha; an approximation where `exact` is False. 1 promises
        nothing.
    alpha, delta : float
        As asked.
    exact : bool
        Whether a theorem covers this detector as fitted.
    theorem : str
        Which theorem or approximation, and how its quantities were bounded.

    Examples
    --------
    >>> bound = beta_bound(Calibration.from_scores(np.arange(999.0), "split"), alpha=0.05, delta=0.05)
    >>> round(bound.bound, 4), bound.exact
    (0.0618, True)
    """

    bound: float
    alpha: float
    delta: float
    exact: bool
    theorem: str


@dataclass(frozen=True)
class Calibration:
    """Scores of normal rows, with which new scores are compared to become p-values.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Ascending.
    kind : {"split", "cross-fit", "leave-one-out", "in-sample"}
        Whether the rows were kept out of training (split), were scored by models that had not seen them
        (cross-fit, leave-one-out), or trained the model that scored them (in-sample).

    Examples
    --------
    >>> calibration = Calibration.from_scores([0.3, 0.1, 0.2], "split")
    >>> calibration.p_values([0.05, 0.2, 0.9])
    array([0.25, 0.75, 1.  ])
    >>> calibration.threshold(0.5)
    0.2
    >>> calibration.n_below(0.5), calibration.worth
    (2, 1.0)
    """

    scores: Floats
    kind: Kind

    @classmethod
    def from_scores(cls, scores: ArrayLike, kind: Kind) -> Calibration:
        """Sort and keep the scores of normal rows."""
        values = np.sort(np.asarray(scores, dtype=np.float64))
        if values.size == 0:
            raise ValueError("scores must hold at least one nominal score.")
        if np.isnan(values[-1]):
            raise ValueError("scores must be numbers, got NaN.")
        return cls(values, kind)

    @property
    def worth(self) -> float:
        """How many independent rows each counts for in the spread of the realised rate; 0 if not known."""
        return worth_of(self.kind)

    def p_values(self, scores: ArrayLike) -> Floats:
        """Return ``(1 + #{normal scores <= score}) / (n + 1)``: paper, Algorithm 1, step 3(b)."""
        values = np.asarray(scores, dtype=np.float64)
        shares = _shares_below()(self.scores, np.ascontiguousarray(values).reshape(-1))
        return np.asarray(shares.reshape(values.shape))

    def smoothed(self, scores: ArrayLike, variates: ArrayLike) -> Floats:
        """Return p-values in which ties are broken by a number between 0 and 1 that belongs to each row.

        ``(#{normal scores < score} + u (1 + #{normal scores = score})) / (n + 1)``: on fresh normal rows
        they are uniform even where scores tie. Scores that differ by a few millionths count as tied.

        Examples
        --------
        >>> calibration = Calibration.from_scores([0.1, 0.2, 0.2], "split")
        >>> calibration.smoothed([0.2, 0.2, 0.9], [0.0, 1.0, 0.5])
        array([0.25 , 1.   , 0.875])
        """
        values = np.asarray(scores, dtype=np.float64)
        below = np.searchsorted(self.scores, values - TIED_WITHIN, side="left")
        n_tied = np.searchsorted(self.scores, values + TIED_WITHIN, side="right") - below
        return np.asarray((below + np.asarray(variates) * (1 + n_tied)) / (self.scores.size + 1))

    def n_below(self, alpha: float) -> int:
        """Return r, the number of distinct p-values ``1/(n+1), 2/(n+1), ...`` that are ``<= alpha``."""
        return n_attainable(self.scores.size, alpha)

    def threshold(self, alpha: float) -> float:
        """Return t such that ``score < t`` exactly when the p-value is ``<= alpha``; -inf if it never is."""
        r = self.n_below(alpha)
        if r == 0:
            return -math.inf
        if r > self.scores.size:
            return math.inf
        return float(self.scores[r - 1])


def worth_of(kind: str) -> float:
    """Return `Calibration.worth` of a kind of calibration."""
    return {"split": 1.0, "in-sample": 0.0}.get(kind, _WORTH_LEFT_OUT)


def n_attainable(n: int, alpha: float) -> int:
    """Return how many of the p-values that n nominal scores make, ``1/(n+1)`` to 1, are ``<= alpha``."""
    r = min(max(math.floor(alpha * (n + 1)), 0), n + 1)
    # What decides is the p-value as it is rounded, so that alarms and p-values always agree.
    while r < n + 1 and (r + 1) / (n + 1) <= alpha:
        r += 1
    while r > 0 and r / (n + 1) > alpha:
        r -= 1
    return r


@cache
def _shares_below() -> Any:
    # Kept, since to import it again would take as long as to search.
    from rankad._loops.counts import shares_below

    return shares_below


def beta_bound(
    calibration: Calibration, alpha: float, delta: float, n_trimmed: int = 0, n_samples: int = 0
) -> FalseAlarmBound:
    """Bound the realised false-alarm rate by the law of the r-th smallest of n independent scores.

    Rows that were trimmed, of `n_samples` in all, are at worst all the nominal rows that fell into one
    region, in which every row is now an alarm. They are those that looked sparsest, so the region may hold
    more of all nominal rows than their share. For a ball around one row that holds t rows in all, the share
    that it holds of all nominal rows is at most a Beta(t, n_samples - t) variable; half of delta goes to the
    sparsest of these balls.
    """
    n, r = calibration.scores.size, calibration.n_below(alpha)
    if r == 0:
        return FalseAlarmBound(0.0, alpha, delta, True, NO_ALARM)
    split = calibration.kind == "split"
    n_tied = 0 if split else n - np.unique(calibration.scores).size
    if n_tied > _MOST_TIED * n:
        return FalseAlarmBound(1.0, alpha, delta, False, UNKNOWN.format(n_tied=n_tied, n=n))
    theorem, mass, left = EXACT_BETA if split else APPROXIMATE_BETA, 0.0, delta
    if n_trimmed:
        left = delta / 2
        mass = float(betaincinv(n_trimmed, n_samples - n_trimmed, 1 - left / n_samples))
        theorem += TRIMMED.format(n_trimmed=n_trimmed, mass=mass)
    worth = 1.0 if split else _WORTH_LEFT_OUT
    rate = 1.0 if r > n else float(betaincinv(worth * r, worth * (n + 1 - r), 1 - left))
    # The law is that of the rows outside the region.
    bound = rate * (1 - mass) + mass
    return FalseAlarmBound(bound, alpha, delta, split and not n_trimmed, theorem)


def covering_bound(
    calibration: Calibration,
    alpha: float,
    delta: float,
    norm: float,
    n_kernels: int | None = 1,
    n_trimmed: int = 0,
) -> FalseAlarmBound:
    """Bound the realised false-alarm rate of an in-sample calibration: the paper's Theorem 7.

    With probability ``1 - delta``, for every g of the class and every m,
    ``P{g(x) < g^(m) - 2 gamma} <= (m - 1) / n + (2 / n) (k + 1 + log2(n / delta))`` with
    ``k = ceil(log2 N(gamma, F, 2n))`` (the logarithms are to base 2 in its proof). We take the class of all g
    in the RKHS with norm at most A, and Zhang's bound for it (2002, Theorem 4, kernel at most one):
    ``log2 N <= 36 (A / gamma)^2 log2(2 ceil(4 A / gamma + 2) 2n + 1)``. A is the power of two above g's norm,
    and gamma the best of a fixed grid; delta is shared out over both choices.

    `norm` is that of g, and `n_kernels` how many kernels, fixed beforehand, there were to choose from: delta
    is shared out over them too. None says that the scorer is not such a g: the bandwidth or the scaling of
    columns comes from the rows, or the far field is continued. The theorem does not cover that, and the bound
    is not marked as exact. The share of `n_trimmed` rows left out as suspects is added.
    """
    scores, n = calibration.scores, calibration.scores.size
    if calibration.n_below(alpha) == 0:
        return FalseAlarmBound(0.0, alpha, delta, True, NO_ALARM)
    threshold = calibration.threshold(alpha)
    doublings = max(1, math.ceil(math.log2(norm)) if norm > 0 else 1)
    radius = 2.0**doublings
    gammas = radius * 2.0 ** -np.arange(0, 12)
    # sum over j of 1 / (j (j + 1)) is one: the radius may depend on the data.
    share = delta / (doublings * (doublings + 1) * gammas.size * (n_kernels or 1))
    best, how = 1.0, "vacuous at every gamma tried: with this norm and this many rows it promises nothing"
    for gamma in gammas:
        ratio = radius / gamma
        k = math.ceil(36 * ratio**2 * math.log2(2 * math.ceil(4 * ratio + 2) * 2 * n + 1))
        m = int(np.searchsorted(scores, threshold + 2 * gamma, side="left")) + 1
        bound = (m - 1) / n + 2 / n * (k + 1 + math.log2(n / share))
        if m <= n and bound < best:
            best, how = bound, f"gamma = {gamma:.3g}, k = {k}"
    theorem = (
        f"the paper's Theorem 7 (covering numbers) for in-sample ranks, k = log2 N bounded by Zhang's "
        f"theorem for the RKHS ball of radius {radius:.4g} (|g| = {norm:.4g}); {how}"
    )
    if n_kernels is None:
        theorem += ". The kernel comes from the rows, or the far field is continued: it does not cover that"
    if n_trimmed:
        best = min(1.0, best + n_trimmed / (n + n_trimmed))
        theorem += ADDED.format(n_trimmed=n_trimmed)
    return FalseAlarmBound(best, alpha, delta, n_kernels is not None and not n_trimmed, theorem)
