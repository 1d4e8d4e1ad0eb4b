"""Text in other encodings: detected by its mark, read as asked for, or an error that says what to ask for."""

import gzip
import io
import os
import subprocess
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli_cases import ENVIRONMENT, SCRIPT, call
from rankad import KLPE, TableDetector
from rankad.io.table_files import TableError, open_table

TEXT = "name,größe\nÅsa,1.5\nJosé,2.5\n“é”,3\n"
ROWS = [("Åsa", "1.5"), ("José", "2.5"), ("“é”", "3")]
LATIN = TEXT.replace("“", "'").replace("”", "'")
LATIN_ROWS = [*ROWS[:2], ("'é'", "3")]


def read(path, **options):
    with open_table(path, **options) as table:
        return table.columns, [row for frame in table for row in frame.rows()]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("batch_bytes", [64, 1 << 20])
def test_text_that_says_what_it_is_is_read(tmp_path, encoding, pack, batch_bytes):
    path = tmp_path / "t.csv"
    path.write_bytes(pack(TEXT.encode(encoding)))
    assert read(path, batch_bytes=batch_bytes) == (["name", "größe"], ROWS)
    if encoding in ("utf-16", "utf-32"):
        path.write_bytes(pack(f"\ufeff{TEXT}".encode(f"{encoding}-be")))
        assert read(path, batch_bytes=batch_bytes) == (["name", "größe"], ROWS)


@pytest.mark.parametrize(
    ("encoding", "text", "rows"),
    [
        ("latin-1", LATIN, LATIN_ROWS),
        ("cp1252", TEXT, ROWS),
        ("utf-16-le", TEXT, ROWS),
        ("utf-16-be", TEXT, ROWS),
        ("UTF-8", TEXT, ROWS),
        ("mac-roman", TEXT, ROWS),
    ],
)
def test_text_is_read_as_asked_for(tmp_path, encoding, text, rows):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    assert read(path, encoding=encoding) == (["name", "größe"], rows)
    assert read(path, encoding=encoding, batch_bytes=64)[1] == rows


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_json_too(tmp_path, encoding):
    path = tmp_path / "t.jsonl"
    path.write_bytes('{"größe": "é"}\n{"größe": "ü"}\n'.encode(encoding))
    asked = None if encoding == "utf-16" else encoding
    assert read(path, encoding=asked) == (["größe"], [("é",), ("ü",)])
    path.write_bytes('[{"größe": "é"},\n {"größe": "ü"}]\n'.encode(encoding))
    assert read(path, encoding=asked) == (["größe"], [("é",), ("ü",)])


def test_all_of_a_large_file_is_read_whatever_the_pieces(tmp_path):
    # Characters of one to four bytes, so that pieces end within some of them.
    lines = [f"{i},{'aé€😀'[i % 4] * (i % 7)}" for i in range(60_000)]
    path = tmp_path / "t.csv"
    path.write_bytes(("i,text\n" + "\n".join(lines) + "\n").encode("utf-16"))
    _, rows = read(path)
    assert [f"{i},{text or ''}" for i, text in rows] == lines


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (
            b"a,b\n1,2\n3,n\xe9\n",
            {},
            r"line 3: byte 0xe9 is not UTF-8 text; give --encoding latin-1 if .* 'é'",
        ),
        (b"a,b\n1,2\n3,\x80\n", {}, r"line 3: byte 0x80 is not UTF-8 text; give --encoding cp1252 if .* '€'"),
        (b"n\xe9,b\n1,2\n", {}, r"line 1: byte 0xe9 in the column names .*; give --encoding latin-1"),
        (b"a,b\n1,2\n3,\x81\n", {}, r"line 3: byte 0x81 is not UTF-8 text; give --encoding cp1252\."),
        (b"a,b\n1,2\n3,\x81\n", {"encoding": "cp1252"}, r"line 3: byte 0x81 is not cp1252 text\. Give"),
        (b"a,b\n1,2\n3,n\xe9\n", {"encoding": "ascii"}, r"line 3: byte 0xe9 is not ascii text\. Give"),
        ("a,b\n1,2\n".encode("utf-16-le"), {}, r"line 1: a NUL byte.*--encoding utf-16-le"),
        (
            b"\xff\xfe" + "a,b\n1,2\n".encode("utf-16-le") + b"\x31",
            {},
            r"line 3: the file is cut off: it ends in the middle",
        ),
        (b"\xff\xfea\0\n\0\x00\xd8x\0\n\0", {}, r"line 2: byte 0x00 is not utf-16-le text"),
        (b"a\n1\n", {"encoding": "klingon"}, r"encoding must be a text encoding .*; got 'klingon'"),
        (b"a\n1\n", {"encoding": "zlib"}, r"encoding must be a text encoding"),
        (b"a\n1\n", {"encoding": "unicode_escape"}, r"encoding must be a text encoding"),
        (b"a\n1\n", {"encoding": "la\0tin"}, r"encoding must be a text encoding"),
        (b"a\n1\n", {"format": "npy", "encoding": "latin-1"}, "read as npy, which has no encoding"),
        (b"a\n1\n", {"sheet": "x"}, "read as csv, which has no sheets; leave out --sheet"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(tmp_path, data, options, said):
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(TableError, match=said) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value) or "encoding must be" in str(caught.value)


def test_nothing_is_taken_for_latin_1_unasked(tmp_path):
    """Every byte is a letter there: Cyrillic text would be read without an error, and wrongly."""
    path = tmp_path / "t.csv"
    path.write_bytes("имя\nЖЖ\n".encode("cp1251"))
    with pytest.raises(TableError, match="is not UTF-8 text"):
        read(path)


def test_standard_input_and_pipes(tmp_path, monkeypatch):
    data = TEXT.encode("utf-16")

    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(data))

    monkeypatch.setattr("sys.stdin", Stdin())
    assert read("-") == (["name", "größe"], ROWS)
    assert not Stdin.buffer.closed
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: Path(pipe).write_bytes(data))
    writer.start()
    assert read(pipe)[1] == ROWS
    writer.join()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"größe": rng.normal(size=80), "ort": rng.choice(["Köln", "Łódź"], size=80)})
    path = tmp_path_factory.mktemp("models") / "m.rankad"
    TableDetector(KLPE(0.1)).fit(frame).save(path)
    return path


@pytest.mark.parametrize("encoding", ["utf-16", "iso8859-2"])
def test_scores_come_out_in_utf_8_whatever_came_in(capsys, tmp_path, model, encoding):
    text = "größe;ort\n0.5;Köln\n1e9;Łódź\n"
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_bytes(text.encode(encoding))
    asked = [] if encoding == "utf-16" else ["--encoding", encoding]
    said = call(capsys, "score", path, "--model", model, "--out", out, *asked)
    assert said.status == 0, said.err
    lines = out.read_bytes().decode("utf-8").splitlines()
    assert lines[0] == "größe;ort;p_value;score;alarm"
    assert [line.split(";")[:2] for line in lines[1:]] == [["0.5", "Köln"], ["1e9", "Łódź"]]
    assert [line.split(";")[-1] for line in lines[1:]] == ["false", "true"]
    for command in (
        ["explain"],
        ["report", "--out", tmp_path / "r.html"],
        ["calibrate", "--out", tmp_path / "m"],
    ):
        said = call(capsys, command[0], path, "--model", model, *command[1:], *asked)
        assert said.status == (1 if command == ["explain"] else 0), said.err


def test_a_run_that_was_interrupted_goes_on(tmp_path, model, capsys):
    text = "größe,ort\n" + "".join(f"{i % 7},Köln\n" for i in range(400_000))
    path, whole, out = tmp_path / "t.csv", tmp_path / "whole.csv", tmp_path / "o.csv"
    path.write_bytes(text.encode("utf-16"))
    call(capsys, "score", path, "--model", model, "--out", whole)
    with open_table(path, batch_bytes=1 << 20) as table:
        next(table)
        position, before = table.position, table.rows
    with open_table(path, start=position, batch_bytes=1 << 20) as table:
        assert table.rows == before
        assert sum(frame.height for frame in table) == 400_000 - before
    for _ in range(2):
        # The second run has nothing to continue, and starts over.
        said = call(capsys, "score", path, "--model", model, "--out", out, "--resume")
        assert said.status == 0, said.err
        assert out.read_bytes() == whole.read_bytes()


def test_the_command_says_in_one_line_what_to_give(tmp_path, model):
    path = tmp_path / "t.csv"
    path.write_bytes("größe,ort\n1,Köln\n".encode("latin-1"))
    done = subprocess.run(
        [*SCRIPT, "score", path, "--model", model, "--out", tmp_path / "o.csv"],
        capture_output=True, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "line 1: byte 0xf6 in the column names is not UTF-8 text; give --encoding latin-1" in done.stderr
    assert not (tmp_path / "o.csv").exists()
