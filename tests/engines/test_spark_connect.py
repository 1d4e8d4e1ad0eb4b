"""Spark Connect: a client without a JVM, in a process of its own, fits, scores, saves and loads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest_engines import need

need("pyspark", "spark", program="java")
need("grpc_status", "spark")

_CLIENT = """
import json, sys
import numpy as np, pandas as pd
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession
import rankad
from rankad.spark import RankAD, RankADModel, TableDetector, session

folder = sys.argv[1]
SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark = SparkSession.active()
rows = np.random.default_rng(0).normal(size=(2_000, 3))
names, settings = ["x", "y", "z"], {"landmarks": 50}
frame = spark.createDataFrame(pd.DataFrame(rows, columns=names).assign(number=np.arange(len(rows))))
expected = rankad.RankAD(**settings).fit(rows).p_values(rows)

def same(model):
    scored = model.transform(frame).orderBy("number").select("p_value").toPandas()["p_value"]
    return bool((scored.to_numpy() == expected).all())

estimator = RankAD(inputCols=names, idCol="number", settings=settings)
fitted = estimator.fit(frame)
for each, name in ((estimator, "estimator"), (fitted, "model")):
    for _ in range(2):
        each.write().overwrite().save(f"{folder}/{name}")
steps = [VectorAssembler(inputCols=names, outputCol="features"),
         RankAD(featuresCol="features", idCol="number", settings=settings)]
table = TableDetector(inputCols=names, idCol="number").fit(frame)
print(json.dumps({
    "session": type(spark).__module__,
    "fitted": same(fitted),
    "loaded": same(RankADModel.load(f"{folder}/model")),
    "estimator loaded": RankAD.load(f"{folder}/estimator").getInputCols() == names,
    "pipeline": same(Pipeline(stages=steps).fit(frame)),
    "table": int(table.transform(frame).count()),
}))
"""


def test_spark_connect_fits_scores_saves_and_loads(tmp_path: Path) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CLIENT, tmp_path.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    told = json.loads(run.stdout.splitlines()[-1])
    assert told.pop("session").startswith("pyspark.sql.connect")
    assert told.pop("table") == 2_000
    assert all(told.values()), told


@pytest.mark.parametrize("address", ["sc://localhost:15002"])
def test_an_address_of_spark_connect_asks_for_a_remote_session(monkeypatch, address: str) -> None:
    from pyspark.sql import SparkSession

    from rankad.spark import session

    asked = {}
    monkeypatch.setattr(
        SparkSession.Builder, "remote", lambda self, url: asked.setdefault("url", url) and self
    )
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda self: "session")
    assert session(address) == "session"
    assert asked == {"url": address}
