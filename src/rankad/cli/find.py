"""``rankad find``: the anomalies among the rows of one table, for which nobody vouches."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankad.cli.options import (
    AsJson,
    Category,
    DayFirst,
    Decimal,
    Delimiter,
    Drop,
    Encoding,
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
)

if TYPE_CHECKING:
    import polars as pl

    from rankad._base.arrays import Floats
    from rankad.cli.learning import Whole
    from rankad.detectors.table import TableDetector
    from rankad.scoring.answers import AnswerColumns
    from rankad.scoring.batches import Explained, Rows

__all__ = ["find"]


def find(
    table: Table,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where all rows go, with their p-values: .csv, .tsv, .jsonl, .parquet or .arrow; - is "
            "standard output. [default: only the most suspicious rows are shown]",
        ),
    ] = None,
    alpha: Annotated[
        float,
        typer.Option(
            "--alpha",
            "-a",
            callback=checked_rate,
            metavar="RATE",
            help="Share of the rows that may be alarms, at most.",
        ),
    ] = 0.05,
    top: Annotated[
        int, typer.Option("--top", "-n", min=1, metavar="N", help="How many of the most suspicious rows.")
    ] = 10,
    in_full: Annotated[
        bool, typer.Option("--explain", help="Show all reasons of these rows, as rankad explain does.")
    ] = False,
    reasons: Annotated[
        bool, typer.Option("--reasons", help="Add a column, reason, that says why an alarm is one.")
    ] = False,
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", metavar="FILE", help="Also save a model, to score new rows with."),
    ] = None,
    ids: Ids = None,
    drop: Drop = None,
    number: Number = None,
    category: Category = None,
    moment: Moment = None,
    decimal: Decimal = None,
    day_first: DayFirst = None,
    missing: Missing = None,
    min_count: MinCount = 5,
    seed: Seed = 0,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="Put before the names of the new columns: p_value, alarm.")
    ] = "",
    neutralize_formulas: Annotated[
        bool,
        typer.Option(
            "--neutralize-formulas",
            help="To CSV or TSV: put ' before text that a spreadsheet would take for a formula.",
        ),
    ] = False,
    jobs: Jobs = None,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find the anomalies in one table, without normal rows to learn from.

    Every row is judged by models that have not seen it, and those that look suspicious from the start do not
    teach the others. The p-value of a row is its place among all rows of the table, the least normal first:
    at most the share --alpha of the rows are alarms. How many of these are anomalies is for you to see.
    """
    from rankad import RankAD
    from rankad._base.progress import told_to
    from rankad.cli.learning import read_whole
    from rankad.cli.screen import metered
    from rankad.scoring.answers import AnswerColumns
    from rankad.scoring.batches import explained, of_table
    from rankad.scoring.loading import threads

    _check_use(table, out, model, as_json=as_json)
    begun = time.monotonic()
    with metered(quiet) as meter:
        read = read_whole(table, meter, format=format, delimiter=delimiter, encoding=encoding, sheet=sheet)
        with of_table(read.name):
            columns = AnswerColumns.beside(read.frame.columns, prefix, reasons=reasons, scores=False)
            detector = read.detector(
                RankAD(alpha, trim="auto", random_state=seed, n_jobs=threads(jobs)),
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
            meter.begin("Looking")
            with told_to(meter.step):
                p_values = detector.fit_p_values(read.rows)
        meter.begin("Explaining")
        found = explained(detector, _most_suspicious(read.frame, p_values, top), alpha)
        # Once more: much may have come to be there in the meantime.
        _check_use(table, out, model, as_json=as_json)
        if out is not None:
            answers = _answers(read, detector, p_values, columns, alpha)
            _write(read, table, out, detector, answers, neutralize=neutralize_formulas)
        if model is not None:
            # How it was fitted here is nothing the model should remember.
            detector.detector_.n_jobs = None
            detector.save(model)
    n_alarms, spent = int((p_values <= alpha).sum()), time.monotonic() - begun
    if as_json:
        _print_json(table, out, model, detector, alpha, n_alarms, found, spent)
    elif not quiet:
        _print_text(table, out, model, detector, alpha, n_alarms, found, in_full=in_full)


def _check_use(table: str, out: str | None, model: Path | None, *, as_json: bool) -> None:
    """Refuse outputs that must not be written, before any work is done and again after it."""
    if as_json and out == "-":
        raise typer.BadParameter(
            "standard output cannot take both rows and JSON; give --out FILE", param_hint="--json"
        )
    if out is not None and out != "-":
        check_file(out, "--out", [table], streams=True)
        if model is not None and os.path.realpath(out) == os.path.realpath(model):
            raise typer.BadParameter(f"{model} is also written to; name another file", param_hint="--model")
    if model is not None:
        check_file(model, "--model", [table])


def _most_suspicious(frame: pl.DataFrame, p_values: Floats, top: int) -> Rows:
    """Return the rows with the least p-values, the least first; of equal ones, the earlier."""
    import numpy as np

    from rankad.scoring.batches import Rows

    at = np.argsort(p_values, kind="stable")[:top]
    # Their place is all that is known of them, so it is their score as well.
    return Rows(frame[at], at + 1, p_values[at], p_values[at])


def _write(
    read: Whole, table: str, out: str, detector: TableDetector, answers: pl.DataFrame, *, neutralize: bool
) -> None:
    """Write all rows as they came, with what was found."""
    from rankad.io.files import as_numbers, open_output
    from rankad.scoring.files import numbers_of, out_format, stays_text

    format = out_format(out, read.format)
    as_text = stays_text(read.format, format)
    frame = read.frame if as_text else as_numbers(read.frame, numbers_of(detector))
    with open_output(
        out,
        format=format,
        # What was separated by semicolons stays so.
        delimiter=read.delimiter if format == read.format == "csv" else None,
        inputs=[] if table == "-" else [table],
        neutralize_formulas=neutralize,
    ) as writer:
        writer.write(frame.hstack(answers))


def _answers(
    read: Whole, detector: TableDetector, p_values: Floats, columns: AnswerColumns, alpha: float
) -> pl.DataFrame:
    """Return the new columns."""
    from rankad.scoring.answers import reasons_of
    from rankad.scoring.batches import Batch

    alarms = p_values <= alpha
    batch = Batch(read.frame, p_values, p_values, 0, None)
    said = reasons_of(detector, batch, alarms, int(alarms.sum()), alpha) if columns.reason else ()
    return columns.of(batch, alarms, said).drop(columns.score)


def _promise(n_rows: int, alpha: float) -> str:
    """Say in a line what the p-values mean."""
    from rankad.cli.words import percent, rows

    return (
        f"A p-value is the row's place among the {rows(n_rows)} of this table. At most {percent(alpha)} of "
        f"them are alarms, and as many would be if none were an anomaly: how many are is for you to see."
    )


def _print_json(
    table: str,
    out: str | None,
    model: Path | None,
    detector: TableDetector,
    alpha: float,
    n_alarms: int,
    found: Sequence[Explained],
    spent: float,
) -> None:
    from rankad.cli.explain import as_dict
    from rankad.cli.words import as_json

    inner: Any = detector.detector_
    n_rows = detector.encoder_.n_rows
    answer = {
        "table": table,
        "out": out,
        "model": None if model is None else str(model),
        "rows": n_rows,
        "alarms": n_alarms,
        "alpha": alpha,
        "kept_from_training": len(inner.trimmed_rows_),
        "promise": _promise(n_rows, alpha),
        "understood": list(detector.encoder_.notes),
        "most_suspicious": [as_dict(each, alpha) for each in found],
        "seconds": round(spent, 3),
    }
    typer.echo(as_json(answer))


def _print_text(
    table: str,
    out: str | None,
    model: Path | None,
    detector: TableDetector,
    alpha: float,
    n_alarms: int,
    found: Sequence[Explained],
    *,
    in_full: bool,
) -> None:
    from rankad.cli.explain import print_explained
    from rankad.cli.screen import rows_table, screen
    from rankad.cli.words import alarms, percent, rows

    console = screen(stderr=out == "-")
    console.print("The most suspicious rows:\n")
    if in_full:
        for each in found:
            print_explained(console, each, alpha)
    else:
        console.print(rows_table(found, alpha), "")
    n_rows = detector.encoder_.n_rows
    console.print(f"{rows(n_rows)}, {alarms(n_alarms)} at {percent(alpha)}. {_promise(n_rows, alpha)}")
    if out is None:
        console.print(f"\nAll rows: rankad find {table} --out found.csv", soft_wrap=True)
    elif out != "-":
        console.print(f"Wrote {out}.", soft_wrap=True)
    if model is not None:
        console.print(f"Saved {model}. Next: rankad score NEW_TABLE --model {model}", soft_wrap=True)
