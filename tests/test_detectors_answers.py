"""The detectors' answers: p-values, decisions, seeds, what was selected, and naive twins."""

import math
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_info, threadpool_limits

import oracles
from conftest import ALONE
from rankad import KLPE, EpsilonLPE, RankAD
from rankad.fitting import selecting, sizes
from rankad.stages.kernels import choose_landmarks
from rankad.stages.selection import folds

# Nothing to select.
ONE_TRIAL = {"scaling": "standard", "bandwidth": "D_K", "C": 0.1}


def rows_of(n, d=3, seed=11):
    return np.random.default_rng(seed).normal(size=(n, d))


def distances(queries, reference):
    """Euclidean distances of all pairs, from their differences."""
    return np.sqrt(((np.asarray(queries)[:, None] - np.asarray(reference)) ** 2).sum(axis=2))


def standardized(rows, reference):
    return (rows - reference.mean(axis=0)) / reference.std(axis=0)


def naive_p_values(scores, nominal_scores):
    return np.array([(1 + sum(nominal_scores <= score)) / (len(nominal_scores) + 1) for score in scores])


# -------------------------------------------------------------------- p-values and decisions


def grid_of_alphas(n):
    """Every multiple of 1/(n+1) as it is rounded, the numbers next to it on both sides, and some others."""
    multiples = np.arange(1, n + 1) / (n + 1)
    others = np.random.default_rng(0).uniform(0.001, 0.999, 50)
    around = [multiples, np.nextafter(multiples, 0), np.nextafter(multiples, 1), others]
    return [float(alpha) for alpha in np.concatenate(around)]


@pytest.mark.filterwarnings("ignore:alpha=.* is below the smallest p-value")
@pytest.mark.parametrize("n", [60, 99])
def test_an_alarm_is_a_p_value_of_at_most_alpha(build, n):
    rows = rows_of(n)
    detector = build().fit(rows)
    new = np.vstack([rows[:30], rows_of(30, seed=5) * 2])
    p = detector.p_values(new)
    for alpha in grid_of_alphas(detector.calibration_.scores.size):
        detector.alpha = alpha
        np.testing.assert_array_equal(detector.predict(new) == -1, p <= alpha, err_msg=f"alpha={alpha!r}")


def test_ties_count_as_no_higher():
    """Nominal rows that come twice tie with a new row just like them, and raise its p-value."""
    rows = np.repeat([[i, j] for i in range(5) for j in range(2)], 2, axis=0).astype(float)
    detector = KLPE(n_neighbors=2, scaling=None).fit(rows)
    # Each row's two nearest others are its twin, at 0, and a neighbour, at 1; a copy's are the two at 0.
    np.testing.assert_array_equal(detector.score_samples([[4.0, 1.0]]), [0.0])
    np.testing.assert_array_equal(detector.calibration_.scores, np.full(20, -0.5))
    np.testing.assert_array_equal(
        detector.p_values([[4.0, 0.0], [3.5, 0.0], [-1.0, 0.0]]), [1.0, 1.0, 1 / 21]
    )


@pytest.mark.parametrize("alpha", [0.02, 0.1, 7 / 61, 0.5, 0.9])
def test_alpha_set_afterwards_is_alpha_set_before(build, fit_nominal, nominal, alpha):
    new = np.vstack([nominal, 2 * nominal])
    later = fit_nominal(alpha=0.3, random_state=4)
    later.alpha = alpha
    before = build(alpha=alpha, random_state=4).fit(nominal)
    assert later.offset_ == before.offset_
    for method in ("predict", "decision_function", "p_values"):
        np.testing.assert_array_equal(getattr(later, method)(new), getattr(before, method)(new))


@pytest.mark.parametrize("alpha", [0.02, 0.1, 7 / 61, 0.5, 0.99])
def test_the_decision_function_is_the_score_above_the_offset(build, nominal, alpha):
    detector = build(alpha=alpha).fit(nominal)
    new = np.vstack([nominal, 2 * nominal])
    decision = detector.decision_function(new)
    np.testing.assert_array_equal(decision, detector.score_samples(new) - detector.offset_)
    np.testing.assert_array_equal(detector.predict(new), np.where(decision < 0, -1, 1))
    np.testing.assert_array_equal(decision < 0, detector.p_values(new) <= alpha)


def test_the_offset_is_a_nominal_score(fit_nominal):
    """At alpha = r / (n + 1) it is the r-th smallest."""
    detector = fit_nominal()
    for r in (1, 2, 10, 60):
        detector.alpha = r / 61
        assert detector.offset_ == np.sort(detector.calibration_.scores)[r - 1]


def test_p_values_are_counts_of_nominal_scores(fit_nominal, nominal):
    detector = fit_nominal()
    new = np.vstack([nominal, 2 * nominal])
    expected = naive_p_values(detector.score_samples(new), detector.calibration_.scores)
    np.testing.assert_array_equal(detector.p_values(new), expected)


def test_an_alpha_too_small_for_the_rows_warns_and_never_alarms(build, nominal):
    with pytest.warns(UserWarning, match=r"alpha=0.01 is below .*60 normal rows.*no row will ever") as caught:
        detector = build(alpha=0.01).fit(nominal)
    assert caught[0].filename == __file__, "the warning points at the call of fit"
    far = np.full((3, 3), 1e6)
    with pytest.warns(UserWarning, match=r"alpha=0.01 is below") as caught:
        np.testing.assert_array_equal(detector.predict(far), [1, 1, 1])
    assert caught[0].filename == __file__, "the warning points at the call of predict"
    assert detector.offset_ == -np.inf
    assert np.all(detector.decision_function(far) > 0)
    assert detector.false_alarm_bound().bound == 0.0


@pytest.mark.parametrize("detector", [KLPE(0.01), RankAD(0.01, **ONE_TRIAL, random_state=0)], ids=repr)
def test_as_many_rows_as_the_warning_asks_for_are_enough(few_folds, detector):
    rows = rows_of(99)
    with pytest.warns(UserWarning, match="at least 99"):
        detector.fit(rows[:98])
    # A warning is an error here.
    np.testing.assert_array_equal(detector.fit(rows).predict(np.full((1, 3), 100.0)), [-1])


def test_epsilon_lpe_warns_when_too_many_rows_tie_at_no_neighbors():
    rows = np.vstack([rows_of(90), 1e3 * np.arange(1.0, 11.0)[:, None] * np.ones(3)])
    with pytest.warns(UserWarning, match=r"alpha=0.05 is below .*0\.109.*larger radius"):
        detector = EpsilonLPE(0.05, radius=4.0, scaling=None).fit(rows)
    assert detector.p_values([[1e6, 0.0, 0.0]])[0] == pytest.approx(11 / 101)


# ------------------------------------------------------------------------------ the sign


@pytest.mark.parametrize("calibration", ["default", "split"])
def test_the_middle_scores_higher_than_the_edge_and_the_edge_higher_than_far_away(build, calibration):
    params = {} if calibration == "default" else {"calibration": calibration}
    detector = build(**params).fit(rows_of(200))
    middle, edge, far = detector.score_samples([[0.0, 0.0, 0.0], [1.8, 1.8, 0.0], [20.0, 0.0, 0.0]])
    assert middle > edge > far
    p = detector.p_values([[0.0, 0.0, 0.0], [1.8, 1.8, 0.0], [20.0, 0.0, 0.0]])
    assert p[0] > p[1] > p[2]


def test_higher_scores_are_more_nominal_throughout(build):
    """Against the true density: a rank correlation far above nought, mean over five samples."""
    new = rows_of(200, 2, seed=1) * 1.5
    truth = -np.sum(new**2, axis=1)
    scores = [build().fit(rows_of(300, 2, seed)).score_samples(new) for seed in range(2, 7)]
    assert np.mean([stats.spearmanr(found, truth).statistic for found in scores]) > 0.8


# ------------------------------------------------------- one row at a time, threads, seeds


@pytest.mark.parametrize(
    "detector",
    [
        RankAD(**ONE_TRIAL, landmarks=60, random_state=0),
        RankAD(**{**ONE_TRIAL, "bandwidth": "0.1 D_K", "scaling": "robust"}, landmarks=60, random_state=0),
        RankAD(**{**ONE_TRIAL, "scaling": None}, landmarks=60, random_state=0),
        RankAD(**ONE_TRIAL, landmarks=60, far_field=False, random_state=0),
        *(KLPE(n_neighbors=k, statistic=s) for k in (1, 7, 40) for s in ("mean", "kth", "centred")),
        EpsilonLPE(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("d", [1, 3, 12])
def test_a_lone_row_has_the_answer_it_has_in_a_batch(few_folds, detector, d):
    detector.fit(rows_of(150, d))
    batch = np.vstack([rows_of(700, d, seed=2) * 3, np.full((1, d), 1e8)])
    scores, p = detector.score_samples(batch), detector.p_values(batch)
    for i in (0, 1, 13, 511, 512, 699, 700):
        np.testing.assert_array_equal(detector.score_samples(batch[i : i + 1]), scores[i : i + 1])
        np.testing.assert_array_equal(detector.p_values(batch[i : i + 1]), p[i : i + 1])
    np.testing.assert_array_equal(detector.score_samples(batch[::-1]), scores[::-1])


def everything(detector, new):
    """All that a seed determines."""
    found = {
        "scores": detector.score_samples(new),
        "p-values": detector.p_values(new),
        "calibration": detector.calibration_.scores,
        "offset": detector.offset_,
    }
    if isinstance(detector, RankAD):
        found |= detector.selection_._asdict()
        found["center"], found["scale"] = detector.scaling_
        found["landmarks"] = detector.landmarks_
        found["coefficients"] = detector.coefficients_
        found["training rows"] = detector.training_rows_
        found["ranks"] = detector.ranks_
    return found


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name, strict=True)


TWO_TRIALS = {"scaling": "standard", "bandwidth": ["0.5 D_K", "D_K"], "C": 0.1}
SEEDED = {
    "cross-fit": RankAD(**TWO_TRIALS, landmarks=40, random_state=3),
    "split": RankAD(**TWO_TRIALS, landmarks=40, calibration="split", random_state=3),
    "random landmarks": RankAD(**TWO_TRIALS, landmarks=("random", 40), random_state=3),
    "disagreement": RankAD(**TWO_TRIALS, landmarks=40, selection="disagreement", random_state=3),
    "scaling": RankAD(**{**TWO_TRIALS, "scaling": "auto", "C": "auto"}, landmarks=40, random_state=3),
    "KLPE": KLPE(calibration="split", random_state=3),
    "EpsilonLPE": EpsilonLPE(calibration="split", random_state=3),
}


@pytest.mark.parametrize("name", SEEDED)
@pytest.mark.parametrize(("n", "d", "others"), [(250, 2, (None, 2, -1)), (1_100, 9, (2, -1))])
def test_the_same_seed_gives_the_same_answer_for_any_number_of_jobs(few_folds, name, n, d, others):
    # The larger one: more rows, in each half too, than k-means and the searches take in one block.
    rows, new = rows_of(n, d), rows_of(5_000, d, seed=1)
    detector = SEEDED[name]
    expected = everything(detector.set_params(n_jobs=1).fit(rows), new)
    for n_jobs in others:
        assert_same(everything(detector.set_params(n_jobs=n_jobs).fit(rows), new), expected)


@pytest.mark.parametrize("name", SEEDED)
def test_the_same_seed_gives_the_same_answer_for_any_number_of_library_threads(few_folds, name):
    rows, new = rows_of(600, 9), rows_of(500, 9, seed=1)
    detector = SEEDED[name].set_params(n_jobs=2)
    expected = everything(detector.fit(rows), new)
    for limit in (1, 8):
        with threadpool_limits(limits=limit):
            assert_same(everything(detector.fit(rows), new), expected)


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_gives_another_answer(few_folds, name):
    rows = rows_of(150)
    one = SEEDED[name].set_params(random_state=3).fit(rows).score_samples(rows)
    other = SEEDED[name].set_params(random_state=4).fit(rows).score_samples(rows)
    SEEDED[name].set_params(random_state=3)
    assert not np.array_equal(one, other)


def test_a_random_state_object_is_drawn_from(quick_rankad, nominal):
    def fit(state):
        return quick_rankad(random_state=state).fit(nominal).score_samples(nominal)

    state = np.random.RandomState(5)
    first, second = fit(state), fit(state)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, fit(np.random.RandomState(5)))
    np.testing.assert_array_equal(first, fit(5))


@pytest.mark.parametrize("kind", [RankAD, KLPE, EpsilonLPE])
def test_the_seed_is_fixed_unless_another_is_asked_for(kind):
    assert kind().random_state == 0


def test_by_default_fits_on_the_same_rows_agree(few_folds, nominal):
    params = {"landmarks": 20, "scaling": "standard", "bandwidth": "D_K", "C": 0.1}
    one, other = (RankAD(**params).fit(nominal).score_samples(nominal) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_without_a_seed_fits_differ(quick_rankad, nominal):
    one, other = (quick_rankad(random_state=None).fit(nominal).score_samples(nominal) for _ in range(2))
    assert not np.array_equal(one, other)


# ----------------------------------------------------------------------- what RankAD selected


@pytest.mark.parametrize(("selection", "n_kinds"), [("contrast", 2), ("shuffled", 1), ("disagreement", 1)])
def test_the_selection_table_is_complete_and_its_best_row_was_used(quick_rankad, selection, n_kinds):
    rows = rows_of(120) * [1.0, 5.0, 0.2]
    grid = {"scaling": "auto", "bandwidth": ["0.5 D_K", "D_K", "2 D_K"], "C": [0.01, 0.1]}
    detector = quick_rankad(selection=selection, **grid).fit(rows)
    table = detector.selection_
    assert table.criterion == selection
    assert table.losses.shape == (18, n_kinds)
    assert np.all((table.losses >= 0) & (table.losses <= 1))
    assert len(set(zip(table.scalings, table.bandwidths, table.C, strict=True))) == 18
    assert set(table.scalings) == {"standard", "robust", None}
    assert set(table.C) == {0.01, 0.1}
    best = table.scalings[table.best], table.bandwidths[table.best], table.C[table.best]
    assert (detector.bandwidth_, detector.C_) == best[1:]
    alone = quick_rankad(scaling=best[0]).fit(rows)
    np.testing.assert_array_equal(alone.scaling_, detector.scaling_)


@pytest.mark.parametrize("selection", ["contrast", "shuffled", "disagreement"])
def test_the_scorer_is_the_one_that_the_selected_parameters_make(quick_rankad, selection):
    rows = rows_of(120) * [1.0, 5.0, 0.2]
    grid = {"scaling": ["robust", "auto"][selection == "contrast"], "bandwidth": ["0.5 D_K", "D_K"]}
    detector = quick_rankad(selection=selection, C=[0.01, 0.1], **grid).fit(rows)
    table = detector.selection_
    chosen = {
        "scaling": table.scalings[table.best],
        "bandwidth": float(detector.bandwidth_),
        "C": detector.C_,
    }
    alone = quick_rankad(selection=selection, **chosen).fit(rows)
    assert alone.selection_ is None
    np.testing.assert_allclose(alone.score_samples(rows), detector.score_samples(rows), rtol=1e-6, atol=1e-9)


def test_auto_tries_three_scalings_by_five_bandwidths():
    """Five multiples of D_K, which each scaling has its own of; here by two C."""
    rows = rows_of(50, 2) * [1.0, 20.0]
    several = {"scaling": "auto", "bandwidth": "auto", "C": (1 / 50, 10 / 50)}
    detector = RankAD(**several, random_state=0, calibration="in-sample").fit(rows)
    table = detector.selection_
    low, middle, high = np.percentile(rows, [25, 50, 75], axis=0)
    seen = {
        "standard": standardized(rows, rows),
        "robust": (rows - middle) / (high - low) * 2 * stats.norm.ppf(0.75),
        None: rows,
    }
    assert table.scalings == ("standard",) * 10 + ("robust",) * 10 + (None,) * 10
    for at, scaled in zip((0, 10, 20), seen.values(), strict=True):
        unit = mean_neighbor_distance(scaled, detector.n_neighbors_)
        multiples = np.repeat([0.25, 0.5, 1, 2, 4], 2)
        np.testing.assert_allclose(table.bandwidths[at : at + 10], unit * multiples, rtol=1e-9)
    np.testing.assert_allclose(table.C, [1 / 50, 10 / 50] * 15, rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "selection", "expected"),
    [
        (999, "contrast", 4),
        (1_000, "contrast", 2),
        (999, "shuffled", 4),
        (1_000, "shuffled", 2),
        (999, "disagreement", 4),
        (1_000, "disagreement", 4),
    ],
)
def test_few_rows_are_judged_in_more_folds(quick_rankad, monkeypatch, n, selection, expected):
    dealt = []

    def deal(*given):
        dealt.append(given[1])
        return folds(*given)

    monkeypatch.setattr(selecting, "folds", deal)
    quick_rankad(selection=selection, C=[0.01, 0.1], calibration="in-sample").fit(rows_of(n, 2))
    assert dealt == [expected]


@pytest.mark.parametrize("selection", ["contrast", "shuffled", "disagreement"])
@pytest.mark.parametrize("far_field", [True, False])
def test_losses_are_numbers_even_where_there_is_nothing_to_tell(quick_rankad, selection, far_field):
    """All rows alike: every made-up row is a nominal one, and there are no pairs."""
    detector = quick_rankad(scaling="auto", C=[0.1, 1.0], selection=selection, far_field=far_field)
    table = detector.fit(np.ones((40, 3))).selection_
    for numbers in (table.losses, table.relative_losses, table.standard_errors):
        assert np.isfinite(numbers).all()
    np.testing.assert_array_equal(table.relative_losses, np.ones(6))
    assert table.best == 0


def ring(n, rng):
    """A circle of radius one, blurred."""
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.normal(1, 0.1, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def ring_beside_small_noise(n, rng):
    """A circle, and six columns a hundredth as wide with nothing to learn in them."""
    return np.hstack([ring(n, rng), rng.uniform(size=(n, 6)) / 100])


def chosen_scaling(detector):
    return detector.selection_.scalings[detector.selection_.best]


@pytest.mark.parametrize("unit", [1e-4, 1e4])
@pytest.mark.parametrize("seed", [0, 1])
def test_columns_of_different_units_are_scaled(quick_rankad, unit, seed):
    """Of a circle, raw features see one coordinate; with both, shuffled columns are told apart."""
    rows = ring(200, np.random.default_rng(seed)) * [1.0, unit]
    detector = quick_rankad(scaling="auto", landmarks=60).fit(rows)
    assert chosen_scaling(detector) in ("standard", "robust")
    # What was chosen is what is used: the spread of both columns.
    np.testing.assert_allclose(detector.scaling_.scale[1] / detector.scaling_.scale[0], unit, rtol=0.2)
    inside = np.array([[0.0, 0.0], [1.0, 0.0]]) * [1.0, unit]
    hole, edge = detector.score_samples(inside)
    assert hole < edge


@pytest.mark.parametrize("seed", [0, 1])
def test_columns_of_small_noise_are_left_small(quick_rankad, seed):
    """Scaled, six columns of noise drown the circle."""
    rows = ring_beside_small_noise(200, np.random.default_rng(seed))
    detector = quick_rankad(scaling="auto", landmarks=60).fit(rows)
    assert chosen_scaling(detector) is None
    np.testing.assert_array_equal(detector.scaling_, [np.zeros(8), np.ones(8)])


@pytest.mark.parametrize(
    ("factor", "first"), [(0.26, None), (1.0, None), (3.9, None), (4.1, "standard"), (0.24, "standard")]
)
def test_of_equally_good_scalings_alike_columns_are_left_as_they_are(
    quick_rankad, monkeypatch, factor, first
):
    monkeypatch.setattr(selecting, "contrast_losses", lambda nominal, negative: np.zeros(len(nominal)))
    column = rows_of(60, 1)
    detector = quick_rankad(scaling="auto", C=0.1).fit(np.hstack([column, factor * column[::-1]]))
    scaled = ["standard", "robust"]
    listed = [None, *scaled] if first is None else [*scaled, None]
    assert list(dict.fromkeys(detector.selection_.scalings)) == listed
    assert chosen_scaling(detector) == first


def test_a_scaling_is_only_tried_where_asked_for(quick_rankad):
    rows = ring(80, np.random.default_rng(0)) * [1.0, 1e4]
    for scaling in ("standard", "robust", None):
        table = quick_rankad(scaling=scaling, C=[0.1, 1.0]).fit(rows).selection_
        assert table.scalings == (scaling, scaling)
    assert quick_rankad(scaling="auto").fit(rows).selection_.scalings == ("standard", "robust", None)


def test_criteria_judge_differently(quick_rankad):
    rows = rows_of(120)
    tables = [
        quick_rankad(selection=selection, bandwidth=[0.3, 1.0]).fit(rows).selection_.relative_losses
        for selection in ("contrast", "shuffled", "disagreement")
    ]
    assert len({tuple(table) for table in tables}) == 3


def test_selection_refuses_a_bandwidth_at_which_the_kernel_has_died(quick_rankad):
    """Ties count one half, so a scorer that says the same of every row cannot look good (finding 2)."""
    rows = rows_of(150, 2)
    for selection in ("contrast", "shuffled", "disagreement"):
        detector = quick_rankad(bandwidth=["0.0001 D_K", "D_K"], selection=selection, far_field=False)
        table = detector.fit(rows).selection_
        assert table.best == 1
        np.testing.assert_array_equal(table.losses[0], np.full(table.losses.shape[1], 0.5))


def mean_neighbor_distance(rows, k):
    """D_K, slowly: the mean distance to the K nearest other rows."""
    between = distances(rows, rows)
    return np.mean([np.sort(np.delete(row, i))[:k] for i, row in enumerate(between)])


@pytest.mark.parametrize("scaling", ["standard", None])
def test_forms_of_the_bandwidth(quick_rankad, scaling):
    rows = rows_of(80, 2) * [1.0, 20.0]
    seen = rows if scaling is None else standardized(rows, rows)

    def fit(bandwidth):
        return quick_rankad(bandwidth=bandwidth, scaling=scaling, n_neighbors=5).fit(rows)

    unit = mean_neighbor_distance(seen, 5)
    for form, sigma in (
        (0.7, 0.7),
        ("D_K", unit),
        ("0.5 D_K", unit / 2),
        ("3*D_K", 3 * unit),
        ("2D_K", 2 * unit),
    ):
        detector = fit(form)
        assert detector.bandwidth_ == pytest.approx(sigma, rel=1e-12)
        assert detector.selection_ is None
    mixed = fit((0.7, "2 D_K"))
    np.testing.assert_allclose(mixed.selection_.bandwidths, [0.7, 2 * unit], rtol=1e-12)
    for form, multiples in (("auto", [0.25, 0.5, 1, 2, 4]), ("paper", 2.0 ** np.arange(-10, 11))):
        np.testing.assert_allclose(fit(form).selection_.bandwidths, unit * np.array(multiples), rtol=1e-12)
    assert fit([0.7]).selection_ is None


def test_forms_of_C(quick_rankad):
    rows = rows_of(80, 2)
    assert quick_rankad(C=0.25).fit(rows).C_ == 0.25
    auto = quick_rankad(C="auto").fit(rows)
    assert (auto.C_, auto.selection_) == (10 / 80, None)
    assert quick_rankad(C=[0.25]).fit(rows).selection_ is None
    several = quick_rankad(C=[1.0, 0.01]).fit(rows)
    assert sorted(several.selection_.C) == [0.01, 1.0]
    paper = quick_rankad(C="paper").fit(rows).selection_.C
    np.testing.assert_allclose(
        np.sort(paper), [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000]
    )


def test_the_order_in_which_candidates_are_given_does_not_matter(quick_rankad):
    rows = rows_of(120)
    one = quick_rankad(bandwidth=["0.5 D_K", "D_K", "2 D_K"], C=[0.01, 0.1, 1.0]).fit(rows)
    other = quick_rankad(bandwidth=["2 D_K", "0.5 D_K", "D_K"], C=[1.0, 0.01, 0.1]).fit(rows)
    assert (one.bandwidth_, one.C_) == (other.bandwidth_, other.C_)
    np.testing.assert_array_equal(one.score_samples(rows), other.score_samples(rows))


def test_forms_of_the_landmarks(quick_rankad):
    rows = np.vstack([rows_of(80, 2), np.repeat(rows_of(80, 2)[:1], 11, axis=0)])
    scaled = standardized(rows, rows)

    def fit(landmarks):
        return quick_rankad(landmarks=landmarks).fit(rows)

    for form in (15, ("kmeans", 15), ("random", 15), ["random", 15]):
        detector = fit(form)
        assert detector.landmarks_.shape == (15, 2)
        assert detector.coefficients_.shape == (15,)
    among = distances(fit(("random", 15)).landmarks_, scaled).min(axis=1)
    np.testing.assert_allclose(among, 0, atol=1e-12)
    assert distances(fit(15).landmarks_, scaled).min(axis=1).max() > 1e-3, "centres are not rows"
    for form in ("all", 80, 500, ("random", 500)):
        assert fit(form).landmarks_.shape == (80, 2), "one row comes twelve times"
    np.testing.assert_array_equal(fit(15).landmarks_, fit(("kmeans", 15)).landmarks_)


@pytest.mark.parametrize("n_levels", [2, 3, 7, [0.1], [0.05, 0.5], "tail"])
def test_forms_of_the_levels(quick_rankad, n_levels):
    detector = quick_rankad(n_levels=n_levels).fit(rows_of(200, 2))
    if isinstance(n_levels, int):
        cuts = np.arange(1, n_levels) / n_levels
    else:
        tail = [0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 0.75]
        cuts = tail if n_levels == "tail" else n_levels
    np.testing.assert_array_equal(
        detector.levels_, [1 + sum(cut < r for cut in cuts) for r in detector.ranks_]
    )
    assert detector.ranks_.shape == detector.levels_.shape == (200,)


@pytest.mark.parametrize("far_field", [True, False])
def test_the_score_is_a_sum_of_kernels_over_the_landmarks(quick_rankad, far_field):
    rows = rows_of(100, 2) * [1.0, 5.0] + 3
    detector = quick_rankad(far_field=far_field, **ALONE).fit(rows)
    new, kernel = rows[:20], detector.scorer_.kernel
    squared = distances(standardized(new, rows), detector.landmarks_) ** 2
    naive = np.exp(-squared / detector.bandwidth_**2) @ detector.coefficients_
    in_double = replace(kernel, single=False)
    np.testing.assert_allclose(in_double.score(new), naive, rtol=1e-9, atol=1e-12)
    assert np.abs(detector.score_samples(new) - naive).max() <= kernel.rounding < 1e-3


def test_far_rows_score_lower_the_farther_they_are(quick_rankad):
    detector = quick_rankad().fit(rows_of(100, 2))
    steps = np.array([[10.0**k, 0.0] for k in range(1, 9)])
    assert np.all(np.diff(detector.score_samples(steps)) < 0)
    flat = quick_rankad(far_field=False, **ALONE).fit(rows_of(100, 2)).score_samples(steps[2:])
    np.testing.assert_array_equal(flat, np.zeros(6))


@pytest.mark.parametrize("scaling", ["standard", "robust", None])
def test_outside_the_range_of_a_column_the_excess_is_subtracted(quick_rankad, scaling):
    rows = rows_of(100, 2) * [1.0, 1e-6]
    detector = quick_rankad(scaling=scaling, **ALONE).fit(rows)
    new = np.random.default_rng(3).standard_cauchy(size=(100, 2)) * [3.0, 3e-6]
    outside = np.array([oracles.excess(row, rows, rows.std(axis=0)) for row in new])
    assert 20 < np.count_nonzero(outside) < 80
    kernels = replace(detector.scorer_.kernel, limits=None).score(new)
    np.testing.assert_allclose(detector.score_samples(new), kernels - outside, rtol=1e-9, atol=1e-12)
    # Without the far field the kernels are all there is.
    plain = quick_rankad(scaling=scaling, far_field=False, **ALONE).fit(rows)
    np.testing.assert_array_equal(
        plain.score_samples(new), replace(plain.scorer_.kernel, limits=None).score(new), strict=True
    )


def test_ranges_are_those_of_the_training_rows(quick_rankad, monkeypatch):
    monkeypatch.setattr(sizes, "MAX_TRAINING_ROWS", 100)
    rows = rows_of(150, 3) * [1.0, 1e-6, 0.0] + [0.0, 0.0, 7.0]
    detector = quick_rankad(scaling=None).fit(rows)
    seen = rows[detector.training_rows_]
    np.testing.assert_array_equal(detector.ranges_.low, seen.min(axis=0))
    np.testing.assert_array_equal(detector.ranges_.high, seen.max(axis=0))
    np.testing.assert_allclose(detector.ranges_.unit, [*seen[:, :2].std(axis=0), np.inf], rtol=1e-12)


def test_folds_draw_landmarks_by_the_names_of_their_rows_and_the_final_seed(monkeypatch):
    """What is left to chance in the final ranker must be so in the folds: else they cannot calibrate it."""
    rows, calls = rows_of(100, 2), []

    def recorded(rows, n_landmarks, method, *, seed, names):
        calls.append((rows, seed, names))
        return choose_landmarks(rows, n_landmarks, method, seed=seed, names=names)

    monkeypatch.setattr("rankad.fitting.ranker.choose_landmarks", recorded)
    RankAD(**{**ONE_TRIAL, "scaling": None}, landmarks=20, n_jobs=1, random_state=0).fit(rows)
    (_, seed, everyone), *of_folds = calls
    np.testing.assert_array_equal(everyone, np.arange(100))
    assert {of_fold for _, of_fold, _ in of_folds} == {seed}
    held = [np.delete(everyone, names) for _, _, names in of_folds]
    assert len(held) == 40
    np.testing.assert_array_equal(np.sort(np.concatenate(held)), everyone)
    for of_fold, _, names in of_folds:
        np.testing.assert_array_equal(of_fold, rows[names])


def test_the_range_of_a_fold_and_its_unit_are_those_of_the_other_rows(quick_rankad):
    """A row that alone leaves a column's range is outside it when held out, and far: so it calibrates.

    The column is too small for the kernel to see. Were the unit that of all rows, which the row stretches to
    a tenth of its distance, it would seem to lie six units beyond four outside, not a thousand.
    """
    rows = rows_of(100, 2) * [1.0, 1e-9]
    rows[17] = [0.0, 1e-6]
    detector = quick_rankad(scaling=None, **ALONE).fit(rows)
    lowest, second = detector.calibration_.scores[:2]
    assert -1_500 < lowest < -700
    # No other is: those at the edge are at some -3 to -7, by the chance of the landmarks.
    assert second > lowest / 50


# -------------------------------------------------------------- many rows: the training cap


@pytest.mark.parametrize(
    ("n", "kind", "n_nominal"), [(90, "cross-fit", 90), (150, "cross-fit", 150), (179, "cross-fit", 179)]
)
def test_few_free_rows_join_the_cross_fitted_ones(quick_rankad, monkeypatch, n, kind, n_nominal):
    # Fewer than are split where cross-fitting is in doubt.
    monkeypatch.setattr(sizes, "MAX_TRAINING_ROWS", 90)
    detector = quick_rankad().fit(rows_of(n, 2))
    assert detector.training_rows_.shape == (90,)
    assert detector.calibration_.kind == kind
    assert detector.calibration_.scores.shape == (n_nominal,)
    assert not detector.false_alarm_bound().exact


@pytest.mark.parametrize("n", [200, 350])
def test_enough_free_rows_calibrate_alone(quick_rankad, monkeypatch, n):
    monkeypatch.setattr(sizes, "MAX_TRAINING_ROWS", 100)
    rows = rows_of(n, 2)
    detector = quick_rankad().fit(rows)
    assert detector.calibration_.kind == "split"
    assert detector.false_alarm_bound().exact
    free = np.delete(rows, np.r_[detector.training_rows_, detector.reference_rows_], axis=0)
    assert len(free) == n - 100 - len(detector.reference_rows_)
    np.testing.assert_array_equal(detector.calibration_.scores, np.sort(detector.score_samples(free)))


@pytest.mark.parametrize(("n", "n_training"), [(99, 50), (100, 50), (150, 75), (350, 100)])
def test_a_split_trains_on_half_of_the_rows_at_most(quick_rankad, monkeypatch, n, n_training):
    monkeypatch.setattr(sizes, "MAX_TRAINING_ROWS", 100)
    rows = rows_of(n, 2)
    detector = quick_rankad(calibration="split").fit(rows)
    assert detector.training_rows_.shape == (n_training,)
    assert detector.calibration_.kind == "split"
    free = np.delete(rows, np.r_[detector.training_rows_, detector.reference_rows_], axis=0)
    np.testing.assert_array_equal(detector.calibration_.scores, np.sort(detector.score_samples(free)))


def test_all_landmarks_are_all_training_rows(quick_rankad, monkeypatch):
    monkeypatch.setattr(sizes, "MAX_TRAINING_ROWS", 100)
    rows = rows_of(150, 2)
    detector = quick_rankad(landmarks="all", scaling=None).fit(rows)
    np.testing.assert_array_equal(
        detector.landmarks_, np.unique(rows[detector.training_rows_], axis=0), strict=True
    )


def test_free_rows_teach_nothing(quick_rankad, monkeypatch):
    """The scorer and the scaling are those of the training rows, whatever the others are."""
    monkeypatch.setattr(sizes, "MAX_TRAINING_ROWS", 100)
    rows = rows_of(150, 2)
    detector = quick_rankad().fit(rows)
    free = np.delete(np.arange(150), detector.training_rows_)
    changed = rows.copy()
    changed[free] = 1e6
    again = quick_rankad().fit(changed)
    np.testing.assert_array_equal(again.score_samples(rows), detector.score_samples(rows))


@pytest.fixture(scope="module")
def six_thousand():
    """A fit on 6,000 rows, and the most memory that NumPy held at once meanwhile."""
    rows = rows_of(6_000, 4)
    detector = RankAD(landmarks=30, scaling="standard", bandwidth="D_K", random_state=0, n_jobs=2)
    with pytest.MonkeyPatch.context() as patch:
        # A fold of a tenth: all pairs of the others are still more than there may be.
        patch.setattr(sizes, "CALIBRATION_FOLDS", 10)
        detector.fit(rows[:200])
        tracemalloc.start()
        detector.fit(rows)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return detector, peak


def test_no_table_of_all_pairs_of_rows_is_ever_made(six_thousand):
    _, peak = six_thousand
    assert peak < 6_000 * 6_000 * 8 / 2


def test_training_takes_five_thousand_rows_at_most(six_thousand):
    detector, _ = six_thousand
    training = detector.training_rows_
    assert training.shape == (5_000,)
    np.testing.assert_array_equal(training, np.unique(training))
    assert 0 <= training.min() <= training.max() < 6_000
    assert training.max() > 5_100, "drawn at random, not the first 5,000"
    assert detector.calibration_.kind == "cross-fit"
    assert detector.calibration_.scores.shape == (6_000,)


def test_ten_thousand_rows_calibrate_without_folds(quick_rankad):
    detector = quick_rankad().fit(rows_of(10_000, 2))
    assert detector.training_rows_.shape == (5_000,)
    assert detector.calibration_.kind == "split"
    assert detector.calibration_.scores.shape == (5_000,)


def test_every_training_row_is_calibrated_out_of_its_fold(quick_rankad):
    """An in-sample model may learn a lone row by heart; a model without it cannot."""
    rows = np.vstack([rows_of(99, 2), [[50.0, 50.0]]])
    detector = quick_rankad(landmarks="all").fit(rows)
    assert detector.calibration_.scores.shape == (100,)
    lowest = detector.calibration_.scores[0]
    assert lowest < detector.score_samples([[50.0, 50.0]])[0]
    assert lowest < 0, "seen from the others, the lone row lies in the far field"


# ------------------------------------------------------------------------------ the paper


@pytest.fixture(scope="module")
def published():
    rows = rows_of(200, 3) * [1.0, 5.0, 0.2] + [0.0, 100.0, -3.0]
    rows[190:] = rows[:10]
    return rows, RankAD.as_published(random_state=0, n_jobs=2).fit(rows)


def test_as_published_has_the_papers_parameters(published):
    _, detector = published
    assert detector.n_neighbors_ == 20
    assert set(detector.levels_) == {1, 2, 3}
    np.testing.assert_array_equal(detector.levels_, 1 + (detector.ranks_ > 1 / 3) + (detector.ranks_ > 2 / 3))
    np.testing.assert_array_equal(detector.scaling_.center, np.zeros(3))
    np.testing.assert_array_equal(detector.scaling_.scale, np.ones(3))


def test_as_published_has_the_papers_selection(published):
    rows, detector = published
    table = detector.selection_
    assert table.criterion == "disagreement"
    assert table.losses.shape == (273, 1)
    assert table.scalings == (None,) * 273
    assert table.losses[table.best, 0] == table.losses.min()
    unit = mean_neighbor_distance(rows, 20)
    sigmas = np.unique(table.bandwidths)
    np.testing.assert_allclose(sigmas, unit * 2.0 ** np.arange(-10, 11), rtol=1e-9)
    assert len(np.unique(table.C)) == 13
    assert len(set(zip(table.bandwidths, table.C, strict=True))) == 273
    assert (detector.bandwidth_, detector.C_) == (table.bandwidths[table.best], table.C[table.best])


def test_as_published_is_made_of_all_distinct_rows(published):
    rows, detector = published
    np.testing.assert_array_equal(detector.landmarks_, np.unique(rows, axis=0))
    assert len(detector.landmarks_) == 190


def test_as_published_knows_no_far_field(published):
    """Far from all data the score is zero: a middle rank (finding 3)."""
    rows, detector = published
    far = rows.max(axis=0) + 1e6
    np.testing.assert_array_equal(detector.score_samples([far]), [0.0])
    assert 0.1 < detector.p_values([far])[0] < 1.0


def test_as_published_ranks_in_sample(published):
    rows, detector = published
    assert detector.calibration_.kind == "in-sample"
    np.testing.assert_array_equal(detector.calibration_.scores, np.sort(detector.score_samples(rows)))


# --------------------------------------------------------------------------- naive twins


def naive_statistic(between, k, statistic):
    """Sort every row's distances and average those that the statistic names (counted from 1)."""
    first, last = {"kth": (k, k), "mean": (1, k), "centred": (k - (k - 1) // 2, k + k // 2)}[statistic]
    return np.array([np.mean(sorted(row)[first - 1 : last]) for row in between])


def others(rows):
    """Distances of every row to the other rows."""
    return [np.delete(row, i) for i, row in enumerate(distances(rows, rows))]


def others_scaled_by_themselves(rows):
    """Distances of every row to the other rows, all standardized by those others."""
    found = []
    for i, row in enumerate(rows):
        rest = np.delete(rows, i, axis=0)
        found.append(distances(standardized(row[None], rest), standardized(rest, rest))[0])
    return found


@pytest.mark.parametrize("statistic", ["mean", "kth", "centred"])
@pytest.mark.parametrize("k", [1, 4, 5])
@pytest.mark.parametrize("d", [1, 3, 6])
def test_klpe_is_its_naive_twin(statistic, k, d):
    rows = rows_of(50, d) * np.arange(1, d + 1)
    new = rows_of(30, d, seed=2) * 5
    detector = KLPE(n_neighbors=k, statistic=statistic).fit(rows)
    inside = -naive_statistic(others_scaled_by_themselves(rows), k, statistic)
    outside = -naive_statistic(distances(standardized(new, rows), standardized(rows, rows)), k, statistic)
    np.testing.assert_allclose(detector.calibration_.scores, np.sort(inside), rtol=1e-10)
    np.testing.assert_allclose(detector.score_samples(new), outside, rtol=1e-10)
    np.testing.assert_array_equal(detector.p_values(new), naive_p_values(outside, inside))


def test_rankad_auto_neighbors_are_half_of_the_rows_to_the_two_fifths(quick_rankad):
    for n, expected in ((200, 6), (400, 8), (2_000, 15)):
        detector = quick_rankad(calibration="in-sample").fit(rows_of(n, 2))
        assert detector.n_neighbors_ == expected == math.floor((n / 2) ** 0.4)


def test_klpe_auto_is_n_to_the_two_fifths(nominal):
    assert KLPE(scaling=None).fit(rows_of(1_000)).n_neighbors_ == 15
    assert KLPE().fit(nominal).n_neighbors_ == 5


def naive_counts(between, radius):
    return np.array([sum(row <= radius) for row in between])


@pytest.mark.filterwarnings("ignore:alpha=.* is below the smallest p-value")
@pytest.mark.parametrize("radius", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("d", [1, 3, 6])
def test_epsilon_lpe_is_its_naive_twin(radius, d):
    rows = rows_of(50, d) * np.arange(1, d + 1)
    new = rows_of(30, d, seed=2) * 5
    detector = EpsilonLPE(0.99, radius=radius).fit(rows)
    inside = naive_counts(others_scaled_by_themselves(rows), radius)
    outside = naive_counts(distances(standardized(new, rows), standardized(rows, rows)), radius)
    np.testing.assert_array_equal(detector.calibration_.scores, np.sort(inside))
    np.testing.assert_array_equal(detector.score_samples(new), outside)
    np.testing.assert_array_equal(detector.p_values(new), naive_p_values(outside, inside))


def test_epsilon_lpe_auto_radius_leaves_nearly_all_rows_with_enough_neighbors():
    rows = rows_of(50)
    kth = naive_statistic(others(standardized(rows, rows)), 4, "kth")
    assert EpsilonLPE().fit(rows).radius_ == pytest.approx(np.quantile(kth, 0.95), rel=1e-12)


def test_klpe_beyond_a_thousand_rows_shares_the_scaling_of_rows_that_do_not_move_it():
    """A row with less than a hundredth of a column's squares moves its deviation by half of that at most."""
    rows = rows_of(1_001, 2)
    rows[500, 1] = 40.0
    detector = KLPE(n_neighbors=3).fit(rows)
    naive = np.sort(-naive_statistic(others_scaled_by_themselves(rows), 3, "mean"))
    # Of the outlier, one part in n is for ties.
    np.testing.assert_allclose(detector.calibration_.scores[0], naive[0] / (1 - 1 / 1_001), rtol=1e-10)
    np.testing.assert_allclose(detector.calibration_.scores[1:], naive[1:], rtol=0.006)
    shared = -naive_statistic(others(standardized(rows, rows)), 3, "mean").min()
    assert detector.calibration_.scores[0] < 1.5 * shared < 0, "the outlier must not stretch its own unit"


def test_a_changed_statistic_waits_for_the_next_fit():
    rows = rows_of(60)
    detector = KLPE(n_neighbors=5).fit(rows)
    before = detector.p_values(rows)
    detector.statistic = "kth"
    np.testing.assert_array_equal(detector.p_values(rows), before)


@pytest.mark.parametrize(
    "detector", [RankAD(far_field=False), RankAD.as_published(n_neighbors=5, C=1.0, bandwidth=1.0)], ids=repr
)
def test_rows_of_one_rank_leave_nothing_to_learn(detector):
    detector.set_params(random_state=0).fit(np.ones((40, 3)))
    np.testing.assert_array_equal(detector.score_samples([[1.0, 1.0, 1.0], [5.0, 1.0, 1.0]]), [0.0, 0.0])
    np.testing.assert_array_equal(detector.p_values([[1.0, 1.0, 1.0]]), [1.0])


def test_fits_in_several_threads_leave_blas_as_it_was(few_folds):
    before = [pool["num_threads"] for pool in threadpool_info()]
    with ThreadPoolExecutor(3) as pool:
        fits = [pool.submit(RankAD(**ONE_TRIAL, random_state=0).fit, rows_of(150)) for _ in range(6)]
        scores = [fit.result().calibration_.scores for fit in fits]
    for other in scores[1:]:
        np.testing.assert_array_equal(other, scores[0])
    assert [pool["num_threads"] for pool in threadpool_info()] == before


@pytest.mark.parametrize("detector", [KLPE(n_neighbors=3), EpsilonLPE(radius=1.0)], ids=repr)
def test_a_split_measures_one_half_against_the_other(detector):
    rows = rows_of(51, 2)
    detector.set_params(calibration="split", scaling=None, random_state=0, alpha=0.5).fit(rows)
    assert detector.calibration_.kind == "split"
    reference = detector.reference_
    assert reference.shape == (26, 2)
    free = np.array([row for row in rows if not (reference == row).all(axis=1).any()])
    assert free.shape == (25, 2)
    between = distances(free, reference)
    naive = -naive_statistic(between, 3, "mean") if isinstance(detector, KLPE) else naive_counts(between, 1.0)
    np.testing.assert_allclose(detector.calibration_.scores, np.sort(naive), rtol=1e-12)


@pytest.mark.parametrize("detector", [KLPE(), EpsilonLPE()], ids=repr)
def test_robust_scaling_is_median_and_quartiles(detector):
    rows = rows_of(101, 2) * [1.0, 50.0]
    low, middle, high = np.percentile(rows, [25, 50, 75], axis=0)
    by_hand = (rows - middle) / ((high - low) / (2 * stats.norm.ppf(0.75)))
    robust = detector.set_params(scaling="robust").fit(rows).score_samples(rows)
    raw = detector.set_params(scaling=None).fit(by_hand).score_samples(by_hand)
    np.testing.assert_allclose(robust, raw, rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------------ what is promised


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("delta", [0.01, 0.1])
def test_the_bound_of_a_split_is_the_beta_law_and_exact(build, alpha, delta):
    detector = build(calibration="split", random_state=0).fit(rows_of(81))
    bound = detector.false_alarm_bound(alpha, delta)
    n = 40
    r = math.floor(alpha * (n + 1))
    assert bound.bound == pytest.approx(stats.beta(r, n + 1 - r).ppf(1 - delta), rel=1e-9)
    assert (bound.alpha, bound.delta) == (alpha, delta)
    assert bound.exact
    assert "Beta law of order statistics" in bound.theorem
    assert "independent of training" in bound.theorem


def test_the_bound_of_reused_rows_says_that_no_theorem_covers_it(build):
    detector = build().fit(rows_of(60))
    assert detector.calibration_.kind in ("cross-fit", "leave-one-out")
    bound = detector.false_alarm_bound(0.1)
    assert not bound.exact
    assert "calibration='split'" in bound.theorem, "what to do for a theorem"
    if isinstance(detector, EpsilonLPE):
        # Counts tie.
        assert "not known" in bound.theorem
        assert bound.bound == 1
    else:
        assert "not a theorem" in bound.theorem
        assert bound.bound == pytest.approx(stats.beta(6 / 3, 55 / 3).ppf(0.95), rel=1e-9)


@pytest.mark.parametrize("far_field", [True, False])
def test_the_bound_of_in_sample_ranks_is_the_covering_one(quick_rankad, far_field):
    detector = quick_rankad(calibration="in-sample", far_field=far_field).fit(rows_of(200, 2))
    bound = detector.false_alarm_bound(0.1)
    assert "Theorem 7" in bound.theorem
    assert "covering" in bound.theorem
    assert "k = log2 N bounded by Zhang" in bound.theorem
    assert "RKHS ball of radius" in bound.theorem
    assert 0.1 <= bound.bound <= 1.0


@pytest.mark.parametrize(
    ("params", "exact"),
    [
        ({"scaling": None, "bandwidth": 1.0}, True),
        ({"scaling": None, "bandwidth": [0.5, 1.0]}, True),
        ({"scaling": "standard", "bandwidth": 1.0}, False),
        ({"scaling": "auto", "bandwidth": 1.0}, False),
        ({"scaling": None, "bandwidth": "D_K"}, False),
        ({"scaling": None, "bandwidth": [1.0, "D_K"]}, False),
        # Beyond the landmarks' reach the score is not g, and the theorem is about g.
        ({"scaling": None, "bandwidth": 1.0, "far_field": True}, False),
    ],
    ids=repr,
)
def test_the_covering_bound_is_exact_where_no_row_shapes_the_class_of_scorers(quick_rankad, params, exact):
    detector = quick_rankad(calibration="in-sample", **{"far_field": False, **params}).fit(rows_of(100, 2))
    assert detector.false_alarm_bound(0.1).exact == exact


def test_in_sample_ranks_never_use_the_beta_law(published):
    bound = published[1].false_alarm_bound()
    assert "Theorem 7" in bound.theorem
    assert "Beta" not in bound.theorem


def test_the_bound_is_for_the_detectors_own_alpha_by_default(build, nominal):
    detector = build(alpha=0.2).fit(nominal)
    assert detector.false_alarm_bound() == detector.false_alarm_bound(0.2, 0.05)


def test_bounds_grow_with_alpha_and_with_certainty(fit_nominal):
    detector = fit_nominal()
    if isinstance(detector, EpsilonLPE):
        detector.set_params(calibration="split").fit(rows_of(300, 3))
    assert detector.false_alarm_bound(0.1).bound < detector.false_alarm_bound(0.3).bound
    assert detector.false_alarm_bound(0.1, 0.1).bound < detector.false_alarm_bound(0.1, 0.01).bound


@pytest.mark.parametrize(("name", "value"), [("alpha", 0), ("alpha", "x"), ("delta", 1), ("delta", math.nan)])
def test_bounds_are_for_probabilities(fit_nominal, name, value):
    detector = fit_nominal()
    with pytest.raises(ValueError, match=rf"{name} must be .*got {value!r}"):
        detector.false_alarm_bound(**{name: value})


@pytest.mark.parametrize(("n", "d"), [(100, 2_000), (120, 300), (60, 500)])
def test_fit_predict_flags_no_more_of_wide_rows_than_asked_for(n, d):
    rows = np.random.default_rng(0).normal(size=(n, d))
    detector = RankAD(0.1, random_state=0)
    assert np.mean(detector.fit_predict(rows) < 0) <= 0.1
    twice = np.vstack([rows, rows])
    with pytest.warns(UserWarning, match="more than once"):
        alarms = RankAD(0.1, random_state=0).fit_predict(twice) < 0
    np.testing.assert_array_equal(alarms[:n], alarms[n:])
    assert alarms.mean() <= 0.1


def test_fit_predict_of_a_split_judges_training_rows_left_out():
    rows = np.random.default_rng(0).normal(size=(120, 300))
    assert np.mean(RankAD(0.1, calibration="split").fit_predict(rows) < 0) <= 0.1


def test_fit_predict_finds_what_is_far_out():
    rows = np.random.default_rng(1).normal(size=(200, 4))
    rows[[3, 50]] = [[30.0], [-30.0]]
    assert set(np.flatnonzero(RankAD(0.05, random_state=0).fit_predict(rows) < 0)) >= {3, 50}
