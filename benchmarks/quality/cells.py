"""One cell: a detector fitted on one split of one set, and what its scores are worth."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from benchmarks.quality.methods import CONTAMINATED, KNN, METHODS, OURS, RANKAD, detector
from benchmarks.quality.sets import SetFile, load_set
from benchmarks.quality.settings import ALPHAS, SHARES, Sizes, Study
from benchmarks.quality.splits import Parts, split
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.experiments.measures import auc

__all__ = [
    "cell_key",
    "figures",
    "libraries",
    "measure",
    "ordered",
    "run",
    "run_more_splits",
    "store",
    "undisturbed",
]

# Modules that a cell's result depends on; the others show results.
_SOURCES = ("../peers.py", "cells.py", "methods.py", "sets.py", "settings.py", "splits.py")


def measure(path: Path, digest: str, seed: int, method: str, share: float, sizes: Sizes) -> dict[str, Any]:
    """Fit one detector on one split, on one thread, and judge its scores.

    Returns
    -------
    dict
        "auc" and "average_precision" on all test rows, anomalies being what is looked for; "auc_spared" on
        those that are test rows at every share; sizes and times. Of RankAD also how many parts its score
        has, and for each alpha the "alarms" among m nominal test rows, with r and n of their law.
    """
    parts = split(load_set(path, digest), seed, share, sizes)
    with undisturbed():
        judged = detector(method, seed)
        begin = time.perf_counter()
        judged.fit(parts.train)
        fitted = time.perf_counter()
        scores = judged.score(parts.test)
        scored = time.perf_counter()
        more = _of_rankad(judged.estimator, parts) if method in OURS else {}
    return {
        **figures(parts, scores),
        "auc_spared": auc(parts.nominal[parts.spared], ordered(scores)[parts.spared]),
        "fit_seconds": fitted - begin,
        "score_seconds": scored - fitted,
        "n_train": len(parts.train),
        "n_mixed": parts.mixed,
        "n_nominal": int(parts.nominal.sum()),
        "n_anomalies": int((~parts.nominal).sum()),
        **more,
    }


@contextmanager
def undisturbed() -> Iterator[None]:
    """Compute on one thread. What a method grumbles about is its own matter: its scores are judged."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def figures(parts: Parts, scores: Floats) -> dict[str, Any]:
    """Return what the scores of the test rows are worth, and how many are not finite."""
    usable = ordered(scores)
    return {
        "auc": auc(parts.nominal, usable),
        "average_precision": float(average_precision_score(~parts.nominal, -usable)),
        "not_finite": int((~np.isfinite(scores)).sum()),
    }


def _of_rankad(estimator: Any, parts: Parts) -> dict[str, Any]:
    """Count RankAD's false alarms, and say of what it is made."""
    p_values, calibration = estimator.p_values(parts.test[parts.nominal]), estimator.calibration_
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
        "n_parts": estimator.scorer_.n_parts,
        "calibration": calibration.kind,
        "bandwidth": estimator.bandwidth_,
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
    # Cells of peers are kept whatever rankad's source, RankAD's own for this one only.
    peers, ours = store(study, _SOURCES, libraries()), store(study, _SOURCES)
    theirs = [method for method in METHODS if method not in OURS]
    return [
        *_records(study, peers, "peers", _names(sets, study.seeds, theirs)),
        *_records(study, ours, "RankAD", _names(sets, study.seeds, OURS)),
    ]


def run_more_splits(study: Study, sets: Sequence[SetFile]) -> list[dict[str, Any]]:
    """Return records of RankAD and k-NN 5 without anomalies among the training rows, on more splits.

    RankAD's are of all splits on which false alarms are counted, k-NN 5's of those over which AUC may spread.
    """
    alarms = [(*named, 0.0) for named in product(sets, study.alarm_seeds, [RANKAD])]
    spread = [(*named, 0.0) for named in product(sets, study.spread_seeds, [KNN])]
    return [
        *_records(study, store(study, _SOURCES, libraries()), "spread", spread),
        *_records(study, store(study, _SOURCES), "false alarms", alarms),
    ]


def libraries() -> dict[str, str]:
    """Return the versions that the peers' results depend on."""
    used = ["numpy", "scikit-learn", "pyod", *["torch"] * (find_spec("torch") is not None)]
    return {name: version(name) for name in used}


_Name = tuple[SetFile, int, str, float]


def _names(sets: Sequence[SetFile], seeds: Iterable[int], methods: Sequence[str]) -> list[_Name]:
    """Return what cells are of, set by set, so that a process seldom loads another."""
    return [
        (one, seed, method, share)
        for one, seed, method in product(sets, seeds, methods)
        for share in (0.0, *(SHARES if method in CONTAMINATED else ()))
    ]


def _records(study: Study, kept: CellStore, label: str, names: Sequence[_Name]) -> list[dict[str, Any]]:
    """Do the cells that are not finished yet."""
    keys = [
        {"set": one.name, "seed": seed, "method": method, "share": share}
        for one, seed, method, share in names
    ]
    cells = [
        Cell(
            cell_key("quality", one, study.sizes, key),
            partial(measure, one.path, one.digest, seed, method, share, study.sizes),
        )
        for key, (one, seed, method, share) in zip(keys, names, strict=True)
    ]
    results = run_cells(cells, kept, study.n_jobs, f"quality: {label}")
    return [{**key, **result} for key, result in zip(keys, results, strict=True)]


def cell_key(experiment: str, one: SetFile, sizes: Sizes, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a cell's result depends on, but for source and libraries."""
    return {
        "experiment": experiment,
        "file": one.path.name,
        "sha256": one.digest,
        "sizes": sizes._asdict(),
        **named,
    }


def store(study: Study, sources: Iterable[str], used: Mapping[str, str] | None = None) -> CellStore:
    """Return where finished cells are kept, for these very sources.

    Parameters
    ----------
    study : Study
    sources : iterable of str
        Modules of this folder that the results depend on.
    used : mapping of str to str, optional
        Versions that the results depend on; by default rankad's source, and all that it computes with.
    """
    source = hashlib.sha256()
    for name in sources:
        source.update(name.encode() + b"\0" + (Path(__file__).parent / name).read_bytes() + b"\0")
    study.cells.mkdir(parents=True, exist_ok=True)
    (study.cells / ".gitignore").write_text("*\n")
    known = CellStore(study.cells).stamp if used is None else used
    return CellStore(study.cells, {**known, "quality": source.hexdigest()[:16]})
