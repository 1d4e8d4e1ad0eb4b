"""Finding 1: Algorithm 1 ranks dense rows high, then counts as if they were low."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankad import RankAD
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.findings import finding
from rankad.experiments.findings.finding import LITERAL, OURS, Record, Report
from rankad.experiments.measures import auc, one_thread
from rankad.experiments.pictures import percent
from rankad.experiments.results import Table, mean
from rankad.experiments.synthetic import PRINTED, mixture_split

NAME = "finding-01"

ALPHA = 0.05
_BINS = 20
_COUNTS = {
    "literal": ("As printed: share of nominal rows with a higher g", LITERAL),
    "ours": ("rankad: share of nominal rows with no higher g", OURS),
}


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
    split = mixture_split(PRINTED, seed, n_train, n_test, n_test)
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
    """List one cell for each run."""
    n_train, n_test, runs = (150, 1_000, 1) if settings.quick else (600, 5_000, 3)
    seeds = [settings.run_seed(number) for number in range(runs)]
    return finding.finding_cells(NAME, measure, seed=seeds, n_train=n_train, n_test=n_test)


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the first run's p-values, counted both ways."""
    first = records[0]
    title = "Finding 1: counted as printed, anomalies get the largest p-values and pass"
    figure, panels = finding.new_panels(title, (11.0, 4.6), 1, 2)
    panels[1].sharey(panels[0])
    panels[0].set_ylabel("share of rows, log scale")
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    rows = []
    for axes, (which, (title, colour)) in zip(panels, _COUNTS.items(), strict=True):
        counted = first[which]
        histogram, alarms = counted["histogram"], counted["alarms"]
        axes.stairs(histogram["anomalous"], edges, fill=True, color=colour, alpha=0.85)
        axes.stairs(histogram["nominal"], edges, color="0.15", linewidth=1.6)
        axes.axvline(ALPHA, color="0.15", linestyle=":", linewidth=1.2)
        finding.caption(axes, f"{title}\nAUC {counted['auc']:.3f}", xlabel="p-value", yscale="log")
        axes.set_ylim(2e-4, 4.0)
        highest = int(np.argmax(histogram["anomalous"]))
        right = highest > _BINS // 2
        at, offset = ((highest + (0 if right else 1)) / _BINS, 0.5), (-8 if right else 8, 0)
        text = f"uniform anomalies:\n{percent(alarms['anomalous'])} alarms"
        finding.note(axes, text, at, offset, colour, ha="right" if right else "left", fontsize=10)
        text = f"nominal rows: {alarms['nominal']:.1%} alarms"
        finding.note(axes, text, (0.5, 0.17), (0, 0), "0.15", ha="center", fontsize=10)
        finding.note(axes, f"α = {percent(ALPHA)}", (ALPHA, 2.4), (4, 0), "black")
        alarms = {kind: mean([one[which]["alarms"][kind] for one in records]) for kind in alarms}
        area = mean([record[which]["auc"] for record in records])
        rows.append([title, f"{area:.4f}", f"{alarms['anomalous']:.2%}", f"{alarms['nominal']:.2%}"])
    notes = [
        *finding.quick_note(settings, "one run and fewer rows"),
        f"Mean of {len(records)} runs, seed {settings.seed}: {first['n_train']:,} rows of the mixture as "
        f"printed train the default; {first['n_test']:,} fresh ones and as many uniform ones test. The same "
        "scores are counted both ways.",
    ]
    low = f"with p <= {percent(ALPHA)}"
    columns = ["count", "AUC of the p-values", f"anomalies {low}", f"nominal rows {low}"]
    return Report(Table(NAME, "1. The sign of the count", columns, rows, notes), figure)
