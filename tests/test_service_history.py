"""The history of the service in SQLite and in PostgreSQL: what it keeps, and what it does when it cannot."""

import resource
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx2 as httpx
import numpy as np
import pytest

from rankad import DriftMonitor, load
from rankad.service.app import make_app
from rankad.service.databases import open_database
from rankad.service.drift import DriftWatch, describe_drift
from rankad.service.history import History, Scored
from rankad.service.models import ModelStore
from rankad.service.settings import Settings
from service_cases import STRANGE, Running, TestClient, make_models, table_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(params=["sqlite", "postgres"])
def target(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "history.sqlite"
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture
def history(target):
    history = History(target)
    yield history
    history.close()


def scored(request="r", n_rows=10, alarms=(), alpha=0.1, model="pump", sha256="s", fdr=None):
    return Scored(model, sha256, request, n_rows, alpha, alarms, fdr)


def requests_in(target):
    """Return the request ids in the order they were stored, by a connection of our own."""
    query = "SELECT request FROM batches ORDER BY id"
    if isinstance(target, str):
        import psycopg

        with psycopg.connect(target) as connection:
            return [row[0] for row in connection.execute(query).fetchall()]
    with closing(sqlite3.connect(target)) as connection:
        return [row[0] for row in connection.execute(query)]


def test_what_was_added_is_summed_up(history, target):
    history.add([scored("a", 10, [(3, 0.01, -2.5)]), scored("b", 30, alpha=0.2), scored("c", model="other")])
    history.add([scored("d", 5, [(0, 0.02, -1.0), (4, 0.03, -0.5)], 0.1), scored("e", 100, fdr=0.3)])
    assert requests_in(target) == ["a", "b", "c", "d", "e"]
    summary = history.summary("pump")
    assert [summary[name] for name in ("requests", "rows", "alarms")] == [4, 145, 3]
    assert summary["alarms_if_all_rows_were_normal"] == pytest.approx(1 + 6 + 0.5 + 10)
    assert summary["alarm_rate"] == pytest.approx(3 / 145)
    assert history.by_rate("pump", "s") == [(0.2, 30, 0), (0.1, 15, 3)]
    latest = [(each["request"], each["row"], each["p_value"]) for each in history.latest("pump", 2)]
    assert latest == [("d", 0, 0.02), ("d", 4, 0.03)]
    (stretch,) = history.over_time("pump")
    assert (stretch["rows"], stretch["alarms"]) == (145, 3)
    assert stretch["begin"] <= time.time() < stretch["end"]


def test_a_model_without_requests_has_an_empty_history(history):
    assert history.summary("pump")["alarm_rate"] is None
    assert history.over_time("pump") == history.latest("pump", 5) == history.by_rate("pump", "s") == []


def test_requests_of_other_times_are_in_other_stretches(history, target, monkeypatch):
    now = 1_000_000.0
    for minutes in (0, 1, 200, 399):
        monkeypatch.setattr(time, "time", lambda at=now + 60 * minutes: at)
        history.add([scored(n_rows=minutes + 1)])
    assert [history.summary("pump", now + 60 * at)["rows"] for at in (0, 1, 2, 400)] == [604, 603, 601, 0]
    stretches = history.over_time("pump", most=4)
    first = int(now // 60) * 60
    assert [(each["begin"] - first) // 60 for each in stretches] == [0, 200, 300]
    assert [each["rows"] for each in stretches] == [1 + 2, 201, 400]


def test_what_is_old_is_deleted(target, monkeypatch):
    history, now = History(target, keep_days=1), time.time()
    history.add([scored("old", alarms=[(0, 0.01, 0.0)])])
    history.set_monitor("pump", "s", None, (5, "{}"), [(5, 1, "run")])
    monkeypatch.setattr(time, "time", lambda: now + 0.9 * 86_400)
    history.add([scored("new")])
    assert history.summary("pump")["requests"] == 2
    monkeypatch.setattr(time, "time", lambda: now + 1.5 * 86_400)
    history.add([])
    assert history.summary("pump")["requests"] == 1
    assert requests_in(target) == ["new"]
    assert history.latest("pump", 5) == []
    assert history.monitor("pump", "s") is None
    history.close()


def test_several_processes_write_at_the_same_time(target):
    # Connections do not know that they share a process.
    histories = [History(target) for _ in range(4)]

    def write(at):
        for n in range(25):
            histories[at].add([scored(f"{at}-{n}"), scored(f"{at}-{n}-too", model="other")])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    stored = requests_in(target)
    assert sorted(stored) == sorted(
        f"{at}-{n}{too}" for at in range(4) for n in range(25) for too in ("", "-too")
    )
    assert histories[0].summary("pump")["requests"] == 100
    for history in histories:
        history.close()


def test_the_tables_can_be_made_by_several_at_the_same_time(target):
    with ThreadPoolExecutor(4) as threads:
        for history in threads.map(lambda _: History(target), range(4)):
            history.close()


def test_a_monitor_is_replaced_only_by_who_has_read_it_last(history):
    assert history.set_monitor("pump", "s", None, (5, "first"), [])
    assert not history.set_monitor("pump", "s", None, (7, "second"), [(7, 1, "run")])
    assert history.set_monitor("pump", "s", 5, (8, "third"), [(8, 2, "ever")])
    assert not history.set_monitor("pump", "s", 5, (9, "fourth"), [])
    assert history.monitor("pump", "s")[1:] == (8, "third")
    assert [(each["row"], each["since"], each["kind"]) for each in history.drifts("pump", "s")] == [
        (8, 2, "ever")
    ]


def test_the_drift_monitor_goes_on_where_another_process_left_it(target, folder):
    model = ModelStore([folder / "pump.rankad"]).get("pump")
    p_values = model.detector.p_values(table_of(700, 3).with_columns(flow=7.5))
    alone, raised = DriftMonitor.for_detector(model.detector), []
    alone.update(p_values)
    assert alone.alarms, "the rows must drift for the test to say anything"
    for part in np.array_split(p_values, 5):
        history = History(target)
        watch = DriftWatch(history, raised.append)
        watch.take(model, part)
        watch._advance_all(watch._waiting)
        history.close()
    history = History(target)
    assert history.monitor("pump", model.card.sha256).state == alone.to_json()
    told = describe_drift(history, model)
    assert told["rows"] == 700
    assert sorted((each["row"], each["since"], each["kind"]) for each in told["alarms"]) == sorted(
        alone.alarms
    )
    assert raised == ["pump"] * len(alone.alarms)
    history.close()


def test_a_monitor_is_given_no_more_rows_than_it_can_take(folder, tmp_path):
    model, history = ModelStore([folder / "pump.rankad"]).get("pump"), History(tmp_path / "h.sqlite")
    watch = DriftWatch(history, lambda name: None)
    for _ in range(3):
        watch.take(model, np.full(3_500, 0.5))
    watch._advance_all(watch._waiting)
    assert history.monitor("pump", model.card.sha256).n_rows == 3_500 / 4 + 3_500 / 28
    history.close()


def test_the_service_tells_the_realised_rate_and_the_promise(target, folder):
    settings = Settings((folder / "pump.rankad",), history=target)
    rows = {"rows": table_of(400, 8).to_dicts()}
    with TestClient(make_app(settings)) as client:
        answer = client.post("/models/pump/score?alpha=0.1", json=rows).json()
        client.post("/models/pump/score?fdr=0.1", json=rows)
        told = client.get("/models/pump/history").json()
    (promise,) = told["promise"]
    assert (promise["alpha"], promise["rows"], promise["alarms"]) == (0.1, 400, answer["alarms"])
    # By the Beta-binomial law of 300 calibrating rows, each worth a third of one.
    assert promise["usual_low"] <= answer["alarms"] <= promise["usual_high"]
    assert 5 < promise["usual_low"] < 40 < promise["usual_high"] < 100
    assert told["requests"] == 2
    assert told["drift"]["alarms"] == []
    # Closed in between: what was collected has been handed over.
    with TestClient(make_app(settings)) as client:
        assert client.get("/models/pump/history").json()["drift"]["rows"] == 800


def test_other_databases_are_refused():
    with pytest.raises(ValueError, match=r"postgresql://.*got mysql://"):
        open_database("mysql://host/db", "")


@pytest.mark.parametrize("said", ["connection", "does not exist", "permission denied"])
def test_a_database_that_cannot_be_used_is_said_at_the_start(postgres, folder, said):
    target = postgres.new_database()
    if said == "connection":
        target = "postgresql://tester@/db?host=/nowhere"
    elif said == "does not exist":
        target = target.replace("/rankad", "/other", 1)
    else:
        import psycopg

        with psycopg.connect(target) as connection:
            connection.execute("CREATE ROLE reader LOGIN")
            # Before version 15 everybody could make tables.
            connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        target = target.replace("tester@", "reader@")
    with pytest.raises(OSError, match=f"the history cannot be opened.*{said}"):
        make_app(Settings((folder / "pump.rankad",), history=target))


def test_requests_that_wait_are_stored_in_one_transaction(folder, tmp_path, monkeypatch):
    settings = Settings((folder / "pump.rankad",), history=tmp_path / "h.sqlite")
    sizes, add, go_on = [], History.add, threading.Event()

    def slow(self, requests):
        if requests:
            sizes.append(len(requests))
            go_on.wait(20)
        return add(self, requests)

    monkeypatch.setattr(History, "add", slow)
    with TestClient(make_app(settings)) as client, ThreadPoolExecutor(9) as threads:
        first = [threads.submit(client.post, "/models/pump/score", json=STRANGE)]
        while not sizes:
            time.sleep(0.01)
        others = [threads.submit(client.post, "/models/pump/score", json=STRANGE) for _ in range(8)]
        time.sleep(0.5)
        go_on.set()
        assert {each.result().status_code for each in first + others} == {200}
        assert client.get("/models/pump/history").json()["requests"] == 9
    assert sizes == [1, 8]


# --------------------------------------------------------------------------------------------------- faults


@pytest.fixture
def running(target, folder):
    # Several processes with the server, one with the file.
    workers = 2 if isinstance(target, str) and sys.platform == "linux" else 1
    service = Running(folder / "pump.rankad", "--history", target, "--workers", workers)
    service.wait_for("Application startup complete", workers)
    yield service
    service.kill_all()


def test_nothing_acknowledged_is_lost_when_the_service_is_killed_under_load(running, target, folder):
    acknowledged, url = [], running.url

    def send(at):
        with httpx.Client(base_url=url) as client:
            for n in range(10_000):
                request_id = f"{at}-{n}"
                try:
                    answer = client.post(
                        "/models/pump/score", json=STRANGE, headers={"x-request-id": request_id}
                    )
                except httpx.TransportError:
                    return
                assert answer.status_code == 200
                acknowledged.append(request_id)

    with ThreadPoolExecutor(4) as threads:
        sending = [threads.submit(send, at) for at in range(4)]
        while len(acknowledged) < 100:
            time.sleep(0.01)
        running.kill_all()
        for each in sending:
            each.result()
    stored = requests_in(target)
    assert set(acknowledged) <= set(stored)
    assert len(stored) == len(set(stored))
    # At most the one request of each client that was not answered.
    assert len(stored) <= len(acknowledged) + 4
    again = History(target)
    assert again.summary("pump")["requests"] == len(stored)
    again.close()


def test_a_server_that_goes_away_and_comes_back(postgres, folder):
    target = postgres.new_database()
    with TestClient(make_app(Settings((folder / "pump.rankad",), history=target))) as client:
        assert client.post("/models/pump/score", json=STRANGE).status_code == 200
        postgres.stop()
        try:
            refused = client.post("/models/pump/score", json=STRANGE)
            assert refused.status_code == 503
            assert "could not be stored" in refused.json()["error"]["message"]
            assert client.get("/models/pump/history").status_code == 503
        finally:
            postgres.start()
        assert client.post("/models/pump/score", json=STRANGE).status_code == 200
        # Restarted between two requests: none is refused.
        postgres.stop()
        postgres.start()
        assert client.post("/models/pump/score", json=STRANGE).status_code == 200
        assert client.get("/models/pump/history").json()["requests"] == 3


def test_a_table_that_somebody_has_locked(postgres, folder):
    import psycopg

    target = postgres.new_database()
    with TestClient(make_app(Settings((folder / "pump.rankad",), history=target))) as client:
        with psycopg.connect(target) as other:
            other.execute("LOCK TABLE batches IN ACCESS EXCLUSIVE MODE")
            refused = client.post("/models/pump/score", json=STRANGE)
            assert refused.status_code == 503
            assert "lock timeout" in refused.json()["error"]["message"]
        assert client.post("/models/pump/score", json=STRANGE).status_code == 200


def test_a_disk_that_is_full_is_said_and_the_service_goes_on(folder, tmp_path):
    target = tmp_path / "h.sqlite"
    with TestClient(make_app(Settings((folder / "pump.rankad",), history=target))) as client:
        assert client.post("/models/pump/score", json=STRANGE).status_code == 200
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
        try:
            for _ in range(2):
                refused = client.post("/models/pump/score", json=STRANGE)
                assert refused.status_code == 503
                assert "could not be stored" in refused.json()["error"]["message"]
            assert client.get("/health/ready").status_code == 200
            assert client.post("/models/pump/explain", json=STRANGE).status_code == 200
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert client.post("/models/pump/score", json=STRANGE).status_code == 200
        assert client.get("/models/pump/history").json()["requests"] == 2
    assert len(requests_in(target)) == 2


def test_a_full_database_is_rolled_back(tmp_path):
    history = History(tmp_path / "h.sqlite")
    history.add([scored("before")])
    connection = history._database._connection("write")
    connection.execute("PRAGMA max_page_count = 1")
    many = [(at, 0.01, 0.0) for at in range(20_000)]
    with pytest.raises(sqlite3.OperationalError, match="full"):
        history.add([scored("too much", 20_000, many)])
    connection.execute("PRAGMA max_page_count = 1000000")
    history.add([scored("after", 20_000, many)])
    assert requests_in(tmp_path / "h.sqlite") == ["before", "after"]
    history.close()


def test_answers_are_those_of_the_detector_with_postgres_too(postgres, folder):
    rows = table_of(50, 4)
    settings = Settings((folder / "pump.rankad",), history=postgres.new_database())
    with TestClient(make_app(settings)) as client:
        answer = client.post("/models/pump/score?alpha=0.3", json={"rows": rows.to_dicts()}).json()
        assert answer["p_value"] == load(folder / "pump.rankad").p_values(rows).tolist()
        latest = client.get("/models/pump/history").json()["latest_alarms"]
    assert [each["row"] for each in latest] == np.flatnonzero(answer["alarm"]).tolist()
