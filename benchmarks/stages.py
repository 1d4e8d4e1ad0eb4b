"""Where the time of a fit and of scoring goes, stage by stage, and what bounds each."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.fits import warm_up
from benchmarks.measure import repeat_seconds
from benchmarks.peers import METHODS, RANKAD, Detector
from benchmarks.process import run_job
from benchmarks.rows import test_rows, training_rows
from benchmarks.scoring import repeat_to
from benchmarks.settings import Bench
from benchmarks.text import seconds_text
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.experiments.results import Table

__all__ = ["profile_one", "run", "tables"]

_REPEATS = 7

# What a fit consists of: module and functions, and what bounds them. No two of them call one another, but for
# the few rows that ranks ask neighbours of again.
_STAGES = {
    "neighbours": (
        "neighbors",
        ("nearest_neighbors", "neighbors_among"),
        "float64 distances, n² d of them where nothing is shared; the cache",
    ),
    "ranks": ("ranks", ("resampled_ranks", "density_ranks"), "20 halvings: gathers and sorts of n numbers"),
    "landmarks": ("kernels", ("choose_landmarks",), "n s d distances a round of k-means"),
    "kernel features": (
        "kernels",
        ("features", "__init__"),
        "n s exponentials, and products of n s² in float64",
    ),
    "RankSVM": (
        "ranksvm",
        ("_minimize",),
        "n s² a Newton step, matrix products in float32; some four steps a fit",
    ),
    "near field": ("nearfield", ("of", "score"), "float32 distances to hubs and to the rows about them"),
    "mixture": ("mixture", ("fit_mixture",), "n d² a Gaussian and step, matrix products in float64"),
}


def profile_one(n: int, scored: int, rows: Path) -> dict[str, Any]:
    """Profile a default fit and a scoring call on one thread, in a process of its own."""
    train, (test, _) = training_rows(rows, n), test_rows(rows)
    warm_up(Detector(METHODS[RANKAD], 1), train)
    detector = Detector(METHODS[RANKAD], 1)
    profile = cProfile.Profile()
    profile.runcall(detector.fit, train)
    stats = pstats.Stats(profile)
    found: Mapping[Any, Any] = stats.stats  # type: ignore[attr-defined]
    by_function: dict[tuple[str, str], float] = {}
    for (path, _, function), (_, _, _, cumulative, _) in found.items():
        key = (Path(path).stem, function) if "rankad" in Path(path).parts else ("", function)
        by_function[key] = by_function.get(key, 0.0) + cumulative
    spent = {
        stage: sum(by_function.get((module, function), 0.0) for function in functions)
        for stage, (module, functions, _) in _STAGES.items()
    }
    total = by_function["rank", "fit"]
    spent["everything else"] = total - sum(spent.values())
    many = repeat_to(test, scored)
    fitted = detector.estimator
    scores = fitted.score_samples(many)
    return {
        "fit": spent,
        "fit_seconds": total,
        "kernel": median(repeat_seconds(lambda: fitted.scorer_.score(many), _REPEATS)),
        "score_samples": median(repeat_seconds(lambda: fitted.score_samples(many), _REPEATS)),
        "search": median(repeat_seconds(lambda: fitted.calibration_.p_values(scores), _REPEATS)),
        "p_values": median(repeat_seconds(lambda: fitted.p_values(many), _REPEATS)),
    }


def run(bench: Bench, store: CellStore) -> dict[str, Any]:
    """Profile, and return the record."""
    key = {"n": bench.sizes.base, "scored": bench.sizes.scored}
    job = partial(run_job, "benchmarks.stages:profile_one", {**key, "rows": bench.rows}, 1, bench.sizes.stop)
    return run_cells([Cell({"experiment": "stages", **key}, job)], store, label="bench: stages")[0]


def tables(record: dict[str, Any], bench: Bench) -> list[Table]:
    """Show where the time goes."""
    sizes = bench.sizes
    bounds = {stage: bound for stage, (_, _, bound) in _STAGES.items()}
    fit = [
        [stage, seconds_text(spent), f"{spent / record['fit_seconds']:.0%}", bounds.get(stage, "Python")]
        for stage, spent in record["fit"].items()
    ]
    fit.append(["all", seconds_text(record["fit_seconds"]), "100%", ""])
    parts = {
        "kernel": ("`KernelScorer.score`", "arithmetic of one core: see the roofline"),
        "score_samples": ("`score_samples`, the kernel included", "the kernel"),
        "search": ("p-values of scores that are known", "a binary search a row: cache misses"),
        "p_values": ("`p_values`, all of it", "the kernel"),
    }
    scoring = [
        [name, seconds_text(record[part]), f"{record[part] / record['p_values']:.0%}", bound]
        for part, (name, bound) in parts.items()
    ]
    columns = ["stage", "time", "share", "bound by"]
    return [
        Table(
            "fit-stages",
            "Where a fit spends its time",
            columns,
            fit,
            [f"Default RankAD, {sizes.base:,} rows of cover, one thread, under a profiler (cProfile)."],
        ),
        Table(
            "score-stages",
            "Where scoring spends its time",
            columns,
            scoring,
            [f"{sizes.scored:,} rows, one thread; each part measured by itself, median of {_REPEATS}."],
        ),
    ]
