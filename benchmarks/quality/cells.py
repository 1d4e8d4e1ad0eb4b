"""One cell: a detector fitted on one split of one set, and what its scores are worth."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from benchmarks.quality.methods import CONTAMINATED, METHODS, RANKAD, detector
from benchmarks.quality.sets import SetFile, load_set
from benchmarks.quality.settings import ALPHAS, SHARES, Sizes, Study
from benchmarks.quality.splits import Parts, split
from rankad._arrays import Floats
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.experiments.measures import auc

__all__ = ["measure", "ordered", "run"]

# Modules that a cell's result depends on; the others show results.
_SOURCES = ("../peers.py", "cells.py", "methods.py", "sets.py", "settings.py", "splits.py")


def measure(path: Path, digest: str, seed: int, method: str, share: float, sizes: Sizes) -> dict[str, Any]:
    """Fit one detector on one split, on one thread, and judge its scores.

    Returns
    -------
    dict
        "auc" and "average_precision" on all test rows, anomalies being what is looked for; "auc_spared" on
        those that are test rows at every share; sizes and times. Of RankAD also what it selected, and for
        each alpha the "alarms" among m nominal test rows, with r and n of their law.
    """
    parts = split(load_set(path, digest), seed, share, sizes)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # What a method grumbles about is its own matter: its scores are judged.
        warnings.simplefilter("ignore")
        judged = detector(method, seed)
        begin = time.perf_counter()
        judged.fit(parts.train)
        fitted = time.perf_counter()
        scores = judged.score(parts.test)
        scored = time.perf_counter()
        more = _of_rankad(judged.estimator, parts) if method == RANKAD else {}
    usable = ordered(scores)
    return {
        "auc": auc(parts.nominal, usable),
        "average_precision": float(average_precision_score(~parts.nominal, -usable)),
        "auc_spared": auc(parts.nominal[parts.spared], usable[parts.spared]),
        "not_finite": int((~np.isfinite(scores)).sum()),
        "fit_seconds": fitted - begin,
        "score_seconds": scored - fitted,
        "n_train": len(parts.train),
        "n_mixed": parts.mixed,
        "n_nominal": int(parts.nominal.sum()),
        "n_anomalies": int((~parts.nominal).sum()),
        **more,
    }


def _of_rankad(estimator: Any, parts: Parts) -> dict[str, Any]:
    """Count RankAD's false alarms, and say what it selected."""
    p_values = estimator.p_values(parts.test[parts.nominal])
    calibration, trials = estimator.calibration_, estimator.selection_
    scaling = trials.scalings[trials.best]
    tried = [sigma for sigma, of in zip(trials.bandwidths, trials.scalings, strict=True) if of == scaling]
    return {
        "false_alarms": [
            {
                "alpha": alpha,
                "alarms": int((p_values <= alpha).sum()),
                "r": calibration.n_below(alpha),
                "n": calibration.scores.size,
                "m": p_values.size,
            }
            for alpha in ALPHAS
        ],
        "scaling": scaling or "none",
        "bandwidth": estimator.bandwidth_,
        "bandwidth_over_least": estimator.bandwidth_ / min(tried),
        "C": estimator.C_,
        "converged": estimator.converged_,
    }


def ordered(scores: Floats) -> Floats:
    """Return finite scores in the same order; one that is not a number counts as the lowest.

    Examples
    --------
    >>> bool(np.all(np.diff(ordered(np.array([np.nan, -1e300, 0.0, np.inf]))) > 0))
    True
    """
    most = np.finfo(np.float64).max
    return np.nan_to_num(scores, nan=-most, posinf=most, neginf=-most)


# --------------------------------------------------------------------------------------------------- the run


def run(study: Study, sets: Sequence[SetFile]) -> list[dict[str, Any]]:
    """Do the cells that are not finished yet; return a record each, what it is of and what was found."""
    peers, ours = _stores(study)
    theirs = [method for method in METHODS if method != RANKAD]
    records: list[dict[str, Any]] = []
    for label, store, methods in (("peers", peers, theirs), ("RankAD", ours, [RANKAD])):
        keys, cells = zip(*_cells(study, sets, methods), strict=True)
        results = run_cells(cells, store, study.n_jobs, f"quality: {label}")
        records += [{**key, **result} for key, result in zip(keys, results, strict=True)]
    return records


def _cells(
    study: Study, sets: Sequence[SetFile], methods: Sequence[str]
) -> Iterable[tuple[dict[str, Any], Cell]]:
    """Yield the cells, set by set, so that a process seldom loads another."""
    sizes = study.sizes
    for one in sets:
        for seed in study.seeds:
            for method in methods:
                for share in (0.0, *(SHARES if method in CONTAMINATED else ())):
                    named = {"set": one.name, "seed": seed, "method": method, "share": share}
                    key = {
                        "experiment": "quality",
                        "file": one.path.name,
                        "sha256": one.digest,
                        "sizes": sizes._asdict(),
                        **named,
                    }
                    yield named, Cell(key, partial(measure, one.path, one.digest, seed, method, share, sizes))


def _stores(study: Study) -> tuple[CellStore, CellStore]:
    """Return where cells are kept: those of peers whatever rankad's source, RankAD's own of this one only."""
    source = hashlib.sha256()
    for name in _SOURCES:
        source.update(name.encode() + b"\0" + (Path(__file__).parent / name).read_bytes() + b"\0")
    quality = {"quality": source.hexdigest()[:16]}
    study.cells.mkdir(parents=True, exist_ok=True)
    (study.cells / ".gitignore").write_text("*\n")
    libraries = {name: version(name) for name in ("numpy", "scikit-learn", "pyod")}
    ours = CellStore(study.cells).stamp
    return CellStore(study.cells, {**libraries, **quality}), CellStore(study.cells, {**ours, **quality})
