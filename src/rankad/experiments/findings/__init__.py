"""Where the paper's text, taken literally, goes wrong: ten findings, each measured and drawn.

One module for each, with its cells and its report. The pictures, ``finding-01.png`` to ``finding-10.png``,
are numbered like the findings in the documentation.
"""

from __future__ import annotations

from rankad.experiments.cells import Settings
from rankad.experiments.datasets import SPECS, load
from rankad.experiments.findings import (
    bayes,
    false_alarms,
    far_field,
    features,
    pair_weight,
    readings,
    sign,
    support,
    tail,
    ties,
)
from rankad.experiments.findings.finding import NAME
from rankad.experiments.pictures import save
from rankad.experiments.results import write_results

FINDINGS = (sign, ties, far_field, false_alarms, support, features, readings, tail, bayes, pair_weight)
# Only needed for drawing, or known from the finding itself.
_NOT_STORED = ("experiment", "finding", "surface", "parameters")


def run(settings: Settings) -> None:
    """Measure all findings, draw them, and write the results."""
    for name in SPECS:
        # A missing data set is reported now, not after minutes.
        load(name, settings.data)
    todo = [module.cells(settings) for module in FINDINGS]
    done = iter(settings.run([cell for cells in todo for cell in cells], NAME))
    tables, figures, stored = [], [], {}
    for module, cells in zip(FINDINGS, todo, strict=True):
        records = [next(done) for _ in cells]
        report = module.report(records, settings)
        tables.append(report.table)
        figures.append(save(report.figure, settings.out / f"{module.NAME}.png"))
        stored[module.NAME] = [
            {key: value for key, value in record.items() if key not in _NOT_STORED} for record in records
        ]
    raw = {"settings": {"seed": settings.seed, "quick": settings.quick}, "cells": stored}
    write_results(settings.out, NAME, tables, raw, figures)
