"""The benchmark of the service: its client counts what it was answered, its page judges by the bars."""

import base64
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks import service, service_client, service_page


@pytest.fixture
def server():
    """A server that takes 20 ms for each answer, and keeps the bodies it got."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            time.sleep(0.02)
            self.send_response(200 if self.path == "/score" else 404)
            self.send_header("content-length", "5")
            self.end_headers()
            self.wfile.write(b"12345")

        def log_message(self, *arguments):
            pass

    bodies = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.bodies = bodies
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def job(server, **changes):
    bodies = [base64.b64encode(body).decode() for body in (b"one", b"two")]
    host, port = server.server_address
    standard = {
        "host": host,
        "port": port,
        "path": "/score",
        "kind": "application/json",
        "accept": "application/json",
        "bodies": bodies,
        "connections": 4,
        "seconds": 0.5,
        "rate": None,
    }
    return standard | changes


def test_the_client_counts_the_answers_and_how_long_they_took(server):
    found = service_client.run(job(server))
    assert found["statuses"] == {"200": len(server.bodies)}
    assert set(server.bodies) == {b"one", b"two"}
    assert 20 <= found["p50_ms"] <= found["p99_ms"]
    assert 0 < found["rate"] <= 4 / 0.02
    assert service_client.run(job(server, path="/other"))["statuses"].keys() == {"404"}


def test_the_client_keeps_to_a_rate(server):
    found = service_client.run(job(server, rate=20.0, seconds=1.0))
    assert 18 <= sum(found["statuses"].values()) <= 22


def run(rate, p99=10.0):
    return {"rate": rate, "p50_ms": 1.0, "p99_ms": p99, "busy_us": 100.0}


@pytest.mark.parametrize(
    ("found", "met"),
    [
        ({"single": {"nothing": run(9_000), "array": run(2_100), "table": run(2_100, 60.0)}}, [True, False]),
        ({"single": {"nothing": run(1_000), "array": run(700, 99.0), "table": run(600)}}, [True, False]),
        ({"batches": {"table": {"served": run(31), "in process": run(100)}}}, [True]),
        ({"batches": {"table": {"served": run(29), "in process": run(100)}}}, [False]),
        ({"peer": {"one row": {"ours": run(10), "theirs": run(20)}}}, [False]),
    ],
)
def test_the_page_judges_by_the_bars(found, met):
    page = service_page.page(found, load=0.0, command="a command")
    verdicts = [
        line for line in page.split("## Bars")[1].splitlines() if line.endswith(("met |", "missed** |"))
    ]
    assert [line.endswith("| met |") for line in verdicts] == met


@pytest.mark.parametrize(
    ("minutes", "last", "met"), [(10, 104.0, True), (10, 106.0, False), (1, 100.0, False)]
)
def test_memory_is_flat_over_ten_minutes_or_not(minutes, last, met):
    memory = {
        "minutes": minutes,
        "rate": 100.0,
        "answered": 100.0,
        "p99_ms": 5.0,
        "second_third": 100.0,
        "last_third": last,
        "seen": [100.0] * 20,
    }
    page = service_page.page({"memory": memory}, load=0.0, command="a command")
    assert ("missed" not in page) == met


def test_an_interrupted_run_goes_on_and_a_complete_one_starts_over(tmp_path, monkeypatch, capsys):
    measured, broken = [], ["batches"]

    def part(name, found):
        def measure(folder, asked, before):
            assert (folder / "array.rankad").exists()
            if name in broken:
                raise RuntimeError("not all requests were answered")
            measured.append(name)
            return found

        return measure

    found = {
        "single": {name: run(3_000) for name in ("nothing", "array", "table")},
        "batches": {"table": {"served": run(31), "in process": run(100)}},
    }
    monkeypatch.setattr(service, "PARTS", {name: part(name, each) for name, each in found.items()})
    monkeypatch.setattr(service, "save_models", lambda folder: (folder / "array.rankad").touch())
    command = ["--out", str(tmp_path / "out"), "--parts", "single", "batches"]
    with pytest.raises(SystemExit, match="batches: not all requests"):
        service.main(command)
    page = tmp_path / "out" / "service.md"
    assert "## Single rows" in page.read_text()
    assert "## Batches" not in page.read_text()
    broken.clear()
    service.main(command)
    assert measured == ["single", "batches"]
    assert "## Batches" in page.read_text()
    assert str(tmp_path) not in page.read_text()
    # Now it is complete. With other settings, nothing of it counts.
    service.main(command)
    assert measured == ["single", "batches"] * 2
    service.main([*command, "--seconds", "1"])
    assert measured == ["single", "batches"] * 3
    assert "--seconds 1" in capsys.readouterr().out
