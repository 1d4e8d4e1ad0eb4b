"""``rankad report``: a page about a scored table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rankad._base.files import is_stream
from rankad.cli import options as opt
from rankad.cli.console import console, metered, print_verdict
from rankad.cli.messages import alarms, percent, size, summary

# Suffixes that promise something other than HTML.
_OTHER_PAGES = (
    ".pdf .doc .docx .odt .rtf .md .txt .tex .ps .png .jpg .jpeg .svg .csv .tsv .json .jsonl .xls .xlsx .ods "
    ".parquet .arrow .pptx .zip"
)


def report(
    table: str = opt.TABLE,
    model: Path = opt.MODEL,
    out: Path = opt.option(..., "--out -o FILE", "The page, as report.html."),
    top: int = opt.option(20, "--top -n N", "How many alarms to explain.", min=0),
    *,
    rates: opt.Rates,
    title: str | None = opt.option(None, "--title TEXT", "[default: by the table's name]"),
    jobs: int | None = opt.JOBS,
    reading: opt.Reading,
    quiet: bool = opt.QUIET,
) -> None:
    """Make an HTML page of what was found.

    How many alarms, which, why, and what was promised. One HTML file that needs no network; open it in a
    browser, print it, or send it.
    """
    from rankad.modelfile import read_card
    from rankad.report import render
    from rankad.report.making import facts_of, gathered, write_page
    from rankad.scoring.batches import of_table, scan
    from rankad.scoring.loading import load_for

    rates.check(table)
    opt.check_file(out, "--out", [table, model], streams=True)
    if out.suffix.lower() in _OTHER_PAGES.split() and not is_stream(out):
        page = out.with_suffix(".html").name
        raise opt.refuse(
            "--out",
            f"{out} would hold HTML: a report is an HTML page. Give --out {page}; a browser prints it to PDF",
        )
    with metered(quiet) as meter, reading.open(table) as reader:
        with of_table(reader.name):
            detector = load_for(model, reader.columns, jobs)
        level = rates.set_on(detector, table, reading, meter.reading)
        name = Path(table).name if table != "-" else "standard input"
        card = read_card(model)
        facts = replace(
            facts_of(detector, model.name, detector.alpha),
            fitted=f"{card.saved:%Y-%m-%d %H:%M} UTC",
            versions=card.versions,
            parameters=card.parameters,
            encoding=card.encoding,
            fingerprint=card.training_sha256,
        )
        data = gathered(
            scan(reader, detector, "Looking", meter.reading),
            detector,
            facts,
            title=title or f"Anomalies in {name}",
            rate=detector.alpha,
            top=top,
            source=name,
            level=level,
            fdr=rates.fdr,
        )
    write_page(out, render(data), inputs=[model] if table == "-" else [model, Path(table)])
    if quiet:
        return
    screen = console()
    assert data.verdict is not None
    print_verdict(screen, data.verdict)
    screen.print(summary(data.verdict.overall))
    if rates.fdr is not None:
        screen.print(f"With a false discovery rate of {percent(rates.fdr)}: {alarms(data.n_alarms)}.")
    screen.print(f"Wrote {out} ({size(out.stat().st_size)}); open it in a browser.", soft_wrap=True)
