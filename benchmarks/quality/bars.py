"""Every bar: what is asked, what this run measured, met or not."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.quality.alarms import AlarmCell, summary
from benchmarks.quality.comparison import Comparison
from benchmarks.quality.methods import KNN, RANKAD
from benchmarks.quality.spread import Ranges
from benchmarks.quality.synthetic import JUDGED, Synthetic
from rankad._base.arrays import Floats
from rankad.experiments.pictures import percent
from rankad.experiments.results import Table

__all__ = ["Bar", "Measured", "judge", "table"]

_MEAN_AUC, _MEAN_PRECISION = 0.910, 0.745
_BELOW_KNN = 0.03
_WIDER = 0.03
# Relative errors of mean false-alarm rates, by the rate asked for.
_BIAS = {0.10: 0.05, 0.05: 0.05, 0.01: 0.10}
_OUTSIDE = 0.02
_BELOW_PEERS = 0.05
_FOUND = 0.90


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


class Measured(NamedTuple):
    """What the bars are about.

    Attributes
    ----------
    auc, precision : Comparison
        AUC and average precision of all detectors.
    cells : sequence of AlarmCell
        RankAD's false alarms.
    ranges : Ranges
        How AUC spreads over splits.
    synthetic : Synthetic
        What was found on made-up rows.
    seeds : container of int
        Those on which detectors are compared; false alarms may be of more.
    """

    auc: Comparison
    precision: Comparison
    cells: Sequence[AlarmCell]
    ranges: Ranges
    synthetic: Synthetic
    seeds: Container[int]


def judge(measured: Measured) -> list[Bar]:
    """Judge every bar on this run's own figures."""
    auc, cells = measured.auc, measured.cells
    ranks = auc.mean_ranks
    ahead = min((method for method in auc.methods if method != RANKAD), key=ranks.__getitem__)
    outside = sum(cell.outside for cell in cells)
    compared = [cell for cell in cells if cell.seed in measured.seeds]
    wider = measured.ranges.ours - measured.ranges.theirs
    synthetic = measured.synthetic
    found = synthetic.found[JUDGED]
    others = ", ".join(
        f"{100 * share:.1f} % at {deviation:g}"
        for deviation, share in synthetic.found.items()
        if deviation != JUDGED
    )
    return [
        *_means("AUC", auc, _MEAN_AUC),
        *_means("average precision", measured.precision, _MEAN_PRECISION),
        Bar(
            "Mean rank by AUC",
            "the best",
            f"{ranks[RANKAD]:.2f}; best peer {ahead}, {ranks[ahead]:.2f}",
            ranks[RANKAD] - ranks[ahead],
            ranks[RANKAD] <= ranks[ahead],
        ),
        _worst(f"AUC below {KNN}'s, on the worst set", auc.of(KNN) - auc.of(RANKAD), auc.sets, _BELOW_KNN),
        _worst(
            f"Range of AUC over {measured.ranges.n_splits} splits wider than {KNN}'s, on the worst set",
            wider,
            measured.ranges.sets,
            _WIDER,
        ),
        *(_bias(cells, alpha, limit) for alpha, limit in _BIAS.items()),
        Bar(
            "False alarms: cells outside their 99 % band",
            f"<= {percent(_OUTSIDE)}",
            f"{100 * outside / len(cells):.1f} %, {outside} of {len(cells)} "
            f"({sum(cell.outside for cell in compared)} of {len(compared)} on the splits of the comparison)",
            outside / len(cells),
            outside <= _OUTSIDE * len(cells),
        ),
        _worst(
            "Made-up rows: AUC below the best simple peer's, in the worst case",
            synthetic.below,
            synthetic.cases.sets,
            _BELOW_PEERS,
        ),
        Bar(
            f"Broken relations found at p <= 0.01, standard deviation {JUDGED:g}",
            f">= {percent(_FOUND)}",
            f"{100 * found:.1f} % ({others})",
            found,
            found >= _FOUND,
        ),
    ]


def _means(what: str, compared: Comparison, least: float) -> list[Bar]:
    """Judge a mean by itself and beside the peers'."""
    means = compared.means
    ours, best = means[RANKAD], max((one for one in means if one != RANKAD), key=means.__getitem__)
    return [
        Bar(f"Mean {what}", f">= {least:.3f}", f"{ours:.4f}", ours, ours >= least),
        Bar(
            f"Mean {what} beside the peers'",
            "the best",
            f"{ours:.4f}; best peer {best}, {means[best]:.4f}",
            ours - means[best],
            ours >= means[best],
        ),
    ]


def _worst(what: str, excess: Floats, names: Sequence[str], most: float) -> Bar:
    """Judge what may nowhere be more than so much."""
    at = int(np.argmax(excess))
    found = f"{round(excess[at], 4) + 0.0:.4f}, {names[at]}"
    return Bar(what, f"<= {most}", found, float(excess[at]), bool(excess[at] <= most))


def _bias(cells: Sequence[AlarmCell], alpha: float, most: float) -> Bar:
    found = summary(cells, alpha)
    return Bar(
        f"False alarms, {percent(alpha)} asked: relative error of the mean",
        f"<= {percent(most)}",
        f"{100 * abs(found.bias):.1f} %, {100 * found.obtained:.2f} % obtained",
        abs(found.bias),
        abs(found.bias) <= most,
    )


def table(bars: Sequence[Bar], quick: bool, of: str = "default RankAD") -> Table:
    """Show all bars."""
    rows = [[bar.what, bar.asked, bar.found, "met" if bar.met else "**not met**"] for bar in bars]
    notes = [f"{sum(bar.met for bar in bars)} of {len(bars)} met, of {of}, by this run alone."]
    if quick:
        notes.insert(0, "**Quick look (--quick)**: fewer sets, seeds and rows than the bars are about.")
    return Table("bars", "Bars", ["bar", "asked", "measured", ""], rows, notes)
