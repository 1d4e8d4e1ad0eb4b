"""The rows of one run on a real data set: loaded once, and the same for every method."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rankad.experiments.datasets import Dataset, Split, load_dataset, split_nominal

__all__ = ["draw", "load"]


@lru_cache(maxsize=8)
def load(name: str, data: Path | None) -> Dataset:
    """Load a data set once."""
    return load_dataset(name, data)


def draw(dataset: Dataset, seed: int, size: Mapping[str, Any]) -> Split:
    """Split a set for one run.

    Parameters
    ----------
    dataset : Dataset
    seed : int
    size : mapping
        "n_train" nominal rows train; at most "max_nominal" others and "max_anomalous" anomalies test, None
        for all of these.
    """
    rng = np.random.default_rng(seed)
    split = split_nominal(dataset, rng, n_train=size["n_train"], max_nominal_test=size["max_nominal"])
    anomalous = np.flatnonzero(~split.nominal)
    if size["max_anomalous"] is None or len(anomalous) <= size["max_anomalous"]:
        return split
    kept = rng.choice(anomalous, size=size["max_anomalous"], replace=False)
    at = np.sort(np.concatenate([np.flatnonzero(split.nominal), kept]))
    return Split(split.train, split.test[at], split.nominal[at])
