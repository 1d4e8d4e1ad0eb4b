"""P-values where new rows come from another mix of the same situations than the calibration rows did."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Floats


def weighted_p_values(
    scores: ArrayLike, weights: ArrayLike, calibration_scores: ArrayLike, calibration_weights: ArrayLike
) -> Floats:
    """Return p-values under covariate shift.

    A weight is how much likelier a row is among normal rows now than it was when the calibration rows were
    drawn, up to a constant. With the true weights, a fresh normal row has a p-value of at most alpha with
    probability at most alpha (Tibshirani, Barber, Candès, Ramdas 2019; Jin, Candès 2023):
    ``(sum of w_i with s_i <= s, + w) / (sum of w_i + w)``. With estimated weights that holds as far as they
    are right. Such p-values need not be positively dependent: decide at a level alpha, not by
    Benjamini-Hochberg.

    Parameters
    ----------
    scores, weights : array-like of shape (m,)
        Of new rows. Higher scores are more normal.
    calibration_scores, calibration_weights : array-like of shape (n,)
        Of calibration rows.

    Returns
    -------
    ndarray of shape (m,), in (0, 1]

    Examples
    --------
    With equal weights they are the ordinary p-values.

    >>> weighted_p_values([0.05, 0.2], [1, 1], [0.3, 0.1, 0.2], [1, 1, 1])
    array([0.25, 0.75])
    """
    new, own = np.asarray(scores, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    known = np.asarray(calibration_scores, dtype=np.float64)
    known_weights = np.asarray(calibration_weights, dtype=np.float64)
    if new.shape != own.shape or known.shape != known_weights.shape or known.ndim != 1 or not known.size:
        raise ValueError(
            f"There must be one weight for each score, and at least one calibration score; got scores of "
            f"shape {new.shape}, weights of {own.shape}, calibration_scores of {known.shape} and "
            f"calibration_weights of {known_weights.shape}."
        )
    for name, each in (("weights", own), ("calibration_weights", known_weights)):
        wrong = each[~(np.isfinite(each) & (each >= 0))]
        if wrong.size:
            raise ValueError(f"{name} must be finite numbers of at least 0, got {wrong.flat[0]:g}.")
    # Only their ratios count. Relative to the largest, sums cannot overflow.
    largest = max(known_weights.max(), own.max(initial=0.0))
    if largest > 0:
        own, known_weights = own / largest, known_weights / largest
    order = np.argsort(known, kind="stable")
    sums = np.r_[0.0, np.cumsum(known_weights[order])]
    below = sums[np.searchsorted(known[order], new, side="right")]
    # A row with weight zero cannot come; without any weight at all nothing is known of it.
    with np.errstate(invalid="ignore"):
        shares = (below + own) / (sums[-1] + own)
    return np.asarray(np.where(np.isfinite(shares), shares, 1.0))


class ShiftWeights(NamedTuple):
    """Estimated weights.

    Attributes
    ----------
    calibration, new : ndarray
        Weights of the calibration rows and of the new rows.
    n_effective : float
        For how many equally weighted calibration rows they count; small where the shift is large.
    """

    calibration: Floats
    new: Floats
    n_effective: float


def shift_weights(calibration: Any, recent: Any, new: Any, *, model: Any = None) -> ShiftWeights:
    """Estimate weights by a classifier that tells recent rows from calibration rows.

    Parameters
    ----------
    calibration : array-like of shape (n, d)
        Calibration rows, or those of their columns that may shift: the product, the season, the load.
    recent : array-like of shape (k, d)
        Rows of now, mostly normal, other than those to be judged.
    new : array-like of shape (m, d)
        Rows to be judged.
    model : scikit-learn classifier, optional
        With `predict_proba`; by default logistic regression on standardized columns, which is right where
        both are Gaussian with the same covariance. Not fitted; it is cloned.

    Returns
    -------
    ShiftWeights

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = shift_weights(rng.normal(size=(500, 1)), rng.normal(1, 1, size=(500, 1)), [[0.0], [2.0]])
    >>> bool(found.new[0] < found.new[1])
    True
    """
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    before, now, judged = (np.asarray(rows, dtype=np.float64) for rows in (calibration, recent, new))
    if any(rows.ndim != 2 or rows.shape[1] != before.shape[-1] for rows in (before, now, judged)):
        raise ValueError(
            f"calibration, recent and new must be arrays of rows with the same columns, got shapes "
            f"{before.shape}, {now.shape} and {judged.shape}."
        )
    default = make_pipeline(StandardScaler(), LogisticRegression())
    fitted = (default if model is None else clone(model)).fit(
        np.vstack([before, now]), np.repeat([0, 1], [len(before), len(now)])
    )

    def ratio(rows: Floats) -> Floats:
        shares = np.clip(fitted.predict_proba(rows), 1e-9, 1.0)
        return np.asarray(shares[:, 1] / shares[:, 0] * len(before) / len(now))

    weights = ratio(before)
    n_effective = float(weights.sum() ** 2 / (weights**2).sum())
    return ShiftWeights(weights, ratio(judged), n_effective)
