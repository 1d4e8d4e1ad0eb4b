"""The methods compared, all with the same shape: build, fit, score.

Libraries are imported where they are used, so that a process holds those of its own method only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config

from rankad._base.arrays import Floats

__all__ = ["KNN", "METHODS", "NOTES", "ONE_CLASS_SVM", "RANKAD", "Detector", "Method"]

RANKAD = "RankAD"
ONE_CLASS_SVM = "OneClassSVM"
FOREST = "IsolationForest"
KNN = "PyOD KNN"
_SEED = 0

NOTES = (
    "Every method has its library's defaults and gets the rows as they are, but for OneClassSVM and "
    "SGDOneClassSVM + Nystroem: these do not scale columns and get them standardized, in two lines of NumPy "
    "that cost no more than that.",
    "n_jobs is 2 or 1 where a method has it (OneClassSVM and SGDOneClassSVM + Nystroem have not). "
    "IsolationForest scores, and ECOD works, inside joblib's threading backend with as many threads, without "
    "which the one would use one thread and the other processes.",
    "ECOD scores a row by its rank among the training rows and all others scored with it.",
)


class Method(NamedTuple):
    """One way to detect anomalies.

    Attributes
    ----------
    name : str
    build : callable
        Number of threads, or a seed where that is what differs, to an estimator.
    answer : str
        The estimator's method that scores rows.
    sign : int
        -1 where a high score means anomalous.
    standardized : bool
        Whether it gets standardized columns.
    threading : bool
        Whether it takes its threads from joblib's context.
    single : str or None
        The method to ask about one row, where not `answer`.
    most_rows : int or None
        More training rows than these are not tried.
    """

    name: str
    build: Callable[[int], Any]
    answer: str = "score_samples"
    sign: int = 1
    standardized: bool = False
    threading: bool = False
    single: str | None = None
    most_rows: int | None = None


def _rankad(n_jobs: int) -> Any:
    from rankad import RankAD

    return RankAD(random_state=_SEED, n_jobs=n_jobs)


def _one_class_svm(n_jobs: int) -> Any:
    from sklearn.svm import OneClassSVM

    return OneClassSVM()


def _sgd(n_jobs: int) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDOneClassSVM
    from sklearn.pipeline import make_pipeline

    return make_pipeline(Nystroem(random_state=_SEED), SGDOneClassSVM(random_state=_SEED))


def _forest(n_jobs: int) -> Any:
    from sklearn.ensemble import IsolationForest

    return IsolationForest(random_state=_SEED, n_jobs=n_jobs)


def _local_outlier_factor(n_jobs: int) -> Any:
    from sklearn.neighbors import LocalOutlierFactor

    return LocalOutlierFactor(novelty=True, n_jobs=n_jobs)


def _knn(n_jobs: int) -> Any:
    from pyod.models.knn import KNN

    return KNN(n_jobs=n_jobs)


def _ecod(n_jobs: int) -> Any:
    from pyod.models.ecod import ECOD

    return ECOD(n_jobs=n_jobs)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(RANKAD, _rankad, single="p_values"),
        Method(ONE_CLASS_SVM, _one_class_svm, standardized=True, most_rows=20_000),
        Method("SGDOneClassSVM + Nystroem", _sgd, standardized=True),
        Method(FOREST, _forest, threading=True),
        Method("LocalOutlierFactor", _local_outlier_factor, most_rows=100_000),
        Method(KNN, _knn, "decision_function", sign=-1),
        Method("PyOD ECOD", _ecod, "decision_function", sign=-1, threading=True),
    )
}


class Detector:
    """A method's estimator, with its scaling where it has one.

    Parameters
    ----------
    method : Method
    n_jobs : int
    estimator : optional
        Instead of the one that the method builds.
    """

    def __init__(self, method: Method, n_jobs: int, estimator: Any = None) -> None:
        self.method, self.n_jobs = method, n_jobs
        self.estimator = method.build(n_jobs) if estimator is None else estimator
        self.center: Floats | float = 0.0
        self.scale: Floats | float = 1.0

    def fit(self, rows: Floats) -> Detector:
        """Fit on nominal rows."""
        if self.method.standardized:
            spread = rows.std(axis=0)
            self.center, self.scale = rows.mean(axis=0), np.where(spread > 0, spread, 1.0)
        with self.threads(self.n_jobs):
            self.estimator.fit(self._prepared(rows))
        return self

    def score(self, rows: Floats) -> Floats:
        """Score rows; higher is more nominal."""
        with self.threads(self.n_jobs):
            scores = getattr(self.estimator, self.method.answer)(self._prepared(rows))
        return self.method.sign * np.asarray(scores, dtype=np.float64)

    def single(self) -> Callable[[Floats], Any]:
        """Return what to call with one row: the estimator's own method, with nothing around it."""
        call: Callable[[Floats], Any] = getattr(self.estimator, self.method.single or self.method.answer)
        if not self.method.standardized:
            return call
        center, scale = self.center, self.scale
        return lambda row: call((row - center) / scale)

    @property
    def state(self) -> tuple[Any, ...]:
        """What has to be kept to score rows later."""
        return self.estimator, self.center, self.scale

    def threads(self, n_jobs: int) -> AbstractContextManager[Any]:
        """Return the context that limits threads, for methods that take their number from it."""
        return parallel_config("threading", n_jobs=n_jobs) if self.method.threading else nullcontext()

    def _prepared(self, rows: Floats) -> Floats:
        return (rows - self.center) / self.scale if self.method.standardized else rows
