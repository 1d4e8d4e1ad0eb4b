"""Finding 10: C multiplies a sum over pairs, so that the same C regularizes less with more rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rankad import KLPE, RankAD
from rankad._base.arrays import Floats, Ints
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.findings import finding
from rankad.experiments.findings.finding import THIRD, Record, Report
from rankad.experiments.measures import one_thread
from rankad.experiments.pictures import COLOURS
from rankad.experiments.results import Table
from rankad.experiments.synthetic import PRINTED, mixture_split
from rankad.stages.levels import count_pairs, disagreement, quantize, resolve_cuts
from rankad.stages.selection import PAPER_C

NAME = "finding-10"

SIZES = (250, 500, 1_000, 2_000)
# The C that is carried from the fewest rows to more.
CARRIED = 1.0


class Fresh(NamedTuple):
    """Rows to train on, and fresh ones with their levels by all training rows."""

    train: Floats
    rows: Floats
    levels: Ints


@lru_cache(maxsize=1)
def draw(seed: int, n: int, n_test: int) -> Fresh:
    """Draw the rows that all cells share."""
    split = mixture_split(PRINTED, seed, n, n_test, n_test)
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
    sizes, n_test, step = (SIZES[:2], 500, 4) if settings.quick else (SIZES, 2_000, 1)
    listed = []
    for n in sizes:
        values = sorted({*PAPER_C[::step], CARRIED, rescaled(n)})
        listed += finding.finding_cells(NAME, measure, n=n, C=values, seed=seed, n_test=n_test)
    return listed


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the length of g against C, and against C times the number of pairs."""
    sizes = finding.unique(records, "n")
    title = "Finding 10: with more rows, the same C regularizes less; the same C times pairs does not"
    figure, (left, right) = finding.new_panels(title, (12.0, 4.9), 1, 2)
    rows, both = [], []
    for colour, n in zip(COLOURS, sizes, strict=False):
        here = finding.find(records, n=n)
        norms, values = [record["norm"] for record in here], [record["C"] for record in here]
        left.plot(values, norms, color=colour, linewidth=2, label=f"n = {n:,}")
        right.plot([one["C"] * one["pairs"] for one in here], norms, color=colour, linewidth=2)
        kept, scaled = (finding.find(here, C=value)[0] for value in (CARRIED, rescaled(n)))
        both.append((kept["norm"], scaled["norm"]))
        left.plot(CARRIED, kept["norm"], "o", color=colour, markersize=8)
        right.plot(scaled["C"] * scaled["pairs"], scaled["norm"], "o", color=colour, markersize=8)
        rows.append(
            [
                f"{n:,}",
                *(f"{kept['C']:g}", f"{kept['norm']:.1f}", f"{kept['disagreement']:.4f}"),
                *(f"{scaled['C']:.3g}", f"{scaled['norm']:.1f}", f"{scaled['disagreement']:.4f}"),
                f"{min(record['disagreement'] for record in here):.4f}",
            ]
        )
    changes = [f"|g| from {first:.0f} to {last:.0f}" for first, last in zip(both[0], both[-1], strict=True)]
    label = "|g|, the length of the solution"
    finding.caption(left, f"C = {CARRIED:g} kept: {changes[0]}", xlabel="C", ylabel=label)
    finding.caption(right, f"C times pairs kept: {changes[1]}", xlabel="C times the number of pairs")
    left.axvline(CARRIED, color=THIRD, linestyle=":", linewidth=1.2, zorder=0)
    right.axvline(CARRIED * records[0]["pairs"], color=THIRD, linestyle=":", zorder=0)
    left.legend(frameon=False, fontsize=10)
    for axes in (left, right):
        axes.set(xscale="log", yscale="log")
        axes.grid(color="0.92")
    left_out = " and ".join(f"{n:,}" for n in SIZES if n not in sizes)
    notes = [
        *finding.quick_note(settings, f"fewer values of C and test rows, without {left_out} rows"),
        f"One run, seed {settings.seed}: the published rankAD with sigma = 3 and 200 landmarks on n rows of "
        f"the mixture as printed. C = {CARRIED:g} at {SIZES[0]} rows is carried to more, itself or times the "
        f"number of pairs; disagreement with the aK-LPE levels of {records[0]['n_test']:,} fresh rows.",
    ]
    figures = ["its |g|", "its disagreement"]
    columns = ["rows", "C kept", *figures, "C times pairs kept: C", *figures, "least disagreement of all C"]
    return Report(Table(NAME, "10. C and the number of pairs", columns, rows, notes), figure)
