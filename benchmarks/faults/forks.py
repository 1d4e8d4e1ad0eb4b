"""Forked children and threads: they finish, and answer with the same bits as the main thread."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from benchmarks.faults.bench import Bench, Case
from benchmarks.faults.judge import changes, faults_of, snapshot
from benchmarks.faults.process import SECONDS

__all__ = ["cases"]

KIND = "forks and threads"

# What every script begins with.
_START = """
import os, sys, threading, time, traceback, warnings
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from rankad import KLPE, EpsilonLPE, RankAD, TableDetector, load
warnings.simplefilter("ignore")
rows = np.random.default_rng(0).normal(size=(300, 4))
many = np.random.default_rng(1).normal(size=(50_000, 4))
QUICK = dict(landmarks=20, scaling="standard", bandwidth="D_K", C=0.1, random_state=0)

def fitted(n_jobs=1, **given):
    return RankAD(**{**QUICK, **given}, n_jobs=n_jobs).fit(rows)

def wide():
    rows = np.random.default_rng(0).normal(size=(1_500, 30))
    return RankAD(**{**QUICK, "landmarks": 250}, calibration="split", n_jobs=2).fit(rows)

def in_child(work):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            # Where polars would wait for ever, tables are refused, with what to do instead.
            refused = "Start processes with" in str(error)
            if not refused and not (isinstance(error, SystemExit) and not error.code):
                traceback.print_exc()
                os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        sys.exit(f"the child ended with {status}")

def on_thread(work):
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()

def bits(detector):
    rows = np.random.default_rng(2).normal(size=(500, detector.n_features_in_))
    return detector.score_samples(rows).tobytes() + detector.calibration_.scores.tobytes()

def used_polars():
    import polars as pl
    frame = pl.read_csv("new.csv", infer_schema=False)
    return frame.group_by("mode").len(), frame

def command(*arguments):
    import contextlib, io
    from rankad.cli import main
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            main(list(arguments))
    except SystemExit as ended:
        # One line, as of any error.
        if ended.code == 1 and said.getvalue().count("\\n") == 1:
            raise ValueError(said.getvalue()) from None
        sys.stderr.write(said.getvalue())
        raise

def while_a_thread_fits(work):
    stop = threading.Event()
    def fit():
        while not stop.is_set():
            fitted(2)
    thread = threading.Thread(target=fit)
    thread.start()
    time.sleep(0.3)
    try:
        work()
    finally:
        stop.set()
        thread.join()
"""

_SCORE = '"score", "new.csv", "--model", "table.rankad", "--out", "out.csv", "--quiet"'
_REPORT = '"report", "new.csv", "--model", "table.rankad", "--out", "out.html", "--quiet"'
_FIT = '"fit", "normal.csv", "--model", "out.rankad", "--id", "id", "--quiet"'

SCRIPTS = {
    # ------------------------------------------------------------------------------------- forked children
    "fork while a thread fits; the child fits": "while_a_thread_fits(lambda: in_child(lambda: fitted(1)))",
    "fork while a thread fits; the child fits on two threads": (
        "while_a_thread_fits(lambda: in_child(lambda: fitted(2)))"
    ),
    "fork while a thread fits; the child loads and scores": (
        "while_a_thread_fits(lambda: in_child(lambda: load('array.rankad').p_values(many[:, :3])))"
    ),
    "fork after a fit on two threads; the child fits": "fitted(2); in_child(lambda: fitted(1))",
    "fork after a fit on two threads; the child fits on two threads": (
        "fitted(2); in_child(lambda: fitted(2))"
    ),
    "fork after a fit; the child scores on two threads": (
        "d = fitted(2); in_child(lambda: d.score_samples(many))"
    ),
    "fork after scoring; the child explains": (
        "d = fitted(2); d.p_values(many); in_child(lambda: d.explain(many[:3]))"
    ),
    "fork from a thread; the child fits": "fitted(1); on_thread(lambda: in_child(lambda: fitted(1)))",
    "fork after polars was used; the child scores a table": (
        "d = load('table.rankad'); _, frame = used_polars(); d.p_values(frame)\n"
        "in_child(lambda: d.p_values(frame))"
    ),
    "fork after polars was used; the child loads and scores a table": (
        "_, frame = used_polars(); in_child(lambda: load('table.rankad').p_values(frame))"
    ),
    "fork after polars was used; the child reads CSV": (
        "from rankad.io.table_files import open_table\nused_polars()\n"
        "in_child(lambda: list(open_table('new.csv')))"
    ),
    "fork after polars was used; the child fits a table": (
        "_, frame = used_polars()\nin_child(lambda: TableDetector(RankAD(**QUICK), ids=['id']).fit(frame))"
    ),
    "fork after polars was used; the child runs rankad score": (
        f"used_polars(); in_child(lambda: command({_SCORE}))"
    ),
    "fork after polars was used; the child runs rankad report": (
        f"used_polars(); in_child(lambda: command({_REPORT}))"
    ),
    "fork after polars was used; the child runs rankad fit": (
        f"used_polars(); in_child(lambda: command({_FIT}))"
    ),
    "fork after a fit; the child saves and the parent loads": (
        "d = fitted(2); in_child(lambda: d.save('out.rankad')); assert bits(load('out.rankad')) == bits(d)"
    ),
    "a pool of forked processes scores": (
        "import multiprocessing\nd = fitted(2)\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    found = pool.map(d.p_values, np.array_split(many, 4))\n"
        "assert np.array_equal(np.concatenate(found), d.p_values(many))"
    ),
    "joblib's processes score": (
        "from joblib import Parallel, delayed\nd = fitted(2)\n"
        "found = Parallel(2)(delayed(d.p_values)(part) for part in np.array_split(many, 4))\n"
        "assert np.array_equal(np.concatenate(found), d.p_values(many))"
    ),
    # --------------------------------------------------------------------------------------------- threads
    "a fit on a thread has the bits of the main thread": (
        "assert bits(fitted(1)) == on_thread(lambda: bits(fitted(1)))"
    ),
    "a fit of two threads on a thread has the bits of the main thread": (
        "assert bits(fitted(2)) == on_thread(lambda: bits(fitted(2)))"
    ),
    "two fits of 1,500 wide rows have the same bits": "assert bits(wide()) == bits(wide())",
    "a fit of 1,500 wide rows on a thread has the bits of the main thread": (
        "assert bits(wide()) == on_thread(lambda: bits(wide()))"
    ),
    "one and two threads have the same bits": "assert bits(fitted(1)) == bits(fitted(2))",
    "a default fit on a thread has the bits of the main thread": (
        "default = lambda: bits(RankAD(random_state=0, n_jobs=2).fit(rows))\n"
        "assert default() == on_thread(default)"
    ),
    "a fit of a table on a thread has the bits of the main thread": (
        "_, frame = used_polars()\n"
        "def fit():\n"
        "    d = TableDetector(RankAD(**QUICK), ids=['id'], min_count=2).fit(frame)\n"
        "    return d.p_values(frame).tobytes() + d.calibration_.scores.tobytes()\n"
        "assert fit() == on_thread(fit)"
    ),
    "KLPE and EpsilonLPE on a thread have the bits of the main thread": (
        "for make in (KLPE, EpsilonLPE):\n"
        "    fit = lambda: bits(make(random_state=0).fit(rows))\n"
        "    assert fit() == on_thread(fit)"
    ),
    "eight fits at once have the bits of one": (
        "with ThreadPoolExecutor(8) as threads:\n"
        "    found = set(threads.map(lambda _: bits(fitted(1)), range(8)))\n"
        "assert found == {bits(fitted(1))}"
    ),
    "eight threads that score have the bits of one": (
        "d = fitted(2)\n"
        "with ThreadPoolExecutor(8) as threads:\n"
        "    found = set(threads.map(lambda _: d.score_samples(many).tobytes(), range(8)))\n"
        "assert found == {d.score_samples(many).tobytes()}"
    ),
    "eight threads that load have the bits of one": (
        "one = load('array.rankad').p_values(many[:, :3]).tobytes()\n"
        "work = lambda _: load('array.rankad').p_values(many[:, :3]).tobytes()\n"
        "with ThreadPoolExecutor(8) as threads:\n"
        "    assert set(threads.map(work, range(16))) == {one}"
    ),
    "a fit that ends with the interpreter": (
        "threading.Thread(target=lambda: fitted(2), daemon=True).start(); time.sleep(0.3)"
    ),
}


# Two further interpreters start, and import everything.
_SECONDS = {"joblib's processes score": 60.0}


def cases() -> list[Case]:
    """Return all cases; each is a script in a process of its own."""
    return [Case(KIND, name, partial(_check, name=name, script=script)) for name, script in SCRIPTS.items()]


def _check(bench: Bench, folder: Path, *, name: str, script: str) -> list[str]:
    for given in ("table.rankad", "array.rankad", "new.csv", "normal.csv"):
        bench.copy(given, folder)
    before = snapshot(folder)
    seconds, command = _SECONDS.get(name, SECONDS), (sys.executable, "-c", _START + script)
    done = bench.process([], folder, command=command, threads=2, seconds=seconds)
    free = {"out.csv", "out.html", "out.rankad"}
    if "AssertionError" in done.err:
        return ["other bits"]
    return faults_of(done, statuses=(0,), seconds=seconds) + (
        [] if done.hung else changes(before, snapshot(folder), free)
    )
