"""``rankad watch``: the rows of a growing table as they come, and whether normal has drifted."""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankad.cli.options import Alpha, AsJson, Model, Quiet, Verbose, check_file, checked_rate

if TYPE_CHECKING:
    from rankad.monitoring.drift import DriftAlarm
    from rankad.scoring.watching import Watcher

__all__ = ["watch"]

_DRIFT = 4


def watch(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="A CSV file that grows; - is standard input.", show_default=False
        ),
    ],
    model: Model,
    state: Annotated[
        Path,
        typer.Option("--state", "-s", metavar="FILE", help="Where watching goes on from; made if not there."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where alarms go, as JSON lines; appended to.")
    ],
    alpha: Alpha = None,
    drift_rate: Annotated[
        float,
        typer.Option(metavar="SHARE", callback=checked_rate, help="The chance of a false drift alarm, ever."),
    ] = 0.01,
    run_length: Annotated[
        int, typer.Option(metavar="ROWS", min=2, help="Rows between false drift alarms by CUSUM, at least.")
    ] = 10_000,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more rows until interrupted.")
    ] = False,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.01, help="How often to look for more rows.")
    ] = 1.0,
    delimiter: Annotated[str, typer.Option(metavar="CHAR", help="Between the cells.")] = ",",
    fail_on_drift: Annotated[
        bool, typer.Option("--fail-on-drift", help="Exit with status 4 if there is a drift alarm.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Score rows as they are added to a table, and say when normal behaviour has drifted.

    Rows that were seen before are not read again: the state says how far it was. A run that is killed loses
    nothing and counts nothing twice; the same command goes on. From standard input, rows that were read but
    not yet saved are lost with the process.
    """
    from rankad.detectors.table import TableDetector
    from rankad.io.errors import TableError
    from rankad.modelfile import load
    from rankad.scoring.watching import Watcher

    inputs: list[str | Path] = [model] if table == "-" else [table, model]
    check_file(str(out), "--out", [*inputs, state])
    check_file(str(state), "--state", [*inputs, out])
    detector = load(model)
    if not isinstance(detector, TableDetector):
        raise TableError(
            f"{model} was fitted on an array; watch needs a model that rankad fit made of a table."
        )
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
    raised: list[DriftAlarm] = []
    while True:
        found = watcher.read_stream(sys.stdin.buffer) if table == "-" else watcher.read(table)
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
    from rankad.cli.screen import screen

    for alarm in found:
        kind = "the evidence bound" if alarm.by == "ever" else "CUSUM"
        screen(stderr=True).print(
            f"Row {alarm.row:,}: normal behaviour has drifted, since about row {alarm.since:,} (by {kind})."
        )


def _print_text(watcher: Watcher, out: Path) -> None:
    from rankad.cli.screen import screen
    from rankad.cli.words import alarms, rows

    n_drift = len(watcher.monitor.alarms)
    screen(stderr=True).print(
        f"{rows(watcher.n_rows)}, {alarms(watcher.n_alarms)}, {n_drift} drift "
        f"alarm{'' if n_drift == 1 else 's'} in all; see {out}.",
        soft_wrap=True,
    )


def _print_json(watcher: Watcher, raised: list[DriftAlarm]) -> None:
    from rankad.cli.words import as_json

    answer = {
        "rows": watcher.n_rows,
        "alarms": watcher.n_alarms,
        "drift": [alarm._asdict() for alarm in raised],
        "drift_before": len(watcher.monitor.alarms) - len(raised),
        "evidence": watcher.monitor.evidence,
        "cusum": watcher.monitor.cusum,
    }
    typer.echo(as_json(answer))
