"""Spark: the model of one process on executors that are processes of their own, one of which is killed."""

import os
import signal
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest_engines import need

import rankad

need("pyspark", "spark", program="java")

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession

from rankad.spark import RankAD, RankADModel, TableDetector

pytestmark = pytest.mark.filterwarnings("ignore::Warning")

NAMES = ["x", "y", "z"]
SETTINGS = {"landmarks": 50}


@pytest.fixture(scope="module")
def spark():
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = os.pathsep.join(dict.fromkeys(path for path in sys.path if path))
    session = (
        # Two executors of one core and 700 MB.
        SparkSession.builder.master("local-cluster[2,1,700]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "700m")
        .config("spark.executor.memory", "700m")
        .config("spark.executorEnv.PYTHONPATH", paths)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(20_000, 3)) * [1, 5, 0.1]


@pytest.fixture(scope="module")
def local(rows):
    return rankad.RankAD(**SETTINGS).fit(rows)


@pytest.fixture(scope="module")
def frame(spark, rows):
    table = pd.DataFrame(rows, columns=NAMES).assign(number=np.arange(len(rows)))
    return spark.createDataFrame(table).repartition(3, "number").select("z", "number", "x", "y")


@pytest.fixture(scope="module")
def model(frame):
    return RankAD(inputCols=NAMES, idCol="number", settings=SETTINGS).fit(frame)


@pytest.fixture(scope="module")
def new():
    return np.random.default_rng(1).normal(size=(300, 3)) * [1, 6, 0.1]


def frame_of(spark, new):
    return spark.createDataFrame(pd.DataFrame(new, columns=NAMES).assign(at=range(len(new))))


def answers(scored, local, new):
    found = scored.orderBy("at").toPandas()
    np.testing.assert_array_equal(found["p_value"], local.p_values(new))
    np.testing.assert_allclose(found["score"], local.score_samples(new), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found["alarm"], local.predict(new) == -1)
    return found


def test_the_model_is_that_of_one_process(model, local):
    np.testing.assert_array_equal(model.to_local().calibration_.scores, local.calibration_.scores)
    np.testing.assert_array_equal(model.to_local().training_rows_, local.training_rows_)


def test_transform_adds_three_columns(spark, model, local, new):
    scored = model.transform(frame_of(spark, new))
    assert scored.columns == [*NAMES, "at", "p_value", "score", "alarm"]
    answers(scored, local, new)
    with pytest.raises(ValueError, match="a column 'score' already"):
        model.transform(scored.drop("p_value"))


def test_models_are_written_and_read(spark, model, local, new, tmp_path):
    path = f"file://{tmp_path}/model"
    for _ in range(2):
        model.write().overwrite().save(path)
    answers(RankADModel.load(path).transform(frame_of(spark, new)), local, new)


def test_a_pipeline_with_a_column_of_vectors(spark, rows, local, new, tmp_path):
    table = spark.createDataFrame(pd.DataFrame(rows, columns=NAMES)).coalesce(1)
    stages = [
        VectorAssembler(inputCols=NAMES, outputCol="vector"),
        RankAD(featuresCol="vector", settings=SETTINGS, pValueCol="p"),
    ]
    fitted = Pipeline(stages=stages).fit(table)
    fitted.write().overwrite().save(f"file://{tmp_path}/pipeline")
    scored = PipelineModel.load(f"file://{tmp_path}/pipeline").transform(frame_of(spark, new))
    assert "vector" in scored.columns
    answers(scored.withColumnRenamed("p", "p_value"), local, new)


def _fragile(marker, kill):
    def pass_on(batches):
        for batch in batches:
            if batch.num_rows and batch.column("number")[0].as_py() == 12_000:
                times = len(os.listdir(marker))
                open(f"{marker}/{times}", "w").close()
                if times == kill:
                    # The executor, a Java process, is the parent of the daemon that Python workers come from.
                    daemon = os.getppid()
                    with open(f"/proc/{daemon}/stat") as stat:
                        os.kill(int(stat.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
            yield batch

    return pass_on


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the executor in /proc")
def test_an_executor_that_is_killed_changes_nothing(spark, rows, local, new, tmp_path):
    table = pd.DataFrame(rows, columns=NAMES).assign(number=np.arange(len(rows)))
    whole = spark.createDataFrame(table[:12_000]).coalesce(1)
    rest = spark.createDataFrame(table[12_000:]).coalesce(1)
    for folder in ("fit", "score"):
        (tmp_path / folder).mkdir()
    fragile = rest.mapInArrow(_fragile(tmp_path / "fit", 2), rest.schema)
    model = RankAD(inputCols=NAMES, idCol="number", settings=SETTINGS).fit(whole.union(fragile))
    assert len(list((tmp_path / "fit").iterdir())) > 3
    np.testing.assert_array_equal(model.to_local().calibration_.scores, local.calibration_.scores)
    many = rest.mapInArrow(_fragile(tmp_path / "score", 0), rest.schema)
    scored = model.transform(many).orderBy("number").toPandas()
    assert len(list((tmp_path / "score").iterdir())) > 1
    np.testing.assert_array_equal(scored["p_value"], local.p_values(rows[12_000:]))


def test_a_stream_is_scored_and_goes_on_from_its_checkpoint(spark, model, local, new, tmp_path):
    def write(name, part):
        pd.DataFrame(part, columns=NAMES).assign(at=range(len(part))).to_parquet(tmp_path / "in" / name)

    def run():
        stream = spark.readStream.schema("x double, y double, z double, at long").parquet(f"{tmp_path}/in")
        query = (
            model.transform(stream)
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{tmp_path}/checkpoint")
            .trigger(availableNow=True)
            .start(f"{tmp_path}/out")
        )
        query.awaitTermination()

    (tmp_path / "in").mkdir()
    write("first.parquet", new)
    run()
    write("second.parquet", new[:10])
    run()
    scored = spark.read.parquet(f"{tmp_path}/out").toPandas()
    assert len(scored) == 310
    first = scored.drop_duplicates("at").sort_values("at")
    np.testing.assert_array_equal(first["p_value"], local.p_values(new))


def test_tables_with_categories_and_missing_values(spark, few_folds):
    rng = np.random.default_rng(0)
    mode = rng.choice(["eco", "full"], size=1_000)
    flow = np.where(rng.random(1_000) < 0.05, None, rng.normal(5, 1, 1_000) + (mode == "full"))
    table = pa.table({"flow": pa.array(flow, pa.float64()), "mode": mode, "number": np.arange(1_000)})
    local = rankad.TableDetector().fit(table.select(["flow", "mode"]))
    frame = spark.createDataFrame(table)
    model = TableDetector(idCol="number").fit(frame.repartition(3, "mode"))
    new = table.slice(0, 50).set_column(1, "mode", pa.array(["pink", *mode[1:50]]))
    scored = model.transform(spark.createDataFrame(new)).orderBy("number").toPandas()
    np.testing.assert_array_equal(scored["p_value"], local.p_values(new.select(["flow", "mode"])))
    assert scored["alarm"][0]


def test_params_are_those_of_spark_ml():
    estimator = RankAD(inputCols=NAMES, alpha=0.01)
    copied = estimator.copy({estimator.alpha: 0.2})
    assert (copied.getOrDefault("alpha"), estimator.getOrDefault("alpha")) == (0.2, 0.01)
    assert "false-alarm rate" in estimator.explainParam("alpha")
    with pytest.raises(TypeError):
        RankAD(alpha="high")
