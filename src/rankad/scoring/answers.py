"""The columns that are added to a table: p-value, score, alarm and reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from rankad._base.arrays import Bools
from rankad._base.wording import count
from rankad.detectors.table import TableDetector
from rankad.explanations.sentences import reason_text
from rankad.io.errors import TableError
from rankad.scoring.batches import Batch, Rows, explained

# Alarms that get a reason; each takes about a millisecond.
MOST_REASONS = 10_000


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

    def of(self, batch: Batch, alarms: Bools, reasons: Sequence[str | None]) -> pl.DataFrame:
        """Return the columns of a batch."""
        frame = pl.DataFrame({self.p_value: batch.p_values, self.score: batch.scores, self.alarm: alarms})
        if self.reason is None:
            return frame
        return frame.with_columns(pl.Series(self.reason, reasons, dtype=pl.String))

    def empty(self, columns: list[str]) -> pl.DataFrame:
        """Return a table without rows, with all columns."""
        schema: dict[str, Any] = dict.fromkeys(columns, pl.String)
        schema |= {self.p_value: pl.Float64, self.score: pl.Float64, self.alarm: pl.Boolean}
        return pl.DataFrame(schema=schema | ({self.reason: pl.String} if self.reason else {}))


def reasons_of(
    detector: TableDetector, batch: Batch, alarms: Bools, n_alarms: int, level: float
) -> list[str | None]:
    """Return the reason of each alarm of a batch, up to a limit; `n_alarms` counts those so far."""
    texts: list[str | None] = [None] * len(alarms)
    at = np.flatnonzero(alarms)
    before = n_alarms - at.size
    some = at[: max(MOST_REASONS - before, 0)]
    if some.size:
        rows = Rows(batch.frame[some], batch.first + 1 + some, batch.scores[some], batch.p_values[some])
        for place, one in zip(some.tolist(), explained(detector, rows, level), strict=True):
            texts[place] = reason_text(one.explanation, one.strange)
    for place in at[some.size :].tolist():
        texts[place] = f"not explained: {count(MOST_REASONS)} alarms before this one have reasons"
    return texts
