"""What the findings share: how their cells are listed, their rows drawn and their pictures made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rankad.experiments.cells import Cell, Settings
from rankad.experiments.datasets import SPECS, Split, draw, load
from rankad.experiments.pictures import new_figure
from rankad.experiments.results import Table, mean

NAME = "findings"
Record = Mapping[str, Any]
# Increase it when the work of a cell changes.
_VERSION = 1

# Where C is not selected, it is this over the number of rows.
PLAIN_C = 10.0

# The same in every picture: the paper's text taken literally, what rankad does, and the reference.
LITERAL, OURS, THIRD = "#d55e00", "#0072b2", "#555555"


class Report(NamedTuple):
    """One finding: the table of its numbers, and its picture."""

    table: Table
    figure: Figure


def finding_cells(finding: str, work: Callable[..., dict[str, Any]], **given: Any) -> list[Cell]:
    """Return a cell for every combination of values, which `work` takes as keywords.

    What is given is all that the result depends on: lists of values to combine, and single values.
    """
    lists = [values if isinstance(values, list) else [values] for values in given.values()]
    combinations = [dict(zip(given, values, strict=True)) for values in product(*lists)]
    shared = {"experiment": NAME, "finding": finding, "version": _VERSION}
    return [Cell({**shared, **each}, partial(work, **each)) for each in combinations]


# ------------------------------------------------------------------------------------------------ the records


def find(records: Sequence[Record], **given: Any) -> list[Record]:
    """Return the records with these items; raise if there are none."""
    matching = [record for record in records if all(record[name] == value for name, value in given.items())]
    if not matching:
        raise ValueError(f"No cell has {given!r}; list one for it.")
    return matching


def unique(records: Sequence[Record], name: str) -> list[Any]:
    """Return the different values of an item, in the order of the records."""
    return list(dict.fromkeys(record[name] for record in records))


def averages(records: Sequence[Record], what: str, names: Sequence[str], **given: Any) -> list[float]:
    """Return the mean of an item over the runs, for each data set."""
    return [mean([one[what] for one in find(records, dataset=name, **given)]) for name in names]


def titles(names: Sequence[str]) -> list[str]:
    """Return what people call data sets."""
    return [SPECS[name].title for name in names]


def without(names: Collection[str], every: Sequence[str] = tuple(SPECS)) -> str:
    """Name the data sets that are left out."""
    return ", ".join(titles([name for name in every if name not in names]))


def quick_note(settings: Settings, left_out: str) -> list[str]:
    """Return the note that says what a quick run leaves out; empty if the run is not quick."""
    return [f"**Quick look (--quick)**: {left_out}."] if settings.quick else []


# --------------------------------------------------------------------------------------------------- the rows


def real_split(name: str, data: Path | None, seed: int, n_train: int, n_test: int) -> Split:
    """Draw nominal rows to train on, and at most `n_test` of each kind to test on."""
    size = {"n_train": n_train, "max_nominal": n_test, "max_anomalous": n_test}
    return draw(load(name, data), seed, size)


# ----------------------------------------------------------------------------------------------- the pictures


def new_panels(
    title: str, size: tuple[float, float], rows: int = 1, columns: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row."""
    figure = new_figure(title, size)
    panels: list[Axes] = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def caption(axes: Axes, title: str = "", **properties: Any) -> None:
    """Set the title of a panel, and other properties of the axes such as ``xlabel``."""
    axes.set_title(title, fontsize=10.5)
    axes.set(**properties)


def note(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[int, int], colour: str, **style: Any
) -> None:
    """Write beside a point, some pixels away."""
    axes.annotate(text, at, offset, textcoords="offset points", color=colour, **{"fontsize": 9.5, **style})


class Series(NamedTuple):
    """One kind of dot: its name, its values from the first row down, its colour and its marker."""

    label: str
    values: Sequence[float]
    colour: str
    marker: str = "o"


def draw_dots(axes: Axes, rows: Sequence[str], series: Sequence[Series], *, names: bool = True) -> None:
    """Draw a row for each name, from the top down, with a dot for each series and a line that joins them."""
    at = np.arange(len(rows))
    values = np.array([one.values for one in series])
    axes.hlines(at, values.min(axis=0), values.max(axis=0), color="0.8", linewidth=2.5, zorder=1)
    for one in series:
        # A diamond is hollow, so that it shows what lies below.
        face = "none" if one.marker == "D" else one.colour
        dots = axes.plot(one.values, at, one.marker, color=one.colour, label=one.label, zorder=2)
        dots[0].set(markersize=8, markeredgewidth=1.6, markerfacecolor=face)
    axes.set_yticks(at, rows if names else [""] * len(rows))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
