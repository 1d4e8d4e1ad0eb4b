"""Options that several commands have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Alpha",
    "AsJson",
    "Delimiter",
    "Format",
    "Jobs",
    "Model",
    "Quiet",
    "Table",
    "Verbose",
    "check_folder",
    "checked_rate",
]


def checked_rate(value: float | None) -> float | None:
    """Return a rate strictly between 0 and 1, or None; anything else is a misuse."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is not strictly between 0 and 1; for five per cent give 0.05")
    return value


def check_folder(path: str | os.PathLike[str], option: str) -> None:
    """Refuse a file in a folder that is not there, before any work is done."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"there is no folder {folder}", param_hint=option)


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, JSON lines (all also .gz, .zst), Parquet, Arrow or NumPy file; - is standard input.",
    ),
]
Model = Annotated[Path, typer.Option("--model", "-m", metavar="FILE", help="The model file.")]
Alpha = Annotated[
    float | None,
    typer.Option(
        "--alpha",
        "-a",
        callback=checked_rate,
        metavar="RATE",
        help="False-alarm rate. [default: the model's]",
    ),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Threads. [default: all cores]")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Of TABLE: csv, tsv, jsonl, parquet, arrow, npy or npz. [default: by its name]",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHAR", help="Of CSV. [default: by its first line]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the trace of an error.")]
