"""``python -m benchmarks.quality``: RankAD beside its peers on every data set of a folder."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.quality import alarms, bars, cells, comparison, contamination, pictures, report
from benchmarks.quality.sets import SetFile, data_folder, find_sets
from benchmarks.quality.settings import Study
from benchmarks.report import print_bars
from rankad.experiments.datasets import DatasetError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study.

    A run that was interrupted goes on where it was, and one that was finished repeats only what has changed:
    RankAD's cells with rankad's source, the peers' with their libraries.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/quality"), help="folder of the results")
    parser.add_argument("--data", type=Path, help="folder of the data sets (default: RANKAD_DATA)")
    parser.add_argument("--quick", action="store_true", help="a cheap look: two sets, one seed, few rows")
    parser.add_argument("--seeds", type=_count, default=3, help="splits of every set (default: 3)")
    parser.add_argument("--jobs", type=_count, default=2, help="processes (default: 2)")
    given = parser.parse_args(arguments)
    begin = time.monotonic()
    try:
        study = Study(given.out, data_folder(given.data), given.seeds, given.jobs, given.quick)
        sets = find_sets(study.data)
    except DatasetError as error:
        parser.error(str(error))
    if study.quick:
        smallest = sorted(sets, key=lambda one: one.n_rows)[:2]
        sets = [one for one in sets if one in smallest]
    judged = _show(study, sets, cells.run(study, sets), begin)
    print_bars(judged, study.quick, study.out / "quality.md")


def _show(
    study: Study, sets: Sequence[SetFile], records: Sequence[Mapping[str, Any]], begin: float
) -> list[bars.Bar]:
    """Write tables, pictures and records, and return the bars."""
    auc, precision = comparison.compare(records, "auc"), comparison.compare(records, "average_precision")
    fired = alarms.alarm_cells(records)
    judged = bars.judge(auc, fired, contamination.falls(records))
    tables = [
        bars.table(judged, study.quick),
        comparison.table(auc, "auc", "AUC", comparison.notes(auc, records)),
        comparison.table(precision, "average-precision", "Average precision", _PRECISION_NOTES),
        alarms.table(fired),
        *contamination.tables(records),
        report.set_table(sets),
    ]
    drawn = pictures.draw_all(study.out, auc, fired)
    raw = {
        "sets": [{**one._asdict(), "path": one.path.name} for one in sets],
        "bars": [bar._asdict() for bar in judged],
        "records": records,
    }
    report.write(study, tables, drawn, raw, time.monotonic() - begin)
    return judged


_PRECISION_NOTES = ("Anomalies are what is looked for. Detectors by their mean, best first.",)


def _count(text: str) -> int:
    """Read a positive whole number."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return number


if __name__ == "__main__":
    main()
