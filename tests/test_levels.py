import math
import signal
from fractions import Fraction

import numpy as np
import pytest

import oracles
from rankad._loops import counts as _counts
from rankad.stages.levels import TAIL_CUTS, count_pairs, disagreement, quantize, resolve_cuts

# --------------------------------------------------------------------------------------------- quantizing


def test_uniform_levels_of_every_rank_that_can_occur():
    """Level l holds the ranks in ((l - 1) / m, l / m]; fractions say which, without rounding."""
    for n in (1, 2, 3, 7, 12, 60, 99):
        ranks = [count / n for count in range(1, n + 1)]
        for m in (2, 3, 5, 6, 7, 10, 49):
            expected = [math.ceil(Fraction(count * m, n)) for count in range(1, n + 1)]
            np.testing.assert_array_equal(quantize(ranks, resolve_cuts(m)), expected)


def test_three_levels_of_the_paper():
    levels = quantize(np.arange(1, 301) / 300, resolve_cuts(3))
    np.testing.assert_array_equal(np.bincount(levels), [0, 100, 100, 100])


def test_toy_example_cuts_at_3_per_cent():
    ranks = np.arange(1, 1_001) / 1_000
    levels = quantize(ranks, resolve_cuts([0.03]))
    np.testing.assert_array_equal(np.bincount(levels), [0, 30, 970])
    np.testing.assert_array_equal(levels == 1, ranks <= 0.03)


def test_boundaries_belong_to_the_level_below():
    cut = 0.25
    ranks = [0.0, np.nextafter(cut, 0), cut, np.nextafter(cut, 1), 0.5, 1.0]
    np.testing.assert_array_equal(quantize(ranks, [cut, 0.5]), [1, 1, 1, 2, 2, 3])


def test_as_many_levels_as_rows_keep_every_rank_apart():
    ranks = np.random.default_rng(0).permutation(np.arange(1, 51) / 50)
    np.testing.assert_array_equal(quantize(ranks, resolve_cuts(50)), np.round(ranks * 50))


def test_levels_do_not_depend_on_the_order_of_the_rows():
    ranks = np.random.default_rng(1).random(200)
    levels = quantize(ranks, resolve_cuts("tail"))
    order = np.random.default_rng(2).permutation(200)
    np.testing.assert_array_equal(quantize(ranks[order], resolve_cuts("tail")), levels[order])
    assert levels.dtype.kind == "i"


def test_cuts_as_resolved():
    assert resolve_cuts("tail") == TAIL_CUTS
    assert TAIL_CUTS == (0.01, 0.02, 0.035, 0.05, 0.075, 0.10, 0.15, 0.25, 0.50, 0.75)
    assert resolve_cuts(2) == (0.5,)
    assert resolve_cuts(np.int64(4)) == (0.25, 0.5, 0.75)
    assert resolve_cuts((0.1, 0.9)) == (0.1, 0.9)
    assert resolve_cuts(np.array([0.1, 0.9])) == (0.1, 0.9)


@pytest.mark.parametrize(
    "n_levels",
    [
        1,
        0,
        -3,
        True,
        "uniform",
        "",
        [],
        [0.0],
        [1.0],
        [0.0, 0.5],
        [0.5, 1.0],
        [0.5, 0.5],
        [0.5, 0.2],
        [-0.1, 0.5],
        [0.5, 2],
        [math.nan],
        2.5,
        None,
    ],
    ids=repr,
)
def test_wrong_levels_are_named(n_levels):
    with pytest.raises(ValueError, match="n_levels must be 'tail', an integer >= 2, or ascending") as error:
        resolve_cuts(n_levels)
    assert str(error.value).endswith(f"got {n_levels!r}.")


# -------------------------------------------------------------------------------------------------- pairs


def test_pairs_counted_by_hand():
    assert count_pairs([1, 1, 1]) == 0
    assert count_pairs([5]) == 0
    assert count_pairs([1, 2]) == 1
    assert count_pairs([3, 1, 2]) == 3
    assert count_pairs([1, 1, 2, 2, 2]) == 6


@pytest.mark.parametrize("m", [1, 2, 3, 7, 40])
def test_pairs_counted_one_by_one(m):
    levels = np.random.default_rng(m).integers(0, m, size=40)
    assert count_pairs(levels) == len(oracles.pairs(levels))
    assert count_pairs(np.arange(40)) == 40 * 39 // 2


def test_many_pairs_do_not_overflow():
    levels = np.repeat(np.array([1, 2], dtype=np.int8), 100_000)
    assert count_pairs(levels) == 10**10


# ------------------------------------------------------------------------------------------- disagreement


@pytest.mark.parametrize("m", [2, 3, 7, 60])
@pytest.mark.parametrize("distinct", [1, 2, 5, 10_000])
def test_disagreement_equals_the_naive_count(m, distinct):
    rng = np.random.default_rng(100 * m + distinct)
    for _ in range(5):
        scores = rng.integers(0, distinct, size=60).astype(float)
        levels = rng.integers(1, m + 1, size=60)
        assert disagreement(scores, levels) == oracles.disagreement(scores, levels)


def test_disagreement_when_every_row_has_its_own_level():
    rng = np.random.default_rng(3)
    levels, scores = rng.permutation(50), rng.integers(0, 6, size=50)
    assert disagreement(scores, levels) == oracles.disagreement(scores, levels)


def test_disagreement_of_constant_perfect_and_reversed_scores():
    levels = np.random.default_rng(4).integers(1, 4, size=80)
    assert disagreement(np.full(80, 3.5), levels) == 0.5
    assert disagreement(levels, levels) == 0.0
    assert disagreement(-levels, levels) == 1.0


def test_disagreement_with_nothing_to_order_is_one_half():
    assert disagreement([1.0, 2.0, 3.0], [2, 2, 2]) == 0.5


def test_disagreement_sees_only_the_order_of_scores_and_levels():
    rng = np.random.default_rng(5)
    scores, levels = rng.integers(-5, 5, size=60), rng.integers(1, 5, size=60)
    expected = oracles.disagreement(scores, levels)
    assert 0.3 < expected < 0.7
    assert disagreement(np.exp(scores), levels) == expected
    assert disagreement(scores, 10 * levels - 1_000) == expected
    assert disagreement(np.where(scores == scores.max(), np.inf, scores), levels) == expected
    order = rng.permutation(60)
    assert disagreement(scores[order], levels[order]) == expected


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_scores_that_are_not_numbers_are_named(monkeypatch):
    # Let through, NaN would keep the compiled loop going for ever: use Python's, which can be interrupted.
    monkeypatch.setattr(_counts, "wrong_order", _counts.wrong_order.py_func)

    def give_up(*_):
        raise TimeoutError("disagreement does not return when a score is NaN")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 5.0)
    try:
        with pytest.raises(ValueError, match=r"scores must be numbers, but 1 of 2 are NaN\."):
            disagreement([math.nan, 1.0], [1, 2])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
