"""``rankad calibrate``: fresh normal rows to compare with, without learning again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from rankad._base.wording import count, counted
from rankad.cli import options as opt
from rankad.cli.console import console, facts_table, metered
from rankad.cli.messages import percent, promise, to_json

if TYPE_CHECKING:
    from rankad.alarms.chance import Span
    from rankad.stages.calibration import FalseAlarmBound


def calibrate(
    table: str = opt.TABLE,
    model: Path = opt.MODEL,
    out: Path = opt.option(..., "--out -o FILE", "Where to save the model; may be the same file."),
    add: bool = opt.option(False, "--add", "Add these rows to those it compares with already."),
    jobs: int | None = opt.JOBS,
    *,
    reading: opt.Reading,
    as_json: bool = opt.AS_JSON,
    quiet: bool = opt.QUIET,
) -> None:
    """Compare with fresh normal rows from now on.

    Nothing is learned again. For when normal has moved a little, or to have false alarms promised exactly:
    TABLE holds normal rows that the model has not seen.
    """
    import numpy as np

    from rankad.alarms.chance import chance_of
    from rankad.modelfile import read_card, save
    from rankad.scoring.batches import frames_of, of_table
    from rankad.scoring.loading import as_saved, load_for

    opt.check_file(out, "--out", [table])
    with metered(quiet) as meter, reading.open(table) as reader, of_table(reader.name):
        detector = load_for(model, reader.columns, jobs)
        before, old, chance = detector.calibration_, detector.false_alarm_bound(), chance_of(detector)
        rows = frames_of(reader, "Calibrating", meter.reading)
        detector.update(rows) if add else detector.calibrate(rows)
    # The scores of these rows, and with --add those before, are what new rows are compared with now.
    known = before.scores if add else before.scores[:0]
    n_fresh = detector.calibration_.scores.size - known.size
    n_alarms = sum(
        sign * int(np.count_nonzero(before.p_values(scores) <= detector.alpha))
        for sign, scores in ((1, detector.calibration_.scores), (-1, known))
    )
    card = read_card(model)
    detector.detector_.n_jobs = None
    # Again: the file may have appeared in the meantime.
    opt.check_file(out, "--out", [table])
    save(as_saved(detector, card), out, rows=card.holds_rows)
    result = _Recalibration(
        str(out),
        n_fresh,
        n_alarms,
        old,
        detector.false_alarm_bound(),
        before.scores.size,
        n_fresh + known.size,
    )
    if as_json:
        typer.echo(to_json(result))
    elif not quiet:
        _print(result, chance.span(n_fresh, detector.alpha))


class _Recalibration(NamedTuple):
    model: str
    rows: int
    alarms_before: int
    promise_before: FalseAlarmBound
    promise: FalseAlarmBound
    rows_before: int
    rows_now: int


def _print(result: _Recalibration, usual: Span) -> None:
    out, n_alarms = console(), result.alarms_before
    out.print(
        f"Before, {count(n_alarms)} of these {counted(result.rows, 'row')} "
        f"{'was' if n_alarms == 1 else 'were'} alarms at {percent(result.promise.alpha)}; of normal rows it "
        f"is usually {count(usual.low)} to {count(usual.high)}."
    )
    if n_alarms > usual.high:
        out.print("That is more than chance explains: these rows are not like those it was learned from.")
    if n_alarms < usual.low:
        out.print("That is fewer than chance explains: were these rows among those it was learned from?")
    before, now = (f"{promise(bound)}." for bound in (result.promise_before, result.promise))
    out.print("", facts_table([("promised before", before), ("promised now", now)]), "")
    which = "these " if result.rows_now == result.rows else ""
    out.print(
        f"Saved {result.model}, which compares with {which}{counted(result.rows_now, 'row')} from now on."
    )
