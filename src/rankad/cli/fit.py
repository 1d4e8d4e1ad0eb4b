"""``rankad fit``: a table of normal rows to a model file."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankad.cli.options import (
    Address,
    AsJson,
    Category,
    DayFirst,
    Decimal,
    Delimiter,
    Drop,
    Encoding,
    Engine,
    Format,
    Ids,
    Jobs,
    MinCount,
    Missing,
    Moment,
    Number,
    Quiet,
    Seed,
    Sheet,
    Table,
    Verbose,
    check_file,
    checked_rate,
    checked_share,
)

if TYPE_CHECKING:
    from rankad.detectors.table import TableDetector
    from rankad.modelfile import ModelCard
    from rankad.tables.encoded_columns import Column
    from rankad.tables.stored import Note

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
    ids: Ids = None,
    drop: Drop = None,
    number: Number = None,
    category: Category = None,
    moment: Moment = None,
    decimal: Decimal = None,
    day_first: DayFirst = None,
    missing: Missing = None,
    min_count: MinCount = 5,
    trim: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="Share of the rows that may be anomalies, which is left out; auto where nobody knows it.",
        ),
    ] = "0",
    seed: Seed = 0,
    without_rows: Annotated[
        bool,
        typer.Option("--without-rows", help="Keep no rows in the file: no explanations, no near field."),
    ] = False,
    jobs: Jobs = None,
    engine: Engine = None,
    address: Address = None,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Learn from a table of normal rows.

    Every column is used as what it looks like: numbers, categories, times, true or false, with or without
    missing values. Where that is a guess, a note names the column and the option that settles it. No labels
    are needed, and nothing has to be tuned.
    """
    from rankad import RankAD
    from rankad._base.progress import told_to
    from rankad.cli.engines import columns_of, fit_by_engine
    from rankad.cli.learning import read_whole
    from rankad.cli.screen import metered
    from rankad.modelfile import read_card
    from rankad.scoring.batches import of_table
    from rankad.scoring.loading import threads

    check_file(model, "--model", [table])
    share = checked_share(trim)
    begun = time.monotonic()
    with metered(quiet) as meter:
        if engine is None:
            read = read_whole(
                table, meter, format=format, delimiter=delimiter, encoding=encoding, sheet=sheet
            )
        else:
            read = columns_of(table)
        n_rows = read.frame.height
        detector = read.detector(
            # A near field is made of rows.
            RankAD(alpha, near_field=not without_rows, trim=share, random_state=seed, n_jobs=threads(jobs)),
            ids=ids,
            drop=drop,
            numbers=number,
            categories=category,
            times=moment,
            missing=missing,
            decimal=decimal,
            day_first=day_first,
            min_count=min_count,
        )
        meter.begin("Learning")
        with told_to(meter.step), of_table("standard input" if table == "-" else table):
            if engine is not None:
                detector, n_rows = fit_by_engine(detector, table, engine, address)
            else:
                learned = detector._learn(read.rows)
                # Text takes far more memory than the numbers that were read from it.
                del read
                detector._fit_learned(learned)
                del learned
        # How it was fitted here is nothing the model should remember.
        detector.detector_.n_jobs = None
        meter.begin("Saving")
        # Once more: much may have come to be there while it learned.
        check_file(model, "--model", [table])
        detector.save(model, rows=not without_rows)
    card = read_card(model)
    if as_json:
        _print_json(table, model, n_rows, detector, card, time.monotonic() - begun)
    elif not quiet:
        _print_text(table, model, n_rows, detector, card, time.monotonic() - begun)


def _print_json(
    table: str, model: Path, n_rows: int, detector: TableDetector, card: ModelCard, spent: float
) -> None:
    from rankad.cli.words import as_json

    answer: dict[str, Any] = {
        "table": table,
        "model": str(model),
        "rows": n_rows,
        "columns": list(card.columns),
        "encoding": list(card.encoding),
        "understood": list(detector.encoder_.notes),
        "alpha": card.alpha,
        "promise": detector.false_alarm_bound(),
        "selected": {"scaling": card.scaling, "bandwidth": card.bandwidth, "C": card.C},
        "sha256": card.sha256,
        "seconds": round(spent, 3),
    }
    typer.echo(as_json(answer))


def _print_text(
    table: str, model: Path, n_rows: int, detector: TableDetector, card: ModelCard, spent: float
) -> None:
    from rankad._base.wording import cell, count
    from rankad.cli.screen import plain_table, screen
    from rankad.cli.words import percent, promise, rows, size

    out = screen()
    name = "standard input" if table == "-" else table
    out.print(f"Learned from {rows(n_rows)} of {name} in {spent:.1f} s.\n", soft_wrap=True)
    columns = plain_table("column", "used as", "how sure")
    encoder = detector.encoder_
    notes = {note.name: note for note in encoder.notes}
    for names, used_as, sure in _listed(encoder.columns, {name: note.sure for name, note in notes.items()}):
        columns.add_row(names, used_as, sure)
    for left_out, why in (
        *((i, "a name of rows, not used") for i in encoder.ids),
        *((i, "free text, not used" if i in notes else "dropped") for i in encoder.dropped),
    ):
        columns.add_row(cell(left_out), why, notes[left_out].sure if left_out in notes else "as asked for")
    out.print(columns, "")
    n_doubts = sum(bool(note.doubt) for note in encoder.notes)
    if n_doubts:
        which = "One column" if n_doubts == 1 else f"{count(n_doubts)} columns"
        out.print(
            f"{which} may be something else than {'it looks' if n_doubts == 1 else 'they look'}: see the "
            f"notes, which name the option that settles it. To confirm: {_confirming(encoder.notes)}\n",
            soft_wrap=True,
        )
    facts = plain_table("", "")
    facts.show_header = False
    if card.n_trimmed:
        what = "kept from training" if card.parameters["trim"] == "auto" else "left out"
        facts.add_row(what, f"{rows(card.n_trimmed)} that lie farthest from the others (--trim)")
    if card.selection is not None and card.bandwidth is not None:
        facts.add_row(
            "selected",
            f"{card.scaling or 'no further'} scaling, kernel width {card.bandwidth:.3g}; best of "
            f"{count(len(card.selection.C))} settings tried",
        )
    facts.add_row(f"at {percent(card.alpha)}", promise(detector.false_alarm_bound()) + ".")
    out.print(facts, "")
    out.print(f"Saved {model} ({size(card.n_bytes)}).")
    out.print(f"Next: rankad score NEW_TABLE --model {model}", soft_wrap=True)


def _confirming(notes: Sequence[Note]) -> str:
    """Return the options that say of every column in doubt that it is what it was taken for."""
    from rankad._base.wording import cell

    alike: dict[str, list[str]] = {}
    for note in notes:
        if note.doubt:
            alike.setdefault("drop" if note.kind == "text" else note.kind, []).append(cell(note.name))
    return " ".join(f"--{kind} {shlex.quote(','.join(names))}" for kind, names in alike.items())


def _listed(columns: Sequence[Column], sure: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return what to say of columns, and how sure it is; where there are many, alike ones together."""
    from rankad._base.wording import cell

    if len(columns) <= _MOST_COLUMNS:
        return [(cell(column.name), described(column), sure.get(column.name, "")) for column in columns]
    alike: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        alike.setdefault((described(column), sure.get(column.name, "")), []).append(cell(column.name))
    return [
        (
            ", ".join(names[:3]) + (f" ... {names[-1]}" if len(names) > 3 else ""),
            f"{used_as} ({len(names)})",
            how_sure,
        )
        for (used_as, how_sure), names in alike.items()
    ]


def described(column: Column) -> str:
    """Say in a few words what a column is taken for."""
    from rankad._base.wording import cell
    from rankad.tables.encoded_columns import CategoryColumn, NumberColumn, TimeColumn

    if isinstance(column, NumberColumn):
        kind = f"always {cell(column.median)}" if column.constant else "number"
        if column.values:
            few = ", ".join(cell(value) for value in column.values[:5])
            kind = f"number, one of {few}" + (
                f" and {len(column.values) - 5} more" if column.values[5:] else ""
            )
        elif column.wall:
            kind = f"number, {'above zero' if column.wall == 'positive' else 'zero or above'}"
        if written := column.format.describe():
            kind += f", {written}"
        if column.odd_words:
            kind += f"; {', '.join(cell(word) for word in column.odd_words[:3])} taken as missing"
        return f"{kind}, or missing" if column.missing else kind
    if isinstance(column, TimeColumn):
        names = {"hour": "hour of the day", "weekday": "weekday", "month": "season"}
        parts = ", ".join(names[part] for part in column.parts)
        kind = f"time: {parts}" if parts else "time, nothing learned from it (too short a span)"
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
