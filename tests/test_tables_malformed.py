"""Damaged, truncated and odd files: one kind of error, that says where and what to do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard

from malformed_cases import in_every_format, mutated
from rankad.io.table_files import TableError, open_table


def read(path: Path, **options: object) -> int:
    with open_table(path, **options) as table:  # type: ignore[arg-type]
        return sum(frame.height for frame in table)


BAD_CSV = {
    "empty": (b"", r"is empty; a table begins with a line of column names"),
    "blank": (b"\n\r\n\n", "is empty"),
    "short row": (b"a,b\n1,2\n3\n4,5\n", r"line 3: 1 cell where the header has 2"),
    "long row": (b"a,b\n1,2\n3,4,5\n", r"line 3: 3 cells where the header has 2"),
    "short row after lines in cells": (b'a,b\n1,"x\n\ny"\n3\n', r"line 5: 1 cell"),
    "short row after blank lines": (b"a,b\n\n\n1,2\n\n3\n", r"line 6: 1 cell"),
    "short row, quoted": (b'a,b,c\n1,2,3\n"3,4",5\n', r"line 3: .*do not fit the header's 3 columns"),
    "long row, quoted": (b'a,b,c\n1,2,3\n"3,4",5,6,7\n', r"line 3: .*\(too few or too many cells\)"),
    "latin-1 cell": (
        "a,b\n1,2\n3,né\n".encode("latin-1"),
        r"line 3: byte 0xe9 is not UTF-8 .*--encoding latin-1",
    ),
    "latin-1 header": ("a,é\n1,2\n".encode("latin-1"), r"line 1: byte 0xe9 in the column names is not UTF-8"),
    "utf-16, cut off": ("a,b\n1,2\n".encode("utf-16")[:-1], r"it ends in the middle of a character"),
    "utf-16 without mark": ("a,b\n1,2\n".encode("utf-16-le"), r"line 1: a NUL byte"),
    "NUL": (b"a,b\n1,2\n3,\0\n", r"line 3: a NUL byte"),
    "twice the same name": (b"a,b,a\n1,2,3\n", r"two columns are called 'a'"),
    "no name at the end": (b"a,b,\n1,2,\n", r"column 3 has no name.*delimiter at the end of every line"),
    "a title over columns": (b"Pumps,,\na,b,c\n1,2,3\n", r"only 1 of 3 columns have a name.*remove titles"),
    "a title": (b"Pumps\na,b,c\n1,2,3\n", r"line 2: 3 cells where the header has 1.*remove titles"),
    "a remark at the end": (b"a,b\n1,2\nSource: us\n", r"line 3: 1 cell .*remove it if it is a comment"),
    "HTML": (b"<html>\n<table>\n", r"it begins like HTML; save the table as CSV"),
    "JSON": (b'[{"a": 1}]\n', r"it begins like JSON; give the format \(--format json\)"),
    "an archive": (b"PK\x03\x04,b\n1,2\n", r"it begins like an archive"),
    "no name": (b",b\n1,2\n", r"column 1 has no name.*index=False"),
    "quote in a name": (b'a,5" pipe\n1,2\n3,4\n', r"line 1: a quote in the column names is never closed"),
    "quote in a name, and later": (b'a,5" pipe\n1,2\n3,"4"\n5,"\n', r"line 1: a quote in the column names"),
    "open quote": (b'a,b\n1,2\n3,"4\n5,6\n', r"line 3: a quote is opened here or below and never closed"),
    "open quote, long": (
        b'a,b\n1,2\n3,"4\n' + b"5,6\n" * 100_000,
        r"line 3: a row longer than .* quote never closed",
    ),
    "long field": (b"a,b\n1,2\n" + b"x" * 400_000, r"line 3: a row longer than"),
    "long header": (b"x" * 400_000, r"line 1: a row longer than"),
    "quote amid a cell": (b'a,b\n1,2\n3,"4"5\n', r"line 3: the quotes and cells"),
    "quotes amid two cells": (b'a,b\n1,x"y\n2,3\n4,y"z\n', r"line 2: the quotes and cells"),
    "old line ends": (b"a,b\r1,2\r", r"line 1: carriage returns without newlines"),
}


@pytest.mark.parametrize("name", BAD_CSV)
def test_what_is_wrong_with_a_csv_file_is_told(tmp_path: Path, name: str) -> None:
    data, message = BAD_CSV[name]
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(TableError, match=message):
        read(path, batch_bytes=300_000)


def test_the_line_is_told_deep_in_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [f'{i},"{i}\n"' if i % 7 == 0 else f"{i},x" for i in range(20_000)]
    lines[15_000] = "1"
    path.write_text("\n".join(["a,b", *lines]))
    expected = 2 + 15_000 + sum(i % 7 == 0 for i in range(15_000))
    for batch_bytes in (1000, 1 << 20):
        with pytest.raises(TableError, match=rf"line {expected}: 1 cell"):
            read(path, batch_bytes=batch_bytes)


BAD_JSON = {
    "empty": (b"", "is empty"),
    "blank": (b"\n\n", "is empty"),
    "cut off": (b'{"a": 1}\n{"a": \n', r"line 2: not JSON"),
    "an array": (b'{"a": 1}\n[1]\n', r"line 2: a list where an object"),
    "NaN": (b'{"a": 1}\n{"a": NaN}\n', r"line 2: not JSON \(NaN is not JSON; write null"),
    "latin-1": ('{"a": "é"}'.encode("latin-1"), r"line 1: byte 0xe9"),
    "no keys": (b"{}\n{}\n", "the objects have no keys"),
    "two a line": (b'{"a": 1} {"a": 2}\n', r"line 1: not JSON"),
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_what_is_wrong_with_json_lines_is_told(tmp_path: Path, name: str) -> None:
    data, message = BAD_JSON[name]
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    with pytest.raises(TableError, match=message):
        read(path)


def test_other_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="No such file"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path)
    with pytest.raises(TableError, match="format must be one of"):
        open_table(tmp_path / "t.csv", format="xlsx")
    with pytest.raises(TableError, match="delimiter must be one ASCII"):
        open_table(tmp_path / "t.csv", delimiter="ab")
    with pytest.raises(TableError, match="batch_bytes must be"):
        open_table(tmp_path / "t.csv", batch_bytes=0)
    cases: dict[str, tuple[Callable[[Path], object], str]] = {
        "e.parquet": (lambda path: path.touch(), "is empty"),
        "e.arrow": (lambda path: path.touch(), "is empty"),
        "t.parquet": (lambda path: path.write_bytes(b"no such thing"), "cannot be read as Parquet"),
        "t.arrow": (lambda path: path.write_bytes(b"ARROW1 no such thing"), "cannot be read as Arrow"),
        "s.arrow": (lambda path: path.write_bytes(b"no such thing"), "cannot be read as Arrow"),
        "o.npy": (lambda path: np.save(path, np.array([{}], dtype=object)), "holds object"),
        "c.npy": (lambda path: np.save(path, np.ones((2, 2), complex)), "holds complex128"),
        "3.npy": (lambda path: np.save(path, np.ones((2, 2, 2))), r"shape \(2, 2, 2\)"),
        "0.npy": (lambda path: np.save(path, np.array(1.0)), r"shape \(\)"),
        "n.npy": (lambda path: path.write_bytes(b"no such thing"), "NumPy array"),
        "ab.npz": (lambda path: np.savez(path, a=np.eye(2), b=np.eye(2)), "has a, b"),
        "z.npz": (lambda path: path.write_bytes(b"no such thing"), "NumPy array"),
    }
    for name, (make, message) in cases.items():
        make(tmp_path / name)
        with pytest.raises(TableError, match=message):
            read(tmp_path / name)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_compressed_files_that_are_cut_off(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    rows = "".join(f"{i},{i * i % 977}\n" for i in range(5000))
    data = compress(("a,b\n" + rows).encode())
    path = tmp_path / "t.csv"
    for end in (len(data) // 2, len(data) - 1):
        path.write_bytes(data[:end])
        with pytest.raises(TableError, match="damaged or cut off"):
            read(path)
    path.write_bytes(data)
    assert read(path) == 5000


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_line_that_decompresses_without_end_is_refused(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(compress(b"a,b\n" + b"\x20" * 50_000_000))
    with pytest.raises(TableError, match="line 2: a row longer than"):
        read(path, batch_bytes=1 << 20)


def test_positions_that_do_not_belong_to_the_file(tmp_path: Path) -> None:
    csv, lines, array = tmp_path / "t.csv", tmp_path / "t.jsonl", tmp_path / "t.npy"
    csv.write_text("a,b\n1,2\n3,4\n")
    lines.write_text('{"a": 1}\n{"a": 2}\n')
    np.save(array, np.eye(3))
    good = {"format": "csv", "rows": 1, "offset": 8, "line": 2}
    assert read(csv, start=good) == 1
    bad = [
        {},
        [],
        good | {"format": "jsonl"},
        good | {"offset": 9},
        good | {"offset": 0},
        good | {"offset": 10**12},
        good | {"offset": -1},
        good | {"rows": "1"},
        good | {"line": True},
    ]
    for start in bad:
        with pytest.raises(TableError, match=r"start must|no row that begins"):
            read(csv, start=start)
    for columns in (None, 3, ["a"], [["a", 1, 2]]):
        with pytest.raises(TableError, match="list the columns"):
            read(lines, start=good | {"format": "jsonl", "offset": 9, "columns": columns})
    with pytest.raises(TableError, match="no row 4"):
        read(array, start={"format": "npy", "rows": 4})


# --------------------------------------------------------------------- fuzz

FRAME = pl.DataFrame(
    {"a": np.arange(60), "b": np.linspace(0, 1, 60), "c": ["x", 'y "z"', "u\nv", None] * 15, "d": [True] * 60}
)


WHOLE = in_every_format(FRAME, FRAME.select("a", "b").to_numpy())


@pytest.mark.parametrize("name", WHOLE)
def test_damaged_files_end_in_one_kind_of_error(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(list(name.encode()))
    path = tmp_path / name
    path.write_bytes(WHOLE[name])
    assert read(path, batch_bytes=700) == 60
    refused = 0
    for _ in range(150):
        path.write_bytes(mutated(WHOLE[name], rng))
        try:
            with open_table(path, batch_bytes=700) as table:
                for frame in table:
                    frame.hash_rows()
                    json.dumps(table.position)
        except TableError:
            refused += 1
    assert refused > 20
