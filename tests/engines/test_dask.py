"""Dask: the model of one process on a cluster of real worker processes, one of which is killed."""

import os
import signal

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from conftest_engines import need
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rankad

need("distributed", "dask")

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster

from rankad.dask import RankAD, TableDetector

pytestmark = pytest.mark.filterwarnings("ignore::Warning:distributed", "ignore::ResourceWarning")

NAMES = ["x", "y", "z"]
PARAMS = {"landmarks": 50}


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(20_000, 3)) * [1, 5, 0.1]


@pytest.fixture(scope="module")
def new():
    return np.random.default_rng(1).normal(size=(2_000, 3)) * [1, 6, 0.1]


@pytest.fixture(scope="module")
def local(rows):
    return rankad.RankAD(**PARAMS).fit(rows)


def assert_same(found, local):
    np.testing.assert_array_equal(found.calibration_.scores, local.calibration_.scores)
    np.testing.assert_array_equal(found.training_rows_, local.training_rows_)


def test_arrays_have_the_model_and_the_answers_of_one_process(client, rows, new, local, tmp_path):
    X = da.from_array(rows, chunks=((1, 0, 15_000, 4_999), 2))
    detector = RankAD(client=client, **PARAMS).fit(X)
    assert_same(detector.to_local(), local)
    assert type(detector.to_local()) is rankad.RankAD
    Y = da.from_array(new, chunks=(700, 3))
    lazy = detector.p_values(Y)
    assert isinstance(lazy, da.Array)
    assert lazy.chunks == ((700, 700, 600),)
    np.testing.assert_array_equal(lazy.compute(), local.p_values(new))
    np.testing.assert_array_equal(detector.score_samples(Y).compute(), local.score_samples(new))
    np.testing.assert_array_equal(detector.predict(Y).compute(), local.predict(new))
    files = []
    for each in (detector.to_local(), local):
        each.save(tmp_path / "model.rankad")
        files.append(safetensors.numpy.load_file(tmp_path / "model.rankad"))
    assert {name: array.tobytes() for name, array in files[0].items()} == {
        name: array.tobytes() for name, array in files[1].items()
    }


def _part(frame, marker, kill):
    # Kills its worker when it is computed for the kill-th time.
    times = len(list(marker.iterdir()))
    (marker / str(times)).touch()
    if times == kill:
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


def fragile(frame, marker, kill):
    marker.mkdir()
    parts = [dask.delayed(frame[:12_000]), dask.delayed(_part)(frame[12_000:], marker, kill)]
    return dd.from_delayed(parts, meta=frame[:0], verify_meta=False)


@pytest.mark.parametrize("kill", [1, 3])
def test_a_worker_that_is_killed_changes_nothing(client, rows, new, local, tmp_path, kill):
    frame = pd.DataFrame(rows, columns=NAMES)
    detector = RankAD(**PARAMS).fit(fragile(frame, tmp_path / "fit", kill))
    assert len(list((tmp_path / "fit").iterdir())) > kill + 1
    assert_same(detector.to_local(), local)
    many = pd.DataFrame(np.tile(new, (8, 1)), columns=NAMES)
    lazy = detector.p_values(fragile(many[NAMES[::-1]], tmp_path / "score", 0))
    assert isinstance(lazy, dd.Series)
    scored = lazy.compute()
    assert len(list((tmp_path / "score").iterdir())) == 2
    np.testing.assert_array_equal(scored, np.tile(local.p_values(new), 8))


def test_tables_with_categories_and_missing_values(client, few_folds):
    rng = np.random.default_rng(0)
    mode = rng.choice(["eco", "full"], size=1_000)
    flow = np.where(rng.random(1_000) < 0.05, np.nan, rng.normal(5, 1, 1_000) + (mode == "full"))
    frame = pd.DataFrame({"flow": flow, "mode": mode, "number": np.arange(1_000)})
    local = rankad.TableDetector().fit(frame[["flow", "mode"]])
    shuffled = dd.from_pandas(frame.sample(frac=1, random_state=0), npartitions=3, sort=False)
    detector = TableDetector(client=client).fit(shuffled, row_number="number")
    new = frame[:50].assign(mode=["pink", *mode[1:50]])
    scored = detector.score_frame(dd.from_pandas(new[["mode", "flow"]], npartitions=2)).compute()
    assert scored.columns.tolist() == ["mode", "flow", "p_value", "score", "alarm"]
    np.testing.assert_array_equal(scored["p_value"], local.p_values(new[["flow", "mode"]]))
    assert scored["alarm"].iloc[0]


def test_without_a_cluster_threads_do_the_work(rows, local):
    with dask.config.set(scheduler="threads"):
        detector = RankAD(**PARAMS).fit(da.from_array(rows, chunks=(6_000, 3)))
    assert_same(detector.to_local(), local)


def test_parameters_are_those_of_the_detector():
    detector = RankAD(0.01, landmarks=9)
    assert detector.get_params()["landmarks"] == 9
    assert clone(detector).set_params(alpha=0.2, client=None).get_params()["alpha"] == 0.2
    assert repr(detector) == "rankad.dask.RankAD(alpha=0.01, landmarks=9)"
    with pytest.raises(NotFittedError):
        detector.p_values(da.zeros((3, 2)))
    with pytest.raises(TypeError, match=r"use rankad\.RankAD"):
        detector.fit(np.zeros((20, 2)))


def test_tables_are_dask_frames_and_row_numbers_are_columns(new):
    array = da.from_array(new)
    with pytest.raises(TypeError, match="X must be a Dask DataFrame, got Array; name its columns with"):
        TableDetector().fit(array)
    with pytest.raises(TypeError, match=r"got ndarray; for a table in memory use rankad\.TableDetector"):
        TableDetector().fit(new)
    frame = dd.from_dask_array(array, columns=NAMES)
    with pytest.raises(ValueError, match="row_number must name a column of X, got 'n'; it has 'x', 'y', 'z'"):
        RankAD().fit(frame, row_number="n")
    with pytest.raises(ValueError, match=r"rows and columns, got one of shape \(2000,\)"):
        RankAD().fit(array[:, 0])
