"""Explanations of the rows of a table in terms of its columns, strange cells first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankad._base.arrays import LARGEST, Floats
from rankad._base.rows import validate_rows
from rankad.explanations.explainer import Change, Explainer, Explanation, Move, Reason
from rankad.explanations.nominal_rows import NominalRows
from rankad.explanations.sentences import oddity
from rankad.explanations.showing import Explanations, labels_of, library_of
from rankad.tables.strange_cells import StrangeCell

if TYPE_CHECKING:
    from rankad.detectors.table import TableDetector


def explain_table(
    detector: TableDetector, frame: Any, *, alpha: float | None = None, n_nearest: int = 3
) -> Explanations:
    """Explain the scores of the rows of a table, column by column: see `TableDetector.explain`.

    A row with strange cells is explained as if they were typical. Then they are put first among its reasons,
    and into the change that makes it nominal.
    """
    encoder, table = detector.encoder_, detector.encoder_.table_of(frame)
    encoded = encoder.encode(table)
    if not len(encoded.rows):
        return Explanations(library=library_of(frame))

    def decode(rows: Floats) -> list[list[Any]]:
        decoded = encoder.decode(rows)
        return [decoded[name].to_list() for name in encoder.names]

    cells: dict[int, list[StrangeCell]] = {}
    for cell in encoded.strange:
        cells.setdefault(cell.row, []).append(cell)
    inner: Any = detector.detector_
    level = detector.alpha if alpha is None else alpha
    explainer = Explainer(
        inner, alpha=level, groups=encoder.groups, names=encoder.names, decode=decode, n_nearest=n_nearest
    )
    rows = validate_rows(inner, encoded.rows, reset=False)
    if cells:
        rows = _made_typical(explainer.nominal, encoder.names, rows, cells)
    # Decoding would lose rare categories and round numbers.
    own = {column.name: column.cells(encoder.cells(table, column.name)) for column in encoder.columns}
    explained = explainer(rows, [own[name] for name in encoder.names])
    least = float(detector.calibration_.p_values(np.array(-LARGEST)))
    made = dict(zip(encoder.names, decode(rows[list(cells)]), strict=True))
    for at, (row, strange) in enumerate(cells.items()):
        values = {cell.column: own[cell.column][row] for cell in strange}
        instead = {name: made[name][at] if name in made else None for name in values}
        put_first = _with_strange(explained[row], values, instead, least, level)
        explained[row] = replace(put_first, strange=tuple(map(oddity, strange)))
    labels = labels_of(frame) or [""] * table.height
    names = [name or label for name, label in zip(encoder.names_of_rows(table), labels, strict=True)]
    explained = [replace(each, name=name) for each, name in zip(explained, names, strict=True)]
    return Explanations(explained, library=library_of(frame))


def _made_typical(
    nominal: NominalRows, names: Sequence[str], rows: Floats, cells: Mapping[int, Sequence[StrangeCell]]
) -> Floats:
    """Replace strange cells by those of nominal rows that are near in all other columns."""
    place = {name: group for group, name in enumerate(names)}
    # Columns without nominal values have nothing to put there.
    strange = {
        row: [place[cell.column] for cell in of_row if cell.column in place] for row, of_row in cells.items()
    }
    strange = {row: groups for row, groups in strange.items() if groups}
    # The first strange group is asked for, and the others are left out with it.
    left_out = np.zeros((len(strange), nominal.n_groups), dtype=np.bool_)
    for at, groups in enumerate(strange.values()):
        left_out[at, groups[1:]] = True
    made, which = rows.copy(), list(strange)
    typical = nominal.around(rows[which], left_out).typical
    for at, (row, groups) in enumerate(strange.items()):
        mask = nominal.members(np.array(groups)).any(axis=0)
        made[row, mask] = nominal.rows[typical[at, groups[0]], mask]
    return made


def _with_strange(
    filled: Explanation, values: Mapping[Any, Any], instead: Mapping[Any, Any], least: float, alpha: float
) -> Explanation:
    """Put strange cells first, given their values and what replaced them."""
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
        moves = [
            Move(name, value, moved[name].after if name in moved else instead[name])
            for name, value in values.items()
        ]
        moves += [move for name, move in moved.items() if name not in values]
        goal = filled.change or filled
        change = Change(tuple(moves), goal.p_value, goal.score)
    return replace(filled, p_value=least, score=-LARGEST, reasons=(*first, *after), change=change)
