"""Figure 1: level curves of rankAD on the toy example, with two levels and with three."""

from __future__ import annotations

from rankad.experiments import level_sets
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.results import write_results
from rankad.experiments.synthetic import TOY, grid

NAME = "figure-1"
N_TRAIN = 1_000
# Cells of the grid in each direction, on which volumes are measured.
N_GRID = 400
# The first is what m = 2 was trained for.
_DRAWN = (0.03, 0.10, 0.25, 0.50, 0.75)
_TITLES = {
    "rankAD, m = 2, cut at 3 %": "(a) m = 2, cut at 3 %, σ = 1.5",
    "rankAD, m = 3": "(b) m = 3, uniform, σ = 1.5",
    level_sets.DEFAULT: "default rankAD (not in the paper)",
}
# What takes longest and is not drawn is left out of a quick run.
_NOT_QUICK = (level_sets.THREE_LEVELS, level_sets.PUBLISHED)


def cells(settings: Settings) -> list[Cell]:
    """List the cells; all of one run before the next. The first run is drawn."""
    listed = []
    for number, seed in enumerate(settings.run_seeds(settings.n_runs)):
        for method in level_sets.METHODS:
            if settings.quick and method in _NOT_QUICK:
                continue
            drawn = _DRAWN if number == 0 and method in _TITLES else ()
            job = level_sets.Job("toy", method, N_TRAIN, seed, N_GRID, drawn)
            listed.append(level_sets.cell(NAME, number, job))
    return listed


def run(settings: Settings) -> None:
    """Draw the figure, measure what it shows, and write both."""
    compared = level_sets.compare(NAME, cells(settings), settings, _TITLES)
    title = f"Figure 1: level curves of g over the true level sets, {N_TRAIN:,} rows of the toy example"
    path = settings.out / f"{NAME}.png"
    level_sets.picture(path, title, compared.panels, (0.6, 7.4, -4.2, 4.2), 3, (12.5, 6.9))
    table = level_sets.differences_table(NAME, level_sets.HEADING, compared.summary, _notes(settings))
    raw = {"paper": "pictures only, no numbers", **compared.raw}
    write_results(settings.out, NAME, table, raw, [path])


def _notes(settings: Settings) -> list[str]:
    box = grid(TOY, 2)
    half = (box.x[1] - box.x[0]) / 2, (box.y[1] - box.y[0]) / 2
    notes = [
        f"Relative to the volume of the true set; mean ± standard error of {settings.n_runs} runs (seed "
        f"{settings.seed}). The paper shows a picture, no numbers.",
        "m = 2 and m = 3 as in the paper: raw features, sigma = 1.5, no far field, in-sample ranks, all rows "
        "as support; C, which it does not give, is 10 over the number of rows.",
        "aK-LPE: mean distance to 20 neighbours, raw features.",
        f"Volumes are measured inside the box [{box.x[0] - half[0]:.3g}, {box.x[1] + half[0]:.3g}] x "
        f"[{box.y[0] - half[1]:.3g}, {box.y[1] + half[1]:.3g}]: a number well above 1 is a learned set that "
        "holds the far field, cut off where the box ends.",
    ]
    if settings.quick:
        left_out = " and ".join(_NOT_QUICK)
        return [f"**Quick look (--quick)**: one run instead of five, without {left_out}.", *notes]
    return [*notes, f"Published: the paper's selection among {level_sets.REDUCED_GRID}."]
