"""Rows of very many columns in few: the distances stay."""

import numpy as np
import pytest

from rankad import RankAD
from rankad.fitting import selecting
from rankad.fitting.narrowing import narrow_others, narrowed, shuffled_cells
from rankad.stages.scaling import fit_scaling


def distances(left, right):
    return np.sqrt(((left[:, None] - right[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("scaling", [None, "standard", "robust"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_distances_stay(scaling, offset):
    rng = np.random.default_rng(0)
    rows = offset + rng.normal(size=(12, 9_001)) * rng.uniform(0.1, 3.0, size=9_001)
    others = offset + rng.normal(size=(7, 9_001)) * 2.0
    found = narrowed(rows, fit_scaling(rows, scaling))
    assert found.rows.shape == (12, 12)
    (there,) = narrow_others([found], rows, lambda columns: others[:, columns], 7)
    scaled = [found.scaling.apply(part) for part in (rows, others)]
    np.testing.assert_allclose(distances(found.rows, found.rows), distances(scaled[0], scaled[0]), atol=1e-6)
    np.testing.assert_allclose(distances(there, found.rows), distances(scaled[1], scaled[0]), rtol=1e-9)


def test_rows_that_are_equal_stay_equal():
    rows = np.random.default_rng(0).normal(size=(3, 5_000))[[0, 1, 1, 2]]
    found = narrowed(rows, fit_scaling(rows, None))
    assert found.rows.shape == (4, 3)
    np.testing.assert_allclose(found.rows[1], found.rows[2], atol=1e-9)
    same = narrowed(np.ones((4, 2_000)), fit_scaling(np.ones((4, 2_000)), None))
    assert not same.rows.any()


def test_shuffled_cells_come_from_their_columns():
    rows = np.arange(12.0).reshape(3, 4)
    drawn = shuffled_cells(rows, 200, np.random.default_rng(0))
    for at in range(4):
        assert set(drawn[:, at]) == set(rows[:, at])
    # Not whole rows.
    assert len(np.unique(drawn, axis=0)) > 3


def test_very_wide_rows_are_told_apart(monkeypatch):
    rng = np.random.default_rng(0)
    rows, new = rng.normal(size=(60, 1_500)), rng.normal(size=(40, 1_500))
    used = []
    select = selecting._select_narrow
    monkeypatch.setattr(selecting, "_select_narrow", lambda task, C: used.append(1) or select(task, C))
    detector = RankAD(0.1, bandwidth="auto", random_state=0).fit(rows)
    assert used
    odd = new + 0.5 * rng.choice([-1.0, 1.0], size=1_500)
    assert detector.score_samples(odd).max() < np.median(detector.score_samples(new))
    assert (detector.predict(new) < 0).mean() < 0.35
