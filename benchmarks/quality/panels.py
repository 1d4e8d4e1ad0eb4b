"""The research study's picture: a panel a knob, mean AUC beside the default's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from benchmarks.quality.verdicts import Verdict
from rankad.experiments.pictures import COLOURS, new_figure, save

__all__ = ["draw"]

_COLUMNS = 3
_DEFAULT, _OTHER = COLOURS[3], COLOURS[0]
# Linear up to this to either side, beyond it logarithmic: some values change next to nothing, others ruin.
_LINEAR = 0.005
_TICKS = (-0.5, -0.05, -0.005, 0.0, 0.005, 0.05, 0.5)


def draw(path: Path, found: Mapping[str, Sequence[Verdict]], n_sets: int) -> Path:
    """Draw the verdicts of every knob, and return the file."""
    n_rows = math.ceil(len(found) / _COLUMNS)
    several = f"{n_sets} set{'s' * (n_sets > 1)}"
    title = f"Mean AUC over {several}, one ingredient of RankAD changed at a time: difference to the default"
    figure = new_figure(title, (12.0, 1.0 + 2.35 * n_rows))
    limits = _limits([one for values in found.values() for one in values])
    for at, (name, values) in enumerate(found.items(), start=1):
        _panel(figure.add_subplot(n_rows, _COLUMNS, at), name, values, limits)
    shown = [
        Line2D([], [], color=_DEFAULT, marker="D", linestyle="", markersize=6, label="default"),
        Line2D([], [], color=_OTHER, marker="o", markersize=6, label="difference ± one standard error"),
    ]
    scale = f"one scale for all, linear from -{_LINEAR:g} to {_LINEAR:g}, logarithmic beyond"
    shown.append(Line2D([], [], linestyle="", label=scale))
    figure.legend(handles=shown, loc="outside lower center", ncols=3, frameon=False)
    return save(figure, path)


def _panel(axes: Axes, name: str, values: Sequence[Verdict], limits: tuple[float, float]) -> None:
    """Draw one line a value, in the order of the table."""
    axes.axvline(0, color="black", linewidth=1.0, zorder=1)
    for y, one in enumerate(values):
        if one.is_default:
            axes.plot(0, y, "D", color=_DEFAULT, markersize=6, zorder=3)
        else:
            axes.errorbar(
                one.difference, y, xerr=_error(one), fmt="o", color=_OTHER, markersize=5, capsize=2.5
            )
    axes.set_title(name, fontsize=10.5, fontweight="bold")
    axes.set_xscale("symlog", linthresh=_LINEAR, linscale=1.3)
    axes.set_xlim(limits)
    axes.set_xticks([tick for tick in _TICKS if limits[0] <= tick <= limits[1]])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_yticks(range(len(values)), [one.label for one in values], fontsize=9)
    for tick, one in zip(axes.get_yticklabels(), values, strict=True):
        tick.set_fontweight("bold" if one.is_default else "normal")
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _limits(values: Sequence[Verdict]) -> tuple[float, float]:
    """Return how far all panels go to either side."""
    low = min(one.difference - _error(one) for one in values)
    high = max(one.difference + _error(one) for one in values)
    return 1.2 * min(low, _TICKS[1]), 1.2 * max(high, _LINEAR)


def _error(one: Verdict) -> float:
    return 0.0 if math.isnan(one.error) else one.error
