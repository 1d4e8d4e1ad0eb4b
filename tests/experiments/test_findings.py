"""The ten findings: what each measures, against slow and obvious versions, and the run of all."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import betabinom, spearmanr

import oracles
from rankad import RankAD
from rankad.experiments import findings, level_sets, measures, pictures
from rankad.experiments.cells import Settings
from rankad.experiments.datasets import SPECS, Dataset, DatasetError
from rankad.experiments.findings import (
    bayes,
    false_alarms,
    far_field,
    features,
    pair_weight,
    readings,
    sign,
    support,
    tail,
    ties,
)
from rankad.experiments.findings import finding as parts
from rankad.experiments.pictures import new_figure
from rankad.experiments.results import Table
from rankad.experiments.synthetic import DEVIATIONS, PRINTED, Mixture, mixture_split
from rankad.stages.levels import disagreement

PNG = b"\x89PNG\r\n\x1a\n"


def cloud(name="annthyroid", data=None):
    """Rows of three columns of different spread, the anomalies shifted in the narrowest one."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(900, 3)) * [100.0, 1.0, 0.1]
    rows[800:, 2] += 0.5
    return Dataset(name, rows, np.repeat([0, 1], [800, 100]))


@pytest.fixture
def clouds(monkeypatch):
    """Put the cloud in the place of every data set."""
    monkeypatch.setattr(parts, "load", cloud)
    monkeypatch.setattr(findings, "load", cloud)


def auc_by_hand(nominal, scores):
    difference = np.subtract.outer(scores[nominal], scores[~nominal])
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean())


# -------------------------------------------------------------------------------------------- what they share


def test_the_split_is_capped_on_both_sides(clouds):
    split = parts.real_split("cover", None, 3, 200, 50)
    assert (len(split.train), split.nominal.sum(), (~split.nominal).sum()) == (200, 50, 50)
    np.testing.assert_array_equal(parts.real_split("cover", None, 3, 200, 50).test, split.test)


def test_the_mixtures_split_has_uniform_anomalies():
    split = mixture_split(PRINTED, 0, 30, 2_000, 2_000)
    assert len(split.train) == 30
    assert split.nominal.tolist() == [True] * 2_000 + [False] * 2_000
    anomalous = split.test[~split.nominal]
    assert np.abs(anomalous).max() <= 18.0
    # The mean of 2,000 uniform numbers, within 4.5 standard errors.
    assert np.abs(anomalous.mean(axis=0)).max() < 4.5 * 36 / math.sqrt(12 * 2_000)


def test_what_is_asked_of_the_records_must_be_there():
    records = [{"k": 1, "x": 2}, {"k": 2, "x": 3}, {"k": 1, "x": 4}]
    assert [one["x"] for one in parts.find(records, k=1)] == [2, 4]
    with pytest.raises(ValueError, match=r"No cell has \{'k': 3\}; list one for it"):
        parts.find(records, k=3)


# ------------------------------------------------------------------------------------------------ one by one


def test_1_the_literal_count_is_the_printed_formula():
    rng = np.random.default_rng(0)
    # Few distinct values, hence ties.
    nominal, scores = rng.integers(0, 6, 40).astype(float), rng.integers(-1, 7, 30).astype(float)
    expected = [np.mean([score < g for g in nominal]) for score in scores]
    np.testing.assert_allclose(sign.literal_ranks(scores, nominal), expected)


def test_1_the_literal_count_turns_the_order_round():
    found = sign.measure(seed=1, n_train=120, n_test=400)
    assert found["ours"]["auc"] > 0.9
    assert found["literal"]["auc"] == pytest.approx(1.0 - found["ours"]["auc"], abs=0.01)
    assert found["ours"]["alarms"]["anomalous"] > 0.6
    assert found["literal"]["alarms"]["anomalous"] < 0.05
    for which in ("literal", "ours"):
        for kind in ("nominal", "anomalous"):
            assert sum(found[which]["histogram"][kind]) == pytest.approx(1.0)


def test_2_pairs_are_compared_one_by_one():
    rng = np.random.default_rng(1)
    scores, levels = rng.integers(0, 4, 30).astype(float), rng.integers(1, 4, 30)
    pairs = [(i, j) for i in range(30) for j in range(30) if levels[i] > levels[j]]
    found = ties.pair_shares(scores, levels)
    assert found.wrong == pytest.approx(np.mean([scores[i] < scores[j] for i, j in pairs]))
    assert found.tied == pytest.approx(np.mean([scores[i] == scores[j] for i, j in pairs]))
    assert found.wrong + found.tied / 2 == pytest.approx(disagreement(scores, levels))


def test_2_a_model_that_says_nothing_is_perfect_by_the_strict_loss(clouds):
    given = {"dataset": "cover", "seed": 0, "n": 120, "n_test": 60, "data": None}
    silent, useful = (ties.measure(multiple=multiple, **given) for multiple in (2.0**-10, 2.0))
    assert (silent["strict"], silent["tied"], silent["half"]) == (0.0, 1.0, 0.5)
    assert silent["strict"] < useful["strict"]
    assert useful["half"] < silent["half"]


def test_3_far_from_all_data_only_the_far_field_alarms():
    ray = far_field.measure_ray(n=150, seed=2)
    assert ray["true"][-1] == 0.0
    assert ray[far_field.WITH][-1] == pytest.approx(1 / 151)
    assert ray[far_field.WITHOUT][-1] > 0.05
    # On the rows themselves the two are alike.
    assert np.abs(ray[far_field.WITH][:8] - ray[far_field.WITHOUT][:8]).max() < 0.2


def test_3_the_selected_pair_is_carried_over(clouds):
    size = {"seed": 4, "n": 160, "n_select": 80, "n_test": 60}
    found = far_field.measure("http", far_field.WITH, **size, data=None)
    split = parts.real_split("http", None, 4, 160, 60)
    bandwidths = [f"{multiple!r} D_K" for multiple in far_field.MULTIPLES]
    trial = RankAD.as_published(bandwidth=bandwidths, C=far_field.C, far_field=True, random_state=4)
    trial.fit(split.train[:80])
    assert found["C"] == trial.C_ / 4
    detector = RankAD.as_published(bandwidth=found["bandwidth"], C=found["C"], far_field=True, random_state=4)
    scores = detector.fit(split.train).score_samples(split.test)
    assert found["auc"] == pytest.approx(auc_by_hand(split.nominal, scores))


def test_4_in_sample_alarms_are_those_of_in_sample_calibration(few_folds, clouds):
    found = false_alarms.measure("shuttle", seed=6, n=80, n_test=300, data=None)
    split = parts.real_split("shuttle", None, 6, 80, 300)
    fresh = split.test[split.nominal]
    for which in ("in-sample", "cross-fit"):
        alone = RankAD(calibration=which, near_field=False, n_components=0, random_state=6)
        p = alone.fit(split.train).p_values(fresh)
        assert found["alarms"][which] == [int((p <= alpha).sum()) for alpha in (0.01, 0.05, 0.10)]
    assert found["n_fresh"] == 300


def test_4_the_band_holds_all_but_one_in_a_hundred():
    for alpha in false_alarms.ALPHAS:
        low, high = (round(300 * edge) for edge in measures.false_alarm_band(alpha, 400, 300))
        r = math.floor(alpha * 401)
        law = betabinom(300, r, 401 - r)
        inside = sum(law.pmf(count) for count in range(low, high + 1))
        # Each edge leaves out half a per cent, as nearly as whole numbers allow.
        assert inside >= 0.99
        assert inside - law.pmf(low) - law.pmf(high) < 0.99
    assert measures.false_alarm_band(0.01, 50, 300) == (0.0, 0.0)


def test_5_dual_coefficients_reproduce_the_scores():
    rows = PRINTED.sample(120, np.random.default_rng(3))
    ranker = RankAD.as_published(bandwidth=2.0, C=0.01, random_state=0).fit(rows)
    scores = ranker.score_samples(rows)
    coefficients = support.dual_coefficients(scores, ranker.levels_, ranker.C_)
    np.testing.assert_allclose(
        oracles.rbf_matrix(rows, rows, 2.0) @ coefficients, scores, atol=1e-3 * np.ptp(scores)
    )
    # Pairs constrain only differences.
    assert coefficients.sum() == pytest.approx(0.0, abs=1e-9 * np.abs(coefficients).sum())


def test_5_shares_and_sizes(clouds):
    found = support.measure_support("cover", seed=0, n=120, data=None)
    assert 0.3 < found["share"] <= 1.0
    assert found["coefficients"][0] == 1.0
    assert (np.diff(found["coefficients"]) <= 0).all()
    assert np.mean(np.array(found["coefficients"]) > support.NEGLIGIBLE) == pytest.approx(
        found["share"], abs=0.02
    )


def test_6_scaling_lets_the_narrow_column_count(clouds):
    given = {"dataset": "cover", "method": features.KLPE_20, "seed": 0, "n": 300, "n_test": 100, "data": None}
    raw, scaled = (features.measure(features=kind, **given)["auc"] for kind in ("raw", "standardized"))
    split = parts.real_split("cover", None, 0, 300, 100)
    expected = -np.sort(cdist(split.test, split.train), axis=1)[:, :20].mean(axis=1)
    assert raw == pytest.approx(auc_by_hand(split.nominal, expected), abs=1e-9)
    assert raw < 0.7
    assert scaled > 0.9


def test_7_both_readings_by_sorted_distances(clouds):
    found = readings.measure("cover", k=6, seed=1, n=200, n_test=80, data=None)
    split = parts.real_split("cover", None, 1, 200, 80)
    distances = np.sort(cdist(split.test, split.train), axis=1)
    # Six neighbours around the sixth: the fourth to the ninth.
    scores = {"mean": -distances[:, :6].mean(axis=1), "centred": -distances[:, 3:9].mean(axis=1)}
    for statistic, expected in scores.items():
        assert found[statistic] == pytest.approx(auc_by_hand(split.nominal, expected), abs=1e-9)
    nominal = [scores[statistic][split.nominal] for statistic in scores]
    assert found["correlation"] == pytest.approx(spearmanr(*nominal).statistic, abs=1e-9)


def test_8_only_the_cuts_differ():
    names = (level_sets.DEFAULT, level_sets.THREE_LEVELS)
    ours, thirds = (level_sets.METHODS[name](0, 2_000).get_params() for name in names)
    assert {name for name in ours if ours[name] != thirds[name]} == {"n_levels"}
    assert thirds["n_levels"] == 3
    assert {cell.key["experiment"] for cell in tail.cells(Settings())} == {"findings"}


def test_9_bayes_by_hand_and_by_chance():
    # One round Gaussian: the p-value at distance r is exp(-r^2 / 2), its mean over a wide box 2 pi / area.
    disc = Mixture("disc", (1.0,), ((0.0, 0.0),), ((1.0, 1.0),))
    assert bayes.bayes_auc(disc, 10.0, 200) == pytest.approx(1 - 2 * math.pi / 400, abs=0.0005)
    split = mixture_split(DEVIATIONS, 0, 1, 20_000, 20_000)
    density = DEVIATIONS.density(split.test)
    drawn = np.mean(np.sort(density[split.nominal]).searchsorted(density[~split.nominal])) / 20_000
    assert bayes.bayes_auc(DEVIATIONS, 18.0, 200) == pytest.approx(1 - drawn, abs=0.005)


def test_9_the_papers_own_figures():
    assert (bayes.PAPER_BAYES, bayes.PAPER_HALF) == (0.929, 18.0)
    for quick in (True, False):
        assert all(18.0 in cell.key["halves"] for cell in bayes.cells(Settings(quick=quick))[:2])


def test_10_c_times_pairs_is_kept(monkeypatch):
    monkeypatch.setattr(pair_weight, "SIZES", (60, 240))
    few, many = (pair_weight.measure(n=n, C=pair_weight.rescaled(n), seed=0, n_test=100) for n in (60, 240))
    # Thirds of 60 and of 240 rows: n^2 / 3 pairs, up to ties of averaged ranks.
    assert few["pairs"] == pytest.approx(60**2 / 3, rel=0.05)
    assert pair_weight.rescaled(60) == 1.0
    assert many["pairs"] * pair_weight.rescaled(240) == pytest.approx(few["pairs"], rel=0.05)
    kept = pair_weight.measure(n=240, C=1.0, seed=0, n_test=100)
    assert kept["norm"] > 1.5 * few["norm"]
    assert abs(math.log(many["norm"] / few["norm"])) < 0.5 * math.log(kept["norm"] / few["norm"])


# ---------------------------------------------------------------------------------------------------- the run


@pytest.mark.parametrize("quick", [True, False])
def test_cells_differ_and_name_their_finding(quick):
    settings = Settings(quick=quick)
    keys = [
        json.dumps(cell.key, sort_keys=True)
        for module in findings.FINDINGS
        for cell in module.cells(settings)
    ]
    assert len(set(keys)) == len(keys)
    for module in findings.FINDINGS:
        if module is not tail:
            assert {cell.key["finding"] for cell in module.cells(settings)} == {module.NAME}


def test_a_quick_run_draws_all_ten_and_says_what_it_leaves_out(few_folds, clouds, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "_DPI", 40)
    findings.run(Settings(out=tmp_path, quick=True, n_jobs=1))
    names = [f"finding-{number:02d}" for number in range(1, 11)]
    for name in names:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)
    content = json.loads((tmp_path / "findings.json").read_text())
    assert content["figures"] == [f"{name}.png" for name in names]
    assert list(content["cells"]) == names
    for number, table in enumerate(content["tables"], 1):
        assert table["name"] == f"finding-{number:02d}"
        assert table["title"].startswith(f"{number}. ")
        assert table["notes"][0].startswith("**Quick look (--quick)**: ")
    text = (tmp_path / "findings.md").read_text()
    first = content["cells"]["finding-01"][0]["ours"]
    assert f"| {first['auc']:.4f} | {first['alarms']['anomalous']:.2%} |" in text
    # The other sets of the full run are named.
    assert "without Annthyroid, Forest Cover, HTTP, Mulcross, Satellite, Shuttle, SMTP" in text


def test_finished_cells_are_not_measured_again(clouds, tmp_path, monkeypatch):
    calls = []

    def work(x):
        calls.append(x)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return {"square": x * x}

    def module(name, values):
        return SimpleNamespace(
            NAME=name,
            cells=lambda settings: parts.finding_cells(name, work, x=list(values)),
            report=lambda records, settings: parts.Report(
                Table(name, name, ["square"], [[str(one["square"])] for one in records]),
                new_figure("", (1, 1)),
            ),
        )

    monkeypatch.setattr(findings, "FINDINGS", (module("one", (1, 2)), module("two", (3,))))
    settings = Settings(out=tmp_path, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        findings.run(settings)
    findings.run(settings)
    findings.run(settings)
    assert calls == [1, 2, 2, 3]
    content = json.loads((tmp_path / "findings.json").read_text())
    assert [table["rows"] for table in content["tables"]] == [[["1"], ["4"]], [["9"]]]
    assert content["cells"]["two"] == [{"version": 1, "x": 3, "square": 9}]


def test_a_missing_set_is_told_before_any_work(tmp_path, monkeypatch):
    def missing(name, data):
        raise DatasetError(f"{name} is not there")

    monkeypatch.setattr(findings, "load", missing)
    with pytest.raises(DatasetError, match=f"{next(iter(SPECS))} is not there"):
        findings.run(Settings(out=tmp_path, n_jobs=1))
    assert not list(tmp_path.iterdir())
