"""``python -m benchmarks.engines``: rows in partitions beside one process, in time, memory and AUC.

    python -m benchmarks.engines overhead --engine dask     # 1,000,000 rows scored, beside one process
    python -m benchmarks.engines memory --engine spark      # 20,000,000 rows fitted and scored, peak memory
    python -m benchmarks.engines peers                      # beside a pandas_udf around IsolationForest
    python -m benchmarks.engines page --out results/engines # all of it, as a page

Every figure is of one run; start-up of clusters and processes is left out of the times.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rankad
from benchmarks import engines_page
from rankad.engines.fitting import fit_rank_ad
from rankad.engines.partitions import Layout, parquet_partitions, read_parquet_batches, write_parquet
from rankad.engines.scoring import SharedDetector, score_blocks

NAMES = tuple(f"x{i}" for i in range(10))
_CHUNK = 500_000


def rows_of(n: int, seed: int) -> np.ndarray:
    """Draw rows of two clusters with correlated columns."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(0).normal(size=(10, 10)) / 3 + np.eye(10)
    return rng.normal(size=(n, 10)) @ mixing + 4 * rng.integers(0, 2, size=(n, 1))


def write_rows(folder: Path, n: int, chunk: int = _CHUNK) -> None:
    """Write n rows as Parquet files of `chunk` rows, with a column of row numbers."""
    folder.mkdir()
    for at, begin in enumerate(range(0, n, chunk)):
        rows = rows_of(min(chunk, n - begin), at)
        numbers = np.arange(begin, begin + len(rows))
        table = pa.table({**dict(zip(NAMES, rows.T, strict=True)), "number": numbers})
        pq.write_table(table, folder / f"{at:04}.parquet", row_group_size=100_000)


class PeakMemory:
    """The largest resident memory of this process and of each that it started, seen five times a second."""

    def __init__(self) -> None:
        self.peak: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            for pid in _descendants(os.getpid()):
                held, name = _resident(pid)
                self.peak[name] = max(self.peak.get(name, 0), held)


def _descendants(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = [root]
    for pid in found:
        found.extend(child for child, parent in parents.items() if parent == pid)
    return found


def _resident(pid: int) -> tuple[int, str]:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return 0, "gone"
    if "java" in words[0]:
        kind = "executor (Java)" if any("CoarseGrained" in word for word in words) else "driver (Java)"
    else:
        kind = "this process" if pid == os.getpid() else "worker (Python)"
    return pages * os.sysconf("SC_PAGE_SIZE"), kind


def cpu_seconds() -> float:
    """Return the processor time of this process and of all that it started and that are still there.

    Other than the time on the clock, it says the same on a machine that others use, too.
    """
    ticks = 0
    for pid in _descendants(os.getpid()):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def engine_of(name: str, workers: int) -> Iterator[Any]:
    """Start an engine of so many worker processes of one core, with rankad imported in each."""
    if name == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client
    elif name == "spark":
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        session = (
            SparkSession.builder.master(f"local-cluster[{workers},1,700]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "900m")
            .config("spark.executor.memory", "700m")
            .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50000")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield session
        finally:
            session.stop()
    else:
        yield None


def fit_and_score(name: str, engine: Any, folder: Path, out: Path | None, params: dict[str, Any]) -> dict:
    """Fit on a folder and score it, by an engine; return seconds of both and the detector."""
    begin, fitted_cpu = time.perf_counter(), 0.0
    if name == "dask":
        import dask.dataframe as dd

        from rankad.dask import RankAD

        frame = dd.read_parquet(folder, split_row_groups=True)
        detector = RankAD(client=engine, **params).fit(frame, row_number="number")
        fitted, fitted_cpu = time.perf_counter(), cpu_seconds()
        scored = detector.score_frame(frame)
        _finish(lambda: scored["p_value"].sum().compute(), lambda: scored.to_parquet(out), out)
        local = detector.to_local()
    elif name == "spark":
        from rankad.spark import RankAD as SparkRankAD

        frame = engine.read.parquet(folder.as_uri())
        settings = {key: value for key, value in params.items() if key != "alpha"}
        model = SparkRankAD(inputCols=list(NAMES), idCol="number", settings=settings).fit(frame)
        fitted, fitted_cpu = time.perf_counter(), cpu_seconds()
        scored = model.transform(frame)
        _finish(
            lambda: scored.groupBy().sum("p_value").collect(),
            lambda: scored.write.parquet(out.as_uri()),  # type: ignore[union-attr]
            out,
        )
        local = model.to_local()
    else:
        layout = Layout(NAMES, number="number")
        local = fit_rank_ad(rankad.RankAD(**params), parquet_partitions(str(folder)), layout)
        fitted, fitted_cpu = time.perf_counter(), cpu_seconds()
        blocks = score_blocks(SharedDetector(local), read_parquet_batches(str(folder)), layout)
        schema = pq.read_schema(next(iter(sorted(folder.iterdir()))))
        for column, kind in (("p_value", pa.float64()), ("score", pa.float64()), ("alarm", pa.bool_())):
            schema = schema.append(pa.field(column, kind))
        _finish(
            lambda: sum(block.column("p_value").to_numpy().sum() for block in blocks),
            lambda: write_parquet(blocks, schema, str(out)),
            out,
        )
    end = time.perf_counter()
    spent = cpu_seconds() - fitted_cpu
    return {"fit_s": fitted - begin, "score_s": end - fitted, "score_cpu_s": spent, "detector": local}


def pass_through(name: str, engine: Any, folder: Path) -> dict[str, float]:
    """Return the seconds that an engine takes to hand all rows to Python and back, unchanged."""
    begin, used = time.perf_counter(), cpu_seconds()
    if name == "dask":
        import dask.dataframe as dd

        frame = dd.read_parquet(folder, split_row_groups=True)
        frame.map_partitions(lambda part: part)[NAMES[0]].sum().compute()
    else:
        frame = engine.read.parquet(folder.as_uri())
        frame.mapInArrow(lambda blocks: blocks, frame.schema).groupBy().sum(NAMES[0]).collect()
    return {"score_s": time.perf_counter() - begin, "score_cpu_s": cpu_seconds() - used}


def _finish(total: Callable[[], Any], write: Callable[[], Any], out: Path | None) -> None:
    total() if out is None else write()


def overhead(name: str, n: int, workers: int) -> dict[str, Any]:
    """Score n rows in memory, from files by one process, and by an engine; twice, the second time counts."""
    with tempfile.TemporaryDirectory(prefix="rankad-engines-") as folder:
        path = Path(folder) / "rows"
        write_rows(path, n, chunk=-(-n // (4 * workers)))
        whole = np.concatenate([rows_of(*part) for part in _parts_of(n, -(-n // (4 * workers)))])
        begin = time.perf_counter()
        local = rankad.RankAD(n_jobs=workers).fit(whole)
        middle, used = time.perf_counter(), cpu_seconds()
        expected = local.p_values(whole)
        local_times = {
            "fit_s": middle - begin,
            "score_s": time.perf_counter() - middle,
            "score_cpu_s": cpu_seconds() - used,
        }
        from_files = [fit_and_score("local", None, path, None, {"n_jobs": workers}) for _ in range(2)][1]
        del from_files["detector"]
        with engine_of(name, workers) as engine:
            runs = [fit_and_score(name, engine, path, None, {}) for _ in range(2)]
            nothing = [pass_through(name, engine, path) for _ in range(2)][1]
        found = runs[1].pop("detector")
        frame = {name: column for name, column in zip(NAMES, whole[:20_000].T, strict=True)}
        import polars as pl

        same = np.array_equal(found.calibration_.scores, local.calibration_.scores) and np.array_equal(
            found.p_values(pl.DataFrame(frame)), expected[:20_000]
        )
    return {
        "rows": n,
        "workers": workers,
        "in memory": local_times,
        "one process from files": from_files,
        name: runs[1],
        f"{name}, nothing done": nothing,
        "same model": bool(same),
    }


def _parts_of(n: int, chunk: int) -> list[tuple[int, int]]:
    return [(min(chunk, n - begin), at) for at, begin in enumerate(range(0, n, chunk))]


def memory(name: str, n: int, workers: int) -> dict[str, Any]:
    """Fit and score n rows of Parquet, and return the peak memory of each kind of process."""
    with tempfile.TemporaryDirectory(prefix="rankad-engines-") as folder:
        path = Path(folder) / "rows"
        write_rows(path, n)
        with PeakMemory() as watch, engine_of(name, workers) as engine:
            run = fit_and_score(name, engine, path, Path(folder) / "scored", {})
        n_nominal = int(run.pop("detector").calibration_.scores.size)
    peaks = {kind: round(held / 2**20) for kind, held in sorted(watch.peak.items())}
    return {"rows": n, "workers": workers, name: run, "nominal scores": n_nominal, "peak MiB": peaks}


def peers(n: int, workers: int) -> dict[str, Any]:
    """Score n rows with Spark by RankAD and by a pandas_udf around IsolationForest; AUC of planted rows."""
    import pandas as pd
    from pyspark.sql.functions import pandas_udf, struct
    from sklearn.ensemble import IsolationForest
    from sklearn.metrics import roc_auc_score

    from rankad.spark import RankAD

    with (
        tempfile.TemporaryDirectory(prefix="rankad-engines-") as folder,
        engine_of("spark", workers) as spark,
    ):
        path = Path(folder) / "rows"
        write_rows(path, n, chunk=-(-n // (4 * workers)))
        frame = spark.read.parquet(path.as_uri())
        normal, rng = rows_of(5_000, 10_000), np.random.default_rng(5)
        # Rows whose columns each look normal, but do not go together.
        planted = np.stack([rng.permutation(column) for column in rows_of(5_000, 10_001).T], axis=1)
        table = pd.DataFrame(np.concatenate([normal, planted]), columns=list(NAMES))
        labelled = spark.createDataFrame(table.assign(number=np.arange(10_000)))
        truth = np.repeat([0, 1], 5_000)
        begin = time.perf_counter()
        model = RankAD(inputCols=list(NAMES), idCol="number").fit(frame)
        fit_s = time.perf_counter() - begin
        begin = time.perf_counter()
        # What one does: a sample on the driver, the forest in every Python worker.
        share = min(1.0, 100_000 / n)
        sample = frame.select(*NAMES).sample(fraction=share, seed=0).toPandas()
        forest = IsolationForest(random_state=0).fit(sample.to_numpy())
        forest_fit_s = time.perf_counter() - begin

        def score(columns: Any) -> Any:
            return pd.Series(forest.score_samples(columns.to_numpy()))

        # Spark reads them, and finds no name that is imported in a function.
        score.__annotations__ = {"columns": pd.DataFrame, "return": pd.Series}
        forest_score = pandas_udf(score, "double")

        def by_forest(rows: Any) -> Any:
            return rows.withColumn("score", forest_score(struct(*NAMES)))

        results = {}
        for method, transform, spent in (
            ("RankAD", model.transform, fit_s),
            ("IsolationForest in a pandas_udf", by_forest, forest_fit_s),
        ):
            seconds = []
            for _ in range(2):
                begin = time.perf_counter()
                transform(frame).groupBy().sum("score").collect()
                seconds.append(time.perf_counter() - begin)
            scores = transform(labelled).orderBy("number").select("score").toPandas()["score"]
            results[method] = {
                "fit_s": spent,
                "rows_per_s": n / seconds[1],
                "auc": float(roc_auc_score(truth, -scores)),
            }
    return {"rows": n, "workers": workers, **results}


def main() -> None:
    """Run one of the measurements and print it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument("what", choices=["overhead", "memory", "peers", "page"])
    parser.add_argument("--engine", choices=["local", "dask", "spark"], default="dask")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/engines"), help="of the page")
    given = parser.parse_args()
    if given.what == "page":
        engines_page.write(given.out, given.rows, given.workers)
        return
    n = given.rows or {"overhead": 1_000_000, "memory": 20_000_000, "peers": 200_000}[given.what]
    if given.what == "peers":
        found = peers(n, given.workers)
    else:
        found = {"overhead": overhead, "memory": memory}[given.what](given.engine, n, given.workers)
    print(json.dumps(found, indent=2, default=lambda value: round(float(value), 3)))


if __name__ == "__main__":
    main()
