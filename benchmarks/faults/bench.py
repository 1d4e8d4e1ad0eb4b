"""What cases are made of: a folder each, good tables and models to start from, a worker, and baselines."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from benchmarks.faults.process import COMMAND, SECONDS, Outcome, Worker, run
from rankad._base.progress import Progress

# The makers of bad files are shared with the tests, which are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

COMMANDS = ("fit", "score", "explain", "report", "inspect", "calibrate")

__all__ = ["Bench", "Case", "Result", "Skipped", "run_cases"]


class Skipped(Exception):
    """The system does not allow what a case needs."""


class Case(NamedTuple):
    """One case.

    Attributes
    ----------
    kind, name : str
        Together they are unique.
    check : callable
        Gets the bench and an empty folder; returns what went wrong, nothing if it passes.
    """

    kind: str
    name: str
    check: Callable[[Bench, Path], list[str]]

    @property
    def label(self) -> str:
        return f"{self.kind}: {self.name}"


class Result(NamedTuple):
    """What came of a case."""

    kind: str
    name: str
    faults: list[str]
    said: list[str]
    seconds: float
    skipped: str = ""


class Bench:
    """Good inputs, made once, and ways to run the command.

    Parameters
    ----------
    folder : Path
    jobs : int
        How many cases run at once.
    """

    def __init__(self, folder: Path, jobs: int = 1) -> None:
        self.folder = folder
        self.jobs = jobs
        self.lock = threading.RLock()
        # Numbers that cases measure once.
        self.notes: dict[str, float] = {}
        self._local = threading.local()
        self._workers: list[Worker] = []
        self._baselines: dict[str, int] = {}

    @cached_property
    def good(self) -> Path:
        """Return a folder of good tables and models: see `_make_good`."""
        path = self.folder / "good"
        path.mkdir()
        _make_good(path)
        return path

    def prepare(self) -> None:
        """Make what cases share before any of them runs."""
        for command in COMMANDS:
            self.baseline(command)

    def copy(self, name: str, folder: Path, to: str | None = None) -> Path:
        """Copy a good file into a case's folder."""
        return Path(shutil.copyfile(self.good / name, folder / (to or name)))

    def inside(self, arguments: Sequence[str | os.PathLike[str]], cwd: Path) -> Outcome:
        """Run the command in this thread's worker."""
        found = self.worker.run(arguments, cwd)
        self._said(f"rankad {' '.join(map(str, arguments))}", found)
        return found

    def process(
        self,
        arguments: Sequence[str | os.PathLike[str]],
        cwd: Path,
        *,
        command: Sequence[str] = COMMAND,
        seconds: float = SECONDS,
        **options: object,
    ) -> Outcome:
        """Run the command, or another, as a process of its own; its peak is told above the baseline."""
        found = run([*command, *arguments], cwd=cwd, seconds=seconds, **options)  # type: ignore[arg-type]
        named = str(arguments[0]) if arguments else ""
        found = found._replace(peak=max(0, found.peak - self.baseline(named)) if named in COMMANDS else 0)
        self._said(f"rankad {' '.join(map(str, arguments))}" if arguments else "a script", found)
        return found

    def baseline(self, command: str) -> int:
        """Return the peak of memory of a command on a tiny good input, in a process of its own."""
        with self.lock:
            if command not in self._baselines:
                with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                    done = run([*COMMAND, *self.good_arguments(command)], cwd=Path(folder))
                    if done.status != 0:
                        raise RuntimeError(f"{command} fails on good input: {done.err}")
                    self._baselines[command] = done.peak
            return self._baselines[command]

    def good_arguments(self, command: str, jobs: int = 1) -> list[str]:
        """Return arguments of a command that works; it writes to its working directory."""
        model, table = str(self.good / "table.rankad"), str(self.good / "new.csv")
        outs = {"score": "out.csv", "report": "out.html", "calibrate": "out.rankad"}
        if command == "inspect":
            return ["inspect", model]
        if command == "fit":
            normal = str(self.good / "normal.csv")
            return ["fit", normal, "--model", "out.rankad", "--id", "id", "--jobs", str(jobs), "--quiet"]
        out = ["--out", outs[command], "--quiet"] if command in outs else []
        return [command, table, "--model", model, "--jobs", str(jobs), *out]

    @property
    def worker(self) -> Worker:
        """Return this thread's worker."""
        if not hasattr(self._local, "worker"):
            self._local.worker = Worker()
            with self.lock:
                self._workers.append(self._local.worker)
        found: Worker = self._local.worker
        return found

    @contextmanager
    def listening(self) -> Iterator[list[str]]:
        """Collect what the commands of this thread say, for the record of a failure."""
        self._local.said = []
        yield self._local.said

    def _said(self, what: str, found: Outcome) -> None:
        if hasattr(self._local, "said"):
            last = found.err.strip().splitlines()[-1:] or [""]
            self._local.said.append(f"{what} -> status {found.status}: {last[0]}"[:600])

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.close()


def _make_good(folder: Path) -> None:
    """Write tables (of 25 to 3,000 rows) and models (of a table, of an array, with a near field)."""
    import modelfile_cases
    from benchmarks.faults.worker import QUICK
    from malformed_cases import frame, numbers
    from rankad import RankAD, TableDetector

    frame(60, 0).write_csv(folder / "normal.csv")
    frame(400, 3).write_csv(folder / "many.csv")
    frame(1_000, 4).write_csv(folder / "more.csv")
    frame(25, 1).write_csv(folder / "new.csv")
    frame(3_000, 2).write_csv(folder / "long.csv")
    texts = frame(60, 0)
    TableDetector(RankAD(0.1, **QUICK, random_state=0), ids=["id"]).fit(texts).save(folder / "table.rankad")
    RankAD(0.1, **QUICK, random_state=0).fit(numbers(60, 0)).save(folder / "array.rankad")
    near = modelfile_cases.fitted_with_near_field()
    near.save(folder / "near.rankad")
    import numpy as np

    np.save(folder / "rows.npy", numbers(25, 1))


def run_cases(cases: Sequence[Case], bench: Bench, label: str = "faults", shown: bool = True) -> list[Result]:
    """Run cases, some at once; show how far they are."""
    progress = Progress(label, len(cases), shown)
    results: list[Result | None] = [None] * len(cases)
    with ThreadPoolExecutor(bench.jobs) as threads:
        running = {threads.submit(_result, case, bench): at for at, case in enumerate(cases)}
        try:
            for done in as_completed(running):
                results[running[done]] = done.result()
                progress.advance()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
    progress.finish()
    return [result for result in results if result is not None]


def _result(case: Case, bench: Bench) -> Result:
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="case-", dir=bench.folder))
    with bench.listening() as said:
        try:
            faults, skipped = case.check(bench, folder), ""
        except Skipped as why:
            faults, skipped = [], str(why)
        except Exception as error:
            # The harness's own mistakes must not pass for success.
            faults, skipped = [f"the case itself failed: {type(error).__name__}: {error}"], ""
    spent = time.monotonic() - begun
    shutil.rmtree(folder, ignore_errors=True)
    return Result(case.kind, case.name, faults, said if faults else [], spent, skipped)
