"""Memory while a stream larger than memory is scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import resident, seconds
from benchmarks.peers import METHODS, RANKAD, Detector
from benchmarks.process import run_job
from benchmarks.rows import training_rows
from benchmarks.settings import Bench
from benchmarks.text import amount, bytes_text, seconds_text
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.experiments.results import Table

__all__ = ["growth", "run", "score_stream", "table"]

_BATCH = 100_000
_SEED = 0
# Of the whole run, and not of one fit: the stream takes as long as it is.
_STOP = 900.0


def batches(like: Floats, n_bytes: int) -> Iterator[Floats]:
    """Make up rows, normal with the mean and spread of some others, until there are so many bytes of them."""
    rng = np.random.default_rng(_SEED)
    center, spread = like.mean(axis=0), like.std(axis=0)
    for _ in range(max(4, n_bytes // (_BATCH * like.shape[1] * like.itemsize))):
        yield center + spread * rng.standard_normal((_BATCH, like.shape[1]))


def score_stream(n: int, threads: int, n_bytes: int, rows: Path) -> dict[str, Any]:
    """Ask for the p-values of a stream of batches, and for the memory held after each."""
    train = training_rows(rows, n)
    detector = Detector(METHODS[RANKAD], threads).fit(train).estimator
    memory: list[int] = []
    counted = [0]

    def consume() -> None:
        answers = detector.p_values(batches(train, n_bytes))
        if not isinstance(answers, Iterator):
            raise TypeError(f"p_values(iterator) gave {type(answers).__name__}, not an iterator of arrays")
        for p_values in answers:
            counted[0] += len(p_values)
            memory.append(resident())

    time = seconds(consume)
    return {
        "seconds": time,
        "rows": counted[0],
        "bytes": counted[0] * train.shape[1] * train.itemsize,
        "growth_bytes": growth(memory),
        "most_bytes": max(memory),
        # A hundred of them show what there is to see.
        "memory_bytes": memory[:: max(1, len(memory) // 100)],
    }


def growth(memory: Sequence[int]) -> int:
    """Return by how much the largest of the last quarter exceeds the largest of the first.

    Examples
    --------
    >>> growth([5, 7, 6, 6, 6, 6, 8, 7])
    1
    """
    quarter = max(1, len(memory) // 4)
    return max(memory[-quarter:]) - max(memory[:quarter])


def run(bench: Bench, store: CellStore) -> dict[str, Any]:
    """Score the stream."""
    key = {"n": bench.sizes.base, "threads": bench.threads[0], "n_bytes": bench.sizes.stream_bytes}
    arguments = {**key, "rows": bench.rows}
    work = partial(run_job, "benchmarks.stream:score_stream", arguments, key["threads"], _STOP)
    return {
        **key,
        **run_cells([Cell({"experiment": "stream", **key}, work)], store, label="bench: stream")[0],
    }


def table(record: dict[str, Any]) -> Table:
    """Show what the stream took."""
    columns = ["stream", "rows", "time", "rows/s", "most memory held", "last quarter above the first"]
    if "missing" in record:
        row = [bytes_text(record["n_bytes"]), *[str(record["missing"])] * 5]
    else:
        row = [
            bytes_text(record["bytes"]),
            amount(record["rows"]),
            seconds_text(record["seconds"]),
            amount(record["rows"] / record["seconds"]),
            bytes_text(record["most_bytes"]),
            f"{round(record['growth_bytes'] / 1e6, 1) + 0.0:.1f} MB",
        ]
    notes = [
        f"RankAD.p_values(iterator), batches of {_BATCH:,} rows as wide as cover, made up on the way, which "
        "is part of the time. Memory is asked for after every batch."
    ]
    return Table("stream", "A stream", columns, [row], notes)
