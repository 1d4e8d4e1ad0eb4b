"""``python -m benchmarks.certificates``: how often each promise fails, on fresh data with known truth."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom, chi2, false_discovery_control, ks_2samp

from rankad import DriftMonitor, FalseAlarmCounter, RankAD, storey
from rankad._base.arrays import Bools, Floats
from rankad.certificates.certificate import Certificate
from rankad.certificates.laws import conditional_p_values
from rankad.experiments.cells import plain, write_atomically
from rankad.experiments.level_sets import level_differences
from rankad.experiments.synthetic import TOY
from rankad.stages.calibration import Calibration

__all__ = ["Check", "main"]

ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
# One study in a hundred thousand would be said to break a promise that it keeps.
_STRICT = 1e-5


class Check(NamedTuple):
    """How often a promise failed, beside how often it may."""

    promise: str
    setting: str
    failures: int
    repetitions: int
    allowed: float

    @property
    def p_value(self) -> float:
        """The probability of so many failures or more, if they come at the rate allowed."""
        return float(binom.sf(self.failures - 1, self.repetitions, self.allowed))

    @property
    def holds(self) -> bool:
        """Whether the failures are no evidence against the promise."""
        return self.p_value > _STRICT


class Mean(NamedTuple):
    """A mean over repetitions, beside what it may be at most."""

    promise: str
    setting: str
    mean: float
    error: float
    allowed: float

    @property
    def holds(self) -> bool:
        """Whether the mean is no evidence against the promise: within 4.3 standard errors."""
        return self.mean <= self.allowed + 4.3 * self.error


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


# ----------------------------------------------------------------------------------- certificates, one law


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
    return checks


# ------------------------------------------------------------------------------------ certificates, detectors


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
        above, every = dict.fromkeys(ALPHAS, 0), 0
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
        for alpha, count in above.items():
            checks.append(Check(f"upper at alpha = {alpha:g}", f"cross-fit, {name}", count, fits, delta))
        checks.append(Check("all alphas at once", f"cross-fit, {name}", every, fits, delta))
    return checks


# ------------------------------------------------------------------------------------------------ many tests


def _batch(rng: np.random.Generator, n: int, m: int, n_bad: int, shared: bool) -> tuple[Floats, Bools]:
    """P-values of normal rows and anomalies, and which are anomalies."""
    anomalous = np.arange(m) < n_bad
    rows = np.where(anomalous, 0.01 * rng.random(m), rng.random(m))
    calibration = np.sort(rng.random((1 if shared else m, n)), axis=1)
    below = (calibration <= rows[:, None]).sum(axis=1)
    return (1 + below) / (n + 1), anomalous


def discoveries(repetitions: int, q: float = 0.1, delta: float = 0.05) -> tuple[list[Mean], list[Check]]:
    """Realised false discovery rates and bounds on false alarms, with shared and fresh calibration rows."""
    means, checks, n, m = [], [], 500, 200
    rules: dict[str, Callable[[Floats], Bools]] = {
        "Benjamini-Hochberg": lambda p: false_discovery_control(p) <= q,
        "Storey": lambda p: storey(p, q, n_calibration=n),
    }
    for shared in (True, False):
        # Without anomalies, p-values of 500 calibration rows are too coarse for the rules to fail often.
        for n_bad in (0, 10, 100):
            rng = np.random.default_rng([5, shared, n_bad])
            shares: dict[str, list[float]] = {name: [] for name in rules}
            found: dict[str, list[float]] = {name: [] for name in rules}
            missed = 0
            for _ in range(repetitions):
                p_values, anomalous = _batch(rng, n, m, n_bad, shared)
                for name, rule in rules.items():
                    alarms = rule(p_values)
                    shares[name].append((alarms & ~anomalous).sum() / max(1, alarms.sum()))
                    found[name].append((alarms & anomalous).sum() / max(1, n_bad))
                counter, order = FalseAlarmCounter(p_values, delta), np.argsort(p_values, kind="stable")
                false = np.cumsum(~anomalous[order])
                missed += any(
                    false[k - 1] > counter.bound(order[:k]).most_false for k in range(10, m + 1, 10)
                )
            which = "one calibration for all" if shared else "a calibration each"
            setting = f"{m} rows, {n_bad} anomalies, {which}"
            for name in rules:
                error = float(np.std(shares[name]) / np.sqrt(repetitions))
                caught = f"; {np.mean(found[name]):.0%} of anomalies found" if n_bad else ""
                means.append(Mean(f"FDR, {name}", setting + caught, float(np.mean(shares[name])), error, q))
            checks.append(Check("false alarms among the k smallest", setting, missed, repetitions, delta))
    return means, checks


def online(repetitions: int, q: float = 0.1) -> list[Mean]:
    """Realised false discovery rates of streams; none where online-fdr is not installed."""
    try:
        from rankad import OnlineAlarms

        OnlineAlarms(q, 10)
    except ImportError:
        return []
    means, n, length = [], 10_000, 200
    for method in ("lond", "lond-dependent", "batch"):
        rng, shares, found = np.random.default_rng(6), [], []
        for _ in range(repetitions):
            anomalous = rng.random(length) < 0.1
            rows = np.where(anomalous, 3e-4 * rng.random(length), rng.random(length))
            p_values = (1 + np.searchsorted(np.sort(rng.random(n)), rows)) / (n + 1)
            alarms = OnlineAlarms(q, n, method)  # type: ignore[arg-type]
            raised = np.concatenate([alarms.update(part) for part in np.split(p_values, 4)])
            shares.append((raised & ~anomalous).sum() / max(1, raised.sum()))
            found.append((raised & anomalous).sum() / max(1, anomalous.sum()))
        setting = (
            f"{length} rows, 1 in 10 anomalies, one calibration; {np.mean(found):.0%} of anomalies found"
        )
        error = float(np.std(shares) / np.sqrt(repetitions))
        means.append(Mean(f"FDR of a stream, {method}", setting, float(np.mean(shares)), error, q))
    return means


# ----------------------------------------------------------------------------------------------------- drift


def drift(repetitions: int, length: int = 1_000, n: int = 1_000) -> tuple[list[Check], list[dict[str, Any]]]:
    """Streams without drift, and delays after one, beside a window compared by Kolmogorov and Smirnov."""
    delta, delta_calibration, run = 0.01, 0.05, 10_000
    ever = runs = windows = 0
    for number in range(repetitions):
        kinds, window, _ = _watch(np.random.default_rng([7, number]), n, length, length, 0.0)
        ever, runs, windows = (
            ever + ("ever" in kinds),
            runs + ("run" in kinds),
            windows + (window is not None),
        )
    setting = f"{length} rows, {n} calibration rows, no drift"
    checks = [
        Check("drift alarm ever", setting, ever, repetitions, delta + delta_calibration),
        Check("drift alarm by CUSUM", setting, runs, repetitions, length / run + delta_calibration),
        Check("Kolmogorov-Smirnov on windows of 100", setting, windows, repetitions, delta),
    ]
    delays = []
    for shift in (0.5, 1.0, 2.0):
        found: dict[str, list[int | None]] = {"ever": [], "run": [], "window": []}
        for number in range(max(1, repetitions // 10)):
            rng = np.random.default_rng([8, number, int(10 * shift)])
            kinds, window, start = _watch(rng, n, length, length // 2, shift)
            for kind in ("ever", "run"):
                found[kind].append(kinds[kind] - start if kinds.get(kind, 0) > start else None)
            found["window"].append(window - start if window is not None and window > start else None)
        for kind, values in found.items():
            known = [value for value in values if value is not None]
            delays.append(
                {
                    "shift": shift,
                    "by": kind,
                    "noticed": len(known) / len(values),
                    "median": float(np.median(known)) if known else None,
                }
            )
    return checks, delays


def _watch(
    rng: np.random.Generator, n: int, length: int, start: int, shift: float, size: int = 100
) -> tuple[dict[str, int], int | None, int]:
    """Return when the monitor raised each kind of alarm, when a window was off, and when the drift began."""
    calibration, rows = np.sort(rng.normal(size=n)), rng.normal(size=length)
    rows[start:] -= shift
    monitor = DriftMonitor(n, rearm_after=None)
    p_values, kinds = (1 + np.searchsorted(calibration, rows)) / (n + 1), {}
    for begin in range(0, length, size):
        for alarm in monitor.update(p_values[begin : begin + size]):
            kinds[alarm.by] = alarm.row
    # The same total error, shared out over the windows.
    level = 0.01 / (length / size)
    for begin in range(0, length, size):
        if ks_2samp(rows[begin : begin + size], calibration).pvalue <= level:
            return kinds, begin + size, start
    return kinds, None, start


# --------------------------------------------------------------------------------------------------- volumes


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


# -------------------------------------------------------------------------------------------------- the page


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certificates", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--fits", type=int, default=25, help="fits of cross-fitted detectors on each law")
    given = parser.parse_args(arguments)
    from benchmarks.certificates_page import write

    begin = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"repetitions": given.repetitions, "fits": given.fits}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        results["certificates"] = split_certificates(given.repetitions)
        print("certificates", round(time.monotonic() - begin), flush=True)
        results["means"], results["counts"] = discoveries(given.repetitions)
        results["online"] = online(given.repetitions)
        print("discoveries", round(time.monotonic() - begin), flush=True)
        results["drift"], results["delays"] = drift(given.repetitions)
        print("drift", round(time.monotonic() - begin), flush=True)
        results["volumes"], results["differences"] = volumes(), symmetric_differences()
        print("volumes", round(time.monotonic() - begin), flush=True)
        results["detectors"] = detector_certificates(given.repetitions)
        print("detectors", round(time.monotonic() - begin), flush=True)
        results["cross_fit"] = cross_fitted(given.fits) if given.fits else []
    results["seconds"] = time.monotonic() - begin
    stored = {
        key: [{**one._asdict(), "holds": one.holds} if hasattr(one, "holds") else one for one in value]
        if isinstance(value, list)
        else value
        for key, value in results.items()
    }
    write_atomically(given.out / "certificates.json", json.dumps(plain(stored), indent=1) + "\n")
    write(given.out / "certificates.md", stored)


if __name__ == "__main__":
    main()
