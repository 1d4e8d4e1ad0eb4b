"""Fit time, peak memory and AUC against the number of training rows."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import peak_memory, repeat_seconds, reset_peak, resident, seconds
from benchmarks.peers import METHODS, RANKAD, Detector, Method
from benchmarks.process import run_job
from benchmarks.rows import HELD_OUT, JITTER, test_rows, training_rows
from benchmarks.settings import Bench
from benchmarks.text import amount, show, threads_name
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.experiments.measures import auc
from rankad.experiments.results import Table

__all__ = ["expected_seconds", "fit_one", "published", "run", "tables", "warm_up", "why_not"]

# Fits of a cell, and the seconds within which the last of them begins.
_REPEATS, _BUDGET = 3, 10.0
# Enough rows for every compiled function, and few enough to take no time.
_WARM_UP_ROWS = 300
# Enough for a near field, so that what is compiled for many rows is compiled.
_COMPILED_ROWS = 15_000


def warm_up(detector: Detector, rows: Floats) -> None:
    """Load and compile what a fit and a score need, on few rows."""
    detector.fit(rows[:_WARM_UP_ROWS]).score(rows[:_WARM_UP_ROWS])


def fit_one(method: str, n: int, threads: int, rows: Path) -> dict[str, Any]:
    """Fit one method on n rows; in a process of its own."""
    train = training_rows(rows, n)
    detector = Detector(METHODS[method], threads)
    warm_up(Detector(METHODS[method], threads), train)
    reset_peak()
    before = resident()
    first = seconds(lambda: detector.fit(train))
    peak = peak_memory() - before
    more = repeat_seconds(lambda: detector.fit(train), _REPEATS - 1, _BUDGET - first)
    # Before scoring: ECOD keeps what it scored.
    size = len(pickle.dumps(detector.state))
    test, nominal = test_rows(rows)
    return {
        "fit_seconds": median([first, *more]),
        "peak_bytes": max(0, peak),
        "auc": auc(nominal, detector.score(test)),
        "model_bytes": size,
    }


def fit_published(n: int, threads: int, rows: Path) -> dict[str, Any]:
    """Fit the paper's rankAD with its whole grid."""
    from rankad import RankAD

    train, (test, nominal) = training_rows(rows, n), test_rows(rows)
    warm_up(Detector(METHODS[RANKAD], threads), train)
    detector = RankAD.as_published(random_state=0, n_jobs=threads)
    time = seconds(lambda: detector.fit(train))
    return {"fit_seconds": time, "auc": auc(nominal, detector.score_samples(test))}


def compile_all(n: int, threads: int, rows: Path) -> dict[str, Any]:
    """Fill numba's cache, so that no time below is a compiler's."""
    train = training_rows(rows, n)[:_COMPILED_ROWS]
    return {"seconds": seconds(lambda: Detector(METHODS[RANKAD], threads).fit(train).score(train))}


# --------------------------------------------------------------------------------------------------- the run


def run(bench: Bench, store: CellStore) -> list[dict[str, Any]]:
    """Fit every method at every size, from few rows to many, and return one record each."""
    compiled = {"n": bench.sizes.fits[1], "threads": bench.threads[0]}
    work = partial(run_job, "benchmarks.fits:compile_all", {**compiled, "rows": bench.rows}, bench.threads[0])
    run_cells([Cell({"experiment": "compile", **compiled}, work)], store, label="bench: compiling")
    records: list[dict[str, Any]] = []
    for n in bench.sizes.fits:
        wanted: list[dict[str, Any]] = [
            {"method": name, "n": n, "threads": threads} for name in METHODS for threads in bench.threads
        ]
        reasons = [why_not(METHODS[key["method"]], key, records, bench.sizes.fit_limit) for key in wanted]
        todo = [
            Cell({"experiment": "fit", **key}, _work(bench, "fit_one", key))
            for key, reason in zip(wanted, reasons, strict=True)
            if reason is None
        ]
        found = iter(run_cells(todo, store, label=f"bench: fits of {n:,} rows"))
        records += [
            {**key, **(next(found) if reason is None else {"missing": reason})}
            for key, reason in zip(wanted, reasons, strict=True)
        ]
    return records


def published(bench: Bench, store: CellStore) -> dict[str, Any]:
    """Fit ``RankAD.as_published()``."""
    key = {"n": bench.sizes.published, "threads": bench.threads[0]}
    cell = Cell({"experiment": "published", **key}, _work(bench, "fit_published", key))
    return {**key, **run_cells([cell], store, label="bench: as_published()")[0]}


def _work(bench: Bench, function: str, key: dict[str, Any]) -> Any:
    arguments = {**key, "rows": bench.rows}
    return partial(run_job, f"benchmarks.fits:{function}", arguments, key["threads"], bench.sizes.stop)


def why_not(
    method: Method, key: dict[str, Any], earlier: Iterable[dict[str, Any]], limit: float
) -> str | None:
    """Say why a fit is not tried; None where it is."""
    if method.most_rows is not None and key["n"] > method.most_rows:
        return f"not run: too slow beyond {method.most_rows:,} rows"
    smaller = [r for r in earlier if r["method"] == method.name and r["threads"] == key["threads"]]
    if any(not r.get("missing", "failed").startswith("failed") for r in smaller):
        return "not run: too slow on fewer rows"
    known = [(r["n"], r["fit_seconds"]) for r in smaller if "missing" not in r]
    expected = expected_seconds(known, key["n"])
    if expected is not None and expected > limit:
        return f"not run: too slow, {expected:.0f} s expected"
    return None


def expected_seconds(known: Sequence[tuple[int, float]], n: int) -> float | None:
    """Return the time that a fit of n rows will take, by those of fewer rows.

    Time grows like the power of n seen between the two largest sizes, at least 0 and at most 2; 1 if there is
    one size only. None without any.
    """
    if not known:
        return None
    *_, (last, time) = known
    power = 1.0
    if len(known) > 1:
        before, less = known[-2]
        power = min(2.0, max(0.0, math.log(time / less) / math.log(last / before)))
    return time * math.pow(n / last, power)


# ------------------------------------------------------------------------------------------------ the tables


def tables(records: Sequence[dict[str, Any]], paper: dict[str, Any], bench: Bench) -> list[Table]:
    """Show fit time, memory and AUC against n."""
    sizes = bench.sizes
    limits = ", ".join(f"{m.name} beyond {m.most_rows:,} rows" for m in METHODS.values() if m.most_rows)
    rule = (
        f"Not run: {limits}, by decision; any other where the time expected from the smaller sizes passes "
        f"{sizes.fit_limit:.0f} s; and those that took more than {sizes.stop:.0f} s were stopped."
    )
    rows = (
        f"Cover's nominal rows, the same for all; beyond 200,000 they are repeated, moved by {JITTER:g} of a "
        f"column's standard deviation. Tested on {HELD_OUT:,} other nominal rows and all anomalies."
    )
    fit = f"Median of up to {_REPEATS} fits after a warm-up on {_WARM_UP_ROWS} rows, which "
    fit += "compiles RankAD. Each cell is a process of its own."
    peak = "The most memory held during the first fit, above that held with the rows loaded just before."
    found: list[Table] = []
    for threads in bench.threads:
        name = threads_name(threads)
        here = [r for r in records if r["threads"] == threads]
        first = threads == bench.threads[0]
        seconds_notes = [fit, rows, rule, _published_note(paper)] if first else []
        found += [
            _against_n(here, f"fit-time-{threads}", f"Fit time, {name}", "fit_seconds", seconds_notes),
            _against_n(
                here,
                f"peak-memory-{threads}",
                f"Peak memory of a fit, {name}",
                "peak_bytes",
                [peak] if first else [],
            ),
        ]
    here = [r for r in records if r["threads"] == bench.threads[0]]
    return [*found, _against_n(here, "auc", "AUC against training rows", "auc", [])]


def _published_note(paper: dict[str, Any]) -> str:
    time = paper.get("missing") or f"{paper['fit_seconds']:.1f} s, AUC {paper['auc']:.4f}"
    return (
        f"RankAD.as_published() with its whole grid, {paper['n']:,} rows, {paper['threads']} threads: {time}."
    )


def _against_n(records: Sequence[dict[str, Any]], name: str, title: str, what: str, notes: Any) -> Table:
    sizes = list(dict.fromkeys(record["n"] for record in records))
    rows = []
    for method in METHODS:
        here = {r["n"]: r for r in records if r["method"] == method}
        rows.append([method, *(show(here[n], what) for n in sizes)])
    return Table(name, title, ["training rows", *(amount(n) for n in sizes)], rows, notes)
