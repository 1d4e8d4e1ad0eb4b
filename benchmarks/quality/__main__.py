"""``python -m benchmarks.quality``: RankAD beside its peers on every data set of a folder."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.quality import (
    alarms,
    bars,
    cells,
    comparison,
    contamination,
    one_table,
    options,
    pictures,
    report,
    spread,
    synthetic,
)
from benchmarks.quality.sets import SetFile
from benchmarks.quality.settings import Study
from benchmarks.report import print_bars

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study.

    A run that was interrupted goes on where it was, and one that was finished repeats only what has changed:
    RankAD's cells with rankad's source, the peers' with their libraries.
    """
    begin = time.monotonic()
    study, sets = options.read(arguments, "python -m benchmarks.quality", __doc__, 3)
    records, more = cells.run(study, sets), cells.run_more_splits(study, sets)
    judged = _show(study, sets, records, more, begin)
    print_bars(judged, study.quick, study.out / "quality.md")
    print_bars(one_table.show(study, sets), study.quick, study.out / "one_table.md")


def _show(
    study: Study,
    sets: Sequence[SetFile],
    records: Sequence[Mapping[str, Any]],
    more: Sequence[Mapping[str, Any]],
    begin: float,
) -> list[bars.Bar]:
    """Write tables, pictures and records, and return the bars."""
    auc, precision = comparison.compare(records, "auc"), comparison.compare(records, "average_precision")
    fired, ranges = alarms.alarm_cells(more), spread.ranges(more, study.spread_seeds)
    made_up, made_up_records = synthetic.run(study)
    judged = bars.judge(bars.Measured(auc, precision, fired, ranges, made_up, study.seeds))
    tables = [
        bars.table(judged, study.quick),
        comparison.table(auc, "auc", "AUC", comparison.notes(auc, records)),
        comparison.table(precision, "average-precision", "Average precision", _PRECISION_NOTES),
        spread.table(ranges),
        alarms.table(fired),
        *synthetic.tables(made_up, study.sizes.train),
        *contamination.tables(records),
        report.set_table(sets),
    ]
    drawn = pictures.draw_all(study.out, auc, fired)
    raw = {
        "bars": [bar._asdict() for bar in judged],
        "records": records,
        "more_splits": [record for record in more if record["seed"] not in study.seeds],
        "synthetic": made_up_records,
        "relations": {f"{deviation:g}": found for deviation, found in made_up.found.items()},
    }
    report.write(study, report.QUALITY, sets, tables, drawn, raw, time.monotonic() - begin)
    return judged


_PRECISION_NOTES = ("Anomalies are what is looked for. Detectors by their mean, best first.",)


if __name__ == "__main__":
    main()
