"""The command as a process: pipes, signals, and what a run that is killed leaves behind."""

import json
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import rankad
from cli_cases import ENVIRONMENT, SCRIPT, call, make_files, read_text
from rankad.io.table_files import open_table

# Read tables in small batches, so that there is something to be killed in.
SMALL = """
from rankad.io.table_files import open_table
open_table.__kwdefaults__["batch_bytes"] = 2_000
"""
N_KILLS = 2


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("processes"))


def started(*arguments, code="", **options):
    whole = f"{code}\nfrom rankad.cli import main; main()"
    command = [sys.executable, "-c", whole, *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen(command, env=ENVIRONMENT, **pipes)


def wait_for(condition, process, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.005)


def test_a_pipe_gives_the_same_rows_as_a_file(files, capsys, tmp_path):
    call(capsys, "score", files.new, "--model", files.model, "--out", tmp_path / "out.csv")
    done = subprocess.run(
        [*SCRIPT, "score", "-", "--model", files.model],
        input=files.new.read_bytes(),
        capture_output=True,
        env=ENVIRONMENT,
        check=True,
    )
    assert done.stdout == (tmp_path / "out.csv").read_bytes()
    # No colours, no progress bars.
    assert done.stderr.startswith(b"120 rows, ")
    assert b"\x1b" not in done.stderr


def test_a_reader_that_wants_no_more_ends_the_run_in_silence(files, tmp_path):
    rows = files.new.read_bytes().splitlines(keepends=True)
    table = tmp_path / "long.csv"
    table.write_bytes(rows[0] + b"".join(rows[1:]) * 60)
    process = started("score", table, "--model", files.model, code=SMALL)
    assert process.stdout.readline().endswith(b"p_value,score,alarm\n")
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_and_leaves_nothing(files, tmp_path, sent, status):
    process = started("score", "-", "--model", files.model, "--out", tmp_path / "out.csv", code=SMALL)
    process.stdin.write(files.new.read_bytes())
    process.stdin.flush()
    wait_for(lambda: list(tmp_path.iterdir()), process)
    # Nothing can be cleared away that is only just coming to be.
    time.sleep(0.2)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (status, b"")
    what = b"interrupted" if sent == signal.SIGINT else b"terminated"
    assert err == b"rankad: " + what + b"; no file was changed\n"
    assert list(tmp_path.iterdir()) == []


def test_a_fit_on_several_threads_that_is_told_to_end_does_so(files, tmp_path):
    rows = np.random.default_rng(0).normal(size=(8_000, 6))
    table, model = tmp_path / "t.csv", tmp_path / "m.rankad"
    np.savetxt(table, rows, delimiter=",", header="a,b,c,d,e,f", comments="")
    model.write_bytes(files.model.read_bytes())
    for wait in (1.0, 1.5, 2.0):
        begin = "import rankad.cli.app; print('begun', flush=True)"
        process = started("fit", table, "--model", model, "--jobs", "2", code=begin)
        assert process.stdout.readline() == b"begun\n"
        time.sleep(wait)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (143, b""), err
        assert b"Traceback" not in err
        assert err.endswith(b"rankad: terminated; no file was changed\n")
    assert model.read_bytes() == files.model.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.rankad", "t.csv"]


def test_a_run_that_was_killed_goes_on_to_the_same_bytes(files, capsys, tmp_path, monkeypatch):
    rows = files.new.read_bytes().splitlines(keepends=True)
    table = tmp_path / "long.csv"
    table.write_bytes(rows[0] + b"".join(rows[1:]) * 40)
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", 2_000)
    call(capsys, "score", table, "--model", files.model, "--out", tmp_path / "whole.csv")
    out, journal = tmp_path / "out.csv", tmp_path / "out.csv.part.json"
    process = started("score", table, "--model", files.model, "--out", out, "--resume", code=SMALL)
    # The journal is there before the first byte.
    wait_for(lambda: journal.exists() and json.loads(journal.read_text())["bytes"] > 0, process)
    process.kill()
    process.communicate(timeout=60)
    assert not out.exists()
    said = call(capsys, "score", table, "--model", files.model, "--out", out, "--resume")
    assert said.status == 0
    assert said.err.startswith("Resuming after ")
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.csv", "out.csv", "whole.csv"]


# Fits over and over again, so that it is killed while it fits or saves, and not while it imports.
FITTING = """
import sys, rankad
from rankad import RankAD
from rankad.cli import main
rankad.RankAD = lambda alpha, **p: RankAD(
    alpha, landmarks=20, scaling="standard", bandwidth="D_K", C=0.1, n_jobs=1, random_state=p["random_state"])
for seed in range(10_000):
    try:
        main(["fit", sys.argv[1], "--model", sys.argv[2], "--id", "reading", "--seed", str(seed)])
    except SystemExit as ended:
        assert not ended.code
    sys.stdout.flush()
"""


def test_a_fit_that_is_killed_leaves_the_model_whole(files, tmp_path):
    model, frame = tmp_path / "m.rankad", read_text(files.new)
    model.write_bytes(files.model.read_bytes())
    table = tmp_path / "t.csv"
    table.write_bytes(b"".join(files.normal.read_bytes().splitlines(keepends=True)[:80]))
    moments = random.Random(0)
    for _ in range(N_KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", FITTING, str(table), str(model)], env=ENVIRONMENT, stdout=subprocess.PIPE
        )
        assert process.stdout.readline().startswith(b"Learned from 79 rows")
        time.sleep(moments.uniform(0.0, 0.5))
        process.kill()
        process.communicate(timeout=60)
        assert rankad.load(model).p_values(frame).min() > 0
    # What was being written when it was killed is cleared away by the next save.
    rankad.load(model).save(model)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.rankad", "t.csv"]
