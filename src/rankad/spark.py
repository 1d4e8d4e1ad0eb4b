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
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

try:
    import pyarrow as pa
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

import rankad.detectors
import rankad.detectors.table
from rankad.engines.fitting import MAX_ROWS, MAX_TABLE_ROWS, fit_rank_ad, fit_table
from rankad.engines.partitions import Layout, Work
from rankad.engines.scoring import SharedDetector, score_blocks
from rankad.modelfile import load

__all__ = ["RankAD", "RankADModel", "SparkPartitions", "TableDetector", "TableDetectorModel", "session"]

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
        numbers, pieces, results = self._frame.mapInArrow(partial(_run, work), schema).toArrow().columns
        # Numbers are sorted and the results left where they are: these may be gigabytes.
        order = sorted(zip(numbers.to_pylist(), pieces.to_pylist(), range(len(results)), strict=True))
        for number, group in groupby(order, key=itemgetter(0)):
            parts = [results[at].as_buffer() for _, _, at in group]
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


def _param(name: str, doc: str, kind: Callable[[Any], Any] = TypeConverters.identity) -> Param[Any]:
    return Param(Params._dummy(), name, doc, kind)


class _OutputColumns(Params):
    """The names of the columns that `transform` adds."""

    pValueCol = _param("pValueCol", "column of p-values", TypeConverters.toString)
    scoreCol = _param("scoreCol", "column of scores, higher is more normal", TypeConverters.toString)
    alarmCol = _param("alarmCol", "column that is true for alarms", TypeConverters.toString)

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(pValueCol="p_value", scoreCol="score", alarmCol="alarm")

    def _answer_columns(self) -> tuple[str, str, str]:
        return tuple(self.getOrDefault(name) for name in ("pValueCol", "scoreCol", "alarmCol"))


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


class _Writer(DefaultParamsWriter):
    """A writer that can overwrite with Spark Connect, too, which has no way to remove a folder."""

    def _handleOverwrite(self, path: str) -> None:
        if type(self.sparkSession).__module__.startswith("pyspark.sql.connect"):
            # An empty table takes the place of whatever is there.
            self.sparkSession.createDataFrame([], "nothing string").write.mode("overwrite").text(path)
        else:
            super()._handleOverwrite(path)


class _ModelWriter(_Writer):
    """Writes params as Spark ML does, and the model file as a table of one cell."""

    def saveImpl(self, path: str) -> None:
        """Write to a path that Spark can write to."""
        layout = {"layout": self.instance._layout._asdict()}
        self.saveMetadata(self.instance, path, self.sparkSession, extraMetadata=layout)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.rankad")
            self.instance.to_local().save(file)
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
        layout = Layout(**metadata["layout"])
        if layout.columns is not None:
            layout = layout._replace(columns=tuple(layout.columns))
        model = self._kind(detector, layout)
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


class RankADModel(_DetectorModel):
    """A fitted `RankAD`; ``transform(df)`` adds the columns p_value, score and alarm, to streams as well."""


class TableDetectorModel(_DetectorModel):
    """A fitted `TableDetector`; ``transform(df)`` adds the columns p_value, score and alarm."""


class _DetectorEstimator(
    Estimator[Any], _OutputColumns, HasInputCols, DefaultParamsReadable[Any], DefaultParamsWritable
):
    """What both estimators share."""

    idCol = _param(
        "idCol",
        "column of integers that numbers all rows from 0, so that the model does not depend on the order of "
        "rows; by default rows are numbered in the order of partitions",
        TypeConverters.toString,
    )
    alpha = _param("alpha", "false-alarm rate asked for", TypeConverters.toFloat)
    settings = _param("settings", "other parameters of the detector, by name")
    maxRows = _param(
        "maxRows", "of more rows, a uniform sample of about so many is learned from", TypeConverters.toInt
    )
    _local: Callable[..., Any]
    _model: type[_DetectorModel]
    _fit_local: Callable[..., Any]
    _max_rows: int

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self._setDefault(alpha=0.05, settings={}, maxRows=self._max_rows)
        self._set(**params)

    def write(self) -> MLWriter:
        """Return a writer, as in ``RankAD(...).write().overwrite().save(path)``."""
        return _Writer(self)

    def _number(self) -> str | None:
        return self.getOrDefault("idCol") if self.isDefined("idCol") else None

    def _fit(self, dataset: DataFrame) -> _DetectorModel:
        number = self._number()
        if self.isDefined("inputCols"):
            columns = tuple(self.getInputCols())
        else:
            columns = tuple(name for name in dataset.columns if name != number)
        return self._fit_on(dataset, Layout(columns, number=number), Layout(columns))

    def _fit_on(self, frame: DataFrame, layout: Layout, kept: Layout) -> _DetectorModel:
        """Fit on a frame of this layout; `kept` is that of the frames to come."""
        names = [*(layout.columns or [layout.vector]), *([] if layout.number is None else [layout.number])]
        detector = self._local(alpha=self.getOrDefault("alpha"), **self.getOrDefault("settings"))
        partitions = SparkPartitions(frame.select(*names))
        fitted = self._fit_local(detector, partitions, layout, max_rows=self.getOrDefault("maxRows"))
        model = self._model(fitted, kept)
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

    _local, _model, _max_rows = rankad.detectors.RankAD, RankADModel, MAX_ROWS
    _fit_local = staticmethod(fit_rank_ad)

    def _fit(self, dataset: DataFrame) -> _DetectorModel:
        if not self.isSet("featuresCol"):
            return super()._fit(dataset)
        vector, number = self.getFeaturesCol(), self._number()
        frame = dataset.withColumn(_VECTOR, vector_to_array(dataset[vector]))
        return self._fit_on(frame, Layout(vector=_VECTOR, number=number), Layout(vector=vector))


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

    _local, _model, _max_rows = rankad.detectors.table.TableDetector, TableDetectorModel, MAX_TABLE_ROWS
    _fit_local = staticmethod(fit_table)


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
