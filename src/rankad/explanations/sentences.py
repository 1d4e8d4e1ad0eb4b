"""Which reasons are worth a line, and reasons in a few words, as in a column of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rankad._base.wording import cell

if TYPE_CHECKING:
    from rankad.explanations.explainer import Explanation, Reason
    from rankad.tables import StrangeCell

MOST_REASONS = 6
# A reason that would raise the score by less than this share of what another would is not shown.
_LEAST_SHARE = 0.05
# Reasons in the column of reasons.
_MOST_TOLD = 3


def weighing(explained: Explanation) -> list[Reason]:
    """Return the reasons worth a line: the first, those of the change, and others that weigh.

    They come in the order of their gains, and so of their p-values, the largest first: what is shown of them
    is then in order, too.
    """
    moved = {move.column for move in explained.change.moves} if explained.change else set()
    least = _LEAST_SHARE * max((reason.gain for reason in explained.reasons), default=0.0)
    worth = [
        reason
        for at, reason in enumerate(explained.reasons)
        if at == 0 or reason.column in moved or reason.gain > max(least, 0.0)
    ]
    return sorted(worth[:MOST_REASONS], key=lambda reason: -reason.gain)


def usually(reason: Reason, write: Callable[..., str] = cell) -> str:
    """Write what normal rows near by have: a typical value, and a range where there is one."""
    typical, low, high = (write(each, 3) for each in (reason.typical, reason.low, reason.high))
    if reason.low is None or reason.high is None or low == high:
        return typical
    return f"{typical} ({low} to {high})"


def gist(explanation: Explanation | None, strange: Sequence[StrangeCell]) -> str:
    """Say in a few words what is odd about a row."""
    if strange:
        return oddity(strange[0])
    if explanation is None or not explanation.reasons:
        return ""
    return _told(explanation.reasons[0])


def reason_text(explanation: Explanation | None, strange: Sequence[StrangeCell]) -> str:
    """Say why a row is an alarm: its strange cells, and the columns that would have to change."""
    told = [oddity(odd) for odd in strange[:_MOST_TOLD]]
    if explanation is None:
        return "; ".join(told)
    odd = {cell.column for cell in strange}
    moved = {move.column for move in explanation.change.moves} if explanation.change else set()
    for reason in explanation.reasons[:_MOST_TOLD]:
        if len(told) < _MOST_TOLD and reason.column not in odd and (reason.column in moved or not told):
            told.append(_told(reason))
    return "; ".join(told)


def oddity(odd: StrangeCell) -> str:
    """Say what is strange about a cell."""
    value = "" if odd.value is None else f" {cell(odd.value)}"
    # Only in what rankad says: a column may be called nominal_power.
    return f"{cell(odd.column)}{value}: {odd.what.replace('nominal', 'normal')}"


def _told(reason: Reason) -> str:
    return f"{cell(reason.column)} {cell(reason.value)}, usually {usually(reason)}"
