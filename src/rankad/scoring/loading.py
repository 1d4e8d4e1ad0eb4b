"""Load a model file as a detector on tables, whatever kind was saved."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from rankad._base.rows import validate_rows
from rankad.detectors.table import TableDetector
from rankad.io.errors import TableError
from rankad.modelfile import load
from rankad.tables import TableEncoder
from rankad.tables.encoded_columns import NumberColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankad.detectors import KLPE, EpsilonLPE, RankAD
    from rankad.modelfile import ModelCard


_MOST_THREADS = 64


def check_there(model: Path) -> None:
    """Raise where there is no such model file."""
    if not model.exists():
        raise TableError(f"There is no model file {model}; make one with rankad fit TABLE --model {model}")


def load_for(path: Path, columns: Sequence[str], jobs: int | None) -> TableDetector:
    """Load a model to score a table with these columns."""
    check_there(path)
    loaded = load(path)
    detector = loaded if isinstance(loaded, TableDetector) else for_table(loaded, columns)
    detector.detector_.n_jobs = threads(jobs)
    return detector


def for_table(detector: RankAD | KLPE | EpsilonLPE, columns: Sequence[str]) -> TableDetector:
    """Return a detector fitted on an array as one on tables of numbers; missing values are strange.

    Columns are matched by name if it was fitted with names; otherwise there must be as many as in the array.
    """
    names = getattr(detector, "feature_names_in_", None)
    if names is None and len(columns) != detector.n_features_in_:
        raise TableError(
            f"the model was fitted on an array of {detector.n_features_in_} columns without names, but the "
            f"table has {len(columns)}; give a table of only those columns, in their order."
        )
    # The filler of a missing value does not matter: the row gets the lowest score.
    fillers = detector.scaling_.center.tolist()
    used = tuple(
        NumberColumn(str(name), filler, 0.0, 1.0, missing=False, constant=False)
        for name, filler in zip(columns if names is None else names, fillers, strict=True)
    )
    encoder = TableEncoder(used, ids=(), dropped=(), n_rows=detector.n_samples_fit_, n_singletons=0)
    # From now on it gets arrays, and would warn that these have no names.
    plain = copy.copy(detector)
    plain.__dict__.pop("feature_names_in_", None)
    return TableDetector.of_parts(encoder, plain)


def as_table(detector: Any, X: Any) -> tuple[TableDetector, pl.DataFrame]:
    """Return a detector of tables, and the rows as a table."""
    if isinstance(detector, TableDetector):
        return detector, detector.encoder_.table_of(X)
    rows = validate_rows(detector, X, reset=False)
    named = getattr(detector, "feature_names_in_", None)
    names = [f"column {i}" for i in range(rows.shape[1])] if named is None else [str(name) for name in named]
    return for_table(detector, names), pl.DataFrame(dict(zip(names, rows.T, strict=True)))


def as_saved(detector: TableDetector, card: ModelCard) -> TableDetector | RankAD | KLPE | EpsilonLPE:
    """Return the detector in the form that it was loaded from."""
    if card.kind == "TableDetector":
        return detector
    inner = cast("RankAD | KLPE | EpsilonLPE", detector.detector_)
    if card.columns:
        inner.feature_names_in_ = np.array(card.columns, dtype=object)
    return inner


def threads(jobs: int | None) -> int:
    """Return the number of threads: as given, up to a limit, or as many as there are cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # The system may not start any number of threads, and answers do not depend on it.
    return cores if jobs is None else min(jobs, max(cores, _MOST_THREADS))
