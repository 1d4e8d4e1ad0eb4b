"""Decisions over many rows: realised false discovery rates, and bounds on false alarms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import false_discovery_control

from benchmarks.certificates.checks import Check, Mean
from rankad import FalseAlarmCounter, storey
from rankad._base.arrays import Bools, Floats

__all__ = ["discoveries", "online"]


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
