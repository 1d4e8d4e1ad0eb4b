"""Mass-volume and excess-mass curves: compare detectors without labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import trapezoid

from rankad._base.arrays import Floats
from rankad.level_sets.proposal import Proposal


class MassVolumeCurve(NamedTuple):
    """How large the sets of a score are that hold a share of the normal rows.

    Of two scores, the one with the lower curve has the smaller sets for the same mass: it knows better where
    normal rows are (Clémençon and Jakubowicz 2013; Goix, Sabourin, Clémençon 2015).

    Attributes
    ----------
    mass : ndarray of shape (k,)
        Shares of normal rows, ascending.
    volume : ndarray of shape (k,)
        The volume of the set that holds each.
    error : ndarray of shape (k,)
        Standard errors of `volume` as found by Monte Carlo. That the rows which tell the thresholds are a
        sample, too, is not counted: with few rows it matters most at masses near 1 and in many columns.
    """

    mass: Floats
    volume: Floats
    error: Floats

    def area(self) -> float:
        """Return the area below the curve over its range of masses; the smaller, the better."""
        return float(trapezoid(self.volume, self.mass))

    def excess_mass(self, levels: Floats) -> Floats:
        """Return the largest mass less ``level`` times volume, at each level; the larger, the better.

        Levels are densities: from 0 to that of the densest place, with the volume's units below the line.
        """
        gains = self.mass - np.asarray(levels)[:, None] * self.volume
        return np.asarray(np.maximum(gains.max(axis=1), 0.0))


def mass_volume_curve(
    score: Callable[[Any], Any] | Any,
    X: Any,
    *,
    masses: Any = None,
    n_points: int = 50_000,
    random_state: int | np.random.Generator | None = 0,
) -> MassVolumeCurve:
    """Return the mass-volume curve of any detector on normal rows.

    Parameters
    ----------
    score : estimator or callable
        A fitted detector with `score_samples` (ours or scikit-learn's), or a function that scores rows.
        Higher is more normal.
    X : array-like or data frame of shape (n, d)
        Normal rows that the detector was not fitted on; otherwise detectors that overfit look better.
    masses : array-like, optional
        Shares of the rows; by default 100 from 0.5 to 0.99, where alarms are.
    n_points : int
        Points of the Monte Carlo that finds volumes. The same random state draws the same points for
        every detector, so that curves can be compared.
    random_state : int, Generator or None

    Returns
    -------
    MassVolumeCurve

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(2000, 2))
    >>> good = mass_volume_curve(lambda x: -(x**2).sum(axis=1), rows)
    >>> bad = mass_volume_curve(lambda x: x[:, 0] - (x**2).sum(axis=1), rows)
    >>> good.area() < bad.area()
    True
    """
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise ValueError(f"X must hold at least two rows of numbers, got shape {rows.shape}.")
    if not np.isfinite(rows).all():
        raise ValueError("X must hold finite numbers; leave out rows with missing or infinite ones.")
    wanted = np.linspace(0.5, 0.99, 100) if masses is None else np.sort(np.asarray(masses, dtype=np.float64))
    if not wanted.size or wanted[0] <= 0 or wanted[-1] >= 1:
        raise ValueError("masses must be shares strictly between 0 and 1.")
    evaluate = score.score_samples if hasattr(score, "score_samples") else score
    proposal = Proposal.around(rows)
    points = proposal.sample(n_points, np.random.default_rng(random_state))
    weights = np.exp(-proposal.log_density(points))
    known, scores = (np.asarray(evaluate(_alike(part, X)), dtype=np.float64) for part in (rows, points))
    if known.shape != (len(rows),) or np.isnan(known).any():
        raise ValueError(
            f"score must return one number for each row, as score_samples does; of {len(rows)} rows it "
            f"returned shape {known.shape}{', with NaN' if np.isnan(known).any() else ''}."
        )
    thresholds = np.quantile(known, 1 - wanted, method="lower")
    order = np.argsort(-scores, kind="stable")
    n_inside = np.searchsorted(-scores[order], -thresholds, side="right")
    sums, squares = (np.r_[0.0, np.cumsum(values[order])][n_inside] for values in (weights, weights**2))
    volume = sums / n_points
    error = np.sqrt(np.maximum(squares / n_points - volume**2, 0.0) / n_points)
    return MassVolumeCurve(wanted, volume, error)


def _alike(points: Floats, X: Any) -> Any:
    """Return points with the names of columns that X has, which detectors fitted on such tables ask for."""
    if not hasattr(X, "columns"):
        return points
    # pandas takes the names as columns, polars as a schema.
    return type(X)(points, **{"columns" if hasattr(X, "iloc") else "schema": list(X.columns)})
