"""Finding 9: the printed covariances do not give the paper's Bayes figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankad.experiments.cells import Cell
from rankad.experiments.findings.report import (
    LITERAL,
    OURS,
    THIRD,
    Record,
    Report,
    find,
    finding_cell,
    quick_note,
)
from rankad.experiments.pictures import new_figure
from rankad.experiments.results import Table
from rankad.experiments.settings import Settings
from rankad.experiments.synthetic import DEVIATIONS, PRINTED, UNIFORM_BOX, Mixture
from rankad.experiments.table1 import PAPER
from rankad.experiments.table1 import measure as one_run

__all__ = ["NAME", "cells", "report"]

NAME = "finding-09"
_VERSION = 1

# The paper's, and half the side of its box.
PAPER_BAYES, PAPER_HALF = PAPER["Bayesian"][0], UNIFORM_BOX[1]
READINGS = {"printed": PRINTED, "deviations": DEVIATIONS}
_NAMES = {"printed": "1 and 9 are variances, as printed", "deviations": "1 and 9 are standard deviations"}
# Beside which point of its curve a reading is named, at which distance, and towards which side.
_LABELS = {"printed": (-1, (0, 7), "right"), "deviations": (2, (12, -6), "left")}
_COLOURS = {"printed": LITERAL, "deviations": OURS}


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
    """List one cell a reading, and one for each reading and run of table 1."""
    halves = [float(half) for half in range(6, 31, 3 if settings.quick else 1)]
    exact = [
        finding_cell(
            NAME,
            _VERSION,
            measure,
            {"reading": reading, "halves": halves, "n_grid": 100 if settings.quick else 300},
        )
        for reading in READINGS
    ]
    runs = [
        finding_cell(NAME, _VERSION, measure_run, {"reading": reading, "seed": settings.run_seed(number)})
        for reading in READINGS
        for number in range(settings.n_runs)
    ]
    return [*exact, *runs]


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the Bayes AUC of both readings against the size of the box."""
    exact = [record for record in records if "halves" in record]
    runs = [record for record in records if "halves" not in record]
    found = {}
    for record in exact:
        at = record["halves"].index(PAPER_HALF)
        found[record["reading"]] = record["auc"][at]
    nearest = min(found, key=lambda reading: abs(found[reading] - PAPER_BAYES))
    figure = new_figure(
        f"Finding 9: the paper's Bayes AUC of {PAPER_BAYES:.3f} fits 1 and 9 as "
        f"{'standard deviations' if nearest == 'deviations' else 'variances'} better",
        (9.0, 5.0),
    )
    axes = figure.add_subplot(1, 1, 1)
    rows = []
    for record in exact:
        reading = record["reading"]
        colour, halves, areas = _COLOURS[reading], record["halves"], record["auc"]
        axes.plot(halves, areas, color=colour, linewidth=2)
        at, offset, align = _LABELS[reading]
        axes.annotate(
            _NAMES[reading],
            (halves[at], areas[at]),
            offset,
            textcoords="offset points",
            ha=align,
            color=colour,
            fontsize=10.5,
        )
        axes.plot(PAPER_HALF, found[reading], "o", color=colour, markersize=9)
        axes.annotate(
            f"{found[reading]:.3f}",
            (PAPER_HALF, found[reading]),
            (-8, 8),
            textcoords="offset points",
            ha="right",
            color=colour,
            fontsize=10.5,
        )
        drawn = [one["auc"] for one in find(runs, reading=reading)]
        axes.plot([PAPER_HALF] * len(drawn), drawn, "_", color=colour, markersize=12)
        # The curves rise with the box.
        needed = float(np.interp(PAPER_BAYES, areas, halves))
        rows.append(
            [
                _NAMES[reading],
                f"{found[reading]:.4f} (paper {PAPER_BAYES:.4f})",
                f"{min(drawn):.4f} to {max(drawn):.4f}",
                f"{needed:.1f} (paper {PAPER_HALF:.0f})",
            ]
        )
    axes.axhline(PAPER_BAYES, color=THIRD, linestyle="--", linewidth=1.4)
    axes.annotate(
        f"the paper: {PAPER_BAYES:.3f}",
        (axes.get_xlim()[1], PAPER_BAYES),
        (-6, -5),
        textcoords="offset points",
        ha="right",
        va="top",
        color=THIRD,
        fontsize=10,
    )
    axes.axvline(PAPER_HALF, color=THIRD, linestyle=":", linewidth=1.2)
    axes.annotate(
        f"the paper's box: ±{PAPER_HALF:.0f}",
        (PAPER_HALF, axes.get_ylim()[0]),
        (6, 6),
        textcoords="offset points",
        color=THIRD,
        fontsize=10,
    )
    axes.set_xlabel("half the side of the box that anomalies are uniform on")
    axes.set_ylabel("Bayes AUC")
    axes.spines[["top", "right"]].set_visible(False)
    notes = [
        *quick_note(settings, "a coarser grid, fewer boxes, one run of table 1 instead of five"),
        f"The Bayes detector scores by the nominal density. Its AUC is integrated over the box; the "
        f"dashes of the picture are {settings.n_runs} runs of table 1, 500 nominal and 1,000 uniform rows "
        f"each, seed {settings.seed}.",
        "The last column: for which box the reading would give the paper's figure.",
    ]
    columns = ["reading", "Bayes AUC", "on the rows of single runs", "half side for the paper's figure"]
    return Report(Table(NAME, "9. The Bayes figure of the synthetic table", columns, rows, notes), figure)
