"""Pictures of level sets, certificates, curves and drift: what they show, in scikit-learn's convention."""

import numpy as np
import pytest

from rankad import (
    KLPE,
    CertificateDisplay,
    DriftDisplay,
    DriftMonitor,
    LevelSetDisplay,
    MassVolumeDisplay,
)

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def no_window():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def detector():
    rng = np.random.default_rng(0)
    return KLPE().fit(rng.normal(size=(200, 2))).calibrate(rng.normal(size=(300, 2)))


def test_a_certificate_shows_bands_and_what_was_obtained(detector):
    rows = np.random.default_rng(1).normal(size=(500, 2))
    display = CertificateDisplay.from_estimator(detector, rows, color="k")
    assert display.line_.get_color() == "k"
    x, y = display.line_.get_data()
    p_values = detector.p_values(rows)
    np.testing.assert_allclose(y[-1], (p_values <= x[-1]).mean())
    assert "0.95" in display.ax_.get_ylabel()
    assert CertificateDisplay.from_estimator(detector).line_ is None
    assert "approximate" in CertificateDisplay.from_estimator(KLPE().fit(rows)).ax_.get_ylabel()


def test_level_sets_are_drawn_in_two_columns(detector):
    _, ax = plt.subplots()
    display = LevelSetDisplay.from_estimator(detector, alphas=[1e-6, 0.1, 0.5], n_grid=40, ax=ax)
    assert display.ax_ is ax
    assert [one.alpha for one in display.level_sets] == [0.1, 0.5]
    with pytest.raises(ValueError, match="no set to draw"):
        LevelSetDisplay.from_estimator(detector, alphas=[1e-6])
    three = KLPE().fit(np.random.default_rng(0).normal(size=(50, 3)))
    with pytest.raises(ValueError, match=r"two columns only, and this one has 3\. Fit one on"):
        LevelSetDisplay.from_estimator(three, alphas=[0.5])


def test_rows_are_drawn_over_level_sets_in_a_style_of_ones_own(detector):
    rows = np.random.default_rng(0).normal(size=(30, 2))
    for style in ({"c": ["red", "blue"] * 15, "s": 40}, {"color": "red"}, {}):
        display = LevelSetDisplay.from_estimator(detector, rows, alphas=[0.5], n_grid=20, **style)
        points = display.ax_.collections[-1]
        np.testing.assert_array_equal(points.get_offsets(), rows)
        assert len(points.get_facecolors()) == (30 if "c" in style else 1)
        assert points.get_sizes().tolist() == [style.get("s", 8)]


def test_mass_volume_curves_of_several_detectors(detector):
    display = MassVolumeDisplay.from_estimators(
        {"ours": detector, "worse": KLPE(n_neighbors=1).fit(np.random.default_rng(2).normal(size=(20, 2)))},
        np.random.default_rng(3).normal(size=(300, 2)),
        n_points=2_000,
    )
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert [label.split(" (")[0] for label in labels] == ["ours", "worse"]
    assert len(display.lines_) == 2
    with pytest.raises(ValueError, match="There is no curve to draw: give at least one detector"):
        MassVolumeDisplay.from_estimators({}, np.zeros((3, 2)))


def test_drift_shows_the_evidence_and_alarms():
    rng = np.random.default_rng(4)
    p_values = np.r_[rng.integers(1, 501, 200), rng.integers(1, 60, 100)] / 500
    display = DriftDisplay.from_p_values(DriftMonitor(499), p_values)
    assert {alarm.by for alarm in display.alarms} == {"ever", "run"}
    assert np.max(display.evidence) >= 1
    assert display.rows[-1] == 300
