"""One cell of the research study: a variant of RankAD on one split of one set."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.preprocessing import QuantileTransformer

from benchmarks.quality.cells import cell_key, figures, store, undisturbed
from benchmarks.quality.knobs import Fit, Knob
from benchmarks.quality.sets import SetFile, load_set
from benchmarks.quality.settings import Sizes, Study
from benchmarks.quality.splits import split
from rankad import RankAD
from rankad._arrays import Floats
from rankad.detectors import ranker
from rankad.detectors.fitting import RankFit
from rankad.experiments.cells import Cell, run_cells
from rankad.ranks import density_ranks
from rankad.scaling import fit_scaling
from rankad.scorer import FAR_REACH, KernelScorer

__all__ = ["Fitted", "far_scores", "fitted", "measure", "read", "run"]

# Modules that a cell's result depends on. Not what is varied: that is part of the cells' keys.
_SOURCES = ("cells.py", "trials.py", "sets.py", "settings.py", "splits.py")
# Rows whose distances to all landmarks are held at once.
_BLOCK = 4_096
# Axes along which rows vary less than this, of columns that vary by one, do not vary.
_FLAT = 1e-8


class Fitted(NamedTuple):
    """A detector, and what is done to rows before it sees them."""

    detector: RankAD
    prepare: Callable[[Floats], Floats]

    def score(self, rows: Floats) -> Floats:
        """Score rows; higher is more nominal."""
        return np.asarray(self.detector.score_samples(self.prepare(rows)))


def fitted(fit: Fit, rows: Floats, seed: int) -> Fitted:
    """Fit a variant of RankAD.

    In-sample calibration spares the cross-fitted models: scores are the same.
    """
    parameters = dict(fit.parameters)
    if "n_neighbors" in parameters:
        # Folds may be half of the rows, and neighbours are looked for in halves of these.
        parameters["n_neighbors"] = min(parameters["n_neighbors"], len(rows) // 4)
    if fit.C_times_rows is not None:
        parameters["C"] = fit.C_times_rows / len(rows)
    seed += fit.later_seed
    prepare = _PREPARED[fit.rows](rows, seed)
    detector = RankAD(**parameters, calibration="in-sample", random_state=seed, n_jobs=1)
    with ExitStack() as patches:
        if fit.far_share is not None:
            patches.enter_context(patch.object(ranker, "FAR_SHARE", fit.far_share))
        if fit.negatives == "uniform":
            patches.enter_context(patch.object(RankFit, "_negatives", _uniform_alone))
        detector.fit(prepare(rows))
    return Fitted(detector, prepare)


_all_negatives = RankFit._negatives


def _uniform_alone(self: RankFit, *arguments: Any) -> list[Floats]:
    """Make up the rows of "contrast", and leave out those with shuffled columns, which come first."""
    return _all_negatives(self, *arguments)[1:]


def _as_they_are(rows: Floats, seed: int) -> Callable[[Floats], Floats]:
    return lambda others: others


def _whitened(rows: Floats, seed: int) -> Callable[[Floats], Floats]:
    """Return how to turn rows to these rows' principal axes; one along which they do not vary keeps its unit.

    Columns are standardized first, so that no unit drowns another in rounding.
    """
    standard = fit_scaling(rows, "standard")
    _, lengths, axes = np.linalg.svd(standard.apply(rows), full_matrices=False)
    spreads = lengths / np.sqrt(len(rows))
    units = np.where(spreads > _FLAT, spreads, 1.0)
    return lambda others: standard.apply(others) @ axes.T / units


def _quantile(rows: Floats, seed: int) -> Callable[[Floats], Floats]:
    """Return how to make every column normal, by these rows' quantiles."""
    many = min(1_000, len(rows))
    learned = QuantileTransformer(n_quantiles=many, output_distribution="normal", random_state=seed).fit(rows)
    return lambda others: np.asarray(learned.transform(others))


_PREPARED = {None: _as_they_are, "whitened": _whitened, "quantile": _quantile}


def read(several: Sequence[Fitted], reading: str | int, train: Floats, test: Floats) -> Floats:
    """Return one score for each test row: see `knobs.Variant`."""
    if reading == "ranks":
        ranks = [density_ranks(one.score(test), one.score(train)) for one in several]
        return np.asarray(np.mean(ranks, axis=0))
    if reading == "scores":
        known = [one.score(train) for one in several]
        scaled = [
            (one.score(test) - own.mean()) / (own.std() or 1.0)
            for one, own in zip(several, known, strict=True)
        ]
        return np.asarray(np.mean(scaled, axis=0))
    [only] = several
    return far_scores(only.detector.scorer_, test, reading) if isinstance(reading, int) else only.score(test)


def far_scores(scorer: KernelScorer, rows: Floats, nearest: int) -> Floats:
    """Return what a scorer with far field would say if far distances were means over `nearest` landmarks.

    Capped at `nearest` times the distance to the nearest one; of fewer landmarks, all are taken. In plain
    NumPy; for the number that the scorer itself takes it is the same as its own score.
    """
    center, many = scorer.landmarks.mean(axis=0), min(nearest, len(scorer.landmarks))
    landmarks = (scorer.landmarks - center) / scorer.widths
    scores = np.empty(len(rows))
    for begin in range(0, len(rows), _BLOCK):
        distances = cdist((rows[begin : begin + _BLOCK] - center) / scorer.widths, landmarks)
        least = np.sort(distances, axis=1)[:, :many]
        far = np.minimum(least.mean(axis=1), many * least[:, 0])
        near = np.exp(-(distances**2)) @ scorer.coefficients
        scores[begin : begin + _BLOCK] = near - np.maximum(0.0, far - FAR_REACH)
    if scorer.limits is None:
        return scores
    low, high, unit = scorer.limits
    beyond = np.maximum(0.0, np.maximum(low - rows, rows - high))
    return np.asarray(scores - (beyond / unit).max(axis=1))


def measure(
    path: Path, digest: str, seed: int, fits: Sequence[Fit], readings: Sequence[str | int], sizes: Sizes
) -> dict[str, Any]:
    """Fit a variant on one split, on one thread, and judge its scores.

    Returns
    -------
    dict
        Under "readings", AUC and average precision of each: all from the same fits. Sizes and times.
    """
    parts = split(load_set(path, digest), seed, 0.0, sizes)
    with undisturbed():
        begin = time.perf_counter()
        several = [fitted(fit, parts.train, seed) for fit in fits]
        seconds = time.perf_counter() - begin
        found = {
            str(reading): figures(parts, read(several, reading, parts.train, parts.test))
            for reading in readings
        }
    return {"readings": found, "fit_seconds": seconds, "n_train": len(parts.train)}


# --------------------------------------------------------------------------------------------------- the run


def run(study: Study, sets: Sequence[SetFile], knobs: Sequence[Knob]) -> list[dict[str, Any]]:
    """Do the cells that are not finished yet; return a record for every variant, set and seed.

    A record's "method" is what its knob calls the variant; the default is there once.
    """
    variants = {knob.key(variant): variant for knob in knobs for variant in knob.variants}
    readings: dict[tuple[Fit, ...], list[str | int]] = {}
    for variant in variants.values():
        readings.setdefault(variant.fits, []).append(variant.reading)
    places = [(one, seed) for one in sets for seed in study.seeds]
    tasks = [(one, seed, fits) for one, seed in places for fits in readings]
    cells = [_cell(*task, readings[task[2]], study.sizes) for task in tasks]
    results = run_cells(cells, store(study, _SOURCES), study.n_jobs, "research")
    found = {(one.name, seed, fits): result for (one, seed, fits), result in zip(tasks, results, strict=True)}
    records = []
    for one, seed in places:
        for key, variant in variants.items():
            result = dict(found[one.name, seed, variant.fits])
            judged = result.pop("readings")[str(variant.reading)]
            records.append({"set": one.name, "seed": seed, "method": key, "share": 0.0, **judged, **result})
    return records


def _cell(one: SetFile, seed: int, fits: Sequence[Fit], readings: Sequence[str | int], sizes: Sizes) -> Cell:
    named = {"set": one.name, "seed": seed, "fits": [fit._asdict() for fit in fits], "readings": readings}
    key = cell_key("research", one, sizes, named)
    return Cell(key, partial(measure, one.path, one.digest, seed, fits, readings, sizes))
