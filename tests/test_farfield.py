import numpy as np
import pytest

import oracles
from rankad.scorers.farfield import ColumnRanges

HUGE = 1.7e308


def _ranges():
    return ColumnRanges(np.array([0.0, -3.0]), np.array([2.0, 5.0]), np.array([0.5, 10.0]))


def test_ranges_by_hand():
    ranges = ColumnRanges.of(np.array([[0.0, -3.0, 7.0], [2.0, 5.0, 7.0], [1.0, 1.0, 7.0]]))
    np.testing.assert_array_equal(ranges.low, [0.0, -3.0, 7.0])
    np.testing.assert_array_equal(ranges.high, [2.0, 5.0, 7.0])
    np.testing.assert_allclose(ranges.unit, [np.sqrt(2 / 3), np.sqrt(32 / 3), np.inf])


def test_a_column_that_does_not_vary_is_left_to_the_kernel():
    """Nothing tells what far is there: in any unit, rows that differ would be far or near by accident."""
    ranges = ColumnRanges.of(np.array([[0.0, 7.0], [2.0, 7.0]]))
    np.testing.assert_array_equal(ranges.excess(np.array([[1.0, 1e9], [1.0, -1e9], [9.0, 7.0]])), [0, 0, 3])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1.0, 1.0], 0.0),
        ([0.0, 5.0], 0.0),
        # Up to four units outside, on either side.
        ([4.0, -43.0], 0.0),
        ([-2.0, 45.0], 0.0),
        ([4.5, 1.0], 1.0),
        ([-3.0, 1.0], 2.0),
        ([1.0, 75.0], 3.0),
        ([1.0, -83.0], 4.0),
        # The column of most counts, and it alone.
        ([4.5, 75.0], 3.0),
        ([7.0, 55.0], 6.0),
    ],
)
def test_excess_by_hand(row, expected):
    np.testing.assert_array_equal(_ranges().excess(np.array([row])), [expected])


@pytest.mark.parametrize("d", [1, 2, 7])
def test_excess_is_its_naive_twin(d):
    rng = np.random.default_rng(d)
    unit = 10.0 ** rng.integers(-8, 8, size=d)
    nominal = rng.normal(size=(30, d)) * unit + rng.normal(size=d)
    rows = rng.standard_cauchy(size=(200, d)) * 3 / d * unit + nominal.mean(axis=0)
    expected = [oracles.excess(row, nominal, nominal.std(axis=0)) for row in rows]
    assert 20 < np.count_nonzero(expected) < 180, "rows of both sorts"
    np.testing.assert_allclose(ColumnRanges.of(nominal).excess(rows), expected, rtol=1e-12, atol=1e-12)


def test_nominal_rows_themselves_have_none():
    nominal = np.random.default_rng(3).standard_cauchy(size=(100, 4))
    ranges = ColumnRanges.of(nominal)._replace(unit=np.full(4, 1e-9))
    np.testing.assert_array_equal(ranges.excess(nominal), np.zeros(100))


def test_a_lone_row_has_the_excess_it_has_in_a_batch():
    rows = np.random.default_rng(4).standard_cauchy(size=(50, 2)) * 30
    together = _ranges().excess(rows)
    np.testing.assert_array_equal([_ranges().excess(row[None])[0] for row in rows], together)


@pytest.mark.parametrize("value", [HUGE, -HUGE, 1e300])
@pytest.mark.parametrize("unit", [1.0, 1e-300])
def test_rows_too_far_to_measure_are_as_far_as_can_be(value, unit):
    """The difference, or its quotient by a small unit, overflows; a warning would be an error here."""
    ranges = ColumnRanges(np.array([-1e140, 0.0]), np.array([1e140, 1.0]), np.array([unit, unit]))
    np.testing.assert_array_equal(ranges.excess(np.array([[value, 0.5], [0.0, value]])), [1e140, 1e140])


def test_the_rows_are_left_alone():
    rows = np.array([[9.0, 99.0]])
    _ranges().excess(rows)
    np.testing.assert_array_equal(rows, [[9.0, 99.0]])
