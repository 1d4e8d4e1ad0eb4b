"""``rankad report``: a page about a scored table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankad.cli.options import (
    Alpha,
    Delimiter,
    Encoding,
    Format,
    Jobs,
    Model,
    Quiet,
    Sheet,
    Table,
    Verbose,
    check_file,
)

if TYPE_CHECKING:
    from rankad.calibration import FalseAlarmBound
    from rankad.report import ModelFacts

__all__ = ["report"]


def report(
    table: Table,
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page, as report.html.")],
    top: Annotated[
        int, typer.Option("--top", "-n", min=0, metavar="N", help="How many alarms to explain.")
    ] = 20,
    alpha: Alpha = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="[default: by the table's name]")] = None,
    jobs: Jobs = None,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Make an HTML page of what was found.

    How many alarms, which, why, and what was promised. One HTML file that needs no network; open it in a
    browser, print it, or send it.
    """
    from rankad.cli.model import load_for
    from rankad.cli.pages import Views, write_page
    from rankad.cli.scan import MostAbnormal, explained, of_table, scan
    from rankad.cli.screen import metered, screen
    from rankad.cli.words import size, summary
    from rankad.report import Alarm, PValueSummary, ReportData, render
    from rankad.tables.files import open_table

    check_file(out, "--out", [table, model], streams=True)
    with (
        metered(quiet) as meter,
        open_table(table, format=format, delimiter=delimiter, encoding=encoding, sheet=sheet) as reader,
    ):
        with of_table(reader.name):
            detector = load_for(model, reader.columns, jobs)
        level = detector.alpha if alpha is None else alpha
        p_values, most, views = PValueSummary.for_levels(level), MostAbnormal(top), Views(detector)
        for batch in scan(reader, detector, meter, "Looking"):
            p_values = p_values.add(batch.p_values)
            most.add(batch)
            views.add(batch.frame, batch.p_values <= level)
        name = Path(table).name if table != "-" else "standard input"
    found = []
    if most.rows is not None:
        found = explained(detector, most.rows.where(most.rows.p_values <= level), level)
    data = ReportData(
        title or f"Anomalies in {name}",
        level,
        p_values,
        _facts(model, detector.false_alarm_bound(level)),
        alarms=[
            Alarm(row.number, row.p_value, row.score, row.name, row.explanation, row.strange, row.values)
            for row in found
        ],
        columns=views.columns,
        source=name,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        notes=views.notes,
    )
    write_page(out, render(data), inputs=[model] if table == "-" else [model, Path(table)])
    if quiet:
        return
    screen_ = screen()
    screen_.print(
        summary(p_values.n_rows, p_values.n_alarms(level), level, detector.calibration_.scores.size)
    )
    screen_.print(f"Wrote {out} ({size(out.stat().st_size)}); open it in a browser.", soft_wrap=True)


def _facts(model: Path, bound: FalseAlarmBound) -> ModelFacts:
    from rankad.modelfile import read_card
    from rankad.report import ModelFacts

    card = read_card(model)
    return ModelFacts(
        model.name,
        card.n_rows,
        card.n_calibrating,
        card.calibration,
        bound,
        fitted=f"{card.saved:%Y-%m-%d %H:%M} UTC",
        versions=card.versions,
        parameters=card.parameters,
        selection=card.selection,
        encoding=card.encoding,
        fingerprint=card.training_sha256,
    )
