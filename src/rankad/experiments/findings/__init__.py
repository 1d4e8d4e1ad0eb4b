"""Where the paper's text, taken literally, goes wrong: ten findings, each measured and drawn.

One module for each, with its cells and its report. The names of the pictures carry the numbers that the
findings have in the documentation, ``finding-01.png`` to ``finding-10.png``.
"""

from __future__ import annotations

from rankad.experiments.cells import CellStore, run_cells
from rankad.experiments.datasets import SPECS
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
from rankad.experiments.findings.report import NAME
from rankad.experiments.pictures import save
from rankad.experiments.results import write_results
from rankad.experiments.settings import Settings
from rankad.experiments.splits import load

__all__ = ["FINDINGS", "run"]

FINDINGS = (sign, ties, far_field, false_alarms, support, features, readings, tail, bayes, pair_weight)


def run(settings: Settings) -> None:
    """Measure all findings, draw them, and write what was found."""
    for name in SPECS:
        # A set that cannot be had is told now, not after minutes.
        load(name, settings.data)
    todo = [module.cells(settings) for module in FINDINGS]
    every = [cell for cells in todo for cell in cells]
    done = iter(run_cells(every, CellStore(settings.cells), settings.workers, NAME))
    tables, figures, found = [], [], {}
    for module, cells in zip(FINDINGS, todo, strict=True):
        records = [{**cell.key, **next(done)} for cell in cells]
        report = module.report(records, settings)
        tables.append(report.table)
        figures.append(save(report.figure, settings.out / f"{module.NAME}.png"))
        left_out = ("experiment", "finding", "surface", "parameters")
        found[module.NAME] = [
            {key: value for key, value in record.items() if key not in left_out} for record in records
        ]
    raw = {"settings": {"seed": settings.seed, "quick": settings.quick}, "cells": found}
    write_results(settings.out, NAME, tables, raw, figures)
