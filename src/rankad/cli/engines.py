"""``rankad fit`` and ``rankad score`` with ``--engine``: Parquet folders of any size."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankad._base.files import is_read
from rankad.cli.options import Cluster, refuse

if TYPE_CHECKING:
    from rankad.cli.whole_table import WholeTable
    from rankad.detectors.table import TableDetector
    from rankad.engines.partitions import Partitions


def columns_of(table: str) -> WholeTable:
    """Return a table without its rows: column names are all that options are read with."""
    import polars as pl

    from rankad.cli.whole_table import WholeTable
    from rankad.engines.partitions import parquet_dataset

    names = parquet_dataset(table).schema.names
    return WholeTable(pl.DataFrame(schema=dict.fromkeys(names, pl.Null)), True, table, "parquet", None)


def fit_by_engine(detector: TableDetector, table: str, cluster: Cluster) -> tuple[TableDetector, int]:
    """Fit on a Parquet folder, and return the fitted detector and the number of rows."""
    from rankad.engines.fitting import fit_table
    from rankad.engines.partitions import Layout, parquet_dataset
    from rankad.engines.rows import count_rows

    with _partitions(table, cluster) as partitions:
        layout = Layout(tuple(parquet_dataset(table).schema.names))
        return fit_table(detector, partitions, layout), count_rows(partitions, layout)[0]


@contextmanager
def _partitions(table: str, cluster: Cluster) -> Iterator[Partitions]:
    if cluster.engine == "local":
        from rankad.engines.partitions import parquet_partitions

        yield parquet_partitions(table)
    elif cluster.engine == "dask":
        with _dask(cluster.address):
            import dask.dataframe

            from rankad.dask import DaskPartitions

            yield DaskPartitions(dask.dataframe.read_parquet(table), None)
    else:
        with _spark(cluster.address) as session:
            from rankad.spark import SparkPartitions

            yield SparkPartitions(session.read.parquet(_url(table)))


@contextmanager
def _dask(address: str | None) -> Iterator[None]:
    """Connect to a scheduler, or start a worker process for each core of this machine."""
    from distributed import Client

    import rankad.dask  # noqa: F401  It says what to install.
    from rankad.scoring.loading import threads

    here = {"n_workers": threads(None), "threads_per_worker": 1, "dashboard_address": None}
    with Client(address) if address is not None else Client(**here):
        yield


@contextmanager
def _spark(address: str | None) -> Iterator[Any]:
    import shutil

    from rankad.spark import session

    if address is None and not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise refuse(
            "--engine",
            "Spark needs Java 17 or 21, which is not installed (Debian: apt-get install "
            "openjdk-17-jre-headless)",
        )
    spark = session(address)
    try:
        yield spark
    finally:
        spark.stop()


def _url(path: str) -> str:
    return path if "://" in path else Path(path).resolve().as_uri()


def score_command(
    table: str,
    model: Path,
    out: str | None,
    cluster: Cluster,
    alpha: float | None,
    prefix: str,
    refused: Sequence[str],
    as_json: bool,
    quiet: bool,
) -> int:
    """Score a Parquet folder into another, and return the number of alarms."""
    from rankad import load
    from rankad._base.wording import counted
    from rankad.cli.messages import alarms, percent, to_json
    from rankad.engines.partitions import parquet_dataset
    from rankad.scoring.batch import ANSWERS
    from rankad.scoring.loading import check_there

    if refused:
        raise refuse(refused[0], "does not go with --engine")
    if out is None or out == "-":
        raise refuse("--out", "with --engine, name a folder for Parquet files")
    if os.path.exists(out):
        raise refuse("--out", f"{out} is there already; name a new folder")
    if is_read(out, table):
        raise refuse("--out", f"{out} is in {table}, which is read; name another")
    check_there(model)
    detector = load(model)
    if alpha is not None:
        detector.alpha = alpha
    names = tuple(prefix + name for name in ANSWERS)
    _score(detector, table, out, cluster, names)
    scored = parquet_dataset(out)
    n_rows = scored.count_rows()
    n_alarms = sum(int(batch.column(0).true_count) for batch in scored.to_batches(columns=[names[2]]))
    if as_json:
        answer = {"table": table, "model": str(model), "out": out, "rows": n_rows, "alarms": n_alarms}
        typer.echo(to_json({**answer, "alpha": detector.alpha}))
    elif not quiet:
        typer.echo(f"{counted(n_rows, 'row')}, {alarms(n_alarms)} at {percent(detector.alpha)}. Wrote {out}.")
    return n_alarms


def _score(detector: Any, table: str, out: str, cluster: Cluster, names: tuple[str, ...]) -> None:
    import pyarrow as pa

    from rankad.engines.partitions import Layout, parquet_dataset, read_parquet_batches, write_parquet
    from rankad.engines.scoring import SharedDetector, score_blocks

    schema = parquet_dataset(table).schema
    layout = Layout(tuple(schema.names))
    if cluster.engine == "local":
        for name, kind in zip(names, (pa.float64(), pa.float64(), pa.bool_()), strict=True):
            schema = schema.append(pa.field(name, kind))
        shared = SharedDetector(detector)
        write_parquet(score_blocks(shared, read_parquet_batches(table), layout, names), schema, out)
    elif cluster.engine == "dask":
        with _dask(cluster.address):
            import dask.dataframe

            from rankad.dask import score_frame

            scored = score_frame(detector, dask.dataframe.read_parquet(table), names)
            scored.to_parquet(out, write_index=False)
    else:
        with _spark(cluster.address) as session:
            from rankad.spark import RankADModel

            answers = dict(zip(("pValueCol", "scoreCol", "alarmCol"), names, strict=True))
            fitted = RankADModel(detector, layout)
            fitted._set(**answers)
            fitted.transform(session.read.parquet(_url(table))).write.parquet(_url(out))
