"""Why a row is abnormal: what the detector would say if a column had a usual value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rankad._base.arrays import Floats
from rankad._base.checks import check_unit, is_count
from rankad._base.garbage import no_collection
from rankad._base.rows import validate_rows
from rankad._base.threads import in_blocks
from rankad.explanations.nominal_rows import N_NEAR, NominalRows
from rankad.explanations.reasons import Search
from rankad.explanations.showing import Explanations, as_html, as_text, library_of

if TYPE_CHECKING:
    from rankad.detectors.rank import RankAD

# A number; for a source column that is encoded in several, a tuple of them; or what they were decoded to.
Cell: TypeAlias = Any
Column: TypeAlias = str | int
Decode: TypeAlias = Callable[[Floats], Sequence[Sequence[Any]]]

# Numbers that a block of rows comes to, and rows that are not worth a second thread.
_BLOCK, _FEW = 2**22, 64


class Reason(NamedTuple):
    """One column's part in a row's score.

    Attributes
    ----------
    column : str or int
        Its name, or its position where columns have no names.
    value : float, tuple of float, or as decoded
        What the row has there; a tuple where a source column is encoded in several.
    typical : float, tuple of float, or as decoded
        What normal rows near it have. Of the ten normal rows nearest in all other columns, in the detector's
        scaled units, it is the value nearest to those of the other nine (for one column, a median). Where no
        column alone makes the row normal with that, it is the value predicted from the other columns by
        linear regression, if that does.
    low, high : float, tuple of float, or None
        The 10 and 90 % quantiles of those ten rows; None where they are not decoded to numbers.
    p_value : float
        The row's p-value if this column alone were typical.
    gain : float
        The rise of its score then.
    """

    column: Column
    value: Cell
    typical: Cell
    low: Cell
    high: Cell
    p_value: float
    gain: float


class Neighbor(NamedTuple):
    """A normal row near the row explained: its position among the rows fitted on, and its cells.

    The distance is in the detector's scaled units.
    """

    row: int
    distance: float
    values: tuple[Cell, ...]


class Move(NamedTuple):
    """One column's part in a change."""

    column: Column
    before: Cell
    after: Cell


class Change(NamedTuple):
    """A change that makes an alarm normal; no part of it can be left out.

    Attributes
    ----------
    moves : tuple of Move
        In the order of the reasons.
    p_value, score : float
        Of the row as changed.
    """

    moves: tuple[Move, ...]
    p_value: float
    score: float


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a row has the score it has. It prints as text, and as a table in notebooks.

    Attributes
    ----------
    p_value, score : float
        Of the row.
    reasons : tuple of Reason
        All columns. The first is the one whose typical value raises the score most. While the row is an alarm
        with it, the next is the one that then raises the score most, both being typical; and so on, for four
        columns at most. The others do not matter to the alarm: they follow by how many standard deviations
        they are outside of `low` to `high`.
    nearest : tuple of Neighbor
        The nearest normal rows, in all columns.
    change : Change or None
        A small change that makes the row normal; None if the row is normal already, or if none was found.
    alpha : float or None
        What counted as an alarm.
    row : int or None
        Its position among the rows that were explained, the first is 0.
    name : str
        Of a table: its cells in the columns of ids, or else its label in the index of a pandas frame; "" if
        it has neither.
    strange : tuple of str
        Of a table: what no normal row has, as "mode bypass: not among the categories of normal rows".
    """

    p_value: float
    score: float
    reasons: tuple[Reason, ...]
    nearest: tuple[Neighbor, ...]
    change: Change | None
    alpha: float | None = None
    row: int | None = field(default=None, compare=False)
    strange: tuple[str, ...] = ()
    name: str = field(default="", compare=False)

    @property
    def is_alarm(self) -> bool | None:
        """Whether the row is an alarm at `alpha`; None where that is not known."""
        return None if self.alpha is None else self.p_value <= self.alpha

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def explain(detector: RankAD, X: Any, **options: Any) -> Explanations:
    """Explain the scores of rows, column by column.

    Parameters
    ----------
    detector : RankAD
        Fitted.
    X : array-like or data frame of shape (n, d)
    **options
        Those of `Explainer`.

    Returns
    -------
    Explanations
        A list with one `Explanation` for each row. It prints, and `to_frame` makes a data frame of it.

    Examples
    --------
    >>> import numpy as np
    >>> from rankad import RankAD
    >>> rng = np.random.default_rng(0)
    >>> detector = RankAD(random_state=0).fit(rng.normal(size=(300, 3)))
    >>> why = explain(detector, [[0.1, 7.0, 0.2]])[0]
    >>> why.reasons[0].column, why.reasons[0].value, why.reasons[0].p_value > 0.05
    (1, 7.0, True)
    >>> [move.column for move in why.change.moves]
    [1]
    """
    explainer = Explainer(detector, **options)
    return Explanations(explainer(validate_rows(detector, X, reset=False)), library=library_of(X))


class Explainer:
    """Explains rows of one detector.

    Parameters
    ----------
    detector : RankAD
        Fitted.
    alpha : float, optional
        What counts as an alarm; the detector's own by default.
    groups : sequence of sequences of int, optional
        Columns that belong together, such as the indicators of one category: they are explained, and changed,
        as one. Every column is in one group; by default, in one of its own.
    names : sequence of str, optional
        The names of the groups; by default the names of the columns fitted on, or their positions.
    decode : callable, optional
        Turns rows, of shape (m, d), into what they stand for: for each group, m values to be told instead.
    n_nearest : int
        How many normal rows to show for comparison.
    """

    def __init__(
        self,
        detector: RankAD,
        *,
        alpha: float | None = None,
        groups: Sequence[Sequence[int]] | None = None,
        names: Sequence[str] | None = None,
        decode: Decode | None = None,
        n_nearest: int = 3,
    ) -> None:
        detector._check_fitted()
        if not hasattr(detector, "scorer_"):
            raise TypeError(f"Only RankAD can explain rows, got {type(detector).__name__}.")
        level = check_unit("alpha", detector.alpha if alpha is None else alpha)
        if not is_count(n_nearest) or n_nearest < 0:
            raise ValueError(f"n_nearest must be an integer >= 0, got {n_nearest!r}.")
        nominal = getattr(detector, "nominal_rows_", None)
        if nominal is None or not len(nominal):
            raise ValueError(
                "The detector has no normal rows to explain by, because it was saved with rows=False. Save "
                "it with rows=True."
            )
        grouped = _check_groups(groups, nominal.shape[1])
        self.nominal = NominalRows(nominal, detector.scaling_, grouped)
        usual = getattr(detector, "feature_names_in_", range(len(grouped)))
        self._names = _check_names(names, usual if groups is None else range(len(grouped)))
        self._detector, self._decode, self._alpha = detector, decode, level
        self._n_nearest = min(n_nearest, len(nominal))
        self._search = Search(detector.scorer_, detector.calibration_, level, self.nominal)

    def __call__(self, rows: Floats, values: Sequence[Sequence[Cell]] | None = None) -> list[Explanation]:
        """Explain rows; `values`, for each group, are shown as the rows' own, by default as decoded."""

        def block(begin: int, end: int) -> list[Explanation]:
            own = None if values is None else [of_group[begin:end] for of_group in values]
            return self._explain(rows[begin:end], own, begin)

        most = max(1, _BLOCK // (N_NEAR * self.nominal.n_groups + 4 * rows.shape[1]))
        with no_collection():
            parts = in_blocks(block, len(rows), most, self._detector.n_jobs, few=_FEW)
        return [explanation for part in parts for explanation in part]

    def _explain(self, rows: Floats, own: Sequence[Sequence[Cell]] | None, first: int) -> list[Explanation]:
        """Explain a block of rows; safe on threads."""
        findings, p_values = self._search.look(rows), self._detector.calibration_.p_values
        value = self._cells(rows) if own is None else own
        typical, after = self._cells(findings.typical), self._cells(findings.changed)
        low, high = self._limits(findings.low), self._limits(findings.high)
        alone, gain = p_values(findings.scores_alone), findings.scores_alone - findings.scores[:, None]
        columns = zip(self._names, value, typical, low, high, alone.T.tolist(), gain.T.tolist(), strict=True)
        reasons = [map(Reason, repeat(name), *of_group) for name, *of_group in columns]
        moved = self.nominal.groups_of(findings.changed != rows).tolist()
        before = zip(p_values(findings.scores).tolist(), findings.scores.tolist(), strict=True)
        then = zip(p_values(findings.changed_scores).tolist(), findings.changed_scores.tolist(), strict=True)
        names, explanations = self._names, []
        by_row = zip(self._nearest(rows), findings.order.tolist(), zip(*reasons, strict=True), strict=True)
        for i, (near, groups, of_row) in enumerate(by_row):
            moves = tuple(Move(names[g], value[g][i], after[g][i]) for g in groups if moved[i][g])
            outcome = next(then)
            change = Change(moves, *outcome) if moves else None
            in_order = tuple(map(of_row.__getitem__, groups))
            explanations.append(Explanation(*next(before), in_order, near, change, self._alpha, first + i))
        return explanations

    def _cells(self, rows: Floats) -> Sequence[Sequence[Cell]]:
        """Return for each group what rows have there."""
        if self._decode is not None:
            return self._decode(rows)
        return [
            rows[:, columns[0]].tolist() if len(columns) == 1 else list(map(tuple, rows[:, columns].tolist()))
            for columns in self.nominal.groups
        ]

    def _limits(self, rows: Floats) -> Sequence[Sequence[Cell]]:
        """Return the same for limits, None where they are not decoded to numbers, as with categories."""
        cells = self._cells(rows)
        return cells if self._decode is None else [_numbers(of_group) for of_group in cells]

    def _nearest(self, rows: Floats) -> list[tuple[Neighbor, ...]]:
        nominal, k = self.nominal, self._n_nearest
        if k == 0:
            return [()] * len(rows)
        near = nominal.nearest(nominal.scaling.apply(rows), k, np.arange(len(nominal.rows)))
        cells = zip(*self._cells(nominal.rows[near.indices.reshape(-1)]), strict=True)
        numbers = self._detector.training_rows_[near.indices.reshape(-1)].tolist()
        flat = list(map(Neighbor, numbers, near.distances.reshape(-1).tolist(), cells))
        return [tuple(flat[begin : begin + k]) for begin in range(0, len(flat), k)]


def _check_groups(groups: Sequence[Sequence[int]] | None, d: int) -> tuple[tuple[int, ...], ...]:
    if groups is None:
        return tuple((column,) for column in range(d))
    grouped = tuple(tuple(int(column) for column in columns) for columns in groups)
    if not all(grouped) or sorted(column for columns in grouped for column in columns) != list(range(d)):
        raise ValueError(
            f"groups must hold each of the columns 0 to {d - 1} once, in groups of at least one; "
            f"got {groups!r}."
        )
    return grouped


def _check_names(names: Sequence[str] | None, usual: Sequence[Column]) -> list[Column]:
    if names is not None and len(names) != len(usual):
        raise ValueError(f"names must hold one name for each of the {len(usual)} groups, got {len(names)}.")
    return list(usual if names is None else names)


def _numbers(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells, None for those that are not numbers."""
    kinds = {kind for kind in set(map(type, cells)) if issubclass(kind, (int, float)) and kind is not bool}
    return [cell if type(cell) in kinds else None for cell in cells]
