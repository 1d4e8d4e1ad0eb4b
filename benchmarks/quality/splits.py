"""The rows of one run: nominal ones to train on, with anomalies mixed in where asked for, and the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.quality.settings import SHARES, Sizes
from rankad._base.arrays import Bools, Floats
from rankad.experiments.datasets import Dataset, split_nominal

__all__ = ["Parts", "n_mixed", "split"]


class Parts(NamedTuple):
    """What trains and what tests.

    Attributes
    ----------
    train : ndarray of shape (n_train, d)
    mixed : int
        How many of these are anomalies.
    test : ndarray of shape (n_test, d)
    nominal : ndarray of shape (n_test,)
        True for nominal rows.
    spared : ndarray of shape (n_test,)
        False for anomalies that train where training is contaminated, at whatever share.
    """

    train: Floats
    mixed: int
    test: Floats
    nominal: Bools
    spared: Bools


def n_mixed(share: float, n_train: int, n_anomalies: int) -> int:
    """Return how many anomalies replace nominal rows: at most half of those there are.

    Examples
    --------
    >>> n_mixed(0.05, 2_000, 300), n_mixed(0.10, 2_000, 300), n_mixed(0.10, 2_000, 1)
    (100, 150, 0)
    """
    return min(round(share * n_train), n_anomalies // 2)


def split(dataset: Dataset, seed: int, share: float, sizes: Sizes) -> Parts:
    """Split a set for one run.

    The nominal rows are permuted; half of them train, `sizes.train` at most, and of the rest `sizes.nominal`
    at most test, with all anomalies. A share of anomalies is mixed in by putting them in the place of as many
    training rows: those of a small share are among those of a larger one. Where the share is not zero, the
    anomalies of the largest share are left out of the test rows, so that all shares are tested on the same.

    Parameters
    ----------
    dataset : Dataset
    seed : int
    share : float
        Of the training rows; zero, or one of `SHARES`.
    sizes : Sizes
    """
    rng = np.random.default_rng(seed)
    n_train = min(int((dataset.y == 0).sum()) // 2, sizes.train)
    train, test, nominal = split_nominal(dataset, rng, n_train, sizes.nominal)
    anomalous = rng.permutation(np.flatnonzero(~nominal))
    drawn = anomalous[: n_mixed(max(SHARES), n_train, anomalous.size)]
    mixed = n_mixed(share, n_train, anomalous.size)
    spared = np.ones(len(test), dtype=bool)
    spared[drawn] = False
    train = np.concatenate([train[mixed:], test[drawn[:mixed]]])
    kept = spared if share > 0 else np.ones_like(spared)
    return Parts(train, mixed, test[kept], nominal[kept], spared[kept])
