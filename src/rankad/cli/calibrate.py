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
        detector.calibrate(frames_of(reader, "Calibrating", meter.reading))
    # The scores of these rows are what new rows are compared with now.
    fresh = detector.calibration_.scores
    n_alarms = int(np.count_nonzero(before.p_values(fresh) <= detector.alpha))
    card = read_card(model)
    detector.detector_.n_jobs = None
    # Again: the file may have appeared in the meantime.
    opt.check_file(out, "--out", [table])
    save(as_saved(detector, card), out, rows=card.holds_rows)
    result = _Recalibration(
        str(out), fresh.size, n_alarms, old, detector.false_alarm_bound(), before.scores.size
    )
    if as_json:
        typer.echo(to_json(result))
    elif not quiet:
        _print(result, chance.span(fresh.size, detector.alpha))


class _Recalibration(NamedTuple):
    model: str
    rows: int
    alarms_before: int
    promise_before: FalseAlarmBound
    promise: FalseAlarmBound
    rows_before: int


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
    out.print(f"Saved {result.model}, which compares with these {counted(result.rows, 'row')} from now on.")
