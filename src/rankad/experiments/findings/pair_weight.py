"""Finding 10: C multiplies a sum over pairs, so that the same C means another thing at another n."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rankad import KLPE, RankAD
from rankad._base.arrays import Floats, Ints
from rankad.experiments.cells import Cell
from rankad.experiments.findings.report import (
    THIRD,
    Record,
    Report,
    find,
    finding_cell,
    mixture_split,
    quick_note,
)
from rankad.experiments.measures import one_thread
from rankad.experiments.pictures import COLOURS, new_figure
from rankad.experiments.results import Table
from rankad.experiments.settings import Settings
from rankad.experiments.synthetic import PRINTED
from rankad.stages.levels import count_pairs, disagreement, quantize, resolve_cuts
from rankad.stages.selection import PAPER_C

__all__ = ["NAME", "cells", "report"]

NAME = "finding-10"
_VERSION = 1

SIZES = (250, 500, 1_000, 2_000)
# The C that is carried from the fewest rows to more.
CARRIED = 1.0


class Fresh(NamedTuple):
    """Rows to train on, and fresh ones with their levels as all training rows tell them."""

    train: Floats
    rows: Floats
    levels: Ints


@lru_cache(maxsize=1)
def draw(seed: int, n: int, n_test: int) -> Fresh:
    """Draw the rows that all cells share."""
    split = mixture_split(PRINTED, seed, n, n_test)
    rows = split.test[split.nominal]
    ranks = KLPE(n_neighbors=20, scaling=None, n_jobs=1).fit(split.train).p_values(rows)
    return Fresh(split.train, rows, quantize(ranks, resolve_cuts(3)))


def measure(n: int, C: float, seed: int, n_test: int) -> dict[str, Any]:
    """Train the published ranker with one C on n rows; all are tested on the same fresh rows."""
    with one_thread():
        drawn = draw(seed, max(SIZES), n_test)
        ranker = RankAD.as_published(bandwidth=3.0, C=C, landmarks=200, random_state=seed, n_jobs=1)
        ranker.fit(drawn.train[:n])
        loss = disagreement(ranker.score_samples(drawn.rows), drawn.levels)
    return {"norm": ranker.norm_, "pairs": count_pairs(ranker.levels_), "disagreement": loss}


def rescaled(n: int) -> float:
    """Return the carried C for n rows, C times the number of pairs (about n^2 / 3) kept."""
    return CARRIED * (SIZES[0] / n) ** 2


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each number of rows and C."""
    seed = settings.run_seed(0)
    sizes, n_test = ((SIZES[0], SIZES[1]), 500) if settings.quick else (SIZES, 2_000)
    values = PAPER_C[::4] if settings.quick else PAPER_C
    return [
        finding_cell(NAME, _VERSION, measure, {"n": n, "C": C, "seed": seed, "n_test": n_test})
        for n in sizes
        for C in sorted({*values, CARRIED, rescaled(n)})
    ]


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the length of g against C, and against C times the number of pairs."""
    sizes = list(dict.fromkeys(record["n"] for record in records))
    figure = new_figure(
        "Finding 10: with more rows, the same C regularizes less; the same C times pairs does not",
        (12.0, 4.9),
    )
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    rows = []
    for colour, n in zip(COLOURS, sizes, strict=False):
        here = find(records, n=n)
        norms = [record["norm"] for record in here]
        label = f"n = {n:,}"
        left.plot([record["C"] for record in here], norms, color=colour, linewidth=2, label=label)
        products = [record["C"] * record["pairs"] for record in here]
        right.plot(products, norms, color=colour, linewidth=2)
        kept, scaled = find(here, C=CARRIED)[0], find(here, C=rescaled(n))[0]
        left.plot(CARRIED, kept["norm"], "o", color=colour, markersize=8)
        right.plot(scaled["C"] * scaled["pairs"], scaled["norm"], "o", color=colour, markersize=8)
        rows.append(
            [
                f"{n:,}",
                f"{kept['C']:g}",
                f"{kept['norm']:.1f}",
                f"{kept['disagreement']:.4f}",
                f"{scaled['C']:.3g}",
                f"{scaled['norm']:.1f}",
                f"{scaled['disagreement']:.4f}",
                f"{min(record['disagreement'] for record in here):.4f}",
            ]
        )
    ends = [find(records, n=n, C=CARRIED)[0]["norm"] for n in (sizes[0], sizes[-1])]
    left.set_title(f"C = {CARRIED:g} kept: |g| from {ends[0]:.0f} to {ends[1]:.0f}", fontsize=10.5)
    ends = [find(records, n=n, C=rescaled(n))[0]["norm"] for n in (sizes[0], sizes[-1])]
    right.set_title(f"C times pairs kept: |g| from {ends[0]:.0f} to {ends[1]:.0f}", fontsize=10.5)
    left.set_xlabel("C")
    left.set_ylabel("|g|, the length of the solution")
    right.set_xlabel("C times the number of pairs")
    left.axvline(CARRIED, color=THIRD, linestyle=":", linewidth=1.2, zorder=0)
    right.axvline(CARRIED * find(records, n=sizes[0])[0]["pairs"], color=THIRD, linestyle=":", zorder=0)
    left.legend(frameon=False, fontsize=10)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(color="0.92")
        axes.spines[["top", "right"]].set_visible(False)
    first = records[0]
    left_out = " and ".join(f"{n:,}" for n in SIZES if n not in sizes)
    notes = [
        *quick_note(settings, f"fewer values of C and test rows, without {left_out} rows"),
        f"One run, seed {settings.seed}: the published rankAD with sigma = 3 and 200 landmarks on n rows of "
        f"the mixture as printed. C = {CARRIED:g} at {SIZES[0]} rows is carried to more, itself or times the "
        f"number of pairs; disagreement with the aK-LPE levels of {first['n_test']:,} fresh rows.",
    ]
    columns = [
        "rows",
        "C kept",
        "its |g|",
        "its disagreement",
        "C times pairs kept: C",
        "its |g|",
        "its disagreement",
        "least disagreement of all C",
    ]
    return Report(Table(NAME, "10. C and the number of pairs", columns, rows, notes), figure)
