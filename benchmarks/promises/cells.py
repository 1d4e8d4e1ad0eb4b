"""One cell: a detector fitted several times on samples of one law, and its false alarms on fresh rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import false_discovery_control
from threadpoolctl import threadpool_limits

from benchmarks.promises.laws import LAWS, Law
from rankad import KLPE, EpsilonLPE, RankAD, TableDetector
from rankad._base.arrays import Floats
from rankad.detectors.base import CalibratedDetector
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.stages.calibration import Calibration
from rankad.stages.copies import row_variates

__all__ = ["ALPHAS", "BATCH", "DETECTORS", "FDR", "FITS", "TRIMMED", "Size", "as_table", "measure", "run"]

ALPHAS = (0.1, 0.05, 0.01)
# Fresh rows, as a multiple of the rows fitted on, and at least: so many that counting them adds little to the
# spread of the rate over fits.
N_FRESH, FRESH_PER_ROW = 8_000, 4
# Fresh rows are also taken in batches of so many, with this rate of false discoveries. All rows are nominal:
# any discovery is false.
BATCH, FDR = 200, 0.1


class Size(NamedTuple):
    """How many rows are fitted on, and how often."""

    n: int
    fits: int


# Many fits where they are cheap.
FITS = (Size(20, 24), Size(100, 24), Size(300, 12), Size(1_000, 6), Size(2_000, 3), Size(20_000, 2))
FEW = (Size(100, 24), Size(1_100, 8))

DETECTORS: dict[str, tuple[Callable[[int], CalibratedDetector], Sequence[Size]]] = {
    "RankAD": (lambda seed: RankAD(random_state=seed), FITS),
    "RankAD, split": (lambda seed: RankAD(calibration="split", random_state=seed), (Size(200, 8),)),
    "RankAD, trim=0.02": (lambda seed: RankAD(trim=0.02, random_state=seed), (Size(300, 6),)),
    "TableDetector": (lambda seed: TableDetector(RankAD(random_state=seed)), (Size(200, 8), Size(1_000, 3))),
    "KLPE": (lambda seed: KLPE(random_state=seed), FEW),
    "EpsilonLPE": (lambda seed: EpsilonLPE(random_state=seed), FEW),
}

# The share of rows that a detector leaves out as suspects.
TRIMMED = {"RankAD, trim=0.02": 0.02}


def as_table(rows: Floats) -> dict[str, Any]:
    """Return rows as a table with a column of categories and, in one row of seven, a missing cell.

    Which category and which cell depend on the row alone, so that copies of rows stay copies.
    """
    variates = row_variates(rows)
    missing = np.floor(variates * 7e3).astype(int) % 7 == 0
    cells = rows.copy()
    cells[missing, np.floor(variates[missing] * 1e6).astype(int) % rows.shape[1]] = np.nan
    columns: dict[str, Any] = {f"x{at}": column for at, column in enumerate(cells.T)}
    columns["kind"] = np.array(list("abcdefgh"))[np.minimum(-np.log2(variates), 7).astype(int)]
    return columns


def measure(name: str, law: Law, size: Size) -> dict[str, Any]:
    """Fit on independent samples and count alarms among fresh rows.

    Returns
    -------
    dict
        For every alpha and fit: the "rates" of alarms, the "bounds" claimed (None where none is), and the
        rates that an "exact" calibration of the same scorer has: by as many rows, drawn again. For every fit:
        "n_calibrating", the number of rows that calibrate, and the "discoveries", the share of batches in
        which Benjamini and Hochberg's rule finds any.
    """
    make, _ = DETECTORS[name]
    given: Callable[[Floats], Any] = as_table if name == "TableDetector" else np.asarray
    rates, bounds, exact, kinds, discoveries, sizes = [], [], [], [], [], []
    for fit in range(size.fits):
        rng = np.random.default_rng([LAWS.index(law), size.n, fit])
        n_fresh = max(N_FRESH, FRESH_PER_ROW * size.n)
        training, fresh = law.training(size.n, rng), law.draw(n_fresh, rng)
        with threadpool_limits(limits=1), warnings.catch_warnings():
            # Warnings are for users; here it is counted what they are about.
            warnings.simplefilter("ignore")
            detector = make(fit).fit(given(training))
        n_calibrating = detector.calibration_.scores.size
        others = law.training(n_calibrating, rng) if law.n_anomalies else law.draw(n_calibrating, rng)
        ideal = Calibration.from_scores(detector.score_samples(given(others)), "split")
        scores = detector.score_samples(given(fresh))
        promises = [detector.false_alarm_bound(alpha) for alpha in ALPHAS]
        rates.append([float(np.mean(scores < detector.calibration_.threshold(alpha))) for alpha in ALPHAS])
        exact.append([float(np.mean(scores < ideal.threshold(alpha))) for alpha in ALPHAS])
        bounds.append([None if promise.bound >= 1 else promise.bound for promise in promises])
        kinds.append(detector.calibration_.kind)
        sizes.append(n_calibrating)
        batches = detector.calibration_.p_values(scores).reshape(-1, BATCH)
        discoveries.append(
            float(np.mean([(false_discovery_control(batch) <= FDR).any() for batch in batches]))
        )
    return {
        "rates": rates,
        "bounds": bounds,
        "exact": exact,
        "kinds": kinds,
        "n_calibrating": sizes,
        "discoveries": discoveries,
    }


def run(store: CellStore, n_jobs: int, names: Sequence[str] = tuple(DETECTORS)) -> list[dict[str, Any]]:
    """Do the cells that are not finished yet; return a record each."""
    found = []
    for name in names:
        keys = [
            {"experiment": "promises", "detector": name, "law": law.name, "n": size.n, "fits": size.fits}
            for size in DETECTORS[name][1]
            for law in LAWS
            if size.n >= law.least
        ]
        cells = [
            Cell(key, partial(_measure_named, name, key["law"], Size(key["n"], key["fits"]))) for key in keys
        ]
        results = run_cells(cells, store, n_jobs, f"promises: {name}")
        found += [{**key, **result} for key, result in zip(keys, results, strict=True)]
    return found


def _measure_named(name: str, law: str, size: Size) -> dict[str, Any]:
    # Laws hold functions that no process can send to another.
    return measure(name, next(one for one in LAWS if one.name == law), size)
