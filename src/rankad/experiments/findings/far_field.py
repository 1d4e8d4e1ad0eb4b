"""Finding 3: without a far field, rows far from all data look nominal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankad import KLPE, RankAD
from rankad.experiments.cells import Cell
from rankad.experiments.datasets import SPECS
from rankad.experiments.findings.report import (
    LITERAL,
    OURS,
    PLAIN_C,
    THIRD,
    Record,
    Report,
    Series,
    draw_dots,
    find,
    finding_cell,
    label_end,
    quick_note,
    real_split,
)
from rankad.experiments.measures import auc, one_thread
from rankad.experiments.pictures import new_figure
from rankad.experiments.results import Table, mean
from rankad.experiments.settings import Settings
from rankad.experiments.synthetic import PRINTED

__all__ = ["NAME", "cells", "report"]

NAME = "finding-03"
_VERSION = 1

SETS = ("cover", "http", "shuttle", "mammography")
MULTIPLES = (0.25, 1.0, 4.0, 16.0)
C = (0.01, 1.0, 100.0)
WITHOUT, WITH, KLPE_20 = "without, as published", "with the far field, else the same", "aK-LPE"
_STYLE = {WITHOUT: (LITERAL, "o"), WITH: (OURS, "o"), KLPE_20: (THIRD, "D")}
# The ray starts at the mean of the larger component and goes up; the rows' last trace is at about 3.
_START, _REACH = (-5.0, 0.0), 18.0


def measure(
    dataset: str, method: str, seed: int, n: int, n_select: int, n_test: int, *, data: Path | None
) -> dict[str, Any]:
    """Return the AUC of one method on one set, raw features."""
    split = real_split(dataset, data, seed, n, n_test)
    with one_thread():
        if method == KLPE_20:
            detector: Any = KLPE(n_neighbors=20, scaling=None, n_jobs=1).fit(split.train)
            return {"auc": auc(split.nominal, detector.score_samples(split.test))}
        bandwidths = [f"{multiple!r} D_K" for multiple in MULTIPLES]
        trial = RankAD.as_published(
            bandwidth=bandwidths, C=C, far_field=method == WITH, random_state=seed, n_jobs=1
        ).fit(split.train[:n_select])
        if trial.selection_ is None:
            raise RuntimeError("There was nothing to select from; give several bandwidths or C.")
        chosen = bandwidths[trial.selection_.best // len(C)]
        # C multiplies a sum over pairs, whose number grows with the square of the rows.
        carried = trial.C_ * (n_select / n) ** 2
        detector = RankAD.as_published(
            bandwidth=chosen, C=carried, far_field=method == WITH, random_state=seed, n_jobs=1
        ).fit(split.train)
        scores = detector.score_samples(split.test)
    return {"auc": auc(split.nominal, scores), "bandwidth": chosen, "C": carried}


def measure_ray(n: int, seed: int) -> dict[str, Any]:
    """Follow the ranks of two rankers, and the true p-value, on a way out of the mixture's rows."""
    rows = PRINTED.sample(n, np.random.default_rng(seed))
    distances = np.linspace(0.0, _REACH, 91)
    ray = np.array(_START) + np.column_stack([np.zeros_like(distances), distances])
    found: dict[str, Any] = {"distances": distances, "true": PRINTED.p_values(ray)}
    with one_thread():
        for method in (WITHOUT, WITH):
            detector = RankAD.as_published(
                bandwidth="2 D_K", C=PLAIN_C / n, far_field=method == WITH, random_state=seed, n_jobs=1
            )
            found[method] = detector.fit(rows).p_values(ray)
    return found


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each set and method, and the ray."""
    sets, size, runs = (
        (SETS[2:3], {"n": 200, "n_select": 80, "n_test": 500}, 1)
        if settings.quick
        else (SETS, {"n": 1_000, "n_select": 300, "n_test": 2_000}, 2)
    )
    found = [
        finding_cell(
            NAME,
            _VERSION,
            measure,
            {"dataset": name, "method": method, "seed": settings.run_seed(number), **size},
            data=settings.data,
        )
        for number in range(runs)
        for name in sets
        for method in _STYLE
    ]
    ray = {"n": 200 if settings.quick else 600, "seed": settings.run_seed(0)}
    return [*found, finding_cell(NAME, _VERSION, measure_ray, ray)]


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the ranks along the ray, and the AUC on the sets."""
    *measured, ray = records
    figure = new_figure("Finding 3: as published, rows far from all data look nominal again", (12.0, 4.8))
    axes = figure.add_subplot(1, 2, 1)
    for key, colour, style in (("true", THIRD, "--"), (WITHOUT, LITERAL, "-"), (WITH, OURS, "-")):
        axes.plot(ray["distances"], ray[key], style, color=colour, linewidth=2)
    label_end(axes, ray["distances"], ray[WITHOUT], "without\nfar field", LITERAL)
    label_end(axes, ray["distances"], [0.02], "with it", OURS)
    axes.annotate(
        "true p-value",
        (ray["distances"][2], ray["true"][2]),
        (8, 4),
        textcoords="offset points",
        color=THIRD,
        fontsize=9.5,
    )
    axes.set_xlim(0, _REACH)
    axes.set_ylim(-0.02, 1.04)
    axes.set_title(f"A ray out of {ray['n']} rows of the mixture", fontsize=10.5)
    axes.set_xlabel("distance from the centre of the larger component")
    axes.set_ylabel("rank among the nominal rows")
    axes.spines[["top", "right"]].set_visible(False)

    names = list(dict.fromkeys(record["dataset"] for record in measured))
    areas = {
        method: [mean([one["auc"] for one in find(measured, dataset=name, method=method)]) for name in names]
        for method in _STYLE
    }
    dots = figure.add_subplot(1, 2, 2)
    draw_dots(
        dots,
        [SPECS[name].title for name in names],
        [Series(method, areas[method], *_STYLE[method]) for method in _STYLE],
    )
    dots.set_xlabel("AUC, raw features")
    dots.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9.5)
    runs, first = len({record["seed"] for record in measured}), measured[0]
    rows = [
        [SPECS[name].title, *(f"{areas[method][i]:.3f}" for method in _STYLE)] for i, name in enumerate(names)
    ]
    left_out = ", ".join(SPECS[name].title for name in SETS if name not in names)
    notes = [
        *quick_note(settings, f"one run, fewer rows, without {left_out}"),
        f"Mean of {runs} runs, seed {settings.seed}; raw features; {first['n']:,} rows train, at most "
        f"{first['n_test']:,} of each kind test. Both rankers: the paper's pairs, and its selection by "
        f"4-fold disagreement among {len(MULTIPLES)} bandwidths and {len(C)} C on {first['n_select']} of "
        "the rows.",
        f"The ray: bandwidth 2 D_K, C of 10 over the number of rows; at its end the rank is "
        f"{ray[WITHOUT][-1]:.2f} without and {ray[WITH][-1]:.2f} with the far field.",
    ]
    columns = ["AUC", *_STYLE]
    return Report(Table(NAME, "3. The far field", columns, rows, notes), figure)
