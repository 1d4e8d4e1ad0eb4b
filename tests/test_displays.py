"""Pictures in scikit-learn's convention."""

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas
import polars as pl
import pytest
from scipy.stats import betabinom

from rankad import KLPE, ColumnsDisplay, EpsilonLPE, PValueDisplay, RankAD, TableDetector
from rankad.alarms.chance import Chance
from rankad.explanations.explainer import Change, Explanation, Explanations, Move, Reason

QUICK = {"landmarks": 15, "scaling": "standard", "bandwidth": "D_K", "C": 0.1}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def texts(ax):
    return [each.get_text() for each in ax.texts]


def labels(ax):
    return [each.get_text() for each in ax.get_legend().get_texts()]


@pytest.mark.parametrize("kind", [KLPE, EpsilonLPE])
def test_the_line_is_the_share_of_alarms_at_every_rate(kind):
    rng = np.random.default_rng(0)
    detector, new = kind(0.1).fit(rng.normal(size=(99, 2))), rng.normal(size=(40, 2))
    shown = PValueDisplay.from_estimator(detector, new, name="new rows")
    assert shown.figure_ is shown.ax_.figure
    at, share = shown.line_.get_data()
    p = detector.p_values(new)
    # A step to the right of each p-value: the last share at or before a rate is that of rows up to it.
    for rate in (0.015, 0.055, 0.1, 0.33, 1.0):
        before = at <= rate
        expected = np.mean(p <= rate)
        assert (share[before].max() if before.any() else 0.0) == pytest.approx(expected)
    assert labels(shown.ax_)[-1] == "new rows (40)"
    n = np.count_nonzero(p <= 0.1)
    assert texts(shown.ax_)[0].startswith(f"{n} alarm{'' if n == 1 else 's'} at 10 %")


def test_the_band_is_what_chance_allows():
    p = np.full(50, 0.5)
    shown = PValueDisplay.from_predictions(p, chance=Chance(199), alpha=0.1)
    edge = shown.band_.get_paths()[0].vertices
    # The law of the number of rows below the 20th of 199: Beta-binomial.
    low, high = betabinom.ppf([0.025, 0.975], 50, 20, 180)
    near = edge[np.abs(np.log(edge[:, 0] / 0.1)) < 0.06]
    assert near[:, 1].max() == pytest.approx(high / 50, abs=0.021)
    assert near[:, 1].min() == pytest.approx(low / 50, abs=0.021)
    assert texts(shown.ax_) == [f"0 alarms at 10 %\nusually {low:.0f} to {high:.0f}"]


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3, None])
@pytest.mark.parametrize("size", [(6.0, 4.0), (4.5, 3.4)])
@pytest.mark.parametrize("highest", [60, 300, "few"])
def test_the_legend_hides_no_part_of_the_line(alpha, size, highest):
    # Nearly all rows are alarms at every rate, as many as asked for, or hardly any.
    rng = np.random.default_rng(0)
    p = (1 + rng.integers(0, 60 if highest == 60 else 300, size=90)) / 300
    p = np.maximum(p, 0.4) if highest == "few" else p
    _, ax = plt.subplots(figsize=size, layout="constrained")
    shown = PValueDisplay.from_predictions(p, chance=Chance(299), alpha=alpha, name="new.csv", ax=ax)
    shown.figure_.canvas.draw()
    corners = shown.ax_.get_legend().get_window_extent()
    rates = np.geomspace(1 / 300, 1, 400)
    at = shown.ax_.transData.transform(np.c_[rates, np.maximum((p <= rates[:, None]).mean(axis=1), 1e-9)])
    assert not corners.count_contains(at)
    assert all(not corners.overlaps(note.get_window_extent()) for note in shown.ax_.texts)


def test_without_a_law_there_is_no_band():
    shown = PValueDisplay.from_predictions([0.2, 0.4, 0.01])
    assert shown.band_ is None
    assert texts(shown.ax_) == []
    assert PValueDisplay(p_values=[0.5], alpha=0.05).plot(name="one").band_ is None


def test_they_draw_where_they_are_told_to_and_as():
    _, (left, right, last) = plt.subplots(1, 3)
    shown = PValueDisplay.from_predictions([0.2, 0.4], ax=left, color="red")
    assert shown.ax_ is left
    assert shown.line_.get_color() == "red"
    # Again, on other axes: the display itself is returned.
    assert shown.plot(right) is shown
    assert shown.ax_ is right
    found = ColumnsDisplay(columns=["a"], n_first=[3], n_changed=[1], n_alarms=5).plot(last, color="green")
    assert found.ax_ is last
    assert found.bars_[0].get_facecolor()[:3] == matplotlib.colors.to_rgb("green")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "at least one p-value, got none"),
        ([0.0], "above 0 and at most 1, got 0"),
        ([0.5, 1.5], "above 0 and at most 1, got 1.5"),
        ([np.nan], "above 0 and at most 1, got nan"),
    ],
)
def test_what_are_no_p_values_is_an_error(bad, message):
    with pytest.raises(ValueError, match=f"p_values must .*{message}; pass"):
        PValueDisplay.from_predictions(bad)
    assert not plt.get_fignums()


def test_a_rate_is_checked_before_anything_is_drawn():
    with pytest.raises(ValueError, match="alpha must be a number strictly between 0 and 1, got 5"):
        PValueDisplay.from_predictions([0.5], alpha=5)
    assert not plt.get_fignums()


def explanation(first, moved=(), alarm=True):
    reasons = tuple(Reason(name, 9.0, 1.0, 0.5, 1.5, 0.5, 1.0) for name in (first, *(set("abc") - {first})))
    change = Change(tuple(Move(name, 9.0, 1.0) for name in moved), 0.5, 1.0) if moved else None
    return Explanation(0.01 if alarm else 0.5, 0.0, reasons, (), change, 0.05)


def test_columns_are_counted_as_the_explanations_say():
    found = Explanations(
        [
            explanation("b", "b"),
            explanation("b", "bc"),
            explanation("c", "c"),
            explanation("b"),
            explanation("a", "a", alarm=False),
        ]
    )
    shown = ColumnsDisplay.from_predictions(found)
    assert (shown.columns, shown.n_first) == (("b", "c", "a"), (3, 1, 0))
    assert (shown.n_changed, shown.n_alarms) == ((2, 2, 0), 4)
    assert [bar.get_width() for bar in shown.bars_] == [3, 1, 0]
    assert [tick.get_text() for tick in shown.ax_.get_yticklabels()] == ["b", "c", "a"]
    assert shown.ax_.get_xlabel() == "alarms, 4 in all"


def test_many_columns_are_not_all_shown():
    names = [f"c{i}" for i in range(40)]
    shown = ColumnsDisplay(columns=names, n_first=[1] * 40, n_changed=[0] * 40, n_alarms=40).plot()
    assert len(shown.bars_) == 15
    assert shown.ax_.get_xlabel() == "alarms, 40 in all; 25 more columns not shown"


@pytest.mark.parametrize("form", ["array", "list", "pandas", "polars", "table"])
def test_columns_of_the_most_abnormal_alarms(form):
    rng = np.random.default_rng(2)
    rows, new = rng.normal(size=(150, 3)), rng.normal(size=(20, 3)) * 0.1
    new[:4, 1] = [50.0, 40.0, 30.0, 20.0]
    detector = RankAD(alpha=0.02, **QUICK)
    names = ["u", "v", "w"]
    if form in ("pandas", "polars", "table"):
        make = pandas.DataFrame if form == "pandas" else pl.DataFrame
        rows, new = (make(dict(zip(names, each.T, strict=True))) for each in (rows, new))
    fitted = (TableDetector(detector) if form == "table" else detector).fit(rows)
    new = new.tolist() if form == "list" else new
    shown = ColumnsDisplay.from_estimator(fitted, new)
    culprit = "column 1" if form in ("array", "list") else "v"
    assert (shown.columns[0], shown.n_first[0], shown.n_alarms) == (culprit, 4, 4)
    assert ColumnsDisplay.from_estimator(fitted, new, most=2).n_alarms == 2
    few = new[4:]
    assert ColumnsDisplay.from_estimator(fitted, few).n_alarms == 0
    assert texts(plt.gca()) == ["no alarm"]


def test_detectors_without_reasons_say_so():
    detector = KLPE().fit(np.random.default_rng(0).normal(size=(50, 2)))
    with pytest.raises(TypeError, match="got KLPE, which gives no reasons"):
        ColumnsDisplay.from_estimator(detector, [[0.0, 0.0]])
    with pytest.raises(ValueError, match="most must be an integer >= 1, got 0"):
        ColumnsDisplay.from_estimator(RankAD(), [[0.0]], most=0)


def test_they_say_what_to_install():
    code = """
import sys
sys.modules["matplotlib"] = None
from rankad import ColumnsDisplay, PValueDisplay
for draw in (
    lambda: PValueDisplay.from_predictions([0.5]),
    lambda: ColumnsDisplay.from_predictions([]),
):
    try:
        draw()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("needs matplotlib: pip install 'rankad[plot]'") == 2
