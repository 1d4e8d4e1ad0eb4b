"""The rows that all methods share: cover's nominal rows to train on, others and the anomalies to test on.

They are files, so that a process that fits holds them and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rankad._base.arrays import Bools, Floats
from rankad.experiments.datasets import load_dataset

__all__ = ["HELD_OUT", "JITTER", "prepare", "repeated", "test_rows", "training_rows"]

# Nominal rows that test.
HELD_OUT = 20_000
# What a repeated row is moved by, in standard deviations of a column.
JITTER = 1e-3
# Rows that train without being repeated.
_DISTINCT = 200_000


def prepare(folder: Path, sizes: Sequence[int], seed: int, data: Path | None = None) -> None:
    """Write the files; `training_rows` and `test_rows` read them."""
    cover = load_dataset("cover", data)
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(cover.y == 0))
    anomalous = np.flatnonzero(cover.y == 1)
    np.save(folder / "test.npy", cover.X[np.concatenate([order[:HELD_OUT], anomalous])])
    np.save(folder / "nominal.npy", np.repeat([True, False], [HELD_OUT, anomalous.size]))
    pool = cover.X[order[HELD_OUT : HELD_OUT + _DISTINCT]]
    for n in sizes:
        np.save(folder / f"train-{n}.npy", repeated(pool, n, rng))


def repeated(pool: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Return n rows: those of the pool, and once these are used up the same again, each moved a little."""
    rows = pool[np.arange(n) % len(pool)]
    again = rows[len(pool) :]
    again += JITTER * pool.std(axis=0) * rng.standard_normal(again.shape)
    return rows


def training_rows(folder: Path, n: int) -> Floats:
    """Read n training rows; fewer of them are the first of more."""
    return np.asarray(np.load(Path(folder) / f"train-{n}.npy"))


def test_rows(folder: Path) -> tuple[Floats, Bools]:
    """Read the test rows, and which of them are nominal."""
    return np.load(Path(folder) / "test.npy"), np.load(Path(folder) / "nominal.npy")
