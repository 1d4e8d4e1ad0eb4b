import math

import numpy as np
import pytest
from scipy.optimize import minimize

import oracles
import rankad.stages.ranksvm
from rankad.stages.kernels import KernelMap
from rankad.stages.pairloss import PairLoss
from rankad.stages.ranksvm import SolverLimits, solve_path

# C times the number of pairs: twelve orders of magnitude.
FACTORS = (1e-6, 1e-3, 1.0, 1e2, 1e4, 1e6)
TOL = 1e-4


def solve_ranksvm(features, loss, C, **options):
    return next(solve_path(features, loss, [C], **options))


def _problem(n=28, s=7, *, seed=0, sigma=1.0, n_levels=3):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 2))
    density = -np.linalg.norm(rows, axis=1) + 0.3 * rng.normal(size=n)
    levels = 1 + np.argsort(np.argsort(density)) * n_levels // n
    return KernelMap(rows, rows[:s]).features(sigma).rows, levels


def _both(factor, far_weight, **problem):
    """Return features, the package's loss, C, and the same problem for a generic optimizer."""
    Z, levels = _problem(**problem)
    loss = PairLoss(levels, far_weight=far_weight)
    C = factor / loss.n_pairs
    return Z, loss, C, oracles.RankSVM(Z, levels, oracles.SquaredHinge(), C, far_weight)


def _optimum(naive, s):
    """Minimize without knowing anything, and prove it.

    F is |w|^2 / 2 plus a convex function, so that |w - w*| <= |gradient| at every w.
    """
    found = minimize(
        naive.value,
        np.zeros(s),
        jac=naive.gradient,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": 1e-12, "maxcor": 30, "maxls": 60},
    )
    polished = minimize(
        naive.value,
        found.x,
        jac=naive.gradient,
        hess=naive.hessian,
        method="trust-exact",
        options={"gtol": 1e-12, "maxiter": 500},
    )
    tried = [found.x, polished.x]
    for _ in range(5):
        # Plain Newton steps, which the optimizers' line searches refuse once F itself no longer shows a gain.
        tried.append(tried[-1] - np.linalg.solve(naive.hessian(tried[-1]), naive.gradient(tried[-1])))
    w = min(tried, key=lambda w: np.linalg.norm(naive.gradient(w)))
    rest = np.linalg.norm(naive.gradient(w))
    assert rest <= 2e-5 * np.linalg.norm(w)
    return w


# ---------------------------------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("far_weight", [0.0, 9.0])
@pytest.mark.parametrize("factor", FACTORS)
def test_minimum_is_that_of_a_generic_optimizer(far_weight, factor):
    Z, loss, C, naive = _both(factor, far_weight)
    best = _optimum(naive, Z.shape[1])
    solution = solve_ranksvm(Z, loss, C)
    assert solution.converged
    w = solution.weights
    least = naive.value(best)
    assert least * (1 - 1e-9) <= naive.value(w) <= least * (1 + 1e-6)
    assert np.linalg.norm(w - best) <= 2 * TOL * np.linalg.norm(best)
    # What is reported is what it is called.
    np.testing.assert_allclose(solution.objective, naive.value(w), rtol=1e-8)
    np.testing.assert_allclose(solution.loss, (naive.value(w) - 0.5 * w @ w) / C, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(solution.scores, Z @ w, rtol=1e-8, atol=1e-10 * np.abs(solution.scores).max())
    assert solution.decrement <= TOL * np.linalg.norm(w)


@pytest.mark.parametrize("factor", FACTORS)
def test_stopping_rule_holds_by_the_naive_decrement_for_every_C(factor):
    Z, loss, C, naive = _both(factor, 9.0, n=40, s=15, seed=1, n_levels=5)
    solution = solve_ranksvm(Z, loss, C)
    assert solution.converged
    assert naive.newton_decrement(solution.weights) <= 1.01 * TOL * np.linalg.norm(solution.weights)
    # The gradient against what cancels in it: C times the sum of the pulls of all pairs.
    w = solution.weights
    pulls = np.linalg.norm(naive.gradient(np.zeros_like(w)))
    assert np.linalg.norm(naive.gradient(w)) <= 1e-3 * pulls


@pytest.mark.parametrize("factor", [1.0, 1e4])
def test_a_tighter_tolerance_comes_closer(factor):
    Z, loss, C, naive = _both(factor, 9.0)
    best = _optimum(naive, Z.shape[1])
    for tol in (1e-2, 1e-4, 1e-8):
        solution = solve_ranksvm(Z, loss, C, tol=tol)
        assert solution.converged
        assert np.linalg.norm(solution.weights - best) <= 2 * tol * np.linalg.norm(best) + 1e-6


def test_solution_of_one_pair_by_hand():
    # |w|^2 / 2 + C max(0, 1 - w)^2 for w = 2 C / (1 + 2 C).
    Z, loss = np.array([[1.0], [0.0]]), PairLoss([2, 1])
    for C in (1e-3, 1.0, 1e3):
        solution = solve_ranksvm(Z, loss, C)
        np.testing.assert_allclose(solution.weights, [2 * C / (1 + 2 * C)], rtol=TOL)
        np.testing.assert_allclose(solution.objective, C / (1 + 2 * C), rtol=1e-7)
    # The far field adds its weight on row 0, and a constant for row 1, whose feature is zero.
    solution = solve_ranksvm(Z, PairLoss([2, 1], far_weight=3.0), 1.0)
    np.testing.assert_allclose(solution.weights, [8 / 9], rtol=TOL)
    np.testing.assert_allclose(solution.loss, 4 / 81 + 3, rtol=1e-6)


def test_scores_rise_with_the_levels():
    Z, levels = _problem(n=60, s=20, n_levels=3)
    scores = solve_ranksvm(Z, PairLoss(levels), 1.0).scores
    means = [scores[levels == level].mean() for level in (1, 2, 3)]
    assert means[0] + 0.2 < means[1] < means[2] - 0.2


# ------------------------------------------------------------------------------------------- special cases


def test_one_level_without_far_field_gives_zero_weights():
    Z, _ = _problem()
    solution = solve_ranksvm(Z, PairLoss(np.ones(28)), 10.0)
    assert solution.converged
    assert solution.n_iter == 0
    assert solution.objective == solution.loss == solution.decrement == 0.0
    np.testing.assert_array_equal(solution.weights, np.zeros(7))
    np.testing.assert_array_equal(solution.scores, np.zeros(28))


def test_one_level_is_forgotten_by_a_warm_start_too():
    Z, _ = _problem()
    solution = solve_ranksvm(Z, PairLoss(np.ones(28)), 10.0, start=np.ones(7))
    np.testing.assert_allclose(solution.weights, 0.0, atol=1e-12)
    assert solution.converged


def test_one_level_with_far_field_pulls_every_row_above_zero():
    Z, _ = _problem()
    solution = solve_ranksvm(Z, PairLoss(np.ones(28), far_weight=9.0), 10.0)
    assert solution.converged
    assert (solution.scores > 0.3).all()


def test_too_few_iterations_are_reported():
    Z, loss, C, _ = _both(1e4, 9.0)
    whole = solve_ranksvm(Z, loss, C)
    assert whole.n_iter > 1
    one = solve_ranksvm(Z, loss, C, max_iter=1)
    assert not one.converged
    assert one.n_iter == 1
    assert one.decrement > TOL * np.linalg.norm(one.weights)
    assert one.objective > whole.objective
    none = solve_ranksvm(Z, loss, C, max_iter=0)
    assert not none.converged
    assert not none.weights.any()


@pytest.mark.parametrize("C", [0.0, -1.0, math.nan, math.inf])
def test_C_out_of_range_is_named(C):
    Z, levels = _problem()
    with pytest.raises(ValueError, match=rf"C must be finite and > 0, got {C!r}\."):
        solve_ranksvm(Z, PairLoss(levels), C)


def test_start_and_features_are_left_alone():
    Z, levels = _problem()
    before, start = Z.copy(), np.ones(7)
    solve_ranksvm(Z, PairLoss(levels), 1.0, start=start)
    np.testing.assert_array_equal(start, np.ones(7))
    np.testing.assert_array_equal(Z, before)


# ------------------------------------------------------------------------------------------------- the path


@pytest.mark.parametrize("descending", [False, True])
def test_warm_started_path_equals_cold_solutions(descending):
    Z, levels = _problem(n=40, s=12)
    loss = PairLoss(levels, far_weight=10.0)
    Cs = [factor / loss.n_pairs for factor in (1e-2, 1.0, 10.0, 1e2, 1e3, 1e4)][:: -1 if descending else 1]
    path = list(solve_path(Z, loss, Cs))
    assert len(path) == len(Cs)
    for C, warm in zip(Cs, path, strict=True):
        cold = solve_ranksvm(Z, loss, C)
        assert warm.converged
        assert cold.converged
        assert np.linalg.norm(warm.weights - cold.weights) <= 3 * TOL * np.linalg.norm(cold.weights)
        np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-6)


def test_path_starts_where_the_last_solution_was_and_passes_options_on():
    Z, levels = _problem()
    loss = PairLoss(levels)
    first, second = solve_path(Z, loss, [0.5, 0.5])
    assert first.n_iter > 0
    assert second.n_iter == 0
    np.testing.assert_array_equal(first.weights, second.weights)
    assert [s.n_iter for s in solve_path(Z, loss, [100.0], max_iter=1)] == [1]


def test_path_is_lazy():
    Z, levels = _problem()
    path = solve_path(Z, PairLoss(levels), iter([1.0, -1.0]))
    assert next(path).converged
    with pytest.raises(ValueError, match="C must be finite"):
        next(path)


# ------------------------------------------------------------------------------------------ single precision


@pytest.fixture
def hessians(monkeypatch):
    """Record of every Hessian that is formed its features, itself and its largest diagonal entry."""
    real, formed = rankad.stages.ranksvm._hessian, []

    def recording(Z, at, C, *out):
        hessian = real(Z, at, C, *out)
        formed.append((Z, hessian.copy(), float(hessian.diagonal().max())))
        return hessian

    monkeypatch.setattr(rankad.stages.ranksvm, "_hessian", recording)
    return formed


def _precisions(hessians):
    return [hessian.dtype for _, hessian, _ in hessians]


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e2])
def test_hessians_of_small_curvature_are_single(hessians, factor):
    Z, loss, C, naive = _both(factor, 9.0)
    assert solve_ranksvm(Z, loss, C).converged
    assert hessians
    assert set(_precisions(hessians)) == {np.dtype(np.float32)}
    # The first is at w = 0.
    exact = naive.hessian(np.zeros(7))
    np.testing.assert_allclose(np.tril(hessians[0][1]), np.tril(exact), rtol=0, atol=1e-6 * exact.max())
    for features, _, largest in hessians:
        np.testing.assert_allclose(features, Z, rtol=1e-6, atol=1e-12)
        assert largest <= SolverLimits().single


@pytest.mark.parametrize("far_weight", [0.0, 9.0])
@pytest.mark.parametrize(("factor", "limit"), [(1e4, 1e2), (1e6, 1e4), (1e7, SolverLimits().single)])
def test_hessians_are_double_from_the_first_large_curvature_on(hessians, far_weight, factor, limit):
    Z, loss, C, naive = _both(factor, far_weight)
    solution = solve_ranksvm(Z, loss, C, limits=SolverLimits(single=limit))
    assert solution.converged
    best = _optimum(naive, 7)
    assert np.linalg.norm(solution.weights - best) <= 2 * TOL * np.linalg.norm(best)
    # The curvature is largest at the start, where no pair is in order: that Hessian is formed again.
    precisions = _precisions(hessians)
    assert precisions == [np.dtype(np.float32)] + [np.dtype(np.float64)] * (len(precisions) - 1)
    assert len(precisions) > solution.n_iter > 0
    assert hessians[0][2] > limit
    for features, _, _ in hessians[1:]:
        np.testing.assert_array_equal(features, Z)


def test_the_identity_is_seen_beside_the_largest_single_curvature():
    assert np.finfo(np.float32).eps * SolverLimits().single < 0.2


def test_a_path_that_went_to_double_precision_stays_there(hessians):
    Z, loss, C, _ = _both(1.0, 9.0)
    limits = SolverLimits(single=1e2)
    solutions = solve_path(Z, loss, [C, 1e4 * C, C], limits=limits)
    next(solutions)
    assert set(_precisions(hessians)) == {np.dtype(np.float32)}
    hessians.clear()
    next(solutions)
    assert _precisions(hessians)[:2] == [np.dtype(np.float32), np.dtype(np.float64)]
    assert np.float32 not in _precisions(hessians)[1:]
    hessians.clear()
    again = next(solutions)
    assert set(_precisions(hessians)) == {np.dtype(np.float64)}
    # Another path starts in single precision, and ends at the same place.
    hessians.clear()
    cold = solve_ranksvm(Z, loss, C, limits=limits)
    assert set(_precisions(hessians)) == {np.dtype(np.float32)}
    assert np.linalg.norm(again.weights - cold.weights) <= 3 * TOL * np.linalg.norm(cold.weights)


@pytest.mark.parametrize("factor", [1.0, 1e3, 1e5])
def test_single_precision_ends_where_double_does(hessians, factor):
    # More features than above, and a wide kernel: stiff directions and soft ones.
    Z, loss, C, naive = _both(factor, 40.0, n=80, s=60, seed=2, sigma=2.0, n_levels=5)
    assert Z.shape[1] > 40
    single = solve_ranksvm(Z, loss, C)
    assert np.float32 in _precisions(hessians)
    assert np.float64 not in _precisions(hessians)
    hessians.clear()
    double = solve_ranksvm(Z, loss, C, limits=SolverLimits(single=0.0))
    assert np.float64 in _precisions(hessians)
    assert np.float32 not in _precisions(hessians)[1:]
    for solution in (single, double):
        assert solution.converged
        assert naive.newton_decrement(solution.weights) <= 1.01 * TOL * np.linalg.norm(solution.weights)
    assert np.linalg.norm(single.weights - double.weights) <= 2 * TOL * np.linalg.norm(double.weights)
    np.testing.assert_allclose(single.objective, double.objective, rtol=1e-6)


def test_a_tight_tolerance_is_met_in_single_precision(hessians):
    Z, loss, C, naive = _both(1e2, 9.0)
    solution = solve_ranksvm(Z, loss, C, tol=1e-10)
    assert solution.converged
    assert set(_precisions(hessians)) == {np.dtype(np.float32)}
    assert naive.newton_decrement(solution.weights) <= 1e-9 * np.linalg.norm(solution.weights)


@pytest.mark.parametrize("entry", [-1.0, math.nan, math.inf])
def test_a_hessian_that_single_precision_spoils_is_formed_again(entry, monkeypatch):
    Z, loss, C, naive = _both(1e2, 9.0)
    plain = solve_ranksvm(Z, loss, C)
    real, formed = rankad.stages.ranksvm._hessian, []

    def spoiling(features, at, C, *out):
        hessian = real(features, at, C, *out)
        formed.append(hessian.dtype)
        if hessian.dtype == np.float32:
            assert hessian.diagonal().max() <= SolverLimits().single
            hessian[3, 3] = entry
        return hessian

    monkeypatch.setattr(rankad.stages.ranksvm, "_hessian", spoiling)
    solution = solve_ranksvm(Z, loss, C)
    assert solution.converged
    assert solution.n_iter > 0
    assert formed == [np.dtype(np.float32)] + [np.dtype(np.float64)] * (len(formed) - 1)
    assert len(formed) > solution.n_iter
    best = _optimum(naive, 7)
    assert np.linalg.norm(solution.weights - best) <= 2 * TOL * np.linalg.norm(best)
    np.testing.assert_allclose(solution.objective, plain.objective, rtol=1e-6)


@pytest.mark.parametrize("tiny", [1e-20, 1e-30, 1e-100])
def test_tiny_features_are_nothing_in_single_precision_and_themselves_in_double(hessians, tiny):
    Z, levels = _problem()
    rng = np.random.default_rng(3)
    Z = np.where(rng.random(Z.shape) < 0.3, tiny * rng.normal(size=Z.shape), Z)
    Z[:, 2] = tiny * rng.normal(size=28)
    Z[:5, 4] = 1e-11 * (1.0 + rng.random(5))  # small, and yet not too small
    loss = PairLoss(levels, far_weight=9.0)
    C = 1e2 / loss.n_pairs
    solution = solve_ranksvm(Z, loss, C)
    assert solution.converged
    for features, hessian, _ in hessians:
        assert features.dtype == np.float32
        assert not ((features != 0) & (np.abs(features) < 1e-12)).any()
        assert not features[:, 2].any()
        assert features[:5, 4].all()
        # Neither are products subnormal.
        lower = np.abs(np.tril(hessian))
        assert not ((lower > 0) & (lower < np.finfo(np.float32).tiny)).any()
    naive = oracles.RankSVM(Z, levels, oracles.SquaredHinge(), C, 9.0)
    best = _optimum(naive, 7)
    assert np.linalg.norm(solution.weights - best) <= 2 * TOL * np.linalg.norm(best)
    # What pulls at the weights is of the features as they came.
    if tiny > 1e-40:
        assert solution.weights[2] != 0
    np.testing.assert_allclose(solution.scores, Z @ solution.weights, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------------------------------- conjugate gradients


@pytest.fixture
def searches(monkeypatch):
    """Record whether each search by conjugate gradients ended in time."""
    real, ended = rankad.stages.ranksvm._conjugate_gradients, []

    def recording(*arguments):
        step = real(*arguments)
        ended.append(step is not None)
        return step

    monkeypatch.setattr(rankad.stages.ranksvm, "_conjugate_gradients", recording)
    return ended


@pytest.mark.parametrize("far_weight", [0.0, 9.0])
@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e2, 1e4])
def test_conjugate_gradients_find_the_dense_solution(far_weight, factor, searches):
    Z, loss, C, naive = _both(factor, far_weight, n=40, s=15)
    dense = solve_ranksvm(Z, loss, C)
    assert not searches
    iterative = solve_ranksvm(Z, loss, C, limits=SolverLimits(dense=14))
    assert searches
    assert all(searches)
    assert iterative.converged
    assert np.linalg.norm(iterative.weights - dense.weights) <= 3 * TOL * np.linalg.norm(dense.weights)
    np.testing.assert_allclose(iterative.objective, dense.objective, rtol=1e-6)
    assert naive.newton_decrement(iterative.weights) <= 1.5 * TOL * np.linalg.norm(iterative.weights)


def test_conjugate_gradients_do_not_stop_while_a_soft_direction_is_far_from_its_optimum():
    """The first feature tells the levels apart, stiffly; the second tells nothing, and should go to zero."""
    levels = np.repeat([2, 1], 50)
    Z, C = np.column_stack([levels - 1.0, np.zeros(100)]), 1e7
    naive = oracles.RankSVM(Z, levels, oracles.SquaredHinge(), C)
    stiffness = 1 + 2 * C * 2_500
    best = np.array([1 - 1 / stiffness, 0.0])
    np.testing.assert_allclose(naive.gradient(best), 0.0, atol=1e-4)
    # The stiff part of the gradient is 200 times the soft one, and yet worth nothing.
    start = best + np.array([-20 / stiffness, 0.1])
    assert naive.newton_decrement(start) > 0.09
    solution = solve_ranksvm(Z, PairLoss(levels), C, start=start, limits=SolverLimits(dense=0))
    assert solution.converged
    np.testing.assert_allclose(solution.weights, best, atol=3 * TOL)


def test_conjugate_gradients_that_take_long_are_not_tried_again_along_a_path(searches):
    Z, loss, C, naive = _both(1e4, 9.0)
    first, last = solve_path(Z, loss, [0.1 * C, C], limits=SolverLimits(dense=0, cg_steps=1))
    assert first.n_iter > 0
    assert last.n_iter > 0
    assert searches == [False]
    best = _optimum(naive, 7)
    assert np.linalg.norm(last.weights - best) <= 2 * TOL * np.linalg.norm(best)


# ------------------------------------------------------------------------------------- a Hessian used again


@pytest.mark.parametrize("factor", [1.0, 1e2, 1e4])
def test_with_a_hessian_used_again_the_end_is_the_same(factor):
    Z, loss, C, naive = _both(factor, 40.0, n=80, s=60, seed=2, sigma=2.0, n_levels=5)
    solution = solve_ranksvm(Z, loss, C)
    assert solution.converged
    assert naive.newton_decrement(solution.weights) <= 1.01 * TOL * np.linalg.norm(solution.weights)
    plain = solve_ranksvm(Z, loss, C, limits=SolverLimits(reuse=(0.0, 0.0)))
    assert np.linalg.norm(solution.weights - plain.weights) <= 2 * TOL * np.linalg.norm(plain.weights)


def test_the_end_is_never_judged_by_a_hessian_of_another_place():
    """Where C is large, pairs that come and go change it by orders of magnitude."""
    for seed in range(40):
        Z, levels = _problem(n=30 + seed, s=20 + seed, seed=seed, sigma=(0.5, 1.0, 3.0)[seed % 3])
        Cs = [1.0, 30.0, 1e3, 1e5]
        for C, solution in zip(Cs, solve_path(Z, PairLoss(levels), Cs), strict=True):
            w = solution.weights
            decrement = oracles.RankSVM(Z, levels, oracles.SquaredHinge(), C).newton_decrement(w)
            assert solution.converged
            # Below the last term, rounding leaves nothing to gain.
            assert decrement <= max(1.05 * TOL * np.linalg.norm(w), math.sqrt(1e-9 * solution.objective))


def test_near_the_end_the_last_hessian_serves_once_more(hessians):
    def n_formed(**options):
        hessians.clear()
        n_steps = 0
        for seed in range(10):
            Z, loss, C, _ = _both(1e3, 40.0, n=80, s=60, seed=seed, sigma=2.0, n_levels=5)
            n_steps += solve_ranksvm(Z, loss, C, **options).n_iter
        return len(hessians), n_steps

    several, n_steps = n_formed()
    assert several < n_steps
    assert several < n_formed(limits=SolverLimits(reuse=(0.0, 0.0)))[0]


@pytest.mark.parametrize("factor", [1.0, 10.0, 100.0])
def test_a_path_uses_no_hessian_of_another_C(factor):
    """A Hessian that is left over would be used wherever it can be."""
    limits = SolverLimits(reuse=(math.inf, math.inf))
    Z, loss, C, _ = _both(factor, 40.0, n=80, s=60, seed=2, sigma=2.0, n_levels=5)
    first, second = solve_path(Z, loss, [C, 100 * C], limits=limits)
    fresh = solve_ranksvm(Z, loss, 100 * C, start=first.weights, limits=limits)
    np.testing.assert_array_equal(second.weights, fresh.weights)
