"""The law of the realised false-alarm rate, given n calibration rows that had no part in training.

A row is an alarm at alpha if it scores below the r-th smallest of n calibration scores,
``r = floor(alpha (n + 1))``. Over calibration samples, the share of normal rows below that threshold is the
r-th smallest of n uniform variables, a Beta(r, n + 1 - r) variable; with ties it is smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betaincinv, gammaln, xlogy

from rankad._base.arrays import Floats, Ints
from rankad._base.checks import check_choice, check_p_values, check_unit, is_count
from rankad.stages.calibration import n_attainable, worth_of

Method = Literal["exact", "simes", "dkw"]
METHODS = ("exact", "simes", "dkw")
# The exact band is computed at all of the first and last ranks, and between at ranks that grow by a factor.
_ALL_RANKS, _RANK_FACTOR, _COARSE_FACTOR, _MANY_ROWS = 200, 1.02, 1.05, 10_000
# To how much the logarithm of the common level is solved for.
_PRECISION = 0.01
# Counts less likely than this relative to the likeliest are dropped.
_NEGLIGIBLE = 1e-20


def beta_upper(r: ArrayLike, n: float, delta: float, worth: float = 1.0) -> Floats:
    """Return what the realised rate exceeds with probability delta, if the threshold has rank r of n.

    Examples
    --------
    With one calibration row and r = 1, the rate is uniform.

    >>> beta_upper(1, 1, 0.05)
    array(0.95)
    """
    rank = np.asarray(r, dtype=np.float64)
    inside = (rank > 0) & (rank < n + 1)
    a, b = np.where(inside, worth * rank, 1.0), np.where(inside, worth * (n + 1 - rank), 1.0)
    # By the complement, which is precise where the bound is close to one.
    return np.asarray(np.where(inside, 1 - betaincinv(b, a, delta), np.where(rank > 0, 1.0, 0.0)))


@lru_cache(maxsize=64)
def simultaneous_upper(n: int, delta: float, method: Method = "exact") -> Floats:
    """Return bounds on the realised rates of all n thresholds that hold together.

    With probability at least ``1 - delta`` over calibration samples, for all r at once, at most a share
    ``bounds[r - 1]`` of normal rows scores below the r-th smallest calibration score.

    Parameters
    ----------
    n : int
        Calibration rows.
    delta : float
        The probability with which any of the bounds may fail.
    method : {"exact", "simes", "dkw"}
        "exact": Beta quantiles of one common level for all ranks, such that the band holds with probability
        1 - delta exactly (Noé's recursion). Its width follows the spread of the rate everywhere.
        "simes": the generalized Simes inequality with k = n / 2 (Bates, Candès, Lei, Romano, Sesia 2023);
        somewhat tighter at rates of a few per cent, and useless above one half.
        "dkw": ``(r - 1) / n + sqrt(log(1 / delta) / 2n)``, the inequality of Dvoretzky, Kiefer and Wolfowitz
        with Massart's constant; the widest at small rates.

    Returns
    -------
    ndarray of shape (n,)
        Ascending, at most 1. Cached: treat it as read-only.

    Examples
    --------
    >>> for method in ("exact", "simes", "dkw"):
    ...     print(method, simultaneous_upper(1000, 0.1, method)[9].round(4))
    exact 0.0208
    simes 0.017
    dkw 0.0429
    """
    check_choice("method", method, METHODS)
    ranks = np.arange(1, n + 1)
    if method == "dkw":
        if delta > 0.5:
            raise ValueError(f"delta must be at most 0.5 for method='dkw', got {delta!r}.")
        bounds = np.minimum((ranks - 1) / n + math.sqrt(math.log(1 / delta) / (2 * n)), 1.0)
    elif method == "simes":
        bounds = _simes(n, delta)
    else:
        nodes = _nodes(n)

        def missed(log_level: float) -> float:
            return _stay_below(n, nodes, beta_upper(nodes, n, math.exp(log_level))) - (1 - delta)

        log_level = log_delta = math.log(delta)
        if n > 1:
            log_level = brentq(missed, log_delta - math.log(n) - 1, log_delta, xtol=_PRECISION) - _PRECISION
        # Between two nodes, the bound of the later one holds, since thresholds ascend.
        bounds = beta_upper(nodes, n, math.exp(log_level))[np.searchsorted(nodes, ranks)]
    bounds.flags.writeable = False
    return bounds


def conditional_p_values(
    p_values: ArrayLike, n: int, delta: float = 0.1, method: Method = "exact", worth: float = 1.0
) -> Floats:
    """Return p-values that are valid given the calibration rows, except with probability delta.

    An ordinary p-value is valid on average over calibration samples. With probability 1 - delta over them,
    these are valid for the sample at hand: of all normal rows, at most a share t has a value of at most t,
    for every t. So any method for independent p-values may be used on them, for as many rows as there are.

    Parameters
    ----------
    p_values : array-like
        As `p_values` of a detector returns them: multiples of ``1 / (n + 1)``.
    n : int
        Calibration rows, ``detector.calibration_.scores.size``.
    delta : float
    method : {"exact", "simes", "dkw"}
        See `simultaneous_upper`.
    worth : float
        For how many independent rows each counts, `Calibration.worth`. Below 1 nothing is exact.

    Returns
    -------
    ndarray of the same shape

    Examples
    --------
    >>> conditional_p_values([1 / 1001, 10 / 1001, 1.0], 1000).round(4)
    array([0.0058, 0.0208, 1.    ])
    """
    if not is_count(n) or n < 1:
        raise ValueError(
            f"n must be the number of calibration rows, an integer >= 1, got {n!r}; it is "
            f"detector.calibration_.scores.size."
        )
    values = np.asarray(p_values, dtype=np.float64)
    check_p_values(values)
    counted = effective_rows(n, worth)
    # A p-value that is a multiple of 1/(n+1) but for rounding keeps its rank.
    ranks = np.ceil(values * (counted + 1) - 1e-6).astype(np.int64)
    bounds = np.append(simultaneous_upper(counted, delta, method), 1.0)
    return np.asarray(bounds[np.clip(ranks, 1, counted + 1) - 1])


def effective_rows(n: int, worth: float) -> int:
    """Return how many independent calibration rows have the spread of n rows of the given worth."""
    return n if worth == 1 else max(1, math.floor(worth * (n + 1)) - 1)


def rows_needed(alpha: float, delta: float, tolerance: float, calibration: str = "split") -> int:
    """Return how many calibration rows keep the realised false-alarm rate at ``alpha + tolerance`` or below.

    Parameters
    ----------
    alpha : float
        The false-alarm rate asked for.
    delta : float
        The probability, over calibration samples, with which the realised rate may be higher.
    tolerance : float
        How far above alpha it may be: 0.002 allows 1.2 % where 1 % was asked for.
    calibration : {"split", "cross-fit", "leave-one-out"}
        Rows that are left out rather than kept out count for a third each, which is an approximation.

    Returns
    -------
    int
        With this many rows or more, alarms at alpha are possible and the bound holds.

    Examples
    --------
    >>> rows_needed(0.01, 0.05, 0.002)
    7201
    >>> rows_needed(0.01, 0.05, 0.01)
    313
    """
    for name, value in (("alpha", alpha), ("delta", delta), ("tolerance", tolerance)):
        check_unit(name, value)
    worth = worth_of(calibration)
    if not worth or calibration not in ("split", "cross-fit", "leave-one-out"):
        raise ValueError(
            f"calibration must be 'split', 'cross-fit' or 'leave-one-out', got {calibration!r}; for other "
            f"kinds no number of rows is known."
        )
    limit = alpha + tolerance
    if limit >= 1:
        return _first_row(1, alpha)

    def holds(n: int) -> bool:
        r = n_attainable(n, alpha)
        return r >= 1 and float(beta_upper(r, n, delta, worth)) <= limit

    # All n of one rank r follow one another, and the bound falls along them: the first is the worst. From
    # rank to rank it may rise, since r / (n + 1) comes nearer to alpha at some ranks than at others.
    rank = _safe_rank(alpha, delta, limit, worth)
    while rank > 1 and holds(_first_row(rank - 1, alpha)):
        rank -= 1
    start = _first_row(rank - 1, alpha) if rank > 1 else _first_row(rank, alpha) - 1
    return _bisect(holds, start, _first_row(rank, alpha))


def _safe_rank(alpha: float, delta: float, limit: float, worth: float) -> int:
    """Return a rank from which on the bound holds for good, not much above the least.

    If alpha were a rank over n + 1 exactly, the bound would be higher, and fall after it has risen at most.
    """

    def fails(rank: float) -> bool:
        return float(beta_upper(rank, rank / alpha - 1, delta, worth)) > limit

    ranks = np.exp(np.arange(0.0, 8.0, 0.02))
    failing = np.flatnonzero(beta_upper(ranks, ranks / alpha - 1, delta, worth) > limit)
    if not failing.size:
        return 1
    if failing[-1] < ranks.size - 1:
        return math.ceil(float(ranks[failing[-1] + 1]))
    high = math.ceil(float(ranks[-1]))
    while fails(high):
        high *= 2
    return _bisect(lambda rank: not fails(rank), high // 2, high)


def _first_row(r: int, alpha: float) -> int:
    """Return the least n with which r of the p-values that there can be are at most alpha."""
    n = max(1, math.ceil(r / alpha) - 3)
    while n_attainable(n, alpha) < r:
        n += 1
    return n


def _bisect(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the least integer above `low` for which a monotone condition holds; it does at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _simes(n: int, delta: float) -> Floats:
    """Return the bounds of the generalized Simes inequality: Bates et al. 2023, equation 13."""
    k = max(1, n // 2)
    i = np.arange(1, n + 1)
    # i (i - 1) ... (i - k + 1) over n (n - 1) ... (n - k + 1), by logarithms; zero for i < k.
    logs = np.full(n, -np.inf)
    usable = i[i >= k]
    logs[usable - 1] = (
        gammaln(usable + 1) - gammaln(usable - k + 1) - gammaln(n + 1) + gammaln(n - k + 1)
    ) / k
    complement = delta ** (1 / k) * np.exp(logs)
    # 1 - b_{n + 1 - i} is the i-th of these.
    return np.asarray(1 - complement[::-1])


def _nodes(n: int) -> Ints:
    """Return the ranks at which the exact band is computed, the last one included."""
    factor = _RANK_FACTOR if n <= _MANY_ROWS else _COARSE_FACTOR
    first, half = list(range(1, min(n, _ALL_RANKS) + 1)), (n + 1) // 2
    while first[-1] < half:
        first.append(math.ceil(first[-1] * factor))
    kept = np.array([rank for rank in first if rank <= half])
    # As fine at the other end, whose bounds are the lower ones of small rates.
    return np.union1d(kept, n + 1 - kept)


def _stay_below(n: int, ranks: Ints, bounds: Floats) -> float:
    """Return the probability that the r-th smallest of n uniforms is at most its bound, for all these ranks.

    Noé's recursion along the bounds for the number of uniforms below each, as the number of points of a
    Poisson process of rate n given that there are n up to 1: convolutions in the place of binomial sums.
    """
    first, likely, before = 0, np.ones(1), 0.0
    for rank, bound in zip([*ranks.tolist(), n], [*bounds.tolist(), 1.0], strict=True):
        mean = n * max(bound - before, 0.0)
        before = bound
        spread = 10 * math.sqrt(mean) + 40
        least = max(0, math.floor(mean - spread))
        steps = np.arange(least, math.ceil(mean + spread) + 1)
        step = np.exp(xlogy(steps, mean) - mean - gammaln(steps + 1))
        likely, first = _convolve(likely, step), first + least
        # At least `rank` uniforms must be below the bound, and no more than n.
        low, high = max(0, rank - first), min(likely.size, n + 1 - first)
        likely, first = likely[low:high], first + low
        if not likely.size:
            return 0.0
        kept = np.flatnonzero(likely > _NEGLIGIBLE * likely.max())
        if not kept.size:
            return 0.0
        likely, first = likely[kept[0] : kept[-1] + 1], first + int(kept[0])
    # Only all n of them are left.
    return float(likely[0] / math.exp(n * math.log(n) - n - float(gammaln(n + 1))))


def _convolve(first: Floats, second: Floats) -> Floats:
    if min(first.size, second.size) < 64:
        return np.convolve(first, second)
    size = first.size + second.size - 1
    length = 1 << (size - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(first, length) * np.fft.rfft(second, length), length)
    return np.maximum(product[:size], 0.0)
