"""Explanations of the rows of a table: in the words of the table, strange cells first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankad._arrays import LARGEST, Floats
from rankad.explanations import Change, Explanation, Move, Reason, explain
from rankad.tables.columns import Strange

if TYPE_CHECKING:
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
    encoder = detector.encoder_
    encoded = encoder.encode(frame)
    if not len(encoded.rows):
        return []

    def decode(rows: Floats) -> list[list[Any]]:
        table = encoder.decode(rows)
        return [table[name].to_list() for name in encoder.names]

    inner: Any = detector.detector_
    level = detector.alpha if alpha is None else alpha
    found = explain(
        inner,
        encoded.rows,
        alpha=level,
        groups=encoder.groups,
        names=encoder.names,
        decode=decode,
        n_nearest=n_nearest,
    )
    cells: dict[int, list[Strange]] = {}
    for cell in encoded.strange:
        cells.setdefault(cell.row, []).append(cell)
    least = float(detector.calibration_.p_values(np.array(-LARGEST)))
    for row, of_row in cells.items():
        found[row] = _with_strange(found[row], of_row, least, level)
    return found


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
