"""The detectors compared, all with the same shape: build, fit, score.

Libraries are imported where they are used, so that a process holds those of its own methods only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.peers import RANKAD, Detector, Method
from rankad._base.arrays import Floats

__all__ = [
    "COMPARED",
    "CONTAMINATED",
    "KNN",
    "METHODS",
    "MIXTURE",
    "OURS",
    "RANKAD",
    "TRIMMED",
    "WITHOUT_TORCH",
    "detector",
]

KNN = "k-NN 5"
MIXTURE = "GMM 10"
TRIMMED = f"{RANKAD}, trim=0.1"
OURS = (RANKAD, TRIMMED)


class _NeighbourDistance:
    """Score rows by their mean distance to the nearest training rows; a high score means anomalous."""

    def __init__(self, n_neighbors: int, prepare: Callable[[Floats], _Prepared] | None = None) -> None:
        self.n_neighbors, self.prepare = n_neighbors, prepare

    def fit(self, rows: Floats) -> _NeighbourDistance:
        from sklearn.neighbors import NearestNeighbors

        self.prepared_ = self.prepare(rows) if self.prepare else _as_they_are
        self.neighbors_ = NearestNeighbors(n_neighbors=self.n_neighbors).fit(self.prepared_(rows))
        return self

    def decision_function(self, rows: Floats) -> Floats:
        distances, _ = self.neighbors_.kneighbors(self.prepared_(rows))
        return np.asarray(distances.mean(axis=1))


_Prepared = Callable[[Floats], Floats]


def _as_they_are(rows: Floats) -> Floats:
    return rows


def _robust(train: Floats) -> _Prepared:
    """Return how to divide columns by their interquartile range; where that is zero, by the deviation."""
    low, center, high = np.percentile(train, [25, 50, 75], axis=0)
    # The interquartile range of a Gaussian is 1.349 standard deviations.
    spread = np.where(high > low, (high - low) / 1.349, train.std(axis=0))
    scale = np.where(spread > 0, spread, 1.0)
    return lambda rows: (rows - center) / scale


def _whitened(train: Floats) -> _Prepared:
    """Return how to make columns uncorrelated, by a covariance that Ledoit and Wolf's rule has shrunk."""
    from sklearn.covariance import LedoitWolf

    factor = np.linalg.cholesky(LedoitWolf().fit(train).precision_)
    return lambda rows: np.asarray(rows @ factor)


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


def _mixture(seed: int) -> Any:
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(10, reg_covar=1e-3, random_state=seed)


def _lunar(seed: int) -> Any:
    from pyod.models.lunar import LUNAR

    return LUNAR(random_state=seed)


def _dif(seed: int) -> Any:
    from pyod.models.dif import DIF

    return DIF(random_state=seed, device="cpu")


_scaled = partial(Method, standardized=True)
# As in PyOD: a high score means anomalous.
_of_pyod = partial(_scaled, answer="decision_function", sign=-1)
_as_it_is = partial(Method, answer="decision_function", sign=-1)

_NETWORKS = (_of_pyod("LUNAR", _lunar), _of_pyod("DIF", _dif))
# They are networks, and left out where there is no library for these.
WITHOUT_TORCH = tuple(method.name for method in _NETWORKS if find_spec("torch") is None)

# Each is built from a seed.
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(RANKAD, _rankad),
        Method(TRIMMED, _trimmed),
        _of_pyod(KNN, lambda seed: _NeighbourDistance(5)),
        _as_it_is(f"{KNN}, raw", lambda seed: _NeighbourDistance(5)),
        _as_it_is(f"{KNN}, robust", lambda seed: _NeighbourDistance(5, _robust)),
        _of_pyod(f"{KNN}, whitened", lambda seed: _NeighbourDistance(5, _whitened)),
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
        _scaled(MIXTURE, _mixture),
        _of_pyod("KDE", _kde),
        *(method for method in _NETWORKS if method.name not in WITHOUT_TORCH),
    )
}

# Compared with one another: none is told what share of the rows to leave out.
COMPARED = tuple(name for name in METHODS if name != TRIMMED)
# Fitted on contaminated rows too.
CONTAMINATED = (RANKAD, TRIMMED, KNN, "k-NN 20", "LOF", "OneClassSVM", "IsolationForest", "GMM")


def detector(name: str, seed: int) -> Detector:
    """Return a method's detector, on one thread."""
    method = METHODS[name]
    return Detector(method, 1, method.build(seed))
