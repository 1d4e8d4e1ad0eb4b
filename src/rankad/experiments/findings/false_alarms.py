"""Finding 4: ranks among the rows that trained the model raise more false alarms than asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rankad import RankAD
from rankad.experiments.cells import Cell
from rankad.experiments.datasets import SPECS
from rankad.experiments.findings.report import (
    LITERAL,
    OURS,
    Record,
    Report,
    Series,
    draw_dots,
    finding_cell,
    quick_note,
    real_split,
)
from rankad.experiments.measures import MISS, false_alarm_band, one_thread
from rankad.experiments.pictures import new_figure, percent
from rankad.experiments.results import Table
from rankad.experiments.settings import Settings
from rankad.stages.calibration import Calibration

__all__ = ["NAME", "cells", "report"]

NAME = "finding-04"
_VERSION = 1

ALPHAS = (0.01, 0.05, 0.10)
_LABELS = {"in-sample": "in-sample, as published", "cross-fit": "cross-fit, the default"}
_COLOURS = {"in-sample": LITERAL, "cross-fit": OURS}


def measure(dataset: str, seed: int, n: int, n_test: int, *, data: Path | None) -> dict[str, Any]:
    """Fit RankSVM once; compare its scores of fresh nominal rows with both kinds of nominal scores."""
    split = real_split(dataset, data, seed, n, n_test)
    fresh = split.test[split.nominal]
    with one_thread():
        alone = RankAD(near_field=False, n_components=0, random_state=seed, n_jobs=1)
        detector = alone.fit(split.train)
        scores = detector.score_samples(fresh)
        own = Calibration.from_scores(detector.score_samples(split.train), "in-sample")
    both = {"in-sample": own, "cross-fit": detector.calibration_}
    return {
        "n_fresh": len(fresh),
        "alarms": {
            which: [int((calibration.p_values(scores) <= alpha).sum()) for alpha in ALPHAS]
            for which, calibration in both.items()
        },
    }


def cells(settings: Settings) -> list[Cell]:
    """List one cell a set."""
    names = ("mammography",) if settings.quick else tuple(SPECS)
    n, n_test = (500, 2_000) if settings.quick else (1_000, 5_000)
    seed = settings.run_seed(0)
    return [
        finding_cell(
            NAME,
            _VERSION,
            measure,
            {"dataset": name, "seed": seed, "n": n, "n_test": n_test},
            data=settings.data,
        )
        for name in names
    ]


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the rates obtained beside the rates asked for, with what sampling allows."""
    titles = [SPECS[record["dataset"]].title for record in records]
    figure = new_figure(
        "Finding 4: ranks among the training rows raise more false alarms than asked for", (12.0, 5.0)
    )
    rates = {
        (which, i): [record["alarms"][which][i] / record["n_fresh"] for record in records]
        for which in _LABELS
        for i in range(len(ALPHAS))
    }
    bands = {
        i: [false_alarm_band(alpha, record["n"], record["n_fresh"]) for record in records]
        for i, alpha in enumerate(ALPHAS)
    }
    for i, alpha in enumerate(ALPHAS):
        axes = figure.add_subplot(1, len(ALPHAS), i + 1)
        series = [Series(label, rates[which, i], _COLOURS[which]) for which, label in _LABELS.items()]
        draw_dots(axes, titles, series, names=i == 0)
        for at, (low, high) in enumerate(bands[i]):
            axes.fill_betweenx([at - 0.32, at + 0.32], low, high, color="0.85", linewidth=0, zorder=0)
        axes.axvline(alpha, color="0.15", linestyle=":", linewidth=1.2)
        axes.set_xlim(left=0.0)
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g} %")
        axes.set_title(f"asked for: {percent(alpha)}", fontsize=10.5)
        axes.set_xlabel("false alarms obtained")
        if i == 0:
            handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    rows = []
    for at, title in enumerate(titles):
        shown = []
        for i in range(len(ALPHAS)):
            low, high = bands[i][at]
            for which in _LABELS:
                rate = rates[which, i][at]
                shown.append(f"{rate:.2%} ({'within' if low <= rate <= high else 'outside'})")
        rows.append([title, *shown])
    first = records[0]
    left_out = ", ".join(spec.title for name, spec in SPECS.items() if spec.title not in titles)
    notes = [
        *quick_note(settings, f"fewer rows, without {left_out}"),
        f"One run, seed {settings.seed}: RankSVM is fitted on {first['n']:,} nominal rows, and at most "
        f"{first['n_test']:,} fresh ones are compared with its scores of the training rows, or with those of "
        "models that had not seen them.",
        f"Within or outside: the {1 - MISS:.0%} interval of the beta-binomial law for these numbers of rows, "
        "the grey bands of the picture.",
    ]
    columns = ["data set", *(f"{which}, asked {percent(a)}" for a in ALPHAS for which in _LABELS)]
    return Report(Table(NAME, "4. In-sample ranks are not p-values", columns, rows, notes), figure)
