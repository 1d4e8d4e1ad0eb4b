"""Volumes of level sets beside closed forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln
from scipy.stats import chi2
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import OneClassSVM

from benchmarks.certificates.checks import Check
from rankad import LevelSet, RankAD
from rankad._base.arrays import Floats
from rankad.experiments.level_sets import level_differences
from rankad.experiments.synthetic import PRINTED
from rankad.level_sets.curves import mass_volume_curve
from rankad.level_sets.proposal import Proposal

__all__ = ["learned", "of_the_true_score", "peers", "symmetric_differences"]

COLUMNS, ALPHAS = (2, 5, 10), (0.05, 0.2)
# Rows by which the mass of a set is counted, and points of a symmetric difference.
_FRESH = 100_000


def log_volume(d: int, mass: float) -> float:
    """Return the volume of the ball that holds a share of a standard Gaussian, as a logarithm."""
    return d / 2 * float(np.log(np.pi * chi2.ppf(mass, d))) - float(gammaln(d / 2 + 1))


def true_score(rows: Floats) -> Floats:
    """Return the score of a Gaussian that is known."""
    return np.asarray(-(rows**2).sum(axis=1))


def of_the_true_score(seeds: int = 200, n: int = 500) -> list[dict[str, Any]]:
    """Volumes of the true sets: a check of the Monte Carlo and of its error bar alone."""
    found = []
    for d in COLUMNS:
        for alpha in ALPHAS:
            truth, threshold = log_volume(d, 1 - alpha), -float(chi2.ppf(1 - alpha, d))
            ratios, errors = [], []
            for seed in range(seeds):
                rows = np.random.default_rng([9, d, seed]).normal(size=(n, d))
                level = LevelSet.of_score(true_score, rows, threshold=threshold)
                volume = level.volume(max_error=0.03, random_state=seed)
                ratios.append(float(np.exp(volume.log_volume - truth)))
                errors.append(volume.relative_error)
            ratio, error = np.array(ratios), np.array(errors)
            outside = int((np.abs(ratio - 1) > 1.96 * error * ratio).sum())
            check = Check("the error bar holds the volume", f"{d} columns", outside, seeds, 0.05)
            found.append(
                {
                    "d": d,
                    "alpha": alpha,
                    "seeds": seeds,
                    "ratio": float(ratio.mean()),
                    "spread": float(ratio.std()),
                    "error": float(error.mean()),
                    "worst": float(np.abs(ratio - 1).max()),
                    "outside": outside,
                    "holds": check.holds and bool(np.abs(ratio - 1).max() < 0.05),
                }
            )
    return found


def learned(
    sizes: Sequence[int] = (2_000, 20_000, 100_000), samples: int = 3, **options: Any
) -> list[dict[str, Any]]:
    """Sets that RankAD learned: means over samples of normal rows. Options are those of RankAD."""
    found = []
    for d in COLUMNS:
        for n in sizes:
            per_alpha: dict[float, list[dict[str, float]]] = {alpha: [] for alpha in ALPHAS}
            for sample in range(samples):
                rng = np.random.default_rng([10, d, n, sample])
                detector = RankAD(random_state=0, n_jobs=1, **options).fit(rng.normal(size=(n, d)))
                scores = np.asarray(detector.score_samples(rng.normal(size=(_FRESH, d))))
                for alpha, each in per_alpha.items():
                    each.append(_of_set(detector.level_set(alpha), scores, rng))
            for alpha, each in per_alpha.items():
                means = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
                found.append({"d": d, "n": n, "alpha": alpha, **means})
    return found


def _of_set(level: LevelSet, fresh: Floats, rng: np.random.Generator) -> dict[str, float]:
    """Compare a learned set with the true ones at alpha, and at the mass that it really holds."""
    d = level.rows.shape[1]
    mass, volume = float((fresh >= level.threshold).mean()), level.volume()
    proposal = Proposal.around(level.rows)
    points = proposal.sample(_FRESH, rng)
    differs = level.contains(points) != ((points**2).sum(axis=1) <= chi2.ppf(mass, d))
    difference = float((differs * np.exp(-proposal.log_density(points))).mean())
    return {
        "ratio": float(np.exp(volume.log_volume - log_volume(d, 1 - level.alpha))),
        "error": volume.relative_error,
        "mass": mass,
        "ratio at mass": float(np.exp(volume.log_volume - log_volume(d, mass))),
        "difference": difference / float(np.exp(log_volume(d, mass))),
    }


def peers(n: int = 2_000) -> list[dict[str, Any]]:
    """Volumes of the sets of other scores that hold as much mass, relative to the smallest."""
    found = []
    for d in COLUMNS:
        rng = np.random.default_rng([11, d])
        rows, fresh = rng.normal(size=(n, d)), rng.normal(size=(_FRESH, d))
        neighbors = NearestNeighbors(n_neighbors=5).fit(rows)
        scores: dict[str, Callable[[Floats], Any]] = {
            "RankAD": RankAD(random_state=0, n_jobs=1).fit(rows).score_samples,
            "mean distance to 5 neighbours": lambda x, of=neighbors: -of.kneighbors(x)[0].mean(axis=1),
            "20 Gaussians": GaussianMixture(20, random_state=0).fit(rows).score_samples,
            "one-class SVM": OneClassSVM(nu=0.05).fit(rows).score_samples,
            "one Gaussian, which is the truth": GaussianMixture(1).fit(rows).score_samples,
        }
        for name, score in scores.items():
            curve = mass_volume_curve(score, fresh, masses=[1 - alpha for alpha in ALPHAS], n_points=20_000)
            for alpha, mass, volume in zip(
                sorted(ALPHAS, reverse=True), curve.mass, curve.volume, strict=True
            ):
                ratio = float(volume / np.exp(log_volume(d, mass)))
                found.append({"d": d, "alpha": alpha, "score": name, "ratio": ratio})
    return found


def symmetric_differences(n: int = 5_000, samples: int = 3) -> list[dict[str, Any]]:
    """The sets of RankAD beside the true ones on the paper's mixture of figure 2: means over samples."""
    found = []
    for sample in range(samples):
        rows = PRINTED.sample(n, np.random.default_rng([12, sample]))
        detector = RankAD(random_state=0, n_jobs=1).fit(rows)
        found.append(level_differences(detector, PRINTED, 200)["difference"])
    return [
        {"alpha": alpha, "difference": float(difference)}
        for alpha, difference in zip((0.05, 0.10, 0.25, 0.50, 0.75), np.mean(found, axis=0), strict=True)
    ]
