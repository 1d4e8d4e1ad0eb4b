"""Clients that are slow, endless or silent: each is let go, and others are answered meanwhile."""

import contextlib
import socket
import threading
import time

import httpx2 as httpx
import pytest
import uvicorn

from rankad.service.app import make_app
from rankad.service.protocol import PatientProtocol
from rankad.service.settings import Settings
from service_cases import make_models


class Impatient(PatientProtocol):
    header_seconds = 0.4
    answer_seconds = 0.4
    rest_seconds = 0.4


@contextlib.contextmanager
def serving(app, **options):
    """Serve an application from a thread, and yield its port."""
    config = uvicorn.Config(app, port=0, http=Impatient, ws="none", log_level="critical", **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    folder = make_models(tmp_path_factory.mktemp("models"))
    with serving(make_app(Settings((folder / "pump.rankad",), read_seconds=0.4)), lifespan="on") as port:
        yield port


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def all_of(connection):
    """Return everything until the other side closes."""
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


HEAD = b"POST /models/pump/score HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: text/csv\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b"408"),
        (b"GET /models HTT", b"408"),
        (HEAD, b"408"),
        (HEAD + b"content-length: 100\r\n\r\nflow,mode\n", b"408"),
        (b"GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\nGET /health", b"408"),
    ],
    ids=["nothing", "part of a line", "part of the headers", "part of the body", "part of a second request"],
)
def test_a_client_that_stops_is_let_go(port, sent, status):
    with connected(port) as connection:
        connection.sendall(sent)
        started = time.monotonic()
        answer = all_of(connection)
        assert b"HTTP/1.1 " + status in answer
        assert 0.3 < time.monotonic() - started < 15


def test_a_client_that_drips_headers_is_let_go(port):
    with connected(port) as connection:
        connection.sendall(HEAD)
        started = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - started < 15:
                connection.sendall(b"x-y: z\r\n")
                time.sleep(0.05)
        assert time.monotonic() - started < 10


def test_headers_without_end_are_cut(port):
    line, sent = b"x-y: " + b"z" * 1_000 + b"\r\n", 0
    with connected(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionError):
            while sent < 100_000_000:
                connection.sendall(line)
                sent += len(line)
    # What was on its way in the kernels' buffers is not counted against it.
    assert sent < 100_000_000


def test_long_headers_are_refused_and_those_within_the_limit_are_not(port):
    url = f"http://127.0.0.1:{port}/health/live"
    assert httpx.get(url, headers={"x-long": "y" * 50_000}).status_code == 200
    assert httpx.get(url, headers={"x-long": "y" * 200_000}).status_code in (400, 431)


@pytest.mark.parametrize(("size", "status"), [(60_000, b"200"), (66_000, b"431"), (120_000, b"431")])
def test_long_headers_that_come_in_one_piece_are_measured_too(port, size, status):
    with connected(port) as connection:
        head = b"GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
        connection.sendall(head + b"x-long: " + b"y" * size + b"\r\n\r\n")
        answer = b""
        # What comes after the end may be answered by a reset before the answer is read.
        with contextlib.suppress(ConnectionError):
            answer = connection.recv(65_536)
    assert (answer[:12] or b"HTTP/1.1 431") == b"HTTP/1.1 " + status


ROWS = b"flow,mode\n4.9,eco\n60.0,eco\n"


@pytest.mark.parametrize("n", [1, 3], ids=["one request", "three in a row"])
def test_a_client_that_shuts_down_its_half_has_its_answers(port, n):
    with connected(port) as connection:
        connection.sendall(n * (HEAD + b"content-length: %d\r\n\r\n" % len(ROWS) + ROWS))
        connection.shutdown(socket.SHUT_WR)
        answers = all_of(connection)
    assert answers.count(b"HTTP/1.1 200") == answers.count(b"p_value,score,alarm") == n


def test_half_a_request_and_an_end_is_no_request(port):
    with connected(port) as connection:
        connection.sendall(HEAD + b"content-length: 100\r\n\r\nflow")
        connection.shutdown(socket.SHUT_WR)
        # At once: after some time it would be 408.
        assert all_of(connection) == b""


def test_a_body_that_was_refused_is_not_read_for_ever(port):
    with connected(port) as connection:
        connection.sendall(HEAD + b"content-length: 99999999999\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 413")
        begun = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - begun < 15:
                connection.sendall(b"4.9,eco\n" * 1_000)
                time.sleep(0.02)
        assert time.monotonic() - begun < 10


def test_the_rest_of_a_refused_body_may_come_and_the_next_request_is_answered(port):
    with connected(port) as connection:
        connection.sendall(HEAD + b"content-encoding: gzip\r\ncontent-length: 1000\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 415")
        connection.sendall(b"x" * 1_000)
        time.sleep(0.6)
        connection.sendall(b"GET /health/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


LONG = 30_000_000


async def long_answer(scope, receive, send):
    length = str(LONG).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": bytes(LONG)})


def test_an_answer_that_is_not_taken_is_given_up():
    with serving(long_answer, lifespan="off") as port, connected(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        time.sleep(1.5)
        # What the kernels held back still comes.
        assert received(connection) < LONG
    with serving(long_answer, lifespan="off") as port, connected(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert received(connection) > LONG


def received(connection):
    """Return how many bytes come until the connection ends, in whatever way."""
    n = 0
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(1 << 20):
            n += len(part)
    return n


def test_a_client_that_takes_its_time_between_requests_is_served(port):
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        for _ in range(3):
            assert client.get("/health/live").status_code == 200
            time.sleep(0.6)
