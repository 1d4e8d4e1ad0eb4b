"""Reading tables batch by batch: the cells that other libraries read, in any format, from any position."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import zstandard
from polars.testing import assert_frame_equal

from rankad.io.numbers import MISSING, read_numbers
from rankad.io.reader import ReadAhead
from rankad.io.table_files import TableError, as_numbers, file_identity, open_table

TRICKY = ["plain", 'say "hi"', "two\nlines", "a,b;c", "", "é", "  blanks ", "tab\there", "\n\n", '"']


def whole(path: Path | str, **options: object) -> pl.DataFrame:
    with open_table(path, **options) as table:  # type: ignore[arg-type]
        frames = list(table)
    return pl.concat(frames, how="vertical_relaxed")


def tricky_rows(n: int = 200) -> list[list[str]]:
    rng = np.random.default_rng(7)
    return [
        [str(i), str(rng.choice(TRICKY)), f"{rng.normal():.6g}", str(rng.choice(TRICKY))] for i in range(n)
    ]


def csv_text(rows: list[list[str]], **style: object) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, **style).writerows([["id", "note", "x", "last"], *rows])  # type: ignore[arg-type]
    return out.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("lineterminator", ["\n", "\r\n"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_csv_has_the_cells_that_the_standard_library_reads(
    tmp_path: Path, delimiter: str, lineterminator: str, quoting: int
) -> None:
    text = csv_text(tricky_rows(), delimiter=delimiter, lineterminator=lineterminator, quoting=quoting)
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    header, *expected = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    for batch_bytes in (64, 100, 1 << 20):
        frame = whole(path, batch_bytes=batch_bytes)
        assert frame.columns == header
        assert [[cell or "" for cell in row] for row in frame.rows()] == expected
        assert frame.dtypes == [pl.String] * 4


def test_csv_cells_are_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n007,1.50\n 1e3 ,\n-0,NA\n")
    assert whole(path).rows() == [("007", "1.50"), (" 1e3 ", None), ("-0", "NA")]


# Numbers as people write them, and what is none.
WRITTEN = [
    *("1", "+1", "-1", "007", "1.", ".5", "-.5", "1e5", "1E+5", "1e400", "-1e400", "1e-400", "4.9e-324"),
    *("-0", "9007199254740993", "2.2250738585072011e-308", "1" * 400, "0." + "3" * 400, "inf", "-Infinity"),
    *("", "  ", " 1", "1 ", "nan", "NaN", "-nan", "NA", "null", "1_000", "0x10", "1d5", "1,5", "--1", "x"),
]


@pytest.mark.parametrize("cell", WRITTEN)
def test_numbers_read_at_once_are_those_of_the_text(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f"id;x\na;{cell}\nb;0.1\n".encode())
    with open_table(path, delimiter=";") as table:
        table.numbers = ["x"]
        (found,) = table
    text = whole(path, delimiter=";")
    assert table.lines == path.read_bytes()[5:]
    if cell in ("1_000", "0x10", "1d5", "1,5", "--1", "x"):
        assert_frame_equal(found, text)
    else:
        expected = read_numbers(text["x"])
        assert np.isnan(expected[0]) == (cell.strip().lower() in {*MISSING, "-nan"})
        assert read_numbers(found["x"]).tobytes() == expected.tobytes()


def test_numbers_read_at_once_are_those_of_the_standard_library_to_the_last_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(-(2**63), 2**63, 20_000).view(np.float64)
    words = [repr(value) for value in values[np.isfinite(values)].tolist()]
    words += [f"{value:.{digits}f}" for digits in range(60) for value in rng.normal(0, 1e3, 50)]
    (tmp_path / "t.csv").write_text("\n".join(["id,x", *(f"a,{word}" for word in words), ""]))
    with open_table(tmp_path / "t.csv", batch_bytes=10_000) as table:
        table.numbers = ["x"]
        found = pl.concat(list(table))
    assert found.dtypes == [pl.String, pl.Float64]
    assert found["x"].to_numpy().tobytes() == np.array([float(word) for word in words]).tobytes()


def test_lines_are_there_where_each_is_a_row_and_numbers_come_only_with_them(tmp_path: Path) -> None:
    rows = [f"{at},{at}.5\r\n" for at in range(40)]
    rows[11] = '"11",11.5\r\n'
    rows[25] = "25,NA\r\n"
    (tmp_path / "t.csv").write_bytes("".join(["id,x\r\n", *rows]).encode())
    with open_table(tmp_path / "t.csv", batch_bytes=64) as table:
        table.numbers = ["x"]
        steps = [(frame, table.lines) for frame in table]
    at = 0
    for frame, lines in steps:
        part = "".join(rows[at : at + frame.height])
        assert lines == (None if '"' in part else part.encode())
        before = at + frame.height <= 25
        assert frame["x"].dtype == (pl.Float64 if lines and before else pl.String)
        at += frame.height
    assert at == 40
    kinds = [frame["x"].dtype for frame, _ in steps]
    assert kinds.count(pl.Float64) >= 2
    assert kinds[-1] == pl.String


@pytest.mark.parametrize("cell", ["a\rb", "a\r", "\ra"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_lines_with_a_carriage_return_inside_are_no_lines_to_copy(
    tmp_path: Path, cell: str, ends: str
) -> None:
    (tmp_path / "t.csv").write_bytes(f"id,x{ends}{cell},1.50{ends}b,2{ends}".encode())
    with open_table(tmp_path / "t.csv") as table:
        table.numbers = ["x"]
        (frame,) = table
    assert table.lines is None
    assert frame["x"].to_list() == ["1.50", "2"]


@pytest.mark.parametrize("row", ["1", "1,2,3", "1,2\n\n1"])
def test_rows_with_other_numbers_of_cells_are_found_among_numbers_too(tmp_path: Path, row: str) -> None:
    (tmp_path / "t.csv").write_text(f"id,x\n1,2\n{row}\n1,2\n")
    with open_table(tmp_path / "t.csv") as table:
        table.numbers = ["x"]
        with pytest.raises(TableError, match=r"line [35]: \d cells? where the header has 2"):
            list(table)


@pytest.mark.parametrize("row", [11_000, 11_002, 4_000])
def test_very_wide_rows_have_their_cells_and_wrong_ones_are_found(tmp_path: Path, row: int) -> None:
    path, n = tmp_path / "wide.csv", 11_001
    names = ",".join(f"c{i}" for i in range(n))
    cells = ["7", '"a,b"', *(f"{i}.5" for i in range(2, n))]
    path.write_text(f"{names}\n{','.join(cells)}\n{','.join(cells[::-1])}\n")
    plain = ["7", "a,b", *cells[2:]]
    assert whole(path).rows() == [tuple(plain), tuple(plain[::-1])]
    with path.open("a") as file:
        file.write(",".join(["1"] * row) + "\n")
    with pytest.raises(TableError, match=rf"line 4: {row:,} cells where the header has {n:,}"):
        whole(path)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_very_wide_rows_without_quotes_are_cut_at_their_delimiters(tmp_path: Path, newline: str) -> None:
    path, n = tmp_path / "wide.csv", 6_000
    names = ";".join(f"c{i}" for i in range(n))
    rows = [[f"{row}.{column}" for column in range(n)] for row in range(3)]
    rows[1][0] = rows[2][-1] = rows[0][4_000] = ""
    path.write_bytes(newline.join([names, *map(";".join, rows)]).encode())
    assert whole(path).rows() == [tuple(cell or None for cell in row) for row in rows]
    # As many cells as two whole rows have, and not UTF-8.
    for short, complaint in (
        (b";" * (n - 2) + b"\n" + b";" * n, "5,999 cells"),
        (b"\xff" + b";" * (n - 1), "UTF-8"),
    ):
        path.write_bytes(names.encode() + b"\n" + short)
        with pytest.raises(TableError, match=rf"line 2: .*{complaint}"):
            whole(path)


def test_blank_lines_are_no_rows_unless_there_is_one_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n\n1,2\n\r\n\n3,"\n\n"\n,\n\n')
    for batch_bytes in (64, 1 << 20):
        assert whole(path, batch_bytes=batch_bytes).rows() == [("1", "2"), ("3", "\n\n"), (None, None)]
    path.write_text("a\n\n1\n\n")
    assert whole(path).rows() == [(None,), ("1",), (None,)]


def test_byte_order_mark_and_last_line_without_newline(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\n1,2")
    assert whole(path).to_dict(as_series=False) == {"a": ["1"], "b": ["2"]}
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n{"a": 2}')
    assert whole(path, format="jsonl").rows() == [(1,), (2,)]


def test_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n")
    with open_table(path) as table:
        assert table.columns == ["a", "b"]
        assert list(table) == []


@pytest.fixture
def frame() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    n = 1000
    return pl.DataFrame(
        {
            "i": np.arange(n),
            "x": rng.normal(size=n),
            "k": rng.choice(["a", "b", 'it\'s "c"'], n),
            "f": rng.random(n) < 0.5,
        }
    )


def written(frame: pl.DataFrame, folder: Path, name: str) -> Path:
    path = folder / name
    match name.split(".", 1)[1]:
        case "csv":
            frame.write_csv(path)
        case "tsv":
            frame.write_csv(path, separator="\t")
        case "csv.gz":
            path.write_bytes(gzip.compress(frame.write_csv().encode()))
        case "csv.zst":
            text = frame.write_csv().encode()
            half = len(text) // 2
            frames = [zstandard.compress(text[:half]), zstandard.compress(text[half:])]
            path.write_bytes(b"".join(frames))
        case "jsonl":
            frame.write_ndjson(path)
        case "jsonl.gz":
            path.write_bytes(gzip.compress(frame.write_ndjson().encode()))
        case "parquet":
            frame.write_parquet(path, row_group_size=170)
        case "arrow":
            frame.write_ipc(path, record_batch_size=170)
        case "arrows":
            with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, frame.to_arrow().schema) as stream:
                stream.write_table(frame.to_arrow(), max_chunksize=170)
        case "npy":
            np.save(path, frame.select("i", "x").to_numpy())
        case "npz":
            np.savez(path, X=np.asfortranarray(frame.select("i", "x").to_numpy()), y=np.zeros(3))
    return path


def expected_from(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    if name.endswith((".npy", ".npz")):
        return pl.DataFrame(frame.select("i", "x").to_numpy(), schema=["x0", "x1"])
    if ".csv" in name or ".tsv" in name:
        return frame.cast(pl.String)
    return frame


TEXT_NAMES = ["t.csv", "t.tsv", "t.csv.gz", "t.csv.zst", "t.jsonl", "t.jsonl.gz"]
NAMES = [*TEXT_NAMES, "t.parquet", "t.arrow", "t.arrows", "t.npy", "t.npz"]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_rows_back_in_batches(tmp_path: Path, frame: pl.DataFrame, name: str) -> None:
    path = written(frame, tmp_path, name)
    with open_table(path, batch_bytes=4000) as table:
        assert table.columns == expected_from(frame, name).columns
        batches, before, done = [], 0, 0
        for batch in table:
            assert table.rows_before == before
            before += batch.height
            assert table.rows == before
            assert done <= table.done
            done = table.done
            batches.append(batch)
        assert table.total == table.done
    assert len(batches) > 3
    assert_frame_equal(pl.concat(batches), expected_from(frame, name))


@pytest.mark.parametrize("name", NAMES)
def test_any_position_leads_to_the_rest(tmp_path: Path, frame: pl.DataFrame, name: str) -> None:
    path = written(frame, tmp_path, name)
    expected = expected_from(frame, name)
    with open_table(path, batch_bytes=4000) as table:
        positions = [(table.rows, table.position)] + [(table.rows, table.position) for _ in table]
    for rows, position in positions[::2] + positions[-1:]:
        kept = json.loads(json.dumps(position))
        with open_table(path, batch_bytes=5000, start=kept) as table:
            assert table.columns == expected.columns
            rest = list(table)
            assert table.rows == expected.height
        assert_frame_equal(pl.concat([expected[:0], *rest]), expected[rows:])


def test_a_position_in_csv_with_lines_inside_cells_keeps_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + '1,"x\ny"\n' * 50 + "1,2,3\n")
    with open_table(path, batch_bytes=64) as table:
        next(table)
        next(table)
        position = table.position
    with (
        open_table(path, batch_bytes=64, start=position) as table,
        pytest.raises(TableError, match="line 102:"),
    ):
        list(table)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.zst", "t.jsonl", "t.arrows", "t.npy"])
def test_standard_input_is_known_by_its_first_bytes(
    tmp_path: Path, frame: pl.DataFrame, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(frame, tmp_path, name)
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE, text=True) as sender:
        monkeypatch.setattr(sys, "stdin", sender.stdout)
        with open_table("-", batch_bytes=5000) as table:
            assert table.total is None or table.unit == "rows"
            assert_frame_equal(pl.concat(list(table)), expected_from(frame, name))


def test_contents_tell_the_format_where_the_name_does_not(tmp_path: Path, frame: pl.DataFrame) -> None:
    for name in ("t.csv", "t.jsonl", "t.parquet", "t.arrow", "t.npy", "t.npz", "t.csv.gz"):
        path = written(frame, tmp_path, name).rename(tmp_path / "table.data")
        with open_table(path) as table:
            assert table.format == name.split(".")[1]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = "".join(f"{i},{i * 0.37:.9f},{'abc' * (i % 5)}\n" for i in range(50_000))
    with path.open("w") as file:
        file.write("a,b,c\n")
        for _ in range(40):
            file.write(rows)
    code = f"""
import resource
from rankad.io.table_files import open_table
def most(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
table = open_table({str(path)!r}, batch_bytes=1 << 20)
for _ in range(3): next(table)
before = most()
for _ in table: pass
print(table.rows, most() - before)
"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert int(out[0]) == 40 * 50_000
    assert path.stat().st_size > 50 << 20
    assert float(out[1]) < 20


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_batches_of_very_short_rows_hold_no_more_rows_than_others(tmp_path: Path, name: str) -> None:
    """Millions of them fit into the bytes of a batch, but not into its memory."""
    path, n = tmp_path / name, 600_000
    # The cell with two line ends stands where a batch would otherwise end.
    at, long = 131_071, '"\n\n",x\n'
    short = ",\n" if name == "t.csv" else "{}\n"
    odd = long if name == "t.csv" else '{"a": "\\n\\n", "b": "x"}\n'
    head = "a,b\n" if name == "t.csv" else '{"a": null, "b": ""}\n'
    path.write_text(head + short * at + odd + short * (n - at))
    with open_table(path) as reader:
        heights = [batch.height for batch in reader]
        assert max(heights) <= 2**18
        assert sum(heights) == n + 1 + (name == "t.jsonl")
    texts = whole(path)["a"]
    assert texts.drop_nulls().to_list() == ["\n\n"]
    assert texts.is_not_null().arg_max() == at + (name == "t.jsonl")


def test_json_lines_with_several_kinds_in_a_column_are_text(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = [{"a": True, "b": 1, "c": [1, 2]}, {"a": 1, "b": "x", "c": {"k": None}}, {"a": "z", "b": None}]
    path.write_text("\n\n".join(map(json.dumps, lines)))
    found = whole(path)
    assert found["a"].to_list() == ["true", "1", "z"]
    assert found["b"].to_list() == ["1", "x", None]
    assert [json.loads(cell) for cell in found["c"].drop_nulls()] == [[1, 2], {"k": None}]


def test_json_lines_columns_are_those_of_the_first_batch(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    row = json.dumps({"a": "text", "b": 1}) + "\n"
    path.write_text(row * 10 + '{"a": 5}\n' * 20)
    frames = list(open_table(path, batch_bytes=100))
    assert len(frames) > 2
    assert all(frame.columns == ["a", "b"] for frame in frames)
    assert frames[-1]["a"].to_list()[-1] == "5"
    assert frames[-1]["b"].null_count() == frames[-1].height
    path.write_text(row * 10 + '{"a": "t", "new": 5}\n')
    with (
        open_table(path, batch_bytes=100) as table,
        pytest.raises(TableError, match="line 11: a new key 'new'"),
    ):
        list(table)


def test_numpy_arrays_of_many_kinds(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    rng = np.random.default_rng(0)
    for kind in (">f8", "<f4", "f2", "longdouble", "i2", ">u4", "?", "<U5"):
        values = (rng.normal(size=(7, 3)) * 10).astype(kind)
        np.save(path, values)
        expected = values.astype(float) if kind != "<U5" else values
        np.testing.assert_array_equal(whole(path, batch_bytes=64).to_numpy(), expected)
    np.save(path, np.array([(1, 2.5), (3, 4.5)], dtype=[("n", "i4"), ("x", "f8")]))
    assert whole(path).to_dict(as_series=False) == {"n": [1, 3], "x": [2.5, 4.5]}
    np.save(path, np.arange(5.0))
    assert whole(path).to_dict(as_series=False) == {"x0": [0.0, 1.0, 2.0, 3.0, 4.0]}
    np.savez(tmp_path / "t.npz", np.eye(2))
    assert whole(tmp_path / "t.npz").rows() == [(1.0, 0.0), (0.0, 1.0)]


def test_arrays_beside_the_rows_are_named_and_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", y=np.ones(2), X=np.eye(2), w=np.zeros(3))
    with open_table(tmp_path / "t.npz") as table, ReadAhead(open_table(tmp_path / "t.npz")) as ahead:
        assert table.unused == ahead.unused == ["y", "w"]
        assert next(table).rows() == [(1.0, 0.0), (0.0, 1.0)]
    np.savez(tmp_path / "one.npz", rows=np.eye(2))
    with open_table(tmp_path / "one.npz") as table:
        assert not table.unused


def test_as_numbers_says_which_cell_is_none() -> None:
    frame = pl.DataFrame(
        {"a": ["1.5", " 2", "NA", "nan", "", "null", None, "-inf"], "b": ["x"] * 8, "n": range(8)}
    )
    found = as_numbers(frame, ["a", "n"])
    assert found["a"].to_list() == [1.5, 2.0, None, None, None, None, None, -np.inf]
    assert found.dtypes == [pl.Float64, pl.String, pl.Float64]
    with pytest.warns(UserWarning, match=r"'b'.*row 1,001 .*'x'.*left empty"):
        assert as_numbers(frame, ["b"], rows_before=1000)["b"].to_list() == [None] * 8
    with pytest.raises(TableError, match="zz"):
        as_numbers(frame, ["zz"])


def test_identity_changes_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    first = file_identity(path)
    assert file_identity(path) == first == json.loads(json.dumps(first))
    path.write_text("a\n2\n")
    assert file_identity(path)["sha256"] != first["sha256"]
    with pytest.raises(TableError, match="Cannot open"):
        file_identity(tmp_path / "none.csv")


@pytest.mark.parametrize("line", ["sep=;\n", '"sep=;"\r\n', "\ufeffsep=;\n", "SEP=;\n"])
def test_a_first_line_may_name_the_delimiter(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes((line + "a;b,c\n1,5;x\n2,5;y\n").encode())
    with open_table(path) as table:
        assert table.columns == ["a", "b,c"]
        assert [row for frame in table for row in frame.rows()] == [("1,5", "x"), ("2,5", "y")]
        position = table.position
    with open_table(path, start=position) as table:
        assert list(table) == []


ROWS = [{"a": at, "b": "x"} for at in range(9)]
WRAPPED = {
    "one array": ({"rows": ROWS[:2]}, r"whose 'rows' is an array of 2 objects.*jq '\.\[\"rows\"\]'"),
    "with more": ({"n": 9, "data": ROWS}, r"whose 'data' is an array of 9 objects"),
    "columns": ({"a": [*range(9)], "b": ["x"] * 9}, r"holds columns of cells.*orient='records'"),
    "split": (
        {"columns": ["a"], "index": [0], "data": [[1]]},
        r"column names apart from rows.*orient='records'",
    ),
    "by name": (
        {f"r{at}": row for at, row in enumerate(ROWS)},
        r"one JSON object with 9 named rows.*jq '\[\.\[\]\]'",
    ),
}


@pytest.mark.parametrize("what", WRAPPED)
def test_an_object_that_holds_a_table_is_no_row(tmp_path: Path, what: str) -> None:
    path = tmp_path / "t.json"
    made, message = WRAPPED[what]
    path.write_text(json.dumps(made))
    with pytest.raises(TableError, match=message):
        open_table(path)


def test_one_row_may_have_lists_in_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"id": 7, "tags": ["a", "b"], "items": [{"sku": 1}, {"sku": 2}]}))
    with open_table(path) as table:
        assert sum(frame.height for frame in table) == 1


def test_other_formats_say_what_to_do(tmp_path: Path) -> None:
    for name, message in (
        ("t.ods", "is an OpenDocument sheet, which is not supported. Save it as CSV"),
        ("t.pkl", "is a pickle"),
    ):
        (tmp_path / name).write_bytes(b"PK\x03\x04 and more")
        with pytest.raises(TableError, match=message):
            open_table(tmp_path / name)
