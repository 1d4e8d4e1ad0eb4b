"""SIGKILL while a command writes: the old output is whole or the new one is, and the next run succeeds."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.faults.bench import Bench, Case
from benchmarks.faults.judge import changes, faults_of, snapshot
from benchmarks.faults.process import environment, stop
from benchmarks.faults.whole import is_whole

__all__ = ["cases"]

KIND = "kills"
_STARTING_SECONDS = 60.0
_LONGEST_WAIT = 5.0


class _Plan(NamedTuple):
    """A command to be killed so many times.

    Attributes
    ----------
    name : str
    out : str
        The file it writes.
    arguments : list of str
    variants : tuple
        Further arguments that take turns, so that the new output is not the old one.
    times : int
    table : str
        What it reads.
    """

    name: str
    out: str
    arguments: list[str]
    variants: tuple[list[str], ...]
    times: int
    table: str = "many.csv"


def _plans() -> list[_Plan]:
    levels: tuple[list[str], ...] = (["--alpha", "0.05"], ["--alpha", "0.2"])

    def score(out: str, times: int, *more: str, table: str = "many.csv") -> _Plan:
        given = ["score", table, "--model", "table.rankad", "--out", out, "--jobs", "1", "--quiet", *more]
        variants = ([],) if "--resume" in more else levels
        return _Plan(f"score to {out}{' '.join(['', *more])}", out, given, variants, times, table)

    model = ["--model", "table.rankad"]
    fit = ["fit", "many.csv", "--model", "out.rankad", "--id", "id", "--jobs", "1", "--quiet"]
    calibrate = ["calibrate", "many.csv", *model, "--jobs", "1", "--quiet", "--out"]
    return [
        _Plan("fit", "out.rankad", fit, (["--seed", "0"], ["--seed", "1"]), 25),
        score("out.csv", 12),
        score("out.parquet", 6),
        score("out.jsonl.gz", 4),
        score("out.csv", 4, "--resume"),
        _Plan(
            "report",
            "out.html",
            ["report", "many.csv", *model, "--out", "out.html", "--jobs", "1", "--quiet", "--top", "2"],
            (["--title", "first"], ["--title", "second"]),
            25,
        ),
        _Plan("calibrate", "out.rankad", [*calibrate, "out.rankad"], ([],), 12),
        _Plan("calibrate in place", "table.rankad", [*calibrate, "table.rankad"], ([],), 12),
    ]


def cases() -> list[Case]:
    """Return all cases: every second one is killed when a temporary file is seen, others at any moment."""
    return [
        Case(KIND, f"{plan.name}, {seed}", partial(_check, plan=plan, seed=seed))
        for plan in _plans()
        for seed in range(plan.times)
    ]


def _check(bench: Bench, folder: Path, *, plan: _Plan, seed: int) -> list[str]:
    bench.copy(plan.table, folder)
    bench.copy("table.rankad", folder)
    before = snapshot(folder)
    commands = [[*plan.arguments, *variant] for variant in plan.variants]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.faults.loop", *map(json.dumps, commands)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment(),
        start_new_session=True,
    )
    try:
        period = _first_runs(process)
        moments = random.Random(seed)
        if seed % 2 == 0:
            _until_something_new(folder, {*before, plan.out})
            time.sleep(moments.uniform(0.0, 0.003))
        else:
            time.sleep(moments.uniform(0.0, 2 * period))
    finally:
        stop(process)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    if process.returncode != -signal.SIGKILL:
        return [f"ended by itself with status {process.returncode}"]
    faults, n_rows = [], _n_rows(bench.good / plan.table)
    if not is_whole(folder / plan.out, n_rows):
        faults.append(f"{plan.out} is neither the old nor the new one")
    free = {plan.out} | {name for name in snapshot(folder) if name not in before}
    faults += changes(before, snapshot(folder), free)
    done = bench.inside(commands[0], folder)
    faults += [f"next run: {fault}" for fault in faults_of(done, named=[plan.out], statuses=(0,))]
    if not is_whole(folder / plan.out, n_rows):
        faults.append(f"next run: {plan.out} is not whole")
    return faults + [
        f"next run: {fault}" for fault in changes(before, snapshot(folder), {plan.out}) if "lost" not in fault
    ]


def _first_runs(process: subprocess.Popen[bytes]) -> float:
    """Wait for two runs; return how long the second one took."""
    assert process.stdout is not None
    too_late = threading.Timer(_STARTING_SECONDS, stop, [process])
    too_late.start()
    try:
        process.stdout.readline()
        begun = time.monotonic()
        if process.stdout.readline() != b"done\n":
            raise RuntimeError("the command failed, or took too long, before it was killed")
    finally:
        too_late.cancel()
    return time.monotonic() - begun


def _until_something_new(folder: Path, known: set[str]) -> None:
    end = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < end and set(os.listdir(folder)) <= known:
        time.sleep(0.0005)


def _n_rows(table: Path) -> int:
    return len(table.read_bytes().splitlines()) - 1
