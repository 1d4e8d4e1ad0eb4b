"""``rankad report``: a page about a scored table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankad._base.files import is_stream
from rankad.cli.options import (
    Alpha,
    Delimiter,
    DiscoveryRate,
    Encoding,
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
    from rankad.report import ModelFacts
    from rankad.stages.calibration import FalseAlarmBound

__all__ = ["report"]

# Names that say what a report is not.
_OTHER_PAGES = frozenset(
    {".pdf", ".doc", ".docx", ".odt", ".rtf", ".md", ".txt", ".tex", ".ps", ".png", ".jpg", ".jpeg", ".svg"}
    | {".csv", ".tsv", ".json", ".jsonl", ".xls", ".xlsx", ".ods", ".parquet", ".arrow", ".pptx", ".zip"}
)

_NO_VALUE = "all normal values are missing"


def report(
    table: Table,
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page, as report.html.")],
    top: Annotated[
        int, typer.Option("--top", "-n", min=0, metavar="N", help="How many alarms to explain.")
    ] = 20,
    alpha: Alpha = None,
    fdr: DiscoveryRate = None,
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
    from rankad.cli.screen import metered, print_verdict, screen
    from rankad.cli.words import size, summary
    from rankad.io.files import open_table
    from rankad.report import render
    from rankad.report.gathering import write_page
    from rankad.report.making import gathered
    from rankad.scoring.batches import discovery_level, of_table, scan
    from rankad.scoring.loading import load_for

    check_rates(table, alpha, fdr)
    check_file(out, "--out", [table, model], streams=True)
    _check_page(out)
    how = {"format": format, "delimiter": delimiter, "encoding": encoding, "sheet": sheet}
    with metered(quiet) as meter, open_table(table, **how) as reader:  # type: ignore[arg-type]
        with of_table(reader.name):
            detector = load_for(model, reader.columns, jobs)
        detector.alpha = rate = detector.alpha if alpha is None else alpha
        level = rate
        if fdr is not None:
            with open_table(table, **how) as first:  # type: ignore[arg-type]
                level = discovery_level(first, detector, fdr, meter.reading)
        name = Path(table).name if table != "-" else "standard input"
        data = gathered(
            scan(reader, detector, "Looking", meter.reading),
            detector,
            _facts(model, detector.false_alarm_bound(rate)),
            title=title or f"Anomalies in {name}",
            rate=rate,
            top=top,
            source=name,
            level=level,
            fdr=fdr,
        )
    write_page(out, render(data), inputs=[model] if table == "-" else [model, Path(table)])
    if quiet:
        return
    screen_ = screen()
    assert data.verdict is not None
    print_verdict(screen_, data.verdict)
    screen_.print(summary(data.verdict.overall))
    if fdr is not None:
        from rankad.cli.words import alarms as told
        from rankad.cli.words import percent

        screen_.print(f"With a false discovery rate of {percent(fdr)}: {told(data.n_alarms)}.")
    screen_.print(f"Wrote {out} ({size(out.stat().st_size)}); open it in a browser.", soft_wrap=True)


def _check_page(out: Path) -> None:
    """Refuse a name that promises anything but HTML."""
    if out.suffix.lower() in _OTHER_PAGES and not is_stream(out):
        raise typer.BadParameter(
            f"{out} would hold HTML: a report is an HTML page. Give --out {out.with_suffix('.html').name}; a "
            f"browser prints it to PDF",
            param_hint="--out",
        )


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
        # In the words of users; what is in quotes is theirs already.
        encoding=[line.replace("all nominal values are missing", _NO_VALUE) for line in card.encoding],
        fingerprint=card.training_sha256,
    )
