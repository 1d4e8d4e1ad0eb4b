"""Writing tables: whole or not at all, and gone on with after an interruption."""

from __future__ import annotations

import gc
import gzip
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rankad.io.table_files import TableError, open_output, open_table

FRAME = pl.DataFrame(
    {
        "text": ["a", None, 'q"', "two\nlines", "a,b"],
        "x": [0.1 + 0.2, 1e-140, 1e300, None, -0.0],
        "n": [1, 2, None, 4, 2**60],
        "f": [True, False, None, True, True],
    }
)


def write(path: Path, *steps: pl.DataFrame | BaseException) -> None:
    """Write frames, or raise where an exception is given."""
    with open_output(path) as table:
        for step in steps:
            if isinstance(step, BaseException):
                raise step
            table.write(step)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.csv.zst", "t.jsonl", "t.jsonl.gz"])
def test_text_round_trip(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with open_output(path) as table:
        table.write(FRAME[:2])
        table.write(FRAME[2:])
        assert not path.exists()
    found = pl.concat(list(open_table(path)))
    if "jsonl" not in name:
        found = found.with_columns(
            pl.col("x").cast(pl.Float64), pl.col("n").cast(pl.Int64), pl.col("f") == "true"
        )
    assert_frame_equal(found, FRAME, check_exact=True)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_lines_with_more_cells_are_the_rows_with_more_columns(
    tmp_path: Path, ends: str, last: bool, delimiter: str
) -> None:
    cells = [["a,b", "x"], ["1;5", "é  "], ["", "0.10"], ["-", ""], ["y\tz", ""]]
    rows = [row for row in cells if not any(delimiter in cell for cell in row)]
    text = ends.join(delimiter.join(row) for row in [["id", "with,;\t"], *rows])
    text = text.replace("with,;\t", '"with,;\t"') + (ends if last else "")
    (tmp_path / "t.csv").write_bytes(text.encode())
    added = pl.DataFrame(
        {"p": np.geomspace(1e-300, 1, len(rows)), "alarm": [True, *[False] * (len(rows) - 1)]}
    )
    with open_table(tmp_path / "t.csv", delimiter=delimiter) as table:
        (frame,) = table
        assert table.lines is not None
        for name in ("beside.csv", "frames.csv"):
            with open_output(tmp_path / name, delimiter=delimiter) as out:
                for _ in range(2):
                    if name == "beside.csv":
                        out.write_beside(table.lines, table.columns, added)
                    else:
                        out.write(frame.hstack(added))
    assert (tmp_path / "beside.csv").read_bytes() == (tmp_path / "frames.csv").read_bytes()
    assert added.columns == ["p", "alarm"]


def test_blank_lines_of_a_single_column_keep_their_cells(tmp_path: Path) -> None:
    with open_output(tmp_path / "t.csv") as out:
        out.write_beside(b"a\n\nb", ["x"], pl.DataFrame({"p": [0.25, 0.5, 1.0]}))
    assert (tmp_path / "t.csv").read_bytes() == b"x,p\na,0.25\n,0.5\nb,1.0\n"


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet"])
def test_lines_go_to_no_other_format(tmp_path: Path, name: str) -> None:
    with pytest.raises(TableError, match="lines of text"), open_output(tmp_path / name) as out:
        out.write_beside(b"a\n", ["x"], pl.DataFrame({"p": [0.5]}))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_columnar_round_trip(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    with open_output(path) as table:
        table.write(FRAME[:2])
        table.write(FRAME[2:].with_columns(pl.col("n").cast(pl.Int128)))
        assert path.read_bytes() == b"old"
    read = pl.read_parquet if name == "t.parquet" else pl.read_ipc
    assert_frame_equal(read(path), FRAME, check_exact=True)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.zst", "t.jsonl", "t.parquet", "t.arrow"])
@pytest.mark.parametrize("problem", [KeyboardInterrupt, ValueError])
def test_an_error_leaves_what_was_there(tmp_path: Path, name: str, problem: type[BaseException]) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    with pytest.raises(problem):
        write(path, FRAME, problem())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]


def test_files_have_the_usual_permissions_and_links_stay(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    with open_output(tmp_path / "link.csv") as table:
        table.write(FRAME)
    assert (tmp_path / "link.csv").is_symlink()
    (tmp_path / "plain").touch()
    mode = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "real.csv").stat().st_mode == mode
    assert (tmp_path / "real.csv").read_text() == FRAME.write_csv()


@pytest.mark.parametrize("resume", [False, True])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "out.csv").touch(mode=0o600)
    (tmp_path / "out.csv").chmod(0o600)
    with open_output(tmp_path / "out.csv", resume=resume) as table:
        table.write(FRAME)
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600


def test_devices_are_written_to_and_never_replaced(tmp_path: Path) -> None:
    fifo = tmp_path / "t.csv"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        with open_output(fifo) as table:
            table.write(FRAME)
        assert reader.stdout is not None
        assert reader.stdout.read().decode() == FRAME.write_csv()
    assert fifo.is_fifo()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
@pytest.mark.parametrize("whole", [True, False])
def test_gzip_that_was_cut_off_does_not_look_whole(tmp_path: Path, whole: bool) -> None:
    fifo = tmp_path / "t.csv.gz"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        with suppress(KeyboardInterrupt), open_output(fifo) as table:
            table.write(pl.DataFrame({"x": range(9_000)}))
            if not whole:
                raise KeyboardInterrupt
        del table
        gc.collect()
        assert reader.stdout is not None
        data = reader.stdout.read()
    if whole:
        assert gzip.decompress(data).count(b"\n") == 9_001
        return
    with pytest.raises(EOFError):
        gzip.decompress(data)


def test_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    for format, expected in ((None, b"a\n1\n2\n"), ("jsonl", b'{"a":1}\n{"a":2}\n')):
        with open_output("-", format=format) as table:
            table.write(pl.DataFrame({"a": [1]}))
            table.write(pl.DataFrame({"a": [2]}))
        assert capsysbinary.readouterr().out == expected


def test_errors_name_what_is_wrong(tmp_path: Path) -> None:
    given = tmp_path / "in.csv"
    given.write_text("a\n1\n")
    (tmp_path / "same.csv").hardlink_to(given)
    with pytest.raises(TableError, match="also read from"):
        open_output(tmp_path / "same.csv", inputs=[given])
    with pytest.raises(TableError, match="suffix names no format"):
        open_output(tmp_path / "out.xyz")
    with pytest.raises(TableError, match="cannot be written as npy"):
        open_output(tmp_path / "out.npy")
    with pytest.raises(TableError, match="There is no folder"):
        open_output(tmp_path / "none" / "out.csv")
    with pytest.raises(TableError, match="resume needs"):
        open_output(tmp_path / "out.parquet", resume=True)
    with pytest.raises(TableError, match="plain files only"):
        open_output("-", format="parquet")
    one = pl.DataFrame({"a": [1]})
    with pytest.raises(TableError, match=r"columns \['a'\], got \['b'\]"):
        write(tmp_path / "o.csv", one, one.rename({"a": "b"}))
    with pytest.raises(TableError, match="changed its type"):
        write(tmp_path / "o.parquet", one, pl.DataFrame({"a": ["x"]}))
    with pytest.raises(TableError, match="no frame was written"):
        write(tmp_path / "o.parquet")
    with pytest.raises(TableError, match="cannot be written as csv"):
        write(tmp_path / "o.csv", pl.DataFrame({"a": [[1]]}))
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "same.csv"]


# ------------------------------------------------------------------- resumed

FINGERPRINT = {"input": "in.csv", "alpha": 0.05}


def copy(source: Path, target: Path, *, stop_after: int | None = None, commit_every: int = 1) -> int:
    """Copy a table with a row count beside; return how many batches were read."""
    batches = 0
    with open_output(target, resume=True, fingerprint=FINGERPRINT, inputs=[source]) as out:
        total = out.state["total"] if out.state else 0
        with open_table(source, batch_bytes=500, start=out.position) as table:
            for frame in table:
                total += frame.height
                out.write(frame.with_columns(total=pl.lit(total)))
                batches += 1
                if batches % commit_every == 0:
                    out.commit(table.position, {"total": total})
                if batches == stop_after:
                    raise KeyboardInterrupt
    return batches


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    rng = np.random.default_rng(1)
    pl.DataFrame({"i": np.arange(400), "x": rng.normal(size=400), "t": ["two\nlines"] * 400}).write_csv(path)
    return path


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("commit_every", [1, 3])
def test_interrupted_runs_end_in_the_bytes_of_one(
    tmp_path: Path, source: Path, suffix: str, commit_every: int
) -> None:
    target, expected = tmp_path / f"out.{suffix}", tmp_path / f"expected.{suffix}"
    n_batches = copy(source, expected)
    assert n_batches > 20
    batches = 0
    for stop in (1, 2, 5, 4):
        with pytest.raises(KeyboardInterrupt):
            copy(source, target, stop_after=stop, commit_every=commit_every)
        batches += stop - stop % commit_every
        assert not target.exists()
    assert copy(source, target) == n_batches - batches
    assert target.read_bytes() == expected.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.csv", target.name, expected.name])


def test_a_killed_run_goes_on(tmp_path: Path, source: Path) -> None:
    expected, target = tmp_path / "expected.csv", tmp_path / "out.csv"
    copy(source, expected)
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_tables_output as t
from pathlib import Path
from rankad._base import files as _files
calls, put_in_place = 0, _files.put_in_place
def count(path, target):
    global calls
    put_in_place(path, target)
    calls += 1
    if calls == 4:
        os.kill(os.getpid(), 9)
_files.put_in_place = count
t.copy(Path({str(source)!r}), Path({str(target)!r}))
"""
    died = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert died.returncode == -9, died.stderr
    assert not target.exists()
    assert (tmp_path / "out.csv.part").exists()
    copy(source, target)
    assert target.read_bytes() == expected.read_bytes()


def test_half_a_write_after_the_commit_is_cut_off(tmp_path: Path, source: Path) -> None:
    expected, target = tmp_path / "expected.csv", tmp_path / "out.csv"
    copy(source, expected)
    with pytest.raises(KeyboardInterrupt):
        copy(source, target, stop_after=3)
    part = tmp_path / "out.csv.part"
    part.write_bytes(part.read_bytes() + b"7,half a ro")
    copy(source, target)
    assert target.read_bytes() == expected.read_bytes()


def test_resume_refuses_what_does_not_belong_together(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out.csv"
    part, journal = tmp_path / "out.csv.part", tmp_path / "out.csv.part.json"
    with pytest.raises(KeyboardInterrupt):
        copy(source, target, stop_after=3)
    with pytest.raises(TableError, match=r"\(alpha, model changed\)\. To start over, remove"):
        open_output(target, resume=True, fingerprint={"input": "in.csv", "alpha": 0.01, "model": "m"})
    record = json.loads(journal.read_text())
    for text in ("", "{}", "[1]", json.dumps(record | {"version": 99}), json.dumps(record | {"bytes": -1})):
        journal.write_text(text)
        with pytest.raises(TableError, match="cannot be read"):
            open_output(target, resume=True, fingerprint=FINGERPRINT)
    journal.write_text(json.dumps(record))
    kept = part.read_bytes()
    part.write_bytes(kept[:100])
    with pytest.raises(TableError, match="has 100 bytes of"):
        open_output(target, resume=True, fingerprint=FINGERPRINT)
    part.write_bytes(kept)
    with open_output(target, resume=True, fingerprint=FINGERPRINT) as out:
        with pytest.raises(TableError, match="another run"):
            open_output(target, resume=True, fingerprint=FINGERPRINT)
        with pytest.raises(TableError, match="must have the columns"):
            out.write(pl.DataFrame({"other": [1]}))


def test_a_journal_without_its_file_is_forgotten(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out.csv"
    with pytest.raises(KeyboardInterrupt):
        copy(source, target, stop_after=3)
    (tmp_path / "out.csv.part").unlink()
    copy(source, target)
    assert pl.read_csv(target)["i"].to_list() == list(range(400))
