"""What it costs to begin: the import, and the first score of a loaded model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.peers import METHODS, RANKAD, Detector
from benchmarks.process import child_environment, run_job
from benchmarks.rows import training_rows
from benchmarks.settings import Bench
from benchmarks.text import seconds_text
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.experiments.results import Table

__all__ = ["run", "start", "table"]

_STOP = 300.0
_IMPORT = """
import time
begin = time.perf_counter()
{statement}
print({{"import": time.perf_counter() - begin}})
"""
_FIRST_CALL = """
import sys, time
import numpy as np
rows = np.load(sys.argv[2])
begin = time.perf_counter()
import rankad
rankad.RankAD
imported = time.perf_counter()
detector = rankad.load(sys.argv[1])
loaded = time.perf_counter()
detector.score_samples(rows)
scored = time.perf_counter()
print({"import": imported - begin, "load": loaded - imported, "first": scored - loaded})
"""
_PROGRAMS = {
    "import sklearn.svm": _IMPORT.format(statement="import sklearn.svm"),
    # The detector is imported when it is asked for; without it the import would cost nothing.
    "import rankad": _IMPORT.format(statement="from rankad import RankAD"),
    "first score": _FIRST_CALL,
}


def start(n: int, threads: int, starts: int, rows: Path) -> dict[str, Any]:
    """Fit and keep a model, then start processes; their programs take turns."""
    train = training_rows(rows, n)
    model, few = Path(rows) / "model.rankad", Path(rows) / "few.npy"
    detector = Detector(METHODS[RANKAD], threads).fit(train).estimator
    detector.score_samples(train)
    detector.save(model)
    np.save(few, train[:10])
    found: dict[str, list[dict[str, float]]] = {name: [] for name in _PROGRAMS}
    # The first round fills the system's cache of files and does not count.
    for turn in range(starts + 1):
        for name, program in _PROGRAMS.items():
            times = _in_a_process(program, [model, few], threads)
            if turn:
                found[name].append(times)
    return {
        name: {part: median(times[part] for times in several) for part in several[0]}
        for name, several in found.items()
    }


def _in_a_process(program: str, files: Sequence[Path], threads: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, files)],
        capture_output=True,
        text=True,
        check=True,
        env=child_environment(threads),
    )
    times: dict[str, float] = json.loads(done.stdout.replace("'", '"'))
    return times


def run(bench: Bench, store: CellStore) -> dict[str, Any]:
    """Time imports and first scores."""
    key = {"n": bench.sizes.base, "threads": bench.threads[0], "starts": bench.sizes.starts}
    arguments = {**key, "rows": bench.rows}
    work = partial(run_job, "benchmarks.startup:start", arguments, key["threads"], _STOP)
    return {**key, **run_cells([Cell({"experiment": "start", **key}, work)], store, label="bench: start")[0]}


def table(record: dict[str, Any]) -> Table:
    """Show what the first moments cost."""
    columns = ["import sklearn.svm", "import rankad", "load a model", "its first score_samples"]
    if "missing" in record:
        row = [str(record["missing"])] * 4
    else:
        first = record["first score"]
        times = [record[name]["import"] for name in columns[:2]] + [first["load"], first["first"]]
        row = [seconds_text(time) for time in times]
    notes = [
        f"Medians of {record['starts']} fresh processes, after one that does not count. The model is loaded "
        "from its file by a process that has imported RankAD, which leaves numba to `load`, and compiled "
        "nothing: numba's cache has it."
    ]
    return Table("start", "Start", columns, [row], notes)
