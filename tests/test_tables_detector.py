"""The detector on tables: the same answers as on arrays, strange rows, and false alarms as asked for."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from rankad import KLPE, EpsilonLPE, RankAD, TableDetector
from rankad._base.arrays import LARGEST
from rankad.tables import Untyped

# How often a test of a true promise may fail, over all seeds there are; the seeds are fixed.
RISK = 0.001


def table_of(rows):
    return pl.DataFrame({f"x{i}": column for i, column in enumerate(rows.T)})


def draw(n, rng):
    """Draw a mixed table: three numbers, one with gaps, and two categories, of which one has rare ones."""
    kind = rng.choice(["a", "b", "c"], p=[0.6, 0.3, 0.1], size=n)
    place = rng.choice(
        ["abcdefgh"[i // 8] + "abcdefgh"[i % 8] for i in range(40)],
        p=1 / np.arange(1, 41) / np.sum(1 / np.arange(1, 41)),
        size=n,
    )
    x = rng.normal(size=n) + 3 * (kind == "b")
    y = np.where(rng.random(n) < 0.15, np.nan, x + rng.exponential(size=n))
    z = np.where(rng.random(n) < 0.002, np.nan, rng.standard_t(3, size=n))
    return pl.DataFrame({"x": x, "kind": kind, "y": y, "z": z, "place": place, "ok": rng.random(n) < 0.7})


@pytest.fixture(scope="module")
def fitted():
    """Return a detector fitted on 400 rows of a mixed table, none of them alone in anything."""
    rng = np.random.default_rng(11)
    n = 400
    frame = pl.DataFrame(
        {
            "id": [f"row {i}" for i in range(n)],
            "x": rng.normal(10, 2, size=n),
            "color": rng.choice(["red", "blue", "green"], size=n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "k": np.full(n, 5),
            "e": pl.Series([None] * n, dtype=pl.String),
        }
    )
    inner = RankAD(0.05, landmarks=30, scaling=None, bandwidth="D_K", C=0.1, random_state=0)
    return TableDetector(inner, ids=["id"]).fit(frame)


NEW = {"x": [10.0, 10.0], "color": ["red", "blue"], "gaps": [0.1, None], "k": [5, 5], "e": [None, None]}


def row(**changes):
    return {name: [cells[0]] for name, cells in NEW.items()} | {name: [v] for name, v in changes.items()}


# --------------------------------------------------------------------------- as on arrays


def test_numbers_alone_get_the_very_answers_of_the_detector_on_arrays(build, nominal):
    rows = np.vstack([np.random.default_rng(1).normal(size=(20, 3)), np.full((1, 3), 1e200)])
    plain, on_tables = build(alpha=0.1).fit(nominal), TableDetector(build(alpha=0.1)).fit(table_of(nominal))
    for ask in ("score_samples", "p_values", "predict", "decision_function"):
        np.testing.assert_array_equal(getattr(on_tables, ask)(table_of(rows)), getattr(plain, ask)(rows))
    assert on_tables.offset_ == plain.offset_
    assert on_tables.false_alarm_bound() == plain.false_alarm_bound()


def test_mixed_tables_get_the_answers_of_the_detector_on_encoded_rows(fitted):
    rows = fitted.encoder_.encode(NEW).rows
    np.testing.assert_array_equal(fitted.score_samples(NEW), fitted.detector_.score_samples(rows))
    np.testing.assert_array_equal(fitted.p_values(NEW), fitted.detector_.p_values(rows))
    np.testing.assert_array_equal(fitted.predict(NEW), [1, 1])


def test_iterators_of_frames_are_answered_batch_by_batch(fitted):
    frame = pl.DataFrame(NEW)
    drawn = []

    def batches():
        for i in range(3):
            drawn.append(i)
            yield frame[:1] if i else frame.to_pandas()

    answers = fitted.p_values(batches())
    assert not drawn
    first = next(answers)
    assert drawn == [0]
    np.testing.assert_array_equal(first, fitted.p_values(frame))
    assert [len(answer) for answer in answers] == [1, 1]
    with pytest.raises(ValueError, match="must hold numbers") as caught:
        list(fitted.predict(iter([frame, row(x=[10.0])])))
    assert "In batch 1" in caught.value.__notes__[0]


def test_a_table_without_rows_has_no_answers(fitted):
    for ask in (fitted.p_values, fitted.predict, fitted.decision_function):
        assert ask(pl.DataFrame(NEW)[:0]).shape == (0,)
    assert fitted.explain(pl.DataFrame(NEW)[:0]) == []


# --------------------------------------------------------------------------- strange rows


@pytest.mark.parametrize(
    "changes",
    [
        {"color": "pink"},
        {"color": None},
        {"x": None},
        {"x": np.inf},
        {"x": "oops"},
        {"k": 6},
        {"k": None},
        {"e": "something"},
    ],
    ids=str,
)
def test_a_strange_row_has_the_least_p_value_and_score(fitted, changes):
    n = fitted.calibration_.scores.size
    assert fitted.encoder_.n_singletons == 0
    odd = row(**changes)
    assert [(cell.row, cell.column) for cell in fitted.strange_cells(odd)] == [(0, next(iter(changes)))]
    np.testing.assert_array_equal(fitted.p_values(odd), [1 / (n + 1)])
    np.testing.assert_array_equal(fitted.score_samples(odd), [-LARGEST])
    np.testing.assert_array_equal(fitted.predict(odd), [-1])


def test_strange_rows_leave_the_others_alone(fitted):
    frame = pl.concat([pl.DataFrame(NEW), pl.DataFrame(row(color="pink")).cast(pl.DataFrame(NEW).schema)])
    np.testing.assert_array_equal(fitted.p_values(frame)[:2], fitted.p_values(NEW))


# --------------------------------------------------------------------------- alpha, parameters


def test_alpha_is_that_of_the_detector_inside_and_can_be_changed(quick_rankad, nominal):
    detector = TableDetector(quick_rankad(alpha=0.2))
    assert detector.alpha == 0.2
    frame, far = table_of(nominal), table_of(np.quantile(nominal, [0.07], axis=0))
    p = float(detector.fit(frame).p_values(far)[0])
    for alpha, expected in ((p, -1), (p * 0.999, 1)):
        detector.alpha = alpha
        np.testing.assert_array_equal(detector.predict(far), [expected])
        assert detector.false_alarm_bound().alpha == alpha
    detector.alpha = 0.3
    assert detector.fit(frame).alpha == 0.3
    assert TableDetector().alpha == RankAD().alpha
    bare = TableDetector()
    bare.alpha = 0.5
    assert bare.alpha == bare.get_params()["alpha"] == 0.5


def test_alpha_may_be_given_beside_the_detector(quick_rankad, nominal):
    frame = table_of(nominal)
    given = TableDetector(quick_rankad(alpha=0.2), alpha=0.1)
    assert (given.alpha, given.detector.alpha) == (0.1, 0.2)
    assert given.fit(frame).alpha == given.detector_.alpha == 0.1
    assert clone(given).alpha == 0.1
    assert TableDetector(alpha=0.01).alpha == 0.01
    # Left to the detector inside, it stays so in a copy, and a search over it has its way.
    left = clone(TableDetector(quick_rankad(alpha=0.2)))
    assert left.get_params()["alpha"] is None
    assert left.set_params(detector__alpha=0.3).alpha == 0.3
    assert left.fit(frame).alpha == 0.3
    assert left.set_params(alpha=0.4).alpha == left.detector_.alpha == 0.4
    with pytest.raises(ValueError, match=r"got 0\.01; pass the rate by name, as in alpha=0\.01"):
        TableDetector(0.01).fit(frame)
    with pytest.raises(ValueError, match="alpha must be a number strictly between 0 and 1, got 7"):
        TableDetector(quick_rankad(), alpha=7).fit(frame)


def test_it_is_cloned_by_its_parameters(quick_rankad, nominal):
    detector = TableDetector(quick_rankad(alpha=0.2), drop=["x1"], min_count=3).fit(table_of(nominal))
    again = clone(detector)
    with pytest.raises(NotFittedError, match="call fit with a table"):
        again.predict(table_of(nominal))
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    check_is_fitted(detector)
    assert detector.feature_names_in_.tolist() == ["x0", "x2"]
    np.testing.assert_array_equal(
        again.fit(table_of(nominal)).p_values(table_of(nominal)), detector.p_values(table_of(nominal))
    )
    assert again.get_params()["detector__alpha"] == 0.2


@pytest.mark.parametrize("inner", ["RankAD", TableDetector(), RankAD], ids=str)
def test_what_is_no_detector_is_an_error(inner, nominal):
    with pytest.raises(ValueError, match="detector must be RankAD, KLPE, EpsilonLPE or None"):
        TableDetector(inner).fit(table_of(nominal))


@pytest.mark.parametrize("inner", [KLPE(0.1), EpsilonLPE(0.1)], ids=repr)
def test_other_detectors_work_inside(inner):
    detector = TableDetector(inner).fit(draw(300, np.random.default_rng(0)))
    new = draw(2, np.random.default_rng(1)).with_columns(x=pl.Series([0.1, 99.0]))
    assert detector.predict(new)[1] == -1


def test_a_fit_that_fails_leaves_the_old_one(quick_rankad, nominal):
    detector = TableDetector(quick_rankad()).fit(table_of(nominal))
    before = detector.p_values(table_of(nominal))
    with pytest.raises(ValueError, match="column 'x0' has inf"):
        detector.fit(table_of(np.where(nominal > 1, np.inf, nominal)[:, :1]))
    np.testing.assert_array_equal(detector.p_values(table_of(nominal)), before)


def test_parts_are_put_together_again(fitted):
    again = TableDetector.of_parts(fitted.encoder_, fitted.detector_)
    np.testing.assert_array_equal(again.p_values(NEW), fitted.p_values(NEW))
    assert again.ids == ("id",)
    with pytest.raises(
        ValueError, match="fitted on the 7 columns that the encoder makes, got one fitted on 1"
    ):
        TableDetector.of_parts(fitted.encoder_, KLPE().fit(np.zeros((99, 1))))


def test_pandas_and_dicts_are_answered_alike(fitted):
    expected = fitted.p_values(NEW)
    for frame in (pl.DataFrame(NEW), pd.DataFrame(NEW)):
        np.testing.assert_array_equal(fitted.p_values(frame), expected)


# --------------------------------------------------------------------------- promises


def test_columns_are_read_once():
    nominal = np.random.default_rng(0).normal(size=60).tolist()
    detector = TableDetector(KLPE()).fit({"x": (value for value in nominal)})
    assert detector.calibration_.scores.size == 60


# In so few rows, many of its words are rare.
@pytest.mark.filterwarnings("ignore:column 'place'")
@pytest.mark.parametrize("fitted_on", ["parquet", "arrow", "csv", "jsonl"])
def test_the_format_of_a_file_changes_nothing(quick_rankad, tmp_path, fitted_on):
    from rankad.io.table_files import open_output, open_table

    def through(frame, suffix):
        with open_output(tmp_path / f"table.{suffix}") as table:
            table.write(frame)
        read = open_table(tmp_path / f"table.{suffix}", batch_bytes=2000)
        made = pl.concat(read, how="vertical_relaxed")
        return made if read.typed else Untyped(made)

    rng = np.random.default_rng(3)
    nominal, new = draw(200, rng), draw(50, rng)
    nominal, new = (
        frame.with_columns(
            n=pl.Series([None if i % 9 == 0 else i % 7 for i in range(frame.height)]),
            flag=pl.Series([None if i % 5 == 0 else i % 3 == 0 for i in range(frame.height)]),
            code=pl.Series(["007", "12", "A"] * 100)[: frame.height],
            none=pl.lit(None, pl.Float64),
        ).fill_nan(None)
        for frame in (nominal, new)
    )
    expected = TableDetector(quick_rankad(), categories=["code"]).fit(nominal)
    detector = TableDetector(quick_rankad(), categories=["code"]).fit(through(nominal, fitted_on))
    assert detector.encoder_ == expected.encoder_
    for suffix in ("parquet", "arrow", "csv", "jsonl", "tsv.gz"):
        np.testing.assert_array_equal(detector.p_values(through(new, suffix)), expected.p_values(new))


def test_the_promise_of_split_calibration_is_not_called_exact_on_encoded_rows(quick_rankad):
    def split():
        return quick_rankad(alpha=0.1, calibration="split")

    frame = draw(300, np.random.default_rng(0))
    numbers = TableDetector(split(), drop=["kind", "y", "z", "place", "ok"]).fit(frame)
    assert numbers.false_alarm_bound().exact
    mixed = TableDetector(split()).fit(frame).false_alarm_bound()
    assert not mixed.exact
    assert "learned from all normal rows" in mixed.theorem
    assert mixed.bound == numbers.false_alarm_bound().bound


def within_bands(n_alarms, n, n_calibrating, alpha, worth):
    """Tell whether a number of false alarms among n fresh rows is what alpha promises, for several fits.

    The threshold is an order statistic of as many nominal scores, the alarms are binomial given it: together,
    a beta-binomial variable for each fit. Rows that calibrate count for `worth` independent ones each.
    """
    ranks = [(int(alpha * (m + 1)), m) for m in n_calibrating]
    laws = [stats.betabinom(n, worth * r, worth * (m + 1 - r)) for r, m in ranks]
    mean, deviation = sum(law.mean() for law in laws), np.sqrt(sum(law.var() for law in laws))
    return abs(n_alarms - mean) <= stats.norm.isf(RISK / 2) * deviation


@pytest.mark.parametrize(("calibration", "n_fits", "worth"), [("cross-fit", 24, 1 / 3), ("split", 12, 1)])
def test_false_alarms_on_mixed_tables_are_as_asked_for(calibration, n_fits, worth):
    """The mean over several fits is as promised, by the law that each kind of calibration claims for one fit.

    A row left out counts for a third of an independent one (`rankad.stages.calibration`).
    """
    n_fresh, sizes, p = 3_000, [], []
    for seed in range(n_fits):
        rng = np.random.default_rng([17, seed])
        inner = RankAD(0.1, calibration=calibration, bandwidth="D_K", C=0.1, landmarks=60, random_state=seed)
        detector = TableDetector(inner).fit(draw(700, rng))
        sizes.append(detector.calibration_.scores.size)
        p.append(detector.p_values(draw(n_fresh, rng)))
    for alpha in (0.1, 0.05, 0.01):
        n_alarms = sum(int(np.sum(one <= alpha)) for one in p)
        assert within_bands(n_alarms, n_fresh, sizes, alpha, worth), (alpha, n_alarms / n_fresh / len(p))


def sparse(n, rng):
    """Draw two numbers beside 60 columns that are zero but for one row in 500, a gap here and there."""
    flags = (rng.random((n, 60)) < 0.002) * rng.normal(5, 1, size=(n, 60))
    flags[:, 40:] = np.where(flags[:, 40:] != 0, np.nan, 1.0)
    return table_of(np.hstack([rng.normal(size=(n, 2)), flags]))


def test_where_strange_rows_are_frequent_they_are_not_too_many_false_alarms():
    n_fresh, alphas = 2_000, (0.1, 0.05, 0.01)
    n_strange, sizes, p = 0, [], []
    for seed in range(6):
        rng = np.random.default_rng([23, seed])
        inner = RankAD(0.1, scaling="standard", bandwidth="2 D_K", C=0.1, landmarks=40, random_state=seed)
        detector = TableDetector(inner).fit(sparse(400, rng))
        sizes.append(detector.calibration_.scores.size)
        fresh = sparse(n_fresh, rng)
        n_strange += len(detector.encoder_.encode(fresh).strange_rows)
        p.append(detector.p_values(fresh))
        assert detector.encoder_.n_singletons > 0
    # Were they all alarms at any level, 1 % would be far exceeded.
    assert n_strange > 0.03 * n_fresh * len(p)
    for alpha in alphas:
        n_alarms = sum(int(np.sum(one <= alpha)) for one in p)
        upper = stats.norm.isf(RISK) * np.sqrt(
            sum(stats.betabinom(n_fresh, alpha * m, m * (1 - alpha)).var() for m in sizes)
        )
        assert n_alarms <= alpha * n_fresh * len(p) + upper, (alpha, n_alarms / n_fresh / len(p))


def test_rows_that_were_alone_count_among_the_nominal_scores(quick_rankad):
    rng = np.random.default_rng(0)
    frame = table_of(rng.normal(size=(100, 2))).with_columns(
        flag=pl.Series(["usual"] * 97 + ["a", "usual", "usual"])
    )
    detector = TableDetector(quick_rankad(alpha=0.1)).fit(frame)
    assert detector.encoder_.n_singletons == 1
    rows = detector.encoder_.encode(frame).rows
    plain = quick_rankad(alpha=0.1)
    calibrating = plain._fit_calibrating(rows)
    expected = plain.calibration_.scores[calibrating != 97]
    np.testing.assert_array_equal(detector.calibration_.scores, [-LARGEST, *expected])
    odd = {"x0": [None, 0.0], "x1": [0.0, 0.0], "flag": ["usual", "usual"]}
    np.testing.assert_array_equal(detector.p_values(odd)[0], 2 / 101)


@pytest.mark.parametrize("trim", [0.0, 0.1])
@pytest.mark.parametrize("calibration", ["cross-fit", "split", "in-sample"])
def test_rankad_knows_whose_scores_it_compares_with(calibration, trim):
    """A row far out has the least score wherever it calibrates, and no other has."""
    rows = np.random.default_rng(3).normal(size=(300, 2))
    rows[[7, 100]] = [[40.0, 0.0], [0.0, 60.0]]
    inner = RankAD(
        0.1, calibration=calibration, trim=trim, bandwidth="D_K", C=0.1, landmarks=40, random_state=0
    )
    known = inner._fit_calibrating(rows)
    assert len(np.unique(known)) == known.size == inner.calibration_.scores.size
    n_out = np.isin([7, 100], known).sum()
    assert n_out == (0 if trim else 2 if calibration != "split" else n_out)
    if calibration != "in-sample":
        assert set(known[:n_out]) <= {7, 100}
    if calibration in ("split", "in-sample"):
        np.testing.assert_array_equal(inner.score_samples(rows[known]), inner.calibration_.scores)
    assert not np.isin(known, inner.trimmed_rows_).any()


@pytest.mark.parametrize("calibration", ["leave-one-out", "split"])
def test_klpe_knows_whose_scores_it_compares_with(calibration):
    rows = np.random.default_rng(4).normal(size=(60, 2))
    inner = KLPE(n_neighbors=3, calibration=calibration, scaling=None, random_state=0)
    known = inner._fit_calibrating(rows)
    reference = rows if calibration == "leave-one-out" else np.delete(rows, known, axis=0)
    for row, score in zip(known, inner.calibration_.scores, strict=True):
        distances = np.sort(np.linalg.norm(reference - rows[row], axis=1))
        nearest = distances[1:4] if calibration == "leave-one-out" else distances[:3]
        np.testing.assert_allclose(score, -nearest.mean(), rtol=1e-6)


def test_a_word_that_is_frequent_only_with_a_row_does_not_vouch_for_it():
    """Each calibrating row is scored as the encoder of the others would have it."""
    rng = np.random.default_rng(5)
    words = ["a"] * 80 + ["b"] * 5 + ["c"] * 6 + [f"r{i}" for i in range(9)]
    words = rng.permutation(words).tolist()
    frame = table_of(rng.normal(size=(100, 2))).with_columns(word=pl.Series(words))
    inner = KLPE(n_neighbors=2, scaling=None)
    detector = TableDetector(inner).fit(frame)
    assert detector.encoder_.columns[2].categories == ("a", "c", "b")
    assert detector.encoder_.n_singletons == 0
    rows = detector.encoder_.encode(frame).rows
    # Without one of its five rows, b is among the others.
    as_other = detector.encoder_.encode(frame.with_columns(word=pl.lit("r0"))).rows
    plain = KLPE(n_neighbors=2, scaling=None)
    calibrating = plain._fit_calibrating(rows)
    expected = plain.calibration_.scores.copy()
    for place, row in enumerate(calibrating):
        if words[row] == "b":
            distances = np.sort(np.linalg.norm(rows - as_other[row], axis=1))
            expected[place] = -distances[:2].mean()
    np.testing.assert_allclose(detector.calibration_.scores, np.sort(expected), rtol=1e-6)


def test_too_many_rows_alone_for_any_alarm_are_warned_of(quick_rankad):
    rng = np.random.default_rng(0)
    flags = np.zeros((90, 12))
    flags[np.arange(12), np.arange(12)] = 1.0
    frame = table_of(np.hstack([rng.normal(size=(90, 1)), flags]))
    with pytest.warns(UserWarning, match=r"no row will ever raise.*12 of 90 normal rows have something"):
        detector = TableDetector(quick_rankad(alpha=0.1)).fit(frame)
    assert detector.p_values(frame[:1].with_columns(x0=None))[0] == 13 / 91
    # Fresh rows have nothing to do with those.
    with pytest.warns(UserWarning, match=r"no row will ever raise.*Use at least 9 such rows"):
        detector.calibrate(frame[20:25])


# --------------------------------------------------------------------------- explanations and files


def test_explanations_speak_of_the_columns_of_the_table(fitted):
    (found,) = fitted.explain(row(x=40.0))
    assert found.p_value == fitted.p_values(row(x=40.0))[0]
    assert found.reasons[0].column == "x"
    assert found.reasons[0].value == 40.0
    assert 4 < found.reasons[0].typical < 16
    assert {reason.column: reason.value for reason in found.reasons}["color"] == "red"
    assert [reason.column for reason in found.reasons] != []
    moved = {move.column: [move.after] for move in found.change.moves}
    assert fitted.p_values(row() | moved)[0] > 0.05


def test_strange_cells_are_the_first_reasons_and_are_changed_back(fitted):
    frame = row(color="pink", e="something")
    (found,) = fitted.explain(frame)
    assert (found.p_value, found.score) == (fitted.p_values(frame)[0], -LARGEST)
    assert [(reason.column, reason.value) for reason in found.reasons[:2]] == [
        ("color", "pink"),
        ("e", "something"),
    ]
    after = {move.column: [move.after] for move in found.change.moves}
    assert set(after) == {"color", "e"}
    assert fitted.p_values(frame | after)[0] == found.change.p_value > 0.05
    (alone,) = fitted.explain(row(k=6))
    assert alone.reasons[0][:2] == ("k", 6)
    assert alone.reasons[0].p_value == fitted.p_values(row())[0]


def test_explanations_hold_on_the_table_itself(quick_rankad):
    """Every p-value that is told is that of the row with what is told put in."""
    rng = np.random.default_rng(5)
    nominal = draw(300, rng)
    detector = TableDetector(quick_rankad()).fit(nominal)
    frame = draw(40, rng).with_row_index()
    odd = {"x": 40.0, "kind": "new", "place": "nowhere", "ok": None, "z": float("inf")}
    for at, (name, value) in enumerate(odd.items()):
        frame = frame.with_columns(
            pl.when(pl.col("index") % 7 == at).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
        )
    found, p_values = detector.explain(frame, alpha=0.1), detector.p_values(frame)
    assert len(detector.strange_cells(frame)) > 10
    for at, explanation in enumerate(found):
        cells = frame.row(at, named=True)
        cells = {name: None if cell != cell else cell for name, cell in cells.items()}
        assert explanation.p_value == p_values[at]
        for reason in explanation.reasons:
            assert reason.value == cells[reason.column]
            tried = {name: [cell] for name, cell in (cells | {reason.column: reason.typical}).items()}
            assert detector.p_values(tried)[0] == pytest.approx(reason.p_value)
        assert (explanation.change is not None) == (p_values[at] <= 0.1)
        if explanation.change:
            after = {move.column: move.after for move in explanation.change.moves}
            tried = {name: [cell] for name, cell in (cells | after).items()}
            assert detector.p_values(tried)[0] == pytest.approx(explanation.change.p_value)
            assert explanation.change.p_value > 0.1


def test_a_strange_row_that_is_odd_besides_needs_both_changes(fitted):
    frame = row(color="pink", x=40.0)
    (found,) = fitted.explain(frame)
    after = {move.column: [move.after] for move in found.change.moves}
    assert set(after) == {"color", "x"}
    assert fitted.p_values(frame | after)[0] > 0.05


def test_saving_and_loading_gives_the_same_answers(fitted, tmp_path):
    from rankad import load

    fitted.save(tmp_path / "model.rankad")
    again = load(tmp_path / "model.rankad")
    np.testing.assert_array_equal(again.p_values(NEW), fitted.p_values(NEW))
    assert again.encoder_ == fitted.encoder_


def test_a_column_name_that_is_no_text_is_told():
    with pytest.raises(ValueError, match=r"a column name must be text .*'a\\ud800'.*; rename it\.") as told:
        TableDetector().fit({"a\ud800": np.arange(9.0)})
    assert "\ud800" not in str(told.value)


def test_fit_predict_flags_no_more_of_wide_tables_than_asked_for():
    rows = np.random.default_rng(0).normal(size=(80, 300))
    table = {f"x{at}": column for at, column in enumerate(rows.T)}
    assert np.mean(TableDetector(RankAD(0.1)).fit_predict(table) < 0) <= 0.1
    detector = TableDetector(RankAD(0.1, near_field=False, n_components=0))
    assert np.mean(detector.fit_predict(table) < 0) <= 0.1
    assert np.mean(detector.predict(table) < 0) > 0.2, "these rows tell nothing otherwise"


def test_fit_predict_flags_what_no_other_row_has():
    rng = np.random.default_rng(1)
    kinds = rng.choice(["a", "b"], 60).tolist()
    kinds[7] = "never elsewhere"
    table = {"x": rng.normal(size=60), "kind": kinds}
    assert TableDetector(RankAD(0.1, random_state=0)).fit_predict(table)[7] == -1
