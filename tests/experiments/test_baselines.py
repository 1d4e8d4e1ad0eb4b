"""The methods of table 3: signs, seeds, and each number against a slow twin or scikit-learn itself."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

from rankad import KLPE, RankAD
from rankad.experiments.baselines import BPKNNG, METHODS, HalfSpaceTrees, MassAD, OneClass

BASELINES = [BPKNNG(random_state=0), MassAD(random_state=0), OneClass()]
SEEDED = [BPKNNG, MassAD]


def _named(estimator):
    return type(estimator).__name__


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).normal(size=(400, 3))


def naive_statistic(reference, rows, k):
    """The mean distance to the k nearest reference rows, all distances sorted."""
    return np.sort(cdist(rows, reference), axis=1)[:, :k].mean(axis=1)


def naive_augmented_mass(row, sample, columns, cuts, size_limit, node=0, level=0):
    """One tree's m * 2**l by recursion: at every node, part the rows still here and follow the row."""
    if node >= len(columns) or len(sample) <= size_limit:
        return len(sample) * 2.0**level
    above = sample[:, columns[node]] >= cuts[node]
    second = row[columns[node]] >= cuts[node]
    here = sample[above] if second else sample[~above]
    return naive_augmented_mass(row, here, columns, cuts, size_limit, 2 * node + 1 + second, level + 1)


# ------------------------------------------------------------------ all of them


@pytest.mark.parametrize("baseline", BASELINES, ids=_named)
def test_the_middle_scores_higher_than_far(baseline, rows):
    middle, edge, far = clone(baseline).fit(rows).score_samples([[0.0] * 3, [2.2] * 3, [9.0] * 3])
    assert middle > edge > far or (middle > edge == far == 0)  # a mass has nothing below zero


@pytest.mark.parametrize("baseline", BASELINES, ids=_named)
def test_an_easy_set_is_told_apart(baseline):
    rng = np.random.default_rng(5)
    train, nominal = rng.normal(size=(1_000, 4)), rng.normal(size=(1_000, 4))
    anomalies = rng.uniform(-8, 8, size=(500, 4))
    scores = clone(baseline).fit(train).score_samples(np.vstack([nominal, anomalies]))
    assert scores.shape == (1_500,)
    assert roc_auc_score(np.repeat([1, 0], [1_000, 500]), scores) > 0.95


@pytest.mark.parametrize("baseline", BASELINES, ids=_named)
def test_parameters_survive_a_clone_and_fit_leaves_them_alone(baseline, rows):
    before = baseline.get_params()
    copy = clone(baseline)
    assert copy.get_params() == before
    copy.fit(rows)
    assert copy.get_params() == before
    assert copy.n_features_in_ == 3


@pytest.mark.parametrize("baseline", BASELINES, ids=_named)
def test_a_row_scores_the_same_alone_and_in_company(baseline, rows):
    fitted = clone(baseline).fit(rows)
    together = fitted.score_samples(rows[:40])
    alone = [fitted.score_samples(row[None])[0] for row in rows[:40]]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


@pytest.mark.parametrize("method", SEEDED)
def test_the_seed_decides(method, rows):
    one, again, other = (method(random_state=s).fit(rows).score_samples(rows[:50]) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@pytest.mark.parametrize("baseline", BASELINES, ids=_named)
def test_wrong_use_is_an_error(baseline, rows):
    with pytest.raises(NotFittedError):
        clone(baseline).score_samples(rows)
    with pytest.raises(ValueError, match="NaN in column 1"):
        clone(baseline).fit(np.where(np.arange(3) == 1, np.nan, rows))
    with pytest.raises(ValueError, match="2 features"):
        clone(baseline).fit(rows).score_samples(rows[:, :2])


# ---------------------------------------------------------------------- BP-kNNG


@pytest.mark.parametrize("n", [60, 61])
def test_bpknng_agrees_with_its_naive_twin(n, rows):
    nominal, new = rows[:n], 2.0 * rows[300:]
    detector = BPKNNG(n_neighbors=7, random_state=4).fit(nominal)

    def among(row):
        return (detector.reference_ == row).all(axis=1).any()

    others = np.array([row for row in nominal if not among(row)])
    assert (len(others), len(detector.reference_)) == (n // 2, n - n // 2)

    of_others = naive_statistic(detector.reference_, others, 7)
    of_new = naive_statistic(detector.reference_, new, 7)
    np.testing.assert_allclose(detector.statistics_, np.sort(of_others), rtol=1e-12)
    np.testing.assert_allclose(detector.score_samples(new), -of_new, rtol=1e-12)
    shares = (of_others[None, :] >= of_new[:, None]).mean(axis=1)
    np.testing.assert_allclose(detector.p_values(new), shares, atol=1e-12)
    assert 0 < shares.mean() < 1


def test_bpknng_counts_a_tie_as_no_smaller():
    detector = BPKNNG(n_neighbors=1, random_state=0).fit(np.zeros((10, 1)))
    np.testing.assert_array_equal(detector.p_values([[0.0], [1.0]]), [1.0, 0.0])


def test_bpknng_p_values_are_uniform_on_fresh_nominal_rows():
    rng = np.random.default_rng(11)
    n, alpha = 2_000, 0.1
    p = BPKNNG(random_state=0).fit(rng.normal(size=(n, 2))).p_values(rng.normal(size=(4_000, 2)))
    # Binomial twice over: the new rows, and the N = n / 2 that they are compared with.
    error = np.sqrt(alpha * (1 - alpha) * (1 / 4_000 + 2 / n))
    assert abs((p <= alpha).mean() - alpha) < 4 * error


def test_bpknng_says_how_many_neighbours_there_are(rows):
    with pytest.raises(ValueError, match=r"between 1 and 15, the half .* got 20\. Lower n_neighbors"):
        BPKNNG().fit(rows[:30])


# ------------------------------------------------- aK-LPE, iForest, one-class SVM


def test_aklpe_is_the_mean_distance_on_raw_features(rows):
    raw = rows * [1.0, 100.0, 0.01]
    scores = METHODS["aK-LPE"](0).fit(raw[:300]).score_samples(raw[300:])
    np.testing.assert_allclose(scores, -naive_statistic(raw[:300], raw[300:], 20), rtol=1e-12)
    twin = KLPE(n_neighbors=20, scaling=None).fit(raw[:300])
    np.testing.assert_array_equal(scores, twin.score_samples(raw[300:]))


@pytest.mark.parametrize(("n", "drawn"), [(400, 256), (100, 100)])
def test_iforest_is_scikit_learns(n, drawn, rows):
    ours = METHODS["iForest"](8).fit(rows[:n])
    theirs = IsolationForest(n_estimators=100, max_samples=drawn, random_state=8).fit(rows[:n])
    np.testing.assert_array_equal(ours.score_samples(rows), theirs.score_samples(rows))


def test_one_class_is_scikit_learns_with_the_median_width(rows):
    gamma = 1.0 / np.median(pdist(rows) ** 2)
    ours = OneClass().fit(rows)
    assert ours.gamma_ == pytest.approx(gamma, rel=1e-12)
    theirs = OneClassSVM(kernel="rbf", gamma=gamma, nu=0.5).fit(rows)
    np.testing.assert_allclose(ours.score_samples(rows), theirs.score_samples(rows), rtol=1e-6)


def test_one_class_width_with_duplicates_and_with_many_rows():
    mostly_zero = np.repeat([0.0, 2.0], [9, 1])[:, None]
    assert OneClass().fit(mostly_zero).gamma_ == pytest.approx(1 / 4)
    assert OneClass().fit(np.zeros((10, 1))).gamma_ == 1.0
    many = np.random.default_rng(2).normal(size=(2_500, 1))
    one, again, other = (OneClass(nu=0.01, random_state=s).fit(many).gamma_ for s in (0, 0, 1))
    assert one == again != other
    # |x - x'|^2 / 2 is chi-squared with one degree of freedom, of median 0.455.
    assert one == pytest.approx(1 / (2 * 0.4549), rel=0.1)


# ----------------------------------------------------------------------- massAD


def hand_made_tree():
    """Column 0 at 0; then, below, column 1 at 0, and, above, column 0 at 2. Masses of five rows."""
    return HalfSpaceTrees(
        columns=np.array([[0, 1, 0]]),
        cuts=np.array([[0.0, 0.0, 2.0]]),
        masses=np.array([[5.0, 4.0, 1.0, 3.0, 1.0, 1.0, 0.0]]),
    )


@pytest.mark.parametrize(
    ("size_limit", "expected"),
    # m * 2**l: 3 * 4 and 1 * 4 under the first child, which is split; the second holds one row and is split
    # only where the limit is 0, into 1 * 4 and 0 * 4.
    [(0, [12.0, 4.0, 4.0, 0.0]), (1, [12.0, 4.0, 2.0, 2.0]), (4, [8.0, 8.0, 2.0, 2.0]), (5, [5.0] * 4)],
)
def test_massad_on_a_tree_made_by_hand(size_limit, expected):
    detector = MassAD(size_limit=size_limit)
    detector.trees_ = hand_made_tree()
    detector.n_features_in_ = 2
    # The last row is on a cut, and a cut belongs to the upper half.
    scores = detector.score_samples([[-1.0, -1.0], [-1.0, 1.0], [1.0, 0.0], [2.0, 0.0]])
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("size_limit", [0, 1, 10])
def test_massad_agrees_with_a_naive_recursion(size_limit, rows):
    nominal, new = rows[:50], 1.5 * rows[350:]
    # All 50 rows in each tree, so that the twin knows the sub-sample.
    detector = MassAD(n_trees=6, n_rows=50, max_depth=5, size_limit=size_limit, random_state=1).fit(nominal)
    columns, cuts, masses = detector.trees_
    twin = [
        np.mean([naive_augmented_mass(x, nominal, columns[t], cuts[t], size_limit) for t in range(6)])
        for x in new
    ]
    np.testing.assert_allclose(detector.score_samples(new), twin, rtol=1e-12)
    assert (masses[:, 0] == 50).all()


def assert_halved(lower, upper, columns, cuts, starts, node=0):
    """Walk a tree: a column's first cut is the same everywhere; every cut is the middle of what is left."""
    if node >= len(columns):
        return
    column = columns[node]
    starts.setdefault(column, cuts[node])
    start = starts[column]
    reach = 2 * max(start - lower[column], upper[column] - start)
    space = (start - reach, start + reach)
    assert_within(space, node, columns, cuts)
    assert_halved(lower, upper, columns, cuts, starts, 2 * node + 1)
    assert_halved(lower, upper, columns, cuts, starts, 2 * node + 2)


def assert_within(space, node, columns, cuts):
    """Replay the cuts of this node's column on the way from the root, and expect the middle of the rest."""
    below, above = space
    for ancestor, child in reversed(list(ancestry(node))):
        if columns[ancestor] == columns[node]:
            if child % 2:  # the first child, which is the lower half
                above = cuts[ancestor]
            else:
                below = cuts[ancestor]
    assert cuts[node] == pytest.approx((below + above) / 2, abs=1e-12)


def ancestry(node):
    while node:
        yield (node - 1) // 2, node
        node = (node - 1) // 2


def test_massad_halves_its_work_space(rows):
    # All rows in each tree, so that the ranges are known.
    columns, cuts, _ = MassAD(n_trees=8, n_rows=400, random_state=0).fit(rows).trees_
    lower, upper = rows.min(axis=0), rows.max(axis=0)
    all_starts = []
    for of_columns, of_cuts in zip(columns, cuts, strict=True):
        starts = {}
        assert_halved(lower, upper, of_columns, of_cuts, starts)
        assert all(lower[column] <= start <= upper[column] for column, start in starts.items())
        all_starts.append(starts[0])
    assert len(set(all_starts)) == 8


def test_massad_has_its_published_size_and_mass_adds_up(rows):
    columns, cuts, masses = MassAD(random_state=0).fit(rows).trees_
    assert columns.shape == cuts.shape == (100, 255)
    assert masses.shape == (100, 511)
    np.testing.assert_array_equal(masses[:, 0], 256)
    np.testing.assert_array_equal(masses[:, :255], masses[:, 1::2] + masses[:, 2::2])


def test_massad_leaves_constant_columns_alone(rows):
    with_constant = np.column_stack([np.full(400, 7.0), rows])
    detector = MassAD(n_trees=10, random_state=0).fit(with_constant)
    assert 0 not in detector.trees_.columns
    assert {1, 2, 3} == set(detector.trees_.columns.ravel())
    below, same = MassAD(n_trees=2, random_state=0).fit(np.ones((10, 1))).score_samples([[0.0], [1.0]])
    assert below == 0 < same


@pytest.mark.parametrize("name", ["n_trees", "n_rows", "max_depth"])
def test_massad_names_the_parameter_at_fault(name, rows):
    with pytest.raises(ValueError, match=f"{name} must be an integer >= 1, got 0"):
        MassAD(**{name: 0}).fit(rows)


# ---------------------------------------------------------------------- METHODS


def test_methods_are_the_papers_columns_with_rankad_twice():
    assert list(METHODS) == [
        "rankAD (published)",
        "rankAD (default)",
        "one-class SVM",
        "BP-K-NNG",
        "aK-LPE",
        "iForest",
        "massAD",
    ]
    for name, factory in METHODS.items():
        parameters = factory(17).get_params()
        assert name == "aK-LPE" or parameters["random_state"] == 17
    published, default = (METHODS[f"rankAD ({kind})"](3) for kind in ("published", "default"))
    assert published.get_params() == RankAD.as_published(random_state=3).get_params()
    assert default.get_params() == RankAD(random_state=3).get_params()
    assert METHODS["BP-K-NNG"](0).n_neighbors == METHODS["aK-LPE"](0).n_neighbors == 20


@pytest.mark.parametrize("name", [name for name in METHODS if name != "rankAD (published)"])
def test_every_method_runs(name, rows):
    middle, far = METHODS[name](0).fit(rows[:200]).score_samples([[0.0] * 3, [9.0] * 3])
    assert middle > far
