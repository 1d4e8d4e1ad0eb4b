"""Finding 6: the paper's figures fit raw features; on some sets these cost AUC, on others they gain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rankad import KLPE, RankAD
from rankad.experiments.cells import Cell
from rankad.experiments.datasets import SPECS
from rankad.experiments.findings.report import (
    LITERAL,
    OURS,
    THIRD,
    Record,
    Report,
    Series,
    draw_dots,
    find,
    finding_cell,
    quick_note,
    real_split,
)
from rankad.experiments.measures import auc, one_thread
from rankad.experiments.pictures import new_figure
from rankad.experiments.results import Table, mean
from rankad.experiments.settings import Settings
from rankad.experiments.table3 import paper_auc

__all__ = ["NAME", "cells", "report"]

NAME = "finding-06"
_VERSION = 1

KLPE_20, RANKAD = "aK-LPE", "rankAD"
_SCALINGS = {"raw": None, "standardized": "standard"}


def measure(
    dataset: str, method: str, features: str, seed: int, n: int, n_test: int, *, data: Path | None
) -> dict[str, Any]:
    """Return the AUC of one method on one set, with raw or standardized columns."""
    split = real_split(dataset, data, seed, n, n_test)
    scaling = _SCALINGS[features]
    detector: Any = (
        KLPE(n_neighbors=20, scaling=scaling, n_jobs=1)
        if method == KLPE_20
        # The AUC does not depend on the calibration; this is the cheapest.
        else RankAD(scaling=scaling, calibration="in-sample", random_state=seed, n_jobs=1)
    )
    with one_thread():
        return {"auc": auc(split.nominal, detector.fit(split.train).score_samples(split.test))}


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each set, method and kind of features; rankAD, which takes longer, in one run."""
    names = ("annthyroid",) if settings.quick else tuple(SPECS)
    n, n_test = (150, 500) if settings.quick else (2_000, 5_000)
    return [
        finding_cell(
            NAME,
            _VERSION,
            measure,
            {
                "dataset": name,
                "method": method,
                "features": features,
                "seed": settings.run_seed(number),
                "n": n,
                "n_test": n_test,
            },
            data=settings.data,
        )
        for method, runs in ((KLPE_20, settings.n_runs), (RANKAD, 1))
        for number in range(runs)
        for name in names
        for features in _SCALINGS
    ]


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the AUC of both methods with both kinds of features, beside the paper's."""
    names = list(dict.fromkeys(record["dataset"] for record in records))
    titles = [SPECS[name].title for name in names]
    areas = {
        (method, features): [
            mean([one["auc"] for one in find(records, dataset=name, method=method, features=features)])
            for name in names
        ]
        for method in (KLPE_20, RANKAD)
        for features in _SCALINGS
    }
    paper = {method: [paper_auc(name, method) for name in names] for method in (KLPE_20, RANKAD)}
    away = {
        features: mean([abs(a - b) for a, b in zip(areas[KLPE_20, features], paper[KLPE_20], strict=True)])
        for features in _SCALINGS
    }
    nearest = min(away, key=lambda features: away[features])
    title = f"Finding 6: the paper's aK-LPE figures are nearest to {nearest} features"
    figure = new_figure(title, (12.0, 5.2))
    rows: list[list[str]] = [[title] for title in titles]
    for i, method in enumerate((KLPE_20, RANKAD)):
        raw, scaled = areas[method, "raw"], areas[method, "standardized"]
        axes = figure.add_subplot(1, 2, i + 1)
        draw_dots(
            axes,
            titles,
            [
                Series("the paper's, same method", paper[method], THIRD, "D"),
                Series("raw features", raw, LITERAL),
                Series("standardized", scaled, OURS),
            ],
            names=i == 0,
        )
        axes.set_title(
            "aK-LPE, k = 20" if method == KLPE_20 else "rankAD, default but for the scaling", fontsize=10.5
        )
        axes.set_xlabel("AUC")
        if i == 0:
            handles = axes.get_legend_handles_labels()
        for row, *values in zip(rows, raw, scaled, paper[method], strict=True):
            row += [f"{value:.3f}" for value in values]
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    first = records[0]
    left_out = ", ".join(spec.title for name, spec in SPECS.items() if name not in names)
    notes = [
        *quick_note(settings, f"one run, fewer rows, without {left_out}"),
        f"aK-LPE: mean of {settings.n_runs} runs; rankAD: one run, its default but for the scaling. Seed "
        f"{settings.seed}; {first['n']:,} nominal rows train, at most {first['n_test']:,} of each kind test.",
        f"aK-LPE is off the paper's by {away['raw']:.3f} on average with raw features, by "
        f"{away['standardized']:.3f} with standardized ones.",
    ]
    columns = [
        "AUC",
        *(f"{method}, {kind}" for method in (KLPE_20, RANKAD) for kind in ("raw", "standardized", "paper")),
    ]
    return Report(Table(NAME, "6. Raw features", columns, rows, notes), figure)
