"""Every scaling and bandwidth that the default selects from, judged by the AUC, with the larger of its two C.

The default selects without labels. Where it stays below the paper's figure, this tells whether another choice
would have done better, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rankad import RankAD
from rankad.experiments.cells import Cell
from rankad.experiments.datasets import SPECS
from rankad.experiments.measures import auc, one_thread
from rankad.experiments.results import Table, mean
from rankad.experiments.settings import Settings
from rankad.experiments.splits import draw, load
from rankad.fitting.plan import AUTO_MULTIPLES, AUTO_SCALINGS

__all__ = ["cells", "table"]

# To be counted up when the work of a cell changes.
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
    with one_thread():
        return {"auc": auc(split.nominal, detector.fit(split.train).score_samples(split.test))}


def cells(settings: Settings, size: dict[str, Any]) -> list[Cell]:
    """List the cells, of the rows that table 3 draws; a quick look takes the first set only."""
    found = []
    rows = {name: size[name] for name in ("n_train", "max_nominal", "max_anomalous")}
    for run_number in range(settings.n_runs):
        seed = settings.run_seed(run_number)
        for name in SETS[:1] if settings.quick else SETS:
            for scaling in AUTO_SCALINGS:
                for multiple in AUTO_MULTIPLES:
                    key = {
                        "experiment": "table-3",
                        "part": "tried",
                        "version": _VERSION,
                        "dataset": name,
                        "scaling": scaling,
                        "multiple": multiple,
                        "run": run_number,
                        "run_seed": seed,
                        **rows,
                    }
                    work = partial(measure, name, scaling, multiple, seed, settings.data, rows)
                    found.append(Cell(key, work))
    return found


def table(records: Sequence[dict[str, Any]], paper: dict[str, float]) -> Table:
    """Return the mean AUC of every choice, set by set.

    Parameters
    ----------
    records : sequence of dict
        Keys and results of the cells.
    paper : dict
        The paper's AUC of rankAD by data set.
    """
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
