"""The verdict on a whole table: alarms beyond what chance allows, and p-values that are not uniform."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

from scipy.special import kolmogorov

from rankad.alarms.chance import Chance, PValueSummary, Span
from rankad.stages.calibration import n_attainable

# One table of nominal rows in a hundred is said to be off. Shared out: half for too many alarms and too few,
# a fifth for the shape of p-values, the rest for columns that have moved.
LEVEL = 0.01
_MORE, _FEWER, _SHAPE = 0.3 * LEVEL, 0.2 * LEVEL, 0.2 * LEVEL
COLUMN_LEVEL = 0.3 * LEVEL

Kind: TypeAlias = Literal["empty", "silent", "unknown", "more", "some", "fewer", "usual"]
Shape: TypeAlias = Literal["low", "high"]


class Verdict(NamedTuple):
    """What the p-values of a table say of it as a whole.

    `kind` is one of: "more" alarms than chance allows; no more, but "some" at a stricter rate; "fewer"; as
    many as "usual"; "unknown" what is usual (an in-sample calibration); "silent", as no row can be an alarm;
    "empty", as there are no rows.
    """

    kind: Kind
    shape: Shape | None  # p-values are lower or higher on the whole than chance explains
    alpha: float  # the false-alarm rate that alarms are counted at
    n_rows: int
    n_alarms: int
    expected: float  # the number of alarms to be expected if all rows are nominal
    usual: Span  # where that number is, 19 times in 20
    strict_alpha: float | None  # the strictest rate at which there are more alarms than chance allows

    @property
    def is_off(self) -> bool:
        """Whether chance does not explain the alarms, or how p-values are spread."""
        return self.kind in ("more", "some", "fewer") or self.shape is not None


def judge(summary: PValueSummary, chance: Chance, alpha: float) -> Verdict:
    """Compare the p-values of a table with those of nominal rows.

    The number of alarms is compared with its Beta-binomial law, which accounts for the nominal rows being a
    sample too. The shape of p-values is compared by the two-sample statistic of Kolmogorov and Smirnov at the
    bins and levels of the summary. A table of nominal rows is said to be off with a probability of at most
    0.7 % (`LEVEL`, without the part for columns).

    >>> import numpy as np
    >>> p_values = np.arange(1, 1_001) / 1_000
    >>> verdict = judge(PValueSummary.of([p_values], 0.05), Chance(1_999), 0.05)
    >>> verdict.kind, verdict.shape, verdict.n_alarms, verdict.usual
    ('usual', None, 50, Span(low=34, high=67))
    """
    n_rows, n_alarms = summary.n_rows, summary.n_alarms(alpha)
    verdict = Verdict(
        "usual", None, alpha, n_rows, n_alarms, alpha * n_rows, chance.span(n_rows, alpha), None
    )
    if not n_rows:
        return verdict._replace(kind="empty")
    if not n_attainable(chance.n, alpha):
        return verdict._replace(kind="silent", shape=_shape(summary, chance))
    if not chance.worth:
        return verdict._replace(kind="unknown")
    verdict = verdict._replace(shape=_shape(summary, chance))
    levels = [level for level in summary.levels if level <= alpha and n_attainable(chance.n, level)]
    beyond = [
        level
        for level in levels
        if chance.probability_of_more(summary.n_alarms(level), n_rows, level) < _MORE / len(levels)
    ]
    if beyond:
        return verdict._replace(kind="more" if alpha in beyond else "some", strict_alpha=min(beyond))
    if chance.probability_of_fewer(n_alarms, n_rows, alpha) < _FEWER:
        return verdict._replace(kind="fewer")
    return verdict


def _shape(summary: PValueSummary, chance: Chance) -> Shape | None:
    """Say on which side the p-values are, if chance does not explain it."""
    if not chance.worth or not summary.n_rows:
        return None
    too_low = too_high = 0.0
    for edge, n in summary.cumulative:
        least, most = chance.shares(edge)
        too_low, too_high = max(too_low, n / summary.n_rows - most), max(too_high, least - n / summary.n_rows)
    n_nominal = chance.worth * chance.n
    n_both = summary.n_rows * n_nominal / (summary.n_rows + n_nominal)
    if kolmogorov(math.sqrt(n_both) * max(too_low, too_high)) >= _SHAPE:
        return None
    return "low" if too_low >= too_high else "high"
