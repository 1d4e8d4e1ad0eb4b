"""Why rows are abnormal: naive twins, planted anomalies, and changes that help."""

import math
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankad import KLPE, RankAD
from rankad.explanations.changes import Mover
from rankad.explanations.explainer import explain
from rankad.explanations.nominal_rows import NominalRows
from rankad.stages.scaling import Scaling


def correlated(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ np.random.default_rng(99).normal(size=(d, d)) + 5.0


def planted(rows, deviations, n_columns, seed):
    """Shift columns that vary by 6 to 10 standard deviations; return rows and columns."""
    rng = np.random.default_rng(seed)
    varied = np.flatnonzero(deviations > 0)
    rows = rows.copy()
    columns = np.array([rng.choice(varied, n_columns, replace=False) for _ in rows])
    signs, sizes = rng.choice([-1, 1], columns.shape), rng.uniform(6, 10, columns.shape)
    rows[np.arange(len(rows))[:, None], columns] += signs * sizes * deviations[columns]
    return rows, columns


def share_first(explanations, columns):
    """Return the share of rows whose first reasons are the shifted columns."""
    first = [{reason.column for reason in e.reasons[: columns.shape[1]]} for e in explanations]
    return np.mean([found == set(of) for found, of in zip(first, columns.tolist(), strict=True)])


def changed(row, explanation):
    """Return the row with its change made; columns are positions."""
    row = np.array(row)
    for move in explanation.change.moves:
        assert row[move.column] == move.before
        row[move.column] = move.after
    return row


# ------------------------------------------------------------------------------ naive twins


def naive_typical(nominal, scale, row, asked):
    """Return the ten nominal rows nearest in the columns not asked about, and their medoid's position."""
    others = [c for c in range(len(row)) if c not in asked]
    reach = 4 * nominal.std(axis=0)
    seen = np.clip(row, nominal.min(axis=0) - reach, nominal.max(axis=0) + reach)
    gaps = (nominal - seen) / scale
    near = np.argsort((gaps[:, others] ** 2).sum(axis=1), kind="stable")[:10]
    sums = [sum(math.dist(nominal[a, asked] / scale[asked], nominal[b, asked] / scale[asked]) for b in near)
            for a in near]  # fmt: skip
    return near, near[int(np.argmin(np.round(sums, 9)))]


def naive_order(detector, nominal, scale, row, groups):
    """Blame columns one by one; the others follow by surprise."""
    limits = {}
    for g, columns in enumerate(groups):
        near, _ = naive_typical(nominal, scale, row, list(columns))
        limits[g] = max(
            max(
                0.0,
                *(np.quantile(nominal[near, c], 0.1) - row[c], row[c] - np.quantile(nominal[near, c], 0.9)),
            )
            / nominal[:, c].std()
            for c in columns
        )

    def scores_beside(blamed):
        scores = {}
        for g in sorted(set(range(len(groups))) - set(blamed)):
            asked = [c for h in [*blamed, g] for c in groups[h]]
            made = row.copy()
            made[asked] = nominal[naive_typical(nominal, scale, row, asked)[1], asked]
            scores[g] = detector.score_samples(made[None])[0]
        return scores

    blamed = []
    while len(blamed) < min(4, len(groups) - 1):
        scores = scores_beside(blamed)
        best = max(scores, key=scores.get)
        if not blamed and scores[best] < detector.offset_ and detector.predict(row[None])[0] == -1:
            # None will do alone: which is the best first of two, that one or the most surprising?
            firsts = [best, *sorted(limits, key=lambda g: -limits[g])[:2]]
            best = max(firsts, key=lambda g: max(scores_beside([g]).values()))
        blamed.append(best)
        if scores[blamed[-1]] >= detector.offset_ or detector.predict(row[None])[0] == 1:
            break
    rest = [g for g in limits if g not in blamed and limits[g] > 0]
    return blamed + sorted(rest, key=lambda g: -limits[g])


@pytest.mark.parametrize("groups", [None, ((3, 0), (1,), (2, 4))])
@pytest.mark.parametrize("scaling", [None, "standard"])
def test_reasons_are_their_naive_twin(quick_rankad, groups, scaling):
    nominal = correlated(150, 5)
    detector = quick_rankad(scaling=scaling, bandwidth="2 D_K").fit(nominal)
    rows = np.vstack([planted(correlated(12, 5, 1), nominal.std(axis=0), 2, 2)[0], correlated(8, 5, 3)])
    columns_of = groups or tuple((c,) for c in range(5))
    scale = detector.scaling_.scale
    for row, e in zip(rows, explain(detector, rows, groups=groups), strict=True):
        assert e.score == detector.score_samples(row[None])[0]
        assert e.p_value == detector.p_values(row[None])[0]
        assert sorted(reason.column for reason in e.reasons) == list(range(len(columns_of)))
        for reason in e.reasons:
            columns = list(columns_of[reason.column])
            near, typical = naive_typical(nominal, scale, row, columns)
            made = row.copy()
            made[columns] = nominal[typical, columns]
            score = detector.score_samples(made[None])[0]
            np.testing.assert_array_equal(np.atleast_1d(reason.value), row[columns])
            np.testing.assert_array_equal(np.atleast_1d(reason.typical), nominal[typical, columns])
            np.testing.assert_allclose(reason.low, np.squeeze(np.quantile(nominal[near][:, columns], 0.1, 0)))
            np.testing.assert_allclose(
                reason.high, np.squeeze(np.quantile(nominal[near][:, columns], 0.9, 0))
            )
            assert reason.p_value == detector.p_values(made[None])[0]
            assert reason.gain == score - e.score
        expected = naive_order(detector, nominal, scale, row, columns_of)
        assert [reason.column for reason in e.reasons][: len(expected)] == expected


def test_rows_near_in_all_other_columns_where_categories_repeat_themselves():
    rng = np.random.default_rng(0)
    # Halves and whole numbers: all sums are exact, so that ties are ties for the twin too.
    one_hot = [0.5 * np.eye(n)[rng.integers(n, size=300)] for n in (4, 7)]
    nominal = np.hstack([one_hot[0], rng.integers(9, size=(300, 3)).astype(float), one_hot[1]])
    groups = (tuple(range(4)), (4,), (6, 5), tuple(range(7, 14)))
    rows = nominal[rng.permutation(300)[:20]]
    rows[:10, 7:] = 0.5 * np.eye(7)[rng.integers(7, size=10)]
    left_out = np.zeros((20, 4), dtype=bool)
    left_out[:5, 3], left_out[5:8, 2] = True, True
    searched = NominalRows(nominal, Scaling(np.zeros(14), np.ones(14)), groups)
    found = searched.around(rows, left_out)
    some = np.array([rng.choice(300, 10, replace=False) for _ in rows])
    np.testing.assert_array_equal(searched.around(rows, left_out, some).near, found.near)
    for row, out, near in zip(rows, left_out, found.near, strict=True):
        for group in np.flatnonzero(~out):
            others = [c for g in range(4) if g != group and not out[g] for c in groups[g]]
            distances = ((nominal[:, others] - row[others]) ** 2).sum(axis=1)
            assert near[group].tolist() == np.argsort(distances, kind="stable")[:10].tolist()


def wide(n, seed):
    """Return rows with the indicators of five categories, and the groups of these."""
    rng = np.random.default_rng(seed)
    rows = np.hstack([0.5 * np.eye(20)[rng.integers(20, size=n)] for _ in range(5)])
    return rows, tuple(tuple(range(begin, begin + 20)) for begin in range(0, 100, 20))


@pytest.mark.parametrize("which", [np.arange(600), np.arange(5, 600, 7)])
def test_nearest_rows_where_categories_make_many_columns(which):
    nominal, groups = wide(600, 0)
    rows, _ = wide(50, 1)
    found = NominalRows(nominal, Scaling(np.zeros(100), np.ones(100)), groups).nearest(rows, 4, which)
    squares = ((nominal[which] - rows[:, None]) ** 2).sum(axis=2)
    expected = np.argsort(squares, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(found.indices, which[expected])
    np.testing.assert_array_equal(found.distances, np.sqrt(np.take_along_axis(squares, expected, axis=1)))


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_quantiles_are_those_of_numpy(n):
    rng = np.random.default_rng(0)
    nominal, groups = np.column_stack([rng.normal(size=(n, 2)), rng.integers(3, size=n)]), ((2, 0), (1,))
    searched = NominalRows(nominal, Scaling(np.zeros(3), np.ones(3)), groups)
    near = rng.integers(n, size=(40, 2, min(n, 10)))
    found = searched.quantiles(near, 0.1, 0.9)
    for group, columns in enumerate(groups):
        values = nominal[near[:, group, :, None], list(columns)]
        for limits, share in zip(found, (0.1, 0.9), strict=True):
            np.testing.assert_array_equal(limits[:, list(columns)], np.quantile(values, share, axis=1))


def naive_shrink(row, target, order, groups, seen, n, is_nominal):
    """Put groups back, then halve the way of all columns, then of each group: one row, one cell at a time."""

    def between(end, columns, share):
        made = end.copy()
        for c in columns:
            point = row[c] + share * (end[c] - row[c])
            if 2 * len(seen[c]) < n and row[c] > end[c]:
                point = max(max((v for v in seen[c] if v <= point), default=seen[c][0]), end[c])
            elif 2 * len(seen[c]) < n:
                point = min(min((v for v in seen[c] if v >= point), default=seen[c][-1]), end[c])
            made[c] = point
        return made

    def halve(end, columns, halvings):
        best, back, forth = end, 0.0, 1.0
        columns = [c for c in columns if row[c] != end[c]]
        for _ in range(halvings):
            middle = (back + forth) / 2
            tried = between(end, columns, middle)
            if is_nominal(tried[None])[0]:
                best, forth = tried, middle
            else:
                back = middle
        return best

    found = target.copy()
    for g in order[::-1]:
        tried = found.copy()
        tried[list(groups[g])] = row[list(groups[g])]
        found = tried if is_nominal(tried[None])[0] else found
    found = halve(found, range(len(row)), 24)
    for g in order[::-1]:
        found = halve(found, groups[g], 12)
    return found


def test_changes_are_their_naive_twin():
    """A category, whole numbers, and numbers."""
    rng = np.random.default_rng(0)
    nominal = np.hstack(
        [
            0.5 * np.eye(4)[rng.integers(4, size=200)],
            rng.integers(9, size=(200, 2)),
            rng.normal(size=(200, 3)),
        ]
    )
    groups = ((0, 1, 2, 3), (4,), (7, 5), (6,), (8,))
    center, weights = nominal.mean(axis=0), rng.uniform(0.5, 2, size=9)

    def is_nominal(rows):
        return (np.abs(rows - center) * weights).sum(axis=1) < 9.0

    mover = Mover(NominalRows(nominal, Scaling(np.zeros(9), np.ones(9)), groups), is_nominal)
    rows = nominal[rng.permutation(200)[:80]] + rng.choice([-7.5, 0, 0, 7.5], size=(80, 9))
    rows[:, :4] = 0.5 * np.eye(4)[rng.integers(4, size=80)]
    targets = nominal[is_nominal(nominal)][:80]
    rows = rows[: len(targets)]
    order = np.array([rng.permutation(5) for _ in rows])
    found = mover.shrink(rows, targets, order)
    assert is_nominal(found).all()
    assert (found != targets).any()
    seen = [np.unique(values) for values in nominal.T]
    for row, target, of_row, end in zip(rows, targets, order.tolist(), found, strict=True):
        expected = naive_shrink(row, target, of_row, groups, seen, 200, is_nominal)
        np.testing.assert_array_equal(end, expected)


def test_two_columns_by_hand(quick_rankad):
    """Rows (x, 2 x); of (5, 30), y is typically what x = 5 has, and x what y = 30 has."""
    nominal = np.column_stack([np.arange(20.0), 2 * np.arange(20.0)])
    e = quick_rankad(scaling=None).fit(nominal).explain([[5.0, 30.0]], n_nearest=2)[0]
    by_column = {reason.column: reason for reason in e.reasons}
    # Nearest by x: 5, 4, 6, 3, 7, 2, 8, 1, 9, 0 (and 10, as far as 0, comes later).
    assert by_column[1].value == 30.0
    assert by_column[1].typical == 10.0
    assert (by_column[1].low, by_column[1].high) == pytest.approx((1.8, 16.2))
    # Nearest by y: 15, 14, 16, 13, 17, 12, 18, 11, 19, 10.
    assert by_column[0].typical == 15.0
    assert (by_column[0].low, by_column[0].high) == pytest.approx((10.9, 18.1))
    # The nearest row in both: (13, 26) and, at the same distance squared of 65 + 5 k^2, its neighbours.
    assert [near.values for near in e.nearest] == [(13.0, 26.0), (12.0, 24.0)]
    assert [near.distance for near in e.nearest] == pytest.approx([math.sqrt(80), math.sqrt(85)])


def test_nearest_rows_are_those_fitted_on():
    rows = correlated(120, 3)
    rows[7] += 200.0
    detector = RankAD(trim=0.1, calibration="split", landmarks=20, bandwidth="D_K", random_state=0).fit(rows)
    assert 7 in detector.trimmed_rows_
    new = correlated(20, 3, 5)
    for row, e in zip(new, detector.explain(new, n_nearest=4), strict=True):
        gaps = (detector.nominal_rows_ - row) / detector.scaling_.scale
        expected = np.sort(np.sqrt((gaps**2).sum(axis=1)))[:4]
        np.testing.assert_allclose([near.distance for near in e.nearest], expected)
        for near in e.nearest:
            np.testing.assert_array_equal(rows[near.row], near.values)


# ----------------------------------------------------------------------- planted anomalies


@pytest.mark.parametrize("name", ["38_thyroid", "44_Wilt", "6_cardio", "26_optdigits"])
def test_shifted_columns_of_real_rows_come_first(few_folds, data_folder, name):
    stored = np.load(data_folder / f"{name}.npz")
    nominal = stored["X"][stored["y"] == 0].astype(np.float64)
    nominal = nominal[np.random.default_rng(0).permutation(len(nominal))[:600]]
    detector = RankAD(bandwidth="D_K", landmarks=100, random_state=0).fit(nominal[:400])
    for n_columns in (1, 2):
        rows, columns = planted(nominal[400:], nominal[:400].std(axis=0), n_columns, 1)
        alarms = detector.p_values(rows) <= 0.05
        assert alarms.mean() > 0.6
        found = detector.explain(rows[alarms], n_nearest=0)
        assert share_first(found, columns[alarms]) >= 0.9
        assert all(e.change.p_value > 0.05 for e in found)


def test_two_shifted_columns_that_go_together_come_first(quick_rankad):
    """Nominal rows have b near a: with a alone repaired by what b says, or b by a, nothing is gained."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    nominal = np.column_stack([a, a + 0.1 * rng.normal(size=400), rng.normal(size=(400, 3))])
    detector = quick_rankad(landmarks=100).fit(nominal[:300])
    rows = nominal[300:].copy()
    rows[:, :2] += 8.0
    columns = np.tile([0, 1], (100, 1))
    assert share_first(detector.explain(rows), columns) >= 0.95


# ---------------------------------------------------------------------------------- change


def sums(n, seed, noise=0.01):
    """The last of four columns is the sum of the others, but for some noise."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3))
    return np.column_stack([rows, rows.sum(axis=1) + noise * rng.normal(size=n)])


def test_what_other_columns_let_expect_is_the_regression_of_each_column_on_all_others():
    rows, new = correlated(80, 5), correlated(9, 5, 1)
    nominal = NominalRows(rows, Scaling(np.zeros(5), np.ones(5)), tuple((c,) for c in range(5)))
    for column in range(5):
        others = np.delete(np.arange(5), column)
        design = np.column_stack([np.ones(80), rows[:, others]])
        fitted = np.linalg.lstsq(design, rows[:, column], rcond=None)[0]
        said = np.column_stack([np.ones(9), new[:, others]]) @ fitted
        said = np.clip(said, rows[:, column].min(), rows[:, column].max())
        np.testing.assert_allclose(nominal.expected(new)[:, column], said, rtol=1e-5)
    few = NominalRows(rows[:19], Scaling(np.zeros(5), np.ones(5)), nominal.groups)
    assert few.expected(new) is None


def test_a_column_that_breaks_a_sum_is_the_only_one_to_change():
    """Of values that nominal rows near by have, none is just what the others leave to it."""
    detector = RankAD(random_state=0).fit(sums(600, 0))
    rows = sums(60, 1)
    rows[:, 1] += 4.0
    found = detector.explain(rows)
    assert all(e.is_alarm for e in found)
    alone = [e for e in found if [move.column for move in e.change.moves] == [1]]
    # Of before, three quarters of the changes were in several columns.
    assert len(alone) >= 54
    for row, e in zip(rows, found, strict=True):
        assert detector.p_values(changed(row, e)[None])[0] == e.change.p_value > e.alpha
    for e in alone:
        reason = e.reasons[0]
        made = np.array(rows[e.row])
        made[1] = reason.typical
        assert reason.column == 1
        assert detector.p_values(made[None])[0] == reason.p_value


def test_changes_are_no_larger_than_needed(quick_rankad):
    nominal = correlated(300, 4)
    detector = quick_rankad(landmarks=60).fit(nominal)
    parts = [planted(correlated(40, 4, k), nominal.std(axis=0), k, k)[0] for k in (1, 2, 3)]
    rows = np.vstack([*parts, correlated(30, 4, 8)])
    found = detector.explain(rows)
    n_moves = []
    for row, e in zip(rows, found, strict=True):
        if e.p_value > 0.05:
            assert e.change is None
            continue
        end = changed(row, e)
        n_moves.append(len(e.change.moves))
        assert e.change.p_value > 0.05
        assert detector.p_values(end[None])[0] == e.change.p_value
        assert detector.score_samples(end[None])[0] == e.change.score
        order = [reason.column for reason in e.reasons]
        moved = [move.column for move in e.change.moves]
        assert moved == sorted(moved, key=order.index)
        for column in moved:
            without = end.copy()
            without[column] = row[column]
            assert detector.p_values(without[None])[0] <= 0.05, "no part can be left out"
        # A hundredth of the way back, and it is an alarm again.
        assert detector.p_values((end + 0.01 * (row - end))[None])[0] <= 0.05
    assert {1, 2, 3} <= set(n_moves)


def test_a_column_of_few_values_is_moved_to_one_of_them(quick_rankad):
    rng = np.random.default_rng(3)
    nominal = np.column_stack([rng.normal(size=(300, 2)), rng.integers(2, 6, size=300)])
    detector = quick_rankad(landmarks=60).fit(nominal)
    rows = np.column_stack([rng.normal(size=(60, 2)) * 0.5, rng.choice([-20.5, 31.0], 60)])
    rows[30:, 0] = 9.0
    for row, e in zip(rows, detector.explain(rows), strict=True):
        end = changed(row, e)
        assert end[2] in (2.0, 3.0, 4.0, 5.0)
        assert e.change.p_value > 0.05


def test_where_many_columns_are_to_blame_the_others_are_left_alone(quick_rankad):
    """More columns than are looked for one by one: a nominal row is the target, but not all of it."""
    rng = np.random.default_rng(6)
    nominal = rng.normal(size=(300, 8))
    detector = quick_rankad(landmarks=60).fit(nominal)
    rows = rng.normal(size=(40, 8)) * 0.5
    rows[:, :6] += 9.0
    for row, e in zip(rows, detector.explain(rows), strict=True):
        assert {move.column for move in e.change.moves} <= set(range(6))
        assert detector.p_values(changed(row, e)[None])[0] == e.change.p_value > 0.05


def test_a_category_is_changed_as_a_whole(quick_rankad):
    """Indicators of three categories, with which x and y go. Neither half a category, nor two."""
    rng = np.random.default_rng(4)
    kind, on = rng.integers(0, 3, 300), 1 / math.sqrt(2)
    numbers = 5.0 * kind[:, None] + rng.normal(size=(300, 2)) * 0.3
    nominal = np.column_stack([np.eye(3)[kind] * on, numbers])
    detector = quick_rankad(landmarks=60, bandwidth="2 D_K").fit(nominal)
    e = explain(detector, [[0.0, 0.0, on, 0.1, -0.1]], groups=((0, 1, 2), (3,), (4,)), names=("k", "x", "y"))[
        0
    ]
    assert e.p_value <= 0.05
    assert e.reasons[0].column == "k"
    assert (e.reasons[0].value, e.reasons[0].typical) == ((0.0, 0.0, on), (on, 0.0, 0.0))
    assert [tuple(move) for move in e.change.moves] == [("k", (0.0, 0.0, on), (on, 0.0, 0.0))]


def test_alpha_decides_what_a_change_is_for(quick_rankad):
    nominal = correlated(200, 3)
    detector = quick_rankad().fit(nominal)
    row = nominal.mean(axis=0)
    row[0] += 9 * nominal[:, 0].std()
    ends = [abs(detector.explain([row], alpha=alpha)[0].change.moves[0].after) for alpha in (0.01, 0.05, 0.2)]
    assert ends[0] > ends[1] > ends[2]
    assert detector.explain([row], alpha=0.004)[0].change is None, "no row is an alarm"
    detector.alpha = 0.2
    assert abs(detector.explain([row])[0].change.moves[0].after) == ends[2]


# ------------------------------------------------------------------------------ odd rows


@pytest.mark.parametrize("value", [1e9, -1e150, 1e300, -1.7e308])
@pytest.mark.parametrize("columns", [[1], [1, 3]])
def test_rows_extremely_far_away(quick_rankad, value, columns):
    nominal = correlated(200, 4)
    detector = quick_rankad().fit(nominal)
    rows = correlated(5, 4, 1)
    rows[:, columns] = value * np.array([1.0, -0.5])[: len(columns)]
    for row, e in zip(rows, detector.explain(rows), strict=True):
        assert {reason.column for reason in e.reasons[: len(columns)]} == set(columns)
        assert all(math.isfinite(reason.gain) for reason in e.reasons)
        assert detector.p_values(changed(row, e)[None])[0] == e.change.p_value > 0.05
        assert {move.column for move in e.change.moves} >= set(columns)
        # The others are told by the rows near them, not by any.
        for reason in e.reasons[len(columns) :]:
            _, typical = naive_typical(nominal, detector.scaling_.scale, row, [reason.column])
            assert reason.typical == nominal[typical, reason.column]


def test_one_column(quick_rankad):
    nominal = np.random.default_rng(0).normal(size=(201, 1))
    e = quick_rankad().fit(nominal).explain([[9.0]])[0]
    assert e.reasons[0].typical == pytest.approx(np.median(nominal))
    assert (e.reasons[0].low, e.reasons[0].high) == pytest.approx(tuple(np.quantile(nominal, [0.1, 0.9])))
    assert 1 < e.change.moves[0].after < 5


def test_many_rows_of_one_column_need_little_memory(quick_rankad):
    detector = quick_rankad().fit(np.random.default_rng(0).normal(size=(2000, 1)))
    rows = np.random.default_rng(1).normal(size=(10_000, 1))
    tracemalloc.start()
    found = detector.explain(rows, n_nearest=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) == len(rows)
    # All nominal rows are near to each: a copy of them for every row would be 160 MB.
    assert peak < 50e6


def test_a_constant_column_with_another_value_comes_first(quick_rankad):
    nominal = np.column_stack([correlated(100, 2), np.full(100, 7.0)])
    e = quick_rankad().fit(nominal).explain([[*nominal[0, :2], 60.0], [*nominal[0, :2], 7.0]])
    assert e[0].reasons[0].column == 2
    assert (e[0].reasons[0].typical, e[0].reasons[0].low, e[0].reasons[0].high) == (7.0, 7.0, 7.0)
    assert [(move.column, move.after) for move in e[0].change.moves] == [(2, 7.0)]
    assert next(reason.gain for reason in e[1].reasons if reason.column == 2) == 0


@pytest.mark.filterwarnings("ignore:10 of 10 different rows come more than once")
@pytest.mark.parametrize(
    "nominal", [correlated(8, 2), np.repeat(correlated(10, 2), 6, axis=0), np.ones((20, 3))]
)
def test_few_rows_and_copies(quick_rankad, nominal):
    detector = quick_rankad(landmarks=5, n_neighbors=2, alpha=0.2).fit(nominal)
    rows = np.vstack([nominal[:3], nominal[:3] + 50.0])
    found = detector.explain(rows, n_nearest=100)
    assert all(len(e.nearest) == len(detector.nominal_rows_) for e in found)
    for row, e in zip(rows[3:], found[3:], strict=True):
        assert e.p_value <= 0.2
        assert detector.p_values(changed(row, e)[None])[0] > 0.2


# ------------------------------------------------------------------------------ interface


def test_a_lone_row_is_explained_as_in_a_batch_whatever_n_jobs(quick_rankad):
    nominal = correlated(150, 5)
    detector = quick_rankad().fit(nominal)
    rows = planted(correlated(200, 5, 1), nominal.std(axis=0), 2, 2)[0]
    together = detector.explain(rows)
    assert [detector.explain(row[None])[0] for row in rows[:20]] == together[:20]
    detector.n_jobs = 3
    assert detector.explain(rows) == together


def test_columns_are_named_as_they_were_fitted(quick_rankad):
    frame = pd.DataFrame(correlated(60, 2), columns=["length", "width"])
    detector = quick_rankad().fit(frame)
    e = detector.explain(frame[:1].assign(length=90.0))[0]
    assert {reason.column for reason in e.reasons} == {"length", "width"}
    assert e.change.moves[0].column == "length"
    renamed = explain(detector, frame[:1], names=["l", "w"])[0]
    assert {reason.column for reason in renamed.reasons} == {"l", "w"}


def test_cells_are_told_as_decoded(quick_rankad):
    rng = np.random.default_rng(4)
    kind = rng.integers(0, 2, 200)
    nominal = np.column_stack([np.eye(2)[kind], 5.0 * kind + rng.normal(size=200) * 0.3])
    detector = quick_rankad(landmarks=60).fit(nominal)

    def decode(rows):
        return [np.array(["low", "high"])[rows[:, :2].argmax(axis=1)].tolist(), (rows[:, 2] * 1000).tolist()]

    groups, names = ((0, 1), (2,)), ("kind", "x")
    row = np.array([[1.0, 0.0, 40.0]])
    plain = explain(detector, row, groups=groups, names=names)[0]
    told = explain(detector, row, groups=groups, names=names, decode=decode)[0]
    assert [reason.column for reason in told.reasons] == [reason.column for reason in plain.reasons]
    of_kind = next(reason for reason in told.reasons if reason.column == "kind")
    of_x = next(reason for reason in told.reasons if reason.column == "x")
    assert (of_kind.value, of_kind.low, of_kind.high) == ("low", None, None)
    assert of_kind.typical in ("low", "high")
    assert of_x.value == 40_000.0
    assert of_x.low == 1000 * next(reason for reason in plain.reasons if reason.column == "x").low
    assert told.nearest[0].values == ("high", 1000 * nominal[told.nearest[0].row, 2])
    assert told.change.p_value == plain.change.p_value
    assert [(m.column, m.before) for m in told.change.moves if m.column == "x"] == [("x", 40_000.0)]


def test_what_cannot_be_explained_is_an_error(quick_rankad, nominal):
    detector = quick_rankad().fit(nominal)
    with pytest.raises(ValueError, match=r"groups must hold each of the columns 0 to 2 once"):
        explain(detector, nominal, groups=((0, 1), (1, 2)))
    with pytest.raises(ValueError, match=r"groups must hold each of the columns 0 to 2 once"):
        explain(detector, nominal, groups=((0, 1, 2), ()))
    with pytest.raises(ValueError, match=r"names must hold one name for each of the 2 groups, got 3"):
        explain(detector, nominal, groups=((0, 1), (2,)), names=("a", "b", "c"))
    with pytest.raises(ValueError, match=r"n_nearest must be an integer >= 0, got 1\.5"):
        detector.explain(nominal, n_nearest=1.5)
    with pytest.raises(ValueError, match=r"alpha must be a number strictly between 0 and 1"):
        detector.explain(nominal, alpha=5)
    with pytest.raises(ValueError, match=r"NaN in column 1"):
        detector.explain([[0.0, np.nan, 0.0]])
    with pytest.raises(TypeError, match=r"Only RankAD can explain rows, got KLPE"):
        explain(KLPE().fit(nominal), nominal)
    with pytest.raises(ValueError, match=r"not fitted"):
        quick_rankad().explain(nominal)
    detector.model_ = replace(detector.model_, nominal_rows=None)
    with pytest.raises(ValueError, match=r"no normal rows to explain by.*saved with rows=False"):
        detector.explain(nominal)


def test_a_thousand_rows_take_less_than_two_seconds(quick_rankad):
    nominal = correlated(2_000, 36)
    detector = quick_rankad(landmarks=250, calibration="split").fit(
        np.vstack([nominal, correlated(2_000, 36, 2)])
    )
    assert len(detector.nominal_rows_) == 2_000
    rows = planted(correlated(1_000, 36, 1), nominal.std(axis=0), 1, 1)[0]
    detector.explain(rows[:2])
    taken = []
    for _ in range(2):
        begin = time.process_time()
        detector.explain(rows)
        taken.append(time.process_time() - begin)
    assert min(taken) < 2.0
