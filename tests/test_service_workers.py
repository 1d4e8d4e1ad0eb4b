"""Several processes behind one address: they answer alike, die alone, and end together."""

import os
import signal
import sqlite3
import sys
import threading
import time
from contextlib import closing

import httpx2 as httpx
import pytest

from rankad import TableDetector, load
from service_cases import STRANGE, Running, make_models, quick, table_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")
WORKERS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def running(folder, tmp_path_factory):
    history = tmp_path_factory.mktemp("served") / "history.sqlite"
    service = Running(folder / "pump.rankad", "--history", history, "--workers", WORKERS)
    service.history = history
    service.wait_for("Application startup complete", WORKERS)
    yield service
    service.kill_all()


def children(service):
    with open(f"/proc/{service.process.pid}/task/{service.process.pid}/children") as file:
        return {int(pid) for pid in file.read().split()}


def shared_bytes(pid, what):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(f"{what}:"))


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


class Load(threading.Thread):
    """Sends requests, each over a connection of its own, until it is told to stop."""

    def __init__(self, service):
        super().__init__()
        self.url, self.enough = service.url, threading.Event()
        self.acknowledged, self.refused, self.cut = [], [], 0
        self.start()

    def run(self):
        n = 0
        while not self.enough.is_set():
            n += 1
            name = f"{self.ident}-{n}"
            try:
                answer = httpx.post(
                    f"{self.url}/models/pump/score", json=STRANGE, headers={"x-request-id": name}
                )
            except httpx.TransportError:
                self.cut += 1
                continue
            (self.acknowledged if answer.status_code == 200 else self.refused).append(name)

    def stop(self):
        self.enough.set()
        self.join()
        return self


def stored(service):
    with closing(sqlite3.connect(service.history)) as database:
        return [row[0] for row in database.execute("SELECT request FROM batches")]


def test_all_processes_answer_like_the_detector_and_count_together(running, folder):
    expected, rows = load(folder / "pump.rankad").p_values(table_of(20, 9)).tolist(), table_of(20, 9)
    for _ in range(12):
        answer = httpx.post(f"{running.url}/models/pump/score", json={"rows": rows.to_dicts()})
        assert answer.json()["p_value"] == expected
    # Whoever is asked says the same.
    for _ in range(4):
        metrics = httpx.get(f"{running.url}/metrics").text
        assert 'rankad_rows_total{model="pump"} 240.0' in metrics
        assert httpx.get(f"{running.url}/models/pump/history").json()["rows"] == 240
    assert len(children(running)) == WORKERS


def test_processes_share_most_of_their_memory(running):
    for pid in children(running):
        # The proportional share of one of three and their parent, were all of it shared, is a quarter.
        assert shared_bytes(pid, "Pss") < 0.6 * shared_bytes(pid, "Rss")


def test_a_process_that_is_killed_loses_nothing_acknowledged_and_is_replaced(running):
    load, before = Load(running), children(running)
    until(lambda: len(load.acknowledged) > 30)
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(children(running)) == WORKERS and victim not in children(running))
    n = len(load.acknowledged)
    until(lambda: len(load.acknowledged) > n + 30)
    load.stop()
    assert load.refused == []
    # One request at a time: the one that the killed process had.
    assert load.cut <= 1
    names = [name for name in stored(running) if name.startswith(f"{load.ident}-")]
    assert set(load.acknowledged) <= set(names)
    assert len(names) == len(set(names)) <= len(load.acknowledged) + 1


def test_a_new_model_is_taken_by_all_and_then_processes_are_replaced_one_by_one(running, folder):
    path, rows = folder / "pump.rankad", table_of(20, 9)
    load_of_requests, before = Load(running), children(running)
    TableDetector(quick()).fit(table_of(400, 5)).save(path)
    expected = load(path).p_values(rows).tolist()

    def answers():
        url = f"{running.url}/models/pump/score"
        return [httpx.post(url, json={"rows": rows.to_dicts()}).json()["p_value"] for _ in range(8)]

    until(lambda: answers() == [expected] * 8)
    assert (load_of_requests.refused, load_of_requests.cut) == ([], 0)
    running.process.send_signal(signal.SIGHUP)
    until(lambda: not children(running) & before and len(children(running)) == WORKERS)
    assert answers() == [expected] * 8
    load_of_requests.stop()
    assert load_of_requests.refused == []
    # A connection may have been opened to a process that ends before it was read from.
    assert load_of_requests.cut <= WORKERS


def test_all_end_gracefully(running):
    """The last test of this service."""
    pids, load = children(running), Load(running)
    until(lambda: len(load.acknowledged) > 10)
    status = running.stop()
    load.enough.set()
    load.join()
    assert status == 0
    assert load.refused == []
    assert set(load.acknowledged) <= set(stored(running))
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_processes_end_when_their_supervisor_is_killed(folder):
    service = Running(folder / "plain.rankad", "--history", "none", "--workers", 2)
    service.wait_for("Application startup complete", 2)
    pids = children(service)
    service.process.kill()
    try:
        until(lambda: not any(alive(pid) for pid in pids))
    finally:
        service.kill_all()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
