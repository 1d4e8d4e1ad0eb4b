"""What several experiments measure, and under which conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy.stats import betabinom
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from rankad import RankAD
from rankad._base.arrays import Bools, Floats
from rankad.experiments.datasets import Split

# With this probability the false alarms of an exact calibration lie outside their band.
MISS = 0.01


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, and do not warn of solvers that did not converge."""
    with threadpool_limits(limits=1), catch_warnings():
        simplefilter("ignore", ConvergenceWarning)
        yield


def auc(nominal: Bools, scores: Floats) -> float:
    """Return the area under the ROC curve; higher scores are taken for more nominal."""
    return float(roc_auc_score(nominal, scores))


def fitted_auc(detector: Any, split: Split) -> float:
    """Fit a detector on the training rows, on one thread, and return its AUC on the test rows."""
    with one_thread():
        return auc(split.nominal, detector.fit(split.train).score_samples(split.test))


def select_on_few(
    detector: RankAD, train: Floats, n: int, multiples: Sequence[float], C: Sequence[float]
) -> dict[str, Any]:
    """Return the bandwidth and C that the published selection finds on n of the rows.

    The bandwidth is carried over as a multiple of D_K, and C so that C times the number of pairs is kept.
    """
    n = min(n, len(train))
    bandwidths = [f"{multiple!r} D_K" for multiple in multiples]
    # The rows come in random order.
    detector.set_params(C=C, bandwidth=bandwidths).fit(train[:n])
    assert detector.selection_ is not None
    best = detector.selection_.best
    return {"bandwidth": bandwidths[best // len(C)], "C": C[best % len(C)] * (n / len(train)) ** 2}


def false_alarm_band(alpha: float, n: int, m: int) -> tuple[float, float]:
    """Return the rates between which false alarms stay with 99 % probability.

    With n nominal scores and m fresh rows exchangeable with them, the number of p-values at most alpha is
    beta-binomial with m trials and parameters r and n + 1 - r, where r = floor(alpha (n + 1)).

    Examples
    --------
    >>> low, high = false_alarm_band(0.05, 2_000, 10_000)
    >>> round(low, 3), round(high, 3)
    (0.037, 0.065)
    """
    r = int(np.floor(alpha * (n + 1) + 1e-9))
    if r == 0:
        return 0.0, 0.0
    low, high = betabinom.interval(1 - MISS, m, r, n + 1 - r)
    return float(low / m), float(high / m)
