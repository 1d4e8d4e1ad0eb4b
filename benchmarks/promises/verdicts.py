"""What is allowed of a cell, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, binomtest

from benchmarks.promises.cells import ALPHAS, FDR, TRIMMED
from benchmarks.promises.laws import LAWS
from rankad.stages.calibration import n_attainable

__all__ = ["Discoveries", "Verdict", "judge", "judge_discoveries"]

# How far above alpha a mean may be, relative to alpha, beside three standard errors.
SLACK = 0.05
# How far below, unless an exact calibration of the same scorer is as low.
LEAST = 0.7
# How far above one fit may be, at which alpha and with how many rows.
SINGLE, SINGLE_ALPHA, SINGLE_ROWS = 3.0, 0.05, 100
DELTA = 0.05


class Verdict(NamedTuple):
    """One cell at one alpha.

    Attributes
    ----------
    mean, error : float
        Of the rates of false alarms over fits, with the standard error, at least an exact calibration's.
    most : float
        The largest of them.
    exact : float
        The mean that an exact calibration has, by as many rows.
    n_claims, n_exceeded : int
        Fits that claim a bound, and those whose rate is above it.
    n_split : int
        Fits that were calibrated by a split.
    faults : tuple of str
        What is not as it should be.
    above_by_own_error : bool
        Whether the mean is too high by the standard error that the fits themselves show, however few.
    """

    detector: str
    law: str
    n: int
    alpha: float
    fits: int
    mean: float
    error: float
    most: float
    exact: float
    n_claims: int
    n_exceeded: int
    n_split: int
    faults: tuple[str, ...]
    above_by_own_error: bool


class Discoveries(NamedTuple):
    """One cell's false discoveries in batches.

    Attributes
    ----------
    mean, error : float
        Of the shares of batches with a discovery, over fits, with the standard error.
    too_many : bool
        Whether the mean is above the rate asked for by three standard errors and 5 %.
    """

    detector: str
    law: str
    n: int
    mean: float
    error: float
    too_many: bool


def judge_discoveries(records: Sequence[Mapping[str, Any]]) -> list[Discoveries]:
    """Judge every cell's false discoveries, but for trimmed rows, which promise nothing of the kind."""
    found = []
    for record in records:
        if record["detector"] in TRIMMED:
            continue
        shares = np.array(record["discoveries"])
        mean, error = float(shares.mean()), float(shares.std(ddof=1)) / math.sqrt(len(shares))
        too_many = mean > FDR * (1 + SLACK) + 3 * error
        found.append(Discoveries(record["detector"], record["law"], record["n"], mean, error, too_many))
    return found


def judge(records: Sequence[Mapping[str, Any]]) -> list[Verdict]:
    """Judge every cell at every alpha that its rows can attain."""
    return [
        _judge(record, at, alpha)
        for record in records
        for at, alpha in enumerate(ALPHAS)
        if n_attainable(record["n"], alpha)
    ]


def _judge(record: Mapping[str, Any], at: int, alpha: float) -> Verdict:
    rates = np.array([fit[at] for fit in record["rates"]])
    exact = np.array([fit[at] for fit in record["exact"]])
    claims = [
        (rate, fit[at]) for rate, fit in zip(rates, record["bounds"], strict=True) if fit[at] is not None
    ]
    n, fits = record["n"], len(rates)
    mean = float(rates.mean())
    # Few fits may lie close together by chance: rates vary at least as those of an exact calibration.
    m = min(record["n_calibrating"])
    r = n_attainable(m, alpha)
    spread = float(beta(r, m + 1 - r).std()) if r else 0.0
    error = max(float(rates.std(ddof=1)), spread) / math.sqrt(fits)
    # What was trimmed may have been nominal: the promise is for that much more.
    asked = alpha + TRIMMED.get(record["detector"], 0.0)
    n_exceeded = sum(rate > bound for rate, bound in claims)
    faults = []
    if mean > asked * (1 + SLACK) + 3 * error:
        faults.append("too many")
    # An anomaly among the calibration rows takes one of the places below the threshold.
    law = next(law for law in LAWS if law.name == record["law"])
    n_used = int(law.used * n)
    attainable = max(n_attainable(n_used, alpha) - law.n_anomalies, 0) / (n_used + 1)
    allowed = 3 * math.hypot(error, exact.std(ddof=1) / math.sqrt(fits))
    if mean + allowed < LEAST * min(attainable, exact.mean()):
        faults.append("too few")
    if alpha >= SINGLE_ALPHA and n_used >= SINGLE_ROWS and rates.max() > SINGLE * asked:
        faults.append("one fit")
    if claims and binomtest(n_exceeded, len(claims), DELTA, alternative="greater").pvalue < 0.01:
        faults.append("bound")
    return Verdict(
        record["detector"],
        record["law"],
        n,
        alpha,
        fits,
        mean,
        error,
        float(rates.max()),
        float(exact.mean()),
        len(claims),
        n_exceeded,
        record["kinds"].count("split"),
        tuple(faults),
        mean > asked * (1 + SLACK) + 3 * float(rates.std(ddof=1)) / math.sqrt(fits),
    )
