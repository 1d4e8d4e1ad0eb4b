"""The page of the service over HTTP: what it answers, whom it refuses, what it keeps and for how long."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from starlette.testclient import TestClient

from rankad import RankAD, TableDetector, load
from rankad.service.app import make_app
from rankad.service.keys import KeyFile
from rankad.service.page import answers
from rankad.service.page.guard import MARK
from rankad.service.page.settings import PageSettings
from rankad.service.page.tables import open_stored
from rankad.service.page.understanding import Corrections, understood
from rankad.service.settings import Settings
from rankad.tables import TableEncoder
from rankad.tables.frames import Untyped

HERE = "http://127.0.0.1:8000"
SENT = {MARK: "1"}
FILES = files("rankad.service.page") / "files"


def table_of(n, seed):
    rng = np.random.default_rng(seed)
    mode = rng.choice(["eco", "full"], size=n)
    flow = rng.normal(5, 1, size=n) + (mode == "full")
    return pl.DataFrame({"flow": flow.round(3), "heat": rng.normal(size=n).round(3), "mode": mode})


def quick():
    return RankAD(bandwidth="D_K", C=0.1, landmarks=40, near_field=False, n_components=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    TableDetector(quick()).fit(table_of(300, 0)).save(folder / "pump.rankad")
    quick().fit(table_of(200, 0).select("flow", "heat")).save(folder / "plain.rankad")
    new = table_of(80, 1)
    new[7, "flow"], new[9, "mode"] = 99.0, "=1+1"
    new.write_csv(folder / "new.csv")
    return folder


@pytest.fixture
def settings(folder, tmp_path):
    page = PageSettings(tables=(folder / "new.csv",))
    models = (folder / "pump.rankad", folder / "plain.rankad")
    return Settings(models, history=tmp_path / "history.sqlite", page=page)


@pytest.fixture
def app(settings):
    return make_app(settings)


@pytest.fixture
def client(app):
    with TestClient(app, base_url=HERE) as client:
        yield client


@pytest.fixture
def new(folder):
    return pl.read_csv(folder / "new.csv", infer_schema=False)


def upload(client, body, name="t.csv"):
    return client.post("/page/tables", params={"name": name}, content=body, headers=SENT)


def answers_of(client, model="pump"):
    table = client.get("/page/start").json()["tables"][0]["id"]
    return client.post("/page/answers", json={"table": table, "model": model}, headers=SENT).json()


def message_of(response, status):
    assert response.status_code == status, response.text
    return response.json()["error"]["message"]


# --------------------------------------------------------------------------------------------- files, headers


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def test_the_page_comes_with_a_strict_policy_and_runs_nothing_inline(client):
    response = client.get("/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    tags = Tags(response.text).tags
    assert all("src" in attributes for tag, attributes in tags if tag == "script")
    assert all(not name.startswith("on") and name != "style" for _, found in tags for name in found)
    named = [found.get("src") or found.get("href") for tag, found in tags if tag in ("script", "link")]
    for name in named:
        if name != "data:,":
            assert client.get(f"/{name}").status_code == 200


def test_scripts_import_what_there_is_and_make_no_html_of_text(client):
    scripts = [each for each in FILES.iterdir() if each.name.endswith(".js")]
    assert len(scripts) > 5
    for script in scripts:
        text = script.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|Function\(", text)
        for name in re.findall(r'from "\./([^"]+)"', text):
            assert client.get(f"/page/files/{name}").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("name", ["..%2Frouting.py", "%2e%2e%2froutes.py", "routes.py", "", ".."])
def test_no_other_file_is_served(client, name):
    response = client.get(f"/page/files/{name}")
    assert response.status_code in (404, 307) or response.url.path == "/page/"
    assert b"import" not in response.content


def test_without_the_page_there_is_none(folder):
    settings = Settings((folder / "pump.rankad",), page=PageSettings(shown=False))
    with TestClient(make_app(settings), base_url=HERE) as client:
        assert client.get("/").status_code == 404
        assert client.post("/models/pump/score", json=[]).status_code == 200


# -------------------------------------------------------------------------------------------- who may do what


def changing(app):
    found = [route.path for route in app.routes if route.path.startswith("/page") and "POST" in route.methods]
    assert len(found) >= 5
    return [path.replace("{id}", "x" * 22) for path in found]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": HERE},
        {MARK: "1", "origin": "http://evil.example"},
        {MARK: "1", "origin": "null"},
        {MARK: "1", "origin": "http://127.0.0.1:9000"},
        {MARK: "1", "sec-fetch-site": "cross-site"},
        {MARK: "1", "sec-fetch-site": "same-site", "origin": HERE},
    ],
)
def test_other_pages_can_change_nothing(app, client, headers):
    for path in changing(app):
        assert "only the page" in message_of(client.post(path, content=b"{}", headers=headers), 403)


def test_the_page_itself_can(client):
    headers = {MARK: "1", "sec-fetch-site": "same-origin", "origin": HERE}
    response = client.post("/page/tables?name=t.csv", content=b"a,b\n1,2\n", headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:8000", "[::2]", "a[b"])
def test_a_name_that_is_not_this_machine_is_refused_without_keys(client, host):
    assert "127.0.0.1" in message_of(client.get("/page/start", headers={"host": host}), 403)


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000"])
def test_this_machine_has_several_names(client, host):
    assert client.get("/page/start", headers={"host": host}).status_code == 200


def test_with_keys_the_page_asks_and_only_admins_fit(folder, tmp_path):
    keys = tmp_path / "keys.txt"
    reader, admin = KeyFile.add(keys, "r", "read"), KeyFile.add(keys, "a", "admin")
    settings = Settings((folder / "pump.rankad",), keys=keys, page=PageSettings(tables=(folder / "new.csv",)))
    with TestClient(make_app(settings), base_url="https://rankad.example") as client:
        assert client.get("/").status_code == 200
        assert client.get("/page/start").status_code == 401
        assert upload(client, b"a\n1\n").status_code == 401
        client.headers["authorization"] = f"Bearer {reader}"
        assert answers_of(client)["table"]["rows"] == 80
        table = upload(client, b"a,b\n1,2\n").json()["id"]
        assert "admin" in message_of(client.post("/page/fits", json={"table": table}, headers=SENT), 403)
        client.headers["authorization"] = f"Bearer {admin}"
        assert "no such table" in message_of(
            client.post("/page/fits", json={"table": "x" * 22}, headers=SENT), 404
        )


# -------------------------------------------------------------------------------------------- uploaded tables


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/passwd.csv",
        "..\\..\\x.csv",
        "<img src=x onerror=alert(1)>.csv",
        "a\u202egnp.csv",
        "nul\0l.csv",
        "n" * 5_000 + ".csv",
        ".csv",
        "",
        "\ud7ff.csv",
    ],
)
def test_a_file_name_is_only_shown(client, app, name):
    told = upload(client, b"a,b\n1,2\n3,4\n", name).json()
    assert (told["rows"], told["columns"]) == (2, 2)
    assert len(told["name"]) <= 204
    assert not re.search("[/\\\\\0\u202e]", told["name"])


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.parquet", lambda frame, file: frame.write_parquet(file)),
        ("t.arrow", lambda frame, file: frame.write_ipc(file)),
        ("t.ndjson", lambda frame, file: frame.write_ndjson(file)),
        ("t.json", lambda frame, file: frame.write_json(file)),
        ("t.xlsx", lambda frame, file: frame.write_excel(file)),
        ("t.csv.gz", lambda frame, file: file.write(gzip.compress(frame.write_csv().encode()))),
    ],
)
def test_tables_of_every_format(client, name, write):
    frame, file = table_of(20, 3), io.BytesIO()
    write(frame, file)
    told = upload(client, file.getvalue(), name).json()
    assert (told["rows"], told["names"]) == (20, frame.columns)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("t.csv", b""),
        ("t.csv", b"a,b\n"),
        ("t.parquet", b"PAR1 not really PAR1"),
        ("t.xlsx", b"PK\x03\x04 broken"),
        ("t.json", b'{"a": '),
        ("t.csv", b"a,a\n1,2\n"),
        ("t.csv", "ä,b\n1,2\n".encode("utf-16")[:-3]),
        ("t.csv.gz", b"\x1f\x8b broken"),
        ("t.csv", b"a,b\n1,\xfc\n"),
        ("t.csv", b"a,b\n1\0,2\n"),
        ("t.csv", b"a,b\n1,2\n1,2,3\n"),
    ],
)
def test_what_is_no_table_is_refused_without_a_trace(client, settings, name, body, tmp_path):
    told = message_of(upload(client, body, name), 422)
    assert "rankad-page" not in told
    assert "upload" not in told.split()[0]
    # The page has no options.
    assert "--" not in told


def test_a_full_disk_is_said_and_leaves_nothing(client, app, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_ipc", full)
    assert "No space left" in message_of(upload(client, b"a,b\n1,2\n"), 503)
    folders = find_page(app)._workspace.path.glob("table/*")
    assert [each for each in folders if not (each / "kept").exists()] == []


def no_space(*_, **__):
    raise OSError(28, "No space left on device")


class FullFile(io.StringIO):
    """A file that can be made, and not written to."""

    def __init__(self, path, mode):
        super().__init__()
        Path(path).touch()

    flush = no_space


@pytest.mark.parametrize(
    "what",
    ["rankad.service.page.fits.write_json", "subprocess.Popen", "rankad.service.page.fits.open"],
)
def test_a_fit_that_cannot_begin_says_so_and_the_next_one_can(client, app, monkeypatch, what):
    table = upload(client, table_of(60, 4).write_csv().encode()).json()["id"]
    with monkeypatch.context() as full:
        full.setattr(what, FullFile if what.endswith(".open") else no_space, raising=False)
        response = client.post("/page/fits", json={"table": table}, headers=SENT)
        assert "No space left" in message_of(response, 503)
    begun = client.post("/page/fits", json={"table": table}, headers=SENT)
    assert begun.status_code == 200, begun.text
    client.post(f"/page/fits/{begun.json()['id']}/cancel", headers=SENT)
    assert len(list(find_page(app)._workspace.path.glob("fit/*"))) == 1


def test_answers_that_cannot_be_stored_are_said_and_tried_again(client, monkeypatch):
    table = client.get("/page/start").json()["tables"][0]["id"]
    asked = {"json": {"table": table, "model": "pump"}, "headers": SENT}
    with monkeypatch.context() as full:
        full.setattr(np, "save", no_space)
        assert "No space left" in message_of(client.post("/page/answers", **asked), 503)
    assert client.post("/page/answers", **asked).status_code == 200


def test_what_somebody_reads_is_not_written_to(tmp_path):
    about = {"own": False}
    answers.write(tmp_path, about, np.zeros(5_000), np.zeros(5_000))
    read = np.load(tmp_path / "p_values.npy", mmap_mode="r")
    answers.write(tmp_path, about, np.ones(5_000), np.ones(5_000))
    assert not read.any()
    assert np.load(tmp_path / "p_values.npy").all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["about.json", "p_values.npy", "scores.npy"]


def test_many_who_score_the_same_table_at_once_have_it_in_the_history_once(client):
    table = client.get("/page/start").json()["tables"][0]["id"]

    def score(_):
        return client.post("/page/answers", json={"table": table, "model": "pump"}, headers=SENT)

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(score, range(8)))
    assert {each.status_code for each in told} == {200}
    assert len({each.json()["id"] for each in told}) == 1
    assert client.get("/models/pump/history").json()["requests"] == 1


def test_downloads_of_one_name_at_once_do_not_meet(client, monkeypatch):
    told, together = answers_of(client), threading.Barrier(4, timeout=20)
    remove = answers.removed

    def removed(path):
        together.wait()
        return remove(path)

    monkeypatch.setattr(answers, "removed", removed)
    headers = {"x-request-id": "the same"}

    def download(_):
        return client.get(f"/page/answers/{told['id']}/alarms.csv", params={"alpha": 0.1}, headers=headers)

    with ThreadPoolExecutor(4) as pool:
        files = list(pool.map(download, range(4)))
    assert {file.status_code for file in files} == {200}
    assert len({file.content for file in files}) == 1


def test_limits(folder, tmp_path):
    page = PageSettings(most_columns=3, most_bytes=20_000)
    settings = Settings((folder / "pump.rankad",), most_bytes=5_000, most_rows=50, page=page)
    with TestClient(make_app(settings), base_url=HERE) as client:
        assert "5,000 bytes" in message_of(upload(client, b"a\n" + b"1\n" * 4_000), 413)
        assert "50 rows" in message_of(upload(client, b"a\n" + b"1\n" * 51), 413)
        assert "4 columns, and the page takes 3" in message_of(upload(client, b"a,b,c,d\n1,2,3,4\n"), 413)
        # Small when packed.
        packed = gzip.compress(b"a\n" + (b"1" * 1_000 + b"\n") * 40)
        assert "memory" in message_of(upload(client, packed, "t.csv.gz"), 413)
        sent = [upload(client, b"a,b\n" + b"1,2\n" * 40).status_code for _ in range(40)]
        assert 503 in sent


@pytest.mark.parametrize("name", ["..", "%2e%2e", "a/../b", "x" * 22, "x" * 21, "é" * 22, "..%2f..%2fmodels"])
def test_ids_are_only_ids(client, name):
    for path in (f"/page/answers/{name}/p-values", f"/page/fits/{name}", f"/page/fits/{name}/model"):
        assert client.get(path).status_code == 404
    body = {"table": name, "model": "pump"}
    assert client.post("/page/answers", json=body, headers=SENT).status_code == 404


def test_columns_are_understood_as_a_table_detector_does(client, app):
    body = b"when,code,v\n" + b"".join(
        b"%02d/03/2024,%d,%d\n" % (1 + k % 12, k % 7, k % 5) for k in range(90)
    )
    table = upload(client, body).json()["id"]

    def told(**corrections):
        path = f"/page/tables/{table}/columns"
        columns = client.post(path, json=corrections, headers=SENT).json()["columns"]
        return {column["name"]: column for column in columns}

    frame = Untyped(pl.read_csv(body, infer_schema=False))
    assert {n: c["kind"] for n, c in told().items()} == {
        note.name: note.kind for note in TableEncoder.fit(frame).notes
    }
    said = {"kinds": {"code": "category", "v": "drop"}, "day_first": False, "missing": {"code": ["3"]}}
    corrected = told(**said)
    options = {"categories": ["code"], "drop": ["v"], "day_first": False, "missing": {"code": ["3"]}}
    expected = TableEncoder.fit(frame, **options)
    for column in expected.columns:
        assert column.describe() == f"{column.name}: {corrected[column.name]['used']}"
    assert corrected["v"]["used"] == "left out"
    wrong = client.post(f"/page/tables/{table}/columns", json={"kinds": {"no": "id"}}, headers=SENT)
    assert "'no'" in message_of(wrong, 422)
    wrong = client.post(f"/page/tables/{table}/columns", json={"kinds": {"v": "x"}}, headers=SENT)
    assert "not what the page sends" in message_of(wrong, 400)


def test_columns_that_cannot_be_used_can_be_left_out(client, app):
    file = io.BytesIO()
    table_of(40, 0).with_columns(many=pl.concat_list("flow", "heat")).write_parquet(file)
    path = f"/page/tables/{upload(client, file.getvalue(), 't.parquet').json()['id']}/columns"
    told = client.post(path, json={}, headers=SENT).json()
    assert "'many' is of type List" in told["problem"]
    assert "--" not in told["problem"]
    assert [column["name"] for column in told["columns"]] == ["flow", "heat", "mode", "many"]
    told = client.post(path, json={"kinds": {"many": "drop"}}, headers=SENT).json()
    assert told["problem"] is None
    assert [column["kind"] for column in told["columns"]] == ["number", "number", "category", "drop"]


def test_doubts_do_not_speak_of_options_of_the_command(client, app):
    body = b"tx,v\n" + b"".join(b"T%05d,%d\n" % (k, k % 9) for k in range(200))
    table = upload(client, body).json()["id"]
    column = client.post(f"/page/tables/{table}/columns", json={}, headers=SENT).json()["columns"][0]
    assert column["kind"] == "id"
    assert column["doubt"]
    assert "--" not in column["doubt"]


# ---------------------------------------------------------------------------------------------------- answers


def test_p_values_are_those_of_the_detector_and_stored_once(client, folder, new):
    told = answers_of(client)
    assert answers_of(client)["id"] == told["id"]
    p_values = np.frombuffer(client.get(f"/page/answers/{told['id']}/p-values").content, "<f8")
    detector = load(folder / "pump.rankad")
    np.testing.assert_array_equal(p_values, detector.p_values(new))
    history = client.get("/models/pump/history").json()
    assert (history["requests"], history["rows"]) == (1, 80)
    course = client.get("/models/pump/history").json()["over_time"]
    assert sum(bar["rows"] for bar in course) == 80
    expected = sum(bar["alarms_if_all_rows_were_normal"] for bar in course)
    assert expected == pytest.approx(80 * detector.alpha)


@pytest.mark.parametrize("alpha", [0.0001, 0.01, 0.0333, 0.5])
def test_alarms_are_listed_in_any_order(client, folder, new, alpha):
    told, detector = answers_of(client), load(folder / "pump.rankad")
    alarms = np.flatnonzero(detector.p_values(new) <= alpha)
    path = f"/page/answers/{told['id']}/alarms?alpha={alpha}"
    listed = client.get(path).json()
    assert listed["total"] == alarms.size
    by_score = alarms[np.argsort(detector.score_samples(new)[alarms], kind="stable")]
    assert [row["row"] for row in listed["rows"]] == by_score[:20].tolist()
    flow = new["flow"].cast(float).to_numpy()
    rows = [row["row"] for row in client.get(f"{path}&by=flow&down=1").json()["rows"]]
    assert flow[rows].tolist() == sorted(flow[alarms], reverse=True)[:20]
    message_of(client.get(f"{path}&by=no"), 422)
    more = client.get(f"{path}&begin=20").json()["rows"]
    assert [row["row"] for row in more] == by_score[20:40].tolist()


def test_reasons_name_the_column(client):
    told = answers_of(client)
    rows = client.get(f"/page/answers/{told['id']}/reasons?alpha=0.05&rows=7,9").json()["rows"]
    assert rows[0]["reasons"][0]["column"] == "flow"
    assert rows[0]["reasons"][0]["strip"][0] == 99
    assert rows[1]["strange"][0]["value"] == "=1+1"
    for asked in ("rows=80", "rows=-1", "rows=x", "rows=" + ",".join("1" * 21)):
        message_of(client.get(f"/page/answers/{told['id']}/reasons?alpha=0.05&{asked}"), 422)


def test_the_file_of_alarms_runs_nothing_in_a_spreadsheet(client, folder, new):
    told = answers_of(client)
    response = client.get(f"/page/answers/{told['id']}/alarms.csv?alpha=0.05")
    assert response.headers["content-disposition"] == 'attachment; filename="new-alarms.csv"'
    frame = pl.read_csv(response.content, infer_schema=False)
    alarms = np.flatnonzero(load(folder / "pump.rankad").p_values(new) <= 0.05)
    assert sorted(frame["row"].cast(int)) == (alarms + 1).tolist()
    odd = frame.filter(pl.col("row") == "10")
    assert odd["mode"].item() == "'=1+1"
    assert "not among the categories" in odd["reason"].item()


def test_the_region_is_where_the_detector_says(client, folder, new):
    told, detector = answers_of(client, "plain"), load(folder / "plain.rankad")
    window = {"left": 1, "right": 9, "bottom": -3, "top": 3}
    asked = {"x": "flow", "y": "heat", "row": 3, **window}
    region = client.get(f"/page/answers/{told['id']}/region", params=asked).json()
    assert region["whole"]
    size = region["size"]
    xs, ys = np.meshgrid(np.linspace(1, 9, size), np.linspace(-3, 3, size))
    expected = detector.score_samples(pl.DataFrame({"flow": xs.ravel(), "heat": ys.ravel()}))
    np.testing.assert_allclose(region["scores"], expected, rtol=1e-12)
    for alpha, threshold in zip(region["alphas"], region["thresholds"], strict=True):
        assert threshold == detector.calibration_.threshold(alpha)
    for change in ({"x": "mode"}, {"y": "flow"}, {"row": 80}, {"left": 9}, {"top": "nan"}, {"row": "x"}):
        message_of(client.get(f"/page/answers/{told['id']}/region", params=asked | change), 422)


def test_dots_are_where_the_rows_are(client, new):
    told = answers_of(client)
    path = f"/page/answers/{told['id']}/places"
    dots = client.get(path, params={"x": "flow", "y": "mode"}).json()
    flow = new["flow"].cast(float).to_numpy()
    np.testing.assert_array_equal(dots["x"], flow[dots["rows"]])
    assert sorted(dots["rows"]) == list(range(80))
    words = [dots["labels"][1][round(y)] for y in dots["y"]]
    assert words == new["mode"].gather(dots["rows"]).to_list()
    flat = client.get(path).json()
    assert sorted(flat["rows"]) == list(range(80))
    assert "no column" in message_of(client.get(path, params={"x": "no", "y": "flow"}), 422)


def test_answers_of_a_model_that_was_replaced_are_gone(client, folder, tmp_path):
    path = tmp_path / "pump.rankad"
    path.write_bytes((folder / "pump.rankad").read_bytes())
    with TestClient(make_app(Settings((path,))), base_url=HERE) as client:
        table = upload(client, table_of(30, 2).write_csv().encode()).json()["id"]
        told = client.post("/page/answers", json={"table": table, "model": "pump"}, headers=SENT).json()
        TableDetector(quick()).fit(table_of(250, 5)).save(path)
        for _ in range(100):
            response = client.get(f"/page/answers/{told['id']}")
            if response.status_code == 409:
                break
            time.sleep(0.05)
        assert "score the table again" in message_of(response, 409)


def test_what_nobody_uses_is_dropped_and_at_the_end_everything(folder):
    page = PageSettings(keep_seconds=0.0, tables=(folder / "new.csv",))
    app = make_app(Settings((folder / "pump.rankad",), page=page))
    with TestClient(app, base_url=HERE) as client:
        workspace = find_page(app)._workspace
        table = upload(client, b"a,b\n1,2\n").json()["id"]
        for _ in range(100):
            if not (workspace.path / "table" / table).exists():
                break
            time.sleep(0.05)
        assert "Upload the table again" in message_of(
            client.post(f"/page/tables/{table}/columns", json={}, headers=SENT), 404
        )
        assert answers_of(client)["table"]["name"] == "new.csv"
        assert workspace.path.stat().st_mode & 0o077 == 0
    assert not workspace.path.exists()


def find_page(app):
    # The only bound method among the handlers.
    return app.router.lifespan_context.__self__.page


# ------------------------------------------------------------------------------------------------------- fits


def wait_for(client, fit):
    while (state := client.get(f"/page/fits/{fit}").json())["state"] == "running":
        time.sleep(0.1)
    return state


@pytest.mark.slow
def test_a_fit_in_a_process_of_its_own(client, app):
    frame = table_of(60, 4)
    table = upload(client, frame.write_csv().encode(), "mine.csv").json()["id"]
    body = {"table": table, "mixed": True, "corrections": {"kinds": {"heat": "drop"}}}
    answer = client.post("/page/fits", json=body, headers=SENT).json()
    assert answer["state"] == "running"
    again = client.post("/page/fits", json=body, headers=SENT)
    assert "another table is being fitted" in message_of(again, 503)
    state = wait_for(client, answer["id"])
    assert (state["state"], state["name"]) == ("done", "mine.csv")
    told = client.post("/page/answers", json={"table": table, "fit": answer["id"]}, headers=SENT).json()
    assert told["own"]
    p_values = np.frombuffer(client.get(f"/page/answers/{told['id']}/p-values").content, "<f8")
    text = Untyped(pl.read_csv(frame.write_csv().encode(), infer_schema=False))
    alone = TableDetector(RankAD(trim="auto"), drop=["heat"])
    np.testing.assert_array_equal(p_values, alone.fit_p_values(text))
    model = client.get(f"/page/fits/{answer['id']}/model")
    assert model.headers["content-disposition"] == 'attachment; filename="mine.rankad"'
    path = find_page(app)._workspace.path / "got.rankad"
    path.write_bytes(model.content)
    np.testing.assert_array_equal(load(path).score_samples(text), alone.score_samples(text))


@pytest.mark.slow
def test_a_fit_that_is_cancelled_dies_or_fails(client, app):
    table = upload(client, table_of(60, 4).write_csv().encode()).json()["id"]
    answer = client.post("/page/fits", json={"table": table}, headers=SENT).json()
    assert client.get(f"/page/fits/{answer['id']}/model").status_code == 409
    state = client.post(f"/page/fits/{answer['id']}/cancel", headers=SENT).json()
    assert state["state"] == "cancelled"
    # The next can begin at once; this one is killed.
    answer = client.post("/page/fits", json={"table": table}, headers=SENT).json()
    find_page(app)._fits._running.process.kill()
    state = wait_for(client, answer["id"])
    assert "without a result" in state["message"]
    tiny = upload(client, b"a,b\n1,2\n3,4\n").json()["id"]
    answer = client.post("/page/fits", json={"table": tiny}, headers=SENT).json()
    state = wait_for(client, answer["id"])
    assert state["state"] == "failed"
    assert "2" in state["message"]


@pytest.mark.slow
def test_a_fit_that_nobody_watches_any_more_gives_way(client, app, monkeypatch):
    table = upload(client, table_of(4_000, 4).write_csv().encode()).json()["id"]
    begun = client.post("/page/fits", json={"table": table}, headers=SENT).json()["id"]
    page, deadline = find_page(app), time.monotonic() + 30
    about = page._workspace.path / "fit" / begun
    # The tab is closed, and three minutes pass.
    past = time.time() - 200
    while page._fits._running is not None and time.monotonic() < deadline:
        os.utime(about / "asked", (past, past))
        time.sleep(0.2)
    assert client.get(f"/page/fits/{begun}").json()["state"] == "cancelled"
    again = client.post("/page/fits", json={"table": table}, headers=SENT)
    assert again.status_code == 200
    # While somebody asks, it goes on.
    page.sweep()
    assert page._fits._running is not None
    client.post(f"/page/fits/{again.json()['id']}/cancel", headers=SENT)


def test_fits_of_several_processes_take_turns(client, app):
    # Another process of the service has started one, is alive, and then is not.
    page = find_page(app)
    table = upload(client, table_of(60, 4).write_csv().encode()).json()["id"]
    folder = page._workspace.make("fit")
    (folder / "about.json").write_text(json.dumps({"state": "running", "started": time.time(), "label": ""}))
    (page._workspace.path / "fitting").write_text(folder.name)
    body = {"table": table}
    assert client.post("/page/fits", json=body, headers=SENT).status_code == 503
    # Its cancellation is a file that the other one sees.
    client.post(f"/page/fits/{folder.name}/cancel", headers=SENT)
    assert (folder / "cancel").exists()
    os.utime(folder / "about.json", (0, 0))
    answer = client.post("/page/fits", json=body, headers=SENT)
    assert answer.status_code == 200
    client.post(f"/page/fits/{answer.json()['id']}/cancel", headers=SENT)


def test_stored_tables_are_read_as_they_came(client, app):
    body = b"a,b\n" + b"007,x\n010,\n" * 20
    table = upload(client, body).json()["id"]
    stored = open_stored(find_page(app)._workspace.path / "table" / table)
    assert stored.frame.rows() == [("007", "x"), ("010", None)] * 20
    assert not stored.typed
    columns = understood(stored, Corrections(kinds={"a": "category"}))["columns"]
    assert columns[0]["cells"] == ["007", "010"]
    assert {each.name for each in Path(stored.path).iterdir()} == {"rows.arrow", "about.json"}


# ---------------------------------------------------------------------------------------------- rankad serve


def test_the_demo_serves_models_that_fit_its_tables(monkeypatch):
    from rankad.cli import serving_demo
    from rankad.cli.example import make_example

    monkeypatch.setattr(serving_demo, "make_example", lambda *_: make_example(120, 30))
    geyser = serving_demo.geyser
    monkeypatch.setattr(serving_demo, "geyser", lambda n, seed, odd=0: geyser(80, seed, odd))
    with serving_demo.example_folder("127.0.0.1", 0) as demo:
        monkeypatch.undo()
        page = PageSettings(tables=tuple(demo.tables))
        app = make_app(Settings(tuple(demo.models), history=demo.history, page=page))
        with TestClient(app, base_url=HERE) as client:
            start = client.get("/page/start").json()
            for table, model in zip(start["tables"][:2], start["models"], strict=True):
                asked = {"table": table["id"], "model": model["name"]}
                assert client.post("/page/answers", json=asked, headers=SENT).status_code == 200
    assert not any(path.exists() for path in (*demo.models, *demo.tables))


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--demo", "x.rankad"], "its own models"), ([], "or give --demo")]
)
def test_what_serve_refuses(arguments, said, capsys):
    from rankad.cli import main

    with pytest.raises(SystemExit, match="2"):
        main(["serve", *arguments])
    assert said in capsys.readouterr().err


def test_a_table_that_cannot_be_offered_is_named(folder, tmp_path, caplog):
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    page = PageSettings(tables=(tmp_path / "broken.parquet", folder / "new.csv"))
    with TestClient(make_app(Settings((folder / "pump.rankad",), page=page)), base_url=HERE) as client:
        assert [each["name"] for each in client.get("/page/start").json()["tables"]] == ["new.csv"]
    assert "broken.parquet is not offered" in caplog.text
    with pytest.raises(ValueError, match="there is no table"):
        make_app(Settings((folder / "pump.rankad",), page=PageSettings(tables=(tmp_path / "no.csv",))))


def test_processes_that_are_forked_share_the_folder_and_leave_it(tmp_path):
    # A process that ends as a worker does; in one of its own, which has used no polars yet.
    program = """
import multiprocessing, sys
from pathlib import Path
from rankad.service.page.workspace import Workspace

space = Workspace(None, 60.0, 2**20)
worker = multiprocessing.get_context("fork").Process(target=lambda: (space.make("fit"), space.close()))
worker.start()
worker.join()
print(space.path, len(list(space.path.glob("fit/*"))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    path, n = done.stdout.split()
    assert n == "1"
    assert not Path(path).exists()
