"""The detectors as scikit-learn estimators."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankad import KLPE, EpsilonLPE, RankAD


# Some of the checks fit on ten rows, with which no alarm is possible at alpha = 0.05, and we say so.
@pytest.mark.filterwarnings("ignore:alpha=0.05 is below the smallest p-value:UserWarning")
@parametrize_with_checks([RankAD(), KLPE(), EpsilonLPE()])
def test_scikit_learns_own_checks(few_folds, estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "detector",
    [
        RankAD(
            0.2,
            n_neighbors=4,
            n_levels=[0.1, 0.5],
            bandwidth=[0.5, "2 D_K"],
            C=[1.0],
            landmarks=("random", 9),
        ),
        RankAD.as_published(),
        RankAD.as_published(n_neighbors=5, alpha=0.2),
        KLPE(0.2, n_neighbors=4, statistic="centred", calibration="split", scaling=None, n_jobs=2),
        EpsilonLPE(0.2, radius=1.5, calibration="split", scaling="robust", random_state=3),
    ],
    ids=repr,
)
def test_parameters_survive_clone_and_set_params(detector):
    params = detector.get_params()
    assert clone(detector).get_params() == params
    fresh = type(detector)()
    assert fresh.get_params() != params
    assert fresh.set_params(**params).get_params() == params


def test_as_published_overrides_reach_the_detector():
    assert RankAD.as_published(n_neighbors=5).get_params()["n_neighbors"] == 5
    with pytest.raises(TypeError, match="neighbours"):
        RankAD.as_published(neighbours=5)


def test_fit_leaves_the_parameters_alone(build, nominal):
    detector = build(alpha=0.1)
    if isinstance(detector, RankAD):
        detector.set_params(C=[1.0, 0.1], bandwidth=["2 D_K", 0.5], n_levels=[0.1, 0.5])
    # Copies: a list that is sorted in place would be sorted in both.
    before = deepcopy(detector.get_params())
    detector.fit(nominal)
    assert detector.get_params() == before


@pytest.mark.parametrize("alpha", [0.03, 0.2])
def test_a_pickled_detector_gives_the_same_answers(build, nominal, alpha):
    fresh = np.random.default_rng(1).normal(size=(20, 3)) * 2
    detector = build(alpha=alpha).fit(nominal)
    again = pickle.loads(pickle.dumps(detector))
    for method in ("score_samples", "p_values", "decision_function", "predict"):
        np.testing.assert_array_equal(getattr(again, method)(fresh), getattr(detector, method)(fresh))
    assert again.offset_ == detector.offset_
    assert again.false_alarm_bound() == detector.false_alarm_bound()


def test_the_last_step_of_a_pipeline(build, nominal):
    rows = nominal * [1.0, 10.0, 100.0] + 5
    pipeline = make_pipeline(StandardScaler(), build(alpha=0.3, scaling=None)).fit(rows)
    alone = build(scaling=None).fit(StandardScaler().fit_transform(rows))
    new = np.vstack([rows.mean(axis=0), rows.max(axis=0) + 1_000])
    np.testing.assert_array_equal(pipeline.predict(new), [1, -1])
    np.testing.assert_array_equal(
        pipeline.score_samples(rows), alone.score_samples(StandardScaler().fit_transform(rows))
    )


def test_a_grid_search_sets_parameters_and_scores_held_out_rows(build, nominal):
    rows = nominal * [1.0, 10.0, 100.0]
    grid, folds = {"alpha": [0.1, 0.3], "scaling": ["standard", None]}, KFold(2)

    def score(detector, X, y=None):
        return float((detector.predict(X) < 0).mean() - detector.p_values(X).mean())

    search = GridSearchCV(build(), grid, scoring=score, cv=folds).fit(rows)
    by_hand = [
        np.mean([score(build(**params).fit(rows[train]), rows[test]) for train, test in folds.split(rows)])
        for params in ParameterGrid(grid)
    ]
    assert len(set(by_hand)) == 4, "every parameter makes a difference"
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], by_hand)
    assert search.best_estimator_.get_params().items() >= search.best_params_.items()


def test_they_are_outlier_detectors(build):
    assert is_outlier_detector(build())


def test_fit_predict_is_fit_and_predict(nominal):
    """Not of RankAD by cross-fitting, which judges rows by models that have not seen them."""
    for build in (KLPE, EpsilonLPE, RankAD.as_published):
        assert -1 in build(alpha=0.2).fit_predict(nominal)
        np.testing.assert_array_equal(
            build(alpha=0.2).fit_predict(nominal), build(alpha=0.2).fit(nominal).predict(nominal)
        )
