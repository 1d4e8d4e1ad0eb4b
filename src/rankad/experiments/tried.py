"""Every scaling and bandwidth that the default selects from, judged by the AUC, with the larger of its two C.

The default selects without labels. Where it stays below the paper's figure, this shows whether another choice
would have done better.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from rankad import RankAD
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.datasets import SPECS, draw, load
from rankad.experiments.measures import fitted_auc
from rankad.experiments.results import Table, mean
from rankad.fitting.plan import AUTO_MULTIPLES, AUTO_SCALINGS

# Increase it when the work of a cell changes.
_VERSION = 1

# The sets on which the default may stay below the paper's rankAD.
SETS = ("mammography", "satellite", "smtp")


def measure(
    name: str, scaling: str | None, multiple: float, seed: int, data: Path | None, size: dict[str, Any]
) -> dict[str, Any]:
    """Return the AUC of one choice, with C = 10 over the number of rows."""
    split = draw(load(name, data), seed, size)
    detector = RankAD(
        scaling=scaling,
        bandwidth=f"{multiple!r} D_K",
        C=10 / len(split.train),
        # The AUC does not depend on the calibration; this is the cheapest.
        calibration="in-sample",
        random_state=seed,
    )
    return {"auc": fitted_auc(detector, split)}


def cells(settings: Settings, size: dict[str, Any]) -> list[Cell]:
    """List the cells, of the rows that table 3 draws; a quick look takes the first set only."""
    rows = {name: size[name] for name in ("n_train", "max_nominal", "max_anomalous")}
    sets = SETS[:1] if settings.quick else SETS
    listed = []
    for run, name, scaling, multiple in product(range(settings.n_runs), sets, AUTO_SCALINGS, AUTO_MULTIPLES):
        seed = settings.run_seed(run)
        key = {"experiment": "table-3", "part": "tried", "version": _VERSION, "dataset": name}
        key |= {"scaling": scaling, "multiple": multiple, "run": run, "run_seed": seed, **rows}
        work = partial(measure, name, scaling, multiple, seed, settings.data, rows)
        listed.append(Cell(key, work))
    return listed


def table(records: Sequence[dict[str, Any]], paper: dict[str, float]) -> Table:
    """Return the mean AUC of every choice, set by set, beside the paper's AUC of rankAD."""
    names = list(dict.fromkeys(record["dataset"] for record in records))
    rows, best = [], []
    for name in names:
        here = [record for record in records if record["dataset"] == name]
        reached = []
        for scaling in AUTO_SCALINGS:
            values = [
                mean([r["auc"] for r in here if (r["scaling"], r["multiple"]) == (scaling, multiple)])
                for multiple in AUTO_MULTIPLES
            ]
            reached += values
            rows.append([SPECS[name].title, scaling or "none", *(f"{value:.4f}" for value in values)])
        best.append(f"{SPECS[name].title} {max(reached):.4f} (paper {paper[name]:.3f})")
    columns = ["AUC", "scaling", *(f"{multiple:g} D_K" for multiple in AUTO_MULTIPLES)]
    notes = [
        "rankAD as by default but for scaling and bandwidth, which are fixed, and C, which is 10 over the "
        "number of rows; the rows of the table above, mean over the runs.",
        f"The best of each set, known only with labels: {', '.join(best)}.",
    ]
    title = "AUC of every scaling and bandwidth that the default chooses from"
    return Table("table-3-tried", title, columns, rows, notes)
