"""``rankad score``: every row of a table with its p-value."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankad._base.files import is_stream
from rankad.cli.options import (
    Address,
    Alpha,
    Delimiter,
    DiscoveryRate,
    Encoding,
    Engine,
    Format,
    Jobs,
    Model,
    Quiet,
    Sheet,
    Table,
    Verbose,
    check_file,
    check_rates,
)

if TYPE_CHECKING:
    from rankad.scoring.files import ScoredFile, ScorePlan

__all__ = ["score"]

_ALARMS = 3


def score(
    table: Table,
    model: Model,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where the rows go: .csv, .tsv, .jsonl, .parquet or .arrow; - is standard output. "
            "[default: standard output; on a terminal, only the most abnormal rows are shown]",
        ),
    ] = None,
    alpha: Alpha = None,
    fdr: DiscoveryRate = None,
    alarms_only: Annotated[bool, typer.Option("--alarms-only", help="Write the alarms alone.")] = False,
    sort: Annotated[
        bool, typer.Option("--sort", help="Most abnormal rows first; holds all rows written in memory.")
    ] = False,
    reasons: Annotated[
        bool,
        typer.Option(
            "--reasons",
            help="Add a column, reason, that says in words why an alarm is one: for the first 10,000 alarms, "
            "at a millisecond or so each.",
        ),
    ] = False,
    fail_on_alarm: Annotated[
        bool, typer.Option("--fail-on-alarm", help="Exit with status 3 if there is any alarm.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on where an interrupted run of the same command was; to CSV or JSON lines."
        ),
    ] = False,
    prefix: Annotated[
        str,
        typer.Option(metavar="TEXT", help="Put before the names of the new columns: p_value, score, alarm."),
    ] = "",
    neutralize_formulas: Annotated[
        bool,
        typer.Option(
            "--neutralize-formulas",
            help="To CSV or TSV: put ' before text that a spreadsheet would take for a formula (it begins "
            "with = + - @, a tab or a line end, and is no number). [default: rows come out as they came in]",
        ),
    ] = False,
    jobs: Jobs = None,
    engine: Engine = None,
    address: Address = None,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Give every row a p-value; small ones are alarms.

    Rows come out as they came in, with three columns more: p_value (small is abnormal), score (low is
    abnormal) and alarm (true or false). If the table as a whole is not like normal rows, that is said first,
    with the column that is to blame. Memory stays small whatever the size of the file.
    """
    from rankad.cli.screen import metered, screen
    from rankad.scoring.files import ScorePlan, carry_out

    if engine is not None:
        from rankad.cli.engines import score_command

        unknown = {"--fdr": fdr, "--alarms-only": alarms_only, "--sort": sort, "--reasons": reasons}
        given = [name for name, value in {**unknown, "--resume": resume}.items() if value]
        n_alarms = score_command(table, model, out, engine, address, alpha, prefix, given, as_json, quiet)
        raise typer.Exit(_ALARMS if fail_on_alarm and n_alarms else 0)
    _check_use(table, model, out, alpha, fdr, sort=sort, resume=resume, as_json=as_json)
    # Rows are not poured over a terminal unless asked for.
    nowhere = out is None and (as_json or sys.stdout.isatty())
    plan = ScorePlan(
        table,
        model,
        None if nowhere else out or "-",
        alpha=alpha,
        fdr=fdr,
        alarms_only=alarms_only,
        sort=sort,
        resume=resume,
        reasons=reasons,
        prefix=prefix,
        neutralize_formulas=neutralize_formulas,
        format=format,
        delimiter=delimiter,
        encoding=encoding,
        sheet=sheet,
    )
    with metered(quiet or (plan.to_stdout and sys.stdout.isatty())) as meter:
        outcome = carry_out(plan, jobs, progress=meter.reading, tell=screen(stderr=True).print)
    if as_json:
        _print_json(plan, outcome)
    elif not quiet:
        _print_text(plan, outcome)
    if fail_on_alarm and outcome.n_alarms:
        raise typer.Exit(_ALARMS)


def _check_use(
    table: str,
    model: Path,
    out: str | None,
    alpha: float | None,
    fdr: float | None,
    *,
    sort: bool,
    resume: bool,
    as_json: bool,
) -> None:
    """Refuse options that do not go together."""
    check_rates(table, alpha, fdr)
    # What is read from the middle cannot be a pipe.
    once = table == "-" or is_stream(table)
    if as_json and out == "-":
        raise typer.BadParameter(
            "standard output cannot take both rows and JSON; give --out FILE", param_hint="--json"
        )
    if out not in (None, "-"):
        check_file(out, "--out", [table, model], streams=True)
    if resume and (out in (None, "-") or once):
        raise typer.BadParameter(
            f"works from a file to a file: give TABLE and --out FILE, not {table if once else out or 'none'}",
            param_hint="--resume",
        )
    if resume and sort:
        raise typer.BadParameter(
            "a table that is to be sorted cannot be written in parts", param_hint="--resume"
        )


def _print_json(plan: ScorePlan, outcome: ScoredFile) -> None:
    from rankad.cli.words import as_json, verdict_json

    answer = {
        "table": plan.table,
        "model": str(plan.model),
        "out": plan.out,
        "rows": outcome.n_rows,
        "alarms": outcome.n_alarms,
        "alpha": outcome.alpha if plan.fdr is None else None,
        "fdr": plan.fdr,
        "largest_p_value_of_alarms": outcome.level,
        "expected_false_alarms": _expected(plan, outcome),
        "strange_rows": outcome.n_strange,
        "verdict": verdict_json(outcome.verdict),
    }
    typer.echo(as_json(answer))


def _expected(plan: ScorePlan, outcome: ScoredFile) -> float:
    """Return the mean number of false alarms: if all rows are normal, or at most, for false discoveries."""
    return outcome.alpha * outcome.n_rows if plan.fdr is None else plan.fdr * outcome.n_alarms


def _print_text(plan: ScorePlan, outcome: ScoredFile) -> None:
    from rankad._base.wording import cell
    from rankad.cli.screen import print_verdict, rows_table, screen
    from rankad.cli.words import alarms, percent, rows, summary

    out = screen(stderr=plan.to_stdout)
    print_verdict(out, outcome.verdict, partly=outcome.partly)
    if outcome.most:
        out.print("The most abnormal rows:\n")
        out.print(rows_table(outcome.most, outcome.level), "")
    if plan.fdr is None:
        out.print(summary(outcome.verdict.overall))
    else:
        out.print(
            f"{rows(outcome.n_rows)}, {alarms(outcome.n_alarms)} with a false discovery rate of "
            f"{percent(plan.fdr)}: of these, no more than {cell(_expected(plan, outcome), 2)} are expected "
            f"to be false."
        )
    if outcome.n_strange:
        what = "has a cell" if outcome.n_strange == 1 else "have a cell"
        out.print(f"{rows(outcome.n_strange)} {what} such as no normal row had; rankad explain names it.")
    if plan.out is None:
        out.print(
            f"\nAll rows: rankad score {plan.table} --model {plan.model} --out scored.csv", soft_wrap=True
        )
    elif not plan.to_stdout:
        out.print(f"Wrote {plan.out}.", soft_wrap=True)
        out.print(f"Next: rankad explain {plan.table} --model {plan.model}", soft_wrap=True)
