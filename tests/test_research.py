"""What RankAD's ingredients do to quality: variants, their scores, verdicts, and a run on two tiny sets."""

import doctest
import json
import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import norm, rankdata

# The benchmarks are not installed with the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.quality import cells, knobs, methods, panels, research, sets, trials, verdicts
from benchmarks.quality.comparison import Comparison
from benchmarks.quality.knobs import Fit, Knob, Variant, fit
from benchmarks.quality.settings import Study
from rankad import RankAD
from rankad._simd import NEAREST
from rankad.detectors import ranker
from rankad.detectors.fitting import RankFit
from rankad.scorer import KernelScorer

ROWS = np.random.default_rng(0).normal(size=(80, 3)) * [1.0, 20.0, 0.1] + [0.0, 500.0, 0.0]
NEW = np.random.default_rng(1).normal(size=(60, 3)) * [6.0, 120.0, 0.1] + [0.0, 500.0, 0.0]

# ----------------------------------------------------------------------------------------------------- knobs


def test_every_knob_has_one_default_and_no_value_twice():
    for knob in knobs.KNOBS:
        assert sum(variant.is_default for variant in knob.variants) == 1, knob.name
        assert len({variant[1:] for variant in knob.variants}) == len(knob.variants), knob.name
    # Labels are told apart too, over all knobs: everything but the default is there once.
    keys = Counter(knob.key(variant) for knob in knobs.KNOBS for variant in knob.variants)
    assert keys.pop("default") == len(knobs.KNOBS)
    assert set(keys.values()) == {1}


def test_every_parameter_is_one_that_rankad_takes():
    for knob in knobs.KNOBS:
        for variant in knob.variants:
            for one in variant.fits:
                RankAD(**dict(one.parameters))._plan()


def test_the_default_is_what_the_constructor_says():
    landmarks = next(knob for knob in knobs.KNOBS if knob.name == "landmarks")
    labels = {variant.label: variant.is_default for variant in landmarks.variants}
    default = RankAD().landmarks
    assert labels == {str(many): many == default for many in {50, 100, 250, 500, 1_000, default}}
    assert [*map(knobs._text, (0.1, 1 / 3, 3.0, 60, "auto", None))] == [
        "0.1",
        "1/3",
        "3",
        "60",
        "auto",
        "none",
    ]


# -------------------------------------------------------------------------------------------- scores of fits


@pytest.fixture(scope="module")
def default():
    return trials.fitted(Fit(), ROWS, 0)


@pytest.mark.parametrize("constant", [False, True])
def test_the_plain_twin_is_rankads_own_score(default, constant):
    add = np.full((len(ROWS), 1), 7.0)
    detector = trials.fitted(Fit(), np.hstack([ROWS, add]), 0).detector if constant else default.detector
    # The last rows are at landmarks, and so far away that nothing but distance is left.
    new = np.concatenate([NEW, ROWS[:5], NEW[:5] * 1e3])
    new = np.column_stack([new, np.repeat([7.0, 9.0], [40, 30])]) if constant else new
    twin = trials.far_scores(detector.scorer_, new, NEAREST)
    np.testing.assert_allclose(twin, detector.score_samples(new), rtol=1e-9, atol=1e-9)
    assert not np.allclose(twin, trials.far_scores(detector.scorer_, new, NEAREST + 2))


@pytest.mark.parametrize("many", [1, 2, 8, 10_000])
def test_far_distances_by_hand(default, many):
    scorer = default.detector.scorer_
    low, high, unit = scorer.limits
    far = 0
    for x, found in zip(NEW, trials.far_scores(scorer, NEW, many), strict=True):
        gaps = [math.dist(x / scorer.widths, z / scorer.widths) for z in scorer.landmarks]
        g = sum(a * math.exp(-(gap**2)) for a, gap in zip(scorer.coefficients, gaps, strict=True))
        least = sorted(gaps)[:many]
        beyond = min(sum(least) / len(least), len(least) * least[0]) - 4.0
        excess = max(max(0.0, a - b, b - c) / u for a, b, c, u in zip(low, x, high, unit, strict=True))
        far += beyond > 0
        assert found == pytest.approx(g - max(0.0, beyond) - excess, rel=1e-9, abs=1e-9)
    assert far > 0


def test_a_row_near_a_landmark_is_not_far_however_far_the_others():
    scorer = KernelScorer(np.array([[0.0], [100.0], [200.0]]), np.zeros(3), np.ones(1))
    rows = np.array([[0.0], [1.0], [5.0], [50.0], [-90.0]])
    # Means over the nearest, or as many times the nearest; less the reach of four.
    by_hand = {
        1: [0.0, 0.0, 1.0, 46.0, 86.0],
        2: [0.0, 0.0, 6.0, 46.0, 136.0],
        3: [0.0, 0.0, 11.0, 250 / 3 - 4, 186.0],
    }
    for many, far in by_hand.items():
        np.testing.assert_allclose(trials.far_scores(scorer, rows, many), -np.array(far))
    np.testing.assert_allclose(trials.far_scores(scorer, rows, NEAREST), scorer.score(rows))


def test_scores_are_those_of_the_whole_detector(default):
    whole = methods.detector(methods.RANKAD, 0).fit(ROWS)
    # Which may compute them in float32.
    np.testing.assert_allclose(default.score(NEW), whole.score(NEW), rtol=1e-3, atol=1e-3)


def test_the_point_at_infinity_weighs_what_it_is_told_to_and_no_longer():
    before = ranker.FAR_SHARE
    losses = []
    for share in (0.1, None, 3.0):
        found = trials.fitted(
            Fit((("scaling", None), ("bandwidth", "1 D_K"), ("C", 0.01)), far_share=share), ROWS, 0
        )
        g = replace(found.detector.scorer_, far_field=False, limits=None).score(ROWS)
        # What it costs that rows are not above infinity, where g is zero, by one.
        losses.append((np.maximum(0.0, 1.0 - g) ** 2).sum())
        assert before == ranker.FAR_SHARE
    # The more a part of the loss weighs, the less of it is left.
    assert losses[0] > 1.01 * losses[1] > 1.01**2 * losses[2]
    with pytest.raises(ValueError, match="minimum of 8"):
        trials.fitted(fit(far_share=3.0), ROWS[:3], 0)
    assert before == ranker.FAR_SHARE


def test_uniform_rows_alone_select(default):
    before = RankFit._negatives
    alone = trials.fitted(fit(negatives="uniform"), ROWS, 0)
    assert RankFit._negatives is before
    both = default.detector.selection_
    assert both.losses.shape[1] == 2
    assert np.array_equal(alone.detector.selection_.losses, both.losses[:, 1:])


def test_parameters_that_depend_on_the_rows():
    found = trials.fitted(fit(C_times_rows=10.0, bandwidth="0.5 D_K", n_neighbors=60), ROWS, 0).detector
    assert (found.C_, found.n_neighbors_, found.calibration) == (10.0 / 80, 20, "in-sample")
    assert trials.fitted(fit(n_neighbors=3, later_seed=5), ROWS, 2).detector.random_state == 7


def test_whitened_distances_are_mahalanobis():
    found = trials.fitted(fit(rows="whitened", scaling=None), ROWS, 0)
    inverse = np.linalg.inv(np.cov(ROWS.T, bias=True))
    whitened = found.prepare(NEW)
    np.testing.assert_allclose(pdist(whitened), pdist(NEW, "mahalanobis", VI=inverse), rtol=1e-8)
    assert np.array_equal(found.score(NEW), found.detector.score_samples(whitened))
    assert np.array_equal(found.detector.scaling_.scale, np.ones(3))


def test_whitening_leaves_an_axis_without_variance_alone():
    flat = np.column_stack([ROWS, ROWS[:, 0], np.full(80, 3.0)])
    prepare = trials._whitened(flat, 0)
    off = flat[:1] + np.array([0.0, 0.0, 0.0, 0.0, 0.5])
    assert np.linalg.norm(prepare(off) - prepare(flat[:1])) == pytest.approx(0.5)
    assert np.abs(prepare(flat)).max() < 10


def test_quantiles_are_normal_scores():
    prepare = trials._quantile(ROWS, 0)
    expected = norm.ppf((rankdata(ROWS, axis=0) - 1) / 79)
    inner = np.isfinite(expected)
    np.testing.assert_allclose(prepare(ROWS)[inner], expected[inner], atol=1e-6)
    assert np.array_equal(prepare(ROWS.max(axis=0)[None]), prepare(ROWS.max(axis=0)[None] + 100))


class _Told:
    """A detector that scores rows by one of their columns."""

    def __init__(self, column):
        self.column = column

    def score_samples(self, rows):
        return rows[:, self.column]


def test_averages_by_hand():
    train = np.array([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0], [5.0, 50.0]])
    test = np.array([[1.0, 25.0], [-1.0, 100.0], [-7.0, -1.0]])
    several = [trials.Fitted(_Told(column), lambda rows: rows) for column in (0, 1)]
    assert trials.read(several, "ranks", train, test).tolist() == [0.625, 0.5, 0.0]
    spread = np.std([0, 1, 2, 5])
    expected = [(-1 + 0.5) / 2, (-3 + 8) / 2, (-9 - 2.1) / 2] / spread
    np.testing.assert_allclose(trials.read(several, "scores", train, test), expected)
    assert trials.read(several[:1], "score", train, test).tolist() == [1.0, -1.0, -7.0]
    with pytest.raises(ValueError, match="unpack"):
        trials.read(several, "score", train, test)


# -------------------------------------------------------------------------------------------------- verdicts

KNOB = Knob("size", (Variant("small", (fit(trim=0.1),)), Variant("usual"), Variant("big", (fit(trim=0.2),))))
AUC = Comparison(
    ("a", "b", "c"),
    ("size: big", "default", "size: small"),
    np.array([[0.95, 0.90, 0.9015], [0.80, 0.80, 0.70], [0.60, 0.61, 0.60]]),
)


def test_verdicts_by_hand():
    small, usual, big = verdicts.verdicts(KNOB, AUC, AUC._replace(values=AUC.values / 2))
    assert usual.is_default
    assert usual[2:8] == (pytest.approx(0.77), pytest.approx(0.385), 0.0, 0.0, 0, 0)
    assert (big.difference, big.better, big.worse) == (pytest.approx(0.04 / 3), 1, 1)
    assert big.error == pytest.approx(np.std([0.05, 0.0, -0.01], ddof=1) / math.sqrt(3))
    assert (big.worst, big.worst_set) == (pytest.approx(-0.01), "c")
    assert (small.better, small.worse, small.worst_set) == (0, 2, "b")
    shown = verdicts.table(KNOB, [small, usual, big])
    assert shown.rows[1] == ["**usual**", "**0.7700**", "", "**0.3850**", "", "", ""]
    assert shown.rows[2] == ["big", "0.7833", "+0.0133 ± 0.0186", "0.3917", "1", "1", "-0.0100, c"]


def test_a_value_is_chosen_without_the_set_it_is_judged_on():
    rng = np.random.default_rng(0)
    values = rng.random((7, 4)).round(3)
    expected = []
    for left_out in range(7):
        others = [row for at, row in enumerate(values.tolist()) if at != left_out]
        sums = [math.fsum(column) for column in zip(*others, strict=True)]
        expected.append(sums.index(max(sums)))
    assert verdicts.chosen(values).tolist() == expected
    assert len(set(expected)) > 1
    found = verdicts.choice("wxyz", values)
    own = [values[at, which] for at, which in enumerate(expected)]
    assert found.left_out == pytest.approx(np.mean(own))
    assert found.difference == pytest.approx(np.mean(own) - values[:, 0].mean())
    assert found.hindsight == pytest.approx(values.mean(axis=0).max())
    assert found.best == "wxyz"[int(values.mean(axis=0).argmax())]
    assert found.n_default == expected.count(0)


def test_where_nothing_is_to_choose_the_default_stays():
    assert verdicts.chosen(np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]])).tolist() == [0, 0]
    alone = verdicts.choice("ab", np.array([[0.5, 0.9]]))
    assert (alone.left_out, alone.hindsight, alone.n_default) == (0.5, 0.9, 1)
    assert math.isnan(alone.error)


def test_the_summary_pools_all_knobs():
    other = Knob("colour", (Variant("grey"), Variant("red", (fit(trim=0.3),))))
    values = np.column_stack([AUC.values, [0.99, 0.99, 0.0]])
    auc = Comparison(AUC.sets, (*AUC.methods, "colour: red"), values)
    shown = verdicts.summary([KNOB, other], auc)
    # By the others, a takes what is best on b and c, and so on.
    assert shown.rows == [
        ["size", "3", "0.7700", "0.7833", "big", "0.7667", "-0.0033 ± 0.0033", "1 of 3"],
        ["colour", "2", "0.7700", "0.7700", "grey", "0.5667", "-0.2033 ± 0.2033", "2 of 3"],
        ["**all together**", "4", "0.7700", "0.7833", "size: big", "0.5667", "-0.2033 ± 0.2033", "1 of 3"],
    ]


def test_a_single_set_has_no_error_bars(tmp_path):
    auc = Comparison(AUC.sets[:1], AUC.methods, AUC.values[:1])
    found = verdicts.verdicts(KNOB, auc, auc)
    assert verdicts.table(KNOB, found).rows[2][2] == "+0.0500"
    assert panels.draw(tmp_path / "one.png", {"size": found}, 1).read_bytes().startswith(b"\x89PNG")


# ----------------------------------------------------------------------------------------------- a whole run

FEW = (
    Knob("scaling", (Variant("auto"), Variant("none", (fit(scaling=None),)))),
    Knob("far distance", (Variant("1 nearest", reading=1), Variant("3 nearest"))),
    Knob(
        "averaging",
        (
            Variant("one scorer"),
            *(Variant(what, (fit(scaling=None), fit()), what) for what in ("ranks", "scores")),
        ),
    ),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A quick run of a few variants on two sets."""
    root = tmp_path_factory.mktemp("research")
    data = root / "data"
    data.mkdir()
    rng = np.random.default_rng(0)
    for file, d in (("1_one.npz", 2), ("2_two.npz", 3)):
        rows = np.concatenate([rng.normal(size=(100, d)), rng.normal(2, 1, size=(20, d))])
        np.savez(data / file, X=rows, y=np.repeat([0, 1], [100, 20]))
    arguments = ["--out", str(root / "out"), "--data", str(data), "--quick", "--jobs", "1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(research, "KNOBS", FEW)
        research.main(arguments)
    return root / "out", arguments


def test_a_run_writes_tables_records_and_picture(finished):
    out, _ = finished
    told = json.loads((out / "research.json").read_text())
    assert told["seeds"] == [0]
    assert [table["name"] for table in told["tables"]] == [
        "summary",
        "scaling",
        "far-distance",
        "averaging",
        "sets",
    ]
    found = {(record["set"], record["method"]): record for record in told["records"]}
    assert {method for _, method in found} == {
        "default",
        "scaling: none",
        "far distance: 1 nearest",
        "averaging: ranks",
        "averaging: scores",
    }
    assert len(found) == len(told["records"]) == 10
    # One cell a fit: far distances are the default's, and both averages one another's.
    assert len(list((out / "cells").glob("*.json"))) == 6
    assert found["one", "default"]["fit_seconds"] == found["one", "far distance: 1 nearest"]["fit_seconds"]
    assert all(0.5 < record["auc"] <= 1 and record["n_train"] == 50 for record in told["records"])
    page = (out / "research.md").read_text()
    for said in ("# Research", "Quick look", "## Does choosing pay?", "**3 nearest**", "research.png"):
        assert said in page
    assert (out / "research.png").read_bytes().startswith(b"\x89PNG")


def test_the_default_is_rankad_of_the_quality_study(finished):
    out, arguments = finished
    told = json.loads((out / "research.json").read_text())
    one = sets.find_sets(Path(arguments[3]))[0]
    sizes = Study(out, out, quick=True).sizes
    expected = cells.measure(one.path, one.digest, 0, methods.RANKAD, 0.0, sizes)
    [found] = [r for r in told["records"] if (r["set"], r["method"]) == (one.name, "default")]
    assert found["auc"] == pytest.approx(expected["auc"], abs=1e-3)


def test_a_later_run_measures_what_is_new_alone(finished, monkeypatch):
    out, arguments = finished
    before = (out / "research.md").read_text()
    again = []

    def measured(path, digest, seed, fits, readings, sizes):
        again.append((path.name, fits))
        raise InterruptedError

    monkeypatch.setattr(trials, "measure", measured)
    monkeypatch.setattr(research, "KNOBS", FEW)
    research.main(arguments)
    assert (out / "research.md").read_text() == before
    new = Variant("robust", (fit(scaling="robust"),))
    monkeypatch.setattr(research, "KNOBS", (FEW[0]._replace(variants=(*FEW[0].variants, new)), *FEW[1:]))
    with pytest.raises(InterruptedError):
        research.main(arguments)
    monkeypatch.setattr(research, "KNOBS", FEW)
    monkeypatch.setattr("rankad.experiments.cells._source_digest", lambda: "another source")
    with pytest.raises(InterruptedError):
        research.main(arguments)
    assert again == [("1_one.npz", new.fits), ("1_one.npz", knobs.DEFAULT)]


@pytest.mark.parametrize("module", [knobs, verdicts])
def test_examples_in_docstrings(module):
    tried = doctest.testmod(module)
    assert tried.attempted
    assert not tried.failed
