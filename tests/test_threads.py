import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import polars
import pytest
from joblib import parallel_config
from threadpoolctl import ThreadpoolController

from cli_cases import ENVIRONMENT
from rankad import RankAD, TableDetector, load
from rankad._base.threads import in_blocks, one_blas_thread
from rankad.io.output import open_output
from rankad.io.table_files import open_table
from rankad.scoring.watching import Watcher
from rankad.service.formats import read_rows


def _bounds(n, most, n_jobs=None, *, few=None):
    return in_blocks(lambda begin, end: (begin, end), n, most, n_jobs, few=few)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3, 8])
@pytest.mark.parametrize("few", [None, 1, 4, 10_000])
@pytest.mark.parametrize("most", [1, 2, 3, 7, 64, 1_000])
def test_blocks_cover_every_row_once_and_in_order(most, few, n_jobs):
    for n in (1, 2, 3, 4, 6, 7, 8, 9, 15, 21, 22, 63, 64, 65, 129, 200):
        blocks = _bounds(n, most, n_jobs, few=few)
        assert [row for begin, end in blocks for row in range(begin, end)] == list(range(n))
        assert blocks[0][0] == 0
        assert blocks[-1][1] == n
        assert all(end == begin for (_, end), (begin, _) in pairwise(blocks))
        sizes = [end - begin for begin, end in blocks]
        assert max(sizes) <= most
        assert max(sizes) - min(sizes) <= 1
        # A block of nothing is of no use; where one row is most, it may be what is left for a thread.
        assert min(sizes) > 0 or most == 1
        # As many for one thread as for another.
        jobs = max(1, min(n_jobs or 1, -(-n // (few or most))))
        assert len(blocks) % jobs == 0
        assert len(blocks) < n / most + jobs


def test_blocks_by_hand():
    assert _bounds(10, 4) == [(0, 3), (3, 6), (6, 10)]
    assert _bounds(10, 10) == [(0, 10)]
    assert _bounds(10, 9) == [(0, 5), (5, 10)]
    # Two threads get two blocks each; and one each where the rows are few enough for that.
    assert _bounds(10, 4, 2) == [(0, 2), (2, 5), (5, 7), (7, 10)]
    assert _bounds(8, 4, 2) == [(0, 4), (4, 8)]
    # No more than `most` is one block, unless fewer are worth a thread.
    assert _bounds(4, 4, 2) == [(0, 4)]
    assert _bounds(4, 4, 2, few=2) == [(0, 2), (2, 4)]
    assert _bounds(4, 4, 2, few=4) == [(0, 4)]
    assert _bounds(10, 4, 2, few=10) == [(0, 3), (3, 6), (6, 10)]


@pytest.mark.parametrize("n_jobs", [None, 1, 3])
def test_no_rows_are_one_empty_block(n_jobs):
    assert _bounds(0, 5, n_jobs) == [(0, 0)]
    assert _bounds(0, 5, n_jobs, few=1) == [(0, 0)]


def test_results_come_in_order_whichever_block_is_done_first():
    done = [threading.Event() for _ in range(5)]

    def work(begin, end):
        # The first is done last: all five are under way at once.
        assert begin == 4 or done[begin + 1].wait(10)
        done[begin].set()
        return begin

    assert in_blocks(work, 5, 1, 5) == list(range(5))


def _threads(n, most, n_jobs, **few):
    return set(in_blocks(lambda begin, end: threading.get_ident(), n, most, n_jobs, **few))


def test_one_thread_is_the_one_that_asks():
    here = {threading.get_ident()}
    assert _threads(100, 5, 1) == here
    assert _threads(100, 5, None) == here
    # Few rows are not worth another.
    assert _threads(5, 5, 4) == here
    assert _threads(100, 5, 4, few=100) == here


def test_the_thread_that_asks_works_beside_its_helpers():
    # Every block waits for another one that is under way, so that no thread can take them all.
    meet = threading.Barrier(2)
    seen = in_blocks(lambda begin, end: meet.wait(10) >= 0 and threading.get_ident(), 100, 5, 4, few=50)
    assert threading.get_ident() in seen
    assert len(set(seen)) == 2


@pytest.mark.parametrize(("few", "threads"), [(100, 1), (50, 2), (34, 3), (25, 4), (10, 4)])
def test_there_are_threads_for_as_many_lots_of_few_rows_as_there_are(few, threads):
    meet = threading.Barrier(threads)
    seen = in_blocks(lambda begin, end: meet.wait(10) >= 0 and threading.get_ident(), 100, 100, 4, few=few)
    assert len(set(seen)) == len(seen) == threads
    assert threading.get_ident() in seen


def test_the_number_of_threads_may_come_from_joblib():
    with parallel_config(backend="threading", n_jobs=3):
        assert _bounds(9, 3) == [(0, 3), (3, 6), (6, 9)]
        assert _bounds(7, 7, few=1) == [(0, 2), (2, 4), (4, 7)]
    assert _bounds(7, 7, few=1) == [(0, 7)]


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("at", [0, 4, 9])
def test_what_a_block_raises_is_raised(at, n_jobs):
    def work(begin, end):
        if begin <= at < end:
            raise KeyError(f"row {at}")
        return begin

    with pytest.raises(KeyError, match=f"row {at}"):
        in_blocks(work, 10, 2, n_jobs)


def test_of_several_errors_the_first_block_s_is_raised():
    def work(begin, end):
        raise ValueError(f"from {begin}")

    for n_jobs in (1, 3):
        with pytest.raises(ValueError, match="from 0"):
            in_blocks(work, 9, 1, n_jobs)


def test_when_it_returns_or_raises_all_threads_are_done():
    before = threading.active_count()
    assert len(in_blocks(lambda begin, end: None, 50, 1, 6)) >= 50
    assert threading.active_count() == before
    with pytest.raises(ZeroDivisionError):
        in_blocks(lambda begin, end: 1 // begin, 50, 1, 6)
    assert threading.active_count() == before


def _score_in_a_worker(_):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return in_blocks(lambda begin, end: end - begin, 10, 3, 2)


def test_a_daemon_process_has_threads_too():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert sum(pool.map(_score_in_a_worker, [0])[0]) == 10


def fitted_scores(rows):
    return RankAD(random_state=0).fit(rows).calibration_.scores


def test_a_fit_has_the_same_bits_on_any_thread():
    rows = np.random.default_rng(0).normal(size=(600, 8))
    here = fitted_scores(rows)
    with ThreadPoolExecutor(2) as pool:
        for there in pool.map(fitted_scores, [rows] * 3):
            np.testing.assert_array_equal(there, here)
    np.testing.assert_array_equal(fitted_scores(rows), here)


def test_blas_has_its_threads_back_whoever_leaves_last():
    import scipy.linalg  # noqa: F401

    pools = [pool for pool in ThreadpoolController().lib_controllers if pool.user_api == "blas"]
    before = [pool.get_num_threads() for pool in pools]
    inside, leave = threading.Barrier(3, timeout=30), threading.Event()
    seen = []

    def work():
        with one_blas_thread():
            inside.wait()
            seen.append([pool.get_num_threads() for pool in pools])
            leave.wait(30)

    with one_blas_thread():
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        inside.wait()
    assert [pool.get_num_threads() for pool in pools] == [1] * len(pools)
    leave.set()
    for thread in threads:
        thread.join(30)
    assert seen == [[1] * len(pools)] * 2
    assert [pool.get_num_threads() for pool in pools] == before


def in_a_fork(work):
    """Return the exit status of a forked child that does some work: 1 if it failed, None if it hangs."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    for _ in range(400):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_forked_while_another_thread_fits_can_fit():
    rows = np.random.default_rng(1).normal(size=(150, 3))
    stop = threading.Event()

    def work():
        while not stop.is_set():
            fitted_scores(rows)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert [in_a_fork(lambda: fitted_scores(rows)) for _ in range(4)] == [0] * 4
    finally:
        stop.set()
        thread.join()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_forked_while_another_thread_imports_can_fit():
    # In a fresh process, where nothing is imported yet.
    code = """
import os, threading, time, numpy as np
from rankad import RankAD
rows = np.random.default_rng(0).normal(size=(60, 2))
fit = lambda: RankAD(random_state=0).fit(rows)
thread = threading.Thread(target=fit)
thread.start()
time.sleep(0.1)
child = os.fork()
if child == 0:
    fit()
    os._exit(0)
thread.join()
print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "status 0\n", done.stderr


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_tables_are_refused_in_a_child_forked_after_polars_was_used(tmp_path):
    rows = np.random.default_rng(2).normal(size=(60, 2))
    table = {"a": rows[:, 0], "b": np.where(rows[:, 1] > 0, "x", "y")}
    detector = TableDetector(RankAD(random_state=0)).fit(table)
    detector.save(tmp_path / "model.rankad")
    polars.DataFrame({"x": range(100_000)}).sort("x")
    (tmp_path / "table.csv").write_text("a,b\n1,x\n")

    def refused(work):
        def check():
            with pytest.raises(RuntimeError, match=r"forked from one that had used polars.*'spawn'"):
                work()

        return check

    assert in_a_fork(refused(lambda: detector.p_values(table))) == 0
    assert in_a_fork(refused(lambda: TableDetector().fit(table))) == 0
    assert in_a_fork(refused(lambda: load(tmp_path / "model.rankad"))) == 0
    assert in_a_fork(refused(lambda: open_table(tmp_path / "table.csv"))) == 0
    assert in_a_fork(refused(lambda: open_output(tmp_path / "out.csv"))) == 0
    assert in_a_fork(refused(lambda: Watcher(detector, "m", tmp_path / "s", tmp_path / "e"))) == 0
    assert in_a_fork(refused(lambda: read_rows(b"a,b\n1,x\n", "text/csv", 9, 999))) == 0
    inner, encoded = detector.detector_, detector.encoder_.encode(table).rows
    assert in_a_fork(lambda: inner.p_values(encoded)) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_lock_that_comes_while_a_fork_waits_is_not_given_back():
    # The fork waits for the first lock; meanwhile its holder, as by an import, registers another.
    code = """
import os, threading, time
from rankad._base.threads import held_over_forks
first, second = threading.Lock(), threading.RLock()
held_over_forks(first)

def hold():
    with first:
        time.sleep(0.5)
        held_over_forks(second)

thread = threading.Thread(target=hold)
thread.start()
time.sleep(0.1)
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
assert second.acquire(timeout=1)
second.release()
child = os.fork()
if child == 0:
    os._exit(0 if second.acquire(timeout=1) and first.acquire(timeout=1) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        # Python 3.12 warns of any fork where there are threads.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
