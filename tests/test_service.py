"""The service: what it answers, what it refuses, what it keeps."""

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing

import httpx2 as httpx
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from cli_cases import call
from rankad import TableDetector, load
from rankad.service.app import make_app
from rankad.service.errors import RequestError
from rankad.service.keys import KeyFile
from rankad.service.settings import Settings
from service_cases import TestClient, make_models, quick, table_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def settings(folder, tmp_path):
    return Settings((folder / "pump.rankad", folder / "plain.rankad"), history=tmp_path / "history.sqlite")


@pytest.fixture
def service(settings):
    with TestClient(make_app(settings)) as client:
        yield client


@pytest.fixture(scope="module")
def new():
    return table_of(60, 1).with_columns(flow=pl.when(pl.int_range(60) == 7).then(99.0).otherwise("flow"))


def arrow_of(frame):
    table, sink = frame.to_arrow(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


BODIES = {
    "application/json": lambda frame: json.dumps({"rows": frame.to_dicts()}).encode(),
    "application/x-ndjson": lambda frame: frame.write_ndjson().encode(),
    "text/csv": lambda frame: frame.write_csv().encode(),
    "application/vnd.apache.arrow.stream": arrow_of,
}


def p_values_of(response):
    kind = response.headers["content-type"].split(";")[0]
    if kind == "application/json":
        return response.json()["p_value"]
    if kind == "application/x-ndjson":
        return [json.loads(line)["p_value"] for line in response.text.splitlines()]
    if kind == "text/csv":
        return pl.read_csv(response.content)["p_value"].to_list()
    return pa.ipc.open_stream(response.content).read_all()["p_value"].to_pylist()


@pytest.mark.parametrize("answer", BODIES)
@pytest.mark.parametrize("kind", BODIES)
def test_every_format_has_the_answers_of_the_detector(service, folder, new, kind, answer):
    response = service.post(
        "/models/pump/score", content=BODIES[kind](new), headers={"content-type": kind, "accept": answer}
    )
    assert response.status_code == 200
    assert p_values_of(response) == load(folder / "pump.rankad").p_values(new).tolist()


def test_columns_and_lists_of_numbers_are_taken_too(service, folder, new):
    by_column = service.post("/models/pump/score", json={"columns": new.to_dict(as_series=False)}).json()
    np.testing.assert_array_equal(by_column["p_value"], load(folder / "pump.rankad").p_values(new))
    rows = [[0.0, 0.0], [9.0, 9.0]]
    plain = service.post("/models/plain/score", json=rows).json()
    assert plain["alarm"] == [False, True]
    assert plain["score"] == load(folder / "plain.rankad").score_samples(rows).tolist()


def test_alpha_and_fdr_are_chosen_by_the_request(service, new):
    rows = {"rows": new.to_dicts()}
    strict, loose = (service.post(f"/models/pump/score?alpha={a}", json=rows).json() for a in (0.01, 0.5))
    assert strict["alarms"] < loose["alarms"]
    assert np.array_equal(loose["alarm"], np.array(loose["p_value"]) <= 0.5)
    assert service.post("/models/pump/score?fdr=0.9", json=rows).json()["alarm"][7]


def test_no_rows_are_no_error(service):
    assert service.post("/models/pump/score", json=[]).json()["p_value"] == []


def test_reasons(service):
    row = service.post("/models/pump/explain", json=[{"flow": 99.0, "mode": "eco"}]).json()["rows"][0]
    assert row["alarm"]
    assert row["reasons"][0]["column"] == "flow"
    assert row["change"][0]["column"] == "flow"


def test_a_strange_row_is_an_alarm_and_the_others_have_answers(service):
    rows = [{"flow": "oops", "mode": "eco"}, {"flow": 5.0, "mode": "eco"}]
    assert service.post("/models/pump/score", json=rows).json()["alarm"] == [True, False]


def test_single_rows_that_arrive_together_have_the_answers_they_have_alone(settings, folder, new):
    import asyncio

    from rankad.service.models import ModelStore
    from rankad.service.together import Together

    model, rows = ModelStore(settings.models).get("pump"), new.to_dicts()
    # Among them some that cannot be read, and some of other types.
    rows[3], rows[9], rows[11] = {"flow": 1.0}, {"flow": "oops", "mode": "eco"}, {"flow": True, "mode": "eco"}
    rows[12] = {"mode": "eco", "flow": 5}

    async def together():
        pool = Together()
        return await asyncio.gather(*(pool.score(model, row) for row in rows), return_exceptions=True)

    answers = asyncio.run(together())
    assert "mode" in str(answers.pop(3))
    del rows[3]
    alone = [load(folder / "pump.rankad").score_samples([row]).tolist() for row in rows]
    assert [answer["score"].tolist() for answer in answers] == alone


def test_single_rows_of_arrays_that_arrive_together_have_the_answers_they_have_alone(settings, folder):
    import asyncio

    from rankad.service.models import ModelStore
    from rankad.service.together import Together

    model, detector = ModelStore(settings.models).get("plain"), load(folder / "plain.rankad")
    rows = list(np.random.default_rng(4).normal(size=(12, 1, 2)))
    # Among them one of other columns and one that cannot be scored.
    rows[3], rows[5] = np.zeros((1, 3)), np.array([[np.nan, 0.0]])

    async def together():
        pool = Together()
        return await asyncio.gather(*(pool.score(model, row) for row in rows), return_exceptions=True)

    answers = asyncio.run(together())
    for row, answer in zip(rows, answers, strict=True):
        if row.shape == (1, 2) and np.isfinite(row).all():
            assert answer["score"].tolist() == detector.score_samples(row).tolist()
        else:
            assert isinstance(answer, RequestError)


REFUSED = {
    "not JSON": ("/models/pump/score", b"{", {}, 400, "not JSON"),
    "deep JSON": ("/models/pump/score", b"[" * 100_000, {}, 400, "not JSON"),
    "bytes that are not UTF-8": ("/models/pump/score", b'["\xff"]', {}, 400, "JSON"),
    "no rows": ("/models/pump/score", b"5", {}, 400, "list of rows"),
    "a row without a list": ("/models/pump/score", b'{"flow": 1}', {}, 422, "'flow'"),
    "alpha in the body": ("/models/pump/score", b'{"rows": [], "alpha": 0.1}', {}, 422, "?alpha=0.01"),
    "rows and columns": ("/models/pump/score", b'{"rows": [], "columns": {}}', {}, 422, "not both"),
    "a parameter mistyped": ("/models/pump/score?apha=0.1", b"[]", {}, 422, "'apha'"),
    "reasons of no rows": (
        "/models/pump/explain",
        b"flow\n",
        {"content-type": "text/csv"},
        422,
        "no column 'mode'",
    ),
    "mixed rows": ("/models/pump/score", b"[[1], {}]", {}, 400, "all objects"),
    "ragged": ("/models/plain/score", b"[[1], [1, 2]]", {}, 422, "different numbers"),
    "words in lists": ("/models/plain/score", b'[["x", "y"]]', {}, 422, "numbers"),
    "nested": ("/models/pump/score", b'[{"flow": [1], "mode": "eco"}]', {}, 422, "flow"),
    "missing column": ("/models/pump/score", b'[{"flow": 1}]', {}, 422, "mode"),
    "rows of other columns": (
        "/models/pump/score",
        b'[{"flow": 1, "mode": "eco"}, {"flow": 1}]',
        {},
        422,
        "'mode'",
    ),
    "CSV without a header": ("/models/pump/score", b"5.1,eco\n", {"content-type": "text/csv"}, 422, "flow"),
    "CSV with old line ends": (
        "/models/pump/score",
        b"flow,mode\r5,eco\r",
        {"content-type": "text/csv"},
        400,
        "",
    ),
    "CSV with a column twice": (
        "/models/pump/score",
        b"flow,flow,mode\n5.1,99,eco\n",
        {"content-type": "text/csv"},
        422,
        "two columns are called 'flow'",
    ),
    "columns without rows": ("/models/pump/score", b'{"columns": {"flow": []}}', {}, 422, "mode"),
    "unknown model": ("/models/none/score", b"[]", {}, 404, "pump"),
    "path in a name": ("/models/..%2f..%2fetc%2fpasswd/score", b"[]", {}, 404, ""),
    "alpha": ("/models/pump/score?alpha=2", b"[]", {}, 422, "alpha"),
    "alpha that is not a number": ("/models/pump/score?alpha=nan", b"[]", {}, 422, "alpha"),
    "a rate given twice": ("/models/pump/score?alpha=0.1&alpha=0.9", b"[]", {}, 422, "2 times"),
    "lists for a model with names": ("/models/pump/score", b"[[5.0, 1]]", {}, 422, "send objects, with flow"),
    "reasons of lists": ("/models/pump/explain", b"[[5.0, 1]]", {}, 422, "send objects, with flow"),
    "both rates": ("/models/pump/score?alpha=0.1&fdr=0.1", b"[]", {}, 422, "not both"),
    "media type": ("/models/pump/score", b"[]", {"content-type": "image/png"}, 415, "image/png"),
    "answer of another type": ("/models/pump/score", b"[]", {"accept": "image/png"}, 415, "image/png"),
    "compressed": ("/models/pump/score", b"[]", {"content-encoding": "gzip"}, 415, "compressed"),
    "bad CSV": ("/models/pump/score", b'a,b\n"x', {"content-type": "text/csv"}, 4, ""),
    "bad Arrow": (
        "/models/pump/score",
        b"ARROW1",
        {"content-type": "application/vnd.apache.arrow.stream"},
        400,
        "",
    ),
    "inference without inputs": ("/v2/models/pump/infer", b'{"inputs": []}', {}, 422, "inputs"),
    "inference of other shape": (
        "/v2/models/plain/infer",
        b'{"inputs": [{"name": "rows", "shape": [2, 2], "datatype": "FP64", "data": [1]}]}',
        {},
        422,
        "shape",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_requests_are_refused_with_a_sentence(service, case):
    path, body, headers, status, words = REFUSED[case]
    response = service.post(path, content=body, headers={"content-type": "application/json", **headers})
    assert str(response.status_code).startswith(str(status)), response.text
    error = response.json()["error"]
    if path.startswith("/v2"):
        # A text, by the protocol.
        assert words in error
    else:
        assert error["code"]
        assert words in error["message"]
    # The service goes on.
    assert service.get("/health/ready").status_code == 200


def test_limits(folder):
    settings = Settings((folder / "pump.rankad",), most_bytes=1_000, most_rows=3)
    with TestClient(make_app(settings)) as client:
        rows = [{"flow": 5.0, "mode": "eco"}]
        assert client.post("/models/pump/score", json=rows * 3).status_code == 200
        assert client.post("/models/pump/score", json=rows * 4).status_code == 413
        assert client.post("/models/pump/score", content=b" " * 1_001).status_code == 413
        # Without a length, too.
        chunks = (b" " * 100 for _ in range(20))
        assert client.post("/models/pump/score", content=chunks).status_code == 413


def test_too_many_at_once_are_asked_to_come_again(folder):
    with TestClient(make_app(Settings((folder / "pump.rankad",), most_at_once=0))) as client:
        response = client.get("/models")
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"


def test_health_is_answered_when_there_is_much_to_do(folder):
    with TestClient(make_app(Settings((folder / "pump.rankad",), most_at_once=0))) as client:
        assert client.get("/health/live").status_code == 200


def test_bodies_are_counted_together_while_they_are_held(folder, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def long_task(*_):
        begun.set()
        go_on.wait(60)
        return []

    monkeypatch.setattr("rankad.service.app.explain_rows", long_task)
    settings = Settings((folder / "pump.rankad",), most_bytes=1_000, most_bytes_at_once=1_500)
    large = json.dumps([{"flow": 5.0, "mode": "eco"}] * 32).encode()
    assert 750 < len(large) <= 1_000

    def ask(what):
        headers = {"content-type": "application/json"}
        return client.post(f"/models/pump/{what}", content=large, headers=headers)

    with TestClient(make_app(settings)) as client, ThreadPoolExecutor() as pool:
        try:
            waiting = pool.submit(ask, "explain")
            assert begun.wait(30)
            refused = ask("score")
        finally:
            go_on.set()
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert waiting.result().status_code == 200
        # Those that were answered, or refused, are held no longer.
        assert [ask("score").status_code for _ in range(3)] == [200] * 3


def test_single_rows_do_not_wait_for_large_requests(service, monkeypatch):
    """The history is written by threads of its own, however many others are busy."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    def long_task(*_):
        begun.release()
        go_on.wait(60)
        return []

    monkeypatch.setattr("rankad.service.app.explain_rows", long_task)
    row = [{"flow": 5.0, "mode": "eco"}]
    with ThreadPoolExecutor(70) as pool:
        try:
            waiting = [pool.submit(service.post, "/models/pump/explain", json=row) for _ in range(60)]
            begun.acquire()
            time.sleep(0.5)
            answer = pool.submit(service.post, "/models/pump/score", json=row)
            late = not wait([answer], timeout=10).done
        finally:
            go_on.set()
        assert not late
        assert answer.result().status_code == 200
        assert {each.result().status_code for each in waiting} == {200}


def test_the_first_media_type_that_is_known_is_answered(service):
    headers = {"accept": "text/html, text/csv;q=0.9"}
    response = service.post("/models/pump/score", json=[{"flow": 5.0, "mode": "eco"}], headers=headers)
    assert response.text.startswith("p_value,score,alarm\n")


def test_another_address_needs_keys(folder):
    with pytest.raises(ValueError, match=r"keys are needed.*--new-key"):
        Settings((folder / "pump.rankad",), host="0.0.0.0")
    assert Settings((folder / "pump.rankad",), host="::1").host == "::1"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "192.168.0.7", "", "127.0.0.1.evil.example", "[::"]
)
def test_without_keys_other_names_are_refused(service, host):
    """A site whose name was made to point to this machine."""
    assert service.get("/models", headers={"host": host}).status_code == 403
    assert service.post("/models/pump/score", json=[], headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:1"])
def test_without_keys_names_of_this_machine_are_answered(service, host):
    response = service.get("/models", headers={"host": host})
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_keys(folder, tmp_path):
    path = tmp_path / "keys"
    read, admin = KeyFile.add(path, "reader", "read"), KeyFile.add(path, "boss", "admin")
    assert path.stat().st_mode & 0o077 == 0
    assert read not in path.read_text()
    settings = Settings((folder / "pump.rankad",), host="0.0.0.0", keys=path)

    def status(key, method="GET", where="/models"):
        secret = key.encode() if isinstance(key, str) else key
        headers = {} if key is None else {"authorization": b"Bearer " + secret}
        return client.request(method, where, headers=headers).status_code

    with TestClient(make_app(settings), base_url="http://models.example") as client:
        assert [status(key) for key in (None, "x", read + "x", b"\xe9", read, admin)] == [401] * 4 + [200] * 2
        assert status(read, "POST", "/models/pump/reload") == 403
        assert status(admin, "POST", "/models/pump/reload") == 200
        assert client.get("/health/live").status_code == 200
    path.write_text("reader read short\n")
    with pytest.raises(ValueError, match="not a key"):
        KeyFile(path)


def test_keys_are_read_again_when_their_file_changes(folder, tmp_path, caplog):
    path = tmp_path / "keys"
    first = KeyFile.add(path, "first", "read")
    with TestClient(make_app(Settings((folder / "pump.rankad",), keys=path))) as client:

        def status_of(secret):
            return client.get("/models", headers={"authorization": f"Bearer {secret}"}).status_code

        def waits_for(status, secret):
            deadline = time.monotonic() + 15
            while status_of(secret) != status and time.monotonic() < deadline:
                time.sleep(0.1)
            return status_of(secret) == status

        assert status_of(first) == 200
        second = KeyFile.add(path, "second", "read")
        assert waits_for(200, second)
        # Taken out, it is refused; the other one is not.
        path.write_text("".join(line for line in path.read_text().splitlines(True) if "second" in line))
        assert waits_for(401, first)
        assert status_of(second) == 200
        # A damaged file, and one that is gone, change nothing but the log.
        for change in (lambda: path.write_text("no keys"), path.unlink):
            caplog.clear()
            change()
            deadline = time.monotonic() + 15
            while "old keys stay" not in caplog.text and time.monotonic() < deadline:
                time.sleep(0.1)
            assert "old keys stay" in caplog.text
            assert [status_of(first), status_of(second)] == [401, 200]
        third = KeyFile.add(path, "third", "read")
        assert waits_for(200, third)


def test_a_new_model_file_takes_the_place_of_the_old_one(tmp_path, new):
    path = tmp_path / "pump.rankad"
    TableDetector(quick()).fit(table_of(300, 0)).save(path)
    key = KeyFile.add(tmp_path / "keys", "boss", "admin")
    headers = {"authorization": f"Bearer {key}"}
    settings = Settings((path,), keys=tmp_path / "keys")
    with TestClient(make_app(settings), headers=headers) as client:
        rows = {"rows": new.to_dicts()}
        first = client.post("/models/pump/score", json=rows).json()["p_value"]
        good = path.read_bytes()
        path.write_bytes(good[: len(good) // 2])
        assert [client.post("/models/pump/reload").status_code for _ in range(2)] == [409, 409]
        path.unlink()
        assert client.post("/models/pump/reload").status_code == 409
        assert client.post("/models/pump/score", json=rows).json()["p_value"] == first
        TableDetector(quick()).fit(table_of(400, 5)).save(path)
        assert client.post("/models/pump/reload").json()["changed"]
        again = client.post("/models/pump/score", json=rows).json()["p_value"]
        assert again == load(path).p_values(new).tolist() != first


def test_a_model_file_that_is_gone_is_told_once_and_its_model_serves(tmp_path, new):
    path, away = make_models(tmp_path) / "pump.rankad", tmp_path / "away"
    with TestClient(make_app(Settings((path,)))) as client:
        models = client.app.state.service.models
        for _ in range(2):
            path.rename(away)
            # Whoever looks first has told it: the service, or this test.
            ((name, wrong),) = models.refresh(again=True)
            assert name == "pump"
            assert "No such file" in wrong
            assert models.refresh() == []
            assert client.post("/models/pump/score", json=new.to_dicts()).status_code == 200
            away.rename(path)
            assert models.refresh() == []


def test_a_model_file_that_is_gone_is_in_the_log(tmp_path, caplog):
    path = make_models(tmp_path) / "pump.rankad"
    with TestClient(make_app(Settings((path,)))):
        path.unlink()
        deadline = time.monotonic() + 10
        while "old one is kept" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.1)
        assert "No such file" in caplog.text
        time.sleep(2.5)
    assert caplog.text.count("old one is kept") == 1


def test_two_models_of_one_name_are_refused(folder):
    with pytest.raises(ValueError, match=r"the model .*pump\.rankad is named twice; name it once"):
        make_app(Settings((folder / "pump.rankad", folder / "pump.rankad")))
    (folder / "old").mkdir(exist_ok=True)
    other = folder / "old" / "pump.rankad"
    other.write_bytes((folder / "pump.rankad").read_bytes())
    with pytest.raises(ValueError, match="two models are called 'pump'"):
        make_app(Settings((folder / "pump.rankad", other)))


def test_the_history_has_rates_and_alarms(service, settings, new):
    rows = {"rows": new.to_dicts()}
    answer = service.post("/models/pump/score?alpha=0.1", json=rows, headers={"x-request-id": "abc"}).json()
    history = service.get("/models/pump/history").json()
    assert history["rows"] == 60
    assert history["alarms"] == answer["alarms"]
    assert history["alarms_if_all_rows_were_normal"] == pytest.approx(6)
    assert {alarm["request"] for alarm in history["latest_alarms"]} == {"abc"}
    assert history["latest_alarms"][0]["row"] == answer["alarm"].index(True)
    with closing(sqlite3.connect(settings.history)) as database:
        stored = database.execute("SELECT n_rows, n_alarms FROM batches").fetchall()
    assert stored == [(60, answer["alarms"])]


def test_a_history_that_was_removed_is_started_again(service, settings):
    row = [{"flow": 99.0, "mode": "eco"}]
    assert service.post("/models/pump/score", json=row).status_code == 200
    for path in settings.history.parent.glob("history.sqlite*"):
        path.unlink()
    assert service.post("/models/pump/score", json=row).status_code == 200
    with closing(sqlite3.connect(settings.history)) as database:
        assert database.execute("SELECT COUNT(*) FROM batches").fetchone() == (1,)


def test_a_locked_history_holds_up_no_other_request(running):
    url, _, history = running
    other = sqlite3.connect(history, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with ThreadPoolExecutor(1) as thread:
            row = [{"flow": 99.0, "mode": "eco"}]
            scored = thread.submit(httpx.post, f"{url}/models/pump/score", json=row, timeout=30)
            time.sleep(0.3)
            assert httpx.get(f"{url}/health/live", timeout=10).status_code == 200
            assert not scored.done()
            assert scored.result().status_code == 503
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.mark.parametrize("asked", ["-1", "1001", "9" * 5_000, "x"])
def test_a_number_of_alarms_that_is_none(service, asked):
    assert service.get("/models/pump/history", params={"alarms": asked}).status_code == 422


def test_a_history_that_cannot_be_written_is_said_and_not_acknowledged(service, settings):
    with closing(sqlite3.connect(settings.history, isolation_level=None)) as other:
        other.execute("DROP TABLE alarms")
        response = service.post("/models/pump/score", json=[{"flow": 99.0, "mode": "eco"}])
        assert response.status_code == 503
        assert "could not be stored" in response.json()["error"]["message"]
        assert other.execute("SELECT COUNT(*) FROM batches").fetchone() == (0,)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("text", "is no SQLite database"),
        ("tables", "a database that rankad serve did not make"),
        ("batches", "a database that rankad serve did not make"),
        ("device", "is a device or a pipe"),
        ("folder", "is a folder"),
    ],
)
def test_no_history_is_kept_in_a_file_of_something_else(folder, tmp_path, what, said):
    path = tmp_path / "h"
    if what == "text":
        path.write_text("a,b\n1,2\n" * 200)
    elif what == "device":
        path.symlink_to("/dev/null")
    elif what == "folder":
        path.mkdir()
    else:
        with sqlite3.connect(path) as database:
            database.execute(f"CREATE TABLE {what} (id INTEGER PRIMARY KEY, time REAL)")
            database.execute(f"INSERT INTO {what} (time) VALUES (1)")
        database.close()
    before = None if what in ("device", "folder") else path.read_bytes()
    with pytest.raises((ValueError, OSError)) as refused:
        make_app(Settings((folder / "pump.rankad",), history=path))
    assert str(path) in str(refused.value)
    assert said in str(refused.value)
    assert before is None or path.read_bytes() == before


def test_the_history_does_not_go_to_a_model(folder, tmp_path, capsys):
    path = tmp_path / "h"
    path.hardlink_to(folder / "pump.rankad")
    ended = call(capsys, "serve", folder / "pump.rankad", "--history", path)
    assert ended.status == 2
    assert f"{path} is also read from; write to another file." in ended.err


def test_keys_are_added_to_a_file_of_keys_alone(folder, tmp_path, capsys):
    for name, content in (("table.csv", b"a,b\n1,2\n"), ("m", (folder / "pump.rankad").read_bytes())):
        path = tmp_path / name
        path.write_bytes(content)
        ended = call(capsys, "serve", "--new-key", "bob", "--keys", path)
        assert (ended.status, ended.out) == (1, "")
        assert f"{path} holds a line that is not a key" in ended.err
        assert path.read_bytes() == content


def test_metrics_and_request_ids(service):
    response = service.post("/models/pump/score", json=[{"flow": 99.0, "mode": "eco"}])
    assert len(response.headers["x-request-id"]) == 32
    text = service.get("/metrics").text
    assert 'rankad_rows_total{model="pump"} 1.0' in text
    assert 'rankad_alarms_total{model="pump"} 1.0' in text


def test_a_path_cannot_forge_a_line_of_the_log(service, caplog):
    with caplog.at_level("DEBUG", "rankad.service"):
        service.get("/models/x%0Aforged", headers={"x-request-id": "id"})
    (line,) = [record.getMessage() for record in caplog.records if "forged" in record.getMessage()]
    assert line.startswith("id GET /models/x%0Aforged 404 ")


def test_the_open_inference_protocol(service, folder, new):
    assert service.get("/v2/health/ready").json() == {"ready": True}
    assert service.get("/v2").json()["name"] == "rankad"
    described = service.get("/v2/models/plain").json()
    assert described["inputs"] == [{"name": "rows", "datatype": "FP64", "shape": [-1, 2]}]
    tensor = {"name": "rows", "shape": [2, 2], "datatype": "FP64", "data": [0.0, 0.0, 9.0, 9.0]}
    answer = service.post("/v2/models/plain/infer", json={"id": "7", "inputs": [tensor]}).json()
    assert answer["id"] == "7"
    assert [output["name"] for output in answer["outputs"]] == ["p_value", "score", "alarm"]
    assert answer["outputs"][2]["data"] == [False, True]
    columns = [
        {"name": "mode", "shape": [60], "datatype": "BYTES", "data": new["mode"].to_list()},
        {"name": "flow", "shape": [60], "datatype": "FP64", "data": new["flow"].to_list()},
    ]
    asked = {"inputs": columns, "outputs": [{"name": "p_value"}]}
    answer = service.post("/v2/models/pump/infer", json=asked).json()
    assert len(answer["outputs"]) == 1
    assert answer["outputs"][0]["data"] == load(folder / "pump.rankad").p_values(new).tolist()


def test_the_examples_of_the_document_are_answered(service):
    found = service.get("/openapi.json").json()["paths"]
    asked = {
        (path, kind): body["example"]
        for path, operations in found.items()
        for operation in operations.values()
        for kind, body in operation.get("requestBody", {}).get("content", {}).items()
        if "example" in body and "{version}" not in path
    }
    kinds = ["application/json", "application/x-ndjson", "text/csv"]
    assert [kind for path, kind in asked if path == "/models/{name}/score"] == kinds
    for (path, kind), example in asked.items():
        content = example if isinstance(example, str) else json.dumps(example)
        response = service.post(
            path.format(name="pump"), content=content, headers={"content-type": kind, "accept": kinds[0]}
        )
        assert response.status_code == 200, response.text
        answer = response.json()
        if path.endswith("score"):
            assert answer["alarm"] == [False, True]
    # The example of an answer has its fields.
    example = found["/models/{name}/score"]["post"]["responses"]["200"]["content"][kinds[0]]["example"]
    rows = [{"flow": 4.9, "mode": "eco"}, {"flow": 60.0, "mode": "eco"}]
    assert example.keys() == service.post("/models/pump/score", json=rows).json().keys()


def test_every_route_is_in_the_document(settings, service):
    from rankad.service.openapi import document

    app = make_app(settings)
    # The page is for people; what its script asks for may change at any time.
    routes = {route.path for route in app.routes if route.path != "/" and not route.path.startswith("/page/")}
    assert routes - {"/openapi.json"} == set(document()["paths"])
    assert service.get("/openapi.json").json()["openapi"] == "3.1.0"


@pytest.fixture(scope="module")
def running(folder, tmp_path_factory):
    """Return the address of a service in a process of its own, its process and its history."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    history = tmp_path_factory.mktemp("served") / "history.sqlite"
    command = ["serve", str(folder / "pump.rankad"), "--port", str(port), "--history", str(history)]
    process = subprocess.Popen(
        [sys.executable, "-c", "from rankad.cli import main; main()", *command], stderr=subprocess.DEVNULL
    )
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/health/ready")
            break
        except httpx.TransportError:
            time.sleep(0.1)
    yield url, process, history
    process.kill()
    process.wait()


def test_a_service_stops_when_told_to(folder, tmp_path):
    process = subprocess.Popen(
        [
            *(
                sys.executable,
                "-c",
                "from rankad.cli import main; main()",
                "serve",
                str(folder / "plain.rankad"),
            ),
            *("--port", "0", "--history", "none"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    with process:
        for line in process.stderr:
            if "running on" in line:
                break
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []
