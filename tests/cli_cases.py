"""What the tests of the command share: a way to call it, and tables to call it on."""

import csv
import os
import sys
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from rankad import RankAD, TableDetector
from rankad.cli import main
from rankad.cli.example import make_example, write_table
from rankad.tables import Untyped

QUICK = {"landmarks": 20, "scaling": "standard", "bandwidth": "D_K", "C": 0.1, "random_state": 0}
# What a subprocess runs: the command, as the installed script does.
SCRIPT = [sys.executable, "-c", "from rankad.cli import main; main()"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


class Said(NamedTuple):
    """How a call ended."""

    status: int
    out: str
    err: str


def call(capsys, *arguments):
    """Run the command in this process."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return Said(ended.value.code, *capsys.readouterr())


class Files(NamedTuple):
    """Tables and a model fitted on one of them."""

    folder: Path
    normal: Path
    new: Path
    model: Path


def make_files(folder):
    """Write readings of a pump and a model that was fitted in Python."""
    example = make_example(300, 120, seed=1)
    files = Files(folder, folder / "normal.csv", folder / "new.csv", folder / "pump.rankad")
    write_table(files.normal, example.normal)
    write_table(files.new, example.new)
    detector = TableDetector(RankAD(0.05, **QUICK), ids=["reading"])
    detector.fit(Untyped(read_text(files.normal))).save(files.model)
    return files


def save_without_rows(files, path):
    """Save a model of the same table, without rows."""
    detector = TableDetector(RankAD(0.05, **QUICK, near_field=False), ids=["reading"])
    detector.fit(Untyped(read_text(files.normal))).save(path, rows=False)
    return path


def read_text(path):
    """Read a CSV file as the command does: every cell as text."""
    return pl.read_csv(path, infer_schema=False)


def cells(path, delimiter=","):
    """Read the cells of a CSV file by Python's own reader."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))
