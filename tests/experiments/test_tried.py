"""What no choice of scaling and bandwidth reaches."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from rankad import RankAD
from rankad.experiments import tried
from rankad.experiments.cells import Settings
from rankad.experiments.datasets import Dataset, draw
from rankad.fitting.plan import AUTO_MULTIPLES, AUTO_SCALINGS

SIZE = {"n_train": 80, "max_nominal": 60, "max_anomalous": None}


def clouds(name="smtp", data=None):
    rng = np.random.default_rng(2)
    rows = np.vstack([rng.normal(size=(200, 2)), rng.normal(2.5, 1.0, size=(40, 2))]) * [1.0, 30.0]
    return Dataset(name, rows, np.repeat([0, 1], [200, 40]))


def test_every_scaling_and_bandwidth_of_the_default_is_tried_in_every_run():
    found = tried.cells(Settings(), SIZE)
    keys = [(c.key["dataset"], c.key["scaling"], c.key["multiple"], c.key["run"]) for c in found]
    assert len(set(keys)) == len(keys) == 5 * len(tried.SETS) * len(AUTO_SCALINGS) * len(AUTO_MULTIPLES)
    assert {key[1] for key in keys} == {"standard", "robust", None}
    quick = tried.cells(Settings(quick=True), SIZE)
    assert len(quick) == len(AUTO_SCALINGS) * len(AUTO_MULTIPLES)


def test_a_choice_is_measured_on_the_rows_of_table_3(monkeypatch):
    monkeypatch.setattr(tried, "load", clouds)
    found = tried.measure("smtp", None, 2.0, 5, None, SIZE)
    split = draw(clouds(), 5, SIZE)
    # Cross-fit as by default: the calibration does not change the scores of RankSVM alone.
    alone = {"near_field": False, "n_components": 0}
    default = RankAD(scaling=None, bandwidth="2 D_K", C=10 / 80, random_state=5, **alone).fit(split.train)
    assert found["auc"] == pytest.approx(roc_auc_score(split.nominal, default.score_samples(split.test)))
    assert found != tried.measure("smtp", "standard", 2.0, 5, None, SIZE)


def test_the_table_has_the_mean_of_the_runs_and_names_the_best():
    records = [
        {"dataset": "smtp", "scaling": scaling, "multiple": multiple, "auc": auc + step}
        for auc, scaling in zip((0.6, 0.7, 0.65), AUTO_SCALINGS, strict=True)
        for multiple in AUTO_MULTIPLES
        for step in (0.0, 0.02 * multiple)
    ]
    table = tried.table(records, {"smtp": 0.934})
    assert [row[1] for row in table.rows] == ["standard", "robust", "none"]
    assert table.rows[0][2:] == ["0.6025", "0.6050", "0.6100", "0.6200", "0.6400"]
    assert "0.7400 (paper 0.934)" in table.notes[1]
