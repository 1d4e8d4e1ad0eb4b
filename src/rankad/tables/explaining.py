"""Explanations of the rows of a table: in the words of the table, strange cells first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankad._arrays import LARGEST, Floats
from rankad.explanations import Change, Explanation, Move, Reason, explain
from rankad.tables.columns import Strange
from rankad.tables.encoding import TableEncoder
from rankad.tables.frames import as_frame
from rankad.typical import NominalRows

if TYPE_CHECKING:
    from rankad.detectors import RankAD
    from rankad.tables.detector import TableDetector

__all__ = ["explain_table"]


def explain_table(
    detector: TableDetector, frame: Any, *, alpha: float | None = None, n_nearest: int = 3
) -> list[Explanation]:
    """Explain the scores of the rows of a table, column by column.

    A row with strange cells is explained as if they were typical. Then they are put first among its reasons,
    and into the change that makes it nominal.

    Parameters
    ----------
    detector : TableDetector
        Fitted, with a RankAD inside.
    frame : polars or pandas DataFrame, pyarrow Table, or dict of columns
    alpha : float, optional
        What counts as an alarm; the detector's own by default.
    n_nearest : int
        How many nominal rows to show for comparison.

    Returns
    -------
    list of Explanation
        One for each row, with values as in the table: text, booleans and None where those are.
    """
    encoder, table = detector.encoder_, as_frame(frame)
    encoded = encoder.encode(table)
    if not len(encoded.rows):
        return []

    def decode(rows: Floats) -> list[list[Any]]:
        decoded = encoder.decode(rows)
        return [decoded[name].to_list() for name in encoder.names]

    cells: dict[int, list[Strange]] = {}
    for cell in encoded.strange:
        cells.setdefault(cell.row, []).append(cell)
    inner: Any = detector.detector_
    rows = encoded.rows
    if cells and getattr(inner, "nominal_rows_", None) is not None:
        rows = _made_typical(inner, encoder, rows, cells)
    level = detector.alpha if alpha is None else alpha
    found = explain(
        inner,
        rows,
        alpha=level,
        groups=encoder.groups,
        names=encoder.names,
        decode=decode,
        n_nearest=n_nearest,
    )
    least = float(detector.calibration_.p_values(np.array(-LARGEST)))
    own = {column.name: column.cells(table[column.name]) for column in encoder.columns}
    for row, explanation in enumerate(found):
        if row in cells:
            explanation = _with_strange(explanation, cells[row], least, level)
        found[row] = _with_own_values(explanation, {name: values[row] for name, values in own.items()})
    return found


def _made_typical(
    detector: RankAD, encoder: TableEncoder, rows: Floats, cells: Mapping[int, Sequence[Strange]]
) -> Floats:
    """Return the rows with strange cells as nominal rows have them that are near in all other columns."""
    place = {name: group for group, name in enumerate(encoder.names)}
    # Columns without nominal values have no place: there is nothing to put there.
    strange = {
        row: [place[cell.column] for cell in of_row if cell.column in place] for row, of_row in cells.items()
    }
    strange = {row: groups for row, groups in strange.items() if groups}
    nominal = NominalRows(detector.nominal_rows_, detector.scaling_, encoder.groups)
    # The first is asked about, and all others with it.
    left_out = np.zeros((len(strange), nominal.n_groups), dtype=np.bool_)
    for at, groups in enumerate(strange.values()):
        left_out[at, groups[1:]] = True
    made, which = rows.copy(), list(strange)
    typical = nominal.around(rows[which], left_out).typical
    for at, (row, groups) in enumerate(strange.items()):
        mask = nominal.members[groups].any(axis=0)
        made[row, mask] = nominal.rows[typical[at, groups[0]], mask]
    return made


def _with_own_values(decoded: Explanation, values: Mapping[Any, Any]) -> Explanation:
    """Tell the cells as they are: decoding knows rare categories as "(other)", and rounds numbers."""
    reasons = tuple(reason._replace(value=values[reason.column]) for reason in decoded.reasons)
    change = decoded.change
    if change is not None:
        moves = tuple(move._replace(before=values[move.column]) for move in change.moves)
        change = change._replace(moves=moves)
    return replace(decoded, reasons=reasons, change=change)


def _with_strange(filled: Explanation, cells: Sequence[Strange], least: float, alpha: float) -> Explanation:
    values = {cell.column: cell.value for cell in cells}
    p_value = filled.p_value if len(values) == 1 else least
    gain = filled.score + LARGEST if len(values) == 1 else 0.0
    known = {reason.column: reason for reason in filled.reasons}
    empty = Reason("", None, None, None, None, p_value, gain)
    first = [
        known.get(name, empty)._replace(column=name, value=value, p_value=p_value, gain=gain)
        for name, value in values.items()
    ]
    others = [reason for reason in filled.reasons if reason.column not in values]
    # No other column alone helps while a cell is strange.
    after = [reason._replace(p_value=least, gain=0.0) for reason in others]
    change = None
    if least <= alpha and (filled.p_value > alpha or filled.change is not None):
        moved = {move.column: move for move in filled.change.moves} if filled.change else {}
        here = {reason.column: reason.value for reason in filled.reasons}
        moves = [
            Move(name, value, moved[name].after if name in moved else here.get(name))
            for name, value in values.items()
        ]
        moves += [move for name, move in moved.items() if name not in values]
        goal = filled.change or filled
        change = Change(tuple(moves), goal.p_value, goal.score)
    return replace(filled, p_value=least, score=-LARGEST, reasons=(*first, *after), change=change)
