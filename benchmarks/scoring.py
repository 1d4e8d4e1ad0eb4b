"""Rows scored per second, the time of one row, AUC and model size, at one number of training rows."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.fits import warm_up
from benchmarks.measure import latencies, repeat_seconds, seconds
from benchmarks.peers import METHODS, Detector
from benchmarks.process import run_job
from benchmarks.rows import test_rows, training_rows
from benchmarks.settings import Bench
from benchmarks.text import show, threads_name
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.experiments.measures import auc
from rankad.experiments.results import Table

__all__ = ["repeat_to", "run", "score_one", "tables"]

# Calls, and seconds that they take in all at least.
_REPEATS, _LEAST = 7, 2.0


def repeat_to(rows: Floats, n: int) -> Floats:
    """Return n rows, the given ones over and over."""
    return np.ascontiguousarray(rows[np.arange(n) % len(rows)])


def score_one(method: str, n: int, threads: int, scored: int, single: int, rows: Path) -> dict[str, Any]:
    """Fit one method and score with it; in a process of its own."""
    train, (test, nominal) = training_rows(rows, n), test_rows(rows)
    detector = Detector(METHODS[method], threads)
    warm_up(Detector(METHODS[method], threads), train)
    fit_seconds = seconds(lambda: detector.fit(train))
    # Before scoring: ECOD keeps what it scored.
    size = len(pickle.dumps(detector.state))
    quality = auc(nominal, detector.score(test))
    many = repeat_to(test, scored)
    rate = scored / median(repeat_seconds(lambda: detector.score(many), _REPEATS, least=_LEAST))
    few = test[np.random.default_rng(0).choice(len(test), single, replace=False)]
    # Threads are no help with one row, and sharing it out among them is slow.
    alone = detector if threads == 1 else Detector(METHODS[method], 1).fit(train)
    with alone.threads(1):
        found = latencies(alone.single(), few)
    return {
        "fit_seconds": fit_seconds,
        "auc": quality,
        "rows_per_second": rate,
        **found,
        "model_bytes": size,
    }


def run(bench: Bench, store: CellStore) -> list[dict[str, Any]]:
    """Score with every method and return one record each."""
    sizes = bench.sizes
    size = {"n": sizes.base, "scored": sizes.scored, "single": sizes.single}
    keys: list[dict[str, Any]] = [
        {"method": name, "threads": threads, **size} for threads in bench.threads for name in METHODS
    ]
    cells = [
        Cell(
            {"experiment": "score", **key},
            partial(
                run_job,
                "benchmarks.scoring:score_one",
                {**key, "rows": bench.rows},
                key["threads"],
                sizes.stop,
            ),
        )
        for key in keys
    ]
    found = run_cells(cells, store, label="bench: scoring")
    return [{**key, **result} for key, result in zip(keys, found, strict=True)]


def tables(records: Sequence[dict[str, Any]], bench: Bench) -> list[Table]:
    """Show what scoring costs."""
    columns = {
        "rows/s": "rows_per_second",
        "one row, median": "median",
        "one row, p99": "p99",
        "AUC": "auc",
        "model size": "model_bytes",
        "fit time": "fit_seconds",
    }
    sizes = bench.sizes
    notes = [
        f"{sizes.base:,} nominal rows of cover train. rows/s: {sizes.scored:,} test rows in one call, median "
        f"of {_REPEATS} calls (more of quick ones, fewer of slow ones: {_LEAST:g} to 8 seconds). One row: "
        f"{sizes.single} calls, each with another row, n_jobs=1; "
        "RankAD's answer is the p-value, the others' a score. Model size: of the pickle. Fit time: of one "
        "fit.",
    ]
    found: list[Table] = []
    for threads in bench.threads:
        here = [record for record in records if record["threads"] == threads]
        rows = [[r["method"], *(show(r, what) for what in columns.values())] for r in here]
        title = f"Scoring, {threads_name(threads)}"
        found.append(Table(f"scoring-{threads}", title, ["method", *columns], rows, [] if found else notes))
    return found
