"""The encoder of a TableDetector in a model file, beside the detector that it holds."""

from __future__ import annotations

from rankad.detectors.base import CalibratedDetector
from rankad.detectors.table import TableDetector
from rankad.io.forks import check_polars
from rankad.modelfile.fields import Fields, Flaw
from rankad.tables import TableEncoder


def encoder_from(table: Fields) -> TableEncoder:
    """Return the encoder, or raise a `Flaw`."""
    stored = table.fields("encoder").found
    try:
        return TableEncoder.from_dict(stored)
    except ValueError as error:
        raise Flaw(f"its encoder cannot be read: {error}") from error


def table_from(table: Fields, detector: CalibratedDetector, n_rows: int) -> TableDetector:
    """Return a TableDetector of its parts, or raise a `Flaw`."""
    check_polars()
    encoder = encoder_from(table)
    if encoder.n_rows != n_rows:
        raise Flaw(f"its encoder was fitted on {encoder.n_rows:,} rows and its detector on {n_rows:,}")
    try:
        return TableDetector.of_parts(encoder, detector, table.count("min_count", 1))
    except Flaw:
        raise
    except ValueError as error:
        raise Flaw(f"its encoder and its detector do not match: {error}") from error
