"""Alarms over a batch of rows: how many are false, on average and with confidence.

P-values of rows that were compared with the same calibration rows depend on one another. The dependence is
positive (PRDS: Bates, Candès, Lei, Romano, Sesia 2023, theorem 2) where calibration rows had no part in
training, which is what the rule of Benjamini and Hochberg and the inequality of Simes need.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Bools, Floats
from rankad._base.checks import check_p_values, check_unit


class FalseAlarmCount(NamedTuple):
    """A bound on the false alarms among rows that were picked.

    Attributes
    ----------
    n_rows : int
        Rows that were picked.
    most_false : int
        At most so many of them are normal rows.
    least_true : int
        At least so many of them are anomalies: the others.
    share : float
        ``most_false / n_rows``; 0 where none were picked.
    """

    n_rows: int
    most_false: int
    least_true: int
    share: float


def normal_share(p_values: ArrayLike, threshold: float = 0.5) -> float:
    """Estimate the share of normal rows by the p-values above a threshold (Storey 2002); at most 1.

    ``(1 + #{p > threshold}) / (m (1 - threshold))``.

    Examples
    --------
    >>> normal_share([0.001, 0.002, 0.3, 0.9])
    1.0
    >>> normal_share([0.001] * 6 + [0.4, 0.9])
    0.5
    """
    values, level = checked_p_values(p_values), check_unit("threshold", threshold)
    if not values.size:
        return 1.0
    return min(1.0, float((1 + np.count_nonzero(values > level)) / (values.size * (1 - level))))


def storey(
    p_values: ArrayLike, q: float, *, threshold: float = 0.5, n_calibration: int | None = None
) -> Bools:
    """Return True for the alarms of which a share of at most q is expected to be false.

    The rule of Benjamini and Hochberg with q divided by an estimate of the share of normal rows, so that it
    finds more where many rows are anomalies. With few anomalies their own rule
    (`scipy.stats.false_discovery_control`) is as good, and holds more widely. This one holds for independent
    p-values (Storey, Taylor, Siegmund 2004). It also holds for p-values that share calibration rows, if these
    had no part in training and `threshold` is a value that the p-values can take (Marandon, Lei, Mary,
    Roquain 2024); give `n_calibration` for that. For cross-fitted p-values nothing is proven.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        All of them: the rule depends on how many there are.
    q : float
        The false discovery rate, strictly between 0 and 1.
    threshold : float
        P-values above it tell the share of normal rows; none above it is an alarm.
    n_calibration : int, optional
        Calibration rows; `threshold` is rounded down to a multiple of ``1 / (n_calibration + 1)``.

    Returns
    -------
    ndarray of bool, shape (m,)

    Examples
    --------
    >>> storey([0.001, 0.03, 0.04, 0.06, 0.07, 0.9], 0.06)
    array([ True,  True,  True,  True,  True, False])
    """
    values, rate, level = checked_p_values(p_values), check_unit("q", q), check_unit("threshold", threshold)
    if n_calibration is not None:
        level = max(1, int(level * (n_calibration + 1))) / (n_calibration + 1)
    m = values.size
    if not m:
        return np.zeros(0, dtype=bool)
    # Not `normal_share`, which is cut off at one: the estimate may exceed it.
    share = (1 + np.count_nonzero(values > level)) / (m * (1 - level))
    ordered = np.sort(values)
    passing = np.flatnonzero((ordered * share * m / np.arange(1, m + 1) <= rate) & (ordered <= level))
    return np.asarray(values <= ordered[passing[-1]]) if passing.size else np.zeros(m, dtype=bool)


class FalseAlarmCounter:
    """Bounds the number of false alarms among any rows of a batch, picked after looking at everything.

    All bounds hold together with probability ``1 - delta``, however often and for whatever reason rows are
    picked: the twenty smallest p-values, those of one machine, or those an expert found odd. Closed testing
    with the inequality of Simes (Goeman and Solari 2011; with linear thresholds also Blanchard, Neuvial,
    Roquain 2020). It needs p-values that are positively dependent: those of calibration rows that had no part
    in training are. For cross-fitted p-values it is an approximation.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        Those of all rows of the batch, not only of interesting ones.
    delta : float
        The probability with which any bound may fail.

    Attributes
    ----------
    most_normal : int
        A bound on the number of normal rows in the whole batch (Hommel's value).

    Examples
    --------
    >>> import numpy as np
    >>> p_values = np.r_[np.full(20, 0.0005), np.linspace(0.05, 1.0, 80)]
    >>> counter = FalseAlarmCounter(p_values, delta=0.05)
    >>> counter.bound(p_values < 0.01)
    FalseAlarmCount(n_rows=20, most_false=0, least_true=20, share=0.0)
    >>> counter.bound([0, 1, 2, 98, 99])
    FalseAlarmCount(n_rows=5, most_false=2, least_true=3, share=0.4)
    """

    def __init__(self, p_values: ArrayLike, delta: float = 0.05) -> None:
        self.p_values: Floats = checked_p_values(p_values)
        self.delta = check_unit("delta", delta)
        self._ordered = np.sort(self.p_values)
        # If the i largest p-values pass the test of Simes, so do the i - 1 largest.
        low, high = 0, self.p_values.size + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._passes(middle) else (low, middle)
        self.most_normal = low

    def bound(self, rows: ArrayLike) -> FalseAlarmCount:
        """Bound the number of normal rows among these, given as a mask or by their positions."""
        given = np.asarray(rows)
        # Of repeated positions each counts once.
        chosen = given if given.dtype == bool else np.unique(given.astype(np.int64))
        m = self.p_values.size
        inside = given.shape == (m,) if given.dtype == bool else bool(((chosen >= -m) & (chosen < m)).all())
        if not inside:
            raise ValueError(
                f"rows must be a mask of {m} values or positions from 0 to {m - 1}, one for each p-value; "
                f"got {given!r}."
            )
        picked = np.sort(self.p_values[chosen])
        n = picked.size
        if not n:
            return FalseAlarmCount(0, 0, 0, 0.0)
        k = np.arange(1, n + 1)
        if self.most_normal:
            above = n - np.searchsorted(picked, self.delta * k / self.most_normal, side="right")
            most = min(n, int((above + k - 1).min()))
        else:
            most = 0
        return FalseAlarmCount(n, most, n - most, most / n)

    def _passes(self, i: int) -> bool:
        """Tell whether the test of Simes does not reject that the i rows of largest p-values are normal."""
        largest = self._ordered[self.p_values.size - i :]
        return bool((largest * i > self.delta * np.arange(1, i + 1)).all())


def checked_p_values(p_values: ArrayLike) -> Floats:
    """Return p-values as an array of one dimension, or raise if they are not p-values."""
    try:
        values = np.asarray(p_values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"p_values must be numbers from 0 to 1, but {error}; pass what a detector's p_values() returns."
        ) from error
    if values.ndim != 1:
        raise ValueError(
            f"p_values must be a one-dimensional array, got one of shape {values.shape}; pass what a "
            f"detector's p_values() returns."
        )
    check_p_values(values)
    return values
