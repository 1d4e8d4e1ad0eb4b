"""``python -m benchmarks``: measure everything, write tables and pictures, judge the bars."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import (
    bars,
    fits,
    landmarks,
    near,
    pictures,
    report,
    roofline,
    scoring,
    stages,
    startup,
    stream,
)
from benchmarks.process import available_cores
from benchmarks.report import print_bars
from benchmarks.rows import prepare
from benchmarks.settings import Bench, Sizes
from rankad.experiments.cells import CellStore
from rankad.experiments.datasets import DatasetError

_SEED = 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark.

    An interrupted run resumes, on the same machine and code; a finished one starts over, so that
    the figures of a page are of one run.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder of the results")
    parser.add_argument("--quick", action="store_true", help="a cheap look, with fewer rows")
    parser.add_argument("--data", type=Path, help="folder of the data sets (default: RANKAD_DATA)")
    given = parser.parse_args(arguments)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rankad-bench-") as folder:
        bench = Bench(given.out, Path(folder), given.quick)
        try:
            sizes = bench.sizes
            prepare(bench.rows, sorted({*sizes.fits, sizes.published}), _SEED, given.data)
            near.prepare(bench.rows, sizes.large_sets, sizes.draws, Sizes().many, given.data)
        except DatasetError as error:
            parser.exit(2, f"{error}\n")
        results = measure_all(bench, _store(bench))
    judged = bars.judge(results, bench)
    tables = [
        *scoring.tables(results["scoring"], bench),
        *fits.tables(results["fits"], results["published"], bench),
        landmarks.table(results["landmarks"], bench),
        near.table(results["near"], bench),
        roofline.table(results["roofline"]),
        *stages.tables(results["stages"], bench),
        stream.table(results["stream"]),
        startup.table(results["start"]),
        bars.table(judged, bench),
    ]
    raw = {"results": results, "bars": [{**bar._asdict(), "met": bar.met} for bar in judged]}
    drawn = pictures.draw_all(results, bench)
    report.write(bench, tables, drawn, raw, time.monotonic() - begin)
    shutil.rmtree(bench.cells)
    print_bars(judged, bench.quick, bench.out / "speed.md")


def measure_all(bench: Bench, store: CellStore) -> dict[str, Any]:
    """Return the records of every part; fits first, since they compile what the others use."""
    return {
        "fits": fits.run(bench, store),
        "scoring": scoring.run(bench, store),
        "landmarks": landmarks.run(bench, store),
        "near": near.run(bench, store),
        "roofline": roofline.run(bench, store),
        "stages": stages.run(bench, store),
        "start": startup.run(bench, store),
        "stream": stream.run(bench, store),
        "published": fits.published(bench, store),
    }


def _store(bench: Bench) -> CellStore:
    """Return where finished cells are kept: of this code, these sizes and this machine only."""
    source = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        source.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    bench.cells.mkdir(parents=True, exist_ok=True)
    (bench.cells / ".gitignore").write_text("*\n")
    stamp = {
        **CellStore(bench.cells).stamp,
        **report.used_versions(),
        "benchmarks": source.hexdigest()[:16],
        "sizes": bench.sizes._asdict(),
        "cores": available_cores()[:2],
    }
    return CellStore(bench.cells, stamp)


if __name__ == "__main__":
    main()
