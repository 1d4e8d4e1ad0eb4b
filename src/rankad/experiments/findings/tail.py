"""Finding 8: three uniform levels order nothing in the tail, where alarms are."""

from __future__ import annotations

from collections.abc import Sequence

from rankad.experiments import level_sets
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.findings import finding
from rankad.experiments.findings.finding import LITERAL, OURS, THIRD, Record, Report
from rankad.experiments.level_sets import ALPHAS, DEFAULT, KLPE_20, THREE_LEVELS, Job
from rankad.experiments.pictures import new_figure, percent

NAME = "finding-08"

METHODS = {THREE_LEVELS: (LITERAL, "-"), DEFAULT: (OURS, "-"), KLPE_20: (THIRD, "--")}
_TITLES = {THREE_LEVELS: "Three uniform levels", DEFAULT: "Cuts in the tail, the default"}
_VIEW = (-15.5, 9.5, -9.0, 9.0)


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each method and run; the first run is drawn."""
    n, n_grid, runs = (150, 60, 1) if settings.quick else (2_000, 200, 2)
    listed = []
    for number, seed in enumerate(settings.run_seeds(runs)):
        for method in METHODS:
            drawn = ALPHAS if number == 0 and method in _TITLES else ()
            listed.append(
                level_sets.cell(finding.NAME, number, Job("printed", method, n, seed, n_grid, drawn))
            )
    return listed


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw both rankers' level sets, and the differences to the true ones."""
    summary = level_sets.summarize(records)
    title = "Finding 8: three uniform levels leave the tail, where alarms are, unordered"
    figure = new_figure(title, (13.5, 4.9))
    for i, record in enumerate(record for record in records if record["drawn"]):
        axes = figure.add_subplot(1, 3, i + 1)
        level_sets.draw_panel(axes, _TITLES[record["method"]], record, _VIEW)
    axes = figure.add_subplot(1, 3, 3)
    axes.spines[["top", "right"]].set_visible(False)
    at = range(len(ALPHAS))
    for entry in summary:
        method = entry["method"]
        colour, style = METHODS[method]
        axes.plot(at, entry["difference"], style, marker="o", color=colour, linewidth=2, label=method)
    axes.set_xticks(at, [percent(alpha) for alpha in ALPHAS])
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("α")
    axes.set_title("Symmetric difference to the true set,\nrelative to its volume", fontsize=10)
    axes.legend(frameon=False, fontsize=9.5)
    runs = len(finding.unique(records, "run"))
    notes = [
        *finding.quick_note(settings, f"one run, {records[0]['n']} rows, a coarser grid"),
        f"Relative to the volume of the true set; mean of {runs} runs, seed {settings.seed}; the mixture as "
        "printed. Three uniform levels: the default but for its cuts.",
        "In the picture: bands are the true sets, curves the learned ones of the same colour, from 5 % "
        "(blue) inwards.",
        "Figure 2 has the same with 600 and 5,000 rows.",
    ]
    table = level_sets.differences_table(NAME, "8. Three uniform levels", summary, notes)
    return Report(table, figure)
