"""Volumes of level sets beside closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln
from scipy.stats import chi2

from rankad import RankAD
from rankad._base.arrays import Floats
from rankad.experiments.level_sets import level_differences
from rankad.experiments.synthetic import TOY

__all__ = ["symmetric_differences", "volumes"]


def volumes() -> list[dict[str, Any]]:
    """Volumes of the level sets of a Gaussian, by its true score and of fitted detectors."""
    found = []
    for d in (2, 5, 10):
        rng = np.random.default_rng(d)
        rows = rng.normal(size=(2_000, d))
        learned = RankAD(random_state=0, n_jobs=1).fit(rows)
        for alpha in (0.05, 0.2):
            truth = d / 2 * np.log(np.pi * chi2.ppf(1 - alpha, d)) - float(gammaln(d / 2 + 1))
            level = learned.level_set(alpha)
            estimate = level.volume()
            level.detector, level.threshold = _True(d), -float(chi2.ppf(1 - alpha, d))
            exact = level.volume()
            found.append(
                {
                    "d": d,
                    "alpha": alpha,
                    "true score": float(np.exp(exact.log_volume - truth)),
                    "error": exact.relative_error,
                    "RankAD": float(np.exp(estimate.log_volume - truth)),
                    "RankAD error": estimate.relative_error,
                }
            )
    return found


class _True:
    """The true score of a Gaussian."""

    def __init__(self, d: int) -> None:
        self.d = d

    def score_samples(self, rows: Floats) -> Floats:
        return np.asarray(-(rows**2).sum(axis=1))


def symmetric_differences(n: int = 1_000) -> list[dict[str, Any]]:
    """The sets of RankAD beside the true ones on the paper's mixture of figure 2."""
    rows = TOY.sample(n, np.random.default_rng(0))
    detector = RankAD(random_state=0, n_jobs=1).fit(rows)
    measured = level_differences(detector, TOY, 200)
    return [
        {"alpha": alpha, "difference": difference}
        for alpha, difference in zip((0.05, 0.10, 0.25, 0.50, 0.75), measured["difference"], strict=True)
    ]
