"""What a model file stores of each detector: every value once, for writing, reading and checking."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from rankad._base.arrays import LARGEST
from rankad.model import RankModel
from rankad.modelfile.fields import Arrays, Fields, require
from rankad.modelfile.layout import Array, Part, Scalar
from rankad.stages.ranks import neighbors_needed

# The version of the layout. Files of other versions are refused.
SCHEMA = 2
CALIBRATIONS = {
    "RankAD": ("split", "cross-fit", "in-sample"),
    "KLPE": ("leave-one-out", "split"),
    "EpsilonLPE": ("leave-one-out", "split"),
}
# The bound of the paper's Theorem 7 works with powers of two above the norm.
_LARGEST_NORM = 1e300
_NUMBERS_OF_ROWS = ("training_rows", "reference_rows", "trimmed_rows", "repeated_rows")


def _count(least: int = 0, name: str = "") -> Scalar:
    return Scalar(lambda header, field: header.count(field, least), name)


def _number(above: float = -math.inf, most: float = math.inf, name: str = "") -> Scalar:
    return Scalar(lambda header, field: header.number(field, above=above, most=most), name)


def _text(allowed: tuple[str, ...], name: str = "") -> Scalar:
    return Scalar(lambda header, field: header.text(field, allowed), name)


def _flag(name: str = "") -> Scalar:
    return Scalar(Fields.flag, name)


def _floats(*shape: str | int, **options: Any) -> Array:
    return Array(np.float64, shape, **options)


def _ints(*shape: str) -> Array:
    return Array(np.int64, shape)


def _optional_count(header: Fields, name: str) -> int | None:
    return header.count(name, 1) if header.has(name) else None


def _scalings(header: Fields, name: str) -> tuple[str | None, ...]:
    scalings = header.listed(name, (str, type(None)), "a list of scalings")
    require(set(scalings) <= {"standard", "robust", None}, "its table of trials names an unknown scaling")
    return scalings


def _has_parts(fitted: Fields, arrays: Arrays) -> bool:
    arrays.sizes["parts"] = 1 + fitted.has("n_hubs") + arrays.has("mixture.means")
    return arrays.sizes["parts"] > 1


def _are_limits(values: Mapping[str, Any]) -> Any:
    if values["limits"] is None:
        return not values["far_field"]
    low, high, unit = values["limits"]
    return (low <= high) & (unit > 0)


def _are_triangular(values: Mapping[str, Any]) -> bool:
    above = np.triu_indices(values["means"].shape[1], 1)
    return not values["factors"][:, above[0], above[1]].any()


def _are_numbers_of_rows(name: str) -> tuple[Any, str]:
    def inside(values: Mapping[str, Any]) -> Any:
        return (values[name] >= 0) & (values[name] < values["n_samples_fit"])

    return inside, f"its array {name!r} has row numbers beyond its {{n_samples_fit:,}} rows"


def _has_neighbors(values: Mapping[str, Any]) -> bool:
    return neighbors_needed(values["n_neighbors_"], values["_statistic"]) <= len(values["reference_"])


def _calibration(path: str, kinds: tuple[str, ...]) -> Part:
    return Part(
        path,
        "rankad.stages.calibration:Calibration",
        {"kind": _text(kinds, "calibration"), "scores": _floats("m", filled=True)},
        "calibration.",
        rules=[(lambda v: np.diff(v["scores"]) >= 0, "its calibration scores are not ascending")],
    )


def _scaling(path: str) -> Part:
    columns = {"center": _floats("d"), "scale": _floats("d", positive=True)}
    return Part(path, "rankad.stages.scaling:Scaling", columns, "scaling.")


SELECTION = Part(
    "selection",
    "rankad.stages.selection:SelectionTable",
    {
        "scalings": Scalar(_scalings),
        "bandwidths": _floats("trials", filled=True),
        "C": _floats("trials"),
        "losses": _floats("trials", "kinds"),
        "relative_losses": _floats("trials"),
        "standard_errors": _floats("trials"),
        "criterion": _text(("contrast", "shuffled", "disagreement")),
    },
    "selection.",
    section="selection",
    rules=[(lambda v: len(v["scalings"]) == len(v["C"]), "its trials do not have one scaling each")],
    present=lambda fitted, arrays: fitted.has("selection"),
)

# Fields of RankModel are stored by their types; those with limits of their own, or other names, are listed.
_BY_TYPE: Mapping[Any, Scalar | Array] = {
    "bool": _flag(),
    "int": _count(),
    "float": _number(),
    "Ints": _ints("any"),
    "Floats": _floats("any"),
}
_MODEL = {
    **{field.name: _BY_TYPE[field.type] for field in fields(RankModel) if field.type in _BY_TYPE},
    "n_samples_fit": _count(1, "n_rows"),
    "n_neighbors": _count(1),
    "bandwidth": _number(above=0),
    "C": _number(above=0),
    "n_kernels": Scalar(_optional_count),
    "norm": _number(above=-1.0, most=_LARGEST_NORM),
    "ranks": _floats("t"),
    "levels": _ints("t"),
    "training_rows": _ints("t"),
    "nominal_rows": _floats("t", "d", optional=True),
    "training_sha256": Scalar(Fields.digest),
}

_RANKAD = (
    Part(
        "scorer.kernel",
        "rankad.scorers.kernel:KernelScorer",
        {
            "landmarks": _floats("s", "d", filled=True),
            "coefficients": _floats("s"),
            "widths": _floats("d", positive=True),
            "far_field": _flag(),
            "limits": _floats(3, "d", finite=False, optional=True, make=tuple),
            "single": _flag(),
        },
        "scorer.",
        rules=[(_are_limits, "its array 'scorer.limits' is missing or holds invalid limits")],
    ),
    Part(
        "scorer.units",
        "rankad.scorers.fusion:Units",
        {"centers": _floats("parts"), "spreads": _floats("parts", positive=True)},
        "parts.",
        present=_has_parts,
    ),
    Part(
        "scorer.near",
        "rankad.scorers.nearfield:NearField",
        {
            "rows": _floats("near rows", "d", filled=True),
            "n_hubs": _count(1),
            "unit": _floats("d", positive=True),
        },
        "near.",
        # Cells are padded: with more hubs they would take far more memory than the file has bytes.
        rules=[(lambda v: v["n_hubs"] ** 2 <= 8 * len(v["rows"]), "it has too many hubs, {n_hubs:,}")],
        present=lambda fitted, arrays: fitted.has("n_hubs"),
    ),
    Part(
        "scorer.mixture",
        "rankad.scorers.mixture:GaussianMixture",
        {
            "means": _floats("gaussians", "d", filled=True),
            "factors": _floats("gaussians", "d", "d"),
            "constants": _floats("gaussians"),
        },
        "mixture.",
        rules=[(_are_triangular, "its mixture has factors that are not triangular")],
        present=lambda fitted, arrays: arrays.has("mixture.means"),
    ),
    Part("scorer", "rankad.scorers.fusion:FusedScorer", {}),
    _calibration("calibration", CALIBRATIONS["RankAD"]),
    _scaling("scaling"),
    Part(
        "ranges",
        "rankad.scorers.farfield:ColumnRanges",
        {"low": _floats("d"), "high": _floats("d"), "unit": _floats("d", finite=False, positive=True)},
        "ranges.",
        rules=[(lambda v: v["low"] <= v["high"], "its arrays 'ranges' hold invalid ranges")],
    ),
    SELECTION,
    Part(
        "",
        "rankad.model:RankModel",
        _MODEL,
        rules=[
            (lambda v: v["levels"] >= 1, "its array 'levels' holds levels below 1"),
            *map(_are_numbers_of_rows, _NUMBERS_OF_ROWS),
            (
                lambda v: v["scorer"].near is None or v["nominal_rows"] is not None,
                "it has a near field, but no training rows",
            ),
        ],
    ),
)

# The attributes of a fitted KLPE or EpsilonLPE are those of the detector itself.
_DENSITY: Mapping[str, Scalar | Array] = {
    "n_samples_fit_": _count(1, "n_rows"),
    "recalibrated_": _flag("recalibrated"),
    "_reference_apart": _flag("reference_apart"),
    "reference_": _floats("r", "d", filled=True, name="reference"),
}
_DENSITY_RULES: list[tuple[Any, str]] = [
    (lambda v: len(v["reference_"]) <= v["n_samples_fit_"], "it has more reference rows than rows"),
    (lambda v: np.abs(v["reference_"]) <= LARGEST, "its reference rows hold numbers out of range"),
]
_KLPE = {
    "n_neighbors_": _count(1, "n_neighbors"),
    "_statistic": _text(("mean", "kth", "centred"), "statistic"),
}
_EPSILON = {"radius_": _number(above=0.0, name="radius")}

LAYOUTS: dict[str, tuple[Part, ...]] = {
    "RankAD": _RANKAD,
    "KLPE": (
        _calibration("calibration_", CALIBRATIONS["KLPE"]),
        _scaling("scaling_"),
        Part(
            "",
            "rankad.detectors.lpe:KLPE",
            {**_DENSITY, **_KLPE},
            rules=[*_DENSITY_RULES, (_has_neighbors, "it has fewer reference rows than it needs neighbours")],
        ),
    ),
    "EpsilonLPE": (
        _calibration("calibration_", CALIBRATIONS["EpsilonLPE"]),
        _scaling("scaling_"),
        Part("", "rankad.detectors.lpe:EpsilonLPE", {**_DENSITY, **_EPSILON}, rules=_DENSITY_RULES),
    ),
}
