"""The command on damaged and odd files: one line of error, no trace, no hang, nothing half written."""

import csv
import io
import json
import os
import signal
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
import typer.main

import malformed_cases as cases
import rankad.cli
from cli_cases import QUICK as ONE_TRIAL
from cli_cases import call
from rankad import RankAD, TableDetector
from rankad.io.table_files import open_table
from rankad.tables import Untyped

# Far more than any case takes, on whatever machine.
SECONDS = 30
LONGEST_LINE = 1_000
LONGEST_TEXT = 200_000
LONGEST_PAGE = 1_000_000
csv.field_size_limit(2 * cases.HUGE)
FINE, ALARMS = 0, 3
COMMANDS = ("score", "fit", "explain", "report", "calibrate")
# Files are the subject here, so that a fit is one model and not the forty more that cross-fitting takes.
QUICK = {**ONE_TRIAL, "calibration": "split"}


class Place(NamedTuple):
    """Where the cases are run, and the models they are run with."""

    inside: Path
    outside: Path
    table_model: Path
    array_model: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return make_place(tmp_path_factory.mktemp("malformed"))


def make_place(folder):
    """Fit two small models, one on a table, one on an array."""
    found = Place(folder / "in", folder / "out", folder / "table.rankad", folder / "array.rankad")
    found.inside.mkdir()
    found.outside.mkdir()
    text = io.StringIO(cases.frame(60, 0).write_csv())
    detector = TableDetector(RankAD(0.1, **QUICK), ids=["id"])
    detector.fit(Untyped(pl.read_csv(text, infer_schema=False))).save(found.table_model)
    RankAD(0.1, **QUICK).fit(cases.numbers(60, 0)).save(found.array_model)
    return found


@pytest.fixture(scope="module", autouse=True)
def built_once():
    """Build the application for all calls: it is the same each time, and takes longer than most cases."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rankad.cli, "_app", cache(rankad.cli._app))
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Fit without selection."""
    monkeypatch.setattr(rankad, "RankAD", lambda alpha=0.05, **given: RankAD(alpha, **{**QUICK, **given}))


class TookTooLong(BaseException):
    """No `Exception`, so that the command cannot take it for an error of its own."""


@contextmanager
def limited(seconds=SECONDS):
    """Raise where the block takes longer."""

    def stop(*_):
        raise TookTooLong(f"no answer in {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# ---------------------------------------------------------------------------------------------- the checks


def run(capture, place, *arguments, out=None, before=None):
    """Run the command and check how it ended; tell what it said.

    Parameters
    ----------
    capture : pytest's capfd
        Of the file descriptors: what compiled code writes there counts too.
    out : Path, optional
        The output. If the command fails, it is as before.
    before : bytes, optional
        What is there already.
    """
    for left in place.outside.iterdir():
        left.unlink()
    if before is not None:
        out.write_bytes(before)
    with limited():
        said = call(capture, *arguments)
    assert said.status in (FINE, 1, 2, ALARMS)
    for text in (said.out, said.err):
        assert "Traceback" not in text
        assert "panicked" not in text
    errors = [line for line in said.err.splitlines() if not line.startswith("rankad: note: ")]
    there = {path.name for path in place.outside.iterdir()}
    if said.status in (FINE, ALARMS):
        assert not errors
        assert there == ({out.name} if out is not None else set())
        return said
    assert len(errors) == 1
    assert errors[0].startswith("rankad: ")
    assert len(errors[0]) < LONGEST_LINE
    # What nobody foresaw.
    assert "--verbose shows the traceback" not in errors[0]
    assert said.out == ""
    assert there == (set() if before is None else {out.name})
    assert before is None or out.read_bytes() == before
    return said


def put(place, bad):
    """Write a file and return its path."""
    path = place.inside / bad.name
    path.write_bytes(bad.data)
    return path


def n_rows(path):
    """Count the rows, and where it can be done another way, see that it comes to the same."""
    with open_table(path) as table:
        found, format = sum(frame.height for frame in table), table.format
    data = path.read_bytes()
    if format == "csv" and data[:2] not in (b"\x1f\x8b", b"\x28\xb5"):
        wide = "utf-32" if data.startswith(b"\xff\xfe\0\0") else "utf-16"
        text = data.decode(wide if data.startswith(b"\xff\xfe") else "utf-8-sig")
        if "\r" in text.replace("\r\n", ""):
            return found
        text = io.StringIO(text, newline="")
        assert found == sum(bool(row) for row in csv.reader(text, delimiter=_delimiter(path))) - 1
    return found


def _delimiter(path):
    """Return what the cells of a CSV table are separated by: it stays so."""
    with open_table(path) as table:
        return table.delimiter if table.format == "csv" else ","


def check_scored(path, out):
    """Compare the output with what the table holds, read another way where there is one."""
    if out.suffix == ".csv":
        with open(out, newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file, delimiter=_delimiter(path))
        assert {len(row) for row in rows} <= {len(head)}
        scored = [(float(row[-3]), float(row[-2]), row[-1]) for row in rows]
    else:
        table = pl.read_parquet(out)
        head, scored = table.columns, table[:, -3:].rows()
    assert head[-3:] == ["p_value", "score", "alarm"]
    assert len(scored) == n_rows(path)
    assert all(0 < p <= 1 and np.isfinite(score) for p, score, _ in scored)


def run_on(capture, place, bad, command, rng):
    """Run one command on a table, with some options, and check what it leaves."""
    path, model = put(place, bad), place.array_model if "npy" in bad.name else place.table_model
    if "npz" in bad.name or rng.random() < 0.02:
        model = place.array_model
    given = [command, path, "--model", model, "--jobs", "1"]
    if command == "score":
        return _score(capture, place, path, given, rng)
    if command == "fit":
        return _fit(capture, place, path, rng)
    if command == "explain":
        as_json = rng.random() < 0.5
        rows = ["--row", int(rng.integers(1, 30))] if rng.random() < 0.3 else []
        said = run(capture, place, *given, *rows, *["--json"] * as_json)
        if said.status == FINE and as_json:
            json.loads(said.out)
        assert as_json or len(said.out) < LONGEST_TEXT
        return said
    if command == "report":
        out = place.outside / "page.html"
        said = run(capture, place, *given, "--out", out, out=out)
        if said.status == FINE:
            page = out.read_text(encoding="utf-8")
            assert page.rstrip().endswith("</html>")
            assert len(page) < LONGEST_PAGE
        return said
    out = place.outside / "new.rankad"
    said = run(capture, place, *given, "--out", out, out=out, before=_old(model, rng))
    if said.status == FINE:
        assert rankad.load(out).calibration_.scores.size == n_rows(path)
    return said


def _old(model, rng):
    """Return what is there before a model is saved: a model, or nothing."""
    return model.read_bytes() if rng.random() < 0.7 else None


def _score(capture, place, path, given, rng):
    out = place.outside / str(rng.choice(["scored.csv", "scored.parquet"]))
    options = ["--out", out, "--quiet"]
    for option in ("--sort", "--fail-on-alarm", "--fdr=0.2"):
        options += [option] * (rng.random() < 0.2)
    said = run(capture, place, *given, *options, out=out)
    if said.status in (FINE, ALARMS):
        check_scored(path, out)
    return said


def _fit(capture, place, path, rng):
    out = place.outside / "model.rankad"
    options = ["--model", out, "--id", "id"] if "np" not in path.suffix else ["--model", out]
    before = _old(place.table_model, rng)
    said = run(capture, place, "fit", path, *options, "--jobs", "1", out=out, before=before)
    if said.status == FINE:
        assert rankad.load(out).encoder_.n_rows == n_rows(path)
    return said


@contextmanager
def about(*what):
    """Say of which case a failure is."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"case: {', '.join(map(str, what))}")
        raise


# --------------------------------------------------------------------------------------------- whole tables


@pytest.mark.parametrize("command", COMMANDS)
def test_whole_tables_are_no_error(place, capfd, command):
    for name, whole in cases.whole_tables().items():
        with about(command, name):
            said = run_on(capfd, place, whole, command, np.random.default_rng(0))
            assert said.status in (FINE, ALARMS)


# ------------------------------------------------------------------------------------------------ odd tables


@pytest.mark.parametrize("command", COMMANDS)
def test_odd_tables_end_in_a_line_or_in_a_whole_output(place, capfd, command):
    rng = np.random.default_rng(5)
    refused = 0
    for what, bad in cases.odd_tables().items():
        with about(command, what):
            refused += run_on(capfd, place, bad, command, rng).status == 1
    assert refused > 50


def test_a_long_cell_does_not_bury_what_to_do(place, capfd):
    table = put(place, cases.odd_tables()["huge text for a number"])
    said = run(capfd, place, "explain", table, "--model", place.table_model, "--row", 4)
    assert "not a number, as normal cells are" in said.out
    out = place.outside / "m.rankad"
    said = run(capfd, place, "fit", table, "--model", out, "--id", "id", out=out)
    assert "1 cell of 25 cannot be read as a number (row 4: 'zzz" in said.err
    assert "or make it a category with --category load (categories=['load']).\n" in said.err
    # Nor does the model remember it.
    assert out.stat().st_size < cases.HUGE


def test_long_names_are_cut_short_on_the_screen(place, capfd):
    odd = cases.odd_tables()
    for what in ("huge id", "huge quoted newlines"):
        table = put(place, odd[what])
        said = run(capfd, place, "explain", table, "--model", place.table_model, "--row", 5)
        assert said.status == FINE
        assert len(said.out.splitlines()[0]) < 200
    table = put(place, odd["huge name"])
    out = place.outside / "m.rankad"
    said = run(capfd, place, "fit", table, "--model", out, "--id", "id", out=out)
    assert said.status == FINE
    assert f"  {'h' * 30}" in said.out
    assert len(said.out) < 5_000
    said = call(capfd, "inspect", out)
    assert said.status == FINE
    assert len(said.out) < 5_000


def test_nothing_in_a_table_commands_the_terminal(place, capfd):
    table = put(place, cases.odd_tables()["control characters"])
    said = run(capfd, place, "explain", table, "--model", place.table_model)
    assert "mode  [31m" in said.out
    assert "\x1b" not in said.out
    renamed = cases.frame(25, 2).rename({"heat": "he\x1b[31mat"}).write_csv().encode()
    said = run(capfd, place, "score", put(place, cases.Bad("t.csv", renamed)), "--model", place.table_model)
    assert "the table lacks 'heat'" in said.err
    assert "\x1b" not in said.err


def test_a_file_name_that_is_no_text(place, capfd):
    table = os.fsdecode(os.fsencode(place.inside) + b"/t\xff\x1b[31m.csv")
    Path(table).write_bytes(cases.whole_tables()["t.csv"].data)
    out = place.outside / "page.html"
    said = run(capfd, place, "report", table, "--model", place.table_model, "--out", out, out=out)
    assert said.status == FINE
    assert "Anomalies in t?" in out.read_text(encoding="utf-8")
    said = run(capfd, place, "score", table + "x", "--model", place.table_model)
    assert said.err.endswith("No such file or directory.\n")


def test_a_column_name_that_parquet_cannot_hold(place, capfd):
    lines = cases.frame(25, 2).rename({"id": "i\0d"}).write_ndjson().encode()
    table = put(place, cases.Bad("t.jsonl", lines))
    out = place.outside / "scored.parquet"
    said = run(capfd, place, "score", table, "--model", place.table_model, "--out", out, out=out)
    assert "cannot be written as parquet: the column name 'i\\x00d' has a NUL character" in said.err


# ------------------------------------------------------------------------------------------- damaged tables


@pytest.fixture
def small_batches(monkeypatch):
    """So that what is wrong is often found when much has been written already."""
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", 400)


@pytest.mark.parametrize("name", cases.whole_tables())
def test_damaged_tables_end_in_a_line_or_in_a_whole_output(place, capfd, small_batches, name):
    whole = cases.whole_tables()[name]
    refused = 0
    for seed in range(10):
        rng = np.random.default_rng([seed, *name.encode()])
        bad, command = cases.Bad(name, cases.mutated(whole.data, rng)), COMMANDS[seed % len(COMMANDS)]
        with about(name, command, seed):
            refused += run_on(capfd, place, bad, command, rng).status == 1
    assert refused > 2


CHANGES = {
    "cells": ("t.csv", cases.mutated_text),
    "values": ("t.jsonl", cases.mutated_json),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_cells_end_in_a_line_or_in_a_whole_output(place, capfd, small_batches, change):
    name, changed = CHANGES[change]
    data = cases.whole_tables()[name].data
    refused = fine = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 6])
        bad, command = cases.Bad(name, changed(data, rng)), COMMANDS[seed % len(COMMANDS)]
        with about(change, command, seed):
            status = run_on(capfd, place, bad, command, rng).status
        refused, fine = refused + (status == 1), fine + (status != 1)
    assert refused > 7
    assert fine > 2


def test_formats_under_the_name_of_others(place, capfd):
    whole = cases.whole_tables()
    for seed in range(25):
        rng = np.random.default_rng([seed, 7])
        bad, command = cases.misnamed(whole, rng), COMMANDS[seed % len(COMMANDS)]
        with about(bad.name, command, seed):
            run_on(capfd, place, bad, command, rng)


def test_damage_that_comes_through_a_pipe(place, capfd, monkeypatch):
    out = place.outside / "scored.csv"
    data = cases.whole_tables()
    for seed in range(15):
        rng = np.random.default_rng([seed, 8])
        name = ("t.csv", "t.csv.gz", "s.arrow")[seed % 3]
        pipe = io.BytesIO(cases.mutated(data[name].data, rng))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(pipe)))
        with about(name, seed):
            format = ["--format", "arrow"] if name == "s.arrow" else []
            options = ["--model", place.table_model, "--out", out, "--quiet", *format]
            run(capfd, place, "score", "-", *options, out=out)


# ---------------------------------------------------------------------------------------------- model files


@pytest.mark.parametrize("kind", ["table_model", "array_model"])
def test_bad_models_are_refused_in_a_line(place, capfd, kind):
    whole = getattr(place, kind).read_bytes()
    tables = cases.whole_tables()
    table = put(place, tables["t.csv" if kind == "table_model" else "t.npy"])
    refused = 0
    for seed in range(30):
        rng = np.random.default_rng([seed, 9])
        with about(kind, seed):
            refused += run_model(capfd, place, cases.bad_model(whole, rng), table, seed).status == 1
    assert refused > 25


def run_model(capture, place, data, table, seed):
    """Run one of the commands that read a model."""
    model = put(place, cases.Bad("bad.rankad", data))
    command = ("inspect", "score", "explain", "report", "calibrate")[seed % 5]
    if command == "inspect":
        return run(capture, place, command, model)
    if command == "explain":
        return run(capture, place, command, table, "--model", model)
    name = {"score": "scored.csv", "report": "page.html", "calibrate": "new.rankad"}[command]
    out = place.outside / name
    return run(capture, place, command, table, "--model", model, "--out", out, out=out)
