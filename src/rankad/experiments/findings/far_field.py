"""Finding 3: without a far field, rows far from all data look nominal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankad import KLPE, RankAD
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.findings import finding
from rankad.experiments.findings.finding import LITERAL, OURS, PLAIN_C, THIRD, Record, Report, Series
from rankad.experiments.measures import fitted_auc, one_thread, select_on_few
from rankad.experiments.results import Table
from rankad.experiments.synthetic import PRINTED

NAME = "finding-03"

SETS = ("cover", "http", "shuttle", "mammography")
MULTIPLES = (0.25, 1.0, 4.0, 16.0)
C = (0.01, 1.0, 100.0)
WITHOUT, WITH, KLPE_20 = "without, as published", "with the far field, else the same", "aK-LPE"
_STYLE = {WITHOUT: (LITERAL, "o"), WITH: (OURS, "o"), KLPE_20: (THIRD, "D")}
# The ray goes up from the mean of the larger component; the rows end at a distance of about 3.
_START, _REACH = (-5.0, 0.0), 18.0


def measure(
    dataset: str, method: str, seed: int, n: int, n_select: int, n_test: int, *, data: Path | None
) -> dict[str, Any]:
    """Return the AUC of one method on one set, raw features."""
    split = finding.real_split(dataset, data, seed, n, n_test)
    if method == KLPE_20:
        return {"auc": fitted_auc(KLPE(n_neighbors=20, scaling=None, n_jobs=1), split)}
    published = RankAD.as_published(far_field=method == WITH, random_state=seed, n_jobs=1)
    with one_thread():
        chosen = select_on_few(published, split.train, n_select, MULTIPLES, C)
    return {"auc": fitted_auc(published.set_params(**chosen), split), **chosen}


def measure_ray(n: int, seed: int) -> dict[str, Any]:
    """Follow the ranks of two rankers, and the true p-value, along a ray out of the mixture's rows."""
    rows = PRINTED.sample(n, np.random.default_rng(seed))
    distances = np.linspace(0.0, _REACH, 91)
    ray = np.array(_START) + np.column_stack([np.zeros_like(distances), distances])
    result: dict[str, Any] = {"distances": distances, "true": PRINTED.p_values(ray)}
    with one_thread():
        for method in (WITHOUT, WITH):
            detector = RankAD.as_published(
                bandwidth="2 D_K", C=PLAIN_C / n, far_field=method == WITH, random_state=seed, n_jobs=1
            )
            result[method] = detector.fit(rows).p_values(ray)
    return result


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each set and method, and the ray."""
    sets, runs, n_ray = (SETS[2:3], 1, 200) if settings.quick else (SETS, 2, 600)
    n, n_select, n_test = (200, 80, 500) if settings.quick else (1_000, 300, 2_000)
    size = {"n": n, "n_select": n_select, "n_test": n_test}
    work, names = partial(measure, data=settings.data), {"dataset": list(sets), "method": list(_STYLE)}
    return [
        *finding.finding_cells(NAME, work, seed=settings.run_seeds(runs), **names, **size),
        *finding.finding_cells(NAME, measure_ray, n=n_ray, seed=settings.run_seed(0)),
    ]


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the ranks along the ray, and the AUC on the sets."""
    *measured, ray = records
    title = "Finding 3: as published, rows far from all data look nominal again"
    figure, (axes, dots) = finding.new_panels(title, (12.0, 4.8), 1, 2)
    distances, end = ray["distances"], ray["distances"][-1]
    for key, colour, style in (("true", THIRD, "--"), (WITHOUT, LITERAL, "-"), (WITH, OURS, "-")):
        axes.plot(distances, ray[key], style, color=colour, linewidth=2)
    finding.note(axes, "without\nfar field", (end, ray[WITHOUT][-1]), (6, 0), LITERAL, va="center")
    finding.note(axes, "with it", (end, 0.02), (6, 0), OURS, va="center")
    finding.note(axes, "true p-value", (distances[2], ray["true"][2]), (8, 4), THIRD)
    finding.caption(
        axes,
        f"A ray out of {ray['n']} rows of the mixture",
        xlim=(0, _REACH),
        ylim=(-0.02, 1.04),
        xlabel="distance from the centre of the larger component",
        ylabel="rank among the nominal rows",
    )
    names = finding.unique(measured, "dataset")
    areas = {method: finding.averages(measured, "auc", names, method=method) for method in _STYLE}
    shown = finding.titles(names)
    finding.draw_dots(dots, shown, [Series(method, areas[method], *_STYLE[method]) for method in _STYLE])
    dots.set_xlabel("AUC, raw features")
    dots.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9.5)
    rows = [[name, *(f"{areas[method][i]:.3f}" for method in _STYLE)] for i, name in enumerate(shown)]
    first = measured[0]
    notes = [
        *finding.quick_note(settings, f"one run, fewer rows, without {finding.without(names, SETS)}"),
        f"Mean of {len(finding.unique(measured, 'seed'))} runs, seed {settings.seed}; raw features; "
        f"{first['n']:,} rows train, at most {first['n_test']:,} of each kind test. Both rankers: the "
        f"paper's pairs, and its selection by 4-fold disagreement among {len(MULTIPLES)} bandwidths and "
        f"{len(C)} C on {first['n_select']} of the rows.",
        f"The ray: bandwidth 2 D_K, C of 10 over the number of rows; at its end the rank is "
        f"{ray[WITHOUT][-1]:.2f} without and {ray[WITH][-1]:.2f} with the far field.",
    ]
    return Report(Table(NAME, "3. The far field", ["AUC", *_STYLE], rows, notes), figure)
