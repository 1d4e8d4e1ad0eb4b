"""Every bar: what is asked, what this run measured, met or not."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.quality.alarms import AlarmCell, summary
from benchmarks.quality.comparison import Comparison
from benchmarks.quality.contamination import Falls
from benchmarks.quality.methods import KNN, RANKAD
from benchmarks.quality.settings import ALPHAS, SHARES
from rankad.experiments.pictures import percent
from rankad.experiments.results import Table

__all__ = ["Bar", "judge", "table"]

_MEAN_AUC = 0.942
_BELOW_KNN = 0.05
_BIAS = 0.10
_OUTSIDE = 0.02


class Bar(NamedTuple):
    """One bar.

    Attributes
    ----------
    what, asked, found : str
        As people read them.
    measured : float
        What was found, as a number.
    met : bool
    """

    what: str
    asked: str
    found: str
    measured: float
    met: bool


def judge(auc: Comparison, cells: Sequence[AlarmCell], falls: Falls, seeds: Container[int]) -> list[Bar]:
    """Judge every bar on this run's own figures.

    Parameters
    ----------
    auc : Comparison
        AUC of all detectors.
    cells : sequence of AlarmCell
        RankAD's false alarms.
    falls : Falls
        AUC with contaminated training rows.
    seeds : container of int
        Those on which detectors are compared; false alarms may be of more.
    """
    means, ranks = auc.means, auc.mean_ranks
    peers = [method for method in auc.methods if method != RANKAD]
    best, ahead = max(peers, key=means.__getitem__), min(peers, key=ranks.__getitem__)
    below = auc.of(KNN) - auc.of(RANKAD)
    worst = int(np.argmax(below))
    outside, compared = sum(cell.outside for cell in cells), [cell for cell in cells if cell.seed in seeds]
    return [
        Bar("Mean AUC", f">= {_MEAN_AUC}", f"{means[RANKAD]:.4f}", means[RANKAD], means[RANKAD] >= _MEAN_AUC),
        Bar(
            "Mean AUC beside the peers'",
            "the best",
            f"{means[RANKAD]:.4f}; best peer {best}, {means[best]:.4f}",
            means[RANKAD] - means[best],
            means[RANKAD] >= means[best],
        ),
        Bar(
            "Mean rank by AUC",
            "the best",
            f"{ranks[RANKAD]:.2f}; best peer {ahead}, {ranks[ahead]:.2f}",
            ranks[RANKAD] - ranks[ahead],
            ranks[RANKAD] <= ranks[ahead],
        ),
        Bar(
            f"AUC below {KNN}'s, on the worst set",
            f"<= {_BELOW_KNN}",
            f"{round(below[worst], 4) + 0.0:.4f}, {auc.sets[worst]}",
            float(below[worst]),
            bool(below[worst] <= _BELOW_KNN),
        ),
        *(_bias(cells, alpha) for alpha in ALPHAS),
        Bar(
            "False alarms: cells outside their 99 % band",
            f"<= {percent(_OUTSIDE)}",
            f"{100 * outside / len(cells):.1f} %, {outside} of {len(cells)} "
            f"({sum(cell.outside for cell in compared)} of {len(compared)} on the splits of the comparison)",
            outside / len(cells),
            outside <= _OUTSIDE * len(cells),
        ),
        *(_fall(falls, share) for share in SHARES),
    ]


def _bias(cells: Sequence[AlarmCell], alpha: float) -> Bar:
    found = summary(cells, alpha)
    return Bar(
        f"False alarms, {percent(alpha)} asked: relative error of the mean",
        f"< {percent(_BIAS)}",
        f"{100 * abs(found.bias):.1f} %, {100 * found.obtained:.2f} % obtained",
        abs(found.bias),
        abs(found.bias) < _BIAS,
    )


def _fall(falls: Falls, share: float) -> Bar:
    ours, theirs = falls.fall(RANKAD, share), falls.fall(KNN, share)
    return Bar(
        f"Fall of mean AUC, {percent(share)} anomalies among the training rows",
        f"< {KNN}'s, {theirs:.4f}",
        f"{ours:.4f}",
        ours - theirs,
        ours < theirs,
    )


def table(bars: Sequence[Bar], quick: bool, of: str = "default RankAD") -> Table:
    """Show all bars."""
    rows = [[bar.what, bar.asked, bar.found, "met" if bar.met else "**not met**"] for bar in bars]
    notes = [f"{sum(bar.met for bar in bars)} of {len(bars)} met, of {of}, by this run alone."]
    if quick:
        notes.insert(0, "**Quick look (--quick)**: fewer sets, seeds and rows than the bars are about.")
    return Table("bars", "Bars", ["bar", "asked", "measured", ""], rows, notes)
