"""A table scored batch by batch, and its most abnormal rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from rankad._base.arrays import Bools, Floats, Ints
from rankad.alarms.decisions import PValueCounts
from rankad.io.errors import TableError
from rankad.modelfile import ModelFileError

if TYPE_CHECKING:
    from rankad.detectors.table import TableDetector
    from rankad.explanations.explaining import Explanation
    from rankad.io.reader import TableReader
    from rankad.tables import StrangeCell

# Told, before each batch, the reader of the table and what is done with its rows.
Progress: TypeAlias = "Callable[[TableReader, str], None]"

__all__ = [
    "Batch",
    "Explained",
    "MostAbnormal",
    "Progress",
    "Rows",
    "check_explains",
    "discovery_level",
    "explained",
    "frames_of",
    "label",
    "of_table",
    "scan",
    "show_nothing",
    "warn_of_unused",
]


class Batch(NamedTuple):
    """Rows as they are in the table, and what the detector says of them.

    Attributes
    ----------
    frame : polars DataFrame of n rows
    scores, p_values : ndarray of shape (n,)
    first : int
        How many rows came before.
    lines : bytes or None
        The reader's `lines`.
    """

    frame: pl.DataFrame
    scores: Floats
    p_values: Floats
    first: int
    lines: bytes | None


@contextmanager
def of_table(name: str) -> Iterator[None]:
    """Name the table in errors about its columns and cells; what raises them does not know its name."""
    try:
        yield
    except ModelFileError:
        raise
    except ValueError as error:
        if name in str(error):
            raise
        raise TableError(f"{name}: {error}") from error


def show_nothing(reader: TableReader, label: str) -> None:
    """Show no progress."""


def frames_of(reader: TableReader, label: str, progress: Progress = show_nothing) -> Iterator[pl.DataFrame]:
    """Read a table batch by batch; `progress` is called before each."""
    while True:
        progress(reader, label)
        frame = next(reader, None)
        if frame is None:
            return
        yield frame


def scan(
    reader: TableReader,
    detector: TableDetector,
    label: str = "Scoring",
    progress: Progress = show_nothing,
) -> Iterator[Batch]:
    """Score a table, batch by batch."""
    for frame in frames_of(reader, label, progress):
        with of_table(reader.name):
            scores = np.asarray(detector.score_samples(frame))
        p_values = detector.calibration_.p_values(scores)
        yield Batch(frame, scores, p_values, reader.rows_before, reader.lines)


def discovery_level(
    reader: TableReader,
    detector: TableDetector,
    q: float,
    progress: Progress = show_nothing,
) -> float:
    """Return the largest p-value of an alarm, of which a share q may be false; 0 where there are none."""
    counts = PValueCounts()
    for batch in scan(reader, detector, "Counting", progress):
        counts.add(batch.p_values)
    return counts.level(q)


def warn_of_unused(reader: TableReader) -> None:
    """Say which arrays of the file are not read, if there are any."""
    if reader.unused:
        warnings.warn(
            f"{reader.name} holds several arrays; the rows are those of X, not used: "
            f"{', '.join(reader.unused[:10])}{', ...' if len(reader.unused) > 10 else ''}",
            stacklevel=2,
        )


class Rows(NamedTuple):
    """Some rows of a table.

    Attributes
    ----------
    frame : polars DataFrame of n rows
    numbers : ndarray of int, shape (n,)
        Where they are in the table; the first row is 1.
    scores, p_values : ndarray of shape (n,)
    """

    frame: pl.DataFrame
    numbers: Ints
    scores: Floats
    p_values: Floats

    def where(self, chosen: Bools | Ints) -> Rows:
        """Return some of them, by a mask or by position."""
        at = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return Rows(self.frame[at], self.numbers[at], self.scores[at], self.p_values[at])


class MostAbnormal:
    """The rows with the lowest scores so far, the lowest first; of equal ones, the earlier.

    Parameters
    ----------
    n : int
        How many to keep.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self.rows: Rows | None = None

    def add(self, batch: Batch) -> None:
        """Look at more rows."""
        numbers = batch.first + 1 + np.arange(len(batch.scores))
        new = Rows(batch.frame, numbers, batch.scores, batch.p_values)
        new = new.where(np.argsort(new.scores, kind="stable")[: self._n])
        if self.rows is not None:
            new = Rows(
                pl.concat([self.rows.frame, new.frame], how="vertical_relaxed"),
                *(np.concatenate(pair) for pair in zip(self.rows[1:], new[1:], strict=True)),
            )
            new = new.where(np.argsort(new.scores, kind="stable")[: self._n])
        self.rows = new


class Explained(NamedTuple):
    """A row, and why it is abnormal.

    Attributes
    ----------
    number : int
        The first row is 1.
    name : str or None
        What the table's id columns say.
    p_value, score : float
    values : dict
        The cells that the model looks at, as they are in the table.
    strange : list of StrangeCell
    explanation : Explanation or None
        None where the model was saved without the rows that it takes.
    """

    number: int
    name: str | None
    p_value: float
    score: float
    values: dict[str, object]
    strange: list[StrangeCell]
    explanation: Explanation | None


def check_explains(detector: TableDetector, model: Path) -> None:
    """Refuse a model that cannot explain rows."""
    if not hasattr(detector.detector_, "scorer_"):
        raise ValueError(
            f"{model} holds a {type(detector.detector_).__name__}, which gives no reasons; models made by "
            f"rankad fit do, and so does RankAD."
        )
    if not hasattr(detector.detector_, "nominal_rows_"):
        raise ValueError(
            f"{model} was saved without the rows that explanations take; fit it again, without "
            f"--without-rows."
        )


def explained(detector: TableDetector, rows: Rows, alpha: float) -> list[Explained]:
    """Explain rows, where the model can."""
    found: list[Explanation | None] = [None] * rows.frame.height
    if hasattr(detector.detector_, "nominal_rows_"):
        found = list(detector.explain(rows.frame, alpha=alpha))
    strange: dict[int, list[StrangeCell]] = {}
    for each in detector.strange_cells(rows.frame):
        strange.setdefault(each.row, []).append(each)
    names, used = label(detector, rows.frame), detector.encoder_.names
    return [
        Explained(
            int(rows.numbers[at]),
            names[at],
            float(rows.p_values[at]),
            float(rows.scores[at]),
            dict(zip(used, values, strict=True)),
            strange.get(at, []),
            found[at],
        )
        for at, values in enumerate(rows.frame.select(used).iter_rows())
    ]


def label(detector: TableDetector, frame: pl.DataFrame) -> list[str | None]:
    """Return what the id columns call each row, None where there are none."""
    ids = [name for name in detector.encoder_.ids if name in frame.columns]
    if not ids:
        return [None] * frame.height
    return [
        " ".join(str(part) for part in parts if part is not None) for parts in frame.select(ids).iter_rows()
    ]
