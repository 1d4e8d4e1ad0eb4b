"""Finding 2: the strict disagreement takes a model that says nothing for a perfect one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankad import RankAD
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.datasets import SPECS
from rankad.experiments.findings import finding
from rankad.experiments.findings.finding import LITERAL, OURS, PLAIN_C, THIRD, Record, Report
from rankad.experiments.measures import auc, one_thread
from rankad.experiments.pictures import percent
from rankad.experiments.results import Table
from rankad.stages.selection import PAPER_MULTIPLES, folds

NAME = "finding-02"

SETS = ("satellite", "mammography")
N_FOLDS = 4
_LOSSES = {"strict": (LITERAL, "strict, as printed"), "half": (OURS, "a tie counts one half")}


class PairShares(NamedTuple):
    """Of all pairs of rows of different levels: the share ordered wrongly, and the share tied."""

    wrong: float
    tied: float


def pair_shares(scores: ArrayLike, levels: ArrayLike) -> PairShares:
    """Compare every pair.

    Examples
    --------
    >>> pair_shares([3.0, 3.0, 5.0], [3, 2, 1])
    PairShares(wrong=0.6666666666666666, tied=0.3333333333333333)
    """
    f, level = np.asarray(scores), np.asarray(levels)
    higher = level[:, None] > level[None, :]
    difference = np.subtract.outer(f, f)[higher]
    return PairShares(float((difference < 0).mean()), float((difference == 0).mean()))


def measure(
    dataset: str, multiple: float, seed: int, n: int, n_test: int, *, data: Path | None
) -> dict[str, Any]:
    """Cross-validate the published rankAD at one bandwidth, and test it."""
    split = finding.real_split(dataset, data, seed, n, n_test)

    def published(rows: Floats) -> RankAD:
        given = {"bandwidth": f"{multiple!r} D_K", "C": PLAIN_C / len(rows)}
        return RankAD.as_published(**given, random_state=seed, n_jobs=1).fit(rows)

    with one_thread():
        whole = published(split.train)
        shares = []
        for held in folds(n, N_FOLDS, np.random.default_rng(seed)):
            ranker = published(np.delete(split.train, held, axis=0))
            shares.append(pair_shares(ranker.score_samples(split.train[held]), whole.levels_[held]))
        wrong, tied = np.mean(shares, axis=0)
        area = auc(split.nominal, whole.score_samples(split.test))
    return {"strict": wrong, "tied": tied, "half": wrong + tied / 2, "auc": area}


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each set and bandwidth."""
    sets, n, n_test, step = (SETS[:1], 160, 500, 2) if settings.quick else (SETS, 400, 2_000, 1)
    shared = {"seed": settings.run_seed(0), "n": n, "n_test": n_test}
    work, multiples = partial(measure, data=settings.data), list(PAPER_MULTIPLES[::step])
    return finding.finding_cells(NAME, work, dataset=list(sets), multiple=multiples, **shared)


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw both losses against the bandwidth, and the AUC of what each would choose."""
    names = finding.unique(records, "dataset")
    title = "Finding 2: a tie that counts as right makes a kernel that underflows look perfect"
    figure, panels = finding.new_panels(title, (5.6 * max(2, len(names)), 5.6), 2, len(names))
    rows = []
    for name, loss, area in zip(names, panels, panels[len(names) :], strict=False):
        area.sharex(loss)
        here = sorted(finding.find(records, dataset=name), key=lambda record: record["multiple"])
        areas, tied = [record["auc"] for record in here], [record["tied"] for record in here]
        exponents = [float(np.log2(record["multiple"])) for record in here]
        loss.fill_between(exponents, tied, color="0.9", linewidth=0, label="share of pairs tied")
        area.plot(exponents, areas, color=THIRD, linewidth=1.4)
        area.set_ylim(min(0.4, min(areas) - 0.1), 1.02)
        area.set_xticks(range(-10, 11, 5))
        set_title = SPECS[name].title
        for which, (colour, label) in _LOSSES.items():
            values = [record[which] for record in here]
            best = int(np.argmin(values))
            at = exponents[best]
            loss.plot(exponents, values, color=colour, linewidth=2, label=label)
            loss.plot(at, values[best], "o", color=colour, markersize=8, zorder=3)
            area.plot(at, areas[best], "o", color=colour, markersize=8, zorder=3)
            finding.note(area, f"chosen: AUC {areas[best]:.2f}", (at, areas[best]), (4, -9), colour, va="top")
            chosen = [f"2^{at:.0f} D_K", f"{values[best]:.3f}", percent(tied[best]), f"{areas[best]:.3f}"]
            rows.append([set_title, label, *chosen])
        hindsight = exponents[int(np.argmax(areas))]
        rows.append([set_title, "(best in hindsight)", f"2^{hindsight:.0f} D_K", "", "", f"{max(areas):.3f}"])
        finding.caption(loss, f"{set_title}, {here[0]['n']} rows", ylabel="cross-validation loss")
        loss.set_ylim(-0.02, 1.06)
        area.set(xlabel="log2 of the bandwidth in $D_K$", ylabel="AUC on test rows")
    handles = loss.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    first = records[0]
    notes = [
        *finding.quick_note(settings, "one set, fewer rows, every second bandwidth"),
        f"One run, seed {settings.seed}; raw features, the paper's pairs and {N_FOLDS} folds, C of 10 over "
        f"the number of rows; {first['n']} rows train, at most {first['n_test']:,} of each kind test.",
    ]
    columns = ["data set", "loss", "chosen bandwidth", "its loss", "pairs tied there", "AUC there"]
    return Report(Table(NAME, "2. Ties in the cross-validation loss", columns, rows, notes), figure)
