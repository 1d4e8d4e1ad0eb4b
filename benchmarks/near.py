"""The near field of large fits: what it does to AUC, false alarms, rows/s, fit time and model size."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.fits import warm_up
from benchmarks.measure import repeat_seconds, seconds
from benchmarks.peers import METHODS, RANKAD, Detector
from benchmarks.process import run_job
from benchmarks.scoring import repeat_to
from benchmarks.settings import Bench
from benchmarks.text import amount, bytes_text, seconds_text, threads_name
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.experiments.datasets import load_dataset
from rankad.experiments.measures import auc
from rankad.experiments.results import Table, mean

__all__ = ["fit_large", "prepare", "run", "table"]

_REPEATS = 3
# The most nominal rows that test; a fifth of them at most.
_TESTED = 20_000
_ALPHA = 0.05


def prepare(folder: Path, names: Sequence[str], draws: int, most: int, data: Path | None = None) -> None:
    """Write the rows of every set and draw: nominal ones to train on, others and the anomalies to test on."""
    for name in names:
        found = load_dataset(name, data)
        nominal, anomalous = np.flatnonzero(found.y == 0), np.flatnonzero(found.y == 1)
        n_tested = min(_TESTED, nominal.size // 5)
        for draw in range(draws):
            order = np.random.default_rng(draw).permutation(nominal)
            tested, train = order[:n_tested], order[n_tested : n_tested + most]
            np.savez(
                _file(folder, name, draw),
                train=found.X[train],
                test=found.X[np.concatenate([tested, anomalous])],
                nominal=np.repeat([True, False], [n_tested, anomalous.size]),
            )


def _file(folder: Path, name: str, draw: int) -> Path:
    return Path(folder) / f"large-{name}-{draw}.npz"


def fit_large(
    name: str, near_field: bool, draw: int, threads: int, scored: int, rows: Path
) -> dict[str, Any]:
    """Fit RankAD on one draw of a set, with a near field or without."""
    from rankad import RankAD

    with np.load(_file(rows, name, draw)) as found:
        train, test, nominal = found["train"], found["test"], found["nominal"]
    detector = RankAD(near_field=near_field, random_state=draw, n_jobs=threads)
    warm_up(Detector(METHODS[RANKAD], threads), train)
    times = [seconds(lambda: detector.fit(train)) for _ in range(_REPEATS)]
    many = repeat_to(test, scored)
    rate = scored / median(repeat_seconds(lambda: detector.score_samples(many), _REPEATS))
    return {
        "n": len(train),
        "fit_seconds": median(times),
        "rows_per_second": rate,
        "auc": auc(nominal, detector.score_samples(test)),
        "false_alarms": float(np.mean(detector.p_values(test[nominal]) <= _ALPHA)),
        "model_bytes": len(pickle.dumps(detector)),
    }


def run(bench: Bench, store: CellStore) -> list[dict[str, Any]]:
    """Return one record for every set, with and without, over all draws."""
    sizes, threads = bench.sizes, bench.threads[0]
    keys = [
        {"name": name, "near_field": near_field, "draw": draw, "threads": threads, "scored": sizes.scored}
        for name in sizes.large_sets
        for near_field in (False, True)
        for draw in range(sizes.draws)
    ]
    cells = [
        Cell(
            {"experiment": "near", **key},
            partial(run_job, "benchmarks.near:fit_large", {**key, "rows": bench.rows}, threads, sizes.stop),
        )
        for key in keys
    ]
    found = run_cells(cells, store, label="bench: near field")
    return [_summary(key, found[at : at + sizes.draws]) for at, key in enumerate(keys) if key["draw"] == 0]


def _summary(key: dict[str, Any], draws: Sequence[dict[str, Any]]) -> dict[str, Any]:
    told = {"name": key["name"], "near_field": key["near_field"]}
    missing = [record["missing"] for record in draws if "missing" in record]
    if missing:
        return {**told, "missing": missing[0]}
    averaged = {what: mean([record[what] for record in draws]) for what in ("auc", "false_alarms")}
    timed = {
        what: median(record[what] for record in draws)
        for what in ("n", "fit_seconds", "rows_per_second", "model_bytes")
    }
    return {**told, **averaged, **timed, "draws": list(draws)}


def table(records: Sequence[dict[str, Any]], bench: Bench) -> Table:
    """Show both ways, set by set."""
    rows = []
    for record in records:
        told = [record["name"], "with" if record["near_field"] else "without"]
        if "missing" in record:
            rows.append([*told, *[str(record["missing"])] * 6])
            continue
        rows.append(
            [
                *told,
                amount(record["n"]),
                f"{record['auc']:.4f}",
                f"{100 * record['false_alarms']:.2f} %",
                amount(record["rows_per_second"]),
                seconds_text(record["fit_seconds"]),
                bytes_text(record["model_bytes"]),
            ]
        )
    draws = bench.sizes.draws
    notes = [
        f"RankAD(near_field=...), {threads_name(bench.threads[0])}; {draws} draw{'s' * (draws > 1)} of "
        f"training rows: AUC and false alarms at {100 * _ALPHA:g} % are means, the rest are medians."
    ]
    columns = [
        "data",
        "near field",
        "training rows",
        "AUC",
        "false alarms",
        "rows/s",
        "fit time",
        "model size",
    ]
    return Table("near", "The near field", columns, rows, notes)
