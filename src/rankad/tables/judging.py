"""The verdict on a scored table: whether its p-values are as expected, and which columns are to blame."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from rankad._base.arrays import Bools, Floats, Ints
from rankad.alarms.chance import PValueSummary, chance_of
from rankad.alarms.shifts import NumberShift, Shift, compare_columns, describe_numbers, is_like
from rankad.alarms.verdict import COLUMN_LEVEL, Verdict, judge
from rankad.tables.encoded_columns import CategoryColumn, TimeColumn
from rankad.tables.sampling import RowSample, SampledRows
from rankad.tables.strange_cells import StrangeCell

if TYPE_CHECKING:
    from rankad.detectors.table import TableDetector
    from rankad.explanations.explainer import Explanation

# Rows of the table that are compared with nominal ones, and numbers in them.
_MOST_ROWS, _FEWEST_ROWS, _MOST_NUMBERS = 2_000, 100, 4_000_000
# Alarms that are explained, and alarms times columns.
_MOST_ALARMS, _FEWEST_ALARMS, _MOST_REASONS = 200, 20, 20_000
# A column is named for the alarms if it explains this share of this many, at least.
_LEAST_SHARE, _LEAST_ALARMS = 0.5, 2
# Where the p-values are as expected, a column is named from this distance on.
_LEAST_DISTANCE = 0.1
# So many times, all at midnight, have likely lost the time of day, if at most this share of nominal ones is.
_ENOUGH_TIMES, _MOST_AT_MIDNIGHT = 20, 0.5
# The weight of a column that has not moved, among those that explain alarms.
_UNMOVED = 0.05
_MOST_NAMED = 5
# The share of nominal numbers beyond either edge.
_EDGE = 0.002
# Tolerance for more rare words, as a multiple of the expected increase.
_EDGES = 1.5

How: TypeAlias = Literal[
    "strange", "missing", "swapped", "category", "respelt", "time", "midnight", "beyond", "together",
    "constant", "goes on", "scaled", "moved", "spread", "other",
]  # fmt: skip


class MovedColumn(NamedTuple):
    """A column that differs from nominal rows, or that explains alarms.

    `how` is one of: "strange" or "missing" cells, "swapped" with another column, a "category" that is more or
    less frequent, categories that are "respelt", a "time" of the day or the year, "midnight" throughout,
    values "beyond" nominal ones in alarms only, usual values that do not go "together" with other columns, or
    a kind of `rankad.alarms.shifts.NumberShift`.
    """

    column: str
    distance: float  # from nominal rows: see `rankad.alarms.shifts.Shift`
    p_value: float  # the chance of such a distance
    moved: bool  # whether chance does not explain the distance
    explains: float | None  # share of alarms that a typical value here would end
    blamed: float | None  # share of alarms whose smallest change includes this column
    beyond: float = 0.0  # share of alarms with a number at or beyond the edge of nominal ones
    how: How = "other"
    share: float = 0.0  # of strange or missing cells, or of the category
    nominal_share: float = 0.0
    value: object = None  # a strange cell, the category, or the other column
    what: str = ""  # why the cell is strange
    numbers: NumberShift | None = None


class TableVerdict(NamedTuple):
    """The verdict on a table. It prints as sentences.

    Examples
    --------
    >>> from rankad import TableDetector
    >>> rng = np.random.default_rng(0)
    >>> detector = TableDetector(alpha=0.05).fit(
    ...     {"flow": rng.normal(5, 1, 400), "heat": rng.normal(40, 3, 400)}
    ... )
    >>> new = {"flow": rng.normal(5, 1, 200), "heat": rng.normal(104, 5.4, 200)}
    >>> verdict = detector.verdict(new)
    >>> verdict.is_off, verdict.overall.n_alarms, verdict.columns[0].column
    (True, 200, 'heat')
    >>> print(verdict)
    All rows are alarms, at a false-alarm rate of 5 %.
    The table has moved, chiefly in column heat: its values are about 1.8 times those of normal rows, plus
    32; is it another unit?
    This column alone explains 198 of the 200 alarms that were looked at.
    P-values mean nothing until that is put right.
    """

    overall: Verdict  # by its p-values
    columns: tuple[MovedColumn, ...]  # those to be named, the most important first
    has_rows: bool  # whether the model holds nominal rows to compare columns with
    n_moved: int  # columns that differ from nominal rows
    n_compared: int  # rows that were compared with nominal ones
    n_looked: int  # alarms that were explained

    @property
    def is_off(self) -> bool:
        """Whether chance does not explain the table."""
        return self.overall.is_off or any(column.moved for column in self.columns)

    def __str__(self) -> str:
        # Imported by name, since sentences are made above the tables.
        return str(import_module("rankad.report.verdicts").in_python(self))


class Watch:
    """Collects a table while it is scored batch by batch, in constant memory, and returns the verdict.

    Rows with p-values up to `alpha` are alarms; `summary` also counts those at further `levels`.
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
        """Add a batch, whose first row has this number."""
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
        compared = _compare(self._detector, self._rows.rows)
        explanations: list[Explanation] = []
        too_low = overall.kind in ("more", "some") or overall.shape == "low"
        if too_low and hasattr(self._detector.detector_, "scorer_"):
            level = overall.strict_alpha if overall.kind == "some" else None
            explanations = self._explained(level or self._alpha)
        columns = compared.named(overall, explanations, self._alpha)
        n_moved, n_compared = sum(column.moved for column in columns), len(compared.rows)
        named = tuple(columns[:_MOST_NAMED])
        return TableVerdict(overall, named, True, n_moved, n_compared, len(explanations))

    def _explained(self, level: float) -> list[Explanation]:
        explanations: list[Explanation] = []
        for part in self._alarms.rows:
            surest = np.flatnonzero(part.p_values <= level)
            if surest.size:
                explanations += self._detector.explain(part.frame[surest], alpha=self._alpha, n_nearest=0)
        return explanations


def _compare(detector: TableDetector, sample: Sequence[SampledRows]) -> _Comparison:
    """Compare a sample of a table with the nominal rows of the model."""
    encoder = detector.encoder_
    nominal: Floats = detector.detector_.nominal_rows_
    # With very many columns, some nominal rows are enough.
    nominal = nominal[:: math.ceil(nominal.size / max(_MOST_NUMBERS, _FEWEST_ROWS * nominal.shape[1]))]
    parts = [encoder.encode(part.frame) for part in sample]
    starts = np.cumsum([0, *(len(part.rows) for part in parts)]).tolist()
    order: Ints = np.argsort(np.concatenate([part.numbers for part in sample]), kind="stable")
    rows = np.concatenate([part.rows for part in parts])[order]
    names = [*encoder.names, *(column.name for column in encoder.columns if not column.width)]
    place = {name: at for at, name in enumerate(names)}
    strange, cells = np.zeros((len(rows), len(names)), np.bool_), defaultdict(list)
    for begin, part in zip(starts, parts, strict=False):
        for cell in part.strange:
            strange[begin + cell.row, place[cell.column]] = True
            cells[cell.column].append(cell)
    strange = strange[order]
    # A table may be of one night or one season: other times are no shift.
    times = {column.name for column in encoder.columns if column.kind == "time"}
    known = dict(zip(encoder.names, encoder.groups, strict=True))
    # The last indicator of a category with rare words is theirs.
    more = {
        known[column.name][-1]: _EDGES * column.edge
        for column in encoder.columns
        if isinstance(column, CategoryColumn) and column.edge
    }
    shifts = compare_columns(
        nominal,
        rows,
        [() if name in times else known.get(name, ()) for name in names],
        strange,
        encoder.n_singletons,
        encoder.n_rows,
        len(getattr(detector.detector_, "trimmed_rows_", ())) / encoder.n_rows,
        more,
    )
    by_name = dict(zip(names, shifts, strict=True))
    # Where no category is rare, other spellings are strange cells.
    with_rare = {
        column.name: column
        for column in encoder.columns
        if isinstance(column, CategoryColumn) and column.n_other and not column.boolean
    }

    def respelt(name: str) -> list[str]:
        if name not in with_rare:
            return []
        cells_of = (encoder.cells(part.frame, name) for part in sample)
        return [word for each in cells_of for word in with_rare[name].respelt(each)]

    midnight = {}
    for column in encoder.columns:
        if isinstance(column, TimeColumn) and "hour" in column.parts:
            name, hours = column.name, list(known[column.name][:2])
            usual = rows[~strange[:, place[name]]][:, hours]
            share, p_value = _at_midnight(nominal[:, hours], usual)
            if p_value * (nominal.shape[1] + len(names)) < COLUMN_LEVEL:
                midnight[name] = share
                by_name[name] = Shift(1 - share, p_value, by_name[name].n_strange)
    return _Comparison(
        rows,
        by_name,
        dict(zip(names, strange.T, strict=True)),
        cells,
        encoder.decode(rows),
        encoder.decode(nominal),
        times,
        midnight,
        respelt,
    )


def _at_midnight(nominal: Floats, rows: Floats) -> tuple[float, float]:
    """Return the share of nominal times that are at midnight, and the chance that all of these rows are.

    Times are cosine and sine of the hour, both 0 where there is none. The chance is 1 unless all rows are.
    """
    times, usual = (part[part.any(axis=1), 0] == 1.0 for part in (rows, nominal))
    share = float(usual.mean()) if usual.size else 1.0
    if times.size < _ENOUGH_TIMES or not times.all() or share > _MOST_AT_MIDNIGHT:
        return share, 1.0
    return share, float((np.count_nonzero(usual) + 1) / (usual.size + 1)) ** times.size


@dataclass(frozen=True)
class _Comparison:
    """A sample of a table beside the nominal rows of the model, column by column."""

    rows: Floats
    shifts: dict[str, Shift]
    strange: dict[str, Bools]
    cells: dict[str, list[StrangeCell]]
    scored: pl.DataFrame
    nominal: pl.DataFrame
    times: set[str]
    midnight: dict[str, float]  # times that are all at midnight, with the share of nominal ones that are
    respelt: Callable[[str], list[str]]  # the words of a column that are categories but for their spelling

    def named(self, overall: Verdict, explanations: list[Explanation], alpha: float) -> list[MovedColumn]:
        """Return the columns to name, the most important first."""
        alone, blamed = _shares(explanations, alpha)
        columns = [
            MovedColumn(
                name,
                shift.distance,
                shift.p_value,
                shift.p_value < COLUMN_LEVEL,
                alone[name] if explanations else None,
                blamed[name] if explanations else None,
                self._beyond(name, explanations),
            )
            for name, shift in self.shifts.items()
        ]
        least = 0.0 if overall.is_off else _LEAST_DISTANCE
        moved = [column for column in columns if column.moved and column.distance >= least]
        chosen = sorted(moved, key=lambda column: -column.distance)
        if len(explanations) >= _LEAST_ALARMS:
            lead = max(columns, key=_importance)
            if max(lead.explains or 0.0, lead.blamed or 0.0) >= _LEAST_SHARE:
                chosen = [lead, *(column for column in chosen if column.column != lead.column)]
        return [self._described(column) for column in chosen[:_MOST_NAMED]] + chosen[_MOST_NAMED:]

    def _described(self, column: MovedColumn) -> MovedColumn:
        """Return a column with how it differs."""
        name, n = column.column, len(self.rows)
        other = self._swapped_with(name) if column.moved else None
        if other is not None:
            return column._replace(how="swapped", value=other)
        cells = self.cells.get(name, [])
        if cells and len(cells) / n >= 0.5 * max(column.distance, 1 / n):
            example = Counter((cell.what, str(cell.value)) for cell in cells).most_common(1)[0][0]
            value = next(cell.value for cell in cells if (cell.what, str(cell.value)) == example)
            return column._replace(how="strange", share=len(cells) / n, value=value, what=example[0])
        if name in self.times:
            if name in self.midnight:
                return column._replace(how="midnight", nominal_share=self.midnight[name])
            return column._replace(how="time")
        if not column.moved:
            return column._replace(how="beyond" if column.beyond >= _LEAST_SHARE else "together")
        words = self.respelt(name)
        if len(words) / n >= 0.5 * max(column.distance, 1 / n):
            return column._replace(
                how="respelt", share=len(words) / n, value=Counter(words).most_common(1)[0][0]
            )
        here, there = self._values(name), self.nominal[name]
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

    def _beyond(self, name: str, explanations: Sequence[Explanation]) -> float:
        """Return the share of alarms that have a number at or beyond the edge of nominal ones."""
        if not explanations or not self.nominal[name].dtype.is_numeric():
            return 0.0
        low, high = (self.nominal[name].quantile(share) for share in (_EDGE, 1 - _EDGE))
        values = [reason.value for one in explanations for reason in one.reasons if reason.column == name]
        if low is None or high is None:
            return 0.0
        return sum(not low < value < high for value in values if isinstance(value, float)) / len(explanations)

    def _values(self, name: str) -> pl.Series:
        """Return the cells of a column that are not strange."""
        return self.scored[name].filter(pl.Series(~self.strange[name]))

    def _swapped_with(self, name: str) -> str | None:
        """Return the column that has exchanged its values with this one."""
        for other in sorted(self.shifts, key=lambda one: -self.shifts[one].distance)[: _MOST_NAMED + 1]:
            moved = other != name and self.shifts[other].p_value < COLUMN_LEVEL
            if moved and self._looks_like(name, other) and self._looks_like(other, name):
                return other
        return None

    def _looks_like(self, name: str, other: str) -> bool:
        """Tell whether the cells of one column look like nominal cells of another."""
        here, there = self._values(name).drop_nulls(), self.nominal[other].drop_nulls()
        if here.dtype.is_numeric() and there.dtype.is_numeric():
            return is_like(here.to_numpy(), there.to_numpy())
        words = [cell.value for cell in self.cells.get(name, []) if cell.value is not None]
        if here.dtype.is_numeric() or len(words) < 0.5 * len(self.rows):
            return False
        known = set(there.cast(pl.String).to_list())
        return sum(str(word) in known for word in words) > 0.9 * len(words)


def _shares(explanations: Sequence[Explanation], alpha: float) -> tuple[dict[str, float], ...]:
    """Return the share of alarms that each column explains by itself, and that are blamed on it."""
    alone: Counter[str] = Counter()
    blamed: Counter[str] = Counter()
    for one in explanations:
        alone.update(str(reason.column) for reason in one.reasons if reason.p_value > alpha)
        blamed.update(str(move.column) for move in (one.change.moves if one.change else ()))
    return tuple(
        defaultdict(float, {name: n / len(explanations) for name, n in counts.items()})
        for counts in (alone, blamed)
    )


def _importance(column: MovedColumn) -> float:
    """Return the weight of a column, by the alarms that it explains and how far it has moved."""
    explained = max(column.explains or 0.0, column.blamed or 0.0)
    return explained * (max(column.distance, _UNMOVED) if column.moved else _UNMOVED)


def _category(here: pl.Series, there: pl.Series) -> dict[str, Any]:
    """Return the category whose share differs most from that of nominal rows."""
    tallies = [Counter(series.to_list()) for series in (here, there)]
    shares = [
        {word: tally[word] / len(series) for word in (*tallies[0], *tallies[1])}
        for tally, series in zip(tallies, (here, there), strict=True)
    ]
    word = max(shares[0], key=lambda word: (abs(shares[0][word] - shares[1][word]), str(word)))
    return {"how": "category", "value": word, "share": shares[0][word], "nominal_share": shares[1][word]}
