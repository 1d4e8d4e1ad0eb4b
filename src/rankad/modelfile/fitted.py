"""Fitted detectors as plain values and arrays, and back, every value checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankad._base.arrays import LARGEST, Floats
from rankad._base.threads import importing
from rankad.detectors.lpe import KLPE, EpsilonLPE
from rankad.detectors.rank import RankAD
from rankad.model import RankModel
from rankad.modelfile.container import digest
from rankad.modelfile.fields import Arrays, Fields, Flaw, require
from rankad.modelfile.layout import as_json, restore, store
from rankad.modelfile.schema import LAYOUTS

DETECTORS: dict[str, Any] = {"RankAD": RankAD, "KLPE": KLPE, "EpsilonLPE": EpsilonLPE}
# Cut points are listed one by one: nobody has rows for so many levels.
_MOST_LEVELS = 1_000_000
# Landmarks or reference rows among the test rows.
_TESTED = 5
# How far scores of test rows may be off, as another processor may round differently: relative to the score,
# to what adds up to it, and to distances between landmarks, of at most this many bandwidths.
_TOLERANCE, _FARTHEST = 1e-6, 1e3


def parts_of(
    detector: RankAD | KLPE | EpsilonLPE, *, rows: bool
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a fitted detector as a header and arrays; its training rows are left out unless `rows`."""
    detector._check()
    kind = type(detector).__name__
    parameters, notes = parameters_of(detector)
    if isinstance(detector, RankAD):
        model = _with_rows(detector.model_, rows)
        fitted, arrays = store(LAYOUTS[kind], model)
        tests = _test_rows(model)
    else:
        if not rows:
            raise ValueError(
                f"rows=False would leave out what {kind} scores by, the normal rows themselves. Save it with "
                f"rows=True, or fit RankAD(near_field=False)."
            )
        fitted, arrays = store(LAYOUTS[kind], detector)
        fitted = {"n_neighbors": None, "statistic": None, "radius": None, **fitted}
        fitted["training_sha256"] = digest(detector.reference_)
        tests = _test_rows_of_density(detector)
    names = getattr(detector, "feature_names_in_", None)
    fitted["n_columns"] = int(detector.n_features_in_)
    fitted["feature_names"] = None if names is None else list(map(str, names))
    scores = detector._score(tests)
    p_values = detector.calibration_.p_values(scores)
    arrays |= {"tests.rows": tests, "tests.scores": scores, "tests.p_values": p_values}
    return {"detector": kind, "parameters": parameters, "notes": notes, "fitted": fitted}, arrays


def _with_rows(model: RankModel, rows: bool) -> RankModel:
    """Return the model to store: with the digest of its training rows, and with them only if `rows`."""
    near, nominal = model.scorer.near, model.nominal_rows
    if near is not None and not rows:
        raise ValueError(
            f"rows=False would leave out what this detector scores by: its near field compares with "
            f"{len(near.rows):,} normal rows. Fit with near_field=False for a model without rows, or "
            f"save it with rows=True."
        )
    sha256 = model.training_sha256 if nominal is None else digest(nominal)
    return replace(model, training_sha256=sha256, nominal_rows=nominal if rows else None)


def _test_rows(model: RankModel) -> Floats:
    """Make up rows near and far from landmarks and ranges, so that no training row is given away."""
    ranges = model.ranges
    unit = np.where(np.isfinite(ranges.unit), ranges.unit, 1.0)
    some = _some(model.scorer.kernel.landmarks)
    rows = np.vstack([*some, ranges.low, ranges.high, ranges.high + 10 * unit])
    return np.asarray(np.clip(rows, -LARGEST, LARGEST))


def _test_rows_of_density(detector: KLPE | EpsilonLPE) -> Floats:
    """Make up rows among the reference rows and beyond them."""
    scaling, reference = detector.scaling_, detector.reference_
    rows = np.vstack([*_some(reference), reference.max(axis=0) + 3.0]) * scaling.scale + scaling.center
    return np.asarray(np.clip(rows, -LARGEST, LARGEST))


def _some(rows: Floats) -> tuple[Floats, Floats]:
    """Return a few of the rows, and points half-way between them."""
    some = rows[np.unique(np.linspace(0, len(rows) - 1, _TESTED).astype(np.int64))]
    return some, (some + np.roll(some, 1, axis=0)) / 2


def detector_from(
    kind: str, parameters: Fields, fitted: Fields, arrays: Arrays
) -> RankAD | KLPE | EpsilonLPE:
    """Put a detector together again, or raise a `Flaw`."""
    with importing:
        import rankad._loops.counts
        import rankad.stages.neighbors  # noqa: F401

    detector = _unfitted(kind, parameters)
    d = arrays.sizes["d"] = fitted.count("n_columns", 1)
    values = restore(LAYOUTS[kind], fitted, arrays)
    if isinstance(detector, RankAD):
        detector.model_ = RankModel(**values)
    else:
        sha256 = digest(values["reference_"])
        require(sha256 == fitted.digest("training_sha256"), "its reference rows do not match their digest")
        detector.__dict__.update(values)
    detector.n_features_in_ = d
    if fitted.has("feature_names"):
        names = fitted.texts("feature_names")
        require(len(names) == d, f"its {len(names)} feature names are not for {d} columns")
        detector.feature_names_in_ = np.array(names, dtype=object)
    _test(detector, arrays)
    return detector


def _unfitted(kind: str, parameters: Fields) -> RankAD | KLPE | EpsilonLPE:
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in parameters.values.items()
    }
    known = DETECTORS[kind]().get_params()
    wrong = ", ".join(sorted(set(given) ^ set(known)))[:200]
    require(not wrong, f"its parameters are not those of {kind}: {wrong}")
    levels = given.get("n_levels")
    if isinstance(levels, int) and levels > _MOST_LEVELS:
        raise Flaw(f"its parameter n_levels={levels} is too large")
    detector: RankAD | KLPE | EpsilonLPE = DETECTORS[kind](**given)
    try:
        detector._check()
    except (ValueError, TypeError) as error:
        raise Flaw(f"its parameters are not those of {kind}: {error}") from error
    return detector


def _test(detector: RankAD | KLPE | EpsilonLPE, arrays: Arrays) -> None:
    """Raise a `Flaw` unless test rows have the scores and p-values that they had when the model was saved."""
    rows = arrays.take("tests.rows", np.float64, "tests", "d")
    scores, p_values = (arrays.take(f"tests.{name}", np.float64, "tests") for name in ("scores", "p_values"))
    require(len(rows) > 0, "it has no test rows")
    try:
        with np.errstate(all="ignore"):
            off = np.abs(detector._score(rows) - scores)
            within = off <= _slack(detector, scores)
    except ValueError as error:
        raise Flaw(f"its test rows cannot be scored: {error}") from error
    require(
        bool(within.all()),
        f"its self-test scores differ from those saved (by {off[~within].max(initial=0.0):.3g}): this "
        f"version or processor computes differently, so fit again here",
    )
    same = np.array_equal(detector.calibration_.p_values(scores), p_values)
    require(same, "its self-test p-values differ from those saved")


def _slack(detector: RankAD | KLPE | EpsilonLPE, scores: Floats) -> Any:
    """Return how far each score may be off."""
    if isinstance(detector, EpsilonLPE):
        # Counts do not round.
        return 0.0
    if isinstance(detector, KLPE):
        return _TOLERANCE * (np.abs(scores) + 1.0)
    fused = detector.model_.scorer
    kernel = fused.kernel
    far = min(np.abs((kernel.landmarks - kernel.landmarks[0]) / kernel.widths).max(), _FARTHEST)
    unit = 1.0 if fused.units is None else fused.units.spreads[0]
    return _TOLERANCE * (np.abs(scores) + (np.abs(kernel.coefficients).sum() + far) / unit)


def parameters_of(detector: Any) -> tuple[dict[str, Any], list[str]]:
    """Return a detector's parameters as JSON has them, and notes on those that JSON cannot hold.

    Sequences become lists, and come back as tuples.
    """
    parameters = detector.get_params(deep=False)
    random = [name for name, value in parameters.items() if isinstance(value, np.random.RandomState)]
    notes = [
        f"{name} was a RandomState, which is not saved: fitting again gives other numbers." for name in random
    ]
    return {name: None if name in random else as_json(value) for name, value in parameters.items()}, notes
