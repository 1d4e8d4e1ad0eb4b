"""Which of an alarm's reasons are worth a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankad.explanations.explainer import Explanation, Reason

__all__ = ["MOST_REASONS", "weighing"]

MOST_REASONS = 6
# A reason that would raise the score by less than this share of what another would is not shown.
_LEAST_SHARE = 0.05


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
