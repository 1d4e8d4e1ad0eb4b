"""``rankad fit`` and ``rankad score`` with ``--engine``: Parquet folders of any size."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rankad.cli.whole_table import WholeTable
    from rankad.detectors.table import TableDetector
    from rankad.engines.partitions import Partitions

__all__ = ["columns_of", "fit_by_engine", "score_command"]


def columns_of(table: str) -> WholeTable:
    """Return a table without its rows: column names are all that options are read with."""
    import polars as pl

    from rankad.cli.whole_table import WholeTable
    from rankad.engines.partitions import parquet_dataset

    names = parquet_dataset(table).schema.names
    return WholeTable(pl.DataFrame(schema=dict.fromkeys(names, pl.Null)), True, table, "parquet", None)


def fit_by_engine(
    detector: TableDetector, table: str, engine: str, address: str | None
) -> tuple[TableDetector, int]:
    """Fit on a Parquet folder, and return the fitted detector and the number of rows."""
    from rankad.engines.fitting import fit_table
    from rankad.engines.partitions import Layout, parquet_dataset
    from rankad.engines.rows import count_rows

    with _partitions(table, engine, address) as partitions:
        layout = Layout(tuple(parquet_dataset(table).schema.names))
        return fit_table(detector, partitions, layout), count_rows(partitions, layout)[0]


@contextmanager
def _partitions(table: str, engine: str, address: str | None) -> Iterator[Partitions]:
    if engine == "local":
        from rankad.engines.partitions import parquet_partitions

        yield parquet_partitions(table)
    elif engine == "dask":
        with _dask(address):
            import dask.dataframe

            from rankad.dask import DaskPartitions

            yield DaskPartitions(dask.dataframe.read_parquet(table), None)
    else:
        with _spark(address) as session:
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
        raise typer.BadParameter(
            "Spark needs Java 17 or 21, which is not installed (Debian: apt-get install "
            "openjdk-17-jre-headless)",
            param_hint="--engine",
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
    engine: str,
    address: str | None,
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

    if refused:
        raise typer.BadParameter("does not go with --engine", param_hint=refused[0])
    if out is None or out == "-":
        raise typer.BadParameter("with --engine, name a folder for Parquet files", param_hint="--out")
    if os.path.exists(out):
        raise typer.BadParameter(f"{out} is there already; name a new folder", param_hint="--out")
    detector = load(model)
    if alpha is not None:
        detector.alpha = alpha
    names = tuple(prefix + name for name in ANSWERS)
    _score(detector, table, out, engine, address, names)
    scored = parquet_dataset(out)
    n_rows = scored.count_rows()
    n_alarms = sum(int(batch.column(0).true_count) for batch in scored.to_batches(columns=[names[2]]))
    if as_json:
        answer = {"table": table, "model": str(model), "out": out, "rows": n_rows, "alarms": n_alarms}
        typer.echo(to_json({**answer, "alpha": detector.alpha}))
    elif not quiet:
        typer.echo(f"{counted(n_rows, 'row')}, {alarms(n_alarms)} at {percent(detector.alpha)}. Wrote {out}.")
    return n_alarms


def _score(
    detector: Any, table: str, out: str, engine: str, address: str | None, names: tuple[str, ...]
) -> None:
    import pyarrow as pa

    from rankad.engines.partitions import Layout, parquet_dataset, read_parquet_batches, write_parquet
    from rankad.engines.scoring import SharedDetector, score_blocks

    schema = parquet_dataset(table).schema
    layout = Layout(tuple(schema.names))
    if engine == "local":
        for name, kind in zip(names, (pa.float64(), pa.float64(), pa.bool_()), strict=True):
            schema = schema.append(pa.field(name, kind))
        shared = SharedDetector(detector)
        write_parquet(score_blocks(shared, read_parquet_batches(table), layout, names), schema, out)
    elif engine == "dask":
        with _dask(address):
            import dask.dataframe

            from rankad.dask import score_frame

            scored = score_frame(detector, dask.dataframe.read_parquet(table), names)
            scored.to_parquet(out, write_index=False)
    else:
        with _spark(address) as session:
            from rankad.spark import RankADModel

            answers = dict(zip(("pValueCol", "scoreCol", "alarmCol"), names, strict=True))
            fitted = RankADModel(detector, layout)
            fitted._set(**answers)
            fitted.transform(session.read.parquet(_url(table))).write.parquet(_url(out))
