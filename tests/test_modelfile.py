"""One file for a fitted detector: the same answers to the last bit, and no harm from any other file."""

import hashlib
import inspect
import json
import os
import pickle
import subprocess
import sys
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pkgutil import resolve_name

import numpy as np
import polars as pl
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import modelfile_cases as cases
import rankad
from rankad import KLPE, EpsilonLPE, ModelFileError, RankAD, TableDetector, load
from rankad.fitting import sizes
from rankad.model import RankModel
from rankad.modelfile import read_card, save, schema
from rankad.stages.selection import SelectionTable

ALPHAS = (0.2, 0.05, 0.02)


def _run(code, *arguments):
    """Return what Python code prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _attributes(detector):
    """Everything there is to a fitted detector."""
    return dict(vars(detector))


def _assert_same(one, other):
    """Equal to the last bit, types and shapes included."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes() if one.dtype != object else list(one) == list(other)
    elif isinstance(one, dict):
        assert set(one) == set(other)
        for name in one:
            _assert_same(one[name], other[name])
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            _assert_same(left, right)
    elif type(one).__module__.startswith("rankad"):
        # What is made when it is first asked for may or may not be there; the digest is, after loading.
        left, right = (
            {
                name: value
                for name, value in vars(each).items()
                if not name.startswith("_") and name != "training_sha256"
            }
            for each in (one, other)
        )
        _assert_same(left, right)
    else:
        assert one == other


# ------------------------------------------------------------------------------------------- the same answers


@pytest.mark.filterwarnings("ignore:Calibrated by a split")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"calibration": "split"},
        {"calibration": "in-sample"},
        {"trim": 0.1},
        {"trim": "auto"},
        {"far_field": False},
        {"bandwidth": "20 D_K"},
        {"bandwidth": 2.0, "scaling": None, "far_field": False, "calibration": "in-sample"},
        {"bandwidth": ["D_K", 3.0], "C": [0.1, 1.0], "scaling": "auto", "selection": "disagreement"},
        {"n_levels": [0.05, 0.5], "landmarks": ("random", 12), "alpha": 0.07, "n_jobs": 2, "n_neighbors": 3},
        {"landmarks": "all", "scaling": "robust", "selection": "shuffled", "C": (0.1, 1.0)},
    ],
    ids=lambda params: ", ".join(f"{name}={value}" for name, value in params.items()) or "quick",
)
def test_a_loaded_detector_answers_to_the_last_bit(quick_rankad, params, tmp_path):
    detector, others = quick_rankad(**params).fit(cases.nominal()), cases.others()
    detector.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.score_samples(others), detector.score_samples(others))
    np.testing.assert_array_equal(loaded.p_values(others), detector.p_values(others))
    for alpha in ALPHAS:
        loaded.alpha = detector.alpha = alpha
        np.testing.assert_array_equal(loaded.predict(others), detector.predict(others))
        assert loaded.offset_ == detector.offset_
        assert loaded.false_alarm_bound() == detector.false_alarm_bound()
    loaded.alpha = detector.alpha = params.get("alpha", 0.05)
    before, after = _attributes(detector), _attributes(loaded)
    # Parameters that are lists come back as tuples.
    before = {name: tuple(value) if isinstance(value, list) else value for name, value in before.items()}
    _assert_same(after, before)


@pytest.mark.filterwarnings("ignore:Calibrated by a split")
def test_both_precisions_are_met(quick_rankad, tmp_path):
    found = set()
    for bandwidth in ("D_K", "60 D_K"):
        detector = quick_rankad(bandwidth=bandwidth, C=10.0, near_field=False).fit(cases.nominal())
        detector.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert loaded.scorer_.kernel.single == detector.scorer_.kernel.single
        np.testing.assert_array_equal(
            loaded.score_samples(cases.others()), detector.score_samples(cases.others())
        )
        found.add(loaded.scorer_.kernel.single)
    assert found == {False, True}


def test_a_fit_of_many_rows_with_some_for_reference(quick_rankad, tmp_path):
    rows = np.random.default_rng(5).normal(size=(16_000, 2))
    detector = quick_rankad().fit(rows)
    assert len(detector.reference_rows_) > 0
    assert detector.scorer_.near is not None
    detector.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    _assert_same(_attributes(loaded), _attributes(detector))
    np.testing.assert_array_equal(loaded.p_values(3 * rows), detector.p_values(3 * rows))
    card = read_card(tmp_path / "model")
    assert (card.n_rows, card.n_training) == (16_000, 5_000)
    assert card.n_near == len(detector.scorer_.near.rows) == len(detector.reference_rows_)
    assert card.n_calibrating == detector.calibration_.scores.size == 11_000 - len(detector.reference_rows_)


def test_every_field_of_a_model_is_stored():
    parts = schema.LAYOUTS["RankAD"]
    stored = {*parts[-1].fields, *(part.path for part in parts[:-1] if "." not in part.path)}
    assert stored == {field.name for field in fields(RankModel)}
    for part in parts:
        inside = {other.path.rpartition(".")[2] for other in parts if other.path.startswith(f"{part.path}.")}
        names = set(inspect.signature(resolve_name(part.make)).parameters)
        assert names == {*part.fields, *inside} or not part.path, part.path


def test_a_near_field_is_not_saved_without_its_rows(quick_rankad, tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "MAX_TRAINING_ROWS", 100)
    rows = np.random.default_rng(5).normal(size=(500, 2))
    detector = quick_rankad().fit(rows)
    with pytest.raises(ValueError, match=r"rows=False .* 200 normal rows\. Fit with near_field=False"):
        detector.save(tmp_path / "model", rows=False)
    assert not list(tmp_path.iterdir())
    detector = quick_rankad(near_field=False).fit(rows)
    detector.save(tmp_path / "model", rows=False)
    np.testing.assert_array_equal(load(tmp_path / "model").p_values(rows), detector.p_values(rows))


def test_constant_columns_and_one_column(quick_rankad, tmp_path):
    rng = np.random.default_rng(6)
    for rows in (np.column_stack([rng.normal(size=50), np.full(50, 7.0)]), rng.normal(size=(50, 1))):
        detector = quick_rankad().fit(rows)
        detector.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        _assert_same(_attributes(loaded), _attributes(detector))
        np.testing.assert_array_equal(loaded.score_samples(rows + 1), detector.score_samples(rows + 1))


def test_feature_names_are_kept(quick_rankad, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(cases.nominal(), columns=["a", 'ü "quoted"\n', "\0\U0001f642"])
    detector = quick_rankad().fit(frame)
    detector.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert read_card(tmp_path / "model").columns == tuple(frame.columns)
    np.testing.assert_array_equal(loaded.p_values(frame), detector.p_values(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.p_values(frame.rename(columns={"a": "b"}))


def test_what_is_loaded_is_a_detector_like_any_other(saved_detector, model_bytes, tmp_path):
    (tmp_path / "one").write_bytes(model_bytes)
    loaded = load(tmp_path / "one")
    assert loaded.get_params() == {**saved_detector.get_params(), "bandwidth": ("D_K", "2 D_K")}
    again = clone(loaded).fit(cases.nominal())
    np.testing.assert_array_equal(
        again.score_samples(cases.others()), saved_detector.score_samples(cases.others())
    )
    unpickled = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(
        unpickled.score_samples(cases.others()), saved_detector.score_samples(cases.others())
    )
    # Saved again, it is the same but for the date.
    loaded.save(tmp_path / "two")
    one, two = (load_file(tmp_path / name) for name in ("one", "two"))
    _assert_same(one, two)


def test_a_new_process_gives_the_same_bits(saved_detector, model_bytes, tmp_path):
    (tmp_path / "model").write_bytes(model_bytes)
    np.save(tmp_path / "rows.npy", cases.others())
    code = """
import sys, numpy, rankad
print(rankad.load(sys.argv[1]).score_samples(numpy.load(sys.argv[2])).tobytes().hex())
"""
    said = _run(code, tmp_path / "model", tmp_path / "rows.npy")
    assert said.strip() == saved_detector.score_samples(cases.others()).tobytes().hex()


def test_rows_can_be_left_out(saved_detector, tmp_path):
    saved_detector.save(tmp_path / "with")
    saved_detector.save(tmp_path / "without", rows=False)
    loaded = load(tmp_path / "without")
    assert not hasattr(loaded, "nominal_rows_")
    np.testing.assert_array_equal(loaded.p_values(cases.others()), saved_detector.p_values(cases.others()))
    kept, bare = read_card(tmp_path / "with"), read_card(tmp_path / "without")
    assert (kept.holds_rows, bare.holds_rows) == (True, False)
    assert bare.n_bytes < kept.n_bytes - saved_detector.nominal_rows_.nbytes + 1_000
    # No nominal row is in it, not even among the test rows.
    columns = {tuple(row) for name, array in load_file(tmp_path / "without").items() if array.ndim == 2
               for row in array.tolist()}  # fmt: skip
    assert not columns & {tuple(row) for row in saved_detector.nominal_rows_.tolist()}
    # The digest of the rows stays, however often it is saved.
    loaded.save(tmp_path / "again")
    expected = hashlib.sha256(saved_detector.nominal_rows_.astype("<f8").tobytes()).hexdigest()
    assert {read_card(tmp_path / name).training_sha256 for name in ("with", "without", "again")} == {expected}


def test_a_random_state_that_is_no_number_is_told(quick_rankad, tmp_path):
    quick_rankad(random_state=np.random.RandomState(0)).fit(cases.nominal()).save(tmp_path / "model")
    assert load(tmp_path / "model").random_state is None
    (note,) = read_card(tmp_path / "model").notes
    assert "random_state was a RandomState" in note


def test_numpy_numbers_are_parameters_too(quick_rankad, tmp_path):
    detector = quick_rankad(
        alpha=np.float32(0.25), n_neighbors=np.int64(3), far_field=np.True_, n_levels=np.array([0.1, 0.5])
    ).fit(cases.nominal())
    detector.save(tmp_path / "model")
    found = load(tmp_path / "model").get_params()
    wanted = {"alpha": 0.25, "n_neighbors": 3, "far_field": True, "n_levels": (0.1, 0.5)}
    assert {name: found[name] for name in wanted} == wanted
    assert all(type(found[name]) is type(value) for name, value in wanted.items())


# ---------------------------------------------------------------------------------------------- what is saved


def test_it_is_a_safetensors_file_without_a_pickle(saved_detector, model_bytes, tmp_path):
    (tmp_path / "model").write_bytes(model_bytes)
    arrays = load_file(tmp_path / "model")
    np.testing.assert_array_equal(arrays["scorer.landmarks"], saved_detector.scorer_.kernel.landmarks)
    with safe_open(tmp_path / "model", framework="np") as file:
        header = json.loads(file.metadata()["rankad"])
    # The digests by which it is checked, made here by hand.
    for name, array in arrays.items():
        assert header["arrays"][name]["sha256"] == hashlib.sha256(array.tobytes()).hexdigest()
    assert b"\x80\x04\x95" not in model_bytes


def test_the_card_says_what_the_detector_is(saved_detector, model_bytes, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(model_bytes)
    card = read_card(path)
    assert (card.kind, card.schema, card.alpha, card.notes, card.encoding) == ("RankAD", 2, 0.05, (), ())
    assert (card.n_rows, card.n_columns, card.n_training) == (120, 3, 120)
    assert (card.n_calibrating, card.n_trimmed) == (120, 0)
    assert (card.columns, card.n_landmarks, card.calibration) == ((), 15, "cross-fit")
    assert (card.n_near, card.n_gaussians) == (0, 6)
    assert (card.bandwidth, card.C) == (saved_detector.bandwidth_, saved_detector.C_)
    assert card.scaling == saved_detector.selection_.scalings[saved_detector.selection_.best]
    assert isinstance(card.selection, SelectionTable)
    _assert_same(card.selection, saved_detector.selection_)
    assert card.parameters["bandwidth"] == ["D_K", "2 D_K"]
    assert card.versions["rankad"] == rankad.__version__
    assert card.versions["numpy"] == np.__version__
    assert abs(datetime.now(UTC) - card.saved) < timedelta(hours=1)
    assert card.n_bytes == len(model_bytes)
    with safe_open(path, framework="np") as file:
        assert card.sha256 == hashlib.sha256(file.metadata()["rankad"].encode()).hexdigest()


def test_the_card_of_a_trimmed_fit_and_of_one_without_selection(quick_rankad, tmp_path):
    quick_rankad(trim=0.1).fit(cases.nominal()).save(tmp_path / "model")
    card = read_card(tmp_path / "model")
    assert (card.n_rows, card.n_trimmed, card.n_training) == (120, 12, 108)
    assert (card.selection, card.scaling) == (None, "standard")


def test_only_fitted_detectors_of_ours_can_be_saved(quick_rankad, tmp_path):
    class Derived(RankAD):
        pass

    with pytest.raises(NotFittedError):
        RankAD().save(tmp_path / "model")
    with pytest.raises(NotFittedError):
        KLPE().save(tmp_path / "model")
    with pytest.raises(TypeError, match=r"fitted RankAD, KLPE or EpsilonLPE, or a fitted .*; got list"):
        save([], tmp_path / "model")
    with pytest.raises(TypeError, match="got Derived"):
        Derived().save(tmp_path / "model")
    detector = quick_rankad().fit(cases.nominal())
    with pytest.raises(ValueError, match="rows must be True or False, got 'no'"):
        detector.save(tmp_path / "model", rows="no")
    detector.alpha = 5
    with pytest.raises(ValueError, match="alpha must be a number strictly between 0 and 1"):
        detector.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------------------------------- tables


@pytest.fixture(scope="module")
def table_detector():
    return cases.fitted_on_table()


def test_a_table_detector_comes_back_to_the_last_bit(table_detector, tmp_path):
    path, new = tmp_path / "model", cases.new_table()
    table_detector.save(path)
    loaded = load(path)
    assert type(loaded) is type(table_detector)
    np.testing.assert_array_equal(loaded.score_samples(new), table_detector.score_samples(new))
    np.testing.assert_array_equal(loaded.p_values(new), table_detector.p_values(new))
    np.testing.assert_array_equal(loaded.predict(new), table_detector.predict(new))
    assert loaded.strange_cells(new) == table_detector.strange_cells(new) != []
    assert loaded.false_alarm_bound() == table_detector.false_alarm_bound()
    assert loaded.encoder_ == table_detector.encoder_
    assert (loaded.min_count, loaded.categories) == (3, ())
    _assert_same(_attributes(loaded.detector_), _attributes(table_detector.detector_))
    np.testing.assert_array_equal(clone(loaded).fit(cases.table()).p_values(new), loaded.p_values(new))
    card = read_card(path)
    assert (card.kind, card.columns, card.n_rows) == ("TableDetector", ("size", "color", "on"), 80)
    assert card.encoding == tuple(table_detector.encoder_.describe())
    assert card.alpha == 0.05


def test_categories_that_were_asked_for_come_back(tmp_path):
    path, codes = tmp_path / "model", cases.table().with_columns(zip=pl.Series(["01", "10"] * 40))
    inner = RankAD(landmarks=15, scaling="standard", bandwidth="D_K", C=0.1, random_state=0)
    detector = TableDetector(inner, ids=["id"], categories=["zip"]).fit(codes)
    detector.save(path)
    loaded = load(path)
    assert loaded.categories == ("zip",)
    assert loaded.encoder_ == detector.encoder_
    np.testing.assert_array_equal(clone(loaded).fit(codes).p_values(codes), detector.p_values(codes))
    assert any(
        "zip: a category, one indicator each for '01', '10'" in line for line in read_card(path).encoding
    )


DENSITIES = [
    KLPE(),
    KLPE(0.2, n_neighbors=3, statistic="centred", calibration="split", scaling="robust"),
    KLPE(statistic="kth", scaling=None),
    EpsilonLPE(),
    EpsilonLPE(0.1, radius=1.5, calibration="split", random_state=4),
]


@pytest.mark.parametrize("detector", DENSITIES, ids=repr)
@pytest.mark.parametrize("named", [False, True])
def test_density_detectors_come_back_to_the_last_bit(detector, named, tmp_path):
    path = tmp_path / "model"
    rows = pl.DataFrame(cases.nominal(), schema=["a", "b", "c"]) if named else cases.nominal()
    new = cases.others()[:400]
    new = pl.DataFrame(new, schema=["a", "b", "c"]) if named else new
    detector = clone(detector).fit(rows)
    detector.save(path)
    again = load(path)
    assert type(again) is type(detector)
    assert again.get_params() == detector.get_params()
    for method in ("score_samples", "p_values", "decision_function", "predict", "smoothed_p_values"):
        np.testing.assert_array_equal(getattr(again, method)(new), getattr(detector, method)(new))
    assert again.false_alarm_bound() == detector.false_alarm_bound()
    assert (again.n_samples_fit_, again.n_features_in_) == (120, 3)
    # Fitted again and calibrated again, it is what it was.
    np.testing.assert_array_equal(clone(again).fit(rows).p_values(new), detector.p_values(new))
    again.calibrate(rows)
    again.save(path)
    np.testing.assert_array_equal(load(path).calibration_.scores, again.calibration_.scores)
    card = read_card(path)
    assert (card.kind, card.detector, card.n_rows) == (type(detector).__name__, type(detector).__name__, 120)
    assert card.columns == (("a", "b", "c") if named else ())
    assert (card.n_neighbors, card.radius) == (
        getattr(detector, "n_neighbors_", None),
        getattr(detector, "radius_", None),
    )
    assert card.n_training == len(detector.reference_)


def test_density_detectors_are_not_saved_without_their_rows(tmp_path):
    with pytest.raises(ValueError, match="rows=False would leave out what KLPE scores by"):
        save(KLPE().fit(cases.nominal()), tmp_path / "model", rows=False)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("inner", [KLPE(0.1), EpsilonLPE(0.1)], ids=repr)
def test_a_table_detector_may_hold_any_detector(inner, table_detector, tmp_path):
    path = tmp_path / "model"
    detector = type(table_detector)(inner, ids=["id"], min_count=3).fit(cases.table())
    detector.save(path)
    again, new = load(path), cases.new_table()
    np.testing.assert_array_equal(again.score_samples(new), detector.score_samples(new))
    np.testing.assert_array_equal(again.p_values(new), detector.p_values(new))
    assert again.alpha == 0.1
    assert read_card(path).detector == type(inner).__name__
    with pytest.raises(TypeError, match="Only RankAD can explain rows"):
        again.explain(new)


def test_a_table_detector_that_is_not_fitted_is_not_saved(table_detector, tmp_path):
    with pytest.raises(NotFittedError):
        type(table_detector)().save(tmp_path / "model")


# ---------------------------------------------------------------------------------------- whole or not at all


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    saved_detector, model_bytes, tmp_path, monkeypatch
):
    path = tmp_path / "model"
    path.write_bytes(model_bytes)

    def full(*args):
        raise OSError("No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(OSError, match="No space left"):
                saved_detector.save(path)
    # What cannot be read back does not take the place of what can.
    broken = pickle.loads(pickle.dumps(saved_detector))
    broken.model_ = replace(broken.model_, ranks=broken.ranks_[:-1])
    with pytest.raises(ModelFileError, match=r"model cannot .*: it was not saved, because .* shape"):
        broken.save(path)
    assert path.read_bytes() == model_bytes
    assert os.listdir(tmp_path) == ["model"]


def test_folders_are_told_by_name(saved_detector, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere to write model in; make it first"):
        saved_detector.save(tmp_path / "nowhere" / "model")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        saved_detector.save(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_device_or_pipe_is_never_replaced(saved_detector, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="pipe is a device or a pipe; name a file"):
        saved_detector.save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_permissions_links_and_long_names_are_respected(saved_detector, tmp_path):
    path = tmp_path / ("m" * 255)
    saved_detector.save(path)
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    saved_detector.save(str(link))
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    load(os.fsencode(link))


KILLED = """
import os, random, signal, sys, time
import rankad

path, n = sys.argv[1], int(sys.argv[2])
detectors = [rankad.load(path), rankad.load(path)]
detectors[1].alpha = 0.2
begin = time.perf_counter()
for _ in range(3):
    detectors[0].save(path)
longest = time.perf_counter() - begin
rng, seen, left_over = random.Random(0), set(), 0
for turn in range(n):
    child = os.fork()
    if not child:
        at = turn
        while True:
            detectors[at % 2].save(path)
            at += 1
    time.sleep(rng.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    seen.add(rankad.load(path).alpha)
    left_over += any(name.startswith(".rankad-") for name in os.listdir(os.path.dirname(path)))
print(sorted(seen), left_over > 0)
"""


def test_a_file_is_whole_at_whatever_moment_its_writer_is_killed(saved_detector, tmp_path):
    path = tmp_path / "model"
    saved_detector.save(path)
    # Old and new files were met, and writers killed half way.
    assert _run(KILLED, path, 50) == "[0.05, 0.2] True\n"
    # What they left is cleared away by the next, and the file of a process that lives is not.
    (left,) = {name.rsplit("-", 2)[0] for name in os.listdir(tmp_path) if name != "model"} or {None}
    living = tmp_path / f"{left}-{os.getppid()}-0abc.tmp"
    living.touch()
    other = tmp_path / ".rankad-notes.tmp"
    other.touch()
    saved_detector.save(path)
    assert set(tmp_path.iterdir()) == {path, living, other}


def test_importing_rankad_does_not_import_safetensors():
    code = (
        "import sys, rankad, rankad.modelfile; print('safetensors' in sys.modules, 'polars' in sys.modules)"
    )
    assert _run(code).split() == ["False", "False"]


def test_a_model_file_that_is_not_there_says_what_makes_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no model file .*none\.rankad; detector\.save"):
        load(tmp_path / "none.rankad")
