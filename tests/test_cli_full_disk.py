"""Disks that are full and standard files that are closed: one line that names the file."""

import os
import resource
import subprocess
from contextlib import contextmanager

import pytest

from cli_cases import ENVIRONMENT, SCRIPT, call, make_files
from rankad.cli.example import make_example, write_table

FULL = "/dev/full"
needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason=f"there is no {FULL}")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("full"))


@contextmanager
def room_for(n_bytes):
    """Let no file grow larger; the system then says that it is too large."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


OUTPUTS = [
    ("score", "out.csv"),
    ("score", "out.tsv"),
    ("score", "out.jsonl"),
    ("score", "out.csv.gz"),
    ("score", "out.csv.zst"),
    ("score", "out.parquet"),
    ("score", "out.arrow"),
    ("score", "resumed.csv"),
    ("report", "out.html"),
    ("calibrate", "out.rankad"),
    ("fit", "out.rankad"),
]


@pytest.mark.parametrize("room", [0, 1000])
@pytest.mark.parametrize(("command", "name"), OUTPUTS)
def test_a_file_that_has_no_room_is_named(files, capsys, tmp_path, monkeypatch, command, name, room):
    import rankad
    from cli_cases import QUICK

    monkeypatch.setattr(rankad, "RankAD", lambda alpha, **_: rankad.detectors.RankAD(alpha, **QUICK))
    out = tmp_path / name
    arguments = [command, files.new if command == "score" else files.normal, "--model", files.model]
    arguments += ["--out", out] if command != "fit" else ["--id", "reading"]
    if command == "fit":
        arguments[3] = out
    if name == "resumed.csv":
        arguments.append("--resume")
    assert call(capsys, *arguments).status == 0
    before = out.read_bytes()
    with room_for(room):
        said = call(capsys, *arguments)
    assert said.status == 1
    assert said.err.startswith(f"rankad: {out}")
    assert "File too large" in said.err
    assert said.err.count("\n") == 1
    # What was there stays, and nothing is left beside it.
    assert out.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_journal_that_has_no_room_is_named(files, capsys, tmp_path, monkeypatch):
    from rankad.io.table_files import open_table

    table, out = tmp_path / "t.csv", tmp_path / "out.csv"
    header, *rows = files.new.read_text().splitlines()
    table.write_text("\n".join([header, *rows[:1]]) + "\n")
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", 2_000)
    arguments = ["score", table, "--model", files.model, "--out", out, "--resume"]
    assert call(capsys, *arguments).status == 0
    with room_for(out.stat().st_size + 1):
        said = call(capsys, *arguments)
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert said.err.startswith(f"rankad: {out}.part.json: File too large; free some space")


def test_an_example_that_has_no_room_is_named(tmp_path):
    with room_for(100), pytest.raises(OSError, match="too large") as caught:
        write_table(tmp_path / "t.csv", make_example(300, 10, seed=0).normal)
    assert caught.value.filename == tmp_path / "t.csv" or str(tmp_path / "t.csv") == caught.value.filename


def ran(arguments, redirected=""):
    """Run the command in a shell, with its standard files as told."""
    command = ["sh", "-c", f'exec "$@" {redirected}', "sh", *SCRIPT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, env=ENVIRONMENT, text=True, timeout=120)


@needs_full
@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "new", "--model", "model"),
        ("score", "new", "--model", "model", "--json", "--out", "out"),
        ("inspect", "model"),
        ("explain", "new", "--model", "model"),
        ("--help",),
    ],
)
def test_standard_output_that_is_full_is_named(files, tmp_path, arguments):
    places = {"new": files.new, "model": files.model, "out": tmp_path / "out.csv"}
    done = ran([places.get(word, word) for word in arguments], f"> {FULL}")
    assert done.stderr == (
        "rankad: standard output: No space left on device; free some space, or write elsewhere\n"
    )
    assert done.returncode == 1


@needs_full
def test_a_device_that_is_full_is_named(files, capsys):
    said = call(capsys, "score", files.new, "--model", files.model, "--out", FULL)
    assert said.err == f"rankad: {FULL}: No space left on device; free some space, or write elsewhere\n"
    assert said.status == 1


CLOSED = {
    "input": (
        ("score", "-", "--model", "model", "--out", "out"),
        "<&-",
        "rankad: standard input is closed; send a table through a pipe, or give a file.\n",
    ),
    "input of fit": (
        ("fit", "-", "--model", "out"),
        "<&-",
        "rankad: standard input is closed; send a table through a pipe, or give a file.\n",
    ),
    "output for rows": (
        ("score", "new", "--model", "model"),
        ">&-",
        "rankad: standard output is closed; redirect it to a file or a pipe, or name a file.\n",
    ),
    "output for words": (
        ("inspect", "model"),
        ">&-",
        "rankad: standard output: it is closed; redirect it to a file or a pipe, or use --out FILE\n",
    ),
    "output for JSON": (
        ("inspect", "model", "--json"),
        ">&-",
        "rankad: standard output: it is closed; redirect it to a file or a pipe, or use --out FILE\n",
    ),
    "all but errors": (
        ("score", "-", "--model", "model"),
        "<&- >&-",
        "rankad: standard input is closed; send a table through a pipe, or give a file.\n",
    ),
}


@pytest.mark.parametrize("what", CLOSED)
def test_closed_standard_files_are_named(files, tmp_path, what):
    arguments, redirected, message = CLOSED[what]
    places = {"new": files.new, "model": files.model, "out": tmp_path / "out.csv"}
    done = ran([places.get(word, word) for word in arguments], redirected)
    assert (done.returncode, done.stderr, done.stdout) == (1, message, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("redirected", ["<&- >&-", "<&- 2>&-", "<&- >&- 2>&-", ">&- 2>&-"])
def test_what_needs_no_standard_files_goes_without(files, capsys, tmp_path, redirected):
    call(capsys, "score", files.new, "--model", files.model, "--out", tmp_path / "expected.csv")
    out = tmp_path / "out.csv"
    done = ran(["score", files.new, "--model", files.model, "--out", out, "--quiet"], redirected)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert out.read_bytes() == (tmp_path / "expected.csv").read_bytes()
