"""Finding 7: "average k-NN distance" can be read in two ways."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from rankad import KLPE
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
from rankad.experiments.pictures import COLOURS, new_figure
from rankad.experiments.results import Table, mean
from rankad.experiments.settings import Settings
from rankad.experiments.table3 import paper_auc

__all__ = ["NAME", "cells", "report"]

NAME = "finding-07"
_VERSION = 1

NEIGHBORS = (5, 20, 40)
# The paper's.
K = 20


def measure(dataset: str, k: int, seed: int, n: int, n_test: int, *, data: Path | None) -> dict[str, Any]:
    """Compare both readings on one set: their AUC, and how alike they order the nominal test rows."""
    split = real_split(dataset, data, seed, n, n_test)
    with one_thread():
        scores = {
            statistic: KLPE(n_neighbors=k, statistic=statistic, scaling=None, n_jobs=1)
            .fit(split.train)
            .score_samples(split.test)
            for statistic in ("mean", "centred")
        }
    nominal = split.nominal
    return {
        "correlation": float(spearmanr(scores["mean"][nominal], scores["centred"][nominal]).statistic),
        **{statistic: auc(nominal, found) for statistic, found in scores.items()},
    }


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each set and k."""
    names = ("annthyroid", "cover", "satellite", "smtp") if settings.quick else tuple(SPECS)
    n, n_test, runs = (300, 500, 1) if settings.quick else (2_000, 5_000, 2)
    return [
        finding_cell(
            NAME,
            _VERSION,
            measure,
            {"dataset": name, "k": k, "seed": settings.run_seed(number), "n": n, "n_test": n_test},
            data=settings.data,
        )
        for number in range(runs)
        for name in names
        for k in NEIGHBORS
    ]


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the AUC of both readings, and the correlation of their orders."""
    names = list(dict.fromkeys(record["dataset"] for record in records))
    titles = [SPECS[name].title for name in names]

    def averages(what: str, k: int) -> list[float]:
        return [mean([one[what] for one in find(records, dataset=name, k=k)]) for name in names]

    apart = max(abs(a - b) for a, b in zip(averages("mean", K), averages("centred", K), strict=True))
    figure = new_figure(
        f"Finding 7: the two readings of aK-LPE's average differ by up to {apart:.3f} in AUC at k = {K}",
        (12.0, 5.2),
    )
    paper = [paper_auc(name, "aK-LPE") for name in names]
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    draw_dots(
        left,
        titles,
        [
            Series("the paper's aK-LPE", paper, THIRD, "D"),
            Series("around the k-th", averages("centred", K), LITERAL),
            Series("neighbours 1 to k, rankad's", averages("mean", K), OURS),
        ],
    )
    left.set_title(f"AUC, k = {K}, raw features", fontsize=10.5)
    left.set_xlabel("AUC")
    colours = dict(zip(NEIGHBORS, (COLOURS[2], COLOURS[4], COLOURS[1]), strict=True))
    markers = dict(zip(NEIGHBORS, ("^", "o", "v"), strict=True))
    draw_dots(
        right,
        titles,
        [Series(f"k = {k}", averages("correlation", k), colours[k], markers[k]) for k in NEIGHBORS],
        names=False,
    )
    right.set_title("Do both readings order nominal rows alike?", fontsize=10.5)
    right.set_xlabel("rank correlation of the two (Spearman)")
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False, fontsize=9.5)
    rows = [[title] for title in titles]
    for k in NEIGHBORS:
        parts = zip(
            rows, averages("mean", k), averages("centred", k), averages("correlation", k), strict=True
        )
        for row, first, second, correlation in parts:
            row += [f"{first:.3f}", f"{second:.3f}", f"{correlation:.3f}"]
    for row, published in zip(rows, paper, strict=True):
        row.append(f"{published:.3f}")
    one = records[0]
    left_out = ", ".join(spec.title for name, spec in SPECS.items() if name not in names)
    notes = [
        *quick_note(settings, f"one run, fewer rows, without {left_out}"),
        f"Mean of {len({record['seed'] for record in records})} runs, seed {settings.seed}; raw features; "
        f"{one['n']:,} nominal rows train, at most {one['n_test']:,} of each kind test.",
        "Mean: of the distances to neighbours 1 to k. Centred: to those around the k-th (Qian and Saligrama "
        "2012). Correlation: of both on nominal test rows.",
    ]
    columns = [
        "data set",
        *(f"{what}, k = {k}" for k in NEIGHBORS for what in ("mean", "centred", "correlation")),
        f"paper, k = {K}",
    ]
    return Report(Table(NAME, '7. Two readings of "average k-NN distance"', columns, rows, notes), figure)
