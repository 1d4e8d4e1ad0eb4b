"""The clients of the service: the answers of the detector, in one request or many; another try when busy."""

import asyncio
import inspect
import json
import shutil
import ssl
import subprocess

import httpx2 as httpx
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import rankad
from rankad import AsyncClient, Client, ServiceError, load
from service_cases import Running, make_models, table_of


class Awaiting:
    """`AsyncClient` with methods that wait, so that one test serves both."""

    def __init__(self, *arguments, **options):
        self.loop = asyncio.new_event_loop()
        self.client = AsyncClient(*arguments, **options)

    def __getattr__(self, name):
        return lambda *arguments: self.loop.run_until_complete(getattr(self.client, name)(*arguments))

    def __enter__(self):
        self.loop.run_until_complete(self.client.__aenter__())
        return self

    def __exit__(self, *error):
        self.loop.run_until_complete(self.client.__aexit__(*error))
        self.loop.close()


@pytest.fixture(params=[Client, Awaiting])
def client_of(request):
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def url(folder):
    service = Running(folder / "pump.rankad", folder / "plain.rankad", "--history", folder / "h.sqlite")
    yield service.url
    service.kill_all()


@pytest.mark.parametrize("batch_rows", [7, 1_000])
def test_the_answers_are_those_of_the_detector(client_of, url, folder, batch_rows):
    detector, new = load(folder / "pump.rankad"), table_of(60, 1)
    with client_of(url, "pump", batch_rows=batch_rows, alpha=0.2) as client:
        np.testing.assert_array_equal(client.p_values(new), detector.p_values(new))
        np.testing.assert_array_equal(client.score_samples(new.to_pandas()), detector.score_samples(new))
        expected = np.where(detector.p_values(new) <= 0.2, -1, 1)
        np.testing.assert_array_equal(client.predict(new.to_dict(as_series=False)), expected)
        assert client.predict(new.clear()).size == 0
        assert client.explain([{"flow": 99.0, "mode": "eco"}])[0]["reasons"][0]["column"] == "flow"
        many = [{"flow": float(at), "mode": "eco"} for at in range(1_003)]
        assert [row["p_value"] for row in client.explain(many)] == detector.p_values(many).tolist()
        assert client.card()["columns"] == ["flow", "mode"]
        before = client.history()["requests"]
        client.p_values(new)
        assert client.history()["requests"] - before == -(-60 // batch_rows)


def test_arrays_are_scored_where_the_model_has_no_names(client_of, url, folder):
    rows = np.random.default_rng(3).normal(size=(40, 2))
    with client_of(url, "plain", batch_rows=15) as client:
        expected = load(folder / "plain.rankad").score_samples(rows)
        np.testing.assert_array_equal(client.score_samples(rows), expected)
        single = rows.astype(np.float32)
        assert client.score_samples(single.tolist()).tolist() == client.score_samples(single).tolist()
        with pytest.raises(ServiceError, match="2 columns"):
            client.p_values(np.zeros((2, 3)))
        with pytest.raises(ValueError, match=r"shape \(n, d\)"):
            client.p_values(np.zeros(3))
    with client_of(url, "pump") as client, pytest.raises(TypeError, match="name the columns"):
        client.p_values(np.zeros((2, 2)))


def test_refusals_have_the_words_of_the_service(client_of, url):
    with client_of(url, "pump", batch_rows=1) as client:
        with pytest.raises(ServiceError, match="mode") as caught:
            client.p_values({"flow": [1.0] * 9})
        assert (caught.value.status, caught.value.code) == (422, "rows")
    with client_of(url, "none") as client, pytest.raises(ServiceError, match="no model 'none'"):
        client.card()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls_with_a_certificate_of_ones_own_and_a_log_of_json(folder, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    trusted = ssl.create_default_context(cafile=certificate)
    tls = "--tls-certificate", certificate, "--tls-key", key
    service = Running(folder / "plain.rankad", "--history", "none", *tls, "--log-json", "--log-requests")
    try:
        assert service.url.startswith("https://")
        with Client(service.url, "plain", certificate=str(certificate)) as client:
            assert client.card()["name"] == "plain"
        with Client(service.url, "plain", retries=0) as client, pytest.raises(httpx.ConnectError):
            client.card()
        httpx.get(f"{service.url}/models/none", headers={"x-request-id": 'x"1'}, verify=trusted)
        service.wait_for("/models/none")
    finally:
        service.kill_all()
    # The log is JSON from the first line of the server on, and quotes are no way out of it.
    begin = next(at for at, line in enumerate(service.log) if line.startswith("{"))
    lines = [json.loads(line) for line in service.log[begin:]]
    (asked,) = [line for line in lines if line.get("path") == "/models/none"]
    assert (asked["request"], asked["status"], asked["method"]) == ('x"1', 404, "GET")


def test_the_two_clients_have_the_same_methods():
    def methods(cls):
        found = inspect.getmembers(cls, inspect.isfunction)
        return {name: inspect.signature(each) for name, each in found if not name.startswith("__")}

    assert methods(Client) == methods(AsyncClient)
    assert rankad.Client is Client


def answer_of(n):
    sink = pa.BufferOutputStream()
    frame = pl.DataFrame({"p_value": [0.5] * n, "score": [0.0] * n, "alarm": [False] * n}).to_arrow()
    with pa.ipc.new_stream(sink, frame.schema) as writer:
        writer.write_table(frame)
    return httpx.Response(200, content=sink.getvalue().to_pybytes())


def test_a_busy_service_is_asked_again(client_of):
    outcomes = iter([httpx.Response(503), httpx.ConnectError("gone"), None])

    def handle(request):
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome or answer_of(1)

    with client_of("http://x", "pump", transport=httpx.MockTransport(handle)) as client:
        assert client.p_values({"flow": [1.0]}).tolist() == [0.5]
    assert next(outcomes, "all were asked") == "all were asked"


@pytest.mark.parametrize("retries", [0, 2])
def test_it_is_not_asked_for_ever(client_of, retries):
    asked = []

    def handle(request):
        asked.append(request)
        return httpx.Response(503, text="?")

    transport = httpx.MockTransport(handle)
    client = client_of("http://x", "pump", retries=retries, transport=transport)
    with client, pytest.raises(ServiceError, match="503"):
        client.card()
    assert len(asked) == retries + 1


def test_a_service_that_is_not_there_is_named(client_of):
    def handle(request):
        raise httpx.ConnectError("connection refused")

    transport = httpx.MockTransport(handle)
    client = client_of("http://x:80/", "pump", retries=0, transport=transport)
    said = r"no answer from http://x\S* \(connection refused\)\. Is rankad serve running there"
    with client, pytest.raises(httpx.ConnectError, match=said):
        client.card()


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_url_says_how_it_begins(kind):
    with pytest.raises(ValueError, match=r"url must begin with http:// or https://, .*; got 'x:8000'"):
        kind("x:8000", "pump")


def test_what_is_wrong_is_not_asked_again(client_of):
    asked = []

    def handle(request):
        asked.append(request)
        return httpx.Response(422, json={"error": {"code": "rows", "message": "no column 'flow'"}})

    client = client_of("http://x", "pump", transport=httpx.MockTransport(handle))
    with client, pytest.raises(ServiceError, match="no column 'flow'"):
        client.card()
    assert len(asked) == 1


def test_large_tables_are_sent_a_few_requests_at_a_time():
    under_way, most = 0, 0

    async def handle(request):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        n = pa.ipc.open_stream(request.content).read_all().num_rows
        return answer_of(n)

    async def ask():
        client = AsyncClient("http://x", "pump", batch_rows=10, transport=httpx.MockTransport(handle))
        async with client:
            return await client.p_values({"flow": [1.0] * 195})

    assert asyncio.run(ask()).size == 195
    assert most == 4
