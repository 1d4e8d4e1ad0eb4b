"""The detectors compared, all with the same shape: build, fit, score.

Libraries are imported where they are used, so that a process holds those of its own methods only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rankad._arrays import Floats

__all__ = ["CONTAMINATED", "KNN", "METHODS", "RANKAD", "Detector", "Method"]

RANKAD = "RankAD"
KNN = "k-NN 5"


class Method(NamedTuple):
    """One way to detect anomalies.

    Attributes
    ----------
    name : str
    build : callable
        Seed to an estimator.
    answer : str
        The estimator's method that scores rows.
    sign : int
        -1 where a high score means anomalous.
    standardized : bool
        Whether it gets standardized columns.
    """

    name: str
    build: Callable[[int], Any]
    answer: str = "decision_function"
    sign: int = -1
    standardized: bool = True


class _NeighbourDistance:
    """Score rows by their mean distance to the nearest training rows; a high score means anomalous."""

    def __init__(self, n_neighbors: int) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, rows: Floats) -> _NeighbourDistance:
        from sklearn.neighbors import NearestNeighbors

        self.neighbors_ = NearestNeighbors(n_neighbors=self.n_neighbors).fit(rows)
        return self

    def decision_function(self, rows: Floats) -> Floats:
        distances, _ = self.neighbors_.kneighbors(rows)
        return np.asarray(distances.mean(axis=1))


def _rankad(seed: int) -> Any:
    from rankad import RankAD

    return RankAD(random_state=seed, n_jobs=1)


def _forest(seed: int) -> Any:
    from sklearn.ensemble import IsolationForest

    return IsolationForest(random_state=seed)


def _one_class_svm(seed: int) -> Any:
    from sklearn.svm import OneClassSVM

    return OneClassSVM()


def _local_outlier_factor(seed: int) -> Any:
    from sklearn.neighbors import LocalOutlierFactor

    return LocalOutlierFactor(novelty=True)


def _ecod(seed: int) -> Any:
    from pyod.models.ecod import ECOD

    return ECOD()


def _copod(seed: int) -> Any:
    from pyod.models.copod import COPOD

    return COPOD()


def _hbos(seed: int) -> Any:
    from pyod.models.hbos import HBOS

    return HBOS()


def _inne(seed: int) -> Any:
    from pyod.models.inne import INNE

    return INNE(random_state=seed)


def _pca(seed: int) -> Any:
    from pyod.models.pca import PCA

    return PCA(random_state=seed)


def _gmm(seed: int) -> Any:
    from pyod.models.gmm import GMM

    return GMM(random_state=seed)


def _kde(seed: int) -> Any:
    from pyod.models.kde import KDE

    return KDE()


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(RANKAD, _rankad, "score_samples", 1, standardized=False),
        Method(KNN, lambda seed: _NeighbourDistance(5)),
        Method("k-NN 20", lambda seed: _NeighbourDistance(20)),
        Method("LOF", _local_outlier_factor, "score_samples", 1),
        Method("OneClassSVM", _one_class_svm, "score_samples", 1),
        Method("IsolationForest", _forest, "score_samples", 1),
        Method("ECOD", _ecod),
        Method("COPOD", _copod),
        Method("HBOS", _hbos),
        Method("INNE", _inne),
        Method("PCA", _pca),
        Method("GMM", _gmm),
        Method("KDE", _kde),
    )
}

# Fitted on contaminated rows too.
CONTAMINATED = (RANKAD, KNN, "k-NN 20", "LOF", "OneClassSVM", "IsolationForest", "GMM")


class Detector:
    """A method's estimator, with its scaling where it has one.

    Parameters
    ----------
    method : Method
    seed : int
    """

    def __init__(self, method: Method, seed: int) -> None:
        self.method, self.estimator = method, method.build(seed)
        self.center: Floats | float = 0.0
        self.scale: Floats | float = 1.0

    def fit(self, rows: Floats) -> Detector:
        """Fit on training rows."""
        if self.method.standardized:
            spread = rows.std(axis=0)
            self.center, self.scale = rows.mean(axis=0), np.where(spread > 0, spread, 1.0)
        self.estimator.fit(self._prepared(rows))
        return self

    def score(self, rows: Floats) -> Floats:
        """Score rows; higher is more nominal."""
        scores = getattr(self.estimator, self.method.answer)(self._prepared(rows))
        return self.method.sign * np.asarray(scores, dtype=np.float64)

    def _prepared(self, rows: Floats) -> Floats:
        return (rows - self.center) / self.scale if self.method.standardized else rows
