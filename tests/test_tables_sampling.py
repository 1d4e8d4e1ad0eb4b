"""The sample of a table: the same however batches are cut, and as likely to hold any row as any other."""

import numpy as np
import polars as pl
import pytest

from rankad.tables.sampling import RowSample


def sampled(n, k, batch):
    sample = RowSample(k)
    for begin in range(0, n, batch):
        numbers = np.arange(begin, min(begin + batch, n))
        sample.add(pl.DataFrame({"x": numbers}), numbers, numbers / n)
    return sample


@pytest.mark.parametrize(("n", "k"), [(1000, 50), (30, 50), (50, 50), (0, 5)])
def test_batches_change_nothing(n, k):
    found = []
    for batch in (1, 7, 33, 1000):
        sample = sampled(n, k, batch)
        assert sample.size == min(n, k)
        numbers = np.concatenate([part.numbers for part in sample.rows] or [np.empty(0)])
        for part in sample.rows:
            assert part.frame["x"].to_list() == part.numbers.tolist()
            np.testing.assert_array_equal(part.p_values, part.numbers / n)
        found.append(np.sort(numbers).tolist())
    assert all(one == found[0] for one in found)


def test_every_row_is_as_likely_as_any_other():
    numbers = np.concatenate([part.numbers for part in sampled(100_000, 2_000, 9_999).rows])
    counts = np.bincount(numbers // 10_000, minlength=10)
    # Ten equal parts of the table; a chi-square of nine degrees of freedom, at one in ten thousand.
    assert ((counts - 200) ** 2 / 200).sum() < 33.7
    # And none goes by the last digits.
    assert ((np.bincount(numbers % 10, minlength=10) - 200) ** 2 / 200).sum() < 33.7


def test_text_and_numbers_are_kept_apart():
    sample = RowSample(10)
    sample.add(pl.DataFrame({"x": [1.5, 2.5]}), np.array([0, 1]), np.ones(2))
    sample.add(pl.DataFrame({"x": ["3,5"]}), np.array([2]), np.ones(1))
    sample.add(pl.DataFrame({"x": [4.5]}), np.array([3]), np.ones(1))
    assert [part.frame["x"].to_list() for part in sample.rows] == [[1.5, 2.5, 4.5], ["3,5"]]
    assert sample.size == 4
