"""A fitted RankAD as plain values and arrays, and back, every value checked."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankad._base.arrays import LARGEST, Bools, Floats
from rankad._base.threads import importing
from rankad.detectors.base import CalibratedDetector
from rankad.detectors.rank import RankAD
from rankad.model import RankModel
from rankad.modelfile.container import digest
from rankad.modelfile.fields import Arrays, Fields, Flaw
from rankad.scorers.farfield import ColumnRanges
from rankad.stages.calibration import Calibration
from rankad.stages.scaling import Scaling
from rankad.stages.selection import SelectionTable

if TYPE_CHECKING:
    from rankad.scorers.fusion import Units
    from rankad.scorers.mixture import GaussianMixture
    from rankad.scorers.nearfield import NearField

__all__ = [
    "CALIBRATIONS",
    "Parts",
    "check_answers",
    "parameters_of",
    "rankad_from",
    "rankad_parts",
    "selection_from",
]

_SCALINGS = ("standard", "robust", None)
_CRITERIA = ("contrast", "shuffled", "disagreement")
CALIBRATIONS = ("split", "cross-fit", "in-sample")
# Cut points are listed one by one: so many levels nobody has rows for.
_MOST_LEVELS = 1_000_000
# Theorem 7 works with powers of two above the norm.
_LARGEST_NORM = 1e300
# Arrays of row numbers.
_ROW_NUMBERS = ("training_rows", "reference_rows", "trimmed_rows", "repeated_rows")
# Landmarks among the test rows.
_TESTED_LANDMARKS = 5
# How far scores of test rows may be off, as another processor may round otherwise: relative to the score, to
# what adds up to it, and to distances between landmarks, of so many bandwidths at most.
_TOLERANCE, _FARTHEST = 1e-6, 1e3


class Parts(NamedTuple):
    """A fitted detector as what JSON can hold, and arrays."""

    parameters: dict[str, Any]
    notes: list[str]
    fitted: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def rankad_parts(detector: RankAD, *, rows: bool) -> Parts:
    """Take a fitted RankAD apart; its nominal rows are left out unless `rows`."""
    detector._plan()
    parameters, notes = parameters_of(detector)
    model = detector.model_
    fused, calibration, selection, nominal = (
        model.scorer,
        model.calibration,
        model.selection,
        model.nominal_rows,
    )
    scorer = fused.kernel
    if fused.near is not None and not rows:
        raise ValueError(
            f"rows=False would leave out what this detector scores by: its near field compares with "
            f"{len(fused.near.rows):,} nominal rows. Fit with near_field=False for a model without rows, or "
            f"save it with rows=True."
        )
    fitted: dict[str, Any] = {
        "n_rows": int(model.n_samples_fit),
        "n_columns": int(detector.n_features_in_),
        "feature_names": None,
        "n_neighbors": int(model.n_neighbors),
        "bandwidth": float(model.bandwidth),
        "C": float(model.C),
        "norm": float(model.norm),
        "n_iter": int(model.n_iter),
        "converged": bool(model.converged),
        "n_kernels": model.n_kernels,
        "calibration": calibration.kind,
        "recalibrated": bool(model.recalibrated),
        "far_field": bool(scorer.far_field),
        "single": bool(scorer.single),
        "n_hubs": None,
        "selection": None,
        "training_sha256": model.training_sha256 if nominal is None else digest(nominal),
    }
    if hasattr(detector, "feature_names_in_"):
        fitted["feature_names"] = [str(name) for name in detector.feature_names_in_]
    arrays = {
        "calibration.scores": calibration.scores,
        "scorer.landmarks": scorer.landmarks,
        "scorer.coefficients": scorer.coefficients,
        "scorer.widths": scorer.widths,
        **{f"scaling.{name}": values for name, values in model.scaling._asdict().items()},
        **{f"ranges.{name}": values for name, values in model.ranges._asdict().items()},
        **{name: getattr(model, name) for name in ("ranks", "levels", *_ROW_NUMBERS)},
    }
    if scorer.limits is not None:
        arrays["scorer.limits"] = np.stack(scorer.limits)
    if fused.near is not None:
        fitted["n_hubs"] = fused.near.n_hubs
        arrays |= {"near.rows": fused.near.rows, "near.unit": fused.near.unit}
    if fused.mixture is not None:
        for name in ("means", "factors", "constants"):
            arrays[f"mixture.{name}"] = getattr(fused.mixture, name)
    if fused.units is not None:
        arrays |= {"parts.centers": fused.units.centers, "parts.spreads": fused.units.spreads}
    if rows and nominal is not None:
        arrays["nominal_rows"] = nominal
    if selection is not None:
        fitted["selection"] = {"scalings": list(selection.scalings), "criterion": selection.criterion}
        for name in ("bandwidths", "C", "losses", "relative_losses", "standard_errors"):
            arrays[f"selection.{name}"] = getattr(selection, name)
    tests = _test_rows(model)
    arrays["tests.rows"], arrays["tests.scores"] = tests, fused.score(tests)
    arrays["tests.p_values"] = calibration.p_values(arrays["tests.scores"])
    return Parts(parameters, notes, fitted, arrays)


def _test_rows(model: RankModel) -> Floats:
    """Make up rows near and far from what the scorer says itself: a file without nominal rows shows none."""
    landmarks, ranges = model.scorer.kernel.landmarks, model.ranges
    some = landmarks[np.unique(np.linspace(0, len(landmarks) - 1, _TESTED_LANDMARKS).astype(np.int64))]
    unit = np.where(np.isfinite(ranges.unit), ranges.unit, 1.0)
    between = (some + np.roll(some, 1, axis=0)) / 2
    rows = np.vstack([some, between, ranges.low, ranges.high, ranges.high + 10 * unit])
    return np.asarray(np.clip(rows, -LARGEST, LARGEST))


def rankad_from(parameters: Fields, fitted: Fields, arrays: Arrays) -> RankAD:
    """Put a RankAD together again, or raise a `Flaw`."""
    with importing:
        import rankad._loops.counts  # noqa: F401
        from rankad.scorers.fusion import FusedScorer
        from rankad.scorers.kernel import KernelScorer

    detector = _unfitted(parameters)
    f8, i8, take = np.float64, np.int64, arrays.take
    n, d = fitted.count("n_rows", 1), fitted.count("n_columns", 1)
    landmarks, coefficients = take("scorer.landmarks", f8, "s", d), take("scorer.coefficients", f8, "s")
    widths = take("scorer.widths", f8, d)
    _require(len(landmarks) > 0, "its scorer has no landmarks")
    _require(bool((widths > 0).all()), "its array 'scorer.widths' holds numbers that are not above 0")
    far_field, limits = fitted.flag("far_field"), None
    if far_field or arrays.has("scorer.limits"):
        low, high, unit = take("scorer.limits", f8, 3, d, finite=False)
        _require(bool(((low <= high) & (unit > 0)).all()), "its array 'scorer.limits' holds no limits")
        limits = low, high, unit
    kernel = KernelScorer(landmarks, coefficients, widths, far_field, limits, fitted.flag("single"))
    near, mixture = _near_from(fitted, arrays, d), _mixture_from(arrays, d)
    _require(near is None or arrays.has("nominal_rows"), "it has a near field, but no nominal rows")
    scaling = Scaling(take("scaling.center", f8, d), take("scaling.scale", f8, d))
    _require(bool((scaling.scale > 0).all()), "its array 'scaling.scale' holds no scales above 0")
    ranges = ColumnRanges(
        take("ranges.low", f8, d), take("ranges.high", f8, d), take("ranges.unit", f8, d, finite=False)
    )
    _require(
        bool(((ranges.low <= ranges.high) & (ranges.unit > 0)).all()), "its arrays 'ranges' hold no ranges"
    )
    levels = take("levels", i8, "t")
    _require(bool((levels >= 1).all()), "its array 'levels' holds levels below 1")
    numbers = {name: take(name, i8, "t" if name == "training_rows" else name) for name in _ROW_NUMBERS}
    for name, which in numbers.items():
        _require(bool(((which >= 0) & (which < n)).all()), f"its array {name!r} is not of {n:,} rows")
    n_left = n - len(numbers["trimmed_rows"]) - len(numbers["repeated_rows"])
    recalibrated = fitted.flag("recalibrated")
    detector.model_ = RankModel(
        scorer=FusedScorer(kernel, near, mixture, _units_from(arrays, near, mixture)),
        calibration=_calibration_from(fitted, arrays, n, None if recalibrated else n_left),
        recalibrated=recalibrated,
        scaling=scaling,
        ranges=ranges,
        n_neighbors=fitted.count("n_neighbors", 1),
        bandwidth=fitted.number("bandwidth", above=0),
        C=fitted.number("C", above=0),
        selection=selection_from(fitted, arrays),
        n_kernels=fitted.count("n_kernels", 1) if fitted.has("n_kernels") else None,
        norm=fitted.number("norm", above=-1.0, most=_LARGEST_NORM),
        n_iter=fitted.count("n_iter"),
        converged=fitted.flag("converged"),
        ranks=take("ranks", f8, "t"),
        levels=levels,
        n_samples_fit=n,
        **numbers,
        nominal_rows=take("nominal_rows", f8, "t", d) if arrays.has("nominal_rows") else None,
        training_sha256=fitted.digest("training_sha256"),
    )
    detector.n_features_in_ = d
    if fitted.has("feature_names"):
        names = fitted.texts("feature_names")
        _require(len(names) == d, f"its {len(names)} feature names are not for {d} columns")
        detector.feature_names_in_ = np.array(names, dtype=object)
    _test(detector, arrays)
    return detector


def _calibration_from(fitted: Fields, arrays: Arrays, n: int, most: int | None) -> Calibration:
    """Return the nominal scores of a model of `n` rows: `most` of them at most, unless they are fresh."""
    scores = arrays.take("calibration.scores", np.float64, "m")
    _require(
        len(scores) > 0 and (most is None or len(scores) <= most),
        f"its {len(scores):,} calibration scores are not of {n:,} rows",
    )
    _require(bool((scores[1:] >= scores[:-1]).all()), "its calibration scores are not ascending")
    return Calibration(scores, fitted.text("calibration", CALIBRATIONS))  # type: ignore[arg-type]


def _near_from(fitted: Fields, arrays: Arrays, d: int) -> NearField | None:
    if not fitted.has("n_hubs"):
        return None
    from rankad.scorers.nearfield import NearField

    rows = arrays.take("near.rows", np.float64, "near rows", d)
    unit = arrays.take("near.unit", np.float64, d)
    n_hubs = fitted.count("n_hubs", 1)
    # Cells are filled up, so that more of both would take far more memory than the file has bytes.
    most = max(1, math.isqrt(8 * len(rows)))
    _require(len(rows) > 0 and n_hubs <= most, f"its near field has {n_hubs:,} hubs among {len(rows):,} rows")
    _require(bool((unit > 0).all()), "its array 'near.unit' holds numbers that are not above 0")
    return NearField(rows, n_hubs, unit)


def _mixture_from(arrays: Arrays, d: int) -> GaussianMixture | None:
    if not arrays.has("mixture.means"):
        return None
    from rankad.scorers.mixture import GaussianMixture

    means = arrays.take("mixture.means", np.float64, "gaussians", d)
    factors = arrays.take("mixture.factors", np.float64, "gaussians", d, d)
    constants = arrays.take("mixture.constants", np.float64, "gaussians")
    _require(len(means) > 0, "its mixture has no Gaussians")
    above = np.triu_indices(d, 1)
    _require(not factors[:, above[0], above[1]].any(), "its mixture has factors that are not triangular")
    return GaussianMixture(means, factors, constants)


def _units_from(arrays: Arrays, near: NearField | None, mixture: GaussianMixture | None) -> Units | None:
    n_parts = 1 + (near is not None) + (mixture is not None)
    if n_parts == 1:
        return None
    from rankad.scorers.fusion import Units

    centers, spreads = (arrays.take(f"parts.{name}", np.float64, n_parts) for name in Units._fields)
    _require(bool((spreads > 0).all()), "its array 'parts.spreads' holds numbers that are not above 0")
    return Units(centers, spreads)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Flaw(otherwise)


def _unfitted(parameters: Fields) -> RankAD:
    given, known = parameters.found, RankAD().get_params()
    if set(given) != set(known):
        raise Flaw(
            f"its parameters are not those of RankAD: {', '.join(sorted(set(given) ^ set(known)))}"[:200]
        )
    levels = given["n_levels"]
    if isinstance(levels, int) and levels > _MOST_LEVELS:
        raise Flaw(f"its parameter n_levels={levels} is too large")
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }
    detector = RankAD(**values)
    try:
        detector._plan()
    except (ValueError, TypeError) as error:
        raise Flaw(f"its parameters are not those of RankAD: {error}") from error
    return detector


def selection_from(fitted: Fields, arrays: Arrays) -> SelectionTable | None:
    """Return the table of trials, or None where there was nothing to select."""
    if not fitted.has("selection"):
        return None
    told, take = fitted.fields("selection"), arrays.take
    scalings = told.listed("scalings", (str, type(None)), "a list of scalings")
    _require(set(scalings) <= set(_SCALINGS), "its table of trials names an unknown scaling")
    _require(len(scalings) > 0, "its table of trials is empty")
    n = len(scalings)
    bandwidths, C = (take(f"selection.{name}", np.float64, n) for name in ("bandwidths", "C"))
    losses = take("selection.losses", np.float64, n, "kinds")
    relative, errors = (
        take(f"selection.{name}", np.float64, n) for name in ("relative_losses", "standard_errors")
    )
    return SelectionTable(
        scalings, bandwidths, C, losses, relative, errors, told.text("criterion", _CRITERIA)
    )


def _test(detector: RankAD, arrays: Arrays) -> None:
    """Raise a `Flaw` unless test rows score and rank here as they did where the model was saved."""
    take, fused = arrays.take, detector.model_.scorer
    scorer = fused.kernel
    rows = take("tests.rows", np.float64, "tests", detector.n_features_in_)
    scores, p_values = take("tests.scores", np.float64, "tests"), take("tests.p_values", np.float64, "tests")
    with np.errstate(all="ignore"):
        far = min(np.abs((scorer.landmarks - scorer.landmarks[0]) / scorer.widths).max(), _FARTHEST)
        unit = 1.0 if fused.units is None else fused.units.spreads[0]
        slack = _TOLERANCE * (np.abs(scores) + (np.abs(scorer.coefficients).sum() + far) / unit)
        off = np.abs(fused.score(rows) - scores)
        within = off <= slack
    check_answers(detector, scores, p_values, off, within)


def check_answers(
    detector: CalibratedDetector, scores: Floats, p_values: Floats, off: Floats, within: Bools
) -> None:
    """Raise a `Flaw` unless test rows have the scores and p-values that they had when the model was saved.

    Parameters
    ----------
    detector : CalibratedDetector
    scores, p_values : ndarray of shape (n,)
        As saved.
    off : ndarray of shape (n,)
        By how much they score otherwise here.
    within : ndarray of bool, shape (n,)
        Whether that is no more than rounding.
    """
    if not within.all():
        raise Flaw(
            f"its test rows score otherwise here than where it was saved (off by {off[~within].max():.3g}), "
            f"so this version or processor computes otherwise; fit again here"
        )
    if not np.array_equal(detector.calibration_.p_values(scores), p_values):
        raise Flaw("its test rows have other p-values here than where it was saved")


def parameters_of(detector: Any) -> tuple[dict[str, Any], list[str]]:
    """Return a detector's parameters as JSON has them, and notes on those that it does not have.

    Sequences become lists, and come back as tuples.
    """
    plain: dict[str, Any] = {}
    notes = []
    for name, value in detector.get_params(deep=False).items():
        if isinstance(value, np.random.RandomState):
            plain[name] = None
            notes.append(f"{name} was a RandomState, which is not saved: fitting again gives other numbers.")
        else:
            plain[name] = _plain(value)
    return plain, notes


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | np.bool_):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    return [_plain(item) for item in value]
