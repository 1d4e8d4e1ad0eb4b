"""Every measurement of `benchmarks.engines`, each in a process of its own, as one page."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.process import available_cores
from rankad.experiments.cells import versions, write_atomically

__all__ = ["write"]

_MEMORY_BAR, _OVERHEAD_BAR = 1536, 1.5
_ENGINES = ("local", "dask", "spark")


def write(folder: Path, rows: int | None, workers: int) -> None:
    """Measure everything, one process after another, and write engines.md.

    Each result is a file too; a run that is started again uses those there are.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def measured(what: str, engine: str = "spark") -> dict[str, Any]:
        path = folder / f"{what}-{engine}-{rows or 'all'}-{workers}.json"
        if not path.exists():
            begin = time.perf_counter()
            result = _measured(what, rows, workers, engine)
            result["seconds"] = time.perf_counter() - begin
            write_atomically(path, json.dumps(result, indent=1) + "\n")
        return dict(json.loads(path.read_text()))

    found = {
        "overhead": {name: measured("overhead", name) for name in _ENGINES[1:]},
        "memory": {name: measured("memory", name) for name in _ENGINES},
        "peers": measured("peers"),
    }
    runs = [*found["overhead"].values(), *found["memory"].values(), found["peers"]]
    minutes = sum(each["seconds"] for each in runs) / 60
    write_atomically(folder / "engines.md", "\n".join(_page(found, workers, minutes)) + "\n")


def _measured(what: str, rows: int | None, workers: int, engine: str) -> dict[str, Any]:
    """Run one measurement in a process of its own, so that none inherits another's memory."""
    print(f"{what}, {engine} ...", file=sys.stderr, flush=True)
    options = ["--engine", engine, "--workers", str(workers)]
    if rows is not None:
        options += ["--rows", str(rows)]
    command = [sys.executable, "-m", "benchmarks.engines", what, *options]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    # Engines print before it.
    return dict(json.loads(said[said.index("{") :]))


def _page(found: Mapping[str, Any], workers: int, minutes: float) -> list[str]:
    used = {**versions(), **{name: version(name) for name in ("dask", "pyspark", "pyarrow")}}
    peers = found["peers"]
    return [
        "# Engines",
        "",
        f"Written by `make engines` in {minutes:.0f} minutes on {len(available_cores())} cores: "
        f"{workers} workers of one core each, start-up of clusters left out, rows of 10 columns in Parquet "
        "files.",
        f"With {', '.join(f'{name} {number}' for name, number in used.items())}.",
        "",
        "## Overhead of scoring",
        "",
        *_overhead(found["overhead"]),
        "",
        "## Memory",
        "",
        f"Rows fitted and scored into new Parquet files; no process may take more than {_MEMORY_BAR:,} MiB.",
        "",
        *_memory(found["memory"]),
        "",
        "## Beside what a Spark user would pick",
        "",
        f"{peers['rows']:,} rows scored on Spark. AUC is of 5,000 normal rows and 5,000 whose columns each",
        "look normal but do not go together.",
        "",
        *_table(
            ("method", "seconds to fit", "rows/s scored", "AUC"),
            (
                (name, f"{one['fit_s']:.1f}", f"{one['rows_per_s']:,.0f}", f"{one['auc']:.3f}")
                for name, one in peers.items()
                if isinstance(one, Mapping)
            ),
        ),
    ]


def _overhead(found: Mapping[str, Any]) -> list[str]:
    """Return a table with one line for each way, and what it says of the bar."""
    lines, verdicts = [], []
    for engine, one in found.items():
        local = one["one process from files"]
        ways = {
            f"one process from files, {one['workers']} threads": local,
            f"one process from memory, {one['workers']} threads": one["in memory"],
            engine: one[engine],
            f"{engine}, rows handed to Python and back unchanged": one[f"{engine}, nothing done"],
        }
        for way, times in ways.items():
            fit, ratio = times.get("fit_s"), times["score_s"] / local["score_s"]
            spent = f"{fit:.2f}" if fit is not None else ""
            lines.append(
                (engine, way, spent, f"{times['score_s']:.2f}", f"{times['score_cpu_s']:.2f}", f"{ratio:.2f}")
            )
        ratio = one[engine]["score_s"] / local["score_s"]
        verdict = "within" if ratio <= _OVERHEAD_BAR else "beyond"
        verdicts.append(
            f"- {engine}: {ratio:.2f} times one process from the same files, {verdict} the {_OVERHEAD_BAR:g} "
            f"that we ask for; {'the same model' if one['same model'] else 'ANOTHER MODEL'} as one process's."
        )
    rows = next(iter(found.values()))["rows"]
    header = ("run", "way", "fit, s", f"score {rows:,} rows, s", "processor time, s", "times one process")
    return [*_table(header, lines), "", *verdicts]


def _memory(found: Mapping[str, Any]) -> list[str]:
    return _table(
        ("engine", "rows", "fit, s", "score and write, s", "peak of each process, MiB", "largest"),
        (
            (
                engine,
                f"{one['rows']:,}",
                f"{one[engine]['fit_s']:.0f}",
                f"{one[engine]['score_s']:.0f}",
                ", ".join(f"{kind} {held:,}" for kind, held in one["peak MiB"].items()),
                "within" if max(one["peak MiB"].values()) <= _MEMORY_BAR else "beyond",
            )
            for engine, one in found.items()
        ),
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
