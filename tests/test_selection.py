import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from rankad.selection import (
    PAPER_C,
    PAPER_MULTIPLES,
    SelectionTable,
    collect_trials,
    contrast_loss,
    folds,
    shuffled_columns,
    uniform_box,
)

# ------------------------------------------------------------------------------------------------- the grid


def test_grid_of_section_6_1():
    assert len(PAPER_C) == 13
    # 0.001, 0.003, 0.01, ..., 300, 1000: one and three times the powers of ten.
    expected = [digit * 10.0**power for power in range(-3, 4) for digit in (1, 3)][:-1]
    np.testing.assert_allclose(PAPER_C, expected, rtol=1e-12)
    assert len(PAPER_MULTIPLES) == 21
    assert list(PAPER_MULTIPLES) == [2.0**i for i in range(-10, 11)]


# ------------------------------------------------------------------------------------------------- the folds


@pytest.mark.parametrize(("n", "n_folds"), [(12, 4), (13, 4), (15, 4), (5, 5), (100, 3), (7, 1)])
def test_folds_part_the_rows(n, n_folds):
    parts = folds(n, n_folds, np.random.default_rng(0))
    assert len(parts) == n_folds
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    for part in parts:
        assert (np.diff(part) > 0).all()


def test_folds_are_random_and_come_from_the_generator():
    first = folds(40, 4, np.random.default_rng(1))
    again = folds(40, 4, np.random.default_rng(1))
    other = folds(40, 4, np.random.default_rng(2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))
    # Rows side by side are not kept together.
    assert any((np.diff(part) > 1).any() for part in first)


# ------------------------------------------------------------------------------------------------- the table


def _table(rows):
    """Build a table from rows of (bandwidth, C, losses)."""
    bandwidths, C, losses = zip(*rows, strict=True)
    return SelectionTable(np.array(bandwidths), np.array(C), np.array(losses), "disagreement")


def test_best_has_the_least_mean_loss():
    table = _table([(1.0, 1.0, (0.1, 0.5)), (1.0, 2.0, (0.25, 0.25)), (2.0, 1.0, (0.0, 0.75))])
    np.testing.assert_array_equal(table.mean_losses, [0.3, 0.25, 0.375])
    assert table.best == 1


def test_of_equals_the_widest_and_then_the_smallest_C_is_best():
    half, quarter = (0.5, 0.5), (0.25, 0.75)
    table = _table([(1.0, 1.0, half), (4.0, 9.0, half), (4.0, 3.0, quarter), (2.0, 0.1, half)])
    assert table.best == 2
    assert _table([(4.0, 3.0, half), (4.0, 3.5, half), (1.0, 0.1, half)]).best == 0
    # A wider bandwidth does not make up for a greater loss.
    assert _table([(1.0, 1.0, (0.25, 0.25)), (9.0, 1.0, half)]).best == 0


def test_a_trial_without_a_loss_is_not_the_best():
    assert _table([(9.0, 1.0, (np.nan, 0.0)), (1.0, 1.0, (0.5, 0.5))]).best == 1


def test_trials_are_laid_out_bandwidth_by_bandwidth():
    fold_losses = [
        np.array([[bandwidth * 10 + C + fold for C in (1.0, 2.0, 3.0)] for bandwidth in (5.0, 7.0)])
        for fold in range(4)
    ]
    table = collect_trials([5.0, 7.0], [1.0, 2.0, 3.0], fold_losses, "contrast")
    assert table.criterion == "contrast"
    np.testing.assert_array_equal(table.bandwidths, [5, 5, 5, 7, 7, 7])
    np.testing.assert_array_equal(table.C, [1, 2, 3, 1, 2, 3])
    assert table.losses.shape == (6, 4)
    # Every loss stands beside the bandwidth, the C and the fold it was measured with.
    np.testing.assert_array_equal(
        table.losses, (10 * table.bandwidths + table.C)[:, None] + np.arange(4)[None]
    )
    np.testing.assert_array_equal(table.mean_losses, 10 * table.bandwidths + table.C + 1.5)
    assert table.best == 0


# ---------------------------------------------------------------------------------------------- the contrast


def test_contrast_loss_by_hand():
    assert contrast_loss([2.0, 3.0], [0.0, 1.0]) == 0.0
    assert contrast_loss([0.0, 1.0], [2.0, 3.0]) == 1.0
    assert contrast_loss([1.0, 1.0], [1.0, 1.0, 1.0]) == 0.5
    # One of three pairs wrong, one tied.
    assert contrast_loss([1.0], [0.0, 1.0, 2.0]) == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize("distinct", [2, 5, 10_000])
def test_contrast_loss_is_one_minus_the_area_under_the_roc_curve(distinct):
    rng = np.random.default_rng(distinct)
    nominal, negative = rng.integers(0, distinct, size=70), rng.integers(-distinct // 4, distinct, size=40)
    area = roc_auc_score(np.repeat([1, 0], [70, 40]), np.concatenate([nominal, negative]))
    assert contrast_loss(nominal, negative) == pytest.approx(1 - area, abs=1e-12)
    wrong = [1.0 if b > a else 0.5 if a == b else 0.0 for a in nominal for b in negative]
    assert contrast_loss(nominal, negative) == pytest.approx(np.mean(wrong), abs=1e-12)


# ------------------------------------------------------------------------------------------- made-up rows


def _dependent_rows():
    rng = np.random.default_rng(3)
    first = rng.normal(size=400)
    return np.column_stack([first, first + 0.01 * rng.normal(size=400), np.full(400, 7.0)])


def test_shuffled_columns_keep_every_column_and_lose_the_dependence():
    rows = _dependent_rows()
    made_up = shuffled_columns(rows, 3_000, np.random.default_rng(4))
    assert made_up.shape == (3_000, 3)
    for column in range(3):
        assert set(made_up[:, column]) <= set(rows[:, column])
    assert (made_up[:, 2] == 7.0).all()
    assert np.corrcoef(rows[:, 0], rows[:, 1])[0, 1] > 0.99
    assert abs(np.corrcoef(made_up[:, 0], made_up[:, 1])[0, 1]) < 4.5 / np.sqrt(3_000)
    # The margins: shares below the quartiles, within 4.5 standard deviations of a binomial.
    for level in (0.25, 0.5, 0.75):
        share = (made_up[:, 0] <= np.sort(rows[:, 0])[int(400 * level) - 1]).mean()
        assert abs(share - level) < 4.5 * np.sqrt(level * (1 - level) / 3_000)


def test_box_holds_the_made_up_rows_and_they_fill_it():
    rows = _dependent_rows()
    made_up = uniform_box(rows, 3_000, np.random.default_rng(5))
    assert made_up.shape == (3_000, 3)
    low, high = rows.min(axis=0), rows.max(axis=0)
    assert (made_up >= low).all()
    assert (made_up <= high).all()
    assert (made_up[:, 2] == 7.0).all()
    unit = (made_up[:, :2] - low[:2]) / (high - low)[:2]
    for column in range(2):
        counts = np.histogram(unit[:, column], bins=10, range=(0, 1))[0]
        assert np.abs(counts - 300).max() < 4.5 * np.sqrt(3_000 * 0.1 * 0.9)
    assert abs(np.corrcoef(unit.T)[0, 1]) < 4.5 / np.sqrt(3_000)


@pytest.mark.parametrize("draw", [shuffled_columns, uniform_box])
def test_made_up_rows_come_from_the_generator(draw):
    rows = _dependent_rows()
    first = draw(rows, 10, np.random.default_rng(6))
    np.testing.assert_array_equal(draw(rows, 10, np.random.default_rng(6)), first)
    assert (draw(rows, 10, np.random.default_rng(7)) != first).any()
