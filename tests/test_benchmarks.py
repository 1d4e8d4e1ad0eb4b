"""The benchmark's own sums: what is extrapolated, counted, repeated and judged."""

import doctest
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from rankad.scorers.kernel import KernelScorer

# The benchmarks are not installed with the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import bars, fits, measure, peers, process, roofline, rows, settings, stream, text


@pytest.mark.parametrize(
    ("known", "n", "expected"),
    [
        ([], 10, None),
        ([(10, 2.0)], 30, 6.0),
        ([(10, 1.0), (20, 4.0)], 40, 16.0),
        ([(10, 1.0), (20, 16.0)], 40, 64.0),
        ([(10, 3.0), (20, 2.0)], 40, 2.0),
    ],
)
def test_expected_time_follows_the_power_seen_between_one_and_two(known, n, expected):
    found = fits.expected_seconds(known, n)
    assert found == expected or math.isclose(found, expected)


def test_a_fit_is_left_out_for_a_reason_that_is_told():
    method = peers.Method("slow", lambda n_jobs: None, most_rows=100)
    key = {"method": "slow", "n": 50, "threads": 2}
    record = {"method": "slow", "n": 10, "threads": 2, "fit_seconds": 3.0}
    other = {**record, "threads": 1, "fit_seconds": 900.0}
    assert fits.why_not(method, key, [record, other], 20.0) is None
    assert fits.why_not(method, {**key, "n": 101}, [], 20.0) == "not run: too slow beyond 100 rows"
    assert fits.why_not(method, key, [record], 10.0) == "not run: too slow, 15 s expected"
    stopped = {"method": "slow", "n": 10, "threads": 2, "missing": "stopped after 300 s"}
    assert fits.why_not(method, key, [stopped], 10.0) == "not run: too slow on fewer rows"
    failed = {**stopped, "missing": "failed: no memory"}
    assert fits.why_not(method, key, [failed], 10.0) is None


def test_rows_beyond_the_pool_are_its_own_moved_a_little():
    pool = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 100.0]
    found = rows.repeated(pool, 120, np.random.default_rng(1))
    again = pool[np.arange(50, 120) % 50]
    assert (found[:50] == pool).all()
    moved = (found[50:] - again) / pool.std(axis=0)
    assert (moved != 0).all()
    assert np.abs(moved).max() < 6 * rows.JITTER


def test_operations_of_the_kernel_by_hand():
    # 10 columns, a power with a polynomial of degree five, a weight; then the same in instructions, with five
    # for the three nearest landmarks.
    assert roofline.flops(10) == 30 + (3 + 10) + 2
    assert roofline.instructions(10) == 20 + (1 + 3 + 5 + 2) + 1 + 5


def test_blocked_numpy_is_the_kernel_in_other_words():
    rng = np.random.default_rng(0)
    points, landmarks, weights = rng.normal(size=(1_500, 4)), rng.normal(size=(30, 4)), rng.normal(size=30)
    widths = np.array([1.0, 2.0, 3.0, 4.0])
    scorer = KernelScorer(landmarks, weights, widths, far_field=False)
    expected = scorer.score(points)
    np.testing.assert_allclose(
        roofline.blocked_numpy(points, landmarks, weights, widths), expected, atol=1e-12
    )


def test_peak_memory_sees_what_is_held_and_let_go():
    measure.reset_peak()
    before = measure.resident()
    held = np.ones(10_000_000)
    del held
    assert measure.peak_memory() - before > 60e6


def test_growth_compares_the_quarters_ends():
    assert stream.growth([100, 90, 80, 70]) == -30
    assert stream.growth([1, 1, 1, 9, 1, 1, 1, 5]) == 4


def test_a_job_runs_elsewhere_and_says_what_went_wrong():
    assert process.run_job("json:loads", {"s": '{"a": 1}'}, 1) == {"a": 1}
    assert process.run_job("json:loads", {"s": ""}, 1)["missing"].startswith("failed: json.decoder.JSON")
    assert process.run_job("json:loads", {"s": "{}"}, 1, stop=0.001)["missing"] == "stopped after 0 s"


@pytest.mark.parametrize("module", [bars, stream, text])
def test_examples_in_docstrings(module):
    tried = doctest.testmod(module)
    assert tried.attempted
    assert not tried.failed


def test_every_method_scores_nominal_rows_higher():
    rng = np.random.default_rng(0)
    train, near, far = rng.normal(size=(200, 3)), np.zeros((5, 3)), np.full((5, 3), 30.0)
    for name, method in peers.METHODS.items():
        if name == peers.RANKAD:
            continue
        detector = peers.Detector(method, 1).fit(train)
        scores = detector.score(np.concatenate([near, far]))
        assert scores[:5].min() > scores[5:].max(), name
        assert len(np.ravel(detector.single()(near[:1]))) == 1


def test_a_bar_without_a_measurement_is_not_met():
    assert bars.Bar("x", 1.0, True, 1.0).met
    assert not bars.Bar("x", 1.0, True, 0.9).met
    assert bars.Bar("x", 1.0, False, 0.9).met
    assert not bars.Bar("x", 1.0, False, None).met
    bench = settings.Bench(Path("out"), Path("rows"))
    nothing = {"fits": [], "scoring": [], "roofline": [], "published": {}, "stream": {}, "start": {}}
    judged = bars.judge(nothing, bench)
    assert len(judged) == 16
    assert not any(bar.met for bar in judged)
    assert text.show({"missing": "stopped after 3 s"}, "auc") == "stopped after 3 s"
