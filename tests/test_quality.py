"""Detection quality beside the peers: splits, signs, ranks, bands, and a whole run on two tiny sets."""

import doctest
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import betabinom, friedmanchisquare

# The benchmarks are not installed with the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import peers
from benchmarks.quality import __main__ as command
from benchmarks.quality import (
    alarms,
    bars,
    cases,
    cells,
    comparison,
    contamination,
    methods,
    one_table,
    report,
    sets,
    settings,
    splits,
    spread,
    synthetic,
)
from rankad.experiments.datasets import Dataset, DatasetError
from rankad.fitting import sizes


def _rows(n_nominal, n_anomalies, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(n_nominal, d)), rng.normal(6, 1, size=(n_anomalies, d))])
    return X, np.repeat([0, 1], [n_nominal, n_anomalies])


def _write(path, X, y):
    np.savez(path, X=X, y=y)
    return path


# ------------------------------------------------------------------------------------------------------ sets


@pytest.mark.parametrize(
    ("file", "name"),
    [("10_cover.npz", "cover"), ("44_Wilt.npz", "Wilt"), ("satimage-2.npz", "satimage-2"), ("7_.npz", "7_")],
)
def test_a_set_is_called_by_its_file_without_the_number(file, name):
    assert sets.set_name(Path(file)) == name


def test_every_file_of_the_folder_is_found(tmp_path):
    _write(tmp_path / "2_beta.npz", *_rows(60, 5))
    _write(tmp_path / "10_Alpha.npz", *_rows(70, 4, d=2))
    (tmp_path / "README.md").write_text("not a set")
    found = sets.find_sets(tmp_path)
    assert [(one.name, one.n_rows, one.n_columns, one.n_anomalies) for one in found] == [
        ("Alpha", 74, 2, 4),
        ("beta", 65, 3, 5),
    ]
    assert found[0].digest != found[1].digest
    with pytest.raises(DatasetError, match=r"10_Alpha\.npz has changed since the run began; start it again"):
        sets.load_set(found[0].path, found[1].digest)


X, Y = _rows(60, 5)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"X": X}, "lacks y: it must hold the arrays X .* and holds X$"),
        ({"rows": X}, "lacks X and y: .* and holds rows$"),
        ({"X": X[0], "y": Y}, r"X must be a table, rows by columns, and has the shape \(3,\)"),
        ({"X": X, "y": Y[1:]}, r"one label for each of the 65 rows of X, and has the shape \(64,\)"),
        ({"X": np.where(X > 7, np.nan, X), "y": Y}, "X holds .* values that are not finite"),
        ({"X": X.astype(str), "y": Y}, "X must hold numbers, and is of type <U"),
        ({"X": X, "y": 2 * Y}, "y must hold 1 for an anomaly and 0 for a nominal row"),
        ({"X": X, "y": 0 * Y}, "there is no anomaly"),
        ({"X": X[20:], "y": Y[20:]}, "there are 40 nominal rows .*, and 50 are the least"),
        ({"X": X.astype(object), "y": Y}, "cannot be read as a .npz file of plain arrays"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path, arrays, said):
    np.savez(tmp_path / "3_bad.npz", **arrays)
    with pytest.raises(DatasetError, match=rf"3_bad\.npz.*{said}"):
        sets.find_sets(tmp_path)


def test_a_file_that_is_no_archive_is_named(tmp_path):
    (tmp_path / "bad.npz").write_text("x")
    with pytest.raises(DatasetError, match=r"bad\.npz cannot be read.*move it out of the folder"):
        sets.find_sets(tmp_path)
    with open(tmp_path / "bad.npz", "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(DatasetError, match=r"bad\.npz cannot be read"):
        sets.find_sets(tmp_path)


def test_two_files_with_one_name_are_refused(tmp_path):
    for file in ("1_twin.npz", "2_twin.npz"):
        _write(tmp_path / file, *_rows(60, 5))
    with pytest.raises(DatasetError, match="are both called 'twin' without their numbers; rename one"):
        sets.find_sets(tmp_path)


def test_a_run_without_data_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("RANKAD_DATA", raising=False)

    def complaint(*arguments):
        with pytest.raises(SystemExit) as ended:
            command.main(["--out", str(tmp_path / "out"), *arguments])
        assert ended.value.code == 2
        return " ".join(capsys.readouterr().err.split())

    assert "name one with --data DIR or in RANKAD_DATA" in complaint()
    assert f"--data names {tmp_path}/none, which is not a folder" in complaint("--data", f"{tmp_path}/none")
    assert "holds no .npz file; put the data sets there" in complaint("--data", str(tmp_path))
    assert "'0' is not a positive whole number" in complaint("--seeds", "0")
    monkeypatch.setenv("RANKAD_DATA", str(tmp_path / "gone"))
    assert f"RANKAD_DATA names {tmp_path}/gone, which is not a folder" in complaint()
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------------------------------------------- splits


def _numbered(n_nominal, n_anomalies):
    """Rows that tell which they are."""
    n = n_nominal + n_anomalies
    y = np.zeros(n, dtype=np.int64)
    y[np.random.default_rng(5).permutation(n)[:n_anomalies]] = 1
    return Dataset("numbered", np.arange(float(n))[:, None], y)


@pytest.mark.parametrize(("n_nominal", "n_train", "n_test"), [(101, 50, 51), (1_000, 300, 500)])
def test_half_of_the_nominal_rows_train_and_no_row_does_both(n_nominal, n_train, n_test):
    dataset = _numbered(n_nominal, 30)
    parts = splits.split(dataset, 0, 0.0, settings.Sizes(300, 500))
    train, test = parts.train[:, 0].astype(int), parts.test[:, 0].astype(int)
    assert (train.size, parts.nominal.sum(), (~parts.nominal).sum()) == (n_train, n_test, 30)
    assert not dataset.y[train].any()
    assert (dataset.y[test] == 0).tolist() == parts.nominal.tolist()
    assert np.unique(np.concatenate([train, test])).size == train.size + test.size
    again, other = (splits.split(dataset, seed, 0.0, settings.Sizes(300, 500)) for seed in (0, 1))
    assert (again.train == parts.train).all()
    assert (other.train != parts.train).any()


@pytest.mark.parametrize(("n_anomalies", "mixed"), [(300, [10, 50, 100]), (60, [10, 30, 30]), (1, [0, 0, 0])])
def test_anomalies_are_mixed_in_and_never_tested_on(n_anomalies, mixed):
    dataset, sizes = _numbered(2_000, n_anomalies), settings.Sizes()
    clean = splits.split(dataset, 3, 0.0, sizes)
    assert clean.mixed == 0
    assert clean.train.shape == (1_000, 1)
    assert clean.spared[clean.nominal].all()
    assert (~clean.spared).sum() == mixed[-1]
    before = set()
    for share, expected in zip(settings.SHARES, mixed, strict=True):
        parts = splits.split(dataset, 3, share, sizes)
        train = parts.train[:, 0].astype(int)
        inside = set(train[dataset.y[train] == 1].tolist())
        assert parts.mixed == len(inside) == expected
        assert len(train) == 1_000
        assert before <= inside
        assert (parts.test == clean.test[clean.spared]).all()
        assert (parts.nominal == clean.nominal[clean.spared]).all()
        assert parts.spared.all()
        assert not inside & set(parts.test[:, 0].astype(int).tolist())
        assert np.isin(train[dataset.y[train] == 0], clean.train[:, 0]).all()
        before = inside


# --------------------------------------------------------------------------------------------------- methods


@pytest.mark.parametrize("name", list(methods.METHODS))
def test_every_method_scores_nominal_rows_higher(name):
    rng = np.random.default_rng(0)
    train, near, far = rng.normal(size=(120, 3)), np.zeros((20, 3)), np.full((3, 3), 30.0)
    units = [1, 1, 1e3]
    train, near, far = train * units, near * units, far * units
    if name != "PCA":
        # A column that does not vary, by whose variance PyOD's PCA divides.
        train, near, far = (np.column_stack([rows, np.full(len(rows), 7.0)]) for rows in (train, near, far))
    scores = methods.detector(name, 0).fit(train).score(np.concatenate([near, far]))
    scores = cells.ordered(scores)
    assert scores[:20].min() > scores[20:].max()


def test_the_trimmed_detector_is_the_default_but_for_its_trim():
    default, trimmed = (methods.detector(name, 3).estimator.get_params() for name in methods.OURS)
    assert trimmed == {**default, "trim": 0.1}
    assert methods.TRIMMED == "RankAD, trim=0.1"


def test_neighbour_distance_by_hand():
    detector = methods._NeighbourDistance(2).fit(np.array([[0.0], [1.0], [5.0]]))
    assert detector.decision_function(np.array([[2.0], [5.0]])).tolist() == [1.5, 2.0]


def test_robust_columns_by_hand():
    train = np.array([[0.0, 5.0, 0.0], [1.0, 5.0, 0.0], [2.0, 5.0, 0.0], [3.0, 5.0, 0.0], [4.0, 5.0, 10.0]])
    # Quartiles 1 and 3 are two apart; a column of one value keeps its unit; one of few others has spread 4.
    found = methods._robust(train)(np.array([[6.0, 7.0, 4.0]]))
    np.testing.assert_allclose(found, [[4 * 1.349 / 2, 2.0, 1.0]])


def test_whitened_distances_are_mahalanobis_where_little_is_shrunk():
    rng = np.random.default_rng(0)
    train = rng.normal(size=(20_000, 2)) @ [[1.0, 0.9], [0.0, 0.3]]
    inverse = np.linalg.inv(np.cov(train.T))
    here, there = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    whiten = methods._whitened(train)
    expected = cdist(here, there, "mahalanobis", VI=inverse)
    np.testing.assert_allclose(cdist(whiten(here), whiten(there)), expected, rtol=0.01)


def test_networks_are_left_out_with_a_note_where_torch_is_not_there():
    told = any("LUNAR and DIF need torch, which was not there" in note for note in report.QUALITY.notes)
    assert told == ("LUNAR" not in methods.METHODS) == ("DIF" not in methods.METHODS)
    assert ("torch" in cells.libraries()) == ("LUNAR" in methods.METHODS)


def test_peers_are_standardized_by_their_training_rows():
    train = np.array([[0.0, 3.0], [4.0, 3.0]])
    detector = peers.Detector(methods._of_pyod("seen", lambda seed: _Seen()), 1).fit(train)
    assert detector.estimator.rows.mean(axis=0).tolist() == [0.0, 0.0]
    assert detector.estimator.rows.std(axis=0).tolist() == [1.0, 0.0]
    assert detector.score(np.array([[6.0, 4.0]])).tolist() == [-3.0]


class _Seen:
    def fit(self, rows):
        self.rows = rows

    def decision_function(self, rows):
        return rows.sum(axis=1)


# ------------------------------------------------------------------------------------------------ comparison


def test_critical_differences_are_those_of_the_published_table():
    # Demsar 2006, table 5(a): q at 5 % for 2 to 10 classifiers.
    published = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for k, q in enumerate(published, start=2):
        found = comparison.critical_difference(k, 1) / np.sqrt(k * (k + 1) / 6)
        assert found == pytest.approx(q, abs=1e-3)


def test_friedman_is_scipys():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, size=(6, 5)).astype(float)
    ranks = comparison.Comparison(tuple("abcdef"), tuple("vwxyz"), values).ranks
    assert comparison.friedman(ranks) == pytest.approx(friedmanchisquare(*values.T).pvalue)
    assert comparison.friedman(np.full((4, 3), 2.0)) == 1.0


def test_records_are_averaged_over_seeds_and_ordered():
    def record(name, seed, method, auc, share=0.0):
        return {"set": name, "seed": seed, "method": method, "auc": auc, "share": share}

    records = [
        record("b", 0, "GMM", 0.9),
        record("b", 1, "GMM", 0.7),
        record("b", 0, "KDE", 0.9),
        record("b", 1, "KDE", 0.9),
        record("A", 0, "GMM", 0.5),
        record("A", 1, "GMM", 0.5),
        record("A", 0, "KDE", 0.1),
        record("A", 1, "KDE", 0.3),
        record("A", 1, "KDE", 0.0, share=0.01),
    ]
    found = comparison.compare(records, "auc")
    assert found.sets == ("A", "b")
    assert found.methods == ("GMM", "KDE")
    np.testing.assert_allclose(found.values, [[0.5, 0.2], [0.8, 0.9]])
    assert found.mean_ranks == {"GMM": 1.5, "KDE": 1.5}
    shown = comparison.table(found, "auc", "AUC")
    assert shown.rows[0] == ["A", "**0.500**", "0.200"]
    assert shown.rows[-2:] == [["**mean**", "**0.650**", "0.550"], ["**mean rank**", "**1.50**", "**1.50**"]]


def test_equal_up_to_rounding_is_equal():
    values = np.array([[0.1 + 0.2, 0.3]])
    assert comparison.Comparison(("s",), ("a", "b"), values).ranks.tolist() == [[1.5, 1.5]]


def test_the_trimmed_detector_is_in_the_tables_on_contamination_only():
    def record(method, share, auc, alarms_at_5):
        fired = [{"alpha": 0.05, "alarms": alarms_at_5, "r": 5, "n": 99, "m": 100}]
        found = {"auc": auc, "auc_spared": auc, "not_finite": 1, "false_alarms": fired}
        return {
            "set": "s",
            "seed": 0,
            "method": method,
            "share": share,
            "n_train": 100,
            "n_anomalies": 40,
            **found,
        }

    falls = {methods.RANKAD: [0.0, 0.1, 0.2, 0.3], methods.TRIMMED: [0.0, 0.01, 0.02, 0.03]}
    records = [
        record(method, share, 0.9 - fall, at + 10 * (method == methods.TRIMMED))
        for method in methods.CONTAMINATED
        for at, (share, fall) in enumerate(
            zip((0.0, *settings.SHARES), falls.get(method, [0.0] * 4), strict=True)
        )
    ]
    auc = comparison.compare(records, "auc")
    assert set(auc.methods) == set(methods.CONTAMINATED) - {methods.TRIMMED}
    assert not any(methods.TRIMMED in note for note in comparison.notes(auc, records))
    means, by_set = contamination.tables(records)
    rows = {row[0]: row[1:] for row in means.rows}
    assert rows[methods.RANKAD] == ["0.900", "0.800", "0.1000", "0.700", "0.2000", "0.600", "0.3000"]
    assert rows[methods.TRIMMED] == ["0.900", "0.890", "0.0100", "0.880", "0.0200", "0.870", "0.0300"]
    assert means.notes[-2:] == [
        "False alarms of RankAD, on the splits of the comparison, at 5 % asked for: 0.00 %, 1.00 %, 2.00 %, "
        "3.00 % with none, 1 %, 5 %, 10 %.",
        "False alarms of RankAD, trim=0.1, on the splits of the comparison, at 5 % asked for: 10.00 %, "
        "11.00 %, 12.00 %, 13.00 % with none, 1 %, 5 %, 10 %.",
    ]
    assert list(zip(by_set.columns, by_set.rows[0], strict=True))[-4:] == [
        ("mixed in, 10 %", "10 of 100"),
        ("RankAD", "0.300"),
        ("RankAD, trim=0.1", "0.030"),
        ("k-NN 5", "0.000"),
    ]
    assert [cell.alarms for cell in alarms.alarm_cells(records)] == [0]


# ---------------------------------------------------------------------------------------------------- alarms


@pytest.mark.parametrize(("r", "n", "m"), [(20, 2_000, 20_000), (7, 703, 703), (1, 99, 50), (40, 400, 1)])
def test_bands_are_scipys(r, n, m):
    assert alarms.band(r, n, m) == betabinom.interval(0.99, m, r, n + 1 - r)


def test_expected_error_is_that_of_a_simulated_exact_calibration():
    rng = np.random.default_rng(0)
    alpha, n, m = 0.05, 99, 200
    calibration, test = np.sort(rng.random((4_000, n)), axis=1), rng.random((4_000, m))
    errors = np.abs((test < calibration[:, [4]]).mean(axis=1) / alpha - 1)
    tolerance = 4 * errors.std() / np.sqrt(errors.size)
    assert alarms.expected_error(alpha, 5, n, m) == pytest.approx(errors.mean(), abs=tolerance)


def test_no_alarm_is_what_too_few_scores_allow():
    silent = alarms.AlarmCell("few", 0, 0.01, 0, 0, 50, 100)
    assert silent.band == (0.0, 0.0)
    assert not silent.outside
    assert silent._replace(alarms=1).outside
    assert alarms.expected_error(0.01, 0, 50, 100) == 1.0


def test_summary_by_hand():
    found = [
        alarms.AlarmCell("a", 0, 0.10, 20, 10, 99, 100),
        alarms.AlarmCell("a", 1, 0.10, 5, 10, 99, 100),
        alarms.AlarmCell("a", 0, 0.05, 90, 5, 99, 100),
    ]
    one = alarms.summary(found, 0.10)
    assert (one.obtained, one.exact, one.outside, one.n_cells) == (0.125, 0.1, 0, 2)
    assert (one.bias, one.error) == (pytest.approx(0.25), pytest.approx(0.75))
    assert alarms.summary(found, 0.05).outside == 1


# ------------------------------------------------------------------------------------------------------ bars


def _judged(ours, theirs, alarms_at, wider=0.0, made_up=0.9, found=0.95):
    """Judge a run on two sets with two detectors; of three splits, two are compared on."""
    auc = comparison.Comparison(("a", "b"), (methods.RANKAD, methods.KNN), np.column_stack([ours, theirs]))
    fired = [
        alarms.AlarmCell(
            "a", seed, alpha, round(alarms_at * alpha * 10_000), round(alpha * 2_000), 1_999, 10_000
        )
        for alpha in settings.ALPHAS
        for seed in range(3)
    ]
    ranges = spread.Ranges(("a", "b"), np.array([0.1, 0.1 + wider]), np.array([0.1, 0.1]), 10)
    values = np.array([[0.9, 0.5, 0.6], [made_up, 0.8, 0.9]])
    compared = comparison.Comparison(("one", "two"), (methods.RANKAD, methods.KNN, "LOF"), values)
    relations = synthetic.Synthetic(compared, {2.0: 1.0, synthetic.JUDGED: found})
    return bars.judge(bars.Measured(auc, auc, fired, ranges, relations, range(2)))


def test_bars_are_judged():
    assert all(bar.met for bar in _judged([0.95, 0.95], [0.94, 0.94], 1.0))
    poor = _judged([0.95, 0.70], [0.94, 0.74], 1.9, 0.04, 0.84, 0.89)
    assert not any(bar.met for bar in poor if not bar.what.startswith(("Mean rank", "Mean average prec")))
    assert [bar.found for bar in poor][:7] == [
        "0.8250",
        "0.8250; best peer k-NN 5, 0.8400",
        "0.8250",
        "0.8250; best peer k-NN 5, 0.8400",
        "1.50; best peer k-NN 5, 1.50",
        "0.0400, b",
        "0.0400, b",
    ]
    # Average precision has a lower bar, and the same figures meet that.
    assert [bar.met for bar in poor][2:4] == [True, False]
    assert [bar.found for bar in poor][-3:] == [
        "100.0 %, 9 of 9 (6 of 6 on the splits of the comparison)",
        "0.0600, two",
        "89.0 % (100.0 % at 2)",
    ]


def test_the_bars_of_false_alarms_are_tighter_where_rates_are_higher():
    met = {bar.what: bar.met for bar in _judged([0.95, 0.95], [0.94, 0.94], 1.06)}
    said = "False alarms, {} % asked: relative error of the mean"
    assert [met[said.format(alpha)] for alpha in (10, 5, 1)] == [False, False, True]


# --------------------------------------------------------------------------------------- spread over splits


def test_ranges_by_hand():
    def record(name, seed, method, auc, share=0.0):
        return {"set": name, "seed": seed, "method": method, "auc": auc, "share": share}

    records = [
        *(record("b", seed, methods.RANKAD, auc) for seed, auc in enumerate([0.9, 0.7, 0.8, 0.1])),
        *(record("b", seed, methods.KNN, auc) for seed, auc in enumerate([0.5, 0.5, 0.55])),
        *(record("A", seed, methods.RANKAD, 0.9) for seed in range(3)),
        *(record("A", seed, methods.KNN, 0.9 + seed / 100) for seed in range(3)),
        record("A", 0, methods.KNN, 0.0, share=0.05),
        record("A", 0, "LOF", 0.0),
    ]
    # The fourth split is not among those asked for.
    found = spread.ranges(records, range(3))
    assert (found.sets, found.n_splits) == (("A", "b"), 3)
    np.testing.assert_allclose(found.ours, [0.0, 0.2])
    np.testing.assert_allclose(found.theirs, [0.02, 0.05])
    assert spread.table(found).rows[1] == ["b", "0.200", "0.050", "+0.150"]


def test_alarms_are_counted_on_twenty_splits_and_ten_of_them_are_for_the_spread():
    study = settings.Study(Path("out"), Path("data"))
    assert (study.seeds, study.alarm_seeds, study.spread_seeds) == (range(3), range(20), range(10))
    few = study._replace(n_alarm_seeds=5, n_seeds=6)
    assert (few.alarm_seeds, few.spread_seeds) == (range(6), range(6))


# ----------------------------------------------------------------------------------------------- made-up rows


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_every_case_draws_as_many_rows_as_asked_for(case):
    parts, other = synthetic.draw(case, 0, 200), synthetic.draw(case, 1, 200)
    assert len(parts.train) == 200
    assert (parts.nominal.sum(), (~parts.nominal).sum()) == (200, 50)
    assert np.isfinite(parts.test).all()
    assert np.array_equal(parts.test, synthetic.draw(case, 0, 200).test)
    assert not np.array_equal(parts.test, other.test)


def test_relations_hold_until_a_column_is_moved():
    rng = np.random.default_rng(0)
    holds, broken = cases.breaks(rng, 4_000, 5.0), cases.breaks(rng, 4_000, 5.0, 8.0)
    gap, moved = (rows[:, 3] - rows[:, :3].sum(axis=1) for rows in (holds, broken))
    # Five standard errors of a standard deviation and of a mean.
    assert gap.std() == pytest.approx(1.0, abs=5 / np.sqrt(8_000))
    assert np.abs(moved).mean() == pytest.approx(8.0, abs=5 / np.sqrt(4_000))
    np.testing.assert_allclose(holds.std(axis=0), [5, 5, 5, np.sqrt(76), *[1] * 16], rtol=0.06)


def test_how_far_below_the_best_peer():
    values = np.array([[0.9, 0.8, 0.7], [0.5, 0.4, 0.95]])
    compared = comparison.Comparison(("one", "two"), (methods.KNN, methods.RANKAD, "LOF"), values)
    np.testing.assert_allclose(synthetic.Synthetic(compared, {}).below, [0.1, 0.55])


@pytest.mark.parametrize("name", ["off a plane, 10-d", "volts, amperes, watts"])
def test_the_default_sees_what_distances_do_not(monkeypatch, name):
    monkeypatch.setattr(sizes, "CALIBRATION_FOLDS", 5)
    ours, theirs = (
        synthetic.measure(name, method, 0, 400)["auc"] for method in (methods.RANKAD, methods.KNN)
    )
    best = max(synthetic.measure(name, method, 0, 400)["auc"] for method in synthetic.PEERS)
    assert ours > theirs + 0.05
    assert ours > best - 0.05


def test_most_broken_relations_are_found(monkeypatch):
    monkeypatch.setattr(sizes, "CALIBRATION_FOLDS", 5)
    assert synthetic.measure_breaks(2.0, 0, 800)["found"] >= 0.9


# ----------------------------------------------------------------------------------------------- a whole run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A quick run on the two smaller of three sets."""
    root = tmp_path_factory.mktemp("quality")
    data = root / "data"
    data.mkdir()
    _write(data / "1_small.npz", *_rows(110, 8, 1))
    _write(data / "2_smaller.npz", *_rows(100, 30, 2, d=2))
    _write(data / "3_large.npz", *_rows(400, 5, 3))
    arguments = ["--out", str(root / "out"), "--data", str(data), "--quick", "--jobs", "1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "CALIBRATION_FOLDS", 5)
        patch.setattr(synthetic, "CASES", cases.CASES[6:8])
        patch.setattr(synthetic, "SPREADS", (synthetic.JUDGED,))
        command.main(arguments)
    return root / "out", arguments


@pytest.fixture
def few_cases(monkeypatch):
    """The made-up rows of that run."""
    monkeypatch.setattr(synthetic, "CASES", cases.CASES[6:8])
    monkeypatch.setattr(synthetic, "SPREADS", (synthetic.JUDGED,))


def test_a_run_writes_tables_and_pictures(finished):
    out, _ = finished
    told = json.loads((out / "quality.json").read_text())
    assert [one["name"] for one in told["sets"]] == ["small", "smaller"]
    n_cells = 2 * (len(methods.METHODS) + len(methods.CONTAMINATED) * len(settings.SHARES))
    assert len(told["records"]) == n_cells
    n_tables = 2 * len(one_table.METHODS)
    assert len(json.loads((out / "one_table.json").read_text())["records"]) == n_tables
    # False alarms and spread are of one split more.
    more = [(r["method"], r["set"], r["seed"]) for r in told["more_splits"]]
    assert more == [(name, one, 1) for name in (methods.KNN, methods.RANKAD) for one in ("small", "smaller")]
    assert len(list((out / "cells").glob("quality-*.json"))) == n_cells + 4
    made_up = [(r["set"], r["method"]) for r in told["synthetic"]]
    expected = {(name, one) for name in ("ring", "two moons") for one in (methods.RANKAD, *synthetic.PEERS)}
    assert (len(made_up), set(made_up)) == (len(expected), expected)
    assert told["relations"].keys() == {"5"}
    ours = [r for r in told["records"] if r["method"] == methods.RANKAD and r["share"] == 0]
    assert [(r["n_train"], r["n_nominal"], r["n_anomalies"]) for r in ours] == [(55, 55, 8), (50, 50, 30)]
    assert all(r["auc"] > 0.99 and r["average_precision"] > 0.9 and r["n_parts"] == 3 for r in ours)
    assert [one["alpha"] for one in ours[0]["false_alarms"]] == list(settings.ALPHAS)
    assert [one["r"] for one in ours[0]["false_alarms"]] == [5, 2, 0]
    shown = {table["name"]: table for table in told["tables"]}
    assert methods.TRIMMED in [row[0] for row in shown["contamination"]["rows"]]
    for name in ("bars", "auc", "average-precision", "false-alarms"):
        assert methods.TRIMMED not in json.dumps(shown[name])
    assert (
        "False alarms of RankAD, trim=0.1, on the splits of the comparison, at 5 % asked for"
        in json.dumps(shown["contamination"])
    )
    page = (out / "quality.md").read_text()
    for said in (
        "## AUC",
        "**mean rank**",
        "Quick look",
        "4 of 55 (asked 6)",
        "false-alarms.png",
        "## Spread",
    ):
        assert said in page
    for picture in ("critical-difference.png", "false-alarms.png"):
        assert (out / picture).read_bytes().startswith(b"\x89PNG")
    assert (out / "cells" / ".gitignore").read_text() == "*\n"


def test_a_second_run_computes_nothing(finished, few_cases, monkeypatch, capsys):
    out, arguments = finished
    before = (out / "quality.md").read_text()

    def measured(*_):
        raise AssertionError("a finished cell was measured again")

    monkeypatch.setattr(cells, "measure", measured)
    monkeypatch.setattr(one_table, "measure", measured)
    monkeypatch.setattr(synthetic, "measure", measured)
    monkeypatch.setattr(synthetic, "measure_breaks", measured)
    command.main(arguments)
    assert (out / "quality.md").read_text() == before
    assert "finished before" in capsys.readouterr().err


def test_peers_are_not_measured_again_when_rankad_changes(finished, monkeypatch):
    _, arguments = finished
    again = []

    def measured(path, digest, seed, method, share, sizes):
        again.append(method)
        raise InterruptedError

    monkeypatch.setattr(cells, "measure", measured)
    monkeypatch.setattr("rankad.experiments.cells._source_digest", lambda: "another source")
    with pytest.raises(InterruptedError):
        command.main(arguments)
    assert again == [methods.RANKAD]


@pytest.mark.parametrize("module", [alarms, cells, comparison, sets, splits])
def test_examples_in_docstrings(module):
    tried = doctest.testmod(module)
    assert tried.attempted
    assert not tried.failed
