"""The Open Inference Protocol as its clients speak it: versions, binary tensors, errors, parameters."""

import json
import struct

import numpy as np
import pytest

from rankad import load
from rankad.service.app import make_app
from rankad.service.settings import Settings
from service_cases import TestClient, make_models, table_of

LENGTH = "inference-header-content-length"
ROWS = np.array([[0.0, 0.0], [9.0, 9.0], [0.5, -0.25]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def service(folder, tmp_path):
    models = folder / "pump.rankad", folder / "plain.rankad"
    with TestClient(make_app(Settings(models, history=tmp_path / "history.sqlite"))) as client:
        yield client


def tensor(**changes):
    return {
        "name": "rows",
        "shape": list(ROWS.shape),
        "datatype": "FP64",
        "data": ROWS.ravel().tolist(),
    } | changes


def infer(service, inputs=None, *, address="plain/infer", **beside):
    return service.post(f"/v2/models/{address}", json={"inputs": inputs or [tensor()], **beside})


def send_binary(service, asked, data, model="plain", length=None):
    text = json.dumps(asked).encode()
    headers = {LENGTH: str(len(text) if length is None else length)}
    return service.post(f"/v2/models/{model}/infer", content=text + data, headers=headers)


def test_the_version_that_is_told_is_served_and_no_other(service):
    (version,) = service.get("/v2/models/plain").json()["versions"]
    assert service.get(f"/v2/models/plain/versions/{version}").json()["versions"] == [version]
    assert service.get(f"/v2/models/plain/versions/{version}/ready").json()["ready"] is True
    answer = infer(service, address=f"plain/versions/{version}/infer").json()
    assert answer["model_version"] == version
    assert infer(service, address="plain/versions/1/infer").status_code == 404


@pytest.mark.parametrize(
    "path", ["/v2/models/none", "/v2/models/plain/versions/1", "/v2/nothing", "/v2/models/plain/infer"]
)
def test_errors_are_texts(service, path):
    response = service.get(path)
    assert response.status_code in (404, 405)
    assert isinstance(response.json()["error"], str)


def test_the_false_discovery_rate_is_heeded(service, folder):
    rows = np.random.default_rng(1).normal(size=(400, 2))
    rows[:20] = 40.0
    inputs = [tensor(shape=list(rows.shape), data=rows.ravel().tolist())]
    answer = infer(service, inputs, parameters={"fdr": 0.2}).json()
    # By the definition of Benjamini and Hochberg.
    p_values = load(folder / "plain.rankad").p_values(rows)
    places = np.sort(p_values)
    below = np.flatnonzero(places <= 0.2 * np.arange(1, 401) / 400)
    assert answer["outputs"][2]["data"] == (p_values <= places[below[-1]]).tolist()
    assert 20 <= sum(answer["outputs"][2]["data"]) < 400


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        ({"parameters": {"alhpa": 0.1}}, "'alhpa'"),
        ({"parameters": {"alpha": 0.1, "fdr": 0.1}}, "not both"),
        ({"parameters": {"fdr": 1}}, "fdr"),
        ({"parameters": {"fdr": None}}, "fdr must be a number"),
        ({"parameters": {"alpha": True}}, "alpha must be a number"),
        ({"parameters": {"alpha": "0.1"}}, "alpha must be a number"),
        ({"parameters": {"binary_data_output": 1}}, "true or false"),
        ({"alpha": 0.1}, "alpha"),
    ],
)
def test_what_means_nothing_is_refused(service, beside, words):
    response = infer(service, **beside)
    assert response.status_code in (400, 422)
    assert words in response.json()["error"]


def test_a_rate_in_the_address_is_refused_since_it_would_be_ignored(service):
    response = service.post("/v2/models/plain/infer?alpha=0.5", json={"inputs": [tensor()]})
    assert response.status_code == 422
    assert "'alpha'" in response.json()["error"]


def test_what_clients_of_the_protocol_say_beside_is_no_error(service):
    assert infer(service, parameters={"priority": 1, "content_type": "np"}).status_code == 200


@pytest.mark.parametrize(
    ("kind", "data", "fits"),
    [
        ("INT8", [127, -128], True),
        ("INT8", [128, 0], False),
        ("UINT8", [-1, 0], False),
        ("INT32", [1.5, 0], False),
        ("BOOL", [True, 0], True),
        ("BOOL", [2, 0], False),
    ],
)
def test_numbers_are_of_the_type_that_is_told(service, kind, data, fits):
    response = infer(service, [tensor(shape=[1, 2], datatype=kind, data=data)])
    assert response.status_code == (200 if fits else 422), response.text


@pytest.mark.parametrize("code", ["f8", "f4", "i2"])
def test_binary_tensors_have_the_answers_of_json(service, code):
    kind = {"f8": "FP64", "f4": "FP32", "i2": "INT16"}[code]
    cells = ROWS.astype(code)
    expected = infer(service, [tensor(datatype=kind, data=cells.ravel().tolist())]).json()["outputs"]
    told = tensor(datatype=kind, parameters={"binary_data_size": cells.nbytes})
    del told["data"]
    response = send_binary(service, {"inputs": [told]}, cells.tobytes())
    assert response.json()["outputs"] == expected

    asked = {"inputs": [told], "parameters": {"binary_data_output": True}}
    response = send_binary(service, asked, cells.tobytes())
    n = int(response.headers[LENGTH])
    outputs, data = json.loads(response.content[:n])["outputs"], response.content[n:]
    assert [each["parameters"]["binary_data_size"] for each in outputs] == [24, 24, 3]
    for at, each in enumerate(expected):
        assert np.frombuffer(data[24 * at :][:24], "<f8" if at < 2 else "?").tolist() == each["data"]


def test_one_output_can_be_binary(service):
    outputs = [{"name": "alarm", "parameters": {"binary_data": True}}, {"name": "score"}]
    response = infer(service, outputs=outputs)
    n = int(response.headers[LENGTH])
    told = json.loads(response.content[:n])["outputs"]
    assert ["data" in each for each in told] == [False, True]
    assert response.content[n:] == b"\0\1\0"


def test_binary_texts(service, folder):
    new = table_of(20, 1)
    words = b"".join(struct.pack("<I", len(word)) + word.encode() for word in new["mode"])
    flow = new["flow"].to_numpy().tobytes()
    inputs = [
        {
            "name": "mode",
            "shape": [20],
            "datatype": "BYTES",
            "parameters": {"binary_data_size": len(words)},
        },
        {"name": "flow", "shape": [20], "datatype": "FP64", "parameters": {"binary_data_size": len(flow)}},
    ]
    answer = send_binary(service, {"inputs": inputs}, words + flow, "pump").json()
    assert answer["outputs"][0]["data"] == load(folder / "pump.rankad").p_values(new).tolist()


BINARY = {"name": "rows", "shape": [3, 2], "datatype": "FP64"}


@pytest.mark.parametrize(
    ("told", "data", "length"),
    [
        (BINARY, ROWS.tobytes(), None),
        (BINARY | {"parameters": {"binary_data_size": 48}}, ROWS.tobytes()[:-1], None),
        (BINARY | {"parameters": {"binary_data_size": 48}}, ROWS.tobytes() + b"x", None),
        (BINARY | {"parameters": {"binary_data_size": 40}}, ROWS.tobytes()[:40], None),
        (BINARY | {"parameters": {"binary_data_size": 47}}, ROWS.tobytes()[:47], None),
        (BINARY | {"parameters": {"binary_data_size": -1}}, b"", None),
        (BINARY | {"parameters": {"binary_data_size": True}}, b"x", None),
        (BINARY | {"parameters": {"binary_data_size": "48"}}, ROWS.tobytes(), None),
        (tensor(parameters={"binary_data_size": 48}), ROWS.tobytes(), None),
        (BINARY | {"datatype": "BYTES", "parameters": {"binary_data_size": 5}}, b"\xff" * 5, None),
        (BINARY | {"datatype": "BYTES", "parameters": {"binary_data_size": 5}}, b"\1\0\0\0\xff", None),
        (BINARY, b"", 10**6),
        (BINARY, b"", "1e3"),
        (BINARY, b"", "-1"),
    ],
)
def test_binary_data_that_lies_is_refused(service, told, data, length):
    response = send_binary(service, {"inputs": [told]}, data, length=length)
    assert response.status_code in (400, 422), response.text
    assert isinstance(response.json()["error"], str)
