"""``rankad score``: every row of a table with its p-value."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankad._base.files import is_stream
from rankad._base.wording import cell, counted
from rankad.cli import options as opt
from rankad.cli.console import console, metered, print_verdict, rows_table
from rankad.cli.messages import alarms, percent, summary, to_json, verdict_json

if TYPE_CHECKING:
    from rankad.scoring.score_file import ScoredFile, ScorePlan


_STATUS_ALARMS = 3


def score(
    table: str = opt.TABLE,
    model: Path = opt.MODEL,
    out: str | None = opt.option(
        None,
        "--out -o FILE",
        "Where the rows go: .csv, .tsv, .jsonl, .parquet or .arrow; - is standard output. [default: "
        "standard output; on a terminal, only the most abnormal rows are shown]",
    ),
    *,
    rates: opt.Rates,
    alarms_only: bool = opt.option(False, "--alarms-only", "Write the alarms alone."),
    sort: bool = opt.option(False, "--sort", "Most abnormal rows first; holds all rows written in memory."),
    reasons: bool = opt.option(
        False,
        "--reasons",
        "Add a column, reason, that says in words why a row is an alarm: for the first 10,000 alarms, at "
        "a millisecond or so each.",
    ),
    fail_on_alarm: bool = opt.option(False, "--fail-on-alarm", "Exit with status 3 if there is any alarm."),
    resume: bool = opt.option(
        False, "--resume", "Continue an interrupted run of the same command; to CSV or JSON lines."
    ),
    prefix: str = opt.option(
        "", "--prefix TEXT", "Put before the names of the new columns: p_value, score, alarm."
    ),
    neutralize_formulas: bool = opt.NEUTRALIZE_FORMULAS,
    jobs: int | None = opt.JOBS,
    cluster: opt.Cluster,
    reading: opt.Reading,
    as_json: bool = opt.option(False, "--json", "Print the summary as one JSON object."),
    quiet: bool = opt.QUIET,
) -> None:
    """Give every row a p-value; small ones are alarms.

    Rows come out as they came in, with three columns more: p_value (small is abnormal), score (low is
    abnormal) and alarm (true or false). If the table as a whole is not like normal rows, that is said first,
    with the column that is to blame. Memory stays small whatever the size of the file.
    """
    from rankad.scoring.score_file import score_file

    cluster.check()
    if cluster.engine is not None:
        from rankad.cli.engines import score_command

        unknown = {"--fdr": rates.fdr, "--alarms-only": alarms_only, "--sort": sort, "--reasons": reasons}
        refused = [name for name, value in {**unknown, "--resume": resume}.items() if value]
        n_alarms = score_command(
            table, model, out, cluster, rates.alpha, prefix, refused, as_json=as_json, quiet=quiet
        )
        raise typer.Exit(_STATUS_ALARMS if fail_on_alarm and n_alarms else 0)
    rates.check(table)
    _check_outputs(table, model, out, sort=sort, resume=resume, as_json=as_json)
    # Rows are not printed to a terminal unless asked for.
    nowhere = out is None and (as_json or sys.stdout.isatty())
    out = None if nowhere else out or "-"
    options: dict[str, Any] = dict(
        alarms_only=alarms_only,
        sort=sort,
        resume=resume,
        reasons=reasons,
        prefix=prefix,
        neutralize_formulas=neutralize_formulas,
        **vars(rates),
        **vars(reading),
    )
    notify = console(stderr=True).print
    with metered(quiet or (out == "-" and sys.stdout.isatty())) as meter:
        scored = score_file(table, model, out, n_jobs=jobs, progress=meter.reading, notify=notify, **options)
    if as_json:
        _print_json(scored)
    elif not quiet:
        _print_text(scored)
    if fail_on_alarm and scored.n_alarms:
        raise typer.Exit(_STATUS_ALARMS)


def _check_outputs(
    table: str, model: Path, out: str | None, *, sort: bool, resume: bool, as_json: bool
) -> None:
    """Refuse outputs that must not be written, and options that exclude each other."""
    opt.check_json(out, as_json)
    if out not in (None, "-"):
        opt.check_file(out, "--out", [table, model], streams=True)
    # A pipe cannot be read from the middle.
    once = table == "-" or is_stream(table)
    if resume and (out in (None, "-") or once):
        wrong = f"the table is {table}" if once else "there is no --out" if out is None else f"--out is {out}"
        raise opt.refuse("--resume", f"it needs a table in a file and --out FILE, but {wrong}")
    if resume and sort:
        raise opt.refuse("--resume", "a sorted table cannot be written in parts")


def _print_json(scored: ScoredFile) -> None:
    plan = scored.plan
    answer = {
        "table": plan.table,
        "model": str(plan.model),
        "out": plan.out,
        "rows": scored.n_rows,
        "alarms": scored.n_alarms,
        "alpha": scored.alpha if plan.fdr is None else None,
        "fdr": plan.fdr,
        "largest_p_value_of_alarms": scored.level,
        "expected_false_alarms": _expected(scored),
        "strange_rows": scored.n_strange,
        "verdict": verdict_json(scored.verdict),
    }
    typer.echo(to_json(answer))


def _expected(scored: ScoredFile) -> float:
    """Return the mean number of false alarms if all rows are normal or, for --fdr, its upper bound."""
    fdr = scored.plan.fdr
    return scored.alpha * scored.n_rows if fdr is None else fdr * scored.n_alarms


def _print_text(scored: ScoredFile) -> None:
    plan = scored.plan
    out = console(stderr=plan.to_stdout)
    print_verdict(out, scored.verdict, partly=scored.partly)
    if scored.most:
        out.print("The most abnormal rows:\n")
        out.print(rows_table(scored.most, scored.level), "")
    if plan.fdr is None:
        out.print(summary(scored.verdict.overall))
    else:
        out.print(
            f"{counted(scored.n_rows, 'row')}, {alarms(scored.n_alarms)} with a false discovery rate of "
            f"{percent(plan.fdr)}: of these, no more than {cell(_expected(scored), 2)} are expected "
            f"to be false."
        )
    if scored.n_strange:
        strange = counted(scored.n_strange, "row") + (" has" if scored.n_strange == 1 else " have")
        out.print(f"{strange} a cell such as no normal row had; rankad explain names it.")
    if plan.out is None:
        command = f"rankad score {_arguments(plan)} --out scored.csv"
        out.print(f"\nAll rows: {command}", soft_wrap=True)
    elif not plan.to_stdout:
        out.print(f"Wrote {plan.out}.", soft_wrap=True)
        out.print(f"Next: rankad explain {_arguments(plan)}", soft_wrap=True)


def _arguments(plan: ScorePlan) -> str:
    """Return the arguments of a command that reads and judges the same table in the same way."""
    given = opt.repeated({**plan.reading, "alpha": plan.alpha, "fdr": plan.fdr})
    return f"{shlex.quote(plan.table)} --model {shlex.quote(str(plan.model))}{given}"
