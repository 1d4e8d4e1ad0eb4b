"""Verdicts as a page and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from benchmarks.promises.cells import ALPHAS, BATCH, DETECTORS, FDR, FRESH_PER_ROW, N_FRESH
from benchmarks.promises.laws import LAWS
from benchmarks.promises.verdicts import Discoveries, Verdict
from rankad.experiments.cells import versions, write_atomically
from rankad.experiments.pictures import save

__all__ = ["draw", "summary", "write"]

_BARS = {
    "too many": "mean above alpha (and what was trimmed) by more than three standard errors and 5 %",
    "too few": "mean below 0.7 alpha, and below what an exact calibration obtains",
    "one fit": "a fit above three times alpha, at alpha >= 5 % and 100 rows or more, copies not counted",
    "bound": "the 5 % bound exceeded in more than 5 % of fits (exact binomial test at 1 %)",
}


def summary(judged: Sequence[Verdict], discoveries: Sequence[Discoveries]) -> str:
    """Return how many cells miss each bar."""
    lines = [f"{len(judged)} cells of a detector, a law, a number of rows and an alpha:"]
    for fault, meaning in _BARS.items():
        lines.append(f"- {sum(fault in one.faults for one in judged)}: {meaning}")
    n_own = sum(one.above_by_own_error for one in judged)
    lines.append(f"- {n_own}: mean above, by the fits' own standard error alone, of as few as two fits")
    n_found = sum(one.too_many for one in discoveries)
    lines.append(
        f"- {n_found} of {len(discoveries)} cells without an alpha: false discoveries in more than "
        f"{_percent(FDR)} % of batches of {BATCH} fresh rows, by more than three standard errors and 5 %"
    )
    return "\n".join(lines)


def write(out: Path, judged: Sequence[Verdict], discoveries: Sequence[Discoveries], seconds: float) -> None:
    """Write ``promises.md`` and a picture for each detector."""
    fits = sum(one.fits for one in judged if one.alpha == ALPHAS[0])
    parts = [
        "# Promises",
        f"False alarms asked for and obtained on {len(LAWS)} laws of nominal rows, many of them made up to "
        f"break the promise. Each cell is the mean over independent fits, each on its own sample and judged "
        f"by {N_FRESH:,} fresh rows, or {FRESH_PER_ROW} times as many as were fitted on where "
        f"that is more; ± is one standard error of that mean, or what an exact calibration's "
        f"would be where that is more. `exact` is what an exact calibration of the same scorers obtains, by "
        f"as many new rows: where rows are discrete it can be far below what is asked for, since ties "
        f"are never broken to raise an alarm. `most` is the largest rate of a single fit, `above` how many "
        f"fits exceed their 5 % bound, of those that claim one; `split` counts the fits that were calibrated "
        f"by a split. {fits:,} fits in all.",
        "## The bars",
        summary(judged, discoveries),
        *_missed(judged),
        *_discovered(discoveries),
    ]
    for detector in DETECTORS:
        own = [one for one in judged if one.detector == detector]
        if not own:
            continue
        name = "promises-" + "".join(c if c.isalnum() else "-" for c in detector.lower()) + ".png"
        draw(out / name, own)
        parts += [f"## {detector}", f"![{detector}]({name})", _table(own)]
    used = ", ".join(f"{library} {number}" for library, number in versions().items())
    parts.append(f"Made by `make promises` in {seconds / 60:.0f} minutes with {used}.")
    write_atomically(out / "promises.md", "\n\n".join(parts) + "\n")


def _missed(judged: Sequence[Verdict]) -> list[str]:
    missed = [one for one in judged if one.faults]
    if not missed:
        return []
    rows = [
        f"| {one.detector} | {one.law} | {one.n:,} | {_percent(one.alpha)} | {', '.join(one.faults)} | "
        f"{_percent(one.mean)} ± {_percent(one.error)} | {_percent(one.exact)} | {_percent(one.most)} | "
        f"{one.n_exceeded} of {one.n_claims} | {one.fits} |"
        for one in missed
    ]
    return [
        "\n".join(
            [
                "| detector | law | rows | asked | misses | obtained | exact | most | above | fits |",
                "|---|---|---|---|---|---|---|---|---|---|",
                *rows,
            ]
        )
    ]


def _discovered(discoveries: Sequence[Discoveries]) -> list[str]:
    found = [one for one in discoveries if one.too_many]
    if not found:
        return []
    head = ["| detector | law | rows | batches with a false discovery |", "|---|---|---|---|"]
    return [
        "\n".join(
            head
            + [
                f"| {one.detector} | {one.law} | {one.n:,} | {_percent(one.mean)} ± {_percent(one.error)} % |"
                for one in found
            ]
        )
    ]


def _table(own: Sequence[Verdict]) -> str:
    head = ["law", "rows", "fits", "split"]
    for alpha in ALPHAS:
        head += [f"{_percent(alpha)} %", "exact", "most", "above"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for law in LAWS:
        for n in sorted({one.n for one in own if one.law == law.name}):
            here = {one.alpha: one for one in own if one.law == law.name and one.n == n}
            some = next(iter(here.values()))
            row = [law.name, f"{n:,}", str(some.fits), str(some.n_split)]
            for alpha in ALPHAS:
                one = here.get(alpha)
                row += ["", "", "", ""] if one is None else _cells(one)
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def _cells(one: Verdict) -> list[str]:
    shown = f"{_percent(one.mean)} ± {_percent(one.error)}"
    if one.faults:
        shown = f"**{shown}**"
    claimed = f"{one.n_exceeded} of {one.n_claims}" if one.n_claims else "no bound"
    return [shown, _percent(one.exact), _percent(one.most), claimed]


def _percent(value: float) -> str:
    return f"{100 * value:.3g}"


def draw(path: Path, own: Sequence[Verdict]) -> None:
    """Draw what was obtained over what was asked for, one panel an alpha."""
    sizes = sorted({one.n for one in own})
    shades = colormaps["viridis"](np.linspace(0, 0.85, len(sizes)))
    figure = Figure(figsize=(13, 0.19 * len(LAWS) + 1.6), layout="constrained")
    panels = figure.subplots(1, len(ALPHAS), sharey=True)
    places = {law.name: at for at, law in enumerate(LAWS)}
    for panel, alpha in zip(panels, ALPHAS, strict=True):
        panel.axvspan(0.7, 1.05, color="0.92")
        panel.axvline(1.0, color="0.5", linewidth=0.8)
        for n, shade in zip(sizes, shades, strict=True):
            here = [one for one in own if one.n == n and one.alpha == alpha]
            means = np.array([one.mean for one in here]) / alpha
            errors = np.array([one.error for one in here]) / alpha
            heights = np.array([places[one.law] for one in here]) + 0.6 * (sizes.index(n) / len(sizes) - 0.4)
            panel.errorbar(
                means,
                heights,
                xerr=errors,
                fmt="o",
                markersize=3.5,
                color=shade,
                label=f"{n:,} rows",
                elinewidth=0.8,
            )
        panel.set_xlim(-0.05, max(2.0, 1.05 * max(one.mean / one.alpha for one in own)))
        panel.set_xlabel(f"false alarms obtained / asked for, at {_percent(alpha)} %")
        panel.grid(axis="y", color="0.95")
    panels[0].set_yticks(range(len(LAWS)), [law.name for law in LAWS], fontsize=7)
    panels[0].invert_yaxis()
    panels[-1].legend(loc="lower right", fontsize=7)
    save(figure, path)
