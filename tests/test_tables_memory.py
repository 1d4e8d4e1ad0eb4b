"""Memory of odd tables, measured in processes of their own: at most twice the input and 300 MB more."""

import os
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from cli_cases import ENVIRONMENT
from rankad.tables import TableEncoder

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/clear_refs"), reason="peaks are those of Linux"
)

MIB = 1 << 20
LONG = 20_000_000

READ = """
import sys
import polars
from rankad.tables.files import TableError, open_table

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

# Begin anew: the peak of getrusage is also that of the process which started this one.
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


def test_the_time_of_many_columns_grows_with_their_number():
    n = 20_000
    names = [f"c{at}" for at in range(n)]
    rows = np.random.default_rng(0).normal(size=(3, n))
    table = pl.DataFrame(
        {name: [repr(x) for x in column.tolist()] for name, column in zip(names, rows.T, strict=True)}
    )
    begun = time.perf_counter()
    encoder = TableEncoder.fit(table)
    assert time.perf_counter() - begun < 30
    begun = time.perf_counter()
    encoded = encoder.encode(table)
    # Half a second on a machine where looking up names in lists took forty.
    assert time.perf_counter() - begun < 15
    assert np.array_equal(encoded.rows, rows)
