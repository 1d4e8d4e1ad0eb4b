"""Table 2: the data sets as loaded, against the paper's description."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from rankad.experiments.cells import Cell, Settings
from rankad.experiments.datasets import SPECS, load_dataset
from rankad.experiments.results import Table, write_results

NAME = "table-2"
# Increase it when the work of a cell changes.
_VERSION = 1


def measure(name: str, data: Path | None) -> dict[str, Any]:
    """Return the size of a set and its anomalies."""
    dataset = load_dataset(name, data)
    rows, columns = dataset.X.shape
    return {"rows": rows, "columns": columns, "anomalies": int((dataset.y == 1).sum())}


def run(settings: Settings) -> None:
    """Make the table and write it."""
    shared = {"experiment": NAME, "version": _VERSION}
    todo = [Cell({**shared, "dataset": name}, partial(measure, name, settings.data)) for name in SPECS]
    rows, records = [], []
    for spec, result in zip(SPECS.values(), settings.run(todo, NAME), strict=True):
        n, d, n_anomalies = result["rows"], result["columns"], result["anomalies"]
        share = n_anomalies / n
        rows.append(
            [
                spec.title,
                f"{n:,} (paper {spec.paper_rows:,})",
                f"{d} (paper {spec.paper_columns})",
                f"{n_anomalies:,}, {share:.2%} (paper: {spec.paper_anomalies})",
                "yes" if (n, d) == (spec.paper_rows, spec.paper_columns) else "no",
            ]
        )
        records.append(
            {
                "dataset": spec.name,
                **{"rows": n, "columns": d, "anomalies": n_anomalies, "anomaly_share": share},
                "file": spec.file,
                "sha256": spec.sha256,
                "paper": dict(zip(("rows", "columns", "anomaly_class"), spec[-3:], strict=True)),
            }
        )
    notes = [
        "The paper names the anomaly classes but prints no shares, though its caption announces them.",
        "Seven sets are the public ADBench files, checked by SHA-256; Mulcross is generated.",
    ]
    columns = ["data set", "N", "d", "anomalies", "same N and d"]
    table = Table(NAME, "The data sets as loaded", columns, rows, notes)
    raw = {"settings": {"seed": settings.seed, "quick": settings.quick}, "datasets": records}
    write_results(settings.out, NAME, table, raw)
