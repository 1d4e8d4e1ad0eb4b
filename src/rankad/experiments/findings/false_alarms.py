"""Finding 4: ranks among the rows that trained the model raise more false alarms than asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rankad import RankAD
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.datasets import SPECS
from rankad.experiments.findings import finding
from rankad.experiments.findings.finding import LITERAL, OURS, Record, Report, Series
from rankad.experiments.measures import MISS, false_alarm_band, one_thread
from rankad.experiments.pictures import percent
from rankad.experiments.results import Table
from rankad.stages.calibration import Calibration

NAME = "finding-04"

ALPHAS = (0.01, 0.05, 0.10)
_KINDS = {"in-sample": ("in-sample, as published", LITERAL), "cross-fit": ("cross-fit, the default", OURS)}


def measure(dataset: str, seed: int, n: int, n_test: int, *, data: Path | None) -> dict[str, Any]:
    """Fit RankSVM once; compare its scores of fresh nominal rows with both kinds of nominal scores."""
    split = finding.real_split(dataset, data, seed, n, n_test)
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
    """List one cell for each set."""
    names, n, n_test = (["mammography"], 500, 2_000) if settings.quick else (list(SPECS), 1_000, 5_000)
    work = partial(measure, data=settings.data)
    return finding.finding_cells(NAME, work, dataset=names, seed=settings.run_seed(0), n=n, n_test=n_test)


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the rates obtained beside the rates asked for, with what sampling allows."""
    names = finding.unique(records, "dataset")
    titles = finding.titles(names)
    title = "Finding 4: ranks among the training rows raise more false alarms than asked for"
    figure, panels = finding.new_panels(title, (12.0, 5.0), 1, len(ALPHAS))
    rows = [[title] for title in titles]
    for i, (alpha, axes) in enumerate(zip(ALPHAS, panels, strict=True)):
        rates = {
            which: [record["alarms"][which][i] / record["n_fresh"] for record in records] for which in _KINDS
        }
        bands = [false_alarm_band(alpha, record["n"], record["n_fresh"]) for record in records]
        series = [Series(label, rates[which], colour) for which, (label, colour) in _KINDS.items()]
        finding.draw_dots(axes, titles, series, names=i == 0)
        for at, (low, high) in enumerate(bands):
            axes.fill_betweenx([at - 0.32, at + 0.32], low, high, color="0.85", linewidth=0, zorder=0)
            for which in _KINDS:
                rate = rates[which][at]
                rows[at].append(f"{rate:.2%} ({'within' if low <= rate <= high else 'outside'})")
        axes.axvline(alpha, color="0.15", linestyle=":", linewidth=1.2)
        axes.set_xlim(left=0.0)
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g} %")
        finding.caption(axes, f"asked for: {percent(alpha)}", xlabel="false alarms obtained")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    first = records[0]
    notes = [
        *finding.quick_note(settings, f"fewer rows, without {finding.without(names)}"),
        f"One run, seed {settings.seed}: RankSVM is fitted on {first['n']:,} nominal rows, and at most "
        f"{first['n_test']:,} fresh ones are compared with its scores of the training rows, or with those of "
        "models that had not seen them.",
        f"Within or outside: the {1 - MISS:.0%} interval of the beta-binomial law for these numbers of rows, "
        "the grey bands of the picture.",
    ]
    columns = ["data set", *(f"{which}, asked {percent(a)}" for a in ALPHAS for which in _KINDS)]
    return Report(Table(NAME, "4. In-sample ranks are not p-values", columns, rows, notes), figure)
