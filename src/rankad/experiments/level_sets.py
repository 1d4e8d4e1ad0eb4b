"""Level sets of a detector's p-values beside the true minimum volume sets of a mixture.

What figures 1 and 2 share: how far the learned sets lie from the true ones, as a number, and how both are
drawn.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rankad import KLPE, RankAD
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.measures import one_thread
from rankad.experiments.pictures import COLOURS, new_figure, percent, save, tint
from rankad.experiments.results import Table, mean, standard_error
from rankad.experiments.synthetic import PRINTED, TOY, Mixture, grid, symmetric_difference

# Increase it when the work of a cell changes.
_VERSION = 2

ALPHAS = (0.05, 0.10, 0.25, 0.50, 0.75)
HEADING = "Volume of the symmetric difference to the true minimum volume set"
# The grid on which volumes are measured is thinned out for drawing.
_STRIDE = 2

_MIXTURES = {"toy": TOY, "printed": PRINTED}

# A part of the paper's grid of 13 by 21, for time. On the five runs of figure 2 with 600 rows and seed 0 the
# whole grid chose 2, 4 or 8 D_K, and C from 0.1 to 1000.
_REDUCED_BANDWIDTHS = ("2 D_K", "4 D_K", "8 D_K")
_REDUCED_C = (0.1, 1.0, 10.0, 100.0, 1000.0)
REDUCED_GRID = "sigma = 2, 4, 8 D_K and C = 0.1, 1, 10, 100, 1000, a part of its grid"


def _published(seed: int, n: int, **given: Any) -> RankAD:
    """Build rankAD as published; beyond 1,000 rows with 500 landmarks, for time."""
    landmarks = "all" if n <= 1_000 else 500
    return RankAD.as_published(**{"landmarks": landmarks, "random_state": seed, "n_jobs": 1, **given})


DEFAULT, PUBLISHED, KLPE_20 = "rankAD (default)", "rankAD (published)", "aK-LPE"
THREE_LEVELS = "rankAD (three uniform levels)"
# Each takes a seed and the number of rows.
METHODS: dict[str, Callable[[int, int], Any]] = {
    "rankAD, m = 2, cut at 3 %": lambda seed, n: _published(
        seed, n, n_levels=[0.03], bandwidth=1.5, C=10.0 / n
    ),
    "rankAD, m = 3": lambda seed, n: _published(seed, n, bandwidth=1.5, C=10.0 / n),
    DEFAULT: lambda seed, n: RankAD(random_state=seed, n_jobs=1),
    THREE_LEVELS: lambda seed, n: RankAD(n_levels=3, random_state=seed, n_jobs=1),
    PUBLISHED: lambda seed, n: _published(seed, n, bandwidth=_REDUCED_BANDWIDTHS, C=_REDUCED_C),
    KLPE_20: lambda seed, n: KLPE(n_neighbors=20, scaling=None, n_jobs=1),
}


class Job(NamedTuple):
    """All that the result of one cell depends on, as plain values.

    The seed is that of the rows and of the method: all methods are fitted on the same rows. Level curves are
    kept for the alphas in `drawn`.
    """

    mixture: str
    method: str
    n: int
    seed: int
    n_grid: int
    drawn: tuple[float, ...] = ()

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Job:
        """Return the job of a cell, from its key or its record."""
        return cls(**{name: record[name] for name in cls._fields})

    def rows(self) -> Floats:
        """Draw the training rows."""
        return _MIXTURES[self.mixture].sample(self.n, np.random.default_rng(self.seed))


# -------------------------------------------------------------------------------------------- the numbers


def level_differences(
    detector: Any, mixture: Mixture, n_grid: int, alphas: Sequence[float] = ALPHAS
) -> dict[str, list[float]]:
    """Compare the level sets of a fitted detector with the true minimum volume sets.

    The detector's set at alpha holds the rows whose p-value exceeds alpha; the true one, of mass 1 - alpha,
    those whose density is at least the mixture's level. Returns, for each alpha, the volume of the symmetric
    difference ("difference") and the learned volume ("volume"), both relative to the true volume.
    """
    lattice = grid(mixture, n_grid)
    p_values, density = detector.p_values(lattice.rows), mixture.density(lattice.rows)
    compared: dict[str, list[float]] = {"difference": [], "volume": []}
    for alpha in alphas:
        inside, learned = density >= mixture.level(alpha), p_values > alpha
        compared["difference"].append(symmetric_difference(inside, learned))
        compared["volume"].append(float(learned.sum() / inside.sum()))
    return compared


def measure(job: Job) -> dict[str, Any]:
    """Do the work of one cell: fit, compare with the truth, and keep the scores to draw, where asked for."""
    mixture = _MIXTURES[job.mixture]
    with one_thread():
        detector = METHODS[job.method](job.seed, job.n).fit(job.rows())
    result: dict[str, Any] = level_differences(detector, mixture, job.n_grid)
    for name in ("bandwidth", "C", "converged"):
        result[name] = getattr(detector, f"{name}_", None)
    if job.drawn:
        scores = detector.score_samples(grid(mixture, job.n_grid).rows).reshape(job.n_grid, job.n_grid)
        result["surface"] = _pack(scores[::_STRIDE, ::_STRIDE])
        result["offsets"] = [detector.calibration_.threshold(alpha) for alpha in job.drawn]
    return result


def cell(experiment: str, run: int, job: Job) -> Cell:
    """Return the cell of one job, the parameters of its method part of the key."""
    key = {"experiment": experiment, "version": _VERSION, "run": run, **job._asdict()}
    parameters = METHODS[job.method](job.seed, job.n).get_params()
    return Cell({**key, "parameters": parameters}, partial(measure, job))


def summarize(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Average over the runs, for each number of rows and method in the order of the records."""
    groups: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["n"], record["method"]), []).append(record)
    summary = []
    for (n, method), several in groups.items():
        differences = list(zip(*(record["difference"] for record in several), strict=True))
        volumes = list(zip(*(record["volume"] for record in several), strict=True))
        summary.append(
            {
                "n": n,
                "method": method,
                "alphas": ALPHAS,
                "runs": len(several),
                "difference": [mean(values) for values in differences],
                "standard_error": [standard_error(values) for values in differences],
                "volume": [mean(values) for values in volumes],
            }
        )
    return sorted(summary, key=lambda entry: entry["n"])


def differences_table(
    name: str, title: str, summary: Sequence[Mapping[str, Any]], notes: Sequence[str]
) -> Table:
    """Return the table of symmetric differences, one row for each number of rows and method."""
    rows = []
    for entry in summary:
        pairs = zip(entry["difference"], entry["standard_error"], strict=True)
        numbers = [f"{value:.3f}" + ("" if np.isnan(error) else f" ± {error:.3f}") for value, error in pairs]
        rows.append([f"{entry['n']:,}", entry["method"], *numbers])
    return Table(
        name, title, ["rows", "method", *(f"alpha {percent(alpha)}" for alpha in ALPHAS)], rows, notes
    )


class Comparison(NamedTuple):
    """What was measured: for the JSON file, averaged over the runs, and the records to draw, by title."""

    raw: dict[str, Any]
    summary: list[dict[str, Any]]
    panels: dict[str, dict[str, Any]]


def compare(
    name: str, todo: Sequence[Cell], settings: Settings, titles: Mapping[str, str] | None = None
) -> Comparison:
    """Run the cells of a figure and summarize; `titles` are of methods that are not titled by their names."""
    records = settings.run(todo, name)
    drawn = [record for record in records if record["drawn"]]
    panels = {(titles or {}).get(record["method"], record["method"]): record for record in drawn}
    # The JSON file leaves out what is only needed for drawing, and what the method's name says.
    left_out = ("surface", "parameters")
    kept = [{key: value for key, value in record.items() if key not in left_out} for record in records]
    summary = summarize(kept)
    raw = {"settings": settings.raw, "alphas": ALPHAS, "summary": summary, "cells": kept}
    return Comparison(raw, summary, panels)


def _pack(values: Floats) -> str:
    """Return an array as text; single precision is enough to draw."""
    return base64.b64encode(zlib.compress(values.astype("<f4").tobytes())).decode("ascii")


def _unpack(text: str) -> Floats:
    values = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f4").astype(np.float64)
    side = round(np.sqrt(values.size))
    return values.reshape(side, side)


# -------------------------------------------------------------------------------------------- the picture


def draw_panel(
    axes: Axes, title: str, record: Mapping[str, Any], view: tuple[float, float, float, float]
) -> None:
    """Draw a detector's level curves over the true level sets and the rows it was fitted on.

    The bands are the true sets. A curve has the colour of the band whose outer edge it should be.
    """
    job = Job.of(record)
    mixture, lattice = _MIXTURES[job.mixture], grid(_MIXTURES[job.mixture], job.n_grid)
    density = mixture.density(lattice.rows).reshape(job.n_grid, job.n_grid)
    levels = [mixture.level(alpha) for alpha in job.drawn]
    levels.append(float(density.max()) * 1.01)
    colours = [tint(colour) for colour in COLOURS]
    axes.contourf(lattice.x, lattice.y, density, levels=levels, colors=colours, zorder=1)
    rows = job.rows()
    axes.plot(rows[:, 0], rows[:, 1], ".", color="0.35", markersize=1.6, zorder=2)
    x, y, scores = lattice.x[::_STRIDE], lattice.y[::_STRIDE], _unpack(record["surface"])
    line: dict[str, Any] = {"linewidths": 1.6, "linestyles": "solid", "zorder": 3}
    for colour, offset in zip(COLOURS, record["offsets"], strict=True):
        if scores.min() < offset < scores.max():
            axes.contour(x, y, scores, levels=[offset], colors=[colour], **line)
    axes.set_title("\n".join([title, *_captions(record, scores)]), fontsize=10)
    axes.set(xlim=view[:2], ylim=view[2:], aspect="equal", xlabel="$x_1$", ylabel="$x_2$")


def picture(
    path: Path,
    title: str,
    panels: dict[str, dict[str, Any]],
    view: tuple[float, float, float, float],
    columns: int,
    size: tuple[float, float],
) -> Path:
    """Draw panels side by side under one title and above one legend; write a PNG, whole or not at all."""
    figure = new_figure(title, size)
    for i, (name, record) in enumerate(panels.items()):
        draw_panel(figure.add_subplot(-(-len(panels) // columns), columns, i + 1), name, record, view)
    drawn = next(iter(panels.values()))["drawn"]
    handles: list[Patch | Line2D] = []
    for colour, alpha in zip(COLOURS, drawn, strict=True):
        handles.append(Line2D([], [], color=colour, linewidth=1.6, label=f"learned, α = {percent(alpha)}"))
        handles.append(Patch(facecolor=tint(colour), label=f"true, α = {percent(alpha)}"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(drawn), frameon=False, fontsize=9.5)
    return save(figure, path)


def _captions(record: Mapping[str, Any], scores: Floats) -> list[str]:
    """Say in words what a picture cannot: the numbers, and which sets have no outer edge."""
    shown = zip(ALPHAS[:2], record["difference"], strict=False)
    differences = ", ".join(f"{value:.2f} at {percent(alpha)}" for alpha, value in shown)
    ends = zip(record["drawn"], record["offsets"], strict=True)
    endless = ", ".join(percent(alpha) for alpha, offset in ends if scores[0, 0] >= offset)
    far = f"inside at α = {endless}" if endless else "outside every set"
    return [f"symmetric difference {differences}", f"the far field is {far}"]
