"""Raw rows to rows whose columns weigh alike: an affine map of each column, learned from nominal rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from rankad._base.arrays import LARGEST, Floats

# The interquartile range of a normal distribution, in standard deviations.
_NORMAL_IQR = 1.3489795003921634
# Rows are scaled so many numbers at a time.
_PIECE = 2**15
# Columns whose standard deviations differ by no more than this factor may well be in one unit.
_ALIKE = 4.0


class Scaling(NamedTuple):
    """A column-wise map ``(x - center) / scale``, both of shape (d,)."""

    center: Floats
    scale: Floats  # never zero

    def apply(self, rows: Floats) -> Floats:
        """Return the scaled rows; values whose squares would overflow are cut off at `LARGEST`."""
        scaled = np.empty_like(rows, dtype=np.float64)
        # In pieces that stay in the cache from one step to the next.
        step = max(1, _PIECE // max(1, rows.shape[1]))
        with np.errstate(over="ignore"):
            for begin in range(0, len(rows), step):
                part = scaled[begin : begin + step]
                np.subtract(rows[begin : begin + step], self.center, out=part)
                np.divide(part, self.scale, out=part)
                np.clip(part, -LARGEST, LARGEST, out=part)
        return scaled


def fit_scaling(rows: Floats, method: str | None, n_all: int | None = None) -> Scaling:
    """Learn a scaling from nominal rows.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    method : {"standard", "robust"} or None
        Mean and standard deviation; median and interquartile range (as multiples of a normal
        distribution's, and the standard deviation where the range is zero); or no change. A column that does
        not vary is scaled as if one of the rows had differed by `notable_change`: so a value that no row has
        is as far away as one that a single row has, and leaving that row out hardly changes what is far.
    n_all : int, optional
        How many rows there are in all, where some are left out.

    Examples
    --------
    >>> rows = np.array([[0.0, 7.0], [2.0, 7.0], [4.0, 7.0]])
    >>> fit_scaling(rows, "standard").apply(rows)
    array([[-1.22474487,  0.        ],
           [ 0.        ,  0.        ],
           [ 1.22474487,  0.        ]])
    """
    wild = np.flatnonzero(np.abs(rows).max(axis=0) > LARGEST)
    if wild.size:
        raise ValueError(
            f"Column {wild[0]} holds values too large to scale (up to "
            f"{np.abs(rows[:, wild[0]]).max():.3g}): their squares overflow. Divide it by a constant, "
            f"or take its logarithm, before fitting."
        )
    d = rows.shape[1]
    if method is None:
        return Scaling(np.zeros(d), np.ones(d))
    if method not in ("standard", "robust"):
        raise ValueError(f"scaling must be 'standard', 'robust' or None, got {method!r}.")
    standard = StandardScaler().fit(rows)
    center, deviation = standard.mean_, np.sqrt(standard.var_)
    # Where a deviation is no more than rounding, the scaler puts one in its place.
    still = (deviation == 0) | (standard.scale_ != deviation)
    scale = np.where(still, notable_change(rows[0]) / np.sqrt(n_all or len(rows)), deviation)
    if method == "robust":
        low, center, high = np.percentile(rows, [25, 50, 75], axis=0)
        spread = (high - low) / _NORMAL_IQR
        scale = np.where((spread > 0) & ~still, spread, scale)
    return Scaling(np.asarray(center, dtype=np.float64), np.asarray(scale, dtype=np.float64))


def notable_change(values: Floats) -> Floats:
    """Return how much of a change counts in columns that do not vary.

    It is the value itself, or one where that is zero. Nothing in the rows tells, but so an indicator that was
    never set and one that was always set count alike.

    Examples
    --------
    >>> notable_change(np.array([0.0, -5.0, 1e-3]))
    array([1.e+00, 5.e+00, 1.e-03])
    """
    return np.where(values == 0, 1.0, np.abs(values))


def alike_in_spread(rows: Floats) -> bool:
    """Tell whether the largest standard deviation of a column is at most four times the least.

    Columns that do not vary have no say.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0, 7.0], [1.0, 3.0, 7.0]])
    >>> alike_in_spread(rows), alike_in_spread(rows * [1, 2, 1])
    (True, False)
    """
    # Whether values are too large to be scaled at all is for `fit_scaling` to say.
    with np.errstate(over="ignore", invalid="ignore"):
        spreads, means = rows.std(axis=0), rows.mean(axis=0)
    # Sums of so many numbers may be off by as many last bits: below that, a spread is rounding.
    varying = spreads[spreads > len(rows) * np.finfo(np.float64).eps * np.abs(means)]
    return bool(varying.size == 0 or varying.max() <= _ALIKE * varying.min())
