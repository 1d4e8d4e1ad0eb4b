"""A CSV larger than memory should be, scored by the command: rate, memory, and interrupted and gone on with.

``python -m benchmarks.big_table --gib 5`` takes some minutes, and on disk five times what it is told.
"""

from __future__ import annotations

import argparse
import hashlib
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from rankad.cli.example import make_example, write_table
from rankad.io.table_files import open_table

_COMMAND = [sys.executable, "-c", "from rankad.cli import main; main()"]
_GIB, _MIB = 2.0**30, 2.0**20
_BLOCK_ROWS = 100_000
_NUMBERS = list(make_example().normal[0])[3:]
_EVERY = 0.25


class Run(NamedTuple):
    """One run of the command: how long, and the memory it held, now and then."""

    seconds: float
    status: int
    held: list[float]


def repeat_table(path: Path, gib: float) -> None:
    """Write the example's new rows over and over."""
    write_table(path, make_example(1, _BLOCK_ROWS, seed=1).new)
    header, rows = path.read_bytes().split(b"\n", 1)
    with path.open("wb") as file:
        file.write(header + b"\n")
        while file.tell() < gib * _GIB:
            file.write(rows)


def run(arguments: list[str], stop_after: float | None = None) -> Run:
    """Run the command and look at its memory; kill it after some seconds, if asked to."""
    begin, held = time.perf_counter(), []
    with subprocess.Popen([*_COMMAND, *arguments]) as process:
        while process.poll() is None:
            held.append(_resident(process.pid))
            if stop_after is not None and time.perf_counter() - begin > stop_after:
                process.send_signal(signal.SIGKILL)
            time.sleep(_EVERY)
    return Run(time.perf_counter() - begin, process.returncode, held)


def _resident(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parse(path: Path) -> float:
    """Read the table as the command does: text, and numbers where the model has numbers."""
    begin = time.perf_counter()
    with open_table(path) as table:
        table.numbers = _NUMBERS
        for _ in table:
            pass
    return time.perf_counter() - begin


def _parse_by_polars(path: Path) -> float:
    """Let polars read the table, a batch at a time."""
    begin = time.perf_counter()
    for _ in _scanned(path).collect_batches(chunk_size=_BLOCK_ROWS):
        pass
    return time.perf_counter() - begin


def _copy_by_polars(path: Path, out: Path) -> float:
    """Let polars read the table and write it with three columns more, of which none takes any reckoning."""
    begin = time.perf_counter()
    one = pl.col(_NUMBERS[0])
    _scanned(path).with_columns(p_value=one / 3, score=-one / 7, alarm=one > 0).sink_csv(out)
    return time.perf_counter() - begin


def _scanned(path: Path) -> pl.LazyFrame:
    return pl.scan_csv(path, schema_overrides=dict.fromkeys(_NUMBERS, pl.Float64), infer_schema=False)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=5.0, help="size of the table [5]")
    parser.add_argument("--kills", type=int, default=3, help="interruptions before the last run [3]")
    parser.add_argument("--folder", type=Path, help="where to work [a temporary one]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        normal, table, model = folder / "normal.csv", folder / "new.csv", folder / "model.rankad"
        write_table(normal, make_example().normal)
        run(["fit", str(normal), "--model", str(model), "--id", "reading"])
        repeat_table(table, given.gib)
        size = table.stat().st_size / _MIB
        print(f"{size / 1024:.2f} GiB")
        score = ["score", str(table), "--model", str(model), "--out"]
        whole = run([*score, str(folder / "whole.csv")])
        half = len(whole.held) // 2
        print(f"scored: {whole.seconds:.0f} s, {size / whole.seconds:.0f} MiB/s, status {whole.status}")
        print(
            f"memory: at most {max(whole.held[:half]):.0f} MiB in the first half, "
            f"{max(whole.held[half:]):.0f} MiB in the second"
        )
        print(
            f"read alone: {size / _parse(table):.0f} MiB/s; by polars: {size / _parse_by_polars(table):.0f}"
        )
        copied = folder / "copied.csv"
        print(f"read and written again by polars: {size / _copy_by_polars(table, copied):.0f} MiB/s")
        copied.unlink()
        rng, resumed = np.random.default_rng(0), folder / "resumed.csv"
        seconds = 0.0
        for moment in rng.uniform(0.1, 0.5, given.kills) * whole.seconds:
            killed = run([*score, str(resumed), "--resume", "--quiet"], stop_after=moment)
            seconds += killed.seconds
            print(f"killed after {killed.seconds:.0f} s; under its name: {resumed.exists()}")
        last = run([*score, str(resumed), "--resume", "--quiet"])
        same = _digest(resumed) == _digest(folder / "whole.csv")
        print(f"resumed: {last.seconds:.0f} s after {seconds:.0f} s; same bytes: {same}")


if __name__ == "__main__":
    main()
