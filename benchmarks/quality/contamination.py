"""What anomalies among the training rows cost: mean AUC at every share, and its fall from none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality.alarms import alarm_cells, summary
from benchmarks.quality.comparison import Comparison, compare
from benchmarks.quality.methods import CONTAMINATED, KNN, OURS, TRIMMED
from benchmarks.quality.settings import ALPHAS, SHARES
from benchmarks.quality.splits import n_mixed
from rankad.experiments.pictures import percent
from rankad.experiments.results import Table

__all__ = ["Falls", "falls", "tables"]


class Falls(NamedTuple):
    """AUC at every share, on the same test rows.

    Attributes
    ----------
    clean : Comparison
        Without anomalies among the training rows.
    mixed : dict of float to Comparison
        By share.
    """

    clean: Comparison
    mixed: dict[float, Comparison]

    def fall(self, method: str, share: float) -> float:
        """Return by how much a detector's mean AUC falls."""
        return self.clean.means[method] - self.mixed[share].means[method]


def falls(records: Sequence[Mapping[str, Any]]) -> Falls:
    """Compare the detectors that were fitted on contaminated rows."""
    clean, *mixed = (compare(records, "auc_spared", share, CONTAMINATED) for share in (0.0, *SHARES))
    return Falls(clean, dict(zip(SHARES, mixed, strict=True)))


def tables(records: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Show means, and RankAD, trimmed and not, beside k-NN 5 set by set."""
    found = falls(records)
    rows = []
    for method in found.clean.methods:
        cells = [f"{found.clean.means[method]:.3f}"]
        for share in SHARES:
            fall = found.fall(method, share)
            cells += [f"{found.mixed[share].means[method]:.3f}", f"{round(fall, 4) + 0.0:.4f}"]
        rows.append([method, *cells])
    columns = ["detector", "clean"]
    for share in SHARES:
        columns += [percent(share), "fall"]
    notes = [
        "Mean AUC over sets and seeds with that share of the training rows replaced by anomalies drawn at "
        "random, and its fall from clean training rows. The anomalies drawn for the largest share are left "
        "out of the test rows at every share, so all columns have the same test rows.",
        "A set gives at most half of its anomalies: see below where that is fewer than asked for.",
        f"{TRIMMED}, leaves out the tenth of its training rows that look least nominal. It is shown here "
        "only: no bar and no other table is about it.",
        *(_obtained(records, method) for method in OURS),
    ]
    return [
        Table("contamination", "Contaminated training", columns, rows, notes),
        _by_set(records, found),
    ]


def _obtained(records: Sequence[Mapping[str, Any]], method: str) -> str:
    """Say what became of a false-alarm rate at every share."""
    asked, shares = ALPHAS[1], (0.0, *SHARES)
    rates = [summary(alarm_cells(records, share, method), asked).obtained for share in shares]
    return (
        f"False alarms of {method}, on the splits of the comparison, at {percent(asked)} asked for: "
        + ", ".join(f"{100 * rate:.2f} %" for rate in rates)
        + " with none, "
        + ", ".join(map(percent, SHARES))
        + "."
    )


def _by_set(records: Iterable[Mapping[str, Any]], found: Falls) -> Table:
    """Show the fall of three detectors on every set, and how many anomalies were mixed in."""
    sizes = {record["set"]: record for record in records if record["share"] == 0}
    rows, short = [], {share: 0 for share in SHARES}
    for at, name in enumerate(found.clean.sets):
        n_train, n_anomalies = sizes[name]["n_train"], sizes[name]["n_anomalies"]
        cells = [name]
        for share in SHARES:
            mixed, asked = n_mixed(share, n_train, n_anomalies), round(share * n_train)
            short[share] += mixed < asked
            cells.append(f"{mixed} of {n_train:,}" + f" (asked {asked})" * (mixed < asked))
            for method in (*OURS, KNN):
                fall = found.clean.of(method)[at] - found.mixed[share].of(method)[at]
                cells.append(f"{np.round(fall, 3) + 0.0:.3f}")
        rows.append(cells)
    columns = ["set"]
    for share in SHARES:
        columns += [f"mixed in, {percent(share)}", *OURS, KNN]
    fewer = ", ".join(f"{count} at {percent(share)}" for share, count in short.items())
    notes = [
        "Anomalies among the training rows, and the fall of AUC from clean ones.",
        f"Sets with too few anomalies for the share: {fewer}.",
    ]
    return Table("contamination-by-set", "Contaminated training, set by set", columns, rows, notes)
