"""What the scatter plot shows: rows in two columns or in a projection, and where rows would be normal."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankad._base.arrays import Floats, Ints
from rankad._base.wording import shown
from rankad.service.errors import RequestError
from rankad.service.page.answers import Answers
from rankad.tables.encoded_columns import CategoryColumn, NumberColumn, TimeColumn

# Dots: the most abnormal rows, and an even subset of the others.
_MOST_ABNORMAL, _MOST_OTHERS = 1_500, 3_500
_MOST_LABELS = 12
_GRID = 72
_MOST_THRESHOLDS = 400
_PROJECTED_ROWS = 5_000


class Window(NamedTuple):
    """A part of the plane of two columns."""

    left: float
    right: float
    bottom: float
    top: float


def places(answers: Answers, x: str | None, y: str | None) -> dict[str, Any]:
    """Return where rows are: in two columns, or in the plane in which normal rows vary most."""
    at = _chosen(answers)
    labels: tuple[list[str] | None, list[str] | None] = (None, None)
    if x is None or y is None:
        across, along = _projected(answers, at)
    else:
        (across, first), (along, second) = _axis(answers, x, at), _axis(answers, y, at)
        labels = (first, second)
    there = np.isfinite(across) & np.isfinite(along)
    return {
        "rows": at[there].tolist(),
        "x": across[there].tolist(),
        "y": along[there].tolist(),
        "labels": labels,
        "absent": int((~there).sum()),
        "left_out": len(answers.p_values) - at.size,
    }


def region(answers: Answers, x: str, y: str, row: int, window: Window) -> dict[str, Any]:
    """Score a grid over two columns of numbers, all other columns as in one row.

    Where these two are all columns, the part with scores above the threshold is the level set.
    """
    if not 0 <= row < len(answers.p_values):
        raise RequestError(422, "row", "row must be a place in the table")
    if not all(map(math.isfinite, window)) or window.left >= window.right or window.bottom >= window.top:
        raise RequestError(
            422, "window", "the window must have a left below its right, a bottom below its top"
        )
    encoder = answers.detector.encoder_
    numbers = [column.name for column in encoder.columns if isinstance(column, NumberColumn)]
    if x not in numbers or y not in numbers or x == y:
        raise RequestError(422, "columns", "a region needs two different columns of numbers")
    xs, ys = np.linspace(window.left, window.right, _GRID), np.linspace(window.bottom, window.top, _GRID)
    one = answers.table.frame.select(encoder.names)[[row]]
    across, along = (grid.ravel() for grid in np.meshgrid(xs, ys))
    frame = pl.concat([one] * across.size, rechunk=True).with_columns(
        pl.Series(x, across), pl.Series(y, along)
    )
    scores = answers.detector.score_samples(frame)
    calibrated = answers.detector.calibration_.scores
    n = calibrated.size
    ranks: Ints = np.unique(np.geomspace(1, max(n, 1), _MOST_THRESHOLDS).astype(np.int64))
    return {
        "size": _GRID,
        "scores": scores.tolist(),
        "alphas": (ranks / (n + 1)).tolist(),
        "thresholds": calibrated[ranks - 1].tolist(),
        "whole": len(encoder.columns) == 2,
        "row": row,
    }


def _chosen(answers: Answers) -> Ints:
    """Return rows to draw, the most abnormal last, so that they lie on top."""
    order = np.argsort(answers.scores, kind="stable")
    abnormal, others = order[:_MOST_ABNORMAL], np.sort(order[_MOST_ABNORMAL:])
    step = max(math.ceil(others.size / _MOST_OTHERS), 1)
    chosen: Ints = np.concatenate([others[::step], abnormal[::-1]])
    return chosen


def _axis(answers: Answers, name: str, at: Ints) -> tuple[Floats, list[str] | None]:
    encoder = answers.detector.encoder_
    column = next((each for each in encoder.columns if each.name == name), None)
    if column is None:
        raise RequestError(422, "columns", f"the model has no column {name[:100]!r}")
    cells = encoder.cells(answers.table.frame, name)[at]
    if isinstance(column, NumberColumn):
        return column.read(cells), None
    if isinstance(column, TimeColumn):
        return column.times(cells).dt.epoch("s").cast(pl.Float64).to_numpy(), None
    if not isinstance(column, CategoryColumn):
        return np.full(at.size, np.nan), None
    labels = column.labels(cells)
    names = [name for name, _ in _commonest(labels)][:_MOST_LABELS]
    place = {label: at for at, label in enumerate(names)}
    # The rest share the last place.
    rest = any(label not in place for label in labels)
    numbers: Floats = np.array([place.get(label, len(names)) for label in labels], dtype=float)
    # Spread a little, so that dots do not lie on one another.
    numbers += 0.36 * (np.random.default_rng(0).random(at.size) * 2 - 1)
    return numbers, [*(shown(label) for label in names), *(["others"] if rest else [])]


def _commonest(labels: list[str | None]) -> list[tuple[str | None, int]]:
    counts: dict[str | None, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    return sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))


def _projected(answers: Answers, at: Ints) -> tuple[Floats, Floats]:
    detector = answers.detector
    normal = getattr(detector.detector_, "nominal_rows_", None)
    encoded = detector.encoder_.encode(answers.table.frame[at]).rows
    rows = np.asarray(encoded if normal is None else normal)
    if rows.shape[1] < 2 or len(rows) < 2:
        raise RequestError(422, "columns", "a projection needs two columns and two rows")
    plane = make_pipeline(StandardScaler(), PCA(2, random_state=0))
    # Constant rows have no variance to take a share of.
    with np.errstate(invalid="ignore"):
        plane.fit(rows[:: max(len(rows) // _PROJECTED_ROWS, 1)])
        flat = plane.transform(encoded)
    return flat[:, 0], flat[:, 1]
