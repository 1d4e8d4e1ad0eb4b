"""The verdict on a scored table: what its p-values say of it, and which columns are to blame."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from rankad._base.arrays import Bools, Floats, Ints
from rankad.alarms.chance import PValueSummary, chance_of
from rankad.alarms.shifts import NumberShift, Shift, compare_columns, describe_numbers, is_like
from rankad.alarms.verdict import COLUMN_LEVEL, Verdict, judge
from rankad.tables.encoded_columns import CategoryColumn, Strange
from rankad.tables.sampling import RowSample, SampledRows

if TYPE_CHECKING:
    from rankad.detectors.table import TableDetector
    from rankad.explanations.explainer import Explanation

__all__ = ["MovedColumn", "TableVerdict", "Watch", "chance_of"]

# Rows of the table that are compared with nominal ones, and numbers in them.
_MOST_ROWS, _FEWEST_ROWS, _MOST_NUMBERS = 2_000, 100, 4_000_000
# Alarms that are explained, and columns of all of these.
_MOST_ALARMS, _FEWEST_ALARMS, _MOST_REASONS = 200, 20, 20_000
# A column is named for the alarms if it explains so many of those looked at.
_LEAST_SHARE, _LEAST_ALARMS = 0.5, 2
# Where nothing else is wrong with the table, a column is named if it is at least so far from nominal ones.
_LEAST_DISTANCE = 0.1
# What a column that has not moved counts for, among those that explain alarms.
_UNMOVED = 0.05
_MOST_NAMED = 5
# Less than this share of nominal numbers is beyond either edge.
_EDGE = 0.002
# How much more of rare words is allowed for, as a multiple of what is to be expected.
_EDGES = 1.5

How: TypeAlias = Literal[
    "strange", "missing", "swapped", "category", "time", "beyond", "together", "constant", "goes on",
    "scaled", "moved", "spread", "other",
]  # fmt: skip


class MovedColumn(NamedTuple):
    """A column that is not as it is among nominal rows, or to which alarms are due.

    Attributes
    ----------
    column : str
    distance, p_value : float
        How far it is from nominal ones, and the chance of that: see `rankad.alarms.shifts.Shift`.
    moved : bool
        Whether chance does not explain the distance.
    explains : float or None
        Of the alarms looked at, the share that would be none if this column alone had what nominal rows near
        by have; None where no alarms were looked at.
    blamed : float or None
        The share whose smallest change that makes them nominal has this column in it.
    beyond : float
        The share that has a number there at or beyond the edge of nominal ones.
    how : str
        In what way: "strange" cells, "missing" ones, "swapped" with another column, a "category" that comes
        more or less often, a "time" of the day or the year, values "beyond" those of nominal rows in the
        alarms alone, usual values that do not go "together" with those of other columns; the others are
        those of `rankad.alarms.shifts.NumberShift`.
    share, nominal_share : float
        Of strange or missing cells, or of the category.
    value : object
        A strange cell, the category, or the other column.
    what : str
        What is strange about the cell.
    numbers : NumberShift or None
    """

    column: str
    distance: float
    p_value: float
    moved: bool
    explains: float | None
    blamed: float | None
    beyond: float = 0.0
    how: How = "other"
    share: float = 0.0
    nominal_share: float = 0.0
    value: object = None
    what: str = ""
    numbers: NumberShift | None = None


class TableVerdict(NamedTuple):
    """What is said of a table as a whole.

    Attributes
    ----------
    overall : Verdict
        By its p-values.
    columns : tuple of MovedColumn
        Those to be named, the most important first.
    has_rows : bool
        Whether the model holds nominal rows to compare columns with.
    n_moved, n_compared, n_looked : int
        Columns that moved, rows that were compared with nominal ones, and alarms that were explained.
    """

    overall: Verdict
    columns: tuple[MovedColumn, ...]
    has_rows: bool
    n_moved: int
    n_compared: int
    n_looked: int

    @property
    def is_off(self) -> bool:
        """Whether chance does not explain the table."""
        return self.overall.is_off or any(column.moved for column in self.columns)


class Watch:
    """Watches a table while it is scored batch by batch, in constant memory, and gives the verdict.

    Parameters
    ----------
    detector : TableDetector
    alpha : float
        What counts as an alarm.
    levels : float
        Further rates at which alarms are counted.

    Attributes
    ----------
    summary : PValueSummary
        Of all rows so far.
    """

    def __init__(self, detector: TableDetector, alpha: float, *levels: float) -> None:
        self._detector, self._alpha = detector, alpha
        self.summary = PValueSummary.for_levels(alpha, *levels)
        self._names = [column.name for column in detector.encoder_.columns]
        wide = max(detector.encoder_.n_encoded, 1)
        self._rows = RowSample(min(max(_MOST_NUMBERS // wide, _FEWEST_ROWS), _MOST_ROWS))
        n_alarms = min(max(_MOST_REASONS // max(len(self._names), 1), _FEWEST_ALARMS), _MOST_ALARMS)
        self._alarms = RowSample(n_alarms)
        # Without nominal rows there is nothing to compare columns with.
        self._has_rows = getattr(detector.detector_, "nominal_rows_", None) is not None

    def add(self, frame: pl.DataFrame, first: int, p_values: Floats) -> None:
        """Look at more rows; so many came before them."""
        self.summary = self.summary.add(p_values)
        if not self._has_rows:
            return
        used, numbers = frame.select(self._names), first + np.arange(len(p_values))
        self._rows.add(used, numbers, p_values)
        alarms = np.flatnonzero(p_values <= self._alpha)
        if alarms.size:
            self._alarms.add(used[alarms], numbers[alarms], p_values[alarms])

    def verdict(self) -> TableVerdict:
        """Return the verdict on all rows seen."""
        overall = judge(self.summary, chance_of(self._detector), self._alpha)
        if not self._has_rows or not self._rows.size:
            return TableVerdict(overall, (), self._has_rows, 0, 0, 0)
        compared = _Compared.of(self._detector, self._rows.rows)
        found: list[Explanation] = []
        too_low = overall.kind in ("more", "some") or overall.shape == "low"
        if too_low and hasattr(self._detector.detector_, "scorer_"):
            found = self._explained(overall.strict_alpha if overall.kind == "some" else self._alpha)
        columns = compared.named(overall, found, self._alpha)
        n_moved = sum(column.moved for column in columns)
        return TableVerdict(
            overall, tuple(columns[:_MOST_NAMED]), True, n_moved, len(compared.rows), len(found)
        )

    def _explained(self, level: float | None) -> list[Explanation]:
        found: list[Explanation] = []
        for part in self._alarms.rows:
            surest = np.flatnonzero(part.p_values <= (level or self._alpha))
            if surest.size:
                found += self._detector.explain(part.frame[surest], alpha=self._alpha, n_nearest=0)
        return found


class _Compared:
    """A sample of a table beside the nominal rows of the model, column by column."""

    def __init__(
        self,
        names: Sequence[str],
        shifts: Sequence[Shift],
        rows: Floats,
        strange: Bools,
        cells: dict[str, list[Strange]],
        frames: tuple[pl.DataFrame, pl.DataFrame],
        times: set[str],
    ) -> None:
        self.names, self.rows, self._times = names, rows, times
        self._shifts = dict(zip(names, shifts, strict=True))
        self._strange = {name: strange[:, at] for at, name in enumerate(names)}
        self._cells, (self._scored, self._nominal) = cells, frames

    @classmethod
    def of(cls, detector: TableDetector, sample: Sequence[SampledRows]) -> _Compared:
        encoder = detector.encoder_
        nominal: Floats = detector.detector_.nominal_rows_
        # As with rows of the table: of very many columns, some nominal rows do.
        step = math.ceil(nominal.size / max(_MOST_NUMBERS, _FEWEST_ROWS * nominal.shape[1]))
        nominal = nominal[::step]
        numbers = np.concatenate([part.numbers for part in sample])
        parts = [encoder.encode(part.frame) for part in sample]
        starts = np.cumsum([0, *(len(part.rows) for part in parts)])
        order: Ints = np.argsort(numbers, kind="stable")
        rows = np.concatenate([part.rows for part in parts])[order]
        names = [*encoder.names, *(column.name for column in encoder.columns if not column.width)]
        place, strange = {name: at for at, name in enumerate(names)}, np.zeros((len(rows), len(names)), bool)
        cells: dict[str, list[Strange]] = {}
        for begin, part in zip(starts.tolist(), parts, strict=False):
            for cell in part.strange:
                strange[begin + cell.row, place[cell.column]] = True
                cells.setdefault(cell.column, []).append(cell)
        strange = strange[order]
        # A table is of one night or one season: that its times are no others is no move.
        times = {column.name for column in encoder.columns if _is_time(column)}
        known = dict(zip(encoder.names, encoder.groups, strict=True))
        groups = [() if name in times else known.get(name, ()) for name in names]
        trimmed = len(getattr(detector.detector_, "trimmed_rows_", ())) / encoder.n_rows
        # Of a category with rare words, the last indicator is theirs.
        more = {
            known[column.name][-1]: _EDGES * column.edge
            for column in encoder.columns
            if isinstance(column, CategoryColumn) and column.edge
        }
        shifts = compare_columns(
            nominal, rows, groups, strange, encoder.n_alone, encoder.n_rows, trimmed, more
        )
        frames = encoder.decode(rows), encoder.decode(nominal)
        return cls(names, shifts, rows, strange, cells, frames, times)

    def named(self, overall: Verdict, found: list[Explanation], alpha: float) -> list[MovedColumn]:
        """Return the columns to name, the most important first."""
        alone, blamed = _shares(found, alpha)
        columns = [
            MovedColumn(
                name,
                shift.distance,
                shift.p_value,
                shift.p_value < COLUMN_LEVEL,
                alone[name] if found else None,
                blamed[name] if found else None,
                self._beyond(name, found),
            )
            for name, shift in self._shifts.items()
        ]
        least = 0.0 if overall.is_off else _LEAST_DISTANCE
        moved = [column for column in columns if column.moved and column.distance >= least]
        chosen = sorted(moved, key=lambda column: -column.distance)
        if len(found) >= _LEAST_ALARMS:
            lead = max(columns, key=_importance)
            if max(lead.explains or 0.0, lead.blamed or 0.0) >= _LEAST_SHARE:
                chosen = [lead, *(column for column in chosen if column.column != lead.column)]
        return [self._described(column) for column in chosen[:_MOST_NAMED]] + chosen[_MOST_NAMED:]

    def _described(self, column: MovedColumn) -> MovedColumn:
        """Say in what way a column has moved."""
        name, n = column.column, len(self.rows)
        other = self._swapped_with(name) if column.moved else None
        if other is not None:
            return column._replace(how="swapped", value=other)
        cells = self._cells.get(name, [])
        if cells and len(cells) / n >= 0.5 * max(column.distance, 1 / n):
            example = Counter((cell.what, str(cell.value)) for cell in cells).most_common(1)[0][0]
            value = next(cell.value for cell in cells if (cell.what, str(cell.value)) == example)
            return column._replace(how="strange", share=len(cells) / n, value=value, what=example[0])
        if name in self._times:
            return column._replace(how="time")
        if not column.moved:
            return column._replace(how="beyond" if column.beyond >= _LEAST_SHARE else "together")
        if name not in self._scored.columns:
            return column
        here, there = self._values(name), self._nominal[name]
        missing, usual = here.null_count() / max(len(here), 1), there.null_count() / max(len(there), 1)
        if abs(missing - usual) >= 0.5 * column.distance:
            return column._replace(how="missing", share=missing, nominal_share=usual)
        here, there = here.drop_nulls(), there.drop_nulls()
        if not len(here) or not len(there):
            return column
        if here.dtype.is_numeric():
            numbers = describe_numbers(here.to_numpy(), there.to_numpy())
            return column._replace(how=numbers.kind, numbers=numbers)
        return column._replace(**_category(here, there))

    def _beyond(self, name: str, found: Sequence[Explanation]) -> float:
        """Return the share of alarms that have a number at or beyond the edge of nominal ones."""
        if not found or name not in self._nominal.columns or not self._nominal[name].dtype.is_numeric():
            return 0.0
        low, high = (self._nominal[name].quantile(share) for share in (_EDGE, 1 - _EDGE))
        values = [reason.value for one in found for reason in one.reasons if reason.column == name]
        if low is None or high is None:
            return 0.0
        return sum(not low < value < high for value in values if isinstance(value, float)) / len(found)

    def _values(self, name: str) -> pl.Series:
        """Return the cells of a column that are not strange."""
        return self._scored[name].filter(pl.Series(~self._strange[name]))

    def _swapped_with(self, name: str) -> str | None:
        """Return the column whose nominal values are here, if ours are there."""
        others = sorted(self._shifts, key=lambda one: -self._shifts[one].distance)[: _MOST_NAMED + 1]
        if name not in self._scored.columns:
            return None
        for other in others:
            moved = other != name and self._shifts[other].p_value < COLUMN_LEVEL
            if moved and self._looks_like(name, other) and self._looks_like(other, name):
                return other
        return None

    def _looks_like(self, name: str, other: str) -> bool:
        """Tell whether the cells of one column may well be those that nominal rows have in another."""
        if other not in self._nominal.columns or name not in self._scored.columns:
            return False
        here, there = self._values(name).drop_nulls(), self._nominal[other].drop_nulls()
        if here.dtype.is_numeric() and there.dtype.is_numeric():
            return is_like(here.to_numpy(), there.to_numpy())
        words = [cell.value for cell in self._cells.get(name, []) if cell.value is not None]
        if here.dtype.is_numeric() or len(words) < 0.5 * len(self.rows):
            return False
        known = set(there.cast(pl.String).to_list())
        return sum(str(word) in known for word in words) > 0.9 * len(words)


def _is_time(column: Any) -> bool:
    return bool(column.kind == "time")


def _shares(found: Sequence[Explanation], alpha: float) -> tuple[Counter[str], Counter[str]]:
    """Return for each column the share of alarms that it alone explains, and that are blamed on it."""
    alone: Counter[str] = Counter()
    blamed: Counter[str] = Counter()
    for one in found:
        alone.update(str(reason.column) for reason in one.reasons if reason.p_value > alpha)
        blamed.update(str(move.column) for move in one.change.moves) if one.change else None
    for shares in (alone, blamed):
        for name in shares:
            shares[name] /= len(found)  # type: ignore[assignment]
    return alone, blamed


def _importance(column: MovedColumn) -> float:
    """Return what a column counts for: how many alarms it explains, and how far it has moved."""
    explained = max(column.explains or 0.0, column.blamed or 0.0)
    return explained * (max(column.distance, _UNMOVED) if column.moved else _UNMOVED)


def _category(here: pl.Series, there: pl.Series) -> dict[str, Any]:
    """Say which category comes more often than among nominal rows, or else less often."""
    tallies = [Counter(series.to_list()) for series in (here, there)]
    shares = [
        {word: tally[word] / len(series) for word in (*tallies[0], *tallies[1])}
        for tally, series in zip(tallies, (here, there), strict=True)
    ]
    word = max(shares[0], key=lambda word: (abs(shares[0][word] - shares[1][word]), str(word)))
    return {"how": "category", "value": word, "share": shares[0][word], "nominal_share": shares[1][word]}
