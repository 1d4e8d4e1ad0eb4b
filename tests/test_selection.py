import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import oracles
from rankad.stages.selection import (
    PAPER_C,
    PAPER_MULTIPLES,
    SelectionTable,
    collect_trials,
    contrast_losses,
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


def test_trials_are_laid_out_scaling_by_scaling_and_bandwidth_by_bandwidth():
    scalings, C, bandwidths = ["standard", None], [1.0, 2.0, 3.0], [[5.0, 7.0], [50.0, 70.0]]
    losses = np.array(
        [
            [[bandwidth * 10 + value + kind + row for row in range(4)] for kind in (0.0, 0.5)]
            for several in bandwidths
            for bandwidth in several
            for value in C
        ]
    )
    table = collect_trials(scalings, bandwidths, C, losses, "contrast")
    assert table.criterion == "contrast"
    assert table.scalings == ("standard",) * 6 + (None,) * 6
    np.testing.assert_array_equal(table.bandwidths, [5, 5, 5, 7, 7, 7, 50, 50, 50, 70, 70, 70])
    np.testing.assert_array_equal(table.C, [1, 2, 3] * 4)
    # Every loss stands beside the bandwidth, the C and the kind it was measured with: a mean over the rows.
    np.testing.assert_array_equal(
        table.losses, (10 * table.bandwidths + table.C)[:, None] + np.array([0.0, 0.5]) + 1.5
    )
    assert table.relative_losses.shape == table.standard_errors.shape == (12,)


# Two trials, two kinds, two rows. The least means are 0.19 and 0.04, a hundredth more makes 0.2 and 0.05.
BY_HAND = np.array([[[0.09, 0.29], [0.0, 0.18]], [[0.19, 0.39], [0.04, 0.04]]])


def test_relative_losses_by_hand():
    table = collect_trials([None], [[1.0, 2.0]], [1.0], BY_HAND, "contrast")
    np.testing.assert_allclose(table.losses, [[0.19, 0.09], [0.29, 0.04]], rtol=1e-14)
    # (1 + 0.10 / 0.05) / 2 and (0.3 / 0.2 + 1) / 2.
    np.testing.assert_allclose(table.relative_losses, [1.5, 1.25], rtol=1e-14)


def test_standard_errors_by_hand():
    table = collect_trials([None], [[1.0, 2.0]], [1.0], BY_HAND, "contrast")
    # Row by row the first trial is 0.225 and 2.525, the second, the least, 0.875 and 1.375: gaps -0.65 and
    # 1.15, which are 0.9 about their mean.
    np.testing.assert_allclose(table.standard_errors, [0.9 / math.sqrt(2), 0.0], rtol=1e-13)


@pytest.mark.parametrize("criterion", ["contrast", "shuffled", "disagreement"])
def test_the_table_is_its_naive_twin(criterion):
    rng = np.random.default_rng(8)
    kinds = 2 if criterion == "contrast" else 1
    # Kinds of different sizes, some rows hard for every trial.
    losses = rng.beta(1, 4, size=(12, kinds, 30)) * np.array([0.6, 0.01])[:kinds, None] + 0.3 * (
        rng.random(30) < 0.2
    )
    table = collect_trials(
        ["standard", None], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [0.1, 1.0], losses, criterion
    )
    relative, errors = oracles.compare_trials(losses, of_rows=criterion != "disagreement")
    np.testing.assert_allclose(table.relative_losses, relative, rtol=1e-12)
    np.testing.assert_allclose(table.standard_errors, errors, rtol=1e-12, atol=1e-15)


def test_each_kind_of_loss_counts_where_it_tells_trials_apart():
    """A kind that all trials find equally hard, however large its losses, does not drown another."""
    hard, easy = np.full((2, 1, 50), 0.4), np.full((2, 1, 50), [[[0.02]], [[0.05]]])
    table = collect_trials([None], [[1.0, 9.0]], [1.0], np.concatenate([hard, easy], axis=1), "contrast")
    np.testing.assert_allclose(table.relative_losses, [1.0, 1.5], rtol=1e-12)
    # Where next to nothing goes wrong, ten times nothing is not much.
    tiny = np.full((2, 1, 50), [[[1e-4]], [[1e-3]]])
    table = collect_trials([None], [[1.0, 9.0]], [1.0], np.concatenate([hard, tiny], axis=1), "contrast")
    np.testing.assert_allclose(table.relative_losses, [1.0, (1 + 0.011 / 0.0101) / 2], rtol=1e-12)


def test_errors_are_of_paired_rows():
    """A loss that is always a little larger is larger for sure, however much rows differ."""
    rows = np.random.default_rng(9).random(40) / 2
    table = collect_trials([None], [[1.0, 9.0]], [1.0], np.array([[rows], [rows + 0.01]]), "shuffled")
    assert table.standard_errors.max() < 1e-12
    assert table.best == 0


# ------------------------------------------------------------------------------------ the trial that is used


def _table(rows, criterion="contrast"):
    """Build a table from rows of (scaling, bandwidth, C, relative loss, standard error)."""
    scalings, bandwidths, C, relative, errors = zip(*rows, strict=True)
    losses = np.array(relative)[:, None]
    return SelectionTable(
        scalings, np.array(bandwidths), np.array(C), losses, losses[:, 0], np.array(errors), criterion
    )


def test_beyond_a_standard_error_the_least_loss_is_best():
    table = _table([(None, 4.0, 1.0, 1.5, 0.25), (None, 2.0, 1.0, 1.0, 0.0), (None, 8.0, 1.0, 2.0, 0.5)])
    assert table.best == 1


def test_within_a_standard_error_the_widest_is_best():
    # The widest of all is too bad by a hair, the next wide one is just good enough.
    table = _table(
        [
            (None, 1.0, 1.0, 1.0, 0.0),
            (None, 2.0, 1.0, 1.125, 0.5),
            (None, 4.0, 1.0, 1.25, 0.25),
            (None, 8.0, 1.0, np.nextafter(1.25, 2), 0.25),
        ]
    )
    assert table.best == 2


def test_of_equally_wide_trials_the_smallest_C_is_best():
    table = _table(
        [
            (None, 4.0, 9.0, 1.0, 0.0),
            (None, 4.0, 3.0, 1.25, 0.5),
            (None, 4.0, 0.5, 1.75, 0.5),
            (None, 2.0, 0.1, 1.25, 0.5),
        ]
    )
    assert table.best == 1


def test_of_equal_losses_the_widest_and_then_the_smallest_C_is_best():
    equals = [(None, 1.0, 1.0), (None, 4.0, 9.0), (None, 4.0, 3.0), (None, 2.0, 0.1)]
    assert _table([(*trial, 1.0, 0.0) for trial in equals]).best == 2
    # A wider bandwidth does not make up for a greater loss.
    assert _table([(None, 1.0, 1.0, 1.0, 0.0), (None, 9.0, 1.0, 1.25, 0.0)]).best == 0


def test_within_a_standard_error_the_scaling_listed_first_is_best():
    rows = [
        ("standard", 1.0, 1.0, 1.25, 0.5),
        ("standard", 2.0, 1.0, 1.25, 0.125),
        ("robust", 4.0, 0.1, 1.0, 0.0),
        (None, 400.0, 0.1, 1.0625, 0.5),
    ]
    # Neither the least loss nor a smoother trial of a scaling listed later.
    assert _table(rows).best == 0
    # Were the first scaling farther off, the second, and not the widest of all.
    assert _table([("standard", 1.0, 1.0, 1.5, 0.25), *rows[1:]]).best == 2
    assert _table([("standard", 1.0, 1.0, 1.5, 0.25), rows[1], rows[3], rows[2]]).best == 2, "now listed so"


def test_the_scaling_comes_before_the_bandwidth():
    rows = [
        (None, 1.0, 9.0, 1.125, 0.25),
        (None, 2.0, 9.0, 1.125, 0.25),
        (None, 2.0, 3.0, 1.125, 0.25),
        (None, 4.0, 1.0, 1.5, 0.25),
        ("robust", 8.0, 1.0, 1.0, 0.0),
    ]
    assert _table(rows).best == 2


def test_the_papers_criterion_takes_the_plain_minimum():
    """Losses of pairs within a fold are not independent: there are no standard errors to go by."""
    # Two folds that disagree wildly; the narrow trial is better by a hair.
    losses = np.array([[[0.1, 0.9]], [[0.9, 0.1 + 1e-9]], [[0.6, 0.6]]])
    table = collect_trials([None], [[1.0, 2.0, 4.0]], [1.0], losses, "disagreement")
    np.testing.assert_array_equal(table.standard_errors, np.zeros(3))
    np.testing.assert_allclose(table.losses[:, 0], [0.5, 0.5, 0.6], rtol=1e-8)
    assert table.best == 0
    # Judged by rows, the same losses would be too close to call.
    assert collect_trials([None], [[1.0, 2.0, 4.0]], [1.0], losses, "contrast").best != 0


# ---------------------------------------------------------------------------------------------- the contrast


def test_contrast_losses_by_hand():
    np.testing.assert_array_equal(contrast_losses([2.0, 3.0], [0.0, 1.0]), [0.0, 0.0])
    np.testing.assert_array_equal(contrast_losses([0.0, 1.0], [2.0, 3.0]), [1.0, 1.0])
    np.testing.assert_array_equal(contrast_losses([1.0, 1.0], [1.0, 1.0, 1.0]), [0.5, 0.5])
    # One of four is higher, two tie; in the order of the nominal scores.
    np.testing.assert_array_equal(contrast_losses([5.0, 1.0, -1.0], [0.0, 1.0, 1.0, 2.0]), [0.0, 0.5, 1.0])


@pytest.mark.parametrize("distinct", [2, 5, 10_000])
def test_the_mean_contrast_loss_is_one_minus_the_area_under_the_roc_curve(distinct):
    rng = np.random.default_rng(distinct)
    nominal, negative = rng.integers(0, distinct, size=70), rng.integers(-distinct // 4, distinct, size=40)
    losses = contrast_losses(nominal, negative)
    area = roc_auc_score(np.repeat([1, 0], [70, 40]), np.concatenate([nominal, negative]))
    assert losses.mean() == pytest.approx(1 - area, abs=1e-12)
    wrong = [[1.0 if b > a else 0.5 if a == b else 0.0 for b in negative] for a in nominal]
    np.testing.assert_allclose(losses, np.mean(wrong, axis=1), rtol=0, atol=1e-12)


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
