"""Tables nobody vouches for, in the study of quality: samples, signs, bars, and a whole run on a tiny set."""

import json

import numpy as np
import pytest

from benchmarks.quality import comparison, one_table
from rankad.experiments.datasets import Dataset
from rankad.experiments.measures import auc
from rankad.fitting import sizes


def _dataset(n_nominal, n_anomalies, seed=0):
    """Standard normal rows, then anomalies scattered far outside."""
    rng = np.random.default_rng(seed)
    far = rng.choice([-1.0, 1.0], size=(n_anomalies, 3)) * rng.uniform(5, 9, size=(n_anomalies, 3))
    y = np.repeat([0, 1], [n_nominal, n_anomalies])
    return Dataset("made-up", np.vstack([rng.normal(size=(n_nominal, 3)), far]), y)


def test_a_sample_has_the_share_of_anomalies_of_its_set():
    dataset = _dataset(2_700, 300)
    table = one_table.sample(dataset, 1, 500)
    assert table.rows.shape == (500, 3)
    assert np.sum(~table.nominal) == 50
    where = [np.flatnonzero((row == dataset.X).all(axis=1))[0] for row in table.rows]
    assert len(set(where)) == 500
    np.testing.assert_array_equal(dataset.y[where] == 0, table.nominal)
    again, other = (one_table.sample(dataset, seed, 500) for seed in (1, 2))
    np.testing.assert_array_equal(again.rows, table.rows)
    assert (other.rows != table.rows).any()


def test_a_small_set_is_taken_whole_and_rare_anomalies_are_five():
    dataset = _dataset(95, 5)
    assert one_table.sample(dataset, 0, 100).rows is dataset.X
    assert np.sum(~one_table.sample(_dataset(9_990, 10), 0, 100).nominal) == 5
    assert np.sum(~one_table.sample(_dataset(9_998, 2), 0, 100).nominal) == 2


@pytest.mark.filterwarnings("ignore:Calibrated by a split")
@pytest.mark.parametrize("method", one_table.METHODS)
def test_scores_are_higher_for_nominal_rows(few_folds, method):
    dataset = _dataset(190, 10)
    scores = one_table.METHODS[method](dataset.X, 0)
    assert auc(dataset.y == 0, scores) > 0.95


def test_a_row_is_not_its_own_neighbour():
    rows = np.array([[0.0], [1.0], [3.0], [7.0]])
    spread = rows.std()
    np.testing.assert_allclose(
        one_table.METHODS["k-NN 10 %"](rows, 0), [-1 / spread, -1 / spread, -2 / spread, -4 / spread]
    )


@pytest.mark.parametrize(
    ("auc", "precision", "met"),
    [
        (0.9, 0.6, [True, True, True, True]),
        (0.82, 0.3, [True, False, False, False]),
        (0.7, 0.5, [False, False, True, True]),
    ],
)
def test_bars_are_judged(auc, precision, met):
    """Beside a peer at 0.85 and 0.45."""
    found = [
        comparison.Comparison(("a",), (one_table.OURS, "LOF"), np.array([[ours, theirs]]))
        for ours, theirs in ((auc, 0.85), (precision, 0.45))
    ]
    assert [bar.met for bar in one_table.judge(*found)] == met


@pytest.mark.filterwarnings("ignore:Calibrated by a split")
def test_a_quick_run_writes_its_page(tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    made = _dataset(110, 10)
    np.savez(data / "1_tiny.npz", X=made.X, y=made.y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "CALIBRATION_FOLDS", 5)
        one_table.main(["--out", str(tmp_path), "--data", str(data), "--quick", "--jobs", "1"])
    told = json.loads((tmp_path / "one_table.json").read_text())
    assert {record["method"] for record in told["records"]} == set(one_table.METHODS)
    ours = next(record for record in told["records"] if record["method"] == one_table.OURS)
    assert ours["auc"] > 0.95
    assert (ours["n_rows"], ours["n_anomalies"]) == (120, 10)
    page = (tmp_path / "one_table.md").read_text()
    for said in ("# One table", "nobody vouches for", "## AUC", "## Average precision", "Quick look"):
        assert said in page
    assert "Mean AUC" in capsys.readouterr().out
