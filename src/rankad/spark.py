"""Detectors in Spark ML's conventions: estimators with params, models with `transform`, pipelines, streams.

Needs the extra ``spark`` (PySpark 4) and Java 17 or later on the machines that run Spark. Works with classic
sessions and with Spark Connect: rows travel as Arrow batches (`mapInArrow`).
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

import rankad.detectors
import rankad.detectors.table
from rankad.engines.fitting import MAX_ROWS, MAX_TABLE_ROWS, fit_rank_ad, fit_table
from rankad.engines.partitions import Layout, Work
from rankad.engines.scoring import SharedDetector, score_blocks
from rankad.modelfile import load

try:
    from pyspark import TaskContext
    from pyspark.ml import Estimator, Model
    from pyspark.ml.functions import vector_to_array
    from pyspark.ml.param import Param, Params, TypeConverters
    from pyspark.ml.param.shared import HasFeaturesCol, HasInputCols
    from pyspark.ml.util import (
        DefaultParamsReadable,
        DefaultParamsReader,
        DefaultParamsWritable,
        DefaultParamsWriter,
        MLReadable,
        MLReader,
        MLWritable,
        MLWriter,
    )
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import BooleanType, DoubleType, StructField, StructType
except ImportError as error:
    raise ImportError(f"{error}; run pip install 'rankad[spark]' to fit and score with Spark") from error

__all__ = [
    "RankAD",
    "RankADModel",
    "SparkPartitions",
    "TableDetector",
    "TableDetectorModel",
    "session",
]

T = TypeVar("T")

# Vectors as arrays, beside the columns of the user.
_VECTOR = "__rankad_vector"
# A result is cut into rows of so many bytes: Arrow cannot hold 2 GiB in one.
_PIECE = 2**26


class SparkPartitions:
    """The partitions of a Spark DataFrame, in the order in which Spark numbers them."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def map(self, work: Work[T]) -> Iterator[tuple[int, T]]:
        """Run `work` on every partition, where it is."""
        schema = "partition int, piece int, result binary"
        table = self._frame.mapInArrow(partial(_run, work), schema).toArrow()
        numbers, results = table.column("partition").to_pylist(), table.column("result")
        pieces: dict[int, list[Any]] = {}
        for at in sorted(
            range(len(numbers)), key=lambda at: (numbers[at], table.column("piece")[at].as_py())
        ):
            pieces.setdefault(numbers[at], []).append(results[at].as_buffer())
        for number, parts in sorted(pieces.items()):
            yield number, pickle.loads(parts[0] if len(parts) == 1 else b"".join(parts))


def _run(work: Work[Any], blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work on one partition and return the pickled result in pieces."""
    number = TaskContext.get().partitionId()
    result = pickle.dumps(work(number, blocks), protocol=5)
    for piece, begin in enumerate(range(0, len(result), _PIECE)):
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([number], pa.int32()),
                pa.array([piece], pa.int32()),
                pa.array([result[begin : begin + _PIECE]], pa.binary()),
            ],
            ["partition", "piece", "result"],
        )


class _OutputColumns(Params):
    """The names of the columns that `transform` adds."""

    pValueCol: Param[str] = Param(Params._dummy(), "pValueCol", "column of p-values", TypeConverters.toString)
    scoreCol: Param[str] = Param(
        Params._dummy(), "scoreCol", "column of scores, higher is more normal", TypeConverters.toString
    )
    alarmCol: Param[str] = Param(
        Params._dummy(), "alarmCol", "column that is true for alarms", TypeConverters.toString
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(pValueCol="p_value", scoreCol="score", alarmCol="alarm")

    def _answer_columns(self) -> tuple[str, str, str]:
        return tuple(self.getOrDefault(name) for name in ("pValueCol", "scoreCol", "alarmCol"))


class _FitParams(_OutputColumns, HasInputCols):
    """What both estimators are told."""

    idCol: Param[str] = Param(
        Params._dummy(),
        "idCol",
        "column of integers that numbers all rows from 0, so that the model does not depend on the order of "
        "rows; by default rows are numbered in the order of partitions",
        TypeConverters.toString,
    )
    alpha: Param[float] = Param(
        Params._dummy(), "alpha", "false-alarm rate asked for", TypeConverters.toFloat
    )
    settings: Param[dict[str, Any]] = Param(
        Params._dummy(), "settings", "other parameters of the detector, by name"
    )
    maxRows: Param[int] = Param(
        Params._dummy(),
        "maxRows",
        "of more rows, a uniform sample of about so many is learned from",
        TypeConverters.toInt,
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(alpha=0.05, settings={})

    def _number(self) -> str | None:
        return self.getOrDefault("idCol") if self.isDefined("idCol") else None

    def _columns(self, frame: DataFrame) -> tuple[str, ...]:
        if self.isDefined("inputCols"):
            return tuple(self.getInputCols())
        return tuple(name for name in frame.columns if name != self._number())

    def _selected(self, frame: DataFrame, columns: tuple[str, ...]) -> DataFrame:
        number = self._number()
        return frame.select(*columns, *([] if number is None else [number]))


class _DetectorModel(Model, _OutputColumns, MLReadable, MLWritable):
    """A fitted detector as a Spark ML model."""

    def __init__(self, detector: Any = None, layout: Layout | None = None) -> None:
        super().__init__()
        self._detector, self._layout = detector, layout or Layout()

    def to_local(self) -> Any:
        """Return the fitted detector as an ordinary one, which needs no Spark."""
        return self._detector

    def _transform(self, dataset: DataFrame) -> DataFrame:
        names = self._answer_columns()
        taken = [name for name in names if name in dataset.columns]
        if taken:
            raise ValueError(
                f"the DataFrame has a column {taken[0]!r} already; choose other names with pValueCol, "
                f"scoreCol and alarmCol."
            )
        kinds = (DoubleType(), DoubleType(), BooleanType())
        fields = [StructField(name, kind, False) for name, kind in zip(names, kinds, strict=True)]
        layout, frame = self._layout, dataset
        schema = StructType([*dataset.schema.fields, *fields])
        if layout.vector is not None:
            frame = dataset.withColumn(_VECTOR, vector_to_array(dataset[layout.vector]))
            layout = layout._replace(vector=_VECTOR)
        shared = SharedDetector(self._detector)
        return frame.mapInArrow(partial(_score, shared, layout, names), schema)

    def write(self) -> MLWriter:
        """Return a writer, as in ``model.write().overwrite().save(path)``."""
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        """Return a reader; ``RankADModel.load(path)`` is short for it."""
        return _ModelReader(cls)


def _score(
    shared: SharedDetector, layout: Layout, names: tuple[str, ...], blocks: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for block in score_blocks(shared, blocks, layout, names):
        yield block.drop_columns([_VECTOR]) if layout.vector == _VECTOR else block


class _Writer(MLWriter):
    """A writer that can overwrite with Spark Connect, too, which has no way to remove a folder."""

    def _handleOverwrite(self, path: str) -> None:
        if type(self.sparkSession).__module__.startswith("pyspark.sql.connect"):
            # An empty table takes the place of whatever is there.
            self.sparkSession.createDataFrame([], "nothing string").write.mode("overwrite").text(path)
        else:
            super()._handleOverwrite(path)


class _ParamsWriter(_Writer, DefaultParamsWriter):
    """Writes the params of an estimator."""


class _ModelWriter(_Writer):
    """Writes params as Spark ML does, and the model file as a table of one cell."""

    def __init__(self, instance: _DetectorModel) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        """Write to a path that Spark can write to."""
        layout = self._instance._layout
        DefaultParamsWriter.saveMetadata(
            self._instance, path, self.sparkSession, extraMetadata={"layout": layout._asdict()}
        )
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.rankad")
            self._instance.to_local().save(file)
            with open(file, "rb") as stream:
                content = stream.read()
        pieces = [
            (at, content[begin : begin + _PIECE]) for at, begin in enumerate(range(0, len(content), _PIECE))
        ]
        frame = self.sparkSession.createDataFrame(pieces, "piece int, content binary")
        frame.coalesce(1).write.parquet(os.path.join(path, "data"))


class _ModelReader(MLReader[Any]):
    """Reads what `_ModelWriter` has written."""

    def __init__(self, kind: type[_DetectorModel]) -> None:
        super().__init__()
        self._kind = kind

    def load(self, path: str) -> _DetectorModel:
        """Read from a path that Spark can read."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        pieces = self.sparkSession.read.parquet(os.path.join(path, "data")).orderBy("piece").collect()
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.rankad")
            with open(file, "wb") as stream:
                stream.writelines(bytes(piece.content) for piece in pieces)
            detector = load(file)
        stored = metadata["layout"]
        columns = None if stored["columns"] is None else tuple(stored["columns"])
        model = self._kind(detector, Layout(columns, stored["vector"], stored["number"]))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


class RankADModel(_DetectorModel):
    """A fitted `RankAD`; ``transform(df)`` adds the columns p_value, score and alarm, to streams as well."""


class TableDetectorModel(_DetectorModel):
    """A fitted `TableDetector`; ``transform(df)`` adds the columns p_value, score and alarm."""


class _DetectorEstimator(Estimator[Any], _FitParams, DefaultParamsReadable[Any], DefaultParamsWritable):
    """What both estimators share."""

    _local: Callable[..., Any]
    _model: type[_DetectorModel]

    def write(self) -> MLWriter:
        """Return a writer, as in ``RankAD(...).write().overwrite().save(path)``."""
        return _ParamsWriter(self)

    def _fitted(self, detector: Any, layout: Layout) -> _DetectorModel:
        model = self._model(detector, layout)
        for name in ("pValueCol", "scoreCol", "alarmCol"):
            model.set(model.getParam(name), self.getOrDefault(name))
        model._resetUid(self.uid)
        return model


class RankAD(_DetectorEstimator, HasFeaturesCol):
    """`rankad.RankAD` as a Spark ML estimator.

    The model is that of ``rankad.RankAD`` fitted on the same rows in the order of their numbers, whatever the
    partitions and the executors. Rows are numbered by `idCol`, or else in the order of partitions, which must
    then be the same each time the rows are computed: cache the DataFrame if it comes from a shuffle.

    Parameters
    ----------
    inputCols : list of str, optional
        Columns of numbers.
    featuresCol : str, optional
        A column of vectors, in the place of `inputCols`.
    idCol : str, optional
    alpha : float, default=0.05
    settings : dict, optional
        Other parameters of `rankad.RankAD` by name, as ``{"landmarks": 500}``.
    maxRows : int, default=2**25
    pValueCol, scoreCol, alarmCol : str
        Names of the columns that `transform` adds.

    Examples
    --------
    >>> RankAD(inputCols=["flow", "heat"], alpha=0.01).getInputCols()
    ['flow', 'heat']
    """

    _local = rankad.detectors.RankAD
    _model = RankADModel

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self._setDefault(maxRows=MAX_ROWS)
        self._set(**params)

    def _fit(self, dataset: DataFrame) -> RankADModel:
        detector = self._local(alpha=self.getOrDefault("alpha"), **self.getOrDefault("settings"))
        if self.isSet("featuresCol"):
            vector = self.getFeaturesCol()
            frame = self._selected(dataset.withColumn(_VECTOR, vector_to_array(dataset[vector])), (_VECTOR,))
            layout = Layout(vector=_VECTOR, number=self._number())
            kept = Layout(vector=vector)
        else:
            columns = self._columns(dataset)
            frame, layout = self._selected(dataset, columns), Layout(columns, number=self._number())
            kept = Layout(columns)
        fitted = fit_rank_ad(detector, SparkPartitions(frame), layout, max_rows=self.getOrDefault("maxRows"))
        return self._fitted(fitted, kept)


class TableDetector(_DetectorEstimator):
    """`rankad.TableDetector` as a Spark ML estimator: categories, times and missing values as they are.

    Up to `maxRows` rows are gathered and learned from. Of more, a uniform sample of about so many is, and all
    others calibrate.

    Parameters
    ----------
    inputCols : list of str, optional
        By default all columns but `idCol`.
    idCol : str, optional
        As for `RankAD`.
    alpha : float, default=0.05
    settings : dict, optional
        Other parameters of `rankad.TableDetector` by name, as ``{"categories": ["zip"]}``.
    maxRows : int, default=1000000
    pValueCol, scoreCol, alarmCol : str
        Names of the columns that `transform` adds.
    """

    _local = rankad.detectors.table.TableDetector
    _model = TableDetectorModel

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self._setDefault(maxRows=MAX_TABLE_ROWS)
        self._set(**params)

    def _fit(self, dataset: DataFrame) -> TableDetectorModel:
        detector = self._local(alpha=self.getOrDefault("alpha"), **self.getOrDefault("settings"))
        columns = self._columns(dataset)
        fitted = fit_table(
            detector,
            SparkPartitions(self._selected(dataset, columns)),
            columns=columns,
            number=self._number(),
            max_rows=self.getOrDefault("maxRows"),
        )
        return self._fitted(fitted, Layout(columns))


def session(master: str | None = None, **options: str) -> SparkSession:
    """Return a Spark session; on this machine's cores unless a master is named.

    Parameters
    ----------
    master : str, optional
        As "spark://host:7077", "yarn", or "sc://host" for Spark Connect.
    **options : str
        Spark options, with _ for a dot.
    """
    builder = SparkSession.builder.appName("rankad")
    builder = (
        builder.remote(master)
        if master and master.startswith("sc://")
        else builder.master(master or "local[*]")
    )
    for name, value in options.items():
        builder = builder.config(name.replace("_", "."), value)
    return builder.getOrCreate()
