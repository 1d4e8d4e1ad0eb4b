"""Figure 1: level curves of rankAD on the toy example, with two levels and with three.

Also what `rankad.experiments.figure2` shares with it: how far a detector's level sets lie from the true ones,
as a number, and how they are drawn.
"""

from __future__ import annotations

import base64
import io
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from sklearn.exceptions import ConvergenceWarning

from rankad import KLPE, RankAD
from rankad._arrays import Floats
from rankad.experiments.cells import Cell, CellStore, run_cells, write_atomically
from rankad.experiments.results import Table, mean, standard_error, write_results
from rankad.experiments.settings import Settings
from rankad.experiments.synthetic import PRINTED, TOY, Mixture, grid, symmetric_difference

__all__ = [
    "ALPHAS",
    "METHODS",
    "REDUCED_GRID",
    "Job",
    "Panel",
    "cell",
    "differences_table",
    "draw_panel",
    "level_differences",
    "measure",
    "percent",
    "picture",
    "run",
    "summarize",
    "without_surfaces",
]

NAME = "figure-1"
# To be counted up when the work of a cell changes; figure 2's cells share it.
_VERSION = 1

N_TRAIN = 1_000
# Cells of the grid in each direction, on which volumes are measured.
N_GRID = 400
# Of these, every so many-th is kept for drawing.
_STRIDE = 2

ALPHAS = (0.05, 0.10, 0.25, 0.50, 0.75)
# The first is what m = 2 was trained for.
_DRAWN = (0.03, 0.10, 0.25, 0.50, 0.75)

# One colour an alpha, from the outermost curve inwards; apart from one another for the colour-blind too.
_COLOURS = ("#0072b2", "#009e73", "#e69f00", "#d55e00", "#7b2d8b")
_DPI = 130

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


# Each takes a seed and the number of rows.
METHODS: dict[str, Callable[[int, int], Any]] = {
    "rankAD, m = 2, cut at 3 %": lambda seed, n: _published(
        seed, n, n_levels=[0.03], bandwidth=1.5, C="auto"
    ),
    "rankAD, m = 3": lambda seed, n: _published(seed, n, bandwidth=1.5, C="auto"),
    "rankAD (default)": lambda seed, n: RankAD(random_state=seed, n_jobs=1),
    "rankAD (three uniform levels)": lambda seed, n: RankAD(n_levels=3, random_state=seed, n_jobs=1),
    "rankAD (published)": lambda seed, n: _published(seed, n, bandwidth=_REDUCED_BANDWIDTHS, C=_REDUCED_C),
    "aK-LPE": lambda seed, n: KLPE(n_neighbors=20, scaling=None, n_jobs=1),
}
_TWO, _THREE, _DEFAULT = "rankAD, m = 2, cut at 3 %", "rankAD, m = 3", "rankAD (default)"
# What takes longest and is not drawn is left out of a quick run.
_NOT_QUICK = ("rankAD (three uniform levels)", "rankAD (published)")


class Job(NamedTuple):
    """All that the result of one cell depends on, as plain values.

    Attributes
    ----------
    mixture : str
        "toy" or "printed".
    method : str
        A key of `METHODS`.
    n : int
        Rows to train on.
    seed : int
        Of the rows and of the method: all methods are fitted on the same rows.
    n_grid : int
        Cells of the grid in each direction.
    drawn : tuple of float
        The alphas to keep level curves for; empty where nothing is to be drawn.
    """

    mixture: str
    method: str
    n: int
    seed: int
    n_grid: int
    drawn: tuple[float, ...] = ()

    def rows(self) -> Floats:
        """Draw the training rows."""
        return _MIXTURES[self.mixture].sample(self.n, np.random.default_rng(self.seed))


class Panel(NamedTuple):
    """One picture of several: the job it shows, the job's result, and what stands above it."""

    job: Job
    result: Mapping[str, Any]
    title: str


# -------------------------------------------------------------------------------------------- the numbers


def level_differences(
    detector: Any, mixture: Mixture, n_grid: int, alphas: Sequence[float] = ALPHAS
) -> dict[str, list[float]]:
    """Compare the level sets of a fitted detector with the true minimum volume sets.

    The detector's set at alpha holds the rows whose p-value exceeds alpha; the true one, of mass 1 - alpha,
    those whose density is at least the mixture's level.

    Parameters
    ----------
    detector : object with a method p_values
    mixture : Mixture
    n_grid : int
        Cells in each direction of the grid on which volumes are measured.
    alphas : sequence of float

    Returns
    -------
    dict
        For each alpha: "difference", the volume of the symmetric difference relative to the true volume, and
        "volume", the learned volume relative to the true one.
    """
    lattice = grid(mixture, n_grid)
    p_values, density = detector.p_values(lattice.rows), mixture.density(lattice.rows)
    found: dict[str, list[float]] = {"difference": [], "volume": []}
    for alpha in alphas:
        inside, learned = density >= mixture.level(alpha), p_values > alpha
        found["difference"].append(symmetric_difference(inside, learned))
        found["volume"].append(float(learned.sum() / inside.sum()))
    return found


def measure(job: Job) -> dict[str, Any]:
    """Do the work of one cell: fit, compare with the truth, and keep the scores to draw, where asked for."""
    mixture = _MIXTURES[job.mixture]
    with warnings.catch_warnings():
        # Whether it converged is part of the result.
        warnings.simplefilter("ignore", ConvergenceWarning)
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
    """Average over the runs, for each number of rows and method, in the order in which they come."""
    groups: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["n"], record["method"]), []).append(record)
    found = []
    for (n, method), several in groups.items():
        differences = list(zip(*(record["difference"] for record in several), strict=True))
        volumes = list(zip(*(record["volume"] for record in several), strict=True))
        found.append(
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
    return sorted(found, key=lambda entry: entry["n"])


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


def without_surfaces(todo: Sequence[Cell], done: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Join keys and results, for the JSON file: without what serves for drawing only."""
    left_out = ("surface", "parameters")
    joined = ({**each.key, **result} for each, result in zip(todo, done, strict=True))
    return [{name: value for name, value in one.items() if name not in left_out} for one in joined]


def _pack(values: Floats) -> str:
    """Return an array as text; single precision is enough to draw."""
    return base64.b64encode(zlib.compress(values.astype("<f4").tobytes())).decode("ascii")


def _unpack(text: str) -> Floats:
    values = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f4").astype(np.float64)
    side = round(np.sqrt(values.size))
    return values.reshape(side, side)


# -------------------------------------------------------------------------------------------- the picture


def draw_panel(axes: Axes, panel: Panel, view: tuple[float, float, float, float]) -> None:
    """Draw a detector's level curves over the true level sets and the rows it was fitted on.

    Bands: the true sets. A curve has the colour of the band whose outer edge it ought to be.
    """
    job = panel.job
    mixture, lattice = _MIXTURES[job.mixture], grid(_MIXTURES[job.mixture], job.n_grid)
    density = mixture.density(lattice.rows).reshape(job.n_grid, job.n_grid)
    levels = [mixture.level(alpha) for alpha in job.drawn]
    axes.contourf(
        lattice.x,
        lattice.y,
        density,
        levels=[*levels, float(density.max()) * 1.01],
        colors=[_tint(colour) for colour in _COLOURS],
        zorder=1,
    )
    rows = job.rows()
    axes.plot(rows[:, 0], rows[:, 1], ".", color="0.35", markersize=1.6, zorder=2)
    x, y, scores = lattice.x[::_STRIDE], lattice.y[::_STRIDE], _unpack(panel.result["surface"])
    for colour, offset in zip(_COLOURS, panel.result["offsets"], strict=True):
        if scores.min() < offset < scores.max():
            axes.contour(
                x, y, scores, levels=[offset], colors=[colour], linewidths=1.6, linestyles="solid", zorder=3
            )
    axes.set_title("\n".join([panel.title, *_captions(panel, scores)]), fontsize=10)
    axes.set_xlim(view[0], view[1])
    axes.set_ylim(view[2], view[3])
    axes.set_aspect("equal")
    axes.set_xlabel("$x_1$")
    axes.set_ylabel("$x_2$")


def picture(
    path: Path,
    title: str,
    panels: Sequence[Panel],
    view: tuple[float, float, float, float],
    columns: int,
    size: tuple[float, float],
) -> Path:
    """Draw panels side by side under one title and above one legend; write a PNG, whole or not at all."""
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.12))
    FigureCanvasAgg(figure)
    lines = -(-len(panels) // columns)
    for i, panel in enumerate(panels):
        draw_panel(figure.add_subplot(lines, columns, i + 1), panel, view)
    figure.suptitle(title, fontsize=12.5, fontweight="bold")
    drawn = panels[0].job.drawn
    handles: list[Patch | Line2D] = []
    for colour, alpha in zip(_COLOURS, drawn, strict=True):
        handles.append(Line2D([], [], color=colour, linewidth=1.6, label=f"learned, α = {percent(alpha)}"))
        handles.append(Patch(facecolor=_tint(colour), label=f"true, α = {percent(alpha)}"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(drawn), frameon=False, fontsize=9.5)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=_DPI)
    write_atomically(path, content.getvalue())
    return path


def _captions(panel: Panel, scores: Floats) -> list[str]:
    """Say in words what a picture cannot: the numbers, and which sets have no outer edge."""
    shown = zip(ALPHAS[:2], panel.result["difference"], strict=False)
    lines = [
        "symmetric difference " + ", ".join(f"{value:.2f} at {percent(alpha)}" for alpha, value in shown)
    ]
    corner = float(scores[0, 0])
    endless = [
        alpha for alpha, c in zip(panel.job.drawn, panel.result["offsets"], strict=True) if corner >= c
    ]
    lines.append(
        f"the far field is inside at α = {', '.join(map(percent, endless))}"
        if endless
        else "the far field is outside every set"
    )
    return lines


def percent(alpha: float) -> str:
    """Return a rate as people read it.

    Examples
    --------
    >>> percent(0.05)
    '5 %'
    """
    return f"{100 * alpha:.0f} %"


def _tint(colour: str) -> tuple[float, float, float]:
    red, green, blue = (0.66 + 0.34 * part for part in to_rgb(colour))
    return red, green, blue


# ------------------------------------------------------------------------------------------- the experiment


def cells(settings: Settings) -> list[Cell]:
    """List the cells; all of one run before the next. The first run is drawn."""
    found = []
    for number in range(settings.n_runs):
        for method in METHODS:
            if settings.quick and method in _NOT_QUICK:
                continue
            drawn = _DRAWN if number == 0 and method in (_TWO, _THREE, _DEFAULT) else ()
            job = Job("toy", method, N_TRAIN, settings.run_seed(number), N_GRID, drawn)
            found.append(cell(NAME, number, job))
    return found


def run(settings: Settings) -> None:
    """Draw the figure, measure what it shows, and write both."""
    todo = cells(settings)
    done = run_cells(todo, CellStore(settings.cells), settings.n_jobs, NAME)
    records = without_surfaces(todo, done)
    summary = summarize(records)
    titles = {
        _TWO: "(a) m = 2, cut at 3 %, σ = 1.5",
        _THREE: "(b) m = 3, uniform, σ = 1.5",
        _DEFAULT: "default rankAD (not in the paper)",
    }
    panels = [
        Panel(each.work.args[0], result, titles[each.key["method"]])  # type: ignore[attr-defined]
        for each, result in zip(todo, done, strict=True)
        if each.key["drawn"]
    ]
    path = settings.out / f"{NAME}.png"
    title = f"Figure 1: level curves of g over the true level sets, {N_TRAIN:,} rows of the toy example"
    picture(path, title, panels, (0.6, 7.4, -4.2, 4.2), 3, (12.5, 6.9))
    raw = {
        "settings": {"seed": settings.seed, "quick": settings.quick, "runs": settings.n_runs},
        "alphas": ALPHAS,
        "paper": "pictures only, no numbers",
        "summary": summary,
        "cells": records,
    }
    table = differences_table(
        NAME, "Volume of the symmetric difference to the true minimum volume set", summary, _notes(settings)
    )
    write_results(settings.out, NAME, table, raw, [path])


def _notes(settings: Settings) -> list[str]:
    box = grid(TOY, 2)
    half = (box.x[1] - box.x[0]) / 2, (box.y[1] - box.y[0]) / 2
    return [
        f"Relative to the volume of the true set; mean ± standard error of {settings.n_runs} runs (seed "
        f"{settings.seed}). The paper shows a picture, no numbers.",
        "m = 2 and m = 3 as in the paper: raw features, sigma = 1.5, no far field, in-sample ranks, all rows "
        "as support; C, which it does not give, is 10 over the number of rows.",
        f"Published: the paper's selection among {REDUCED_GRID}.",
        "aK-LPE: mean distance to 20 neighbours, raw features.",
        f"Volumes are measured inside the box [{box.x[0] - half[0]:.3g}, {box.x[1] + half[0]:.3g}] x "
        f"[{box.y[0] - half[1]:.3g}, {box.y[1] + half[1]:.3g}]: a number well above 1 is a learned set that "
        "holds the far field, cut off where the box ends.",
    ]
