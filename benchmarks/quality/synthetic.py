"""``python -m benchmarks.quality.synthetic``: RankAD beside simple peers on made-up rows.

It is part of ``python -m benchmarks.quality``; alone, it needs no data sets, and shows what it found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality import cells, options
from benchmarks.quality.cases import CASES, Case, breaks
from benchmarks.quality.comparison import Comparison, compare
from benchmarks.quality.methods import KNN, MIXTURE, RANKAD, detector
from benchmarks.quality.settings import Study
from benchmarks.quality.splits import Parts
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell, run_cells
from rankad.experiments.results import Table, mean

__all__ = ["JUDGED", "PEERS", "Synthetic", "draw", "main", "measure", "measure_breaks", "run", "tables"]

PEERS = (KNN, "LOF", MIXTURE, "IsolationForest")
# Standard deviations of the columns that obey a relation whose noise is 1, and by how much one is moved.
SPREADS = (2.0, 5.0, 10.0, 20.0)
# The one that a bar is about.
JUDGED = 5.0
_MOVED = 8.0
_P_VALUE = 0.01
# Modules that results depend on.
_SOURCES = ("../peers.py", "cases.py", "cells.py", "methods.py", "synthetic.py")


class Synthetic(NamedTuple):
    """What was found.

    Attributes
    ----------
    cases : Comparison
        AUC of RankAD and `PEERS` on all cases.
    found : dict of float to float
        By the spread of the columns, the share of broken relations with p-values of 0.01 at most.
    """

    cases: Comparison
    found: dict[float, float]

    @property
    def below(self) -> Floats:
        """How far RankAD's AUC is below the best peer's, case by case; negative where it is the best."""
        at = self.cases.methods.index(RANKAD)
        return np.asarray(np.delete(self.cases.values, at, axis=1).max(axis=1) - self.cases.values[:, at])


def draw(case: Case, seed: int, n: int) -> Parts:
    """Draw n nominal rows to train on, as many others to test, and a quarter as many anomalies."""
    rng = np.random.default_rng(seed)
    train, nominal, anomalous = case.nominal(rng, n), case.nominal(rng, n), case.anomalous(rng, n // 4)
    told = np.repeat([True, False], [len(nominal), len(anomalous)])
    return Parts(train, 0, np.concatenate([nominal, anomalous]), told, np.ones(len(told), dtype=bool))


def measure(name: str, method: str, seed: int, n: int) -> dict[str, Any]:
    """Fit one detector to the rows of one case, on one thread, and judge its scores."""
    parts = draw(next(case for case in CASES if case.name == name), seed, n)
    with cells.undisturbed():
        return cells.figures(parts, detector(method, seed).fit(parts.train).score(parts.test))


def measure_breaks(spread: float, seed: int, n: int) -> dict[str, Any]:
    """Fit RankAD to rows that obey a relation; return the share of broken ones with small p-values."""
    rng = np.random.default_rng(seed)
    train, broken = breaks(rng, n, spread), breaks(rng, n // 4, spread, _MOVED)
    with cells.undisturbed():
        p_values = detector(RANKAD, seed).fit(train).estimator.p_values(broken)
    return {"found": float((p_values <= _P_VALUE).mean())}


def run(study: Study) -> tuple[Synthetic, list[dict[str, Any]]]:
    """Do the cells that are not finished yet; return what was found, and the records of the cases."""
    n = study.sizes.train
    names = [
        {"set": case.name, "seed": seed, "method": method}
        for case in CASES
        for seed in study.seeds
        for method in PEERS
    ]
    records = _finish(study, "synthetic: peers", names, n, cells.libraries())
    own = [name | {"method": RANKAD} for name in names if name["method"] == PEERS[0]]
    records += _finish(study, "synthetic: RankAD", own, n, None)
    places = [(spread, seed) for spread in SPREADS for seed in study.seeds]
    tried = [
        Cell(
            {"experiment": "synthetic-breaks", "spread": spread, "seed": seed, "n": n},
            partial(measure_breaks, spread, seed, n),
        )
        for spread, seed in places
    ]
    results = run_cells(tried, cells.store(study, _SOURCES), study.n_jobs, "synthetic: relations")
    shares: dict[float, list[float]] = {}
    for (spread, _), result in zip(places, results, strict=True):
        shares.setdefault(spread, []).append(result["found"])
    order = [case.name for case in CASES]
    compared = compare(records, "auc", methods=(RANKAD, *PEERS))
    values = np.array([compared.values[compared.sets.index(name)] for name in order])
    found = {spread: mean(several) for spread, several in shares.items()}
    return Synthetic(Comparison(tuple(order), compared.methods, values), found), records


def _finish(
    study: Study,
    label: str,
    names: Sequence[Mapping[str, Any]],
    n: int,
    libraries: Mapping[str, str] | None,
) -> list[dict[str, Any]]:
    """Do cells of cases that are not finished yet, and return a record each."""
    several = [
        Cell(
            {"experiment": "synthetic", "n": n, **name},
            partial(measure, name["set"], name["method"], name["seed"], n),
        )
        for name in names
    ]
    results = run_cells(several, cells.store(study, _SOURCES, libraries), study.n_jobs, label)
    return [{**name, "share": 0.0, **result} for name, result in zip(names, results, strict=True)]


def tables(synthetic: Synthetic, n: int) -> list[Table]:
    """Show every case, and the relations."""
    cases = synthetic.cases
    methods = (RANKAD, *PEERS)
    rows = []
    for at, (case, below) in enumerate(zip(CASES, synthetic.below, strict=True)):
        texts = [f"{cases.of(method)[at]:.3f}" for method in methods]
        bold = [f"**{text}**" if text == max(texts) else text for text in texts]
        rows.append([case.name, case.what, *bold, f"{round(below, 3) + 0.0:+.3f}"])
    rows.append(["**mean**", "", *(f"{cases.means[method]:.3f}" for method in methods), ""])
    notes = [
        f"AUC; {n:,} nominal rows to train on, as many to test, {n // 4:,} anomalies. Below: how far RankAD "
        "is below the best of the others. Nominal rows stand before the semicolon, anomalies after it.",
    ]
    relations = [[f"{spread:g}", f"{100 * found:.1f} %"] for spread, found in synthetic.found.items()]
    said = [
        "20 columns: x1, x2 and x3 of the standard deviation named, x4 = x1 + x2 + x3 with noise 1, and 16 "
        f"of noise. One of the four is moved by {_MOVED:g}; found means p <= {_P_VALUE:g}. The bar is about "
        f"a standard deviation of {JUDGED:g}.",
    ]
    return [
        Table("synthetic", "Made-up rows", ["case", "rows", *methods, "below"], rows, notes),
        Table("relations", "Broken relations", ["standard deviation", "found"], relations, said),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases alone, and print the tables."""
    parser = options.parser("python -m benchmarks.quality.synthetic", __doc__, 1)
    given = parser.parse_args(arguments)
    study = Study(given.out, Path(), given.seeds, given.jobs, given.quick)
    found, _ = run(study)
    print(*(table.markdown() for table in tables(found, study.sizes.train)), sep="\n\n")


if __name__ == "__main__":
    main()
