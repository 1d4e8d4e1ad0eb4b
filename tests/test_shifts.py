"""Columns compared with nominal ones: scipy's statistic as the oracle, and shifts made by hand."""

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact, ks_2samp

from rankad.alarms.shifts import compare_columns, describe_numbers, is_like, largest_difference


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_the_difference_is_that_of_scipy(digits):
    rng = np.random.default_rng(digits)
    for n, m in ((1, 1), (5, 30), (200, 77)):
        first, second = np.round(rng.normal(size=n), digits), np.round(rng.normal(0.3, size=m), digits)
        assert largest_difference(first, second) == pytest.approx(ks_2samp(first, second).statistic)
    assert largest_difference(np.empty(0), np.ones(3)) == 0


def test_p_values_are_those_of_each_test_times_their_number():
    rng = np.random.default_rng(1)
    nominal, rows = rng.normal(size=(300, 3)), rng.normal(0.3, size=(200, 3))
    strange = np.zeros((200, 3), dtype=bool)
    strange[:5, 2] = True
    # Two groups of columns and one without any, of which cells are strange: six comparisons.
    shifts = compare_columns(nominal, rows, [[0, 2], [1], []], strange, n_alone=1, n_fitted=400)
    for shift, columns in zip(shifts, ([0, 2], [1]), strict=False):
        tests = [ks_2samp(nominal[:, at], rows[:, at], method="asymp") for at in columns]
        assert shift.distance == pytest.approx(max(test.statistic for test in tests))
        # scipy corrects for small samples, which makes it a little smaller or larger.
        assert shift.p_value == pytest.approx(6 * min(test.pvalue for test in tests), rel=0.5)
        assert shift.n_strange == 0
    exact = fisher_exact([[5, 1], [195, 399]], alternative="greater").pvalue
    assert shifts[2].p_value == pytest.approx(6 * exact)
    assert shifts[2].distance == pytest.approx(5 / 200 - 1 / 400)
    assert shifts[2].n_strange == 5


def test_strange_cells_are_not_compared_by_what_stands_for_them():
    rng = np.random.default_rng(2)
    nominal, rows = rng.normal(size=(500, 1)), rng.normal(size=(400, 1))
    strange = rng.random((400, 1)) < 0.5
    rows[strange] = 0.0
    shift = compare_columns(nominal, rows, [[0]], strange, n_alone=1_000_000, n_fitted=1_000_000)[0]
    assert shift.p_value > 0.01


def test_nominal_columns_are_said_to_have_moved_no_more_often_than_stated():
    rng, n_runs, n_wrong = np.random.default_rng(3), 400, 0
    for _ in range(n_runs):
        both = np.column_stack([rng.normal(size=350), rng.poisson(2, 350), rng.random(350) < 0.1])
        shifts = compare_columns(both[:250], both[250:], [[0], [1], [2]], np.zeros((100, 3), dtype=bool))
        n_wrong += min(shift.p_value for shift in shifts) < 0.05
    assert n_wrong <= binom.ppf(0.999, n_runs, 0.05)


RNG = np.random.default_rng(4)
NOMINAL, NEW = RNG.gamma(5.0, 2.0, size=600), RNG.gamma(5.0, 2.0, size=400)


@pytest.mark.parametrize(
    ("values", "kind", "factor", "offset"),
    [
        (NEW * 1000, "scaled", 1000, 0),
        (NEW / 25.4, "scaled", 1 / 25.4, 0),
        (-NEW, "scaled", -1, 0),
        (1.8 * NEW + 32, "scaled", 1.8, 32),
        (NEW + 7, "moved", 1, 7),
        (NEW - 7, "moved", 1, -7),
        (10 + 4 * (NEW - 10), "spread", 4, 0),
        (np.full(400, 3.0), "constant", 1, 0),
        (np.arange(400.0) + 50, "goes on", 1, 0),
        (-np.arange(400.0), "goes on", 1, 0),
        (RNG.permutation(400) + 50.0, "moved or other", 1, 0),
        (np.minimum(NEW, 9), "other", 1, 0),
    ],
)
def test_the_way_of_a_shift_is_found(values, kind, factor, offset):
    found = describe_numbers(values, NOMINAL)
    assert found.kind in kind.split(" or ")
    assert found.median == np.median(values)
    assert found.nominal_median == np.median(NOMINAL)
    if found.kind in ("scaled", "moved", "spread"):
        assert found.factor == pytest.approx(factor, rel=0.15)
        assert found.offset == pytest.approx(offset, abs=2.5)


def test_names_of_rows_go_on_in_any_order_where_nominal_ones_are_names_too():
    names = RNG.permutation(600).astype(float)
    assert describe_numbers(RNG.permutation(400) + 600.0, names).kind == "goes on"
    # Counts that repeat are none.
    assert describe_numbers(RNG.integers(600, 700, size=400).astype(float), names).kind != "goes on"


@pytest.mark.parametrize("values", [[1e300, -1e300] * 10, [0.0] * 19 + [1.0], [1e-300] * 20])
def test_numbers_of_any_size_are_described(values):
    for nominal in (NOMINAL, np.zeros(50), np.array([1e300] * 20 + [-1e300])):
        assert describe_numbers(np.array(values), nominal).kind
    assert describe_numbers(np.array([3.0]), NOMINAL).kind == "other"


def test_values_are_like_nominal_ones_up_to_chance():
    assert is_like(NEW, NOMINAL)
    assert not is_like(NEW + 2, NOMINAL)
    assert not is_like(NEW[:5], NOMINAL)


def test_rows_that_were_trimmed_make_no_column_move():
    rng = np.random.default_rng(5)
    nominal = np.sort(rng.normal(size=5_000))[:-400, None]
    rows, none = rng.normal(size=(2_000, 1)), np.zeros((2_000, 1), dtype=bool)
    assert compare_columns(nominal, rows, [[0]], none)[0].p_value < 0.001
    assert compare_columns(nominal, rows, [[0]], none, trimmed=400 / 5_000)[0].p_value > 0.01
