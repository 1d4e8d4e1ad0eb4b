"""Ranges of realised false-alarm rates: how often the realised rate is outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.certificates.checks import Check
from rankad import DriftMonitor, RankAD
from rankad._base.arrays import Floats
from rankad.certificates.certificate import Certificate
from rankad.certificates.laws import conditional_p_values
from rankad.stages.calibration import Calibration

__all__ = [
    "LAWS",
    "cross_fitted",
    "detector_certificates",
    "split_certificates",
    "tied_certificates",
    "updated_certificates",
]

ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)

Draw = Callable[[int, np.random.Generator], Floats]
_PLANE = np.random.default_rng(3).normal(size=(2, 5))


def _two_densities(n: int, rng: np.random.Generator) -> Floats:
    tight = rng.random((n, 1)) < 0.5
    return np.where(tight, rng.normal(scale=0.05, size=(n, 3)), 5 + rng.normal(size=(n, 3)))


def _mixed(n: int, rng: np.random.Generator) -> Floats:
    words = np.eye(4)[rng.choice(4, n, p=[0.6, 0.25, 0.1, 0.05])]
    return np.hstack([rng.normal(size=(n, 2)), words])


LAWS: dict[str, Draw] = {
    "Gaussian, 2 columns": lambda n, rng: rng.normal(size=(n, 2)),
    "Gaussian, 10 columns": lambda n, rng: rng.normal(size=(n, 10)),
    "Student, 3 columns": lambda n, rng: rng.standard_t(3, size=(n, 3)),
    "two densities": _two_densities,
    "log-normal, 4 columns": lambda n, rng: rng.lognormal(size=(n, 4)),
    "near a plane, 5 columns": lambda n, rng: rng.normal(size=(n, 2)) @ _PLANE + rng.normal(0, 0.05, (n, 5)),
    "numbers and categories": _mixed,
    "uniform, 3 columns": lambda n, rng: rng.random((n, 3)),
}


def split_certificates(repetitions: int, delta: float = 0.05) -> list[Check]:
    """Calibrate uniform scores, whose realised rate is the threshold itself."""
    checks = []
    for n in (50, 200, 1_000):
        rng = np.random.default_rng([1, n])
        rates = np.sort(rng.random((repetitions, n)), axis=1)
        certificate = Certificate(Calibration.from_scores(rates[0], "split"), delta)
        setting = f"{n} calibration rows"
        ranks = {alpha: certificate.calibration.n_below(alpha) for alpha in ALPHAS if alpha * (n + 1) >= 1}
        for alpha, r in ranks.items():
            found, rate = certificate.range(alpha), rates[:, r - 1]
            missed = int(((rate < found.low) | (rate > found.high)).sum())
            checks.append(Check(f"range at alpha = {alpha:g}", setting, missed, repetitions, delta))
            above = int((rate > certificate.upper(alpha)).sum())
            checks.append(Check(f"upper at alpha = {alpha:g}", setting, above, repetitions, delta))
        every = np.arange(1, n + 1) / (n + 1)
        for method in ("exact", "simes", "dkw"):
            ranges = [certificate.simultaneous(alpha, method) for alpha in every.tolist()]
            low, high = np.array([one.low for one in ranges]), np.array([one.high for one in ranges])
            missed = int(((rates < low) | (rates > high)).any(axis=1).sum())
            checks.append(Check(f"all alphas at once, {method}", setting, missed, repetitions, delta))
            adjusted = conditional_p_values(every, n, delta, method)
            missed = int((rates > adjusted).any(axis=1).sum())
            checks.append(Check(f"conditional p-values, {method}", setting, missed, repetitions, delta))
        if n >= 200:
            r = certificate.calibration.n_below(certificate.alpha_for(0.05))
            above = int((rates[:, r - 1] > 0.05).sum())
            checks.append(Check("alpha_for(0.05)", setting, above, repetitions, delta))
        checks += _contaminated(n, repetitions, delta)
    return checks


def tied_certificates(repetitions: int, delta: float = 0.05) -> list[Check]:
    """Calibrate scores that have few values, so that an alarm rate is a sum of their shares."""
    laws = {"two values, 5 and 95 %": [0.05, 0.95], "six values": [1 / 6] * 6, "20 values": [0.05] * 20}
    checks, alphas = [], (0.05, 0.2, 0.5)
    for number, (name, shares) in enumerate(laws.items()):
        below, values = np.r_[0.0, np.cumsum(shares)], np.arange(float(len(shares)))
        for n in (20, 200):
            rng = np.random.default_rng([14, number, n])
            missed, every, adjusted = dict.fromkeys(alphas, 0), 0, 0
            for _ in range(repetitions):
                scores = rng.choice(values, n, p=shares)
                certificate, off = Certificate(Calibration.from_scores(scores, "split"), delta), False
                for alpha in alphas:
                    rate = below[int(certificate.calibration.threshold(alpha))]
                    one, together = certificate.range(alpha), certificate.simultaneous(alpha)
                    missed[alpha] += not one.low <= rate <= one.high
                    off |= not together.low <= rate <= together.high
                every += off
                given = certificate.p_values(certificate.calibration.p_values(values))
                # The share of rows with a value of at most that of each score.
                adjusted += bool((below[1:] > given + 1e-12).any())
            setting = f"{n} calibration rows, {name}"
            for alpha, count in missed.items():
                checks.append(Check(f"range at alpha = {alpha:g}", setting, count, repetitions, delta))
            checks.append(Check("all alphas at once", setting, every, repetitions, delta))
            checks.append(Check("conditional p-values", setting, adjusted, repetitions, delta))
    return checks


def _contaminated(n: int, repetitions: int, delta: float, share: float = 0.04) -> list[Check]:
    checks, n_bad = [], round(share * n)
    for where, place in (("low", -1.0), ("high", 2.0)):
        rng = np.random.default_rng([2, n, n_bad])
        bad = place + 1e-3 * rng.random((repetitions, n_bad))
        scores = np.sort(np.hstack([rng.random((repetitions, n - n_bad)), bad]), axis=1)
        certificate = Certificate(Calibration.from_scores(scores[0], "split"), delta).contaminated(share)
        for alpha in (0.05, 0.2):
            rate = np.clip(scores[:, certificate.calibration.n_below(alpha) - 1], 0, 1)
            found = certificate.range(alpha)
            missed = int(((rate < found.low) | (rate > found.high)).sum())
            setting = f"{n} calibration rows, 4 % anomalies that score {where}"
            checks.append(
                Check(f"contaminated range at alpha = {alpha:g}", setting, missed, repetitions, delta)
            )
        adjusted = certificate.p_values(np.arange(1, n + 1) / (n + 1))
        missed = int((np.clip(scores, 0, 1) > adjusted + 1e-12).any(axis=1).sum())
        checks.append(Check("contaminated conditional p-values", setting, missed, repetitions, delta))
    return checks


def updated_certificates(repetitions: int, n: int = 200, delta: float = 0.05) -> list[Check]:
    """Calibrate a fitted detector with half of n rows, and add the other half by `update`."""
    rng = np.random.default_rng(15)
    detector = RankAD(random_state=0, n_jobs=1).fit(rng.normal(size=(300, 2)))
    fresh = np.sort(detector.score_samples(rng.normal(size=(100_000, 2))))
    missed = dict.fromkeys((0.01, 0.05, 0.2), 0)
    for _ in range(repetitions):
        rows = rng.normal(size=(n, 2))
        certificate = detector.calibrate(rows[: n // 2]).update(rows[n // 2 :]).certificate(delta)
        for alpha in missed:
            rate = np.searchsorted(fresh, certificate.calibration.threshold(alpha)) / fresh.size
            slack, found = 2 * np.sqrt(rate * (1 - rate) / fresh.size), certificate.range(alpha)
            missed[alpha] += not found.low - slack <= rate <= found.high + slack
    setting = f"RankAD, Gaussian, calibrate with {n // 2} rows and update with {n // 2}"
    return [
        Check(f"range at alpha = {alpha:g}", setting, count, repetitions, delta)
        for alpha, count in missed.items()
    ]


def detector_certificates(repetitions: int, n: int = 200, delta: float = 0.05) -> list[Check]:
    """Recalibrate one fitted RankAD per law with fresh rows, again and again."""
    checks = []
    for number, (name, draw) in enumerate(LAWS.items()):
        rng = np.random.default_rng([3, number])
        detector = RankAD(random_state=0, n_jobs=1).fit(draw(300, rng))
        fresh = np.sort(detector.score_samples(draw(100_000, rng)))
        scores = np.asarray(detector.score_samples(draw(n * repetitions, rng))).reshape(repetitions, n)
        missed, missed_all = dict.fromkeys((0.01, 0.05, 0.2), 0), 0
        for own in scores:
            certificate = Certificate(Calibration.from_scores(own, "split"), delta)
            off = []
            for alpha in missed:
                rate = np.searchsorted(fresh, certificate.calibration.threshold(alpha)) / fresh.size
                one, every = certificate.range(alpha), certificate.simultaneous(alpha)
                # The rate itself is known to two standard errors of 100,000 rows.
                slack = 2 * np.sqrt(rate * (1 - rate) / fresh.size)
                missed[alpha] += not one.low - slack <= rate <= one.high + slack
                off.append(not every.low - slack <= rate <= every.high + slack)
            missed_all += any(off)
        for alpha, count in missed.items():
            checks.append(Check(f"range at alpha = {alpha:g}", f"RankAD, {name}", count, repetitions, delta))
        checks.append(Check("all alphas at once", f"RankAD, {name}", missed_all, repetitions, delta))
    return checks


def cross_fitted(fits: int, n: int = 300, delta: float = 0.05) -> list[Check]:
    """Fit RankAD as it is by default, and count fresh rows that are alarms."""
    checks = []
    for number, (name, draw) in enumerate(LAWS.items()):
        above, every, drifted = dict.fromkeys(ALPHAS, 0), 0, 0
        for fit in range(fits):
            rng = np.random.default_rng([4, number, fit])
            detector = RankAD(random_state=0, n_jobs=1).fit(draw(n, rng))
            p_values = detector.p_values(draw(30_000, rng))
            certificate, off = detector.certificate(delta), False
            for alpha in ALPHAS:
                rate = float((p_values <= alpha).mean())
                above[alpha] += rate > certificate.upper(alpha)
                found = certificate.simultaneous(alpha)
                off |= not found.low <= rate <= found.high
            every += off
            raised = DriftMonitor.for_detector(detector).update(p_values[:1_000])
            drifted += any(alarm.by == "ever" for alarm in raised)
        for alpha, count in above.items():
            checks.append(Check(f"upper at alpha = {alpha:g}", f"cross-fit, {name}", count, fits, delta))
        checks.append(Check("all alphas at once", f"cross-fit, {name}", every, fits, delta))
        checks.append(Check("drift alarm ever", f"cross-fit, {name}", drifted, fits, 0.01))
    return checks
