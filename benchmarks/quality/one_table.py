"""``python -m benchmarks.quality.one_table``: tables nobody vouches for, judged by what is fitted on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score

from benchmarks.quality import bars, cells, comparison, methods, options, report
from benchmarks.quality.sets import SetFile, load_set
from benchmarks.quality.settings import Sizes, Study
from benchmarks.report import print_bars
from rankad._base.arrays import Bools, Floats
from rankad.experiments.cells import Cell, run_cells
from rankad.experiments.datasets import Dataset
from rankad.experiments.measures import auc

__all__ = ["METHODS", "OURS", "Sample", "judge", "main", "measure", "sample", "show"]

OURS = "RankAD"
FOREST = "IsolationForest"
# Modules that a cell's result depends on; the others show results.
_SOURCES = ("cells.py", "methods.py", "one_table.py", "sets.py", "settings.py")
_LEAST_ANOMALIES = 5
_MEAN_AUC, _MEAN_PRECISION = 0.808, 0.405

_PAGE = report.Page(
    "one_table",
    "python -m benchmarks.quality.one_table",
    (
        "RankAD: `RankAD().fit_p_values(rows)`, by which `fit_predict` and `rankad find` decide. Peers have "
        "their library's defaults and columns standardized by all rows. k-NN: the mean distance to so many "
        "nearest other rows, a tenth of all rows for k-NN 10 %. Scores are those of the rows fitted on, as a "
        "library gives them: LOF's negative_outlier_factor_, PyOD's decision_scores_.",
    ),
    opening="Every set as a table that nobody vouches for: anomalies are left in, and detectors are fitted "
    "on the rows that they judge. Sets of more than {sizes.train:,} rows are sampled to so many, with the "
    "share of anomalies that they have (five at least). Figures are means over {n_seeds} seeds, of the "
    "sample and of the detector.",
    made_by="make quality",
)


class Sample(NamedTuple):
    """A table: its rows, and which of them are nominal."""

    rows: Floats
    nominal: Bools


def sample(dataset: Dataset, seed: int, most: int) -> Sample:
    """Draw at most `most` rows of a set, with its share of anomalies."""
    nominal = dataset.y == 0
    n = len(nominal)
    if n <= most:
        return Sample(dataset.X, nominal)
    rng = np.random.default_rng(seed)
    n_anomalies = int((~nominal).sum())
    wanted = max(round(most * n_anomalies / n), min(_LEAST_ANOMALIES, n_anomalies))
    drawn = np.concatenate(
        [
            rng.permutation(np.flatnonzero(~nominal))[:wanted],
            rng.permutation(np.flatnonzero(nominal))[: most - wanted],
        ]
    )
    drawn.sort()
    return Sample(dataset.X[drawn], nominal[drawn])


def _standardized(rows: Floats) -> Floats:
    spread = rows.std(axis=0)
    return np.asarray((rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


# ------------------------------------------------------------------------------------------------ the methods


def _rankad(rows: Floats, seed: int) -> Floats:
    from rankad import RankAD

    return RankAD(random_state=seed, n_jobs=1).fit_p_values(rows)


def _forest(rows: Floats, seed: int) -> Floats:
    from sklearn.ensemble import IsolationForest

    scaled = _standardized(rows)
    return np.asarray(IsolationForest(random_state=seed).fit(scaled).score_samples(scaled))


def _neighbours(k: float, rows: Floats, seed: int) -> Floats:
    from sklearn.neighbors import NearestNeighbors

    wanted = int(k if k >= 1 else max(1, k * len(rows)))
    # Without rows to ask about, a row is not its own neighbour.
    found = NearestNeighbors(n_neighbors=wanted).fit(_standardized(rows)).kneighbors()[0]
    return -np.asarray(found.mean(axis=1))


def _local_outlier_factor(rows: Floats, seed: int) -> Floats:
    from sklearn.neighbors import LocalOutlierFactor

    return np.asarray(LocalOutlierFactor().fit(_standardized(rows)).negative_outlier_factor_)


def _one_class_svm(rows: Floats, seed: int) -> Floats:
    from sklearn.svm import OneClassSVM

    scaled = _standardized(rows)
    return np.asarray(OneClassSVM().fit(scaled).score_samples(scaled))


def _pyod(name: str, rows: Floats, seed: int) -> Floats:
    built = methods.METHODS[name].build(seed)
    return -np.asarray(built.fit(_standardized(rows)).decision_scores_)


# Rows and a seed to scores of the same rows; higher is more nominal.
METHODS: dict[str, Callable[[Floats, int], Floats]] = {
    OURS: _rankad,
    FOREST: _forest,
    "k-NN 5": partial(_neighbours, 5),
    "k-NN 20": partial(_neighbours, 20),
    "k-NN 50": partial(_neighbours, 50),
    "k-NN 10 %": partial(_neighbours, 0.1),
    "LOF": _local_outlier_factor,
    "OneClassSVM": _one_class_svm,
    **{name: partial(_pyod, name) for name in ("ECOD", "COPOD", "HBOS", "INNE", "PCA", "GMM")},
}


# --------------------------------------------------------------------------------------------------- the run


def measure(path: Path, digest: str, seed: int, method: str, sizes: Sizes) -> dict[str, Any]:
    """Fit one detector on one table, on one thread, and judge what it says of the same rows."""
    table = sample(load_set(path, digest), seed, sizes.train)
    with cells.undisturbed():
        begin = time.perf_counter()
        scores = METHODS[method](table.rows, seed)
        spent = time.perf_counter() - begin
    usable = cells.ordered(scores)
    return {
        "auc": auc(table.nominal, usable),
        "average_precision": float(average_precision_score(~table.nominal, -usable)),
        "not_finite": int((~np.isfinite(scores)).sum()),
        "seconds": spent,
        "n_rows": len(table.rows),
        "n_anomalies": int((~table.nominal).sum()),
    }


def _run(study: Study, sets: Sequence[SetFile]) -> list[dict[str, Any]]:
    """Do the cells that are not finished yet; return a record each."""
    libraries = {name: version(name) for name in ("numpy", "scikit-learn", "pyod")}
    records = []
    # Cells of peers are kept whatever rankad's source.
    for label, chosen, known in (
        ("peers", [name for name in METHODS if name != OURS], libraries),
        (OURS, [OURS], None),
    ):
        names = list(product(sets, study.seeds, chosen))
        keys = [{"set": one.name, "seed": seed, "method": method} for one, seed, method in names]
        results = run_cells(
            [
                Cell(
                    cells.cell_key("one table", one, study.sizes, key),
                    partial(measure, one.path, one.digest, seed, method, study.sizes),
                )
                for key, (one, seed, method) in zip(keys, names, strict=True)
            ],
            cells.store(study, _SOURCES, known),
            study.n_jobs,
            f"one table: {label}",
        )
        records += [{**key, "share": 0.0, **result} for key, result in zip(keys, results, strict=True)]
    return records


def judge(auc: comparison.Comparison, precision: comparison.Comparison) -> list[bars.Bar]:
    """Judge the bars on this run's own figures."""
    judged = []
    for what, found, asked in (
        ("Mean AUC", auc, _MEAN_AUC),
        ("Mean average precision", precision, _MEAN_PRECISION),
    ):
        means = found.means
        best = max((method for method in found.methods if method != OURS), key=means.__getitem__)
        judged += [
            bars.Bar(what, f">= {asked}", f"{means[OURS]:.4f}", means[OURS], means[OURS] >= asked),
            bars.Bar(
                f"{what} beside the peers'",
                "the best",
                f"{means[OURS]:.4f}; best peer {best}, {means[best]:.4f}",
                means[OURS] - means[best],
                means[OURS] >= means[best],
            ),
        ]
    return judged


def show(study: Study, sets: Sequence[SetFile]) -> list[bars.Bar]:
    """Run the study, write its page, and return the bars."""
    begin = time.monotonic()
    records = _run(study, sets)
    auc, precision = (
        comparison.compare(records, what, methods=METHODS) for what in ("auc", "average_precision")
    )
    judged = judge(auc, precision)
    tables = [
        bars.table(judged, study.quick, "`RankAD().fit_p_values`"),
        comparison.table(auc, "auc", "AUC", comparison.notes(auc, records)),
        comparison.table(
            precision, "average-precision", "Average precision", ("Detectors by their mean, best first.",)
        ),
        report.set_table(sets),
    ]
    raw: Mapping[str, Any] = {"bars": [bar._asdict() for bar in judged], "records": records}
    report.write(study, _PAGE, sets, tables, [], raw, time.monotonic() - begin)
    return judged


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study. One that was interrupted goes on where it was."""
    study, sets = options.read(arguments, "python -m benchmarks.quality.one_table", __doc__, 2)
    print_bars(show(study, sets), study.quick, study.out / "one_table.md")


if __name__ == "__main__":
    main()
