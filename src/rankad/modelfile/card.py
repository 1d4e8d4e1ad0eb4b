"""What a model file says of its model: for `rankad inspect` and for reports."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rankad.modelfile.container import Contents
from rankad.modelfile.fields import Arrays, Fields, Flaw, require
from rankad.modelfile.layout import restore_part
from rankad.modelfile.schema import CALIBRATIONS, LAYOUTS, SCHEMA, SELECTION
from rankad.stages.selection import SelectionTable

if TYPE_CHECKING:
    from rankad.tables import TableEncoder

KINDS = (*LAYOUTS, "TableDetector")
_PACKAGES = ("rankad", "numpy", "numba", "scikit-learn", "safetensors")


@dataclass(frozen=True)
class ModelCard:
    """What a model is, where it comes from, and how it was selected."""

    kind: str  # RankAD, KLPE, EpsilonLPE or TableDetector
    detector: str  # the same, or what a TableDetector holds
    schema: int  # the version of the file's layout
    alpha: float  # the false-alarm rate it was saved with
    parameters: Mapping[str, Any]  # of the detector, as JSON has them
    notes: tuple[str, ...]  # what could not be saved, and what follows
    columns: tuple[str, ...]  # empty where the rows it was fitted on had no names
    n_columns: int  # of a table, after encoding
    encoding: tuple[str, ...]  # of a table, what became of each column
    n_rows: int  # fitted on
    n_training: int
    n_calibrating: int
    n_trimmed: int  # left out as suspects
    calibration: str  # split, cross-fit, in-sample or leave-one-out
    n_landmarks: int  # of a RankAD, else 0
    n_near: int  # rows of the near field, 0 where there is none
    n_gaussians: int  # of the mixture, 0 where there is none
    scaling: str | None  # as used, like the next two
    bandwidth: float | None  # of a RankAD
    C: float | None  # of a RankAD
    n_neighbors: int | None  # but of an EpsilonLPE
    radius: float | None  # of an EpsilonLPE
    selection: SelectionTable | None  # all that was tried, with its losses
    holds_rows: bool  # without training rows, a RankAD cannot explain
    training_sha256: str  # the digest of the training rows
    saved: datetime  # in UTC
    versions: Mapping[str, str]  # of packages, of Python, and the processor's family
    sha256: str  # of the contents: two files with the same are the same model
    n_bytes: int


def provenance() -> dict[str, Any]:
    """Return when and with what a model is saved."""
    versions = {name: version(name) for name in _PACKAGES}
    versions |= {"python": platform.python_version(), "machine": platform.machine()}
    return {"saved": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions}


def check_schema(header: Fields) -> None:
    """Raise a `Flaw` unless this version of rankad can read a file of this layout."""
    schema = header.count("schema", 1)
    if schema > SCHEMA:
        raise Flaw(
            f"it was written by a newer rankad (schema {schema}; this one reads {SCHEMA}), so update rankad"
        )
    if schema < SCHEMA:
        raise Flaw(
            f"it was written by an older rankad, whose scores were made otherwise (schema {schema}; this one "
            f"reads {SCHEMA}), so fit again"
        )


def detector_kind(header: Fields) -> str:
    """Return which detector of rows a file holds, by itself or in a `TableDetector`."""
    kind = header.text("kind", KINDS)
    inner = header.text("detector", tuple(LAYOUTS))
    if kind not in (inner, "TableDetector"):
        raise Flaw(f"it says that it is a {kind} and that it is a {inner}")
    return inner


def card_from(contents: Contents) -> ModelCard:
    """Read the card from the header and the selection's arrays."""
    header, arrays = contents.header, Arrays(contents.arrays)
    parameters, fitted, origin = header.fields("parameters"), header.fields("fitted"), header.fields("origin")
    selection = restore_part(SELECTION, fitted, arrays)
    names: tuple[str, ...] = fitted.texts("feature_names") if fitted.has("feature_names") else ()
    encoding: tuple[str, ...] = ()
    kind, inner = header.text("kind", KINDS), detector_kind(header)
    is_rankad = inner == "RankAD"
    if kind == "TableDetector":
        encoder = encoder_from(header.fields("table"))
        names, encoding = tuple(column.name for column in encoder.columns), tuple(encoder.describe())
    scaling: str | None = None
    if selection is not None:
        scaling = selection.scalings[selection.best]
    elif parameters.has("scaling"):
        scaling = parameters.text("scaling")
    versions = origin.fields("versions")
    told = header.fields("arrays")
    return ModelCard(
        kind=kind,
        detector=inner,
        schema=header.count("schema", 1),
        alpha=parameters.number("alpha"),
        parameters=parameters.values,
        notes=header.texts("notes"),
        columns=names,
        n_columns=fitted.count("n_columns", 1),
        encoding=encoding,
        n_rows=fitted.count("n_rows", 1),
        n_training=_length(told, "training_rows" if is_rankad else "reference"),
        n_calibrating=_length(told, "calibration.scores"),
        n_trimmed=_length(told, "trimmed_rows") if is_rankad else 0,
        calibration=fitted.text("calibration", CALIBRATIONS[inner]),
        n_landmarks=_length(told, "scorer.coefficients") if is_rankad else 0,
        n_near=_length(told, "near.rows") if told.has("near.rows") else 0,
        n_gaussians=_length(told, "mixture.means") if told.has("mixture.means") else 0,
        scaling=scaling,
        bandwidth=fitted.number("bandwidth", above=0) if is_rankad else None,
        C=fitted.number("C", above=0) if is_rankad else None,
        n_neighbors=None if inner == "EpsilonLPE" else fitted.count("n_neighbors", 1),
        radius=fitted.number("radius", above=0) if inner == "EpsilonLPE" else None,
        selection=selection,
        holds_rows=told.has("nominal_rows" if is_rankad else "reference"),
        training_sha256=fitted.digest("training_sha256"),
        saved=_date(origin),
        versions={name: versions.text(name) for name in versions.values},
        sha256=contents.sha256,
        n_bytes=contents.n_bytes,
    )


def encoder_from(table: Fields) -> TableEncoder:
    """Return the encoder of a `TableDetector`, or raise a `Flaw`."""
    from rankad.tables import TableEncoder

    stored = table.fields("encoder").values
    try:
        return TableEncoder.from_dict(stored)
    except ValueError as error:
        raise Flaw(f"its encoder cannot be read: {error}") from error


def _length(told: Fields, name: str) -> int:
    shape = told.fields(name).listed("shape", int, "a list of integers")
    if not shape:
        raise Flaw(f"its array {name!r} is a lone number")
    return int(shape[0])


def _date(origin: Fields) -> datetime:
    saved = origin.text("saved")
    try:
        written = datetime.fromisoformat(saved)
        # Late on the last day of the year 9999, another time zone has no date.
        in_utc = written.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Flaw("it has no date that can be read") from error
    require(written.tzinfo is not None, "it has a date without a time zone")
    return in_utc
