"""Finding 9: the printed covariances do not give the paper's Bayes figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankad.experiments.cells import Cell, Settings
from rankad.experiments.findings import finding
from rankad.experiments.findings.finding import LITERAL, OURS, THIRD, Record, Report
from rankad.experiments.results import Table
from rankad.experiments.synthetic import UNIFORM_BOX, Mixture
from rankad.experiments.table1 import PAPER, READINGS
from rankad.experiments.table1 import measure as one_run

NAME = "finding-09"

# The paper's, and half the side of its box.
PAPER_BAYES, PAPER_HALF = PAPER["Bayesian"][0], UNIFORM_BOX[1]
# How a reading is named, in which colour, beside which point of its curve, how far away and aligned how.
_CURVES: dict[str, tuple[str, str, int, tuple[int, int], str]] = {
    "printed": ("1 and 9 are variances, as printed", LITERAL, -1, (0, 7), "right"),
    "deviations": ("1 and 9 are standard deviations", OURS, 2, (12, -6), "left"),
}


def bayes_auc(mixture: Mixture, half: float, n_grid: int) -> float:
    """Return the AUC of the density itself against the uniform on ``[-half, half]`` in both columns.

    It is one minus the mean over the box of the p-value, the probability of a density no greater.
    """
    side = half * (2 * (np.arange(n_grid) + 0.5) / n_grid - 1)
    rows = np.column_stack([np.tile(side, n_grid), np.repeat(side, n_grid)])
    return float(1.0 - mixture.p_values(rows).mean())


def measure(reading: str, halves: Sequence[float], n_grid: int) -> dict[str, Any]:
    """Return the Bayes AUC of one reading for boxes of several sizes."""
    return {"auc": [bayes_auc(READINGS[reading], half, n_grid) for half in halves]}


def measure_run(reading: str, seed: int) -> dict[str, Any]:
    """Return the Bayes AUC on the rows of one run of table 1."""
    return one_run(reading, "Bayesian", None, seed)


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each reading, and one for each reading and run of table 1."""
    halves = [float(half) for half in range(6, 31, 3 if settings.quick else 1)]
    n_grid, seeds = 100 if settings.quick else 300, settings.run_seeds(settings.n_runs)
    return [
        *finding.finding_cells(NAME, measure, reading=list(READINGS), halves=[halves], n_grid=n_grid),
        *finding.finding_cells(NAME, measure_run, reading=list(READINGS), seed=seeds),
    ]


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the Bayes AUC of both readings against the size of the box."""
    exact = [record for record in records if "halves" in record]
    runs = [record for record in records if "halves" not in record]
    ours = {record["reading"]: record["auc"][record["halves"].index(PAPER_HALF)] for record in exact}
    nearest = min(ours, key=lambda reading: abs(ours[reading] - PAPER_BAYES))
    title = (
        f"Finding 9: the paper's Bayes AUC of {PAPER_BAYES:.3f} fits 1 and 9 as "
        f"{'standard deviations' if nearest == 'deviations' else 'variances'} better"
    )
    figure, (axes,) = finding.new_panels(title, (9.0, 5.0))
    rows = []
    for record in exact:
        reading, halves, areas = record["reading"], record["halves"], record["auc"]
        name, colour, at, offset, align = _CURVES[reading]
        point = PAPER_HALF, ours[reading]
        axes.plot(halves, areas, color=colour, linewidth=2)
        finding.note(axes, name, (halves[at], areas[at]), offset, colour, ha=align, fontsize=10.5)
        axes.plot(*point, "o", color=colour, markersize=9)
        finding.note(axes, f"{point[1]:.3f}", point, (-8, 8), colour, ha="right", fontsize=10.5)
        drawn = [one["auc"] for one in finding.find(runs, reading=reading)]
        axes.plot([PAPER_HALF] * len(drawn), drawn, "_", color=colour, markersize=12)
        # The curves rise with the box.
        needed = f"{np.interp(PAPER_BAYES, areas, halves):.1f} (paper {PAPER_HALF:.0f})"
        figures = [f"{point[1]:.4f} (paper {PAPER_BAYES:.4f})", f"{min(drawn):.4f} to {max(drawn):.4f}"]
        rows.append([name, *figures, needed])
    axes.axhline(PAPER_BAYES, color=THIRD, linestyle="--", linewidth=1.4)
    at_right = axes.get_xlim()[1], PAPER_BAYES
    text = f"the paper: {PAPER_BAYES:.3f}"
    finding.note(axes, text, at_right, (-6, -5), THIRD, ha="right", va="top", fontsize=10)
    axes.axvline(PAPER_HALF, color=THIRD, linestyle=":", linewidth=1.2)
    at_bottom = PAPER_HALF, axes.get_ylim()[0]
    finding.note(axes, f"the paper's box: ±{PAPER_HALF:.0f}", at_bottom, (6, 6), THIRD, fontsize=10)
    axes.set(xlabel="half the side of the box that anomalies are uniform on", ylabel="Bayes AUC")
    notes = [
        *finding.quick_note(settings, "a coarser grid, fewer boxes, one run of table 1 instead of five"),
        f"The Bayes detector scores by the nominal density. Its AUC is integrated over the box; the "
        f"dashes of the picture are {settings.n_runs} runs of table 1, 500 nominal and 1,000 uniform rows "
        f"each, seed {settings.seed}.",
        "The last column: for which box the reading would give the paper's figure.",
    ]
    columns = ["reading", "Bayes AUC", "on the rows of single runs", "half side for the paper's figure"]
    return Report(Table(NAME, "9. The Bayes figure of the synthetic table", columns, rows, notes), figure)
