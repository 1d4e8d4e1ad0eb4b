"""One cell of the research study: a variant of RankAD on one split of one set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.quality.cells import cell_key, figures, store, undisturbed
from benchmarks.quality.knobs import PARTS, Fit, Knob, Reading
from benchmarks.quality.sets import SetFile, load_set
from benchmarks.quality.settings import Sizes, Study
from benchmarks.quality.splits import split
from rankad import RankAD
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell, run_cells
from rankad.scorers.fusion import FusedScorer, Units, fuse

__all__ = ["FOLDS", "fitted", "measure", "read", "run"]

# Modules that a cell's result depends on. Not what is varied: that is part of the cells' keys.
_SOURCES = ("cells.py", "trials.py", "sets.py", "settings.py", "splits.py")
# Folds of the calibration, in place of forty: of what they find, scores depend on the units of parts alone.
FOLDS = 8


def fitted(fit: Fit, rows: Floats, seed: int) -> RankAD:
    """Fit a variant of RankAD, with fewer folds of the calibration."""
    parameters = dict(fit.parameters)
    if "n_neighbors" in parameters:
        # Rows may be split in two, ranks are of folds of these, and neighbours are looked for in halves.
        parameters["n_neighbors"] = min(parameters["n_neighbors"], len(rows) // 6)
    if fit.C_times_rows is not None:
        parameters["C"] = fit.C_times_rows / len(rows)
    detector = RankAD(**parameters, random_state=seed + fit.later_seed, n_jobs=1)
    constants = {"rankad.fitting.sizes.CALIBRATION_FOLDS": FOLDS, **dict(fit.constants)}
    with ExitStack() as patches:
        for name, value in constants.items():
            patches.enter_context(patch(name, value))
        return detector.fit(rows)


def read(several: Sequence[RankAD], reading: Reading, rows: Floats) -> Floats:
    """Return one score for each row: see `knobs.Reading`."""
    return np.asarray(np.mean([_read_one(one.scorer_, reading, rows) for one in several], axis=0))


def _read_one(scorer: FusedScorer, reading: Reading, rows: Floats) -> Floats:
    if scorer.units is None or reading == Reading():
        return scorer.score(rows)
    there = [PARTS[0], *PARTS[1:2] * (scorer.near is not None), *PARTS[2:] * (scorer.mixture is not None)]
    which = [at for at, part in enumerate(there) if part in reading.parts] or [0]
    said = scorer.parts(rows)[which]
    units = Units(scorer.units.centers[which], scorer.units.spreads[which])
    if reading.fusion == "soft minimum":
        with ExitStack() as patches:
            if reading.reach is not None:
                patches.enter_context(patch("rankad.scorers.fusion._REACH", reading.reach))
            return fuse(said, units)
    # What each part would say alone: in its units, and far below the middle as a logarithm.
    alone = [fuse(one[None], Units(units.centers[[at]], units.spreads[[at]])) for at, one in enumerate(said)]
    return np.asarray(np.mean(alone, axis=0) if reading.fusion == "mean" else np.min(alone, axis=0))


def measure(
    path: Path, digest: str, seed: int, fits: Sequence[Fit], readings: Sequence[Reading], sizes: Sizes
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
        found = {str(reading): figures(parts, read(several, reading, parts.test)) for reading in readings}
    return {"readings": found, "fit_seconds": seconds, "n_train": len(parts.train)}


# --------------------------------------------------------------------------------------------------- the run


def run(study: Study, sets: Sequence[SetFile], knobs: Sequence[Knob]) -> list[dict[str, Any]]:
    """Do the cells that are not finished yet; return a record for every variant, set and seed.

    A record's "method" is what its knob calls the variant; the default is there once.
    """
    variants = {knob.key(variant): variant for knob in knobs for variant in knob.variants}
    readings: dict[tuple[Fit, ...], list[Reading]] = {}
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


def _cell(one: SetFile, seed: int, fits: Sequence[Fit], readings: Sequence[Reading], sizes: Sizes) -> Cell:
    named = {
        "set": one.name,
        "seed": seed,
        "fits": [fit._asdict() for fit in fits],
        "readings": [reading._asdict() for reading in readings],
    }
    key = cell_key("research", one, sizes, named)
    return Cell(key, partial(measure, one.path, one.digest, seed, fits, readings, sizes))
