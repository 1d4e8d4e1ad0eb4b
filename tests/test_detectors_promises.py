"""Promises kept on fresh data: how good, how many false alarms, and never a far row missed.

Every tolerance comes from a law of sampling or from the promise itself; none was fitted to the outcome.
"""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from rankad import KLPE, EpsilonLPE, RankAD
from rankad.fitting import sizes

# How often a test of a true promise may fail, over all seeds there are; the seeds are fixed.
RISK = 0.001

# Nothing to select, and nothing but the scaling.
ONE_TRIAL = {"scaling": "standard", "bandwidth": "D_K", "C": 0.2}
SCALINGS = {"scaling": "auto", "bandwidth": "D_K", "C": 0.2}

# -------------------------------------------------------------------- the paper's 2-D mixture

WEIGHTS = (0.2, 0.8)
COMPONENTS = (
    stats.multivariate_normal([5.0, 0.0], np.diag([1.0, 9.0])),
    stats.multivariate_normal([-5.0, 0.0], np.diag([9.0, 1.0])),
)


def draw_mixture(n, rng):
    first = rng.random(n) < WEIGHTS[0]
    one, other = (component.rvs(n, random_state=rng) for component in COMPONENTS)
    return np.where(first[:, None], one, other)


def density(rows):
    return sum(weight * component.pdf(rows) for weight, component in zip(WEIGHTS, COMPONENTS, strict=True))


def test_the_mixture_is_nearly_ranked_as_by_its_own_density(few_folds):
    """Mean loss of AUC against the Bayes detector, 600 training rows: at most 0.006.

    A matter of the scores: calibration has no part in them.
    """
    losses = []
    for seed in range(5):
        rng = np.random.default_rng([600, seed])
        detector = RankAD(random_state=seed).fit(draw_mixture(600, rng))
        rows = np.vstack([draw_mixture(500, rng), rng.uniform(-18, 18, size=(1_000, 2))])
        nominal = np.repeat([True, False], [500, 1_000])
        bayes = roc_auc_score(nominal, density(rows))
        losses.append(bayes - roc_auc_score(nominal, detector.score_samples(rows)))
    assert np.mean(losses) <= 0.006, losses


def test_p_values_of_the_mixture_are_near_the_true_ones():
    """Mean of |p - P(f(X) <= f(x))| over fresh nominal rows, 5,000 training rows: at most 0.065."""
    rng = np.random.default_rng(5_000)
    detector = RankAD(random_state=0).fit(draw_mixture(5_000, rng))
    fresh = draw_mixture(2_000, rng)
    densities = np.sort(density(draw_mixture(1_000_000, rng)))
    truth = np.searchsorted(densities, density(fresh), side="right") / densities.size
    assert np.mean(np.abs(detector.p_values(fresh) - truth)) <= 0.065


# --------------------------------------------------------------------- false alarms, real data


@pytest.fixture(
    scope="module",
    params=["2_annthyroid", "10_cover", "23_mammography", "32_shuttle", "34_smtp", "30_satellite"],
)
def real(request, data_folder):
    """Training rows, fresh nominal rows, and the default detector fitted on the former."""
    with np.load(data_folder / f"{request.param}.npz") as table:
        nominal = table["X"][table["y"] == 0].astype(np.float64)
    nominal = np.random.default_rng(0).permutation(nominal)
    n = 2_000 if len(nominal) >= 4_000 else len(nominal) // 2
    training, fresh = nominal[:n], nominal[n : n + 20_000]
    return training, fresh, RankAD(random_state=0).fit(training)


def band(alpha, n, n_fresh):
    """Return the least and the most alarms among fresh nominal rows that sampling explains.

    The calibration rows' r-th smallest score is the threshold, so the realised rate is Beta(r, n + 1 - r) and
    the number of alarms beta-binomial.
    """
    r = int(np.floor(alpha * (n + 1)))
    law = stats.betabinom(n_fresh, r, n + 1 - r)
    return law.ppf(RISK / 2), law.ppf(1 - RISK / 2)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.01])
def test_real_data_raise_as_many_false_alarms_as_asked_for(real, alpha):
    _, fresh, detector = real
    low, high = band(alpha, detector.calibration_.scores.size, len(fresh))
    alarms = int(np.sum(detector.p_values(fresh) <= alpha))
    rate = f"{alarms / len(fresh):.4f} for {alpha}, allowed {low / len(fresh):.4f} to {high / len(fresh):.4f}"
    assert low <= alarms <= high, rate


@pytest.mark.slow
def test_far_rows_of_real_data_get_the_smallest_p_value(real, request):
    training, _, detector = real
    far = far_rows(training)
    p = detector.p_values(far)
    # A nominal row that, left out, lies more deviations of the others away still (shuttle has one) is first.
    deviations = np.abs(training - training.mean(axis=0)) / np.maximum(training.std(axis=0), 1e-300)
    n_farther = np.count_nonzero(deviations.max(axis=1) > 40)
    assert n_farther == ("shuttle" in request.node.name)
    assert p.max() <= (1 + n_farther) / (len(training) + 1)


@pytest.mark.slow
def test_in_sample_ranks_raise_more_false_alarms_than_asked_for(data_folder):
    """What the default's calibration is for: the same rows, ranked among those that trained, go far over.

    More than three times what is asked for; twice is beyond chance already.
    """
    with np.load(data_folder / "23_mammography.npz") as table:
        nominal = table["X"][table["y"] == 0]
    nominal = np.random.default_rng(0).permutation(nominal)
    training, fresh = nominal[:2_000], nominal[2_000:]
    one_trial = {"scaling": "standard", "bandwidth": "0.5 D_K", "C": 0.005}
    detector = RankAD(0.01, calibration="in-sample", **one_trial, random_state=0).fit(training)
    _, high = band(0.01, 2_000, len(fresh))
    assert high < 0.02 * len(fresh)
    assert np.sum(detector.predict(fresh) == -1) > 0.03 * len(fresh)


# ------------------------------------------------------------------- false alarms, exact laws


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: RankAD(0.1, calibration="split", landmarks=20, **ONE_TRIAL, random_state=seed),
        # Of three scalings the best is selected, each time; that must not cost anything.
        lambda seed: RankAD(0.1, calibration="split", landmarks=20, **SCALINGS, random_state=seed),
        lambda seed: KLPE(calibration="split", alpha=0.1, random_state=seed),
    ],
    ids=["RankAD", "RankAD, scaling selected", "KLPE"],
)
def test_split_p_values_are_uniform(make):
    """One fresh row for each of 200 fits: its p-value is uniform on 1/20, 2/20, ..., 1."""
    p = np.empty(200)
    for fit in range(200):
        rows = np.random.default_rng([77, fit]).standard_t(4, size=(39, 2))
        detector = make(fit).fit(rows)
        assert detector.calibration_.scores.size == 19
        p[fit] = detector.p_values(np.random.default_rng([78, fit]).standard_t(4, size=(1, 2)))[0]
    cells = np.bincount(np.round(p * 20).astype(int), minlength=21)[1:]
    assert cells.sum() == 200
    assert stats.chisquare(cells).pvalue > RISK
    for alpha in (0.05, 0.1, 0.25, 0.5):
        alarms = int(np.sum(p <= alpha))
        assert stats.binomtest(alarms, 200, alpha, alternative="greater").pvalue > RISK, (alpha, alarms)


@pytest.mark.filterwarnings("ignore:alpha=.* is below the smallest p-value")
def test_split_p_values_with_ties_are_valid():
    """Counts tie: the p-value of a fresh row may only be larger than uniform."""
    p = np.empty(400)
    for fit in range(400):
        rows = np.random.default_rng([79, fit]).normal(size=(40, 2))
        detector = EpsilonLPE(calibration="split", alpha=0.2, random_state=fit).fit(rows[:39])
        p[fit] = detector.p_values(rows[39:])[0]
    for alpha in (0.05, 0.1, 0.25, 0.5):
        alarms = int(np.sum(p <= alpha))
        assert stats.binomtest(alarms, 400, alpha, alternative="greater").pvalue > RISK, (alpha, alarms)


def excess(rates, alpha):
    """Return by how many of its standard errors a mean exceeds alpha, and how many chance allows."""
    found = (rates.mean() - alpha) / (rates.std(ddof=1) / np.sqrt(rates.size))
    return found, stats.t.isf(RISK, rates.size - 1)


# Rows and columns. Where rows are fewest for their columns a broken promise shows most.
SMALL = ((20, 60), (60, 30), (60, 2))


@pytest.mark.filterwarnings("ignore:alpha=.* is below the smallest p-value")
@pytest.mark.parametrize(
    ("detector", "n", "d", "reps"),
    [
        *((kind, *size, 40) for kind in (KLPE(), EpsilonLPE()) for size in SMALL),
        # Its fits take longer: many of them only where few would not show it.
        *((RankAD(**ONE_TRIAL), *size, reps) for size, reps in zip(SMALL, (40, 16, 16), strict=True)),
        (RankAD(**SCALINGS), 60, 2, 16),
    ],
    ids=repr,
)
def test_small_samples_of_many_columns_raise_no_more_false_alarms(detector, n, d, reps):
    """A row that helps to scale its own columns looks nearer than a fresh one; here that would show."""
    fresh = 1_000
    alarms = np.empty((reps, 2))
    for fit in range(reps):
        rows = np.random.default_rng([81, n, d, fit]).normal(size=(n + fresh, d))
        p = detector.set_params(random_state=fit).fit(rows[:n]).p_values(rows[n:])
        alarms[fit] = [(p <= alpha).mean() for alpha in (0.2, 0.1)]
    # The rates of the fits are independent: their mean may exceed alpha by chance alone.
    for column, alpha in zip(alarms.T, (0.2, 0.1), strict=True):
        found, allowed = excess(column, alpha)
        assert found < allowed, (alpha, column.mean())


@pytest.mark.parametrize(("law", "scaling"), [("standard_cauchy", None), ("lognormal", "standard")])
def test_heavy_tails_in_many_columns_raise_no_more_false_alarms(law, scaling):
    """An outlier that stretches the unit it is measured in looks nearer than a fresh one; here it would show.

    At 2 %: of 20 such columns, some row is an outlier in nearly every one.
    """
    reps, n, fresh = 12, 200, 400
    rates = np.empty(reps)
    for fit in range(reps):
        rng = np.random.default_rng([82, fit])
        draw = rng.standard_cauchy if law == "standard_cauchy" else partial(rng.lognormal, 0.0, 1.5)
        rows = draw(size=(n + fresh, 20))
        detector = RankAD(0.02, landmarks=40, bandwidth="D_K", C=0.05, scaling=scaling, random_state=fit)
        rates[fit] = (detector.fit(rows[:n]).p_values(rows[n:]) <= 0.02).mean()
    found, allowed = excess(rates, 0.02)
    assert found < allowed, rates.mean()


@pytest.mark.parametrize(("calibration", "n_fits"), [("split", 400), ("leave-one-out", 200)])
def test_the_bound_holds_as_often_as_it_says(calibration, n_fits):
    """Realised false-alarm rates of the fits, each measured on a grid of quantiles of the law itself."""
    grid = stats.norm.ppf((np.arange(4_000) + 0.5) / 4_000).reshape(-1, 1)
    exceeded = 0
    for fit in range(n_fits):
        rows = np.random.default_rng([80, fit]).normal(size=(60, 1))
        detector = KLPE(0.1, calibration=calibration, random_state=fit).fit(rows)
        rate = np.mean(detector.predict(grid) == -1)
        exceeded += rate > detector.false_alarm_bound(delta=0.1).bound + 1 / 4_000
    assert stats.binomtest(exceeded, n_fits, 0.1, alternative="greater").pvalue > RISK, exceeded
    # And it is not idle: were it much too wide, it would hold nearly always.
    assert exceeded > 0


# ------------------------------------------------------------------------------ far rows


def far_rows(rows):
    """Rows a hundred standard deviations beyond all data: in one column, either way, and in all at once.

    Beside the odd column, the rows are typical ones: the medians, and some of the data.
    """
    spread = rows.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    high, low = rows.max(axis=0) + 100 * spread, rows.min(axis=0) - 100 * spread
    bases = np.vstack([np.median(rows, axis=0), rows[:: max(1, len(rows) // 5)]])
    found = [high, low, np.where(np.arange(rows.shape[1]) % 2, high, low)]
    for base in bases:
        for column in range(rows.shape[1]):
            for value in (high[column], low[column]):
                row = base.copy()
                row[column] = value
                found.append(row)
    return np.array(found)


def spike(rng):
    rows = rng.normal(size=(150, 3))
    rows[:, 1] = 0.0
    rows[17, 1] = 1_000.0
    return rows


SYNTHETIC = {
    "gaussian": lambda rng: rng.normal(size=(150, 3)),
    "heavy tails": lambda rng: rng.standard_t(2, size=(150, 2)),
    "heavier tails": lambda rng: rng.standard_cauchy(size=(150, 2)),
    "clusters": lambda rng: rng.normal(size=(150, 2)) * 0.1 + rng.choice([-20.0, 0.0, 50.0], size=(150, 1)),
    "spike": spike,
    "one column": lambda rng: rng.normal(size=(150, 1)),
    "ten columns": lambda rng: rng.normal(size=(150, 10)),
    "few values": lambda rng: rng.integers(0, 3, size=(150, 2)).astype(float),
    "few rows": lambda rng: rng.normal(size=(25, 2)),
    "many units": lambda rng: rng.normal(size=(150, 3)) * [1.0, 1e-9, 1e6],
    "small noise": lambda rng: np.hstack([rng.normal(size=(150, 2)), rng.uniform(size=(150, 6)) / 1e6]),
}


FAR_DETECTORS = {
    "default": RankAD(random_state=0),
    "narrow": RankAD(random_state=0, landmarks=20, scaling="standard", bandwidth="0.25 D_K", C=0.1),
    "wide and robust": RankAD(random_state=0, landmarks=20, scaling="robust", bandwidth="4 D_K", C=0.1),
    "raw": RankAD(random_state=0, landmarks=20, scaling=None, bandwidth="D_K", C=0.1),
    "split": RankAD(random_state=0, calibration="split", alpha=0.2),
    "KLPE": KLPE(),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    # In a split the spike may be a calibration row, and then lies as far from the training half as rows can.
    # Unscaled, it lies a thousand deviations of the other columns away from all rows when it is held out.
    [
        (kind, name)
        for kind in FAR_DETECTORS
        for name in SYNTHETIC
        if (kind, name) not in (("split", "spike"), ("raw", "spike"))
    ],
)
def test_a_far_row_gets_the_smallest_p_value(monkeypatch, kind, name):
    if kind != "default":
        # Forty folds are the default's; in larger ones, held-out rows lie farther from the others yet.
        monkeypatch.setattr(sizes, "CALIBRATION_FOLDS", 10)
    rows = SYNTHETIC[name](np.random.default_rng(9))
    with warnings.catch_warnings():
        # Of 150 rows with 9 different values half are kept to calibrate with.
        warnings.filterwarnings("ignore", "Calibrated by a split.*150 rows lie in only")
        detector = FAR_DETECTORS[kind].fit(rows)
    far = far_rows(rows)
    # A spike among the nominal rows, left out, is farther than rows that its own size is the unit for.
    rank = 2 if name == "spike" else 1
    smallest = rank / (detector.calibration_.scores.size + 1)
    if name == "spike":
        assert detector.p_values(far).max() <= smallest
        return
    np.testing.assert_array_equal(detector.p_values(far), np.full(len(far), smallest))


@pytest.mark.parametrize("scaling", [None, "auto"])
def test_a_row_far_in_a_column_of_small_units_gets_the_smallest_p_value(scaling):
    """Beside a circle, columns of noise a millionth as wide: raw features are right, and see no such row."""
    rng = np.random.default_rng(10)
    angle, radius = rng.uniform(0, 2 * np.pi, 200), rng.normal(1, 0.1, 200)
    rows = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), rng.uniform(size=(200, 6)) / 1e6])
    given = {"scaling": scaling, "bandwidth": "D_K", "C": 0.1, "landmarks": 60, "random_state": 0}
    detector = RankAD(**given).fit(rows)
    np.testing.assert_array_equal(detector.scaling_.scale, np.ones(8))
    far = np.repeat([[1.0, 0.0, *np.full(6, 5e-7)]], 12, axis=0)
    for column in range(6):
        far[[column, column + 6], column + 2] += np.array([100, -100]) * rows[:, column + 2].std()
    np.testing.assert_array_equal(detector.p_values(far), np.full(12, 1 / 201))
    # The kernels alone take them for the dense place that they are in by all other columns.
    alone = RankAD(**given, far_field=False, near_field=False, n_components=0)
    assert alone.fit(rows).p_values(far).min() > 0.2


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_far_row_gets_the_smallest_p_value_that_epsilon_lpe_can_give(name):
    """No neighbour at all: only nominal rows that have none either keep it company."""
    rows = SYNTHETIC[name](np.random.default_rng(9))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Calibrated by a split.*150 rows lie in only")
        detector = EpsilonLPE().fit(rows)
    lonely, n = np.sum(detector.calibration_.scores == 0), detector.calibration_.scores.size
    far = far_rows(rows)
    np.testing.assert_array_equal(detector.p_values(far), np.full(len(far), (1 + lonely) / (n + 1)))


def test_many_copies_of_a_few_rows_are_split_and_have_alarms():
    """Of 1,000 rows of six bits, left-out scores differ more than the 64 different rows do."""
    rates = []
    for seed in range(3):
        rng = np.random.default_rng([64, seed])
        bits, fresh = (rng.integers(0, 2, (n, 6)).astype(float) for n in (1_000, 20_000))
        with pytest.warns(UserWarning, match="only 64 of 1000 rows are different"):
            detector = RankAD(0.1).fit(bits)
        assert detector.calibration_.kind == "split"
        rates.append(np.mean(detector.predict(fresh) == -1))
    # Each of the 64 rows is an alarm or not: the rate moves in steps of 1/64.
    assert 0.07 <= np.mean(rates) <= 0.11


@pytest.mark.parametrize("n_words", [10, 20])
def test_indicators_of_words_raise_as_many_false_alarms_as_asked_for(n_words):
    """Mixtures of nearly the same rows differ in how likely all rows are: that must not move the threshold.

    No fit may be off by a factor of two (before the level was taken out, 10 % gave from 2.9 to 47.8 %), and
    the mean not by more than 0.7, the bar of the battery of promises.
    """

    def draw(n, rng):
        x, word = rng.normal(size=n), rng.integers(n_words, size=n)
        amount = np.exp(rng.normal(3, 1, size=n))
        return np.column_stack([x, 0.8 * x + 0.6 * rng.normal(size=n), amount, np.eye(n_words)[word]])

    rates = []
    for seed in range(4):
        rng = np.random.default_rng([20, seed])
        detector = RankAD(near_field=False, random_state=seed).fit(draw(1_000, rng))
        rates.append(np.mean(detector.p_values(draw(10_000, rng)) <= 0.1))
    assert min(rates) >= 0.05, rates
    assert max(rates) <= 0.2, rates
    assert 0.07 <= np.mean(rates) <= 0.1 / 0.7, rates
