"""Every output of every command: never over what is read, never in place of a device, a pipe or a folder."""

import os
import shutil
import stat
import threading
import types
from contextlib import contextmanager

import pytest

from cli_cases import call, make_files
from rankad.scoring.loading import threads


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("outputs"))


@pytest.fixture
def copies(files, tmp_path):
    table, model = tmp_path / "table.csv", tmp_path / "model.rankad"
    shutil.copy(files.normal, table)
    shutil.copy(files.model, model)
    return table, model


# The command, and which of its inputs an output must not replace.
def commands(table, model, out):
    return {
        "fit": ("fit", table, "--model", out, "--id", "reading"),
        "score": ("score", table, "--model", model, "--out", out),
        "resume": ("score", table, "--model", model, "--out", out, "--resume"),
        "report": ("report", table, "--model", model, "--out", out),
        "calibrate": ("calibrate", table, "--model", model, "--out", out),
        "find": ("find", table, "--out", out, "--id", "reading"),
        "find a model": ("find", table, "--model", out, "--id", "reading"),
    }


WRITERS = ("fit", "score", "resume", "report", "calibrate", "find", "find a model")
OVERWRITES = [(name, "table") for name in WRITERS] + [
    (name, "model") for name in ("score", "resume", "report")
]


def by_another_name(path, how):
    other = path.with_name("other.csv")
    if how == "itself":
        return path
    if how == "symlink":
        other.symlink_to(path)
    elif how == "hard link":
        other.hardlink_to(path)
    else:
        other = path.parent / "sub" / ".." / path.name
        (path.parent / "sub").mkdir()
    return other


@pytest.mark.parametrize("how", ["itself", "symlink", "hard link", "detour"])
@pytest.mark.parametrize(("command", "read"), OVERWRITES)
def test_what_is_read_is_never_replaced(copies, capsys, command, read, how):
    table, model = copies
    target = table if read == "table" else model
    before = {path: path.read_bytes() for path in copies}
    out = by_another_name(target, how)
    said = call(capsys, *commands(table, model, out)[command])
    assert (said.status, said.out) == (2, "")
    assert f"{out} is also read from; write to another file." in said.err
    assert said.err.count("\n") == 1
    assert {path: path.read_bytes() for path in copies} == before
    assert (out.is_symlink()) == (how == "symlink")


def test_a_model_may_be_calibrated_in_place(copies, capsys):
    table, model = copies
    assert call(capsys, *commands(table, model, model)["calibrate"]).status == 0


@pytest.mark.parametrize("suffix", [".part", ".part.json"])
def test_what_is_read_is_not_taken_for_a_run_to_go_on_with(copies, capsys, tmp_path, suffix):
    table, model = copies
    read = tmp_path / f"out.csv{suffix}"
    table.rename(read)
    before = read.read_bytes()
    said = call(
        capsys, "score", read, "--format=csv", "--model", model, "--out", tmp_path / "out.csv", "--resume"
    )
    assert said.status == 1
    assert f"out.csv{suffix} is also read from" in said.err
    assert read.read_bytes() == before


@pytest.mark.parametrize("command", ["fit", "score", "report", "calibrate"])
def test_a_folder_is_no_file(copies, capsys, tmp_path, command):
    (tmp_path / "folder.csv").mkdir()
    said = call(capsys, *commands(*copies, tmp_path / "folder.csv")[command])
    assert said.status == 2
    assert "folder.csv is a folder; name a file in it." in said.err


@pytest.mark.parametrize("command", ["score", "report"])
def test_a_pipe_is_written_to(copies, capsys, tmp_path, command):
    suffix = "html" if command == "report" else "csv"
    pipe, whole = tmp_path / f"pipe.{suffix}", tmp_path / f"whole.{suffix}"
    assert call(capsys, *commands(*copies, whole)[command], "--quiet").status == 0
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    assert call(capsys, *commands(*copies, pipe)[command], "--quiet").status == 0
    reader.join(30)
    # The page says when it was made.
    assert len(found[0]) == len(whole.read_bytes())
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("command", ["score", "report"])
@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_a_device_is_written_to_and_stays_one(copies, capsys, tmp_path, command, device):
    link = tmp_path / "link.csv"
    link.symlink_to(device)
    said = call(capsys, *commands(*copies, link)[command])
    assert said.status == (1 if device == "/dev/full" else 0), said.err
    assert stat.S_ISCHR(os.stat(device).st_mode)
    assert link.is_symlink()


@pytest.mark.parametrize("command", ["fit", "calibrate"])
def test_a_model_is_saved_to_files_alone(copies, capsys, command):
    said = call(capsys, *commands(*copies, "/dev/null")[command])
    assert said.status == 2
    assert "/dev/null is a device or a pipe; name a file." in said.err
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("command", ["score", "report", "calibrate", "fit"])
def test_what_a_killed_run_left_is_cleared_by_the_next(copies, capsys, tmp_path, command, monkeypatch):
    out = tmp_path / ("out.html" if command == "report" else "out.csv")
    # A run that is killed cannot clear up, and its process is gone.
    # (Only there: others, such as joblib's threads, ask for the process too.)
    other = types.ModuleType("os")
    vars(other).update(vars(os), getpid=lambda: 2**22 + 1)
    monkeypatch.setattr("rankad._base.files.os", other)
    monkeypatch.setattr("rankad._base.files.AtomicFile.discard", lambda self: None)
    monkeypatch.setattr(
        "rankad._base.files.put_in_place", lambda *_: (_ for _ in ()).throw(OSError("killed"))
    )
    assert call(capsys, *commands(*copies, out)[command]).status == 1
    assert [path.name for path in tmp_path.glob(".rankad-*.tmp")] != []
    monkeypatch.undo()
    assert call(capsys, *commands(*copies, out)[command]).status == 0
    assert list(tmp_path.glob(".rankad-*.tmp")) == []
    assert out.exists()


@pytest.mark.parametrize("options", [("--fdr", "0.1"), ("--resume",)])
def test_a_pipe_cannot_be_read_twice(copies, capsys, tmp_path, options):
    pipe = tmp_path / "in.csv"
    os.mkfifo(pipe)
    said = call(capsys, "score", pipe, "--model", copies[1], "--out", tmp_path / "out.csv", *options)
    assert said.status == 2
    assert f"Invalid value for {options[0]}: " in said.err
    assert "a file" in said.err


def test_the_demonstration_writes_over_nothing_but_its_own(capsys, tmp_path):
    theirs = tmp_path / "normal.csv"
    theirs.write_text("a,b\n1,2\n")
    said = call(capsys, "demo", "--out", tmp_path)
    assert said.status == 1
    assert f"{theirs} exists and is not from the demo; name another folder." in said.err
    assert theirs.read_text() == "a,b\n1,2\n"
    assert [path.name for path in tmp_path.iterdir()] == ["normal.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
def test_the_demonstration_does_not_wait_for_a_pipe(capsys, tmp_path):
    os.mkfifo(tmp_path / "new.csv")
    # A reader would wait for ever, and with it this test.
    with open_at_both_ends(tmp_path / "new.csv"):
        said = call(capsys, "demo", "--out", tmp_path)
    assert said.status == 1
    assert "new.csv exists and is not from the demo" in said.err


@contextmanager
def open_at_both_ends(path):
    """End what waits for a FIFO after a while."""
    handle = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    closing = threading.Timer(5.0, os.close, [handle])
    closing.start()
    try:
        yield
    finally:
        if closing.is_alive():
            closing.cancel()
            os.close(handle)
        closing.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
@pytest.mark.parametrize("suffix", [".part", ".part.json"])
def test_a_run_is_not_gone_on_with_through_a_pipe(copies, capsys, tmp_path, suffix):
    table, model = copies
    pipe = tmp_path / f"out.csv{suffix}"
    os.mkfifo(pipe)
    with open_at_both_ends(pipe):
        said = call(capsys, "score", table, "--model", model, "--out", tmp_path / "out.csv", "--resume")
    assert said.status == 1
    assert f"out.csv{suffix} is a device or a pipe; remove it" in said.err
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.rankad", pipe.name, "table.csv"]


def test_no_name_but_those_told_is_taken_to_go_on_with_a_run(copies, capsys, tmp_path):
    """The journal was once written through NAME.part.new, whatever that was: here, the table itself."""
    table, model = copies
    read = tmp_path / "out.csv.part.new"
    table.rename(read)
    before = read.read_bytes()
    out = tmp_path / "out.csv"
    said = call(capsys, "score", read, "--format=csv", "--model", model, "--out", out, "--resume")
    assert said.status == 0, said.err
    assert read.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.rankad", "out.csv", read.name]


def test_a_prefix_that_is_no_text_is_named(copies, capsys, tmp_path):
    table, model = copies
    said = call(capsys, "score", table, "--model", model, "--out", tmp_path / "o.csv", "--prefix", "\udcff")
    assert said.status == 1
    assert r"--prefix must be text in UTF-8, got '\udcff'." in said.err
    assert not (tmp_path / "o.csv").exists()


def test_more_threads_than_can_be_had_are_not_started(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(100)), raising=False)
    assert [threads(jobs) for jobs in (None, 1, 90, 100_000)] == [100, 1, 90, 100]
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    assert [threads(jobs) for jobs in (None, 3, 100_000)] == [2, 3, 64]


@contextmanager
def standard(number, path, flags):
    """Let standard input or output be a file for a while."""
    kept, handle = os.dup(number), os.open(path, flags)
    os.dup2(handle, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)
        os.close(handle)


@pytest.mark.parametrize("command", WRITERS)
def test_the_file_behind_standard_input_is_not_replaced(copies, capsys, command):
    table, model = copies
    before = {path: path.read_bytes() for path in copies}
    words = commands("-", model, table)[command]
    with standard(0, table, os.O_RDONLY):
        said = call(capsys, *words)
    assert said.status == 2
    assert f"{table} is also read from; write to another file." in said.err
    assert {path: path.read_bytes() for path in copies} == before


@pytest.mark.parametrize("command", ["report", "calibrate", "find a model"])
def test_the_file_behind_standard_output_is_not_replaced(copies, capfd, tmp_path, command):
    table, model = copies
    log = tmp_path / "log"
    log.write_text("kept")
    with standard(1, log, os.O_WRONLY | os.O_APPEND):
        said = call(capfd, *commands(table, model, "/dev/fd/1")[command])
    assert said.status == 2
    assert "/dev/fd/1 is also what this command prints to" in said.err
    assert log.read_text() == "kept"


@pytest.mark.parametrize("command", ["score", "find"])
def test_rows_are_not_appended_to_their_own_table(copies, capfd, command):
    table, model = copies
    before = table.read_bytes()
    with standard(1, table, os.O_WRONLY | os.O_APPEND):
        said = call(capfd, *commands(table, model, "-")[command])
    assert said.status == 1
    assert f"{table} is also read from; send the output to another file." in said.err
    assert table.read_bytes() == before
