"""A fitted KLPE or EpsilonLPE as plain values and arrays, and back, every value checked."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from rankad._base.arrays import LARGEST, Floats
from rankad._base.threads import importing
from rankad.detectors.lpe import KLPE, EpsilonLPE
from rankad.modelfile.container import digest
from rankad.modelfile.fields import Arrays, Fields, Flaw
from rankad.modelfile.fitted import Parts, check_answers, parameters_of
from rankad.stages.calibration import Calibration
from rankad.stages.ranks import Statistic, neighbors_needed
from rankad.stages.scaling import Scaling

__all__ = ["CALIBRATIONS", "KINDS", "lpe_from", "lpe_parts"]

KINDS: dict[str, type[KLPE] | type[EpsilonLPE]] = {"KLPE": KLPE, "EpsilonLPE": EpsilonLPE}
CALIBRATIONS = ("leave-one-out", "split")
_STATISTICS = ("mean", "kth", "centred")
# Reference rows among the test rows.
_TESTED_ROWS = 5
# How far distances may be off, as another processor may round otherwise; counts may not.
_TOLERANCE = 1e-6


def lpe_parts(detector: KLPE | EpsilonLPE, *, rows: bool) -> Parts:
    """Take a fitted detector apart; it scores by its rows, and cannot do without."""
    if not rows:
        raise ValueError(
            f"rows=False would leave out what {type(detector).__name__} scores by, the nominal rows "
            f"themselves. Save it with rows=True, or fit RankAD(near_field=False)."
        )
    detector._check()
    parameters, notes = parameters_of(detector)
    calibration = detector.calibration_
    fitted: dict[str, Any] = {
        "n_rows": int(detector.n_samples_fit_),
        "n_columns": int(detector.n_features_in_),
        "feature_names": None,
        "calibration": calibration.kind,
        "recalibrated": bool(detector.recalibrated_),
        "reference_apart": bool(detector._reference_apart),
        "n_neighbors": None,
        "statistic": None,
        "radius": None,
        "training_sha256": digest(detector.reference_),
    }
    if isinstance(detector, KLPE):
        fitted |= {"n_neighbors": int(detector.n_neighbors_), "statistic": detector._statistic}
    else:
        fitted["radius"] = float(detector.radius_)
    if hasattr(detector, "feature_names_in_"):
        fitted["feature_names"] = [str(name) for name in detector.feature_names_in_]
    tests = _test_rows(detector)
    arrays = {
        "calibration.scores": calibration.scores,
        "scaling.center": detector.scaling_.center,
        "scaling.scale": detector.scaling_.scale,
        "reference": detector.reference_,
        "tests.rows": tests,
        "tests.scores": detector._score(tests),
    }
    arrays["tests.p_values"] = calibration.p_values(arrays["tests.scores"])
    return Parts(parameters, notes, fitted, arrays)


def _test_rows(detector: KLPE | EpsilonLPE) -> Floats:
    """Make up rows among the reference rows and beyond them."""
    scaling, reference = detector.scaling_, detector.reference_
    some = reference[np.unique(np.linspace(0, len(reference) - 1, _TESTED_ROWS).astype(np.int64))]
    between = (some + np.roll(some, 1, axis=0)) / 2
    beyond = reference.max(axis=0) + 3.0
    rows = np.vstack([some, between, beyond]) * scaling.scale + scaling.center
    return np.asarray(np.clip(rows, -LARGEST, LARGEST))


def lpe_from(kind: str, parameters: Fields, fitted: Fields, arrays: Arrays) -> KLPE | EpsilonLPE:
    """Put a detector together again, or raise a `Flaw`."""
    with importing:
        import rankad._loops.counts
        import rankad.stages.neighbors  # noqa: F401

    detector = _unfitted(kind, parameters)
    n, d = fitted.count("n_rows", 1), fitted.count("n_columns", 1)
    f8, take = np.float64, arrays.take
    detector.scaling_ = Scaling(take("scaling.center", f8, d), take("scaling.scale", f8, d))
    _require(bool((detector.scaling_.scale > 0).all()), "its array 'scaling.scale' holds no scales above 0")
    detector.reference_ = take("reference", f8, "r", d)
    n_reference = len(detector.reference_)
    _require(0 < n_reference <= n, f"its {n_reference:,} reference rows are not of {n:,} rows")
    _require(
        bool((np.abs(detector.reference_) <= LARGEST).all()), "its reference rows hold numbers out of range"
    )
    _require(
        digest(detector.reference_) == fitted.digest("training_sha256"), "its rows are not those it tells"
    )
    detector._reference_apart = fitted.flag("reference_apart")
    if isinstance(detector, KLPE):
        detector.n_neighbors_ = fitted.count("n_neighbors", 1)
        detector._statistic = cast(Statistic, fitted.text("statistic", _STATISTICS))
        needed = neighbors_needed(detector.n_neighbors_, detector._statistic)
        _require(needed <= n_reference, f"its {n_reference:,} reference rows are fewer than it asks for")
    else:
        detector.radius_ = fitted.number("radius", above=0.0)
    scores, fresh = take("calibration.scores", f8, "m"), fitted.flag("recalibrated")
    _require(
        len(scores) > 0 and (fresh or len(scores) <= n),
        f"its {len(scores):,} calibration scores are not of {n:,} rows",
    )
    _require(bool((scores[1:] >= scores[:-1]).all()), "its calibration scores are not ascending")
    calibration = Calibration(scores, fitted.text("calibration", CALIBRATIONS))  # type: ignore[arg-type]
    detector._compare_with(calibration, fresh=fresh)
    detector.n_samples_fit_, detector.n_features_in_ = n, d
    if fitted.has("feature_names"):
        names = fitted.texts("feature_names")
        _require(len(names) == d, f"its {len(names)} feature names are not for {d} columns")
        detector.feature_names_in_ = np.array(names, dtype=object)
    _test(detector, arrays)
    return detector


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Flaw(otherwise)


def _unfitted(kind: str, parameters: Fields) -> KLPE | EpsilonLPE:
    given, made = parameters.found, KINDS[kind]
    known = made().get_params()
    if set(given) != set(known):
        wrong = ", ".join(sorted(set(given) ^ set(known)))[:200]
        raise Flaw(f"its parameters are not those of {kind}: {wrong}")
    detector = made(**given)
    try:
        detector._check()
    except (ValueError, TypeError) as error:
        raise Flaw(f"its parameters are not those of {kind}: {error}") from error
    return detector


def _test(detector: KLPE | EpsilonLPE, arrays: Arrays) -> None:
    """Raise a `Flaw` unless test rows score and rank here as they did where the model was saved."""
    take = arrays.take
    rows = take("tests.rows", np.float64, "tests", detector.n_features_in_)
    scores, p_values = take("tests.scores", np.float64, "tests"), take("tests.p_values", np.float64, "tests")
    _require(len(rows) > 0, "it has no test rows")
    try:
        with np.errstate(all="ignore"):
            off = np.abs(detector._score(rows) - scores)
    except ValueError as error:
        raise Flaw(f"its test rows cannot be scored: {error}") from error
    slack = _TOLERANCE * (np.abs(scores) + 1.0) if isinstance(detector, KLPE) else 0.0
    check_answers(detector, scores, p_values, off, off <= slack)
