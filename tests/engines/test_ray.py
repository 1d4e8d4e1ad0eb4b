"""Ray Data: one model for each actor."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rankad
from rankad.ray import Scorer

NAMES = ["x", "y"]


@pytest.fixture(scope="module")
def detector():
    rows = np.random.default_rng(0).normal(size=(300, 2))
    return rankad.RankAD(0.05, landmarks=20, near_field=False, n_components=0).fit(
        pd.DataFrame(rows, columns=NAMES)
    )


@pytest.fixture(scope="module")
def new():
    return pd.DataFrame(np.random.default_rng(1).normal(size=(90, 2)) * 2, columns=NAMES)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "dict"])
def test_batches_of_any_kind(detector, new, tmp_path, kind):
    detector.save(tmp_path / "model.rankad")
    batch = {"arrow": pa.Table.from_pandas(new), "pandas": new, "dict": new.to_dict("series")}[kind]
    scored = Scorer(tmp_path / "model.rankad", alpha=0.2, names=("p", "s", "a"))(batch)
    np.testing.assert_array_equal(scored.column("p").to_numpy(), detector.p_values(new))
    np.testing.assert_array_equal(scored.column("a").to_numpy(), detector.p_values(new) <= 0.2)


@pytest.mark.filterwarnings("ignore::Warning")
def test_a_ray_dataset(detector, new, tmp_path):
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'rankad[ray]'")
    data = pytest.importorskip("ray.data", reason="ray[data] is not installed: pip install 'rankad[ray]'")
    detector.save(tmp_path / "model.rankad")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        scored = data.from_pandas([new[:40], new[40:]]).map_batches(
            Scorer, fn_constructor_args=(tmp_path / "model.rankad",), batch_format="pyarrow", concurrency=1
        )
        rows = scored.to_pandas()
    finally:
        ray.shutdown()
    np.testing.assert_array_equal(np.sort(rows["p_value"]), np.sort(detector.p_values(new)))
