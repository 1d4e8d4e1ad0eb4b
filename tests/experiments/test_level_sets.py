"""Level sets: their distance from the true ones as a number, and what figures 1 and 2 share."""

import pickle

import numpy as np
import pytest
from scipy.stats import chi2

from rankad import KLPE, RankAD
from rankad.experiments import level_sets
from rankad.experiments.level_sets import METHODS, Job, cell, level_differences, measure, summarize
from rankad.experiments.synthetic import PRINTED, TOY, Mixture, grid


class Bayes:
    """The detector that knows the density, up to a factor on its p-values."""

    def __init__(self, mixture, factor=1.0):
        self.mixture, self.factor = mixture, factor

    def p_values(self, rows):
        return self.factor * self.mixture.p_values(rows)


class Always:
    """The detector with one p-value for all rows."""

    def __init__(self, p_value):
        self.p_value = p_value

    def p_values(self, rows):
        return np.full(len(rows), self.p_value)


@pytest.mark.parametrize("mixture", [TOY, PRINTED], ids=["toy", "printed"])
def test_a_perfect_detector_differs_nowhere(mixture):
    found = level_differences(Bayes(mixture), mixture, 100)
    # At the edge of a set the p-values have steps of a millionth: a cell of 10,000 hardly ever falls there.
    np.testing.assert_allclose(found["difference"], 0.0, atol=0.01)
    np.testing.assert_allclose(found["volume"], 1.0, atol=0.01)
    assert found["difference"].count(0.0) >= 4


def test_all_or_nothing():
    # All of the box: what it adds to the true set; nothing: exactly the true set is missing.
    everything = level_differences(Always(1.0), PRINTED, 100)
    np.testing.assert_allclose(np.array(everything["difference"]) + 1.0, everything["volume"])
    assert level_differences(Always(0.0), PRINTED, 100) == {"difference": [1.0] * 5, "volume": [0.0] * 5}


def test_volumes_of_ellipses_by_hand():
    # One Gaussian: the set of mass 1 - alpha is an ellipse of an area proportional to -2 log(alpha), and a
    # detector that halves every p-value reports the one for twice the alpha.
    ellipse = Mixture("ellipse", (1.0,), ((3.0, -2.0),), ((4.0, 0.25),))
    found = level_differences(Bayes(ellipse, factor=0.5), ellipse, 400, (0.05, 0.10, 0.25))
    area = chi2(2).isf
    expected = [area(2 * alpha) / area(alpha) for alpha in (0.05, 0.10, 0.25)]
    np.testing.assert_allclose(found["volume"], expected, atol=0.01)
    np.testing.assert_allclose(found["difference"], 1.0 - np.array(expected), atol=0.01)


def test_measure_takes_the_rows_whose_p_value_exceeds_alpha():
    result = measure(Job("printed", "aK-LPE", 300, 4, 50, (0.05, 0.5)))
    rows = PRINTED.sample(300, np.random.default_rng(4))
    detector = KLPE(n_neighbors=20, scaling=None).fit(rows)
    assert result["difference"] == level_differences(detector, PRINTED, 50)["difference"]
    # The curve that is drawn is the edge of the same set.
    centres = grid(PRINTED, 50).rows
    for alpha, offset in zip((0.05, 0.5), result["offsets"], strict=True):
        inside = detector.p_values(centres) > alpha
        np.testing.assert_array_equal(detector.score_samples(centres) >= offset, inside)


def test_scores_to_draw_survive_the_way_through_text():
    values = np.random.default_rng(0).normal(size=(7, 7))
    np.testing.assert_allclose(level_sets._unpack(level_sets._pack(values)), values, rtol=1e-6)


def test_summary_is_the_mean_over_runs_for_each_size():
    records = [
        {"n": n, "method": "a", "difference": [value] * 5, "volume": [1.0] * 5}
        for n, value in ((600, 0.2), (5_000, 0.1), (600, 0.4))
    ]
    small, large = summarize(records)
    assert (small["n"], small["runs"], large["n"], large["runs"]) == (600, 2, 5_000, 1)
    np.testing.assert_allclose(small["difference"], 0.3)
    np.testing.assert_allclose(small["standard_error"], 0.1)


def test_the_default_is_the_default():
    ours = METHODS["rankAD (default)"](3, 600).get_params()
    assert ours == {**RankAD().get_params(), "random_state": 3, "n_jobs": 1}


def test_a_cell_knows_its_job_here_and_in_another_process():
    job = Job("toy", "aK-LPE", 200, 7, 60, (0.05,))
    one = cell("figure-9", 3, job)
    assert Job.of(one.key) == job
    assert pickle.loads(pickle.dumps(one.work)).args == (job,)
    assert (one.key["experiment"], one.key["run"]) == ("figure-9", 3)
    assert one.key["parameters"] == KLPE(n_neighbors=20, scaling=None, n_jobs=1).get_params()
