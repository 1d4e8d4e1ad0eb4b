"""Rows that come in batches, from disk, one at a time, from several threads or processes; and many rows."""

import multiprocessing
import pickle
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import oracles
from rankad import KLPE, RankAD
from rankad._loops.nearest import near_distances
from rankad.fitting import ranker, sizes
from rankad.fitting.ranker import PreparedRows, Recipe
from rankad.scorers import nearfield
from rankad.scorers.nearfield import NearField


def rows_of(n, d=3, seed=11):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.fixture(scope="module")
def fitted():
    return RankAD(C=0.1, bandwidth="D_K", landmarks=20, scaling="standard", random_state=0).fit(rows_of(120))


# ------------------------------------------------------------------------------------------- batches

ANSWERS = ["score_samples", "p_values", "decision_function", "predict"]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("klpe", [False, True])
def test_batches_get_the_answers_of_all_rows_at_once(fitted, answer, klpe):
    detector = KLPE().fit(rows_of(120)) if klpe else fitted
    rows = rows_of(70, seed=1)
    batches = iter([rows[:1], rows[1:40], rows[40:]])
    found = getattr(detector, answer)(batches)
    assert iter(found) is found, "an iterator itself, so that nothing is held"
    parts = list(found)
    assert [len(part) for part in parts] == [1, 39, 30]
    np.testing.assert_array_equal(np.concatenate(parts), getattr(detector, answer)(rows))


def test_a_batch_is_drawn_only_when_its_answer_is(fitted):
    drawn = []

    def batches():
        for number in range(3):
            drawn.append(number)
            yield rows_of(5, seed=number)

    answers = fitted.p_values(batches())
    assert drawn == []
    next(answers)
    assert drawn == [0]
    next(answers)
    assert drawn == [0, 1]


def test_batches_may_be_data_frames_or_lists(fitted):
    rows = rows_of(6, seed=3)
    found = fitted.score_samples(iter([pd.DataFrame(rows[:3]), rows[3:].tolist()]))
    np.testing.assert_array_equal(np.concatenate(list(found)), fitted.score_samples(rows))


def test_the_batch_at_fault_is_named(fitted):
    bad = rows_of(4)
    bad[2, 1] = np.nan
    answers = fitted.p_values(iter([rows_of(3), bad]))
    next(answers)
    with pytest.raises(ValueError, match=r"NaN in column 1 .* the first is row 2") as caught:
        next(answers)
    assert caught.value.__notes__ == ["In batch 1 of X, counted from 0."]


def test_an_unfitted_detector_says_so_before_any_batch():
    with pytest.raises(ValueError, match="not fitted"):
        RankAD().p_values(iter([rows_of(3)]))


def test_scoring_batches_holds_no_more_than_a_batch(fitted):
    size = 20_000 * 3 * 8

    def peak(n_batches):
        tracemalloc.start()
        for _ in fitted.p_values(rows_of(20_000, seed=number) for number in range(n_batches)):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    few, many = peak(3), peak(30)
    assert many < few + size, "27 batches more, and not one of them is held"


# --------------------------------------------------------------------------- arrays as they are, one row


@pytest.mark.parametrize("kind", ["float64", "float32", "int16", "uint8", "bool", "order", "strided"])
def test_plain_arrays_score_like_checked_ones(fitted, kind):
    rows = np.round(rows_of(50, seed=2) * 2)
    plain = {
        "order": np.asfortranarray(rows),
        "strided": np.repeat(rows, 2, axis=0)[::2],
    }.get(kind)
    if plain is None:
        plain = (np.abs(rows) if kind in ("uint8", "bool") else rows).astype(kind)
    expected = fitted.score_samples(np.asarray(plain, dtype=np.float64).tolist())
    np.testing.assert_array_equal(fitted.score_samples(plain), expected)
    alone = np.concatenate([fitted.score_samples(plain[row : row + 1]) for row in range(50)])
    np.testing.assert_array_equal(alone, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 4_095, 4_096, 9_999])
def test_a_bad_cell_anywhere_is_named(fitted, bad, row):
    rows = np.zeros((10_000, 3))
    rows[row, 2] = bad
    with pytest.raises(ValueError, match=rf"in column 2 \(.* in 1 of 10000 rows, the first is row {row}\)"):
        fitted.score_samples(rows)


def test_the_largest_numbers_are_no_error_and_score_lowest(fitted):
    rows = np.array([[1.7e308, 0.0, 0.0], [0.0, -1.7e308, 1.7e308], [0.0, 0.0, 0.0]])
    scores = fitted.score_samples(rows)
    assert np.isfinite(scores).all()
    assert scores[2] > -10 > scores[:2].max()
    assert (fitted.p_values(rows)[:2] == 1 / 121).all()


def test_names_learned_in_fit_are_still_asked_for():
    frame = pd.DataFrame(rows_of(60), columns=list("abc"))
    detector = RankAD(C=0.1, bandwidth="D_K", landmarks=20, scaling=None, random_state=0).fit(frame)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        detector.score_samples(frame.to_numpy())


def test_the_wrong_number_of_columns_is_named(fitted):
    with pytest.raises(ValueError, match="X has 2 features, but RankAD is expecting 3"):
        fitted.score_samples(np.zeros((5, 2)))


def test_memory_maps_are_read_block_by_block(fitted, tmp_path):
    rows = rows_of(200_000, seed=4).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    tracemalloc.start()
    scores = fitted.score_samples(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(scores, fitted.score_samples(rows))
    # The scores themselves, once in blocks and once together; the rows in double precision would be 4.8 MB.
    assert peak < 2 * scores.nbytes + 1_000_000


# ------------------------------------------------------------------------------- threads and processes


def test_several_threads_score_at_once(fitted):
    rows = rows_of(3_000, seed=5)
    expected = fitted.score_samples(rows)
    with ThreadPoolExecutor(8) as pool:
        for scores in pool.map(lambda _: fitted.score_samples(rows), range(40)):
            np.testing.assert_array_equal(scores, expected)


def _score_in_child(detector, rows, pipe):
    pipe.send(detector.p_values(rows))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_forked_process_scores_like_its_parent(fitted, n_jobs):
    detector = pickle.loads(pickle.dumps(fitted))
    detector.n_jobs = n_jobs
    rows = rows_of(10_000, seed=6)
    expected = detector.p_values(rows)
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_score_in_child, args=(detector, rows, send))
    child.start()
    assert receive.poll(60), "the child must answer"
    np.testing.assert_array_equal(receive.recv(), expected)
    child.join(60)
    assert child.exitcode == 0


def test_a_second_process_finds_the_code_compiled(fitted, tmp_path):
    """No function is compiled again: numba counts what it loaded from its cache and what it did not."""
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(fitted))
    fitted.score_samples(rows_of(5))
    script = (
        "import pickle, sys, numpy as np\n"
        "from rankad._loops import kernel\n"
        "detector = pickle.load(open(sys.argv[1], 'rb'))\n"
        "detector.score_samples(np.zeros((5, 3)))\n"
        "stats = kernel.kernel_scores.stats\n"
        "print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model.pickle")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "0"]


# ---------------------------------------------------------------------------------------- many rows


@pytest.fixture
def small_limits(monkeypatch):
    """What is large begins at a hundred rows."""
    monkeypatch.setattr(sizes, "MAX_TRAINING_ROWS", 100)


def _quick(**params):
    return RankAD(
        **{"C": 0.1, "bandwidth": "D_K", "landmarks": 20, "scaling": None, "random_state": 0} | params
    )


@pytest.mark.parametrize(
    ("n", "n_reference"), [(100, 0), (150, 0), (299, 0), (300, 100), (500, 200), (1_001, 450)]
)
@pytest.mark.usefixtures("small_limits")
def test_every_row_has_one_part(n, n_reference):
    detector = _quick().fit(rows_of(n))
    training, reference = detector.training_rows_, detector.reference_rows_
    assert len(training) == 100
    assert len(reference) == n_reference
    assert len(np.union1d(training, reference)) == 100 + n_reference, "no row is both"
    assert (np.diff(training) > 0).all()
    cross_fit = n < 200
    assert detector.calibration_.scores.size == n - n_reference - (0 if cross_fit else 100)
    assert detector.calibration_.kind == ("cross-fit" if cross_fit else "split")
    assert detector.false_alarm_bound(0.1).exact != cross_fit


@pytest.mark.usefixtures("small_limits")
def test_free_rows_calibrate_and_no_others():
    rows = rows_of(500)
    detector = _quick().fit(rows)
    used = np.union1d(detector.training_rows_, detector.reference_rows_)
    free = np.delete(rows, used, axis=0)
    np.testing.assert_array_equal(detector.calibration_.scores, np.sort(detector.score_samples(free)))


@pytest.mark.usefixtures("small_limits")
def test_ranks_come_from_the_reference():
    """A naive twin: the mean distance to the K nearest reference rows, ranked."""
    rows = rows_of(500)
    detector = _quick(n_neighbors=7).fit(rows)
    training, reference = rows[detector.training_rows_], rows[detector.reference_rows_]
    gaps = np.sqrt(((training[:, None, :] - reference[None]) ** 2).sum(axis=2))
    statistic = np.sort(gaps, axis=1)[:, :7].mean(axis=1)
    expected = [np.mean(statistic >= value - 1e-12) for value in statistic]
    np.testing.assert_allclose(detector.ranks_, expected, rtol=1e-12)


@pytest.mark.usefixtures("small_limits")
def test_without_a_near_field_the_reference_is_no_larger_than_its_work(monkeypatch):
    monkeypatch.setattr(sizes, "RANKING_WORK", 100 * 3 * 50)
    detector = _quick(near_field=False).fit(rows_of(500))
    assert len(detector.reference_rows_) == 50
    assert detector.calibration_.scores.size == 350
    assert detector.scorer_.near is None


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(
    ("limits", "n_reference"),
    [({}, 450), ({"NEAR_ROWS": 300}, 300), ({"NEAR_NUMBERS": 3 * 250 + 2}, 250), ({"NEAR_ROWS": 60}, 60)],
)
def test_the_near_field_has_limits_of_its_own(monkeypatch, limits, n_reference):
    """Ranks come from 70 of its rows at most, as far from one another as from the next."""
    monkeypatch.setattr(sizes, "RANKING_WORK", 100 * 3 * 70)
    for name, value in limits.items():
        monkeypatch.setattr(sizes, name, value)
    rows = rows_of(1_001)
    detector = _quick(n_neighbors=7).fit(rows)
    assert len(detector.reference_rows_) == n_reference
    near = rows[detector.reference_rows_]
    np.testing.assert_array_equal(np.unique(detector.scorer_.near.rows, axis=0), np.unique(near, axis=0))
    ranking = near[[at * n_reference // 70 for at in range(70)]] if n_reference > 70 else near
    gaps = np.sqrt(((rows[detector.training_rows_][:, None, :] - ranking[None]) ** 2).sum(axis=2))
    statistic = np.sort(gaps, axis=1)[:, :7].mean(axis=1)
    expected = [np.mean(statistic >= value - 1e-12) for value in statistic]
    np.testing.assert_allclose(detector.ranks_, expected, rtol=1e-12)


@pytest.mark.usefixtures("small_limits")
def test_parts_have_the_units_of_what_they_say_of_training_rows():
    """Near field and mixture are made of reference rows, so that training rows are new to them."""
    rows = rows_of(600)
    detector = _quick().fit(rows)
    scorer, training = detector.scorer_, rows[detector.training_rows_]
    said = scorer.parts(training)
    np.testing.assert_allclose(scorer.units.centers, np.median(said, axis=1))
    low, high = np.sort(said, axis=1)[:, [5, 94]].T
    spreads = np.clip(said, low[:, None], high[:, None]).std(axis=1)
    np.testing.assert_allclose(scorer.units.spreads, spreads)
    assert scorer.n_parts == 3
    reference = rows[detector.reference_rows_]
    assert scorer.mixture.score(reference).mean() > scorer.mixture.score(training).mean()


@pytest.mark.usefixtures("small_limits")
def test_near_is_measured_between_deviations_and_ranges():
    rows = rows_of(600) * [1.0, 100.0, 0.1]
    detector = _quick().fit(rows)
    training = rows[detector.training_rows_]
    expected = np.sqrt(training.std(axis=0) * np.ptp(training, axis=0))
    np.testing.assert_allclose(detector.scorer_.near.unit, expected)


def test_a_gap_between_landmarks_is_seen():
    """A hole of a fiftieth of a square's width, where 250 landmarks stand a sixteenth apart."""
    rng = np.random.default_rng(0)
    rows = rng.random((20_500, 2))
    rows = rows[np.hypot(*(rows - 0.5).T) > 0.02]
    hole = 0.5 + 0.003 * rng.standard_normal((50, 2))
    found = {}
    for near_field in (True, False):
        detector = RankAD(near_field=near_field, scaling=None, bandwidth="4 D_K", C=1e-3, random_state=0).fit(
            rows
        )
        found[near_field] = np.median(detector.p_values(hole))
    assert found[True] < 0.02 < 0.2 < found[False]


@pytest.mark.usefixtures("small_limits")
def test_a_near_field_leaves_enough_rows_for_many_neighbors(monkeypatch):
    """Of 140 reference rows 65 rank; every third would be 47."""
    monkeypatch.setattr(sizes, "RANKING_WORK", 100 * 3 * 65)
    assert _quick(n_neighbors=48).fit(rows_of(380)).n_neighbors_ == 48


def test_read_only_rows_compile_nothing_again():
    near = NearField.of(rows_of(600), np.ones(3))
    scorer = replace(_quick().fit(rows_of(60)).scorer_, near=near)
    rows = rows_of(40)
    expected, before = scorer.score(rows), len(near_distances.signatures)
    rows.flags.writeable = False
    np.testing.assert_array_equal(scorer.score(rows), expected)
    assert len(near_distances.signatures) == before


def test_threads_that_score_first_share_one_layout(monkeypatch):
    made, lay_out = [], nearfield._lay_out

    def counting(*arguments):
        made.append(arguments)
        return lay_out(*arguments)

    near = NearField.of(rows_of(600), np.ones(3))
    scorer = pickle.loads(pickle.dumps(replace(_quick().fit(rows_of(60)).scorer_, near=near)))
    monkeypatch.setattr(nearfield, "_lay_out", counting)
    scorer.score(rows_of(50_000), n_jobs=4)
    assert len(made) == 1


def test_the_near_field_of_small_fits_is_of_the_training_rows():
    rows = rows_of(200)
    near = _quick().fit(rows).scorer_.near
    np.testing.assert_array_equal(np.unique(near.rows, axis=0), np.unique(rows, axis=0))
    assert _quick(near_field=False).fit(rows).scorer_.near is None


@pytest.mark.usefixtures("small_limits")
def test_in_sample_calibration_has_no_reference():
    detector = _quick(calibration="in-sample").fit(rows_of(500))
    assert len(detector.reference_rows_) == 0
    assert detector.calibration_.scores.size == 500


@pytest.mark.usefixtures("small_limits")
def test_all_landmarks_are_all_training_rows():
    rows = rows_of(500)
    detector = _quick(landmarks="all").fit(rows)
    np.testing.assert_array_equal(detector.landmarks_, np.unique(rows[detector.training_rows_], axis=0))


@pytest.mark.usefixtures("small_limits")
def test_selection_is_repeatable_and_fills_the_table():
    rows = rows_of(400)
    several = {"bandwidth": "auto", "scaling": "auto", "C": (0.01, 0.1), "landmarks": 20, "random_state": 3}
    tables = [RankAD(**several, n_jobs=n_jobs).fit(rows) for n_jobs in (1, 2)]
    assert len(tables[0].selection_.C) == 3 * 5 * 2
    np.testing.assert_array_equal(tables[0].selection_.losses, tables[1].selection_.losses)
    np.testing.assert_array_equal(tables[0].score_samples(rows), tables[1].score_samples(rows))


@pytest.mark.usefixtures("small_limits")
def test_too_many_neighbors_for_the_rows_that_select_are_named():
    with pytest.raises(ValueError, match=r"n_neighbors=40 is too many .* pass n_neighbors='auto'\.$"):
        RankAD(n_neighbors=40, bandwidth="auto", random_state=0).fit(rows_of(400))


@pytest.mark.usefixtures("small_limits")
def test_a_small_reference_is_none(monkeypatch):
    """Forty rows are fewer than a half of the hundred that train; so few could be fewer than K."""
    monkeypatch.setattr(sizes, "RANKING_WORK", 100 * 3 * 40)
    detector = _quick(n_neighbors=45).fit(rows_of(500))
    assert len(detector.reference_rows_) == 0
    assert detector.calibration_.scores.size == 400


def test_false_alarms_of_a_large_sample_are_as_asked():
    """20,000 rows: exact calibration, so a beta-binomial law; alarms at 5 % within its 99.9 % interval."""
    from scipy.stats import betabinom

    detector = RankAD(random_state=0, scaling="standard", bandwidth="D_K").fit(rows_of(20_000, 4, seed=8))
    fresh = rows_of(20_000, 4, seed=9)
    n = detector.calibration_.scores.size
    r = detector.calibration_.n_below(0.05)
    low, high = betabinom.ppf([0.0005, 0.9995], len(fresh), r, n + 1 - r)
    assert low <= np.count_nonzero(detector.p_values(fresh) <= 0.05) <= high


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_a_row_that_makes_up_most_of_the_sample_is_no_alarm(seed):
    """99 % zeros: out-of-fold scores of the zeros differ, and the final one may be below all of them."""
    rng = np.random.default_rng(seed)

    def sample(n):
        rows = rng.normal(size=(n, 2))
        rows[rng.random(n) < 0.99] = 0.0
        return rows

    detector = RankAD(random_state=seed, scaling="standard", bandwidth="D_K").fit(sample(1_000))
    assert np.mean(detector.predict(sample(2_000)) == -1) < 0.05


# ---------------------------------------------------------------------------- what is found of some rows only


def _prepared(n, **others):
    recipe = Recipe(5, 20, (0.5,), "kmeans", 10, True)
    return PreparedRows(rows_of(n), recipe, np.random.SeedSequence(0), **others)


@pytest.mark.parametrize(("n", "step"), [(39, 1), (41, 2), (60, 3)])
def test_the_unit_of_many_rows_is_that_of_every_so_many_th(n, step, monkeypatch):
    monkeypatch.setattr(ranker, "_UNIT_ROWS", 20)
    rows = rows_of(n)
    distances, _ = oracles.neighbors(rows, 6, rows[::step])
    expected = distances[:, 1:].mean()
    np.testing.assert_allclose(_prepared(n, reference=rows_of(80, seed=12)).unit, expected, rtol=1e-12)
    np.testing.assert_allclose(_prepared(n, density=np.arange(n, dtype=float)).unit, expected, rtol=1e-12)
    # Without a reference all rows have neighbours anyway.
    plain = oracles.neighbors(rows, 6, rows)[0][:, 1:].mean()
    np.testing.assert_allclose(_prepared(n).unit, plain, rtol=1e-12)


def test_the_density_of_some_rows_is_that_among_all(monkeypatch):
    which = np.array([3, 0, 59])
    asked = []
    real = ranker.nearest_neighbors
    monkeypatch.setattr(
        ranker,
        "nearest_neighbors",
        lambda *given, **more: asked.append(len(given[2])) or real(*given, **more),
    )
    prepared = _prepared(60, reference=rows_of(80, seed=12))
    asked.clear()
    some = prepared.density_at(which)
    assert asked == [3]
    np.testing.assert_array_equal(some, prepared.density[which])
    assert asked == [3, 60]
    # All are known now.
    np.testing.assert_array_equal(prepared.density_at(which), some)
    assert asked == [3, 60]
    np.testing.assert_array_equal(_prepared(60, density=np.arange(60.0)).density_at(which), which)
    monkeypatch.undo()
    assert _prepared(60).density_at(which) is None
