"""What is added to the rows of a table: p-value, score, alarm, and why."""

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

__all__ = ["MOST_REASONS", "AnswerColumns", "reasons_of"]

# Alarms that get a reason; each takes a fraction of a millisecond.
MOST_REASONS = 10_000


@dataclass(frozen=True)
class AnswerColumns:
    """The names of the columns that are added; `reason` is None where none was asked for."""

    p_value: str
    score: str
    alarm: str
    reason: str | None

    @classmethod
    def beside(cls, there: list[str], prefix: str, *, reasons: bool, scores: bool = True) -> AnswerColumns:
        """Name the columns beside those that are there, or raise if a name is taken.

        Parameters
        ----------
        there : list of str
        prefix : str
            Of the new names.
        reasons, scores : bool
            Whether there will be a column of reasons, and of scores.
        """
        try:
            prefix.encode()
        except UnicodeEncodeError:
            # From the command line, a byte that is not UTF-8 comes as half of a surrogate pair.
            raise TableError(f"--prefix must be text in UTF-8, got {prefix!a}.") from None
        names = [prefix + name for name in ("p_value", "score", "alarm", *(["reason"] if reasons else []))]
        clash = [name for name in names if name in there and (scores or name != prefix + "score")]
        if clash:
            raise TableError(
                f"the table has a column {clash[0]!r} already; give the new columns other names, as with "
                f"--prefix rankad_"
            )
        p_value, score, alarm, *reason = names
        return cls(p_value, score, alarm, reason[0] if reasons else None)

    def of(self, batch: Batch, alarms: Bools, reasons: Sequence[str | None]) -> pl.DataFrame:
        """Return the columns of a batch."""
        answers = {self.p_value: batch.p_values, self.score: batch.scores, self.alarm: alarms}
        frame = pl.DataFrame(answers)
        if self.reason is None:
            return frame
        return frame.with_columns(pl.Series(self.reason, reasons, dtype=pl.String))

    def empty(self, there: list[str]) -> pl.DataFrame:
        """Return a table without rows, with all columns."""
        schema: dict[str, Any] = dict.fromkeys(there, pl.String)
        schema |= {self.p_value: pl.Float64, self.score: pl.Float64, self.alarm: pl.Boolean}
        return pl.DataFrame(schema=schema | ({self.reason: pl.String} if self.reason else {}))


def reasons_of(
    detector: TableDetector, batch: Batch, alarms: Bools, n_alarms: int, level: float
) -> list[str | None]:
    """Say of each alarm of a batch why it is one, up to so many alarms of the table.

    Parameters
    ----------
    detector : TableDetector
    batch : Batch
    alarms : ndarray of bool
    n_alarms : int
        Alarms of the table so far, with those of the batch.
    level : float
        The largest p-value of an alarm.
    """
    texts: list[str | None] = [None] * len(alarms)
    at = np.flatnonzero(alarms)
    before = n_alarms - at.size
    told = at[: max(MOST_REASONS - before, 0)]
    if told.size:
        rows = Rows(batch.frame[told], batch.first + 1 + told, batch.scores[told], batch.p_values[told])
        for place, one in zip(told.tolist(), explained(detector, rows, level), strict=True):
            texts[place] = reason_text(one.explanation, one.strange)
    for place in at[told.size :].tolist():
        texts[place] = f"not looked for: {count(MOST_REASONS)} alarms before this one have reasons"
    return texts
