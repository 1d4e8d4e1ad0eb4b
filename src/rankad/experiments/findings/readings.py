"""Finding 7: "average k-NN distance" can be read in two ways."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from rankad import KLPE
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.datasets import SPECS
from rankad.experiments.findings import finding
from rankad.experiments.findings.finding import LITERAL, OURS, THIRD, Record, Report, Series
from rankad.experiments.measures import auc, one_thread
from rankad.experiments.pictures import COLOURS
from rankad.experiments.results import Table
from rankad.experiments.table3 import paper_auc

NAME = "finding-07"

# Neighbours, with how their dots look.
_DOTS = {5: (COLOURS[2], "^"), 20: (COLOURS[4], "o"), 40: (COLOURS[1], "v")}
# The paper's.
K = 20
_MEASURED = ("mean", "centred", "correlation")


def measure(dataset: str, k: int, seed: int, n: int, n_test: int, *, data: Path | None) -> dict[str, Any]:
    """Compare both readings on one set: their AUC, and how alike they order the nominal test rows."""
    split = finding.real_split(dataset, data, seed, n, n_test)
    scores = {}
    with one_thread():
        for statistic in ("mean", "centred"):
            detector = KLPE(n_neighbors=k, statistic=statistic, scaling=None, n_jobs=1).fit(split.train)
            scores[statistic] = detector.score_samples(split.test)
    correlation = spearmanr(*(values[split.nominal] for values in scores.values())).statistic
    areas = {statistic: auc(split.nominal, values) for statistic, values in scores.items()}
    return {"correlation": float(correlation), **areas}


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each set and k."""
    names = ["annthyroid", "cover", "satellite", "smtp"] if settings.quick else list(SPECS)
    n, n_test, runs = (300, 500, 1) if settings.quick else (2_000, 5_000, 2)
    work, seeds = partial(measure, data=settings.data), settings.run_seeds(runs)
    return finding.finding_cells(NAME, work, seed=seeds, dataset=names, k=list(_DOTS), n=n, n_test=n_test)


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the AUC of both readings, and the correlation of their orders."""
    names = finding.unique(records, "dataset")
    titles = finding.titles(names)
    average = {(what, k): finding.averages(records, what, names, k=k) for k in _DOTS for what in _MEASURED}
    paper = [paper_auc(name, "aK-LPE") for name in names]
    apart = max(abs(a - b) for a, b in zip(average["mean", K], average["centred", K], strict=True))
    title = f"Finding 7: the two readings of aK-LPE's average differ by up to {apart:.3f} in AUC at k = {K}"
    figure, (left, right) = finding.new_panels(title, (12.0, 5.2), 1, 2)
    series = [
        Series("the paper's aK-LPE", paper, THIRD, "D"),
        Series("around the k-th", average["centred", K], LITERAL),
        Series("neighbours 1 to k, rankad's", average["mean", K], OURS),
    ]
    finding.draw_dots(left, titles, series)
    finding.caption(left, f"AUC, k = {K}, raw features", xlabel="AUC")
    series = [Series(f"k = {k}", average["correlation", k], *style) for k, style in _DOTS.items()]
    finding.draw_dots(right, titles, series, names=False)
    label = "rank correlation of the two (Spearman)"
    finding.caption(right, "Do both readings order nominal rows alike?", xlabel=label)
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False, fontsize=9.5)
    numbers = zip(*average.values(), paper, strict=True)
    rows = [
        [title, *(f"{value:.3f}" for value in values)] for title, values in zip(titles, numbers, strict=True)
    ]
    first = records[0]
    notes = [
        *finding.quick_note(settings, f"one run, fewer rows, without {finding.without(names)}"),
        f"Mean of {len(finding.unique(records, 'seed'))} runs, seed {settings.seed}; raw features; "
        f"{first['n']:,} nominal rows train, at most {first['n_test']:,} of each kind test.",
        "Mean: of the distances to neighbours 1 to k. Centred: to those around the k-th (Qian and Saligrama "
        "2012). Correlation: of both on nominal test rows.",
    ]
    columns = ["data set", *(f"{what}, k = {k}" for what, k in average), f"paper, k = {K}"]
    return Report(Table(NAME, '7. Two readings of "average k-NN distance"', columns, rows, notes), figure)
