"""Arrays of JSON objects: the rows that JSON lines of the same objects give, in bounded memory."""

import gzip
import io
import json
import re
import tracemalloc

import numpy as np
import polars as pl
import pytest

from cli_cases import call
from rankad import KLPE, TableDetector
from rankad.io.json_arrays import ArrayLines
from rankad.io.table_files import TableError, open_table

OBJECTS = [
    {"a": 1, "b": "x"},
    {"a": 2.5, "b": 'quo"te, [brackets] {braces} \\'},
    {"a": None, "b": 'new\nline, \\\\ and \\" é 😀'},
    {"a": -1e-7, "b": ""},
    {"b": "only"},
]


def read(path, **options):
    with open_table(path, **options) as table:
        return table.columns, [row for frame in table for row in frame.rows()]


def written(objects, style):
    if style == "lines of objects":
        return "[\n" + ",\n".join(map(json.dumps, objects)) + "\n]\n"
    indent, ascii = (2, True) if style == "pretty" else (None, style == "compact")
    separators = (",", ":") if style == "compact" else None
    return json.dumps(objects, indent=indent, ensure_ascii=ascii, separators=separators)


@pytest.mark.parametrize("style", ["pretty", "compact", "plain", "lines of objects"])
@pytest.mark.parametrize("name", ["t.json", "t.jsonl", "t.txt", "t.json.gz"])
def test_rows_are_those_of_json_lines(tmp_path, style, name):
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps(each) + "\n" for each in OBJECTS))
    path = tmp_path / name
    data = written(OBJECTS, style).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert read(path) == read(lines)
    for lead in (b"\xef\xbb\xbf", b" \r\n\t"):
        path.write_bytes(lead + data)
        assert read(path) == read(lines)


def test_pieces_may_end_anywhere():
    """An oracle of its own: Python's parser reads the lines, and they are as long as the array was."""
    rng = np.random.default_rng(0)
    for style in ("pretty", "compact", "plain"):
        data = written(OBJECTS * 3, style).encode()
        for size in [*range(1, 12), *rng.integers(12, len(data), 10)]:
            lines = ArrayLines("t")
            out = b"".join(lines.feed(data[at : at + size]) for at in range(0, len(data), size)) + lines.feed(
                b""
            )
            assert len(out) == len(data)
            assert [json.loads(line) for line in out.split(b"\n")] == OBJECTS * 3


def test_an_array_may_be_larger_than_memory_allows(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"a": i, "text": "x" * 100} for i in range(120_000)], indent=1))
    tracemalloc.start()
    with open_table(path, batch_bytes=1 << 20) as table:
        n = sum(frame.height for frame in table)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n == 120_000
    assert path.stat().st_size > 16e6
    assert most < 12e6


def test_a_reader_goes_on_where_another_was(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"a": i} for i in range(1000)], indent=1))
    with open_table(path, batch_bytes=1000) as table:
        head = [next(table) for _ in range(3)]
        position = json.loads(json.dumps(table.position))
    with open_table(path, batch_bytes=1000, start=position) as table:
        rest = list(table)
    assert pl.concat([*head, *rest])["a"].to_list() == list(range(1000))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "holds an empty JSON array"),
        (" [ ] \n", "holds an empty JSON array"),
        ('[{"a": 1}', "is cut off: its JSON array is never closed"),
        ('[{"a": "x', "is cut off"),
        ('[{"a": 1}, {"a": 2}] [{"a": 3}]', "there is text after the end of the JSON array"),
        ('[{"a": 1}]\n{"a": 3}', "there is text after the end"),
        ("[1, 2, 3]", r"row 1: a int where an object such as .* is expected\. Correct or remove the row"),
        ('[{"a": 1}, [2]]', r"row 2: a list where an object"),
        ('[{"a": 1},\n {"a": 2} {"a": 3}]', r"row 2: not JSON \(Extra data"),
        ('[{"a": 1},\n {"a": NaN}]', r"row 2: not JSON \(NaN is not JSON"),
        ('[{"a": 1}, {"a": 1], {"a": 2}]', "row 2: not JSON|more behind"),
        ('[{"a": "raw\nnewline"}]', "row 1: not JSON"),
        ('[{"a": 1, "a": 2}]', "row 1: the key 'a' comes twice"),
        ('{\n "rows": [\n {"a": 1}]\n}', r"holds one JSON object over several lines; .* jq -c '\.rows\[\]'"),
        ('{"a":{"0":1,"1":2},"b":{"0":3,"1":4}}', r"to_json\(NAME, orient='records'\)"),
        ('{"rows": [\n {"a": 1}]\n}', r"holds one JSON object over several lines"),
        ("", "is empty"),
    ],
)
def test_other_json_is_an_error_in_one_line(tmp_path, text, said):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(TableError) as caught:
        read(path)
    assert re.search(said, str(caught.value)), str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_byte_that_is_not_utf_8_is_told_with_its_row(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(b'[{"a": "x"},\n{"a": "\xe9"}]')
    with pytest.raises(TableError, match=r"row 2: byte 0xe9 is not UTF-8 text; give --encoding latin-1"):
        read(path)


def test_json_lines_may_be_called_json(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"a": 1}\n{"a": 2}\n')
    assert read(path) == (["a"], [(1,), (2,)])


def test_from_an_array_to_scores(capsys, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    rows = [{"a": float(value), "b": "x"} for value in rng.normal(size=60)]
    path, model, out = tmp_path / "t.json", tmp_path / "m.rankad", tmp_path / "o.jsonl"
    path.write_text(json.dumps(rows, indent=2))
    detector = TableDetector(KLPE(0.1)).fit(pl.DataFrame(rows))
    detector.save(model)
    said = call(capsys, "score", path, "--model", model, "--out", out)
    assert said.status == 0, said.err
    scored = pl.read_ndjson(out)
    np.testing.assert_array_equal(scored["p_value"], detector.p_values(pl.DataFrame(rows)))
    monkeypatch.setattr(
        "sys.stdin", type("Stdin", (), {"buffer": io.BufferedReader(io.BytesIO(path.read_bytes()))})
    )
    said = call(capsys, "score", "-", "--model", model, "--quiet")
    assert said.status == 0, said.err
    assert pl.read_ndjson(said.out.encode()).equals(scored)
    said = call(capsys, "score", path, "--model", model, "--out", tmp_path / "o.json")
    assert said.status == 1
    assert "o.json cannot be written as json; formats are csv, tsv, jsonl" in said.err
