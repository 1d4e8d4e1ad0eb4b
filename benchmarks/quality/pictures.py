"""The pictures: mean ranks with their critical difference, and false alarms with their bands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from benchmarks.quality.alarms import AlarmCell
from benchmarks.quality.comparison import Comparison, critical_difference, groups
from benchmarks.quality.methods import RANKAD
from benchmarks.quality.settings import ALPHAS
from rankad.experiments.pictures import COLOURS, new_figure, percent, save, tint

__all__ = ["draw_all"]

_OURS, _THEIRS, _INSIDE, _GROUP = COLOURS[3], "#333333", COLOURS[0], "#8a8a8a"


def draw_all(out: Path, auc: Comparison, cells: Sequence[AlarmCell]) -> list[Path]:
    """Draw both, and return the files."""
    return [_ranks(out / "critical-difference.png", auc), _alarms(out / "false-alarms.png", cells)]


# ------------------------------------------------------------------------------------------------ mean ranks


def _ranks(path: Path, auc: Comparison) -> Path:
    """Draw Demsar's diagram: one axis, a label a detector, bars that join those not told apart."""
    ordered = sorted(auc.mean_ranks.items(), key=lambda item: item[1])
    ranks = [rank for _, rank in ordered]
    difference = critical_difference(len(ranks), len(auc.sets))
    joined = groups(ranks, difference)
    half = math.ceil(len(ordered) / 2)
    low, high = 1.0, float(len(ordered))
    first = 0.55 + 0.3 * len(joined)
    depth = first + 0.62 * (half - 1)
    several = f"{len(auc.sets)} set{'s' * (len(auc.sets) > 1)}"
    figure = new_figure(f"Mean rank by AUC over {several}: 1 is the best", (10.4, 2.2 + 0.52 * depth))
    axes = figure.add_subplot()
    reach = 0.16 * (high - low)
    axes.set(xlim=(low - reach - 2.1, high + reach + 2.1), ylim=(-depth - 0.4, 1.75))
    axes.axis("off")
    _axis(axes, low, high)
    _ruler(axes, low, difference)
    for at, (begin, end) in enumerate(joined):
        y = -0.4 - 0.3 * at
        axes.plot([ranks[begin] - 0.06, ranks[end] + 0.06], [y, y], color=_GROUP, linewidth=4, zorder=2)
    for at, (method, rank) in enumerate(ordered):
        left = at < half
        # Labels go down towards the middle, so that no line crosses another.
        y = -first - 0.62 * (at if left else len(ordered) - 1 - at)
        _label(axes, method, rank, low - reach if left else high + reach, y, left)
    return save(figure, path)


def _axis(axes: Axes, low: float, high: float) -> None:
    axes.plot([low, high], [0, 0], color="black", linewidth=1.2)
    for tick in range(int(low), int(high) + 1):
        axes.plot([tick, tick], [0, 0.12], color="black", linewidth=1.0)
        axes.text(tick, 0.2, str(tick), ha="center", va="bottom", fontsize=9)


def _ruler(axes: Axes, low: float, difference: float) -> None:
    """Draw the critical difference above the axis, to its scale."""
    y = 1.1
    axes.plot([low, low + difference], [y, y], color=_GROUP, linewidth=4, solid_capstyle="butt")
    for end in (low, low + difference):
        axes.plot([end, end], [y - 0.16, y + 0.16], color=_GROUP, linewidth=1.4)
    text = (
        f"critical difference {difference:.2f} (Nemenyi, 5 %): detectors that a bar joins are not told apart"
    )
    axes.text(low, y + 0.24, text, ha="left", va="bottom", fontsize=8.5, color="#555555")


def _label(axes: Axes, method: str, rank: float, x: float, y: float, left: bool) -> None:
    ours = method == RANKAD
    colour, weight = (_OURS, "bold") if ours else (_THEIRS, "normal")
    width = 2.0 if ours else 0.9
    axes.plot([rank, rank, x], [0, y, y], color=colour, linewidth=width, zorder=3 if ours else 1)
    axes.plot(rank, 0, "o", color=colour, markersize=6 if ours else 4, zorder=4)
    text = f"{method}  {rank:.2f}" if left else f"{rank:.2f}  {method}"
    axes.text(
        x - 0.12 if left else x + 0.12,
        y,
        text,
        ha="right" if left else "left",
        va="center",
        fontsize=10,
        color=colour,
        fontweight=weight,
    )


# ---------------------------------------------------------------------------------------------- false alarms


def _alarms(path: Path, cells: Sequence[AlarmCell]) -> Path:
    """Draw a line a set: each split's rate as a dot on its own band."""
    names = list(dict.fromkeys(cell.set for cell in cells))
    seeds = sorted({cell.seed for cell in cells})
    title = "False alarms of RankAD: asked for, obtained, and what chance allows"
    figure = new_figure(title, (11.5, 2.0 + max(0.36, 0.03 * len(seeds)) * len(names)))
    step = 0.72 / len(seeds)
    for at, alpha in enumerate(ALPHAS, start=1):
        axes = figure.add_subplot(1, len(ALPHAS), at)
        for cell in (cell for cell in cells if cell.alpha == alpha):
            y = names.index(cell.set) + step * (seeds.index(cell.seed) - (len(seeds) - 1) / 2)
            low, high = cell.band
            axes.barh(y, 100 * (high - low), 0.8 * step, 100 * low, color=tint(_INSIDE), zorder=1)
            colour, marker = (_OURS, "D") if cell.outside else (_INSIDE, "o")
            axes.plot(100 * cell.rate, y, marker, color=colour, markersize=5 if cell.outside else 3, zorder=3)
        axes.axvline(100 * alpha, color="black", linewidth=1.0, zorder=2)
        axes.set(title=f"{percent(alpha)} asked for", xlabel="false alarms obtained", xlim=(0, None))
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
        axes.set_yticks(range(len(names)), names if at == 1 else [])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        for between in range(1, len(names)):
            axes.axhline(between - 0.5, color="#e4e4e4", linewidth=0.8, zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
    shown = [
        Line2D([], [], color="black", linewidth=1.0, label="asked for"),
        Patch(color=tint(_INSIDE), label="99 % band of an exact calibration"),
        Line2D([], [], color=_INSIDE, marker="o", linestyle="", markersize=5, label="obtained, one split"),
        Line2D(
            [], [], color=_OURS, marker="D", linestyle="", markersize=5, label="obtained, outside its band"
        ),
    ]
    figure.legend(handles=shown, loc="outside lower center", ncols=4, frameon=False)
    return save(figure, path)
