"""What every finding hands over, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rankad.experiments.cells import Cell
from rankad.experiments.datasets import Split
from rankad.experiments.results import Table
from rankad.experiments.settings import Settings
from rankad.experiments.splits import draw, load
from rankad.experiments.synthetic import UNIFORM_BOX, Mixture

__all__ = [
    "LITERAL",
    "NAME",
    "OURS",
    "PLAIN_C",
    "THIRD",
    "Record",
    "Report",
    "Series",
    "draw_dots",
    "find",
    "finding_cell",
    "label_end",
    "mixture_split",
    "quick_note",
    "real_split",
]

NAME = "findings"
Record = Mapping[str, Any]

# Where nothing is to be selected, C is this over the number of rows.
PLAIN_C = 10.0

# The same in every picture: the paper's text taken literally, what rankad does, what both are held against.
LITERAL, OURS, THIRD = "#d55e00", "#0072b2", "#555555"


class Report(NamedTuple):
    """One finding: the table of its numbers, and its picture."""

    table: Table
    figure: Figure


def finding_cell(
    finding: str,
    version: int,
    work: Callable[..., dict[str, Any]],
    given: Mapping[str, Any],
    **hidden: Any,
) -> Cell:
    """Return one cell of a finding.

    Parameters
    ----------
    finding : str
        Its name, such as "finding-01".
    version : int
        To be counted up when the work changes.
    work : callable
        Takes the items of `given` and `hidden` as keywords.
    given : mapping
        All that the result depends on, as plain values: the key.
    **hidden
        What the result does not depend on, such as the folder of the data sets.
    """
    key = {"experiment": NAME, "finding": finding, "version": version, **given}
    return Cell(key, partial(work, **given, **hidden))


def find(records: Sequence[Record], **given: Any) -> list[Record]:
    """Return the records whose items are as given, and raise where there is none."""
    found = [one for one in records if all(one[name] == value for name, value in given.items())]
    if not found:
        raise ValueError(f"No cell has {given!r}; list one for it.")
    return found


def quick_note(settings: Settings, left_out: str) -> list[str]:
    """Return the note that a quick run owes the reader."""
    return [f"**Quick look (--quick)**: {left_out}."] if settings.quick else []


# --------------------------------------------------------------------------------------------------- the rows


def real_split(name: str, data: Path | None, seed: int, n_train: int, n_test: int) -> Split:
    """Draw nominal rows to train on, and at most `n_test` of each kind to test on."""
    size = {"n_train": n_train, "max_nominal": n_test, "max_anomalous": n_test}
    return draw(load(name, data), seed, size)


def mixture_split(mixture: Mixture, seed: int, n_train: int, n_test: int) -> Split:
    """Draw rows of a mixture to train on, and as many nominal as uniform ones to test on."""
    rng = np.random.default_rng(seed)
    train, nominal = mixture.sample(n_train, rng), mixture.sample(n_test, rng)
    anomalous = rng.uniform(*UNIFORM_BOX, size=nominal.shape)
    return Split(train, np.vstack([nominal, anomalous]), np.repeat([True, False], n_test))


# ----------------------------------------------------------------------------------------------- the pictures


class Series(NamedTuple):
    """One kind of dot: its name, its values from the first row down, its colour and its marker."""

    label: str
    values: Sequence[float]
    colour: str
    marker: str = "o"


def draw_dots(axes: Axes, rows: Sequence[str], series: Sequence[Series], *, names: bool = True) -> None:
    """Draw a row for each name, with a dot for each series and a line that joins them.

    Parameters
    ----------
    axes : Axes
    rows : sequence of str
        From the top down.
    series : sequence of Series
        Later ones lie above earlier ones.
    names : bool
        Whether the rows' names are written.
    """
    at = np.arange(len(rows))
    values = np.array([one.values for one in series])
    axes.hlines(at, values.min(axis=0), values.max(axis=0), color="0.8", linewidth=2.5, zorder=1)
    for one in series:
        # A diamond is hollow: it shows what lies below.
        face = "none" if one.marker == "D" else one.colour
        axes.plot(
            one.values,
            at,
            one.marker,
            color=one.colour,
            markerfacecolor=face,
            markeredgewidth=1.6,
            markersize=8,
            label=one.label,
            linestyle="none",
            zorder=2,
        )
    axes.set_yticks(at, rows if names else [""] * len(rows))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def label_end(axes: Axes, x: Sequence[float], y: Sequence[float], text: str, colour: str) -> None:
    """Write the name of a line beside its last point."""
    axes.annotate(
        text, (x[-1], y[-1]), (6, 0), textcoords="offset points", va="center", color=colour, fontsize=9.5
    )
