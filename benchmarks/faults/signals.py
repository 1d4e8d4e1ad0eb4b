"""SIGTERM and SIGINT while a command works: it ends with 143 or 130, and leaves what was there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.faults.bench import Bench, Case
from benchmarks.faults.judge import changes, faults_of, snapshot
from benchmarks.faults.process import Outcome
from benchmarks.faults.whole import is_whole

__all__ = ["cases"]

KIND = "signals"
STATUSES = {signal.SIGTERM: 143, signal.SIGINT: 130}
# Before this the interpreter itself is starting, and the command can do nothing about it.
_BEGUN = ".begun"
_CODE = f"""
from rankad.cli import main
open({_BEGUN!r}, "w").close()
main()
"""
_COMMAND = (sys.executable, "-c", _CODE)
_TRIES = 5
_ENDING_SECONDS = 2.0
# How often each command gets each signal.
TIMES = {"fit": (16, 9), "score": (7, 6), "report": (6, 5), "calibrate": (2, 1)}


def cases() -> list[Case]:
    """Return all cases, each at a moment of its own."""
    return [
        Case(
            KIND,
            f"{sent.name} during {command}, {seed}",
            partial(_check, command=command, sent=sent, seed=seed),
        )
        for command, times in TIMES.items()
        for sent, n in zip((signal.SIGTERM, signal.SIGINT), times, strict=True)
        for seed in range(n)
    ]


def _check(bench: Bench, folder: Path, *, command: str, sent: signal.Signals, seed: int) -> list[str]:
    table = bench.copy("more.csv" if command == "fit" else "long.csv", folder)
    bench.copy("table.rankad", folder)
    out = {"score": "out.csv", "report": "out.html"}.get(command, "out.rankad")
    files = ["--model", "out.rankad", "--id", "id"]
    if command != "fit":
        files = ["--model", "table.rankad", "--out", out]
    arguments = [command, table.name, *files, "--jobs", "2", "--quiet"]
    (folder / out).write_text("what was there before")
    before = snapshot(folder)
    moments = random.Random(f"{command} {sent} {seed}")
    latest = _seconds(bench, folder, command, arguments, out)
    # Every second one is sent late, when what is imported has been, and threads are at work.
    earliest = 0.4 * latest if seed % 2 else 0.02
    for _ in range(_TRIES):
        sent_at: list[float] = []
        done = bench.process(
            arguments,
            folder,
            command=_COMMAND,
            threads=2,
            meanwhile=partial(_send, folder / _BEGUN, sent, moments.uniform(earliest, latest), sent_at),
        )
        (folder / _BEGUN).unlink(missing_ok=True)
        if sent_at and not _over(done, time.monotonic() - sent_at[0], folder / out, table):
            break
        # It was over already, or the interpreter was ending; try an earlier moment.
        latest *= 0.7
        earliest = min(earliest, 0.5 * latest)
        (folder / out).write_text("what was there before")
    else:
        return ["it was always over before the signal came"]
    return _faults(done, folder, before, out, STATUSES[sent], table)


def _over(done: Outcome, since: float, out: Path, table: Path) -> bool:
    """Return whether the output was in place, and all that was left was the interpreter's own end.

    A run that works on for long after the signal was not over, and has ignored it.
    """
    if done.status in (0, 3):
        return since < _ENDING_SECONDS and not done.err.strip()
    return done.status in (-signal.SIGTERM, -signal.SIGINT) and is_whole(out, _n_rows(table))


def _n_rows(table: Path) -> int:
    return len(table.read_bytes().splitlines()) - 1


def _faults(
    done: Outcome, folder: Path, before: dict[str, str], out: str, status: int, table: Path
) -> list[str]:
    faults = ["the signal was ignored"] if done.status in (0, 3) else []
    faults += faults_of(done, statuses=(status, *((0, 3) if faults else ())))
    strange = [line for line in done.err.splitlines() if not line.startswith("rankad")]
    if strange and not faults:
        faults.append(f"{len(strange)} strange lines on standard error")
    after = snapshot(folder)
    new = after.get(out) != before[out] and is_whole(folder / out, _n_rows(table))
    return faults + changes(before, after, {out} if new else ())


def _send(
    mark: Path, sent: signal.Signals, delay: float, sent_at: list[float], process: subprocess.Popen[bytes]
) -> None:
    """Send the signal so long after the command has begun."""
    end = time.monotonic() + 30
    while not mark.exists() and time.monotonic() < end and _runs(process):
        time.sleep(0.002)
    time.sleep(delay)
    if _runs(process):
        # Not Popen's own way, which may reap the process, and with it what it used.
        os.kill(process.pid, sent)
        sent_at.append(time.monotonic())


def _runs(process: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None


def _seconds(bench: Bench, folder: Path, command: str, arguments: list[str], out: str) -> float:
    """Return how long the command works once it has begun; measured once."""
    key = f"{command} {arguments}"
    with bench.lock:
        if key not in bench.notes:
            begun: list[float] = []

            def wait(process: subprocess.Popen[bytes]) -> None:
                _send(folder / _BEGUN, signal.Signals.SIGCONT, 0.0, [], process)
                begun.append(time.monotonic())

            bench.process(arguments, folder, command=_COMMAND, threads=2, meanwhile=wait, seconds=60)
            bench.notes[key] = time.monotonic() - begun[0]
            (folder / _BEGUN).unlink(missing_ok=True)
            (folder / out).write_text("what was there before")
        return bench.notes[key]
