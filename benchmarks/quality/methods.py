"""The detectors compared, all with the same shape: build, fit, score.

Libraries are imported where they are used, so that a process holds those of its own methods only.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers import RANKAD, Detector, Method
from rankad._arrays import Floats

__all__ = ["COMPARED", "CONTAMINATED", "KNN", "METHODS", "OURS", "RANKAD", "TRIMMED", "detector"]

KNN = "k-NN 5"
TRIMMED = f"{RANKAD}, trim=0.1"
OURS = (RANKAD, TRIMMED)


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


def _trimmed(seed: int) -> Any:
    from rankad import RankAD

    return RankAD(trim=0.1, random_state=seed, n_jobs=1)


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


_scaled = partial(Method, standardized=True)
# As in PyOD: a high score means anomalous.
_of_pyod = partial(_scaled, answer="decision_function", sign=-1)

# Each is built from a seed.
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(RANKAD, _rankad),
        Method(TRIMMED, _trimmed),
        _of_pyod(KNN, lambda seed: _NeighbourDistance(5)),
        _of_pyod("k-NN 20", lambda seed: _NeighbourDistance(20)),
        _scaled("LOF", _local_outlier_factor),
        _scaled("OneClassSVM", _one_class_svm),
        _scaled("IsolationForest", _forest),
        _of_pyod("ECOD", _ecod),
        _of_pyod("COPOD", _copod),
        _of_pyod("HBOS", _hbos),
        _of_pyod("INNE", _inne),
        _of_pyod("PCA", _pca),
        _of_pyod("GMM", _gmm),
        _of_pyod("KDE", _kde),
    )
}

# Compared with one another: all that have their library's defaults.
COMPARED = tuple(name for name in METHODS if name != TRIMMED)
# Fitted on contaminated rows too.
CONTAMINATED = (RANKAD, TRIMMED, KNN, "k-NN 20", "LOF", "OneClassSVM", "IsolationForest", "GMM")


def detector(name: str, seed: int) -> Detector:
    """Return a method's detector, on one thread."""
    method = METHODS[name]
    return Detector(method, 1, method.build(seed))
