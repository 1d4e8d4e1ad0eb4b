"""How much a figure depends on the split: its range over seeds, set by set, RankAD's beside k-NN 5's."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality.methods import KNN, RANKAD
from rankad._base.arrays import Floats
from rankad.experiments.results import Table, mean

__all__ = ["Ranges", "ranges", "table"]


class Ranges(NamedTuple):
    """The highest AUC less the lowest, over splits.

    Attributes
    ----------
    sets : tuple of str
    ours, theirs : ndarray of shape (n_sets,)
        RankAD's and k-NN 5's.
    n_splits : int
    """

    sets: tuple[str, ...]
    ours: Floats
    theirs: Floats
    n_splits: int


def ranges(records: Iterable[Mapping[str, Any]], seeds: Container[int]) -> Ranges:
    """Return the ranges over the splits with these seeds, without anomalies among the training rows."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for record in records:
        if record["share"] == 0 and record["seed"] in seeds and record["method"] in (RANKAD, KNN):
            of_set = found.setdefault(record["set"], {RANKAD: {}, KNN: {}})
            of_set[record["method"]][record["seed"]] = record["auc"]
    sets = sorted(found, key=str.lower)
    ours, theirs = (
        np.array([max(found[name][method].values()) - min(found[name][method].values()) for name in sets])
        for method in (RANKAD, KNN)
    )
    return Ranges(tuple(sets), ours, theirs, len(found[sets[0]][RANKAD]))


def table(found: Ranges) -> Table:
    """Show the ranges."""
    rows = [
        [name, f"{ours:.3f}", f"{theirs:.3f}", f"{round(ours - theirs, 3) + 0.0:+.3f}"]
        for name, ours, theirs in zip(found.sets, found.ours, found.theirs, strict=True)
    ]
    means = [f"{mean(column.tolist()):.3f}" for column in (found.ours, found.theirs)]
    rows.append(["**mean**", *means, ""])
    notes = [f"The highest AUC less the lowest, over {found.n_splits} splits that are the same for both."]
    return Table("spread", "Spread over splits", ["set", RANKAD, KNN, "wider"], rows, notes)
