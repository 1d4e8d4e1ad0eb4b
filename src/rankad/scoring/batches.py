"""Score a table batch by batch, explain its most abnormal rows, and make the columns that are added."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from rankad._base.arrays import Bools, Floats, Ints
from rankad._base.wording import count
from rankad.alarms.decisions import PValueCounts
from rankad.explanations.sentences import reason_text
from rankad.io.errors import TableError
from rankad.io.reader import ReadAhead
from rankad.modelfile import ModelFileError
from rankad.tables.encoded_columns import NumberColumn

if TYPE_CHECKING:
    from rankad.detectors.table import TableDetector
    from rankad.explanations.explainer import Explanation
    from rankad.io.reader import TableReader
    from rankad.tables import StrangeCell

# Alarms that get a reason; each takes about a millisecond.
MOST_REASONS = 10_000
# Called before each batch with the reader of the table and a label.
Progress: TypeAlias = "Callable[[TableReader, str], None]"


class Batch(NamedTuple):
    """Rows of a table and their answers; `first` counts the rows before, `lines` are the reader's."""

    frame: pl.DataFrame
    scores: Floats
    p_values: Floats
    first: int
    lines: bytes | None

    def rows(self, at: Ints) -> Rows:
        """Return some of the rows, by position."""
        return Rows(self.frame[at], self.first + 1 + at, self.scores[at], self.p_values[at])


@contextmanager
def of_table(name: str) -> Iterator[None]:
    """Add the name of the table to errors about its columns and cells."""
    try:
        yield
    except ModelFileError:
        raise
    except ValueError as error:
        if name in str(error):
            raise
        raise TableError(f"{name}: {error}") from error


def show_nothing(reader: TableReader, label: str) -> None:
    """Ignore progress."""


def frames_of(reader: TableReader, label: str, progress: Progress = show_nothing) -> Iterator[pl.DataFrame]:
    """Read a table batch by batch; `progress` is called before each."""
    while True:
        progress(reader, label)
        frame = next(reader, None)
        if frame is None:
            return
        yield frame


def scan(
    reader: TableReader, detector: TableDetector, label: str = "Scoring", progress: Progress = show_nothing
) -> Iterator[Batch]:
    """Score a table, batch by batch."""
    for frame in frames_of(reader, label, progress):
        with of_table(reader.name):
            scores = np.asarray(detector.score_samples(frame))
        p_values = detector.calibration_.p_values(scores)
        yield Batch(frame, scores, p_values, reader.rows_before, reader.lines)


def set_rate(
    detector: TableDetector,
    alpha: float | None,
    fdr: float | None,
    open_again: Callable[[], TableReader],
    progress: Progress,
) -> float:
    """Set the detector's alpha, and return the largest p-value of an alarm, 0 if there are none."""
    detector.alpha = detector.alpha if alpha is None else alpha
    if fdr is None:
        return detector.alpha
    counts = PValueCounts()
    with open_again() as reader:
        reader.numbers = numbers_of(detector)
        with ReadAhead(reader) as ahead:
            for batch in scan(ahead, detector, "Counting", progress):
                counts.add(batch.p_values)
    return counts.level(fdr)


def numbers_of(detector: TableDetector) -> list[str]:
    """Return the columns whose text can be parsed as numbers without knowing the column's format."""
    columns = detector.encoder_.columns
    return [column.name for column in columns if isinstance(column, NumberColumn) and column.plainly_written]


def warn_of_unused(reader: TableReader) -> None:
    """Warn about arrays of the file that are not read."""
    if reader.unused:
        warnings.warn(
            f"{reader.name} holds several arrays; the rows are those of X, not used: "
            f"{', '.join(reader.unused[:10])}{', ...' if len(reader.unused) > 10 else ''}",
            stacklevel=2,
        )


class Rows(NamedTuple):
    """Some rows of a table; `numbers` are their places in it, the first row is 1."""

    frame: pl.DataFrame
    numbers: Ints
    scores: Floats
    p_values: Floats

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts."""
        frame = pl.concat([part.frame for part in parts], how="vertical_relaxed")
        return cls(frame, *(np.concatenate([part[at] for part in parts]) for at in (1, 2, 3)))

    def where(self, chosen: Bools | Ints) -> Rows:
        """Return some of the rows, by a mask or by position."""
        at = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return Rows(self.frame[at], self.numbers[at], self.scores[at], self.p_values[at])


class MostAbnormal:
    """The n rows with the lowest scores so far, in order; of equal ones, the earlier first."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.rows: Rows | None = None

    def add(self, batch: Batch) -> None:
        """Add the rows of a batch."""
        rows = batch.rows(self._lowest(batch.scores))
        if self.rows is not None:
            rows = Rows.joined([self.rows, rows])
            rows = rows.where(self._lowest(rows.scores))
        self.rows = rows

    def _lowest(self, scores: Floats) -> Ints:
        return np.argsort(scores, kind="stable")[: self._n]


class ExplainedRow(NamedTuple):
    """A row, and why it is abnormal.

    `number` is 1 for the first row, `name` the id or None, `values` are the cells that the model uses, and
    `explanation` is None if the model was saved without rows.
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
            f"{model} holds a {type(detector.detector_).__name__}, which gives no reasons; a model made by "
            f"rankad fit does, and so does RankAD."
        )
    if not hasattr(detector.detector_, "nominal_rows_"):
        raise ValueError(
            f"{model} was saved without the rows that explanations need; fit it again, without "
            f"--without-rows."
        )


def explained(detector: TableDetector, rows: Rows, alpha: float) -> list[ExplainedRow]:
    """Explain rows; without reasons if the model has no rows."""
    explanations: list[Explanation | None] = [None] * rows.frame.height
    if hasattr(detector.detector_, "nominal_rows_"):
        explanations = list(detector.explain(rows.frame, alpha=alpha))
    strange: dict[int, list[StrangeCell]] = {}
    for each in detector.strange_cells(rows.frame):
        strange.setdefault(each.row, []).append(each)
    names, used = detector.encoder_.names_of_rows(rows.frame), detector.encoder_.names
    return [
        ExplainedRow(
            int(rows.numbers[at]),
            names[at],
            float(rows.p_values[at]),
            float(rows.scores[at]),
            dict(zip(used, values, strict=True)),
            strange.get(at, []),
            explanations[at],
        )
        for at, values in enumerate(rows.frame.select(used).iter_rows())
    ]


@dataclass(frozen=True)
class AnswerColumns:
    """The names of the added columns; `reason` is None if reasons are not wanted."""

    p_value: str
    score: str
    alarm: str
    reason: str | None

    @classmethod
    def beside(cls, columns: list[str], prefix: str, *, reasons: bool, scores: bool = True) -> AnswerColumns:
        """Return the names with a prefix, or raise if a column of the table has one of them."""
        try:
            prefix.encode()
        except UnicodeEncodeError:
            # On the command line, a byte that is not UTF-8 becomes half of a surrogate pair.
            raise TableError(f"--prefix must be text in UTF-8, got {prefix!a}.") from None
        names = [prefix + name for name in ("p_value", "score", "alarm", *(["reason"] if reasons else []))]
        clash = [name for name in names if name in columns and (scores or name != prefix + "score")]
        if clash:
            raise TableError(
                f"the table has a column {clash[0]!r} already; give the new columns other names, for "
                f"instance with --prefix rankad_"
            )
        p_value, score, alarm, *reason = names
        return cls(p_value, score, alarm, reason[0] if reasons else None)

    def of(
        self, detector: TableDetector, batch: Batch, alarms: Bools, n_alarms: int, level: float
    ) -> pl.DataFrame:
        """Return the columns of a batch; `n_alarms` counts those so far."""
        frame = pl.DataFrame({self.p_value: batch.p_values, self.score: batch.scores, self.alarm: alarms})
        if self.reason is None:
            return frame
        reasons = _reasons(detector, batch, alarms, n_alarms, level)
        return frame.with_columns(pl.Series(self.reason, reasons, dtype=pl.String))

    def empty(self, columns: list[str]) -> pl.DataFrame:
        """Return a table without rows, with all columns."""
        schema: dict[str, Any] = dict.fromkeys(columns, pl.String)
        schema |= {self.p_value: pl.Float64, self.score: pl.Float64, self.alarm: pl.Boolean}
        return pl.DataFrame(schema=schema | ({self.reason: pl.String} if self.reason else {}))


def _reasons(
    detector: TableDetector, batch: Batch, alarms: Bools, n_alarms: int, level: float
) -> list[str | None]:
    """Return the reason of each alarm of a batch, up to a limit."""
    texts: list[str | None] = [None] * len(alarms)
    at = np.flatnonzero(alarms)
    before = n_alarms - at.size
    some = at[: max(MOST_REASONS - before, 0)]
    if some.size:
        for place, one in zip(some.tolist(), explained(detector, batch.rows(some), level), strict=True):
            texts[place] = reason_text(one.explanation, one.strange)
    for place in at[some.size :].tolist():
        texts[place] = f"not explained: {count(MOST_REASONS)} alarms before this one have reasons"
    return texts
