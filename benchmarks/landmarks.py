"""Landmarks for speed: what fewer or more of them do to rows/s, AUC and fit time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.fits import warm_up
from benchmarks.measure import repeat_seconds, seconds
from benchmarks.peers import METHODS, RANKAD, Detector
from benchmarks.process import run_job
from benchmarks.rows import test_rows, training_rows
from benchmarks.scoring import repeat_to
from benchmarks.settings import Bench
from benchmarks.text import amount, seconds_text, threads_name
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.experiments.measures import auc
from rankad.experiments.results import Table, mean, standard_error

__all__ = ["fit_with", "run", "table"]

_REPEATS = 5


def fit_with(
    landmarks: int, draw: int, n: int, pool: int, threads: int, scored: int, rows: Path
) -> dict[str, Any]:
    """Fit RankAD with the given number of landmarks on one draw of n rows of a pool of them."""
    from rankad import RankAD

    train, (test, nominal) = training_rows(rows, pool)[draw * n : (draw + 1) * n], test_rows(rows)
    estimator = RankAD(landmarks=landmarks, random_state=draw, n_jobs=threads)
    detector = Detector(METHODS[RANKAD], threads, estimator)
    warm_up(Detector(METHODS[RANKAD], threads), train)
    fit_seconds = seconds(lambda: detector.fit(train))
    quality = auc(nominal, detector.score(test))
    many = repeat_to(test, scored)
    rate = scored / median(repeat_seconds(lambda: detector.score(many), _REPEATS))
    return {"fit_seconds": fit_seconds, "auc": quality, "rows_per_second": rate}


def run(bench: Bench, store: CellStore) -> list[dict[str, Any]]:
    """Return one record for every number of landmarks, over all draws."""
    sizes, threads = bench.sizes, bench.threads[0]
    common = {"n": sizes.base, "pool": sizes.fits[1], "threads": threads, "scored": sizes.scored}
    keys = [
        {"landmarks": count, "draw": draw, **common}
        for draw in range(sizes.draws)
        for count in sizes.landmarks
    ]
    cells = [
        Cell(
            {"experiment": "landmarks", **key},
            partial(
                run_job, "benchmarks.landmarks:fit_with", {**key, "rows": bench.rows}, threads, sizes.stop
            ),
        )
        for key in keys
    ]
    found = run_cells(cells, store, label="bench: landmarks")
    return [
        _summary(count, [r for key, r in zip(keys, found, strict=True) if key["landmarks"] == count])
        for count in sizes.landmarks
    ]


def _summary(count: int, draws: Sequence[dict[str, Any]]) -> dict[str, Any]:
    missing = [record["missing"] for record in draws if "missing" in record]
    if missing:
        return {"landmarks": count, "missing": missing[0]}
    aucs = [record["auc"] for record in draws]
    return {
        "landmarks": count,
        "auc": mean(aucs),
        "auc_standard_error": standard_error(aucs) if len(aucs) > 1 else None,
        "rows_per_second": median(record["rows_per_second"] for record in draws),
        "fit_seconds": median(record["fit_seconds"] for record in draws),
        "draws": list(draws),
    }


def table(records: Sequence[dict[str, Any]], bench: Bench) -> Table:
    """Show the curve."""
    rows = []
    for record in records:
        if "missing" in record:
            rows.append([amount(record["landmarks"]), *[str(record["missing"])] * 3])
            continue
        error = record["auc_standard_error"]
        quality = f"{record['auc']:.4f}" + (f" ± {error:.4f}" if error is not None else "")
        rate, fit = amount(record["rows_per_second"]), seconds_text(record["fit_seconds"])
        rows.append([amount(record["landmarks"]), rate, quality, fit])
    sizes = bench.sizes
    notes = [
        f"RankAD(landmarks=...), {sizes.base:,} nominal rows of cover, {threads_name(bench.threads[0])}; "
        f"{sizes.draws} draw{'s' * (sizes.draws > 1)} of training rows: AUC is their mean"
        f"{' ± standard error' * (sizes.draws > 1)}, times are medians.",
    ]
    return Table("landmarks", "Landmarks for speed", ["landmarks", "rows/s", "AUC", "fit time"], rows, notes)
