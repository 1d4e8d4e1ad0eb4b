"""Finding 6: the paper's figures fit raw features; on some sets these cost AUC, on others they gain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rankad import KLPE, RankAD
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.datasets import SPECS
from rankad.experiments.findings import finding
from rankad.experiments.findings.finding import LITERAL, OURS, THIRD, Record, Report, Series
from rankad.experiments.measures import fitted_auc
from rankad.experiments.results import Table, mean
from rankad.experiments.table3 import paper_auc

NAME = "finding-06"

KLPE_20, RANKAD = "aK-LPE", "rankAD"
_TITLES = {KLPE_20: "aK-LPE, k = 20", RANKAD: "rankAD, default but for the scaling"}
_SCALINGS = {"raw": None, "standardized": "standard"}


def measure(
    dataset: str, method: str, features: str, seed: int, n: int, n_test: int, *, data: Path | None
) -> dict[str, Any]:
    """Return the AUC of one method on one set, with raw or standardized columns."""
    split = finding.real_split(dataset, data, seed, n, n_test)
    scaling = _SCALINGS[features]
    if method == KLPE_20:
        return {"auc": fitted_auc(KLPE(n_neighbors=20, scaling=scaling, n_jobs=1), split)}
    # The AUC does not depend on the calibration; this is the cheapest.
    detector = RankAD(scaling=scaling, calibration="in-sample", random_state=seed, n_jobs=1)
    return {"auc": fitted_auc(detector, split)}


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each set, method and kind of features; rankAD, which takes longer, in one run."""
    names, n, n_test = (["annthyroid"], 150, 500) if settings.quick else (list(SPECS), 2_000, 5_000)
    shared = {"dataset": names, "features": list(_SCALINGS), "n": n, "n_test": n_test}
    listed, work = [], partial(measure, data=settings.data)
    for method, runs in ((KLPE_20, settings.n_runs), (RANKAD, 1)):
        seeds = settings.run_seeds(runs)
        listed += finding.finding_cells(NAME, work, method=method, seed=seeds, **shared)
    return listed


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the AUC of both methods with both kinds of features, beside the paper's."""
    names = finding.unique(records, "dataset")
    titles = finding.titles(names)
    paper = {method: [paper_auc(name, method) for name in names] for method in _TITLES}
    areas = {
        method: {
            kind: finding.averages(records, "auc", names, method=method, features=kind) for kind in _SCALINGS
        }
        for method in _TITLES
    }
    away = {
        kind: mean([abs(a - b) for a, b in zip(areas[KLPE_20][kind], paper[KLPE_20], strict=True)])
        for kind in _SCALINGS
    }
    nearest = min(away, key=lambda kind: away[kind])
    title = f"Finding 6: the paper's aK-LPE figures are nearest to {nearest} features"
    figure, panels = finding.new_panels(title, (12.0, 5.2), 1, 2)
    rows = [[title] for title in titles]
    for axes, method in zip(panels, _TITLES, strict=True):
        raw, scaled = areas[method].values()
        series = [
            Series("the paper's, same method", paper[method], THIRD, "D"),
            Series("raw features", raw, LITERAL),
            Series("standardized", scaled, OURS),
        ]
        finding.draw_dots(axes, titles, series, names=method == KLPE_20)
        finding.caption(axes, _TITLES[method], xlabel="AUC")
        for row, *values in zip(rows, raw, scaled, paper[method], strict=True):
            row += [f"{value:.3f}" for value in values]
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    first = records[0]
    notes = [
        *finding.quick_note(settings, f"one run, fewer rows, without {finding.without(names)}"),
        f"aK-LPE: mean of {settings.n_runs} runs; rankAD: one run, its default but for the scaling. Seed "
        f"{settings.seed}; {first['n']:,} nominal rows train, at most {first['n_test']:,} of each kind test.",
        f"aK-LPE is off the paper's by {away['raw']:.3f} on average with raw features, by "
        f"{away['standardized']:.3f} with standardized ones.",
    ]
    columns = ["AUC", *(f"{method}, {kind}" for method in _TITLES for kind in (*_SCALINGS, "paper"))]
    return Report(Table(NAME, "6. Raw features", columns, rows, notes), figure)
