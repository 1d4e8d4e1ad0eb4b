"""``rankad find``: the anomalies in one table, without known normal rows."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from rankad._base.progress import told_to
from rankad._base.wording import counted
from rankad.cli import options as opt
from rankad.cli.console import console, metered, rows_table
from rankad.cli.explain import as_dict, print_explained
from rankad.cli.messages import alarms, percent, to_json

if TYPE_CHECKING:
    from rankad.detectors.table import TableDetector
    from rankad.scoring.batches import ExplainedRow

_ALPHA = 0.05


def find(
    table: str = opt.TABLE,
    out: str | None = opt.option(
        None,
        "--out -o FILE",
        "Where all rows go, with their p-values: .csv, .tsv, .jsonl, .parquet or .arrow; - is standard "
        "output. [default: only the most suspicious rows are shown]",
    ),
    alpha: float = opt.option(
        _ALPHA, "--alpha -a RATE", "Largest share of the rows that may be alarms.", callback=opt.checked_rate
    ),
    top: int = opt.option(10, "--top -n N", "How many of the most suspicious rows.", min=1),
    in_full: bool = opt.option(False, "--explain", "Show all reasons of these rows, as rankad explain does."),
    reasons: bool = opt.option(False, "--reasons", "Add a column, reason, that says why a row is an alarm."),
    model: Path | None = opt.option(None, "--model -m FILE", "Also save a model, to score new rows with."),
    *,
    learning: opt.Learning,
    prefix: str = opt.option("", "--prefix TEXT", "Put before the names of the new columns: p_value, alarm."),
    neutralize_formulas: bool = opt.NEUTRALIZE_FORMULAS,
    jobs: int | None = opt.JOBS,
    reading: opt.Reading,
    as_json: bool = opt.AS_JSON,
    quiet: bool = opt.QUIET,
) -> None:
    """Find the anomalies in one table, without normal rows to learn from.

    Every row is judged by models that have not seen it, and those that look suspicious from the start do not
    teach the others. The p-value of a row is its place among all rows of the table, the least normal first:
    at most the share --alpha of the rows are alarms. How many of these are anomalies is for you to see.
    """
    from rankad import RankAD
    from rankad.cli.whole_table import read_whole
    from rankad.scoring.batches import AnswerColumns, Batch, MostAbnormal, explained, of_table
    from rankad.scoring.loading import threads
    from rankad.scoring.score_file import for_output, open_beside

    _check_outputs(table, out, model, as_json=as_json)
    started = time.monotonic()
    with metered(quiet) as meter:
        whole = read_whole(table, reading, meter)
        with of_table(whole.name):
            columns = AnswerColumns.beside(whole.frame.columns, prefix, reasons=reasons, scores=False)
            inner = RankAD(alpha, trim="auto", random_state=learning.seed, n_jobs=threads(jobs))
            detector = whole.detector(inner, learning)
            meter.begin("Looking")
            with told_to(meter.step):
                p_values = detector.fit_p_values(whole.rows)
        meter.begin("Explaining")
        # There are no scores, so the p-value serves as score as well.
        batch, most = Batch(whole.frame, p_values, p_values, 0, None), MostAbnormal(top)
        most.add(batch)
        suspicious = explained(detector, most.rows, alpha) if most.rows is not None else []
        # Again: files may have appeared in the meantime.
        _check_outputs(table, out, model, as_json=as_json)
        if out is not None:
            are_alarms = p_values <= alpha
            answers = columns.of(detector, batch, are_alarms, int(are_alarms.sum()), alpha)
            inputs = [] if table == "-" else [table]
            how: dict[str, Any] = {"inputs": inputs, "neutralize_formulas": neutralize_formulas}
            with open_beside(out, whole.format, whole.delimiter, **how) as writer:
                rows = for_output(whole.frame, writer, whole.typed, detector)
                writer.write(rows.hstack(answers.drop(columns.score)))
        if model is not None:
            # The model file does not record how many threads fitted it.
            detector.detector_.n_jobs = None
            detector.save(model)
    findings = _Findings(table, out, model, detector, alpha, int((p_values <= alpha).sum()), suspicious)
    if as_json:
        _print_json(findings, time.monotonic() - started)
    elif not quiet:
        _print_text(findings, opt.repeated(vars(reading)), in_full=in_full)


def _check_outputs(table: str, out: str | None, model: Path | None, *, as_json: bool) -> None:
    """Refuse outputs that must not be written, before any work is done and again after it."""
    opt.check_json(out, as_json)
    if out is not None and out != "-":
        opt.check_file(out, "--out", [table], streams=True)
        if model is not None and os.path.realpath(out) == os.path.realpath(model):
            raise opt.refuse("--model", f"{model} is also written to; name another file")
    if model is not None:
        opt.check_file(model, "--model", [table])


class _Findings(NamedTuple):
    table: str
    out: str | None
    model: Path | None
    detector: TableDetector
    alpha: float
    n_alarms: int
    suspicious: Sequence[ExplainedRow]

    @property
    def n_rows(self) -> int:
        return self.detector.encoder_.n_rows

    @property
    def promise(self) -> str:
        """What the p-values mean."""
        return (
            f"A p-value is the row's place among the {counted(self.n_rows, 'row')} of this table. At most "
            f"{percent(self.alpha)} of them are alarms, and as many would be if none were an anomaly: how "
            f"many are is for you to see."
        )


def _print_json(findings: _Findings, spent: float) -> None:
    detector: Any = findings.detector
    answer = {
        "table": findings.table,
        "out": findings.out,
        "model": None if findings.model is None else str(findings.model),
        "rows": findings.n_rows,
        "alarms": findings.n_alarms,
        "alpha": findings.alpha,
        "kept_from_training": len(detector.detector_.trimmed_rows_),
        "promise": findings.promise,
        "understood": list(detector.encoder_.notes),
        "most_suspicious": [as_dict(each, findings.alpha) for each in findings.suspicious],
        "seconds": round(spent, 3),
    }
    typer.echo(to_json(answer))


def _print_text(findings: _Findings, reading: str, *, in_full: bool) -> None:
    """Print the findings; `reading` are the options of reading, for the commands to come."""
    out, model, alpha = findings.out, findings.model, findings.alpha
    screen = console(stderr=out == "-")
    screen.print("The most suspicious rows:\n")
    if in_full:
        for each in findings.suspicious:
            print_explained(screen, each, alpha)
    else:
        screen.print(rows_table(findings.suspicious, alpha), "")
    rows = counted(findings.n_rows, "row")
    screen.print(f"{rows}, {alarms(findings.n_alarms)} at {percent(alpha)}. {findings.promise}")
    if out is None:
        table = shlex.quote(str(findings.table))
        rate = opt.repeated({"alpha": None if alpha == _ALPHA else alpha})
        screen.print(f"\nAll rows: rankad find {table}{rate}{reading} --out found.csv", soft_wrap=True)
    elif out != "-":
        screen.print(f"Wrote {out}.", soft_wrap=True)
    if model is not None:
        screen.print(
            f"Saved {model}. Next: rankad score NEW_TABLE --model {shlex.quote(str(model))}{reading}",
            soft_wrap=True,
        )
