"""Memory of odd tables, measured in processes of their own: at most twice the input and 300 MB more."""

import os
import subprocess
import sys
import time
import zipfile

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli_cases import ENVIRONMENT
from rankad import TableDetector
from rankad.cli import main
from rankad.io.table_files import TableError, check_unpacked, open_table
from rankad.tables import TableEncoder, Untyped

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/clear_refs"), reason="peaks are those of Linux"
)

MIB = 1 << 20
LONG = 20_000_000

READ = """
import sys
import polars
from rankad.io.table_files import TableError, open_table

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

# Set the peak back: that of getrusage is also of the process which started this one.
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before, rows = peak(), 0
try:
    with open_table(sys.argv[1]) as table:
        rows = sum(frame.height for frame in table)
except TableError as error:
    rows = str(error)
print(peak() - before, rows)
"""


def measured(path):
    """Return how much memory reading a table takes, and its rows."""
    done = subprocess.run(
        [sys.executable, "-c", READ, path],
        capture_output=True,
        env=ENVIRONMENT,
        text=True,
        timeout=60,
        check=True,
    )
    taken, rows = done.stdout.split(" ", 1)
    return int(taken), rows.strip()


BLANK = {
    "newlines.csv": (b"a,b\n1,2\n" + b"\n" * LONG + b"3,4\n", "2"),
    "newlines_first.csv": (b"\n" * LONG + b"a,b\n1,2\n", "1"),
    "line_ends_of_windows.csv": (b"a,b\r\n1,2\r\n" + b"\r\n" * (LONG // 2) + b"3,4\r\n", "2"),
    "mixed_line_ends.csv": (b"a,b\n1,2\n" + b"\n\r\n" * (LONG // 3) + b"3,4\n", "2"),
    "beside_quotes.csv": (b'a,b\n"1",2\n' + (b"\n" * (LONG // 5) + b'"1",2\n') * 5, "6"),
    "newlines.jsonl": (b'{"a": 1}\n' + b"\n" * LONG + b'{"a": 1}\n', "2"),
    "newlines_first.jsonl": (b"\n" * LONG + b'{"a": 1}\n', "1"),
}


@pytest.mark.parametrize("name", BLANK)
def test_blank_lines_take_little_memory(tmp_path, name):
    data, expected = BLANK[name]
    (tmp_path / name).write_bytes(data)
    taken, rows = measured(tmp_path / name)
    assert rows == expected
    assert taken < 2 * len(data) + 300 * MIB


def test_nothing_but_newlines_is_an_empty_table(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\n" * LONG)
    taken, rows = measured(tmp_path / "t.csv")
    assert rows.endswith("is empty; a table begins with a line of column names.")
    assert taken < 2 * LONG + 300 * MIB


@pytest.mark.parametrize("name", ["t.npz", "t.npy"])
def test_an_array_that_lies_column_by_column_is_held_once(tmp_path, name):
    array = np.asfortranarray(np.random.default_rng(0).normal(size=(500_000, 25)))
    path = tmp_path / name
    np.savez(path, X=array) if name == "t.npz" else np.save(path, array)
    taken, rows = measured(path)
    assert rows == "500000"
    # A batch is 8 MiB, and there are a few of them.
    assert taken < 1.2 * os.path.getsize(path) + 40 * MIB


def seconds_of_columns(n):
    """Return the processor time that it takes to learn and to encode a table of so many columns."""
    rows = np.random.default_rng(0).normal(size=(8, n))
    table = pl.DataFrame({f"c{at}": [repr(x) for x in column.tolist()] for at, column in enumerate(rows.T)})
    started = time.process_time()
    encoder = TableEncoder.fit(Untyped(table))
    learned = time.process_time()
    encoded = encoder.encode(table)
    assert np.array_equal(encoded.rows, rows)
    return np.array([learned - started, time.process_time() - learned])


def test_the_time_of_many_columns_grows_with_their_number():
    """Eight times the columns take eight times as long, not 64 times: names are not sought in lists."""
    seconds_of_columns(100)
    few, many = seconds_of_columns(1_000), seconds_of_columns(8_000)
    assert (many < 25 * few + 0.5).all()


def zeros_in_a_zip(path):
    """Write sixteen million rows in half a megabyte."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("X.npy", "w") as file:
        head = {"descr": "<f8", "fortran_order": False, "shape": (1 << 24, 4)}
        np.lib.format.write_array_header_1_0(file, head)
        for _ in range(512):
            file.write(bytes(MIB))


def a_long_text_many_times(path, write):
    text = "x" * (3 * MIB)
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(50_000, np.int32)), pa.array([text]))
    write(pa.table({"a": np.arange(50_000.0), "b": column}), path)


def write_arrow(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def write_parquet(table, path):
    # Text as most have it, not a dictionary by its type.
    pq.write_table(table, path, store_schema=False)


@pytest.mark.parametrize(("name", "write"), [("t.parquet", write_parquet), ("t.arrow", write_arrow)])
def test_a_long_text_in_a_dictionary_is_not_held_for_every_row(tmp_path, name, write):
    path = tmp_path / name
    a_long_text_many_times(path, write)
    with open_table(path) as table:
        heights = [next(table).height for _ in range(3)]
    # 150 GB of text in all: a batch holds as many rows as fit into 8 MiB, or one.
    assert max(heights) <= 2


def shared_by_all(n, kind, **options):
    """Return how to write n cells of one text of a megabyte, in a file of a few kilobytes."""

    def write(path):
        text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["x" * 900_000]))
        schema = pa.schema({"a": kind, "b": pa.int64()})
        with pq.ParquetWriter(path, schema, **options) as file:
            for begin in range(0, n, 50):
                texts = text.slice(begin, 50).dictionary_decode().cast(kind)
                file.write_batch(pa.record_batch([texts, pa.array(range(begin, begin + 50))], schema))

    return write


DELTA = {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (pa.string(), {}),
        (pa.string(), {"store_schema": False}),
        (pa.large_string(), {}),
        (pa.large_binary(), {}),
        (pa.string(), DELTA),
    ],
)
def test_a_text_of_less_than_a_megabyte_is_not_held_for_every_row_either(tmp_path, kind, options):
    path = tmp_path / "t.parquet"
    # In one row group, and in a few: texts are written fifty at a time, or this would hold them all.
    shared_by_all(2_000, kind, **options)(path)
    with open_table(path) as table:
        frame = next(table)
    assert frame.height <= 300


def test_a_short_word_that_many_rows_share_is_read_in_few_batches(tmp_path):
    words = np.random.default_rng(0).choice(["eco", "full", None], 400_000)
    table = pa.table({"a": pa.array(words), "b": range(400_000)})
    pq.write_table(table, tmp_path / "t.parquet")
    with open_table(tmp_path / "t.parquet") as reader:
        frames = list(reader)
    assert len(frames) < 20
    assert pl.concat(frames)["a"].to_list() == words.tolist()


def test_long_texts_in_a_dictionary_are_read_as_they_are(tmp_path):
    words = [letter * 400_000 for letter in "abcde"]
    rows = [words[at % 5] for at in range(40)]
    pq.write_table(pa.table({"a": rows, "b": range(40)}), tmp_path / "t.parquet")
    with open_table(tmp_path / "t.parquet") as table:
        found = pl.concat(list(table))
    assert found.schema["a"] == pl.String
    assert found["a"].to_list() == rows
    assert found["b"].to_list() == list(range(40))


def test_a_parquet_cell_of_256_mb_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"a": ["x" * (1 << 28)]})
    pq.write_table(table, path, compression="zstd")
    taken, said = measured(path)
    assert said.startswith(f"{path}: rows of 268,4")
    assert taken < 2 * path.stat().st_size + 300 * MIB


def test_rows_far_larger_than_their_file_are_not_held(tmp_path, capsys):
    path = tmp_path / "t.npz"
    zeros_in_a_zip(path)
    started = time.monotonic()
    with pytest.raises(SystemExit, match="1"):
        main(["fit", str(path), "--model", str(tmp_path / "m.rankad"), "--quiet"])
    assert time.monotonic() - started < 20
    said = capsys.readouterr().err
    assert said.startswith(f"rankad: {path} has ")
    assert "unpack the file first" in said
    assert [left.name for left in tmp_path.iterdir()] == ["t.npz"]


def test_a_table_that_is_as_large_as_its_file_is_held(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(bytes(2 * MIB))
    check_unpacked(path, 99 * MIB)
    check_unpacked("-", 1 << 40)
    with pytest.raises(TableError, match="unpack"):
        check_unpacked(path, 101 * MIB)


@pytest.mark.parametrize("shape", [(2**40, 2**40), (0, 2**40), (1, 2**21)])
def test_an_array_that_promises_too_many_columns_is_refused_at_once(tmp_path, shape):
    path = tmp_path / "t.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        if shape[0] == 1:
            file.truncate(file.tell() + 8 * shape[1])
    started = time.monotonic()
    with pytest.raises(TableError, match=r"t\.npy (declares|must|is cut off)"):
        open_table(path)
    assert time.monotonic() - started < 5


def test_a_row_of_a_million_columns_is_too_few_rows(tmp_path):
    started = time.monotonic()
    with pytest.raises(ValueError, match="RankAD needs 8 rows or more to learn from, but the table has 1"):
        TableDetector().fit(pl.DataFrame(np.zeros((1, 200_000))))
    assert time.monotonic() - started < 10
