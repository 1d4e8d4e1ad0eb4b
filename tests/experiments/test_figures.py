import json
import pickle

import numpy as np
import pytest
from scipy.stats import chi2

from rankad import KLPE, RankAD
from rankad.experiments import figure1, figure2
from rankad.experiments.figure1 import ALPHAS, METHODS, Job, level_differences, measure, summarize
from rankad.experiments.settings import Settings
from rankad.experiments.synthetic import PRINTED, TOY, Mixture

FIGURES = pytest.mark.parametrize("figure", [figure1, figure2], ids=["figure-1", "figure-2"])
PNG = b"\x89PNG\r\n\x1a\n"


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


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Settings of a run that takes a second: few rows, a coarse grid, nothing to select."""
    cheap = {"landmarks": 30, "bandwidth": "2 D_K", "n_jobs": 1}
    monkeypatch.setitem(METHODS, "rankAD (default)", lambda seed, n: RankAD(random_state=seed, **cheap))
    monkeypatch.setitem(
        METHODS,
        "rankAD (three uniform levels)",
        lambda seed, n: RankAD(n_levels=3, random_state=seed, **cheap),
    )
    monkeypatch.setitem(
        METHODS,
        "rankAD (published)",
        lambda seed, n: RankAD.as_published(random_state=seed, **{**cheap, "C": "auto"}),
    )
    monkeypatch.setattr(figure1, "N_TRAIN", 200)
    monkeypatch.setattr(figure1, "N_GRID", 60)
    monkeypatch.setattr(figure2, "SIZES", (200, 300))
    monkeypatch.setattr(figure2, "N_GRID", 60)
    return Settings(out=tmp_path, seed=0, quick=True, n_jobs=1)


# ------------------------------------------------------------------------------------------------ the numbers


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
    centres = figure1.grid(PRINTED, 50).rows
    for alpha, offset in zip((0.05, 0.5), result["offsets"], strict=True):
        inside = detector.p_values(centres) > alpha
        np.testing.assert_array_equal(detector.score_samples(centres) >= offset, inside)


def test_scores_to_draw_survive_the_way_through_text():
    values = np.random.default_rng(0).normal(size=(7, 7))
    np.testing.assert_allclose(figure1._unpack(figure1._pack(values)), values, rtol=1e-6)


def test_summary_is_the_mean_over_runs_for_each_size():
    records = [
        {"n": n, "method": "a", "difference": [value] * 5, "volume": [1.0] * 5}
        for n, value in ((600, 0.2), (5_000, 0.1), (600, 0.4))
    ]
    small, large = summarize(records)
    assert (small["n"], small["runs"], large["n"], large["runs"]) == (600, 2, 5_000, 1)
    np.testing.assert_allclose(small["difference"], 0.3)
    np.testing.assert_allclose(small["standard_error"], 0.1)


def test_the_bar_is_judged_at_five_and_ten_percent():
    def entry(method, *difference):
        return {"n": 600, "method": method, "difference": [*difference, 9.0, 9.0, 9.0]}

    judged = figure2.judge([entry("rankAD (default)", 0.2, 0.3), entry("aK-LPE", 0.2, 0.25)])
    assert [(each["alpha"], each["met"]) for each in judged] == [(0.05, True), (0.10, False)]


# ------------------------------------------------------------------------------------------------ the methods


def test_figure_1_is_set_up_as_in_the_paper():
    for method, levels in (("rankAD, m = 2, cut at 3 %", [0.03]), ("rankAD, m = 3", 3)):
        given = METHODS[method](0, 1_000).get_params()
        assert (given["n_levels"], given["bandwidth"], given["scaling"]) == (levels, 1.5, None)
        assert (given["far_field"], given["landmarks"]) == (False, "all")


def test_the_default_is_the_default():
    ours = METHODS["rankAD (default)"](3, 600).get_params()
    assert ours == {**RankAD().get_params(), "random_state": 3, "n_jobs": 1}


@FIGURES
def test_cells_travel_to_other_processes_and_name_all_they_depend_on(figure):
    todo = figure.cells(Settings())
    sizes = (figure1.N_TRAIN,) if figure is figure1 else (600, 5_000)
    methods = METHODS if figure is figure1 else figure2.METHODS
    assert len(todo) == 5 * len(sizes) * len(methods)
    for each in todo:
        assert pickle.loads(pickle.dumps(each.work)).args == each.work.args
        assert {"experiment", "version", "method", "n", "seed", "parameters"} <= set(each.key)
    # Every method of a run gets the same rows.
    assert len({each.key["seed"] for each in todo}) == 5


# ---------------------------------------------------------------------------------------------- the whole run


@FIGURES
def test_a_quick_run_writes_picture_text_and_numbers(figure, tiny):
    figure.run(tiny)
    assert (tiny.out / f"{figure.NAME}.png").read_bytes().startswith(PNG)
    text = (tiny.out / f"{figure.NAME}.md").read_text()
    assert f"![{figure.NAME}.png]({figure.NAME}.png)" in text
    assert "symmetric difference" in text
    content = json.loads((tiny.out / f"{figure.NAME}.json").read_text())
    assert content["settings"] == {"seed": 0, "quick": True, "runs": 1}
    assert content["alphas"] == list(ALPHAS)
    found = {entry["method"]: entry for entry in content["summary"]}
    assert {"rankAD (default)", "aK-LPE"} <= set(found)
    assert {entry["n"] for entry in content["summary"]} == {200}
    assert not any("surface" in each for each in content["cells"])
    for entry in found.values():
        assert f"| 200 | {entry['method']} | {entry['difference'][0]:.3f} |" in text
        # The whole box is some 15 times the true set at alpha = 5 %, and more at others.
        assert all(0.0 < value < 100.0 for value in entry["difference"])
    # With the far field outside, the tail's set is roughly right even from 200 rows.
    for method in ("rankAD (default)", "aK-LPE"):
        assert found[method]["difference"][0] < 0.8
        assert 0.4 < found[method]["volume"][0] < 1.8


@FIGURES
def test_a_second_run_repeats_nothing_and_changes_nothing(figure, tiny, monkeypatch):
    figure.run(tiny)
    names = [tiny.out / f"{figure.NAME}.{kind}" for kind in ("png", "md", "json")]
    before = [name.read_bytes() for name in names]

    def refuse(*_):
        raise AssertionError("a finished cell was computed again")

    monkeypatch.setattr(figure1, "level_differences", refuse)
    figure.run(tiny)
    assert [name.read_bytes() for name in names] == before


def test_an_interrupted_run_keeps_what_is_finished(tiny, monkeypatch):
    true_measure, calls = figure1.level_differences, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return true_measure(*given)

    monkeypatch.setattr(figure1, "level_differences", interrupted)
    with pytest.raises(KeyboardInterrupt):
        figure2.run(tiny)
    assert not (tiny.out / "figure-2.json").exists()
    figure2.run(tiny)
    # Four cells: two before the interruption, the third twice.
    assert len(calls) == 5
    resumed = json.loads((tiny.out / "figure-2.json").read_text())
    figure2.run(tiny._replace(out=tiny.out / "at-once"))
    assert json.loads((tiny.out / "at-once" / "figure-2.json").read_text()) == resumed
