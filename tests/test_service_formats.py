"""Bodies of requests that were made to harm, or whose rows could lend one another their types."""

import io
import itertools
import json
import struct
import time
import tracemalloc

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from rankad import TableDetector
from rankad.service.app import make_app
from rankad.service.arrow_sizes import unpacked_bytes
from rankad.service.formats import ARROW
from rankad.service.settings import Settings
from service_cases import TestClient, make_models, quick

ARROW_TYPE = {"content-type": ARROW}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = make_models(tmp_path_factory.mktemp("models"))
    # Codes are categories, which digits with a fraction would not be.
    rng = np.random.default_rng(0)
    codes = {"flow": rng.normal(5, 1, 300), "code": rng.choice([1.0, 404.0, 7000.0], 300)}
    TableDetector(quick(), categories=["code"]).fit(codes).save(folder / "codes.rankad")
    return folder


@pytest.fixture(scope="module")
def service(folder):
    settings = Settings(
        tuple(folder / f"{name}.rankad" for name in ("pump", "plain", "codes")), most_bytes=1_000_000
    )
    with TestClient(make_app(settings)) as client:
        yield client


def stream_of(table, **options):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_what_compressed_arrow_unpacks_to(compression):
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "a": rng.normal(size=5_000),
            "b": ["x" * 50] * 5_000,
            "c": pa.array(["word"] * 5_000).dictionary_encode(),
        }
    )
    # What it unpacks to is what it has uncompressed, but for buffers that were left as they are.
    plain = stream_of(table)
    packed = stream_of(table, compression=compression)
    assert unpacked_bytes(plain) == 0
    assert len(packed) < len(plain)
    assert table.nbytes * 0.5 < unpacked_bytes(packed) <= table.nbytes * 1.01


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("place", ["column", "dictionary", "second batch", "before the stream is cut"])
def test_an_arrow_bomb_is_refused_before_it_unpacks(service, compression, place):
    zeros = pa.array(np.zeros(4_000_000))
    if place == "dictionary":
        words = pa.array(["x" * 30_000_000])
        zeros = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10, np.int8)), words)
    table = pa.table({"flow": zeros})
    if place == "second batch":
        table = pa.concat_tables([pa.table({"flow": [1.0]}), table])
    body = stream_of(table, compression=compression)
    if place == "before the stream is cut":
        body = body[:-9]
    assert len(body) < 500_000
    before = pa.total_allocated_bytes()
    response = service.post("/models/pump/score", content=body, headers=ARROW_TYPE)
    assert response.status_code == (400 if place == "before the stream is cut" else 413), response.text
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_compressed_arrow_within_the_limit_is_read(service):
    table = pa.table({"flow": [5.0, 99.0] * 500, "mode": ["eco"] * 1_000})
    body = stream_of(table, compression="zstd")
    answer = service.post(
        "/models/pump/score", content=body, headers=ARROW_TYPE | {"accept": "application/json"}
    )
    assert answer.json()["alarm"] == [False, True] * 500


def test_any_changed_byte_of_compressed_arrow_is_answered(service):
    """Whatever the lengths say, the answer is no crash and no 5xx."""
    body = stream_of(pa.table({"flow": [5.0] * 100, "mode": ["eco"] * 100}), compression="zstd")
    rng = np.random.default_rng(0)
    for at in rng.choice(len(body), 150, replace=False):
        changed = body[:at] + bytes([int(rng.integers(256))]) + body[at + 1 :]
        assert service.post("/models/pump/score", content=changed, headers=ARROW_TYPE).status_code < 500


def test_a_length_that_lies_is_refused(service):
    body = bytearray(stream_of(pa.table({"flow": np.zeros(10_000)}), compression="zstd"))
    at = body.index(struct.pack("<q", 80_000))
    body[at : at + 8] = struct.pack("<q", 100_000)
    assert service.post("/models/plain/score", content=bytes(body), headers=ARROW_TYPE).status_code == 400


def test_rows_without_cells_are_counted(service):
    """A column of nothing has no bytes, however long it is."""
    body = stream_of(pa.table({"flow": pa.nulls(2_000_000)}))
    assert len(body) < 1_000
    assert service.post("/models/pump/score", content=body, headers=ARROW_TYPE).status_code == 413


def viewed(word, n):
    """Return n views of one word, as a column."""
    view = struct.pack("<i4sii", len(word), word[:4], 0, 0)
    return pa.Array.from_buffers(pa.string_view(), n, [None, pa.py_buffer(view * n), pa.py_buffer(word)])


SHARED = {
    "dictionary": lambda word, n: pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(n, np.int8)), pa.array([word.decode()])
    ),
    "dictionary of views": lambda word, n: pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(n, np.int8)), viewed(word, 1)
    ),
    "views": viewed,
    "runs": lambda word, n: pa.RunEndEncodedArray.from_arrays(pa.array([n]), pa.array([word.decode()])),
    "in objects": lambda word, n: pa.StructArray.from_arrays([viewed(word, n)], ["a"]),
    "in lists": lambda word, n: pa.FixedSizeListArray.from_arrays(viewed(word, n), 1),
}


@pytest.mark.parametrize("how", SHARED)
def test_a_text_that_many_cells_share_is_counted_for_each(service, how):
    column = SHARED[how](b"x" * 10_000, 2_000)
    body = stream_of(pa.table({"flow": np.ones(2_000), "mode": column}))
    assert len(body) < 100_000
    response = service.post("/models/pump/score", content=body, headers=ARROW_TYPE)
    assert response.status_code == 413, response.text
    assert "send at most" in response.json()["error"]["message"]


@pytest.mark.parametrize("how", ["dictionary", "views", "runs"])
def test_shared_texts_within_the_limit_have_the_answers_of_plain_ones(service, how):
    flow = np.random.default_rng(0).normal(5, 1, 50)
    columns = {"plain": pa.array(["eco"] * 50), how: SHARED[how](b"eco", 50)}
    answers = [
        service.post(
            "/models/pump/score",
            content=stream_of(pa.table({"flow": flow, "mode": mode})),
            headers=ARROW_TYPE,
        )
        for mode in columns.values()
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


N_WIDE = 60_000
WIDE = {
    "text/csv": ",".join(f"c{at}" for at in range(N_WIDE)).encode() + b"\n",
    "application/json": json.dumps([{f"c{at}": 1 for at in range(N_WIDE)}]).encode(),
    "application/x-ndjson": json.dumps({f"c{at}": 1 for at in range(N_WIDE)}).encode(),
    ARROW: stream_of(pa.table({f"c{at}": [1] for at in range(12_000)})),
}


@pytest.mark.parametrize("kind", WIDE)
def test_a_table_of_very_many_columns_is_refused_at_once(folder, kind):
    with TestClient(make_app(Settings((folder / "pump.rankad",)))) as client:
        begun = time.monotonic()
        response = client.post("/models/pump/score", content=WIDE[kind], headers={"content-type": kind})
        assert response.status_code == 413, response.text
        assert response.json()["error"]["code"] == "too_many_columns"
        # A minute, where each name is compared with each.
        assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * 1_500_000 + b"[]]",
        b"[" + b"{}," * 1_500_000 + b"{}]",
        b'{"columns": {"flow": [' + b"[]," * 1_500_000 + b"[]]}}",
    ],
    ids=["lists", "objects", "cells"],
)
def test_more_lists_and_objects_than_rows_are_refused_before_they_are_made(folder, body):
    with TestClient(make_app(Settings((folder / "pump.rankad",)))) as client:
        tracemalloc.start()
        try:
            response = client.post(
                "/models/pump/score", content=body, headers={"content-type": "application/json"}
            )
            assert response.status_code == 413, response.text
            assert tracemalloc.get_traced_memory()[1] < 8 * len(body)
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    "word", ["[" * 700_000, '\\"[' * 700_000, "{" * 700_000], ids=["brackets", "quotes", "braces"]
)
def test_brackets_in_texts_are_no_rows(folder, word):
    rows = [{"flow": 5.0, "mode": word}] * 2
    with TestClient(make_app(Settings((folder / "pump.rankad",)))) as client:
        assert client.post("/models/pump/score", json=rows).status_code == 200


def test_a_name_in_quotes_may_have_separators_in_it(tmp_path):
    rng = np.random.default_rng(0)
    name = "flow; m3/h; mean"
    TableDetector(quick()).fit({name: rng.normal(size=200), "x": rng.normal(size=200)}).save(
        tmp_path / "odd.rankad"
    )
    with TestClient(make_app(Settings((tmp_path / "odd.rankad",)))) as client:
        body = f'"{name}",x\n0.1,0.2\n9.0,9.0\n'
        headers = {"content-type": "text/csv", "accept": "application/json"}
        answer = client.post("/models/odd/score", content=body.encode(), headers=headers)
    assert answer.json()["alarm"] == [False, True]


ROWS = [
    {"flow": 5.0, "code": 1},
    {"flow": "oops", "code": 404},
    {"flow": 5, "code": 1.0},
    {"flow": None, "code": "1"},
    {"flow": 4.5, "code": True},
    {"flow": "5.0", "code": None},
    {"flow": True, "code": 7000.0},
    {"flow": 2**60, "code": 404.5},
    {"flow": 99.0, "code": 2**60},
]


def test_a_row_has_the_answer_it_has_alone_whatever_stands_beside_it(service):
    url = "/models/codes/score"
    alone = [service.post(url, json=[row]).json()["score"][0] for row in ROWS]
    # Some differ, or else nothing is tested.
    assert len(set(alone)) >= 3
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(ROWS)) for _ in range(10)] + list(
        itertools.combinations(range(len(ROWS)), 2)
    )
    for order in orders:
        rows = [ROWS[at] for at in order]
        expected = [alone[at] for at in order]
        columns = {name: [row[name] for row in rows] for name in ("flow", "code")}
        bodies = [rows, {"rows": rows}, {"columns": columns}]
        assert [service.post(url, json=body).json()["score"] for body in bodies] == [expected] * 3
        tensors = [
            {"name": name, "datatype": "BYTES", "shape": [len(rows)], "data": columns[name]}
            for name in columns
        ]
        outputs = service.post("/v2/models/codes/infer", json={"inputs": tensors}).json()["outputs"]
        assert outputs[1]["data"] == expected


def test_reasons_of_rows_of_other_types_are_in_their_order(service):
    rows = [{"flow": 99.0, "code": 1}, {"flow": "oops", "code": 1}, {"flow": 5.0, "code": "new"}]
    url = "/models/codes/explain"
    alone = [service.post(url, json=[row]).json()["rows"][0] for row in rows]
    assert service.post(url, json=rows).json()["rows"] == alone
    assert [row["reasons"][0]["column"] for row in alone] == ["flow", "flow", "code"]


def test_too_many_mixtures_are_refused(service):
    rng = np.random.default_rng(0)
    cells = np.array([1, "x", True], dtype=object)
    columns = {f"c{at}": rng.choice(cells, 2_000).tolist() for at in range(12)}
    response = service.post("/models/pump/score", json={"columns": columns})
    assert response.status_code == 422
    assert "mix numbers, text and booleans" in response.json()["error"]["message"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("header", ["flow,mode", "\ufeffflow,mode"])
def test_blank_lines_of_csv_are_no_rows(service, header, end):
    lines = [header, "", "5,eco", "", "", "99,eco", '"5",eco', ""]
    response = service.post(
        "/models/pump/score",
        content=end.join(lines).encode(),
        headers={"content-type": "text/csv", "accept": "application/json"},
    )
    assert response.json()["alarm"] == [False, True, False]


def test_blank_lines_before_the_header_are_skipped(service):
    body = b"\n\r\nflow,mode\n5,eco\n"
    response = service.post("/models/pump/score", content=body, headers={"content-type": "text/csv"})
    assert response.status_code == 200
    assert pl.read_csv(response.content).height == 1


def test_a_blank_line_in_a_table_of_one_column_is_a_missing_value(tmp_path):
    """As in the command."""
    rng = np.random.default_rng(0)
    TableDetector(quick()).fit({"flow": rng.normal(size=200)}).save(tmp_path / "one.rankad")
    with TestClient(make_app(Settings((tmp_path / "one.rankad",)))) as client:
        headers = {"content-type": "text/csv", "accept": "application/json"}
        answer = client.post("/models/one/score", content=b"flow\n0.1\n\n0.2\n", headers=headers)
    assert answer.json()["alarm"] == [False, True, False]


def test_what_is_refused_takes_little_memory(service):
    body = b'{"columns": {"flow": [' + b"1," * 400_000 + b"1]}}"
    tracemalloc.start()
    try:
        assert service.post("/models/pump/score", content=body * 2).status_code == 413
        assert tracemalloc.get_traced_memory()[1] < 10 * len(body)
    finally:
        tracemalloc.stop()
