"""``rankad calibrate``: fresh normal rows to compare with, without learning again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rankad.cli.options import (
    AsJson,
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
    from rankad.alarms.chance import Span
    from rankad.stages.calibration import FalseAlarmBound

__all__ = ["calibrate"]


def calibrate(
    table: Table,
    model: Model,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Where to save the model; may be the same file."),
    ],
    jobs: Jobs = None,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare with fresh normal rows from now on.

    Nothing is learned again. For when normal has moved a little, or to have false alarms promised exactly:
    TABLE holds normal rows that the model has not seen.
    """
    import numpy as np

    from rankad.cli.screen import metered
    from rankad.io.files import open_table
    from rankad.modelfile import read_card, save
    from rankad.scoring.batches import frames_of, of_table
    from rankad.scoring.loading import as_saved, load_for
    from rankad.tables.judging import chance_of

    check_file(out, "--out", [table])
    with (
        metered(quiet) as meter,
        open_table(table, format=format, delimiter=delimiter, encoding=encoding, sheet=sheet) as reader,
    ):
        with of_table(reader.name):
            detector = load_for(model, reader.columns, jobs)
        before, old, chance = detector.calibration_, detector.false_alarm_bound(), chance_of(detector)
        with of_table(reader.name):
            detector.calibrate(frames_of(reader, "Calibrating", meter.reading))
    # The scores of these very rows are what new rows are compared with now.
    fresh = detector.calibration_.scores
    n_alarms = int(np.count_nonzero(before.p_values(fresh) <= detector.alpha))
    card = read_card(model)
    detector.detector_.n_jobs = None
    # Once more: much may have come to be there meanwhile.
    check_file(out, "--out", [table])
    save(as_saved(detector, card), out, rows=card.holds_rows)
    told = _Told(str(out), fresh.size, n_alarms, old, detector.false_alarm_bound(), before.scores.size)
    usual = chance.span(fresh.size, detector.alpha)
    if as_json:
        from rankad.cli.words import as_json as written

        typer.echo(written(told))
    elif not quiet:
        _print(told, usual)


class _Told(NamedTuple):
    """What there is to say."""

    model: str
    rows: int
    alarms_before: int
    promise_before: FalseAlarmBound
    promise: FalseAlarmBound
    rows_before: int


def _print(told: _Told, usual: Span) -> None:
    from rankad._base.wording import count
    from rankad.cli.screen import plain_table, screen
    from rankad.cli.words import percent, promise, rows

    out, alpha = screen(), told.promise.alpha
    verb = "was" if told.alarms_before == 1 else "were"
    out.print(
        f"Before, {count(told.alarms_before)} of these {rows(told.rows)} {verb} alarms at {percent(alpha)}; "
        f"of normal rows it is usually {count(usual.low)} to {count(usual.high)}."
    )
    if told.alarms_before > usual.high:
        out.print("That is more than chance explains: these rows are not like those it was learned from.")
    if told.alarms_before < usual.low:
        out.print("That is fewer than chance explains: were these rows among those it was learned from?")
    facts = plain_table("", "")
    facts.show_header = False
    facts.add_row("promised before", promise(told.promise_before) + ".")
    facts.add_row("promised now", promise(told.promise) + ".")
    out.print("", facts, "")
    out.print(f"Saved {told.model}, which compares with these {rows(told.rows)} from now on.")
