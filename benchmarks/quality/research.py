"""``python -m benchmarks.quality.research``: what each ingredient of default RankAD does to detection."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.quality import options, panels, report, trials, verdicts
from benchmarks.quality.comparison import compare
from benchmarks.quality.knobs import KNOBS
from rankad.experiments.results import Table

__all__ = ["main"]

_PAGE = report.Page(
    "research",
    "python -m benchmarks.quality.research",
    (
        "One thing is changed at a time from default RankAD. The splits are those of `make quality`; the "
        f"seed is the split's. The calibration has {trials.FOLDS} folds in place of forty, also for the "
        "default: scores depend on it by the units of parts, so that AUC differs a little from that page's.",
        "To the default: the mean over sets of the difference of AUC to the default's, and its standard "
        "error, sets being the sample. Better and worse: sets whose AUC differs by more than 0.002. Worst: "
        "the set that loses most, or gains least. The default is in bold.",
    ),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study.

    A run that was interrupted goes on where it was, and one that was finished repeats only what has changed:
    everything with rankad's source, a value of a knob with itself.
    """
    begin = time.monotonic()
    study, sets = options.read(arguments, "python -m benchmarks.quality.research", __doc__, 2)
    records = trials.run(study, sets, KNOBS)
    methods = list(verdicts.pooled(KNOBS))
    auc, precision = (compare(records, what, methods=methods) for what in ("auc", "average_precision"))
    found = {knob.name: verdicts.verdicts(knob, auc, precision) for knob in KNOBS}
    tables: list[Table] = [
        verdicts.summary(KNOBS, auc),
        *(verdicts.table(knob, found[knob.name]) for knob in KNOBS),
        report.set_table(sets),
    ]
    drawn = [panels.draw(study.out / "research.png", found, len(sets))]
    report.write(study, _PAGE, sets, tables, drawn, {"records": records}, time.monotonic() - begin)
    print(tables[0].markdown(), study.out / "research.md", sep="\n\n")


if __name__ == "__main__":
    main()
