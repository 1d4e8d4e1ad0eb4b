"""What RankAD's ingredients do to quality: variants, their scores, verdicts, and a run on two tiny sets."""

import doctest
import json
import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest
from scipy.special import logsumexp

# The benchmarks are not installed with the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.quality import cells, knobs, methods, panels, research, sets, trials, verdicts
from benchmarks.quality.comparison import Comparison
from benchmarks.quality.knobs import PARTS, Fit, Knob, Reading, Variant, fit
from benchmarks.quality.settings import Study
from rankad import RankAD
from rankad.fitting import ranker, sizes
from rankad.scorers import fusion, mixture

ROWS = np.random.default_rng(0).normal(size=(120, 3)) * [1.0, 20.0, 0.1] + [0.0, 500.0, 0.0]
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
                RankAD(**dict(one.parameters))._check()


def test_every_constant_is_there_and_a_number_of_the_same_kind():
    named = [item for knob in knobs.KNOBS for variant in knob.variants for item in variant.fits[0].constants]
    assert {name.rpartition(".")[2] for name, _ in named} == {"FAR_SHARE", "_STEPS", "_LEAST_VARIANCE"}
    for name, value in named:
        assert type(value) is type(resolve_name(name)), name


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


@pytest.mark.parametrize("default", ["D_K", "1 D_K", "1.0 D_K"])
def test_a_bandwidth_is_the_default_however_it_is_written(monkeypatch, default):
    monkeypatch.setitem(knobs._DEFAULTS, "bandwidth", default)
    assert fit(bandwidth="1 D_K") == Fit()
    assert fit(bandwidth="0.5 D_K") == Fit((("bandwidth", "0.5 D_K"),))


# -------------------------------------------------------------------------------------------- scores of fits


@pytest.fixture(scope="module")
def default():
    return trials.fitted(Fit(), ROWS, 0)


def test_the_default_is_rankad_but_for_its_folds(default, monkeypatch):
    monkeypatch.setattr(sizes, "CALIBRATION_FOLDS", trials.FOLDS)
    whole = methods.detector(methods.RANKAD, 0).fit(ROWS)
    assert default.scorer_.n_parts == 3
    assert np.array_equal(trials.read([default], Reading(), NEW), whole.score(NEW))


def _units_below(scorer, rows, reach):
    """Return parts by hand: in their units, and far below the middle as logarithms."""
    z = (scorer.parts(rows) - scorer.units.centers[:, None]) / scorer.units.spreads[:, None]
    return np.where(z < -reach, -reach - np.log(np.maximum(1.0, 1.0 - z - reach)), z)


@pytest.mark.parametrize("which", [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]])
def test_parts_by_hand(default, which):
    reading = Reading(tuple(PARTS[at] for at in which))
    z = _units_below(default.scorer_, NEW, fusion._REACH)[which]
    expected = math.log(len(which)) - logsumexp(-z, axis=0)
    np.testing.assert_allclose(trials.read([default], reading, NEW), expected, rtol=1e-9)


@pytest.mark.parametrize("reach", [0.0, 2.0, 1e6])
def test_the_reach_is_what_it_is_told_to_be_and_no_longer(default, reach):
    before = fusion._REACH
    z = _units_below(default.scorer_, NEW, reach)
    expected = math.log(3) - logsumexp(-z, axis=0)
    found = trials.read([default], Reading(reach=reach), NEW)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert before == fusion._REACH
    assert not np.allclose(found, trials.read([default], Reading(), NEW))


def test_means_and_minima_by_hand(default):
    z = _units_below(default.scorer_, NEW, fusion._REACH)
    np.testing.assert_allclose(trials.read([default], Reading(fusion="mean"), NEW), z.mean(axis=0))
    np.testing.assert_allclose(trials.read([default], Reading(fusion="minimum"), NEW), z.min(axis=0))


def test_where_a_part_is_not_there_the_others_are_read():
    two = trials.fitted(fit(n_components=0), ROWS, 0)
    near = trials.read([two], Reading(("near rows",)), NEW)
    assert np.array_equal(trials.read([two], Reading(PARTS[1:]), NEW), near)
    ranksvm = trials.read([two], Reading(PARTS[:1]), NEW)
    assert np.array_equal(trials.read([two], Reading(PARTS[2:]), NEW), ranksvm)
    # Far below the middle as logarithms, and yet in the order of RankSVM's own scores.
    assert np.array_equal(np.argsort(ranksvm), np.argsort(two.scorer_.kernel.score(NEW)))
    alone = trials.fitted(fit(calibration="in-sample"), ROWS, 0)
    assert np.array_equal(trials.read([alone], Reading(("mixture",), "mean"), NEW), alone.score_samples(NEW))


def test_several_scorers_are_averaged(default):
    other = trials.fitted(fit(later_seed=5), ROWS, 0)
    expected = (default.score_samples(NEW) + other.score_samples(NEW)) / 2
    np.testing.assert_allclose(trials.read([default, other], Reading(), NEW), expected)


def test_the_point_at_infinity_weighs_what_it_is_told_to_and_no_longer():
    before = ranker.FAR_SHARE
    losses = []
    name = "rankad.fitting.ranker.FAR_SHARE"
    for share in (0.1, before, 3.0):
        detector = trials.fitted(
            fit(scaling=None, bandwidth="2 D_K", C=0.01, constants={name: share}), ROWS, 0
        )
        g = replace(detector.scorer_.kernel, far_field=False, limits=None).score(ROWS)
        # What it costs that rows are not above infinity, where g is zero, by one.
        losses.append((np.maximum(0.0, 1.0 - g) ** 2).sum())
        assert before == ranker.FAR_SHARE
    # The more a part of the loss weighs, the less of it is left.
    assert losses[0] > 1.01 * losses[1] > 1.01**2 * losses[2]
    with pytest.raises(ValueError, match="RankAD needs 8 rows"):
        trials.fitted(fit(constants={name: 3.0}), ROWS[:3], 0)
    assert before == ranker.FAR_SHARE


def test_gaussians_have_the_least_variance_they_are_told_to_have():
    thin = np.column_stack([ROWS, ROWS[:, 0] + 1e-9 * ROWS[:, 1]])
    eigenvalues, before = [], mixture._LEAST_VARIANCE
    for least in (1e-2, 1e-4):
        detector = trials.fitted(fit(constants={"rankad.scorers.mixture._LEAST_VARIANCE": least}), thin, 0)
        factors = detector.scorer_.mixture.factors * thin.std(axis=0)
        inverses = np.einsum("kji,kjl->kil", factors, factors)
        eigenvalues.append(1 / np.linalg.eigvalsh(inverses)[:, -1])
    np.testing.assert_allclose(eigenvalues[0], 1e-2, rtol=1e-3)
    np.testing.assert_allclose(eigenvalues[1], 1e-4, rtol=1e-3)
    assert before == mixture._LEAST_VARIANCE


def test_parameters_that_depend_on_the_rows():
    found = trials.fitted(fit(C_times_rows=20.0, bandwidth="0.25 D_K", n_neighbors=60), ROWS, 0)
    assert (found.C_, found.n_neighbors_) == (20.0 / 120, 20)
    assert found.get_params()["calibration"] == RankAD().calibration
    assert trials.fitted(fit(n_neighbors=3, later_seed=5), ROWS, 2).random_state == 7


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
    Knob("scaling", (Variant("robust"), Variant("none", (fit(scaling=None),)))),
    Knob("parts", (Variant("mixture", reading=Reading(("mixture",))), Variant("all"))),
    Knob("seeds", (Variant("1"), Variant("2", (fit(), fit(later_seed=1))))),
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
        "parts",
        "seeds",
        "sets",
    ]
    found = {(record["set"], record["method"]): record for record in told["records"]}
    assert {method for _, method in found} == {
        "default",
        "scaling: none",
        "parts: mixture",
        "seeds: 2",
    }
    assert len(found) == len(told["records"]) == 8
    # One cell for fits that are the same: parts are read from the default's.
    assert len(list((out / "cells").glob("*.json"))) == 6
    assert found["one", "default"]["fit_seconds"] == found["one", "parts: mixture"]["fit_seconds"]
    assert found["one", "default"]["auc"] != found["one", "parts: mixture"]["auc"]
    assert all(0.5 < record["auc"] <= 1 and record["n_train"] == 50 for record in told["records"])
    page = (out / "research.md").read_text()
    for said in ("# Research", "Quick look", "## Does choosing pay?", "**all**", "research.png"):
        assert said in page
    assert (out / "research.png").read_bytes().startswith(b"\x89PNG")


def test_the_default_is_rankad_of_the_quality_study(finished, monkeypatch):
    monkeypatch.setattr(sizes, "CALIBRATION_FOLDS", trials.FOLDS)
    out, arguments = finished
    told = json.loads((out / "research.json").read_text())
    one = sets.find_sets(Path(arguments[3]))[0]
    few = Study(out, out, quick=True).sizes
    expected = cells.measure(one.path, one.digest, 0, methods.RANKAD, 0.0, few)
    [found] = [r for r in told["records"] if (r["set"], r["method"]) == (one.name, "default")]
    assert found["auc"] == expected["auc"]


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
    new = Variant("standard", (fit(scaling="standard"),))
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
