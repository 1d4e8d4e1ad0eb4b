"""Figures 1 and 2: what is run, and what is written."""

import json
import pickle
from contextlib import contextmanager
from functools import cache

import pytest

from rankad import RankAD
from rankad.experiments import figure1, figure2, level_sets
from rankad.experiments.cells import Settings
from rankad.experiments.level_sets import ALPHAS, METHODS
from rankad.fitting import sizes

FIGURES = pytest.mark.parametrize("figure", [figure1, figure2], ids=["figure-1", "figure-2"])
PNG = b"\x89PNG\r\n\x1a\n"


@contextmanager
def cheap():
    """Make a run take a second: few rows, a coarse grid, nothing to select, few folds."""
    given = {"landmarks": 30, "bandwidth": "2 D_K", "n_jobs": 1}
    methods = {
        "rankAD (default)": lambda seed, n: RankAD(random_state=seed, **given),
        "rankAD (three uniform levels)": lambda seed, n: RankAD(n_levels=3, random_state=seed, **given),
        "rankAD (published)": lambda seed, n: RankAD.as_published(
            random_state=seed, **{**given, "C": "auto"}
        ),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, method in methods.items():
            patch.setitem(METHODS, name, method)
        patch.setattr(figure1, "N_TRAIN", 200)
        patch.setattr(figure1, "N_GRID", 60)
        patch.setattr(figure2, "SIZES", (200, 300))
        patch.setattr(figure2, "N_GRID", 60)
        patch.setattr(sizes, "CALIBRATION_FOLDS", 10)
        yield


def settings_of(out):
    return Settings(out=out, seed=0, quick=True, n_jobs=1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the settings of a cheap run of a figure that is finished; there is one of each."""

    @cache
    def run(figure):
        settings = settings_of(tmp_path_factory.mktemp(figure.NAME))
        with cheap():
            figure.run(settings)
        return settings

    return run


def test_the_bar_is_judged_at_five_and_ten_percent():
    def entry(method, *difference):
        return {"n": 600, "method": method, "difference": [*difference, 9.0, 9.0, 9.0]}

    judged = figure2.judge([entry("rankAD (default)", 0.2, 0.3), entry("aK-LPE", 0.2, 0.25)])
    assert [(each["alpha"], each["met"]) for each in judged] == [(0.05, True), (0.10, False)]


def test_figure_1_is_set_up_as_in_the_paper():
    for method, levels in (("rankAD, m = 2, cut at 3 %", [0.03]), ("rankAD, m = 3", 3)):
        given = METHODS[method](0, 1_000).get_params()
        assert (given["n_levels"], given["bandwidth"], given["scaling"]) == (levels, 1.5, None)
        assert (given["far_field"], given["landmarks"], given["C"]) == (False, "all", 0.01)


def test_a_quick_figure_1_says_what_it_leaves_out():
    left_out = set(METHODS) - {each.key["method"] for each in figure1.cells(Settings(quick=True))}
    assert len(left_out) == 2
    (said,) = [note for note in figure1._notes(Settings(quick=True)) if "--quick" in note]
    assert all(method in said for method in left_out)
    full = " ".join(figure1._notes(Settings()))
    assert "quick" not in full
    assert "Published: " in full


def test_a_quick_figure_2_says_what_it_leaves_out():
    assert {each.key["n"] for each in figure2.cells(Settings(quick=True))} == {600}
    assert "without the 5,000 rows" in figure2._notes(Settings(quick=True))[0]
    assert "quick" not in " ".join(figure2._notes(Settings()))


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
def test_a_quick_run_writes_picture_text_and_numbers(figure, finished):
    out = finished(figure).out
    assert (out / f"{figure.NAME}.png").read_bytes().startswith(PNG)
    text = (out / f"{figure.NAME}.md").read_text()
    assert f"![{figure.NAME}.png]({figure.NAME}.png)" in text
    assert "symmetric difference" in text
    content = json.loads((out / f"{figure.NAME}.json").read_text())
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
def test_a_second_run_repeats_nothing_and_changes_nothing(figure, finished, monkeypatch):
    settings = finished(figure)
    names = [settings.out / f"{figure.NAME}.{kind}" for kind in ("png", "md", "json")]
    before = [name.read_bytes() for name in names]

    def refuse(*_):
        raise AssertionError("a finished cell was computed again")

    monkeypatch.setattr(level_sets, "level_differences", refuse)
    with cheap():
        figure.run(settings)
    assert [name.read_bytes() for name in names] == before


def test_an_interrupted_run_keeps_what_is_finished(finished, monkeypatch, tmp_path):
    at_once = json.loads((finished(figure2).out / "figure-2.json").read_text())
    settings, true_measure, calls = settings_of(tmp_path), level_sets.level_differences, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return true_measure(*given)

    monkeypatch.setattr(level_sets, "level_differences", interrupted)
    with cheap():
        with pytest.raises(KeyboardInterrupt):
            figure2.run(settings)
        assert not (tmp_path / "figure-2.json").exists()
        figure2.run(settings)
    # Four cells: two before the interruption, the third twice.
    assert len(calls) == 5
    assert json.loads((tmp_path / "figure-2.json").read_text()) == at_once
