"""P-values to alarms: at a level, or with a bound on the false discovery rate."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Bools, Floats
from rankad._base.checks import check_unit

__all__ = ["PValueCounts", "alarms_at_level", "benjamini_hochberg"]


def alarms_at_level(p_values: ArrayLike, alpha: float) -> Bools:
    """Return True for every row whose p-value is at most alpha.

    Of all nominal rows, a share of about alpha is an alarm, however many rows there are.

    Parameters
    ----------
    p_values : array-like of shape (n,)
    alpha : float
        The false-alarm rate, strictly between 0 and 1.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> alarms_at_level([0.05, 0.2, 0.01], 0.05)
    array([ True, False,  True])
    """
    return _checked(p_values) <= check_unit("alpha", alpha)


def benjamini_hochberg(p_values: ArrayLike, q: float) -> Bools:
    """Return True for the alarms of which a share of at most q is expected to be false.

    Benjamini and Hochberg (1995): of m p-values in ascending order, all up to the last with
    ``p_(k) <= q k / m`` are alarms. P-values of rows that were compared with the same nominal rows depend on
    one another, but positively, and the bound holds for those too, where the nominal rows had no part in
    training (Bates et al. 2023).

    Parameters
    ----------
    p_values : array-like of shape (m,)
        All of them: the rule depends on how many there are.
    q : float
        The false discovery rate, strictly between 0 and 1.

    Returns
    -------
    ndarray of bool, shape (m,)

    Examples
    --------
    >>> benjamini_hochberg([0.001, 0.03, 0.04, 0.9], 0.06)
    array([ True,  True,  True, False])
    >>> benjamini_hochberg([0.03, 0.04, 0.5, 0.9], 0.06)
    array([False, False, False, False])
    """
    values, rate = _checked(p_values), check_unit("q", q)
    m = values.size
    ordered = np.sort(values)
    # p m / k <= q and not p <= q k / m: so a single p-value is compared with q itself, as at a level.
    passing = np.flatnonzero(ordered * m / np.arange(1, m + 1) <= rate)
    if passing.size == 0:
        return np.zeros(m, dtype=bool)
    return np.asarray(values <= ordered[passing[-1]])


class PValueCounts:
    """How often each p-value came, batch by batch: `benjamini_hochberg` for more rows than memory holds.

    P-values are shares of n nominal rows, so that there are no more than n + 1 different ones.

    Examples
    --------
    >>> counts = PValueCounts()
    >>> counts.add([0.03, 0.9])
    >>> counts.add([0.001, 0.04])
    >>> counts.level(0.06)
    0.04
    """

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()

    def add(self, p_values: ArrayLike) -> None:
        """Count more p-values."""
        different, n = np.unique(_checked(p_values), return_counts=True)
        self._counts.update(dict(zip(different.tolist(), n.tolist(), strict=True)))

    def level(self, q: float) -> float:
        """Return the largest p-value that `benjamini_hochberg` makes an alarm of; 0 where there is none."""
        rate = check_unit("q", q)
        values = np.array(sorted(self._counts))
        # Of equal p-values the last has the best chance.
        ranks = np.cumsum([self._counts[value] for value in values.tolist()])
        passing = np.flatnonzero(values * self._counts.total() / ranks <= rate)
        return float(values[passing[-1]]) if passing.size else 0.0


def _checked(p_values: ArrayLike) -> Floats:
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"p_values must be one-dimensional, got shape {values.shape}.")
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if wrong.size:
        raise ValueError(
            f"p_values must lie between 0 and 1, got {values[wrong[0]]:g} at position {wrong[0]}; pass what "
            f"a detector's p_values() returns."
        )
    return values
