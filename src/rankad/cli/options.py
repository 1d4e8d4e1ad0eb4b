"""Options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from rankad._base.files import check_output, is_stream

__all__ = [
    "Address",
    "Alpha",
    "AsJson",
    "Category",
    "DayFirst",
    "Decimal",
    "Delimiter",
    "DiscoveryRate",
    "Drop",
    "Encoding",
    "Engine",
    "Format",
    "Ids",
    "Jobs",
    "MinCount",
    "Missing",
    "Model",
    "Moment",
    "Number",
    "Quiet",
    "Seed",
    "Sheet",
    "Table",
    "Verbose",
    "check_file",
    "check_rates",
    "checked_engine",
    "checked_rate",
    "checked_share",
]


def checked_rate(value: float | None) -> float | None:
    """Return a rate strictly between 0 and 1, or None; anything else is a misuse."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is not strictly between 0 and 1; for five per cent give 0.05")
    return value


def checked_share(value: str) -> float | str:
    """Return a share from 0 to below one half, or "auto"; anything else is a misuse."""
    try:
        share = value if value == "auto" else float(value)
    except ValueError:
        share = -1.0
    if isinstance(share, float) and not 0 <= share < 0.5:
        raise typer.BadParameter(
            f"{value!r} is neither auto nor a share from 0 to below 0.5; for five per cent give 0.05",
            param_hint="--trim",
        )
    return share


def checked_engine(value: str | None) -> str | None:
    """Return the name of an engine, or None; anything else is a misuse."""
    if value not in (None, "local", "dask", "spark"):
        raise typer.BadParameter(f"{value!r} is none of local, dask and spark")
    return value


def check_rates(table: str, alpha: float | None, fdr: float | None) -> None:
    """Refuse two rates at once, and a rate of false discoveries of a table that cannot be read twice."""
    if alpha is not None and fdr is not None:
        raise typer.BadParameter("give either --alpha or --fdr, not both", param_hint="--fdr")
    if fdr is not None and (table == "-" or is_stream(table)):
        raise typer.BadParameter(
            f"{'the table' if table == '-' else table} is read twice, so it must be a file, not "
            f"{'-' if table == '-' else 'a pipe'}",
            param_hint="--fdr",
        )


def check_file(
    path: str | os.PathLike[str],
    option: str,
    inputs: Iterable[str | os.PathLike[str]],
    *,
    streams: bool = False,
) -> None:
    """Refuse a file that must not be written, before any work is done.

    Parameters
    ----------
    path : str or path
    option : str
        Where it was given.
    inputs : iterable of str or path
        Files that are read; - is standard input.
    streams : bool
        Whether it may be a device or a pipe.
    """
    try:
        check_output(path, [given for given in inputs if os.fspath(given) != "-"])
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
    if is_stream(path) and not streams:
        raise typer.BadParameter(f"{os.fspath(path)} is a device or a pipe; name a file", param_hint=option)


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, JSON (all also .gz, .zst), Parquet, Arrow, NumPy or Excel file; - is standard input.",
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
DiscoveryRate = Annotated[
    float | None,
    typer.Option(
        "--fdr",
        callback=checked_rate,
        metavar="RATE",
        help="Instead of --alpha: the share of the alarms that may be false (Benjamini-Hochberg over the "
        "whole file, which is read twice).",
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
        help="Of TABLE: csv, tsv, jsonl, json, parquet, arrow, npy, npz or excel. [default: by its name]",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHAR", help="Of CSV. [default: by its first line]"),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Of text: latin-1, cp1252, utf-16-le, ... [default: utf-8, or by the file's mark]",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option("--sheet", metavar="NAME", help="Of an Excel file. [default: the only one]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the trace of an error.")]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--id", metavar="COLUMN", help="Columns that name rows; not learned from. As a,b or repeatedly."
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="Columns to ignore. As a,b or repeatedly."),
]
Number = Annotated[
    list[str] | None,
    typer.Option(
        "--number", metavar="COLUMN", help="Columns of numbers, whatever they look like; as --drop."
    ),
]
Category = Annotated[
    list[str] | None,
    typer.Option(
        "--category",
        metavar="COLUMN",
        help="Columns of categories even if they look like numbers, as zip codes; as --drop.",
    ),
]
Moment = Annotated[
    list[str] | None,
    typer.Option(
        "--time",
        metavar="COLUMN",
        help="Columns of dates or times, also as seconds since 1970 or days of Excel; as --drop.",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal", metavar="MARK", help="What stands before decimals: , or . (by default cells decide)."
    ),
]
DayFirst = Annotated[
    bool | None,
    typer.Option(
        "--day-first/--month-first", help="Whether 03/04/2024 is in April (by default cells decide)."
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="VALUE",
        help="What stands for a missing value, as -999: in all columns, or in one as COLUMN=VALUE. Can be "
        "repeated.",
    ),
]
MinCount = Annotated[
    int,
    typer.Option(
        "--min-count",
        min=1,
        metavar="N",
        help="Categories of fewer rows than these are taken together.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Same seed, same model.")]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        callback=checked_engine,
        metavar="NAME",
        help="local, dask or spark: TABLE is a Parquet file, folder or URL (s3://...) that need not fit in "
        "memory. [default: none, TABLE is a file of any format]",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="URL",
        help="With --engine: Dask's scheduler (tcp://host:8786) or Spark's master (spark://host:7077, "
        "sc://host). [default: a cluster of this machine's cores]",
    ),
]
