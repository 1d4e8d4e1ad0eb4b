"""Finding 5: with squared slacks nearly every row is a support vector; sparsity has to be imposed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from rankad import RankAD
from rankad._base.arrays import Floats
from rankad.experiments.cells import Cell, Settings
from rankad.experiments.datasets import SPECS
from rankad.experiments.findings import finding
from rankad.experiments.findings.finding import OURS, PLAIN_C, THIRD, Record, Report
from rankad.experiments.measures import fitted_auc, one_thread
from rankad.experiments.pictures import COLOURS
from rankad.experiments.results import Table
from rankad.stages.pairloss import PairLoss

NAME = "finding-05"

SETS = ("annthyroid", "mammography", "satellite", "shuttle")
# A coefficient smaller than this share of the largest counts as zero: the solver stops at about that.
NEGLIGIBLE = 1e-6
_QUANTILES = 201
# As many landmarks as `RankAD` takes by default.
_DEFAULT: Any = RankAD().landmarks


def dual_coefficients(scores: ArrayLike, levels: ArrayLike, C: float) -> Floats:
    """Return the coefficient of each training row in g, from g's optimality.

    At the optimum of ``|g|^2 / 2 + C L(f)`` with ``f = (g(x_1), ..., g(x_n))``, g is the sum over the rows of
    ``- C dL/df_i`` times the kernel at the row. No factorization of the kernel matrix is involved, which may
    do without rows that others can stand for.
    """
    return np.asarray(-C * PairLoss(np.asarray(levels)).at(scores).gradient)


def measure_support(dataset: str, seed: int, n: int, *, data: Path | None) -> dict[str, Any]:
    """Count the support vectors of the published rankAD at one bandwidth."""
    split = finding.real_split(dataset, data, seed, n, 1)
    published = RankAD.as_published(bandwidth="2 D_K", C=PLAIN_C / n, random_state=seed, n_jobs=1)
    with one_thread():
        ranker = published.fit(split.train)
        sizes = np.abs(dual_coefficients(ranker.score_samples(split.train), ranker.levels_, ranker.C_))
    sizes = np.sort(sizes / sizes.max())[::-1]
    at = np.linspace(0, n - 1, _QUANTILES).round().astype(int)
    return {"share": float((sizes > NEGLIGIBLE).mean()), "coefficients": sizes[at]}


def measure_landmarks(
    dataset: str, landmarks: Any, seed: int, n: int, n_test: int, *, data: Path | None
) -> dict[str, Any]:
    """Return the AUC of the default with some number of landmarks, nothing else selected."""
    # The AUC does not depend on the calibration; this is the cheapest.
    detector = RankAD(landmarks=landmarks, calibration="in-sample", random_state=seed, n_jobs=1)
    detector.set_params(scaling="standard", bandwidth="0.5 D_K", C=PLAIN_C / n)
    return {"auc": fitted_auc(detector, finding.real_split(dataset, data, seed, n, n_test))}


def cells(settings: Settings) -> list[Cell]:
    """List one cell for each set's support vectors, and one for each set and number of landmarks."""
    sets, n, n_test = (SETS[:2], 300, 500) if settings.quick else (SETS, 2_000, 2_000)
    counts: list[Any] = [25, 100, "all"] if settings.quick else [25, 50, 100, _DEFAULT, 500, "all"]
    support, landmarks = (partial(work, data=settings.data) for work in (measure_support, measure_landmarks))
    names, shared = list(sets), {"seed": settings.run_seed(0), "n": n}
    return [
        *finding.finding_cells(NAME, support, dataset=names, **shared),
        *finding.finding_cells(NAME, landmarks, dataset=names, landmarks=counts, n_test=n_test, **shared),
    ]


def report(records: Sequence[Record], settings: Settings) -> Report:
    """Draw the coefficients' sizes, and the AUC against the number of landmarks."""
    dense = [record for record in records if "landmarks" not in record]
    sparse = [record for record in records if "landmarks" in record]
    n = dense[0]["n"]
    least = min(record["share"] for record in dense)
    title = f"Finding 5: as published, at least {least:.0%} of the rows are support vectors"
    figure, (left, right) = finding.new_panels(f"{title}; landmarks can be few", (12.0, 4.8), 1, 2)
    percents = np.linspace(0, 100, _QUANTILES)
    counts = finding.unique(sparse, "landmarks")
    at = [n if count == "all" else count for count in counts]
    rows, ends = [], []
    for colour, record in zip(COLOURS, dense, strict=False):
        title = SPECS[record["dataset"]].title
        left.plot(percents, record["coefficients"], color=colour, linewidth=2, label=title)
        areas = [one["auc"] for one in finding.find(sparse, dataset=record["dataset"])]
        right.plot(at, areas, "o-", color=colour, linewidth=2, markersize=5)
        ends.append((areas[-1], title, colour))
        rows.append([title, f"{record['share']:.1%}", *(f"{area:.3f}" for area in areas)])
    finding.caption(
        left,
        f"As published: coefficients of {n:,} rows, sorted",
        yscale="log",
        ylim=(NEGLIGIBLE, 2.0),
        xlabel="rows, % of all",
        ylabel="size relative to the largest",
    )
    left.text(4, 2.2 * NEGLIGIBLE, "below: counted as zero", color=THIRD, fontsize=9.5)
    left.legend(loc="lower left", bbox_to_anchor=(0.0, 0.1), frameon=False, fontsize=9.5)
    right.set_xscale("log")
    right.set_xticks(at, [str(count) for count in counts])
    right.minorticks_off()
    title = "Default: AUC against the number of k-means landmarks"
    finding.caption(right, title, xlabel="landmarks", ylabel="AUC")
    low, high = right.get_ylim()
    # Differences in the third decimal should not look like cliffs.
    right.set_ylim(min(low, high - 0.15), high)
    _label_ends(right, at[-1], ends)
    if not settings.quick:
        right.axvline(_DEFAULT, color=OURS, linestyle=":", linewidth=1.2)
        finding.note(right, "default", (_DEFAULT, right.get_ylim()[0]), (-4, 4), OURS, ha="right")
    left_out = finding.without(finding.unique(dense, "dataset"), SETS)
    notes = [
        *finding.quick_note(settings, f"fewer rows and numbers of landmarks, without {left_out}"),
        f"One run, seed {settings.seed}, {n:,} training rows. Support vectors: the published rankAD with "
        f"bandwidth 2 D_K and C of 10 over the number of rows; a coefficient below {NEGLIGIBLE:.0e} of the "
        'largest counts as zero. The paper: "for most data sets s is much smaller than n".',
        "AUC: the default with standardized columns, bandwidth 0.5 D_K and the same C; its landmarks are "
        "k-means centres, or all rows.",
    ]
    columns = ["data set", "support vectors, as published"]
    columns += ["AUC, all rows" if count == "all" else f"AUC, {count} landmarks" for count in counts]
    return Report(Table(NAME, "5. Squared slacks are not sparse", columns, rows, notes), figure)


def _label_ends(axes: Axes, x: float, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write the names of lines beside their last points, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    apart, y = 0.055 * (high - low), -np.inf
    for value, title, colour in sorted(ends):
        y = max(value, y + apart)
        finding.note(axes, title, (x, y), (8, 0), colour, va="center", annotation_clip=False)
