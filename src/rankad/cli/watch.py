"""``rankad watch``: the rows of a growing table as they come, and whether normal has drifted."""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer

from rankad._base.files import is_stream
from rankad._base.wording import counted
from rankad.cli import options as opt
from rankad.cli.console import console
from rankad.cli.messages import to_json

if TYPE_CHECKING:
    from rankad.monitoring.drift import DriftAlarm
    from rankad.scoring.watching import Watcher

_DRIFT = 4


def watch(
    table: str = typer.Argument(
        metavar="TABLE", help="A CSV file that grows; - is standard input.", show_default=False
    ),
    model: Path = opt.MODEL,
    state: Path = opt.option(
        ..., "--state -s FILE", "Where watching resumes from; created if missing, with FILE.lock."
    ),
    out: Path = opt.option(..., "--out -o FILE", "Where alarms go, as JSON lines; appended to."),
    alpha: float | None = opt.option(
        None, "--alpha -a RATE", "False-alarm rate. [default: the model's]", callback=opt.checked_rate
    ),
    drift_rate: float = opt.option(
        0.01, "--drift-rate SHARE", "The chance of a false drift alarm, ever.", callback=opt.checked_rate
    ),
    run_length: int = opt.option(
        10_000,
        "--run-length ROWS",
        "Rows until a false drift alarm of the faster kind, at least, on average.",
        min=2,
    ),
    follow: bool = opt.option(False, "--follow -f", "Wait for more rows until interrupted."),
    interval: float = opt.option(1.0, "--interval SECONDS", "How often to look for more rows.", min=0.01),
    delimiter: str = opt.option(",", "--delimiter CHAR", "Between the cells."),
    fail_on_drift: bool = opt.option(
        False, "--fail-on-drift", "Exit with status 4 if there is a drift alarm."
    ),
    as_json: bool = opt.AS_JSON,
    quiet: bool = opt.QUIET,
) -> None:
    """Score rows as they are added to a table, and say when normal behaviour has drifted.

    Rows that were seen before are not read again: the state says how far it was. A run that is killed loses
    nothing and counts nothing twice; the same command goes on. From standard input, rows that were read but
    not yet saved are lost with the process.
    """
    from rankad.detectors.table import TableDetector
    from rankad.io.errors import TableError
    from rankad.modelfile import load
    from rankad.scoring.batches import of_table
    from rankad.scoring.loading import check_there
    from rankad.scoring.watching import Watcher, watching_alone

    if is_stream(table):
        raise opt.refuse("TABLE", f"{table} is a pipe; give - and send it to standard input: < {table}")
    inputs: list[str | Path] = [model] if table == "-" else [table, model]
    opt.check_file(str(out), "--out", [*inputs, state])
    opt.check_file(str(state), "--state", [*inputs, out])
    stream: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    if table == "-" and stream is None:
        raise TableError("standard input is closed; send a table through a pipe, or give a file.")
    check_there(model)
    detector = load(model)
    if not isinstance(detector, TableDetector):
        raise TableError(
            f"{model} was fitted on an array; watch needs a model that rankad fit made of a table."
        )
    raised: list[DriftAlarm] = []
    with watching_alone(state, out):
        watcher = Watcher(
            detector,
            hashlib.sha256(model.read_bytes()).hexdigest(),
            state,
            out,
            alpha=alpha,
            delimiter=delimiter,
            delta=drift_rate,
            run_length=run_length,
        )
        while True:
            with of_table("standard input" if table == "-" else table):
                found = watcher.read_stream(stream) if table == "-" and stream else watcher.read(table)
            raised += found
            if not quiet and not as_json:
                _print_drift(found)
            if not follow or table == "-":
                break
            time.sleep(interval)
    if as_json:
        _print_json(watcher, raised)
    elif not quiet:
        _print_text(watcher, out)
    if fail_on_drift and raised:
        raise typer.Exit(_DRIFT)


def _print_drift(found: list[DriftAlarm]) -> None:
    for alarm in found:
        console(stderr=True).print(
            f"Row {alarm.row:,}: drift alarm of the kind {alarm.by}; normal has drifted since about row "
            f"{alarm.since:,}.",
            soft_wrap=True,
        )


def _print_text(watcher: Watcher, out: Path) -> None:
    n_drift = len(watcher.monitor.alarms)
    console(stderr=True).print(
        f"{counted(watcher.n_rows, 'row')}, {counted(watcher.n_alarms, 'alarm')}, "
        f"{counted(n_drift, 'drift alarm')} in all; see {out}.",
        soft_wrap=True,
    )


def _print_json(watcher: Watcher, raised: list[DriftAlarm]) -> None:
    answer = {
        "rows": watcher.n_rows,
        "alarms": watcher.n_alarms,
        "drift": [alarm._asdict() for alarm in raised],
        "drift_before": len(watcher.monitor.alarms) - len(raised),
        "evidence": watcher.monitor.evidence,
        "run_evidence": watcher.monitor.run_evidence,
    }
    typer.echo(to_json(answer))
