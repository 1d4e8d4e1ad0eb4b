"""The command line of the studies here: the same options, the same data sets."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.quality.sets import SetFile, data_folder, find_sets
from benchmarks.quality.settings import ALARM_SEEDS, Study
from rankad.experiments.datasets import DatasetError

__all__ = ["parser", "read"]


def parser(prog: str, description: str | None, n_seeds: int) -> argparse.ArgumentParser:
    """Return what reads the options that need no data sets; see `read`."""
    made = argparse.ArgumentParser(prog=prog, description=description)
    made.add_argument("--out", type=Path, default=Path("results/quality"), help="folder of the results")
    made.add_argument("--quick", action="store_true", help="a cheap look: two sets, one split, few rows")
    made.add_argument(
        "--seeds", type=_count, default=n_seeds, help=f"splits to compare on (default: {n_seeds})"
    )
    made.add_argument("--jobs", type=_count, default=2, help="processes (default: 2)")
    return made


def read(
    arguments: Sequence[str] | None, prog: str, description: str | None, n_seeds: int
) -> tuple[Study, list[SetFile]]:
    """Return what a command line asks for, and the data sets; end with what is wrong, if anything is.

    Parameters
    ----------
    arguments : sequence of str or None
        None: those of the process.
    prog, description : str
        What the command is called and what it does.
    n_seeds : int
        Splits of every set, where none are asked for.
    """
    reader = parser(prog, description, n_seeds)
    reader.add_argument("--data", type=Path, help="folder of the data sets (default: RANKAD_DATA)")
    reader.add_argument(
        "--alarm-seeds",
        type=_count,
        default=ALARM_SEEDS,
        help=f"splits of every set to count false alarms on (default: {ALARM_SEEDS})",
    )
    given = reader.parse_args(arguments)
    try:
        folder = data_folder(given.data)
        study = Study(given.out, folder, given.seeds, given.jobs, given.quick, given.alarm_seeds)
        sets = find_sets(study.data)
    except DatasetError as error:
        reader.error(str(error))
    if study.quick:
        smallest = sorted(sets, key=lambda one: one.n_rows)[:2]
        sets = [one for one in sets if one in smallest]
    return study, sets


def _count(text: str) -> int:
    """Read a positive whole number."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return number
