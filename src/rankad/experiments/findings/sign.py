"""Finding 1: Algorithm 1 ranks dense rows high, then counts as if they were low."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankad import RankAD
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell
from rankad.experiments.findings.report import (
    LITERAL,
    OURS,
    Record,
    Report,
    finding_cell,
    mixture_split,
    quick_note,
)
from rankad.experiments.measures import auc, one_thread
from rankad.experiments.pictures import new_figure, percent
from rankad.experiments.results import Table, mean
from rankad.experiments.settings import Settings
from rankad.experiments.synthetic import PRINTED

__all__ = ["NAME", "cells", "report"]

NAME = "finding-01"
_VERSION = 1

ALPHA = 0.05
_BINS = 20


def literal_ranks(scores: Floats, nominal: Floats) -> Floats:
    """Return the score of Algorithm 1, step 3 (b), as printed: the share of nominal rows that score higher.

    Examples
    --------
    >>> literal_ranks(np.array([0.0, 2.0, 9.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    array([1. , 0.5, 0. ])
    """
    return np.asarray(1.0 - np.searchsorted(np.sort(nominal), scores, side="right") / len(nominal))


def measure(seed: int, n_train: int, n_test: int) -> dict[str, Any]:
    """Count the same scores of one fitted detector both ways."""
    split = mixture_split(PRINTED, seed, n_train, n_test)
    with one_thread():
        detector = RankAD(random_state=seed, n_jobs=1).fit(split.train)
        scores = detector.score_samples(split.test)
    both = {
        "literal": literal_ranks(scores, detector.calibration_.scores),
        "ours": detector.calibration_.p_values(scores),
    }
    result: dict[str, Any] = {}
    for which, p in both.items():
        kinds = {"nominal": p[split.nominal], "anomalous": p[~split.nominal]}
        result[which] = {
            "auc": auc(split.nominal, p),
            "alarms": {kind: float((values <= ALPHA).mean()) for kind, values in kinds.items()},
            "histogram": {
                kind: np.histogram(values, _BINS, (0.0, 1.0))[0] / values.size
                for kind, values in kinds.items()
            },
        }
    return result


def cells(settings: Settings) -> list[Cell]:
    """List one cell a run."""
    n_train, n_test, runs = (150, 1_000, 1) if settings.quick else (600, 5_000, 3)
    return [
        finding_cell(
            NAME,
            _VERSION,
            measure,
            {"seed": settings.run_seed(number), "n_train": n_train, "n_test": n_test},
        )
        for number in range(runs)
    ]


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the first run's p-values, counted both ways."""
    first = records[0]
    figure = new_figure(
        "Finding 1: counted as printed, anomalies get the largest p-values and pass", (11.0, 4.6)
    )
    names = {
        "literal": ("As printed: share of nominal rows with a higher g", LITERAL),
        "ours": ("rankad: share of nominal rows with no higher g", OURS),
    }
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    rows = []
    shared = None
    for i, (which, (title, colour)) in enumerate(names.items()):
        axes = figure.add_subplot(1, 2, i + 1, sharey=shared)
        shared = axes
        counted = first[which]
        axes.stairs(counted["histogram"]["anomalous"], edges, fill=True, color=colour, alpha=0.85)
        axes.stairs(counted["histogram"]["nominal"], edges, color="0.15", linewidth=1.6)
        axes.axvline(ALPHA, color="0.15", linestyle=":", linewidth=1.2)
        axes.set_title(f"{title}\nAUC {counted['auc']:.3f}", fontsize=10.5)
        axes.set_xlabel("p-value")
        axes.set_yscale("log")
        axes.set_ylim(2e-4, 4.0)
        axes.spines[["top", "right"]].set_visible(False)
        highest = int(np.argmax(counted["histogram"]["anomalous"]))
        right = highest > _BINS // 2
        axes.annotate(
            f"uniform anomalies:\n{percent(counted['alarms']['anomalous'])} alarms",
            ((highest + (0 if right else 1)) / _BINS, 0.5),
            (-8 if right else 8, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            color=colour,
            fontsize=10,
        )
        axes.annotate(
            f"nominal rows: {counted['alarms']['nominal']:.1%} alarms",
            (0.5, 0.17),
            ha="center",
            color="0.15",
            fontsize=10,
        )
        axes.annotate(f"α = {percent(ALPHA)}", (ALPHA, 2.4), (4, 0), textcoords="offset points", fontsize=9.5)
        if i == 0:
            axes.set_ylabel("share of rows, log scale")
        rows.append(
            [
                title,
                f"{mean([record[which]['auc'] for record in records]):.4f}",
                f"{mean([record[which]['alarms']['anomalous'] for record in records]):.2%}",
                f"{mean([record[which]['alarms']['nominal'] for record in records]):.2%}",
            ]
        )
    notes = [
        *quick_note(settings, "one run and fewer rows"),
        f"Mean of {len(records)} runs, seed {settings.seed}: {first['n_train']:,} rows of the mixture as "
        f"printed train the default; {first['n_test']:,} fresh ones and as many uniform ones test. The same "
        "scores are counted both ways.",
    ]
    columns = [
        "count",
        "AUC of the p-values",
        f"anomalies with p <= {percent(ALPHA)}",
        f"nominal rows with p <= {percent(ALPHA)}",
    ]
    return Report(Table(NAME, "1. The sign of the count", columns, rows, notes), figure)
