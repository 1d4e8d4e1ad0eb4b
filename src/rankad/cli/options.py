"""Options that several commands share, and checks of what was given."""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from rankad._base.files import check_output, is_stream

if TYPE_CHECKING:
    from rankad.detectors.table import TableDetector
    from rankad.io.reader import TableReader
    from rankad.scoring.batches import Progress


def option(default: Any, spec: str, help: str, **limits: Any) -> Any:
    """Return a Typer option; the default ... means required, the spec is as in "--alpha -a RATE"."""
    names = [part for part in spec.split() if part.startswith("-")]
    metavar = spec.split()[-1] if len(names) < len(spec.split()) else None
    return typer.Option(default, *names, metavar=metavar, help=help, **limits)


def refuse(option: str, problem: str) -> typer.BadParameter:
    """Return the error to raise for an option."""
    return typer.BadParameter(problem, param_hint=option)


def checked_rate(value: float | None) -> float | None:
    """Return a rate strictly between 0 and 1, or None."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is not strictly between 0 and 1; for five per cent give 0.05")
    return value


def checked_share(value: str) -> float | str:
    """Return a share from 0 to below one half, or "auto"."""
    try:
        share = value if value == "auto" else float(value)
    except ValueError:
        share = -1.0
    if isinstance(share, float) and not 0 <= share < 0.5:
        raise refuse(
            "--trim",
            f"{value!r} is neither auto nor a share from 0 to below 0.5; for five per cent give 0.05",
        )
    return share


def check_json(out: str | None, as_json: bool) -> None:
    """Refuse rows and JSON on the same standard output."""
    if as_json and out == "-":
        raise refuse("--json", "standard output cannot take both rows and JSON; give --out FILE")


def check_file(
    path: str | os.PathLike[str],
    option: str,
    inputs: Iterable[str | os.PathLike[str]],
    *,
    streams: bool = False,
) -> None:
    """Refuse an output that must not be written: over an input, or unless `streams` to a device or pipe."""
    try:
        check_output(path, [given for given in inputs if os.fspath(given) != "-"])
    except OSError as error:
        raise refuse(option, str(error)) from error
    if is_stream(path) and not streams:
        raise refuse(option, f"{os.fspath(path)} is a device or a pipe; name a file")


TABLE = typer.Argument(
    metavar="TABLE",
    help="CSV, TSV, JSON (all also .gz, .zst), Parquet, Arrow, NumPy or Excel file; - is standard input.",
)
MODEL = option(..., "--model -m FILE", "The model file.")
JOBS = option(None, "--jobs -j N", "Threads. [default: all cores]", min=1)
AS_JSON = option(False, "--json", "Print one JSON object instead of text.")
QUIET = option(False, "--quiet -q", "No progress, no summary, no verdict; notes and errors are printed.")
NEUTRALIZE_FORMULAS = option(
    False,
    "--neutralize-formulas",
    "To CSV or TSV: put ' before text that a spreadsheet would take for a formula (it begins with = + - @, a "
    "tab or a line end, and is not a number). [default: rows are written as they are]",
)
_Columns = list[str] | None


@dataclass(frozen=True)
class Reading:
    """How the table is read."""

    format: str | None = option(
        None,
        "--format FORMAT",
        "Of TABLE: csv, tsv, jsonl, json, parquet, arrow, npy, npz or excel. [default: by its name]",
    )
    delimiter: str | None = option(None, "--delimiter CHAR", "Of CSV. [default: by its first line]")
    encoding: str | None = option(
        None,
        "--encoding NAME",
        "Of text: latin-1, cp1252, utf-16-le, ... [default: utf-8, or by the byte order mark]",
    )
    sheet: str | None = option(None, "--sheet NAME", "Of an Excel file. [default: the only one]")

    def open(self, table: str) -> TableReader:
        """Open the table."""
        from rankad.io.table_files import open_table

        return open_table(table, **vars(self))


def repeated(given: Mapping[str, Any]) -> str:
    """Return options as they were given, for a command to come.

    >>> repeated({"alpha": 0.01, "sheet": "May 2024", "encoding": None})
    " --alpha 0.01 --sheet 'May 2024'"
    """
    told = {name: value for name, value in given.items() if value is not None}
    return "".join(f" --{name} {shlex.quote(str(value))}" for name, value in told.items())


@dataclass(frozen=True)
class Rates:
    """Which rows are alarms."""

    alpha: float | None = option(
        None, "--alpha -a RATE", "False-alarm rate. [default: the model's]", callback=checked_rate
    )
    fdr: float | None = option(
        None,
        "--fdr RATE",
        "Instead of --alpha: the share of the alarms that may be false (Benjamini-Hochberg over the "
        "whole file, which is read twice).",
        callback=checked_rate,
    )

    def check(self, table: str) -> None:
        """Refuse two rates at once, and a false discovery rate of a table that cannot be read twice."""
        if self.alpha is not None and self.fdr is not None:
            raise refuse("--fdr", "give either --alpha or --fdr, not both")
        if self.fdr is not None and (table == "-" or is_stream(table)):
            what, not_ = ("the table", "-") if table == "-" else (table, "a pipe")
            raise refuse("--fdr", f"{what} is read twice, so it must be a file, not {not_}")

    def set_on(self, detector: TableDetector, table: str, reading: Reading, progress: Progress) -> float:
        """Set the detector's alpha, and return the largest p-value of an alarm."""
        from rankad.scoring.batches import set_rate

        return set_rate(detector, self.alpha, self.fdr, lambda: reading.open(table), progress)


@dataclass(frozen=True)
class Learning:
    """What the columns are, and how rows are learned from."""

    ids: _Columns = option(
        None, "--id COLUMN", "Columns that name rows; not learned from. As a,b or repeatedly."
    )
    drop: _Columns = option(None, "--drop COLUMN", "Columns to ignore. As a,b or repeatedly.")
    numbers: _Columns = option(
        None, "--number COLUMN", "Columns of numbers, whatever they look like; as --drop."
    )
    categories: _Columns = option(
        None,
        "--category COLUMN",
        "Columns of categories even if they look like numbers, as zip codes; as --drop.",
    )
    times: _Columns = option(
        None,
        "--time COLUMN",
        "Columns of dates or times, also as seconds since 1970 or days of Excel; as --drop.",
    )
    decimal: str | None = option(
        None, "--decimal MARK", "The decimal mark: , or . (by default cells decide)."
    )
    day_first: bool | None = option(
        None, "--day-first/--month-first", "Whether 03/04/2024 is in April (by default cells decide)."
    )
    missing: _Columns = option(
        None,
        "--missing VALUE",
        "A value that means missing, as -999: in all columns, or in one as COLUMN=VALUE. Repeatable.",
    )
    min_count: int = option(
        5,
        "--min-count N",
        "Categories with fewer rows are grouped together; so are those with fewer than one row in 200, "
        "unless the column is named with --category.",
        min=1,
    )
    seed: int = option(0, "--seed N", "Same seed, same model.", min=0, max=2**32 - 1)


def checked_engine(value: str | None) -> str | None:
    """Return the name of an engine, or None."""
    if value not in (None, "local", "dask", "spark"):
        raise typer.BadParameter(f"it must be local, dask or spark, got {value!r}")
    return value


@dataclass(frozen=True)
class Cluster:
    """Where rows that one machine cannot hold are worked on."""

    engine: str | None = option(
        None,
        "--engine NAME",
        "local, dask or spark: TABLE is a Parquet file, folder or URL (s3://...) that need not fit in "
        "memory. [default: none, TABLE is a file of any format]",
        callback=checked_engine,
    )
    address: str | None = option(
        None,
        "--address URL",
        "With --engine: Dask's scheduler (tcp://host:8786) or Spark's master (spark://host:7077, sc://host). "
        "[default: a cluster of this machine's cores]",
    )

    def check(self) -> None:
        """Refuse an address without an engine."""
        if self.address is not None and self.engine in (None, "local"):
            raise refuse("--address", "it goes with --engine dask or --engine spark")


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function for Typer: groups of options (dataclasses) become single ones, --verbose is added."""
    hints = get_type_hints(function)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    options = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            kinds = get_type_hints(groups[name])
            options += [(field.name, kinds[field.name], field.default) for field in fields(groups[name])]
        else:
            options.append((name, hints[name], parameter.default))
    options.append(("verbose", bool, option(False, "--verbose", "Show the traceback of an error.")))

    @wraps(function)
    def command(verbose: bool, **given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        function(**given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, keyword, default=value, annotation=kind) for name, kind, value in options]
    )
    command.__annotations__ = {name: kind for name, kind, _ in options}
    return command
