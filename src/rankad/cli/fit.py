"""``rankad fit``: a table of normal rows to a model file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankad.cli.options import (
    AsJson,
    Delimiter,
    Format,
    Jobs,
    Quiet,
    Table,
    Verbose,
    check_file,
    checked_rate,
)

if TYPE_CHECKING:
    import polars as pl

    from rankad.cli.screen import Meter
    from rankad.modelfile import ModelCard
    from rankad.tables import TableDetector
    from rankad.tables.columns import Column

__all__ = ["described", "fit"]

_MOST_COLUMNS = 20


def fit(
    table: Table,
    model: Annotated[Path, typer.Option("--model", "-m", metavar="FILE", help="Where to save the model.")],
    alpha: Annotated[
        float,
        typer.Option(
            "--alpha",
            "-a",
            callback=checked_rate,
            metavar="RATE",
            help="False-alarm rate; another can be chosen at any time later.",
        ),
    ] = 0.05,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="COLUMN", help="A column that names rows; not learned from. Repeatable."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="COLUMN", help="A column to ignore. Repeatable.")
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            "--category",
            metavar="COLUMN",
            help="A column of categories even if they look like numbers, as zip codes. Repeatable.",
        ),
    ] = None,
    min_count: Annotated[
        int,
        typer.Option(
            "--min-count",
            min=1,
            metavar="N",
            help="Categories of fewer rows than these are taken together.",
        ),
    ] = 5,
    trim: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.49, metavar="SHARE", help="Share of the rows that may be anomalies; left out."
        ),
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Same seed, same model.")] = 0,
    without_rows: Annotated[
        bool,
        typer.Option("--without-rows", help="Keep no rows in the file: no explanations, no near field."),
    ] = False,
    jobs: Jobs = None,
    format: Format = None,
    delimiter: Delimiter = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Learn from a table of normal rows.

    Every column is used as what it looks like: numbers, categories, true or false, with or without missing
    values. No labels are needed, and nothing has to be tuned.
    """
    from rankad import RankAD
    from rankad._progress import told_to
    from rankad.cli.model import threads
    from rankad.cli.scan import of_table
    from rankad.cli.screen import metered
    from rankad.modelfile import read_card
    from rankad.tables import TableDetector

    check_file(model, "--model", [table])
    begun = time.monotonic()
    with metered(quiet) as meter:
        frame = _whole(table, format, delimiter, meter)
        detector = TableDetector(
            # A near field is made of rows.
            RankAD(alpha, near_field=not without_rows, trim=trim, random_state=seed, n_jobs=threads(jobs)),
            ids=ids or (),
            drop=drop or (),
            categories=category or (),
            min_count=min_count,
        )
        meter.begin("Learning")
        with told_to(meter.step), of_table("standard input" if table == "-" else table):
            detector.fit(frame)
        # How it was fitted here is nothing the model should remember.
        detector.detector_.n_jobs = None
        meter.begin("Saving")
        # Once more: much may have come to be there while it learned.
        check_file(model, "--model", [table])
        detector.save(model, rows=not without_rows)
    card = read_card(model)
    if as_json:
        _print_json(table, model, frame, detector, card, time.monotonic() - begun)
    elif not quiet:
        _print_text(table, model, frame, detector, card, time.monotonic() - begun)


def _whole(table: str, format: str | None, delimiter: str | None, meter: Meter) -> pl.DataFrame:
    """Read all of a table."""
    import polars as pl

    from rankad.cli.scan import warn_of_unused
    from rankad.detectors import RankAD
    from rankad.tables.files import check_unpacked, held_bytes, open_table

    with open_table(table, format=format, delimiter=delimiter) as reader:
        warn_of_unused(reader)
        if reader.unit == "rows" and reader.total is not None and 0 < reader.total < RankAD._least_rows:
            # Before any column is looked at, of which there may be a million.
            raise ValueError(
                f"{reader.name} has {reader.total} rows, and RankAD needs {RankAD._least_rows} or more to "
                f"learn from."
            )
        frames, held = [], 0
        meter.reading(reader, "Reading")
        for frame in reader:
            frames.append(frame)
            held += held_bytes(frame)
            check_unpacked(table, held)
            meter.reading(reader, "Reading")
        if not frames:
            raise ValueError(f"{reader.name} has column names but no rows; there is nothing to learn from.")
    return pl.concat(frames, how="vertical_relaxed")


def _print_json(
    table: str, model: Path, frame: pl.DataFrame, detector: TableDetector, card: ModelCard, spent: float
) -> None:
    from rankad.cli.words import as_json

    answer: dict[str, Any] = {
        "table": table,
        "model": str(model),
        "rows": frame.height,
        "columns": list(card.columns),
        "encoding": list(card.encoding),
        "alpha": card.alpha,
        "promise": detector.false_alarm_bound(),
        "selected": {"scaling": card.scaling, "bandwidth": card.bandwidth, "C": card.C},
        "sha256": card.sha256,
        "seconds": round(spent, 3),
    }
    typer.echo(as_json(answer))


def _print_text(
    table: str, model: Path, frame: pl.DataFrame, detector: TableDetector, card: ModelCard, spent: float
) -> None:
    from rankad.cli.screen import plain_table, screen
    from rankad.cli.words import cell, count, percent, promise, rows, size

    out = screen()
    name = "standard input" if table == "-" else table
    out.print(f"Learned from {rows(frame.height)} of {name} in {spent:.1f} s.\n", soft_wrap=True)
    columns = plain_table("column", "used as")
    encoder = detector.encoder_
    for names, used_as in _listed(encoder.columns):
        columns.add_row(names, used_as)
    for left_out, why in (
        *((i, "a name of rows, not used") for i in encoder.ids),
        *((i, "dropped") for i in encoder.dropped),
    ):
        columns.add_row(cell(left_out), why)
    out.print(columns, "")
    facts = plain_table("", "")
    facts.show_header = False
    if card.n_trimmed:
        facts.add_row("left out", f"{rows(card.n_trimmed)} that lie farthest from the others (--trim)")
    if card.selection is not None:
        facts.add_row(
            "selected",
            f"{card.scaling or 'no further'} scaling, kernel width {card.bandwidth:.3g}; best of "
            f"{count(len(card.selection.C))} settings tried",
        )
    facts.add_row(f"at {percent(card.alpha)}", promise(detector.false_alarm_bound()) + ".")
    out.print(facts, "")
    out.print(f"Saved {model} ({size(card.n_bytes)}).")
    out.print(f"Next: rankad score NEW_TABLE --model {model}", soft_wrap=True)


def _listed(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """Return what to say of columns; where there are many, alike ones together."""
    from rankad.cli.words import cell

    if len(columns) <= _MOST_COLUMNS:
        return [(cell(column.name), described(column)) for column in columns]
    alike: dict[str, list[str]] = {}
    for column in columns:
        alike.setdefault(described(column), []).append(cell(column.name))
    return [
        (", ".join(names[:3]) + (f" ... {names[-1]}" if len(names) > 3 else ""), f"{used_as} ({len(names)})")
        for used_as, names in alike.items()
    ]


def described(column: Column) -> str:
    """Say in a few words what a column is taken for."""
    from rankad.cli.words import cell
    from rankad.tables.columns import CategoryColumn, NumberColumn

    if isinstance(column, NumberColumn):
        kind = f"always {cell(column.median)}" if column.constant else "number"
        return f"{kind}, or missing" if column.missing else kind
    if isinstance(column, CategoryColumn):
        words = [cell(word) for word in column.categories if word is not None]
        shown = ", ".join(words[:5]) + (f" and {len(words) - 5} more" if len(words) > 5 else "")
        rare = (
            f"; {column.n_other} rare {'one' if column.n_other == 1 else 'ones'} taken together"
            if column.n_other
            else ""
        )
        missing = ", or missing" if None in column.categories else ""
        return ("true or false" if column.boolean else f"category: {shown}{rare}") + missing
    return "always missing; any value will be an alarm"
