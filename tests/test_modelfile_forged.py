"""Model files that are damaged, forged or something else: refused in a sentence, without harm."""

import hashlib
import json
import os
import pickle
import re
import struct
import tracemalloc

import numpy as np
import pytest

import modelfile_cases as cases
from rankad import ModelFileError, load
from rankad.modelfile import read_card


def _with_array(data, name, change):
    """Change an array, of whatever kind and shape, and sign everything again; None takes it out."""
    outer, body = cases.taken_apart(data)
    arrays, header = {}, json.loads(outer.pop("__metadata__")["rankad"])
    for key, told in outer.items():
        dtype = {"F64": "<f8", "I64": "<i8"}[told["dtype"]]
        begin, end = told["data_offsets"]
        arrays[key] = np.frombuffer(body[begin:end], dtype).reshape(told["shape"]).copy()
    changed = change(arrays.pop(name)) if name in arrays else change(None)
    if changed is not None:
        arrays[name] = changed
    outer, body = {}, b""
    header["arrays"] = {}
    for key, array in arrays.items():
        kind = {"float64": "F64", "int64": "I64", "float32": "F32"}[array.dtype.name]
        raw = array.tobytes()
        outer[key] = {"dtype": kind, "shape": array.shape, "data_offsets": [len(body), len(body) + len(raw)]}
        header["arrays"][key] = {
            "dtype": array.dtype.name,
            "shape": array.shape,
            "sha256": hashlib.sha256(raw).hexdigest(),
        }
        body += raw
    return cases.signed(outer, body, json.dumps(header))


def _refused(data, path):
    """Return why both readers refuse a file; both must say the file's name, in one line."""
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    said = str(caught.value)
    assert said == f"{path} cannot be read as a rankad model: {caught.value.reason}."
    assert "\n" not in said
    assert not said.endswith("..")
    assert len(caught.value.reason) <= 300
    return caught.value.reason


def test_the_edits_of_these_tests_leave_a_file_that_loads(model_bytes, tmp_path):
    for data in (
        cases.put_together(*cases.taken_apart(model_bytes)),
        cases.with_header(model_bytes, lambda header: None),
        _with_array(model_bytes, "ranks", lambda ranks: ranks),
    ):
        (tmp_path / "model").write_bytes(data)
        load(tmp_path / "model")
        read_card(tmp_path / "model")


def test_a_file_that_is_not_there_or_not_a_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="it is not a regular file"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="it is not a regular file"):
        read_card(tmp_path / "pipe")


def test_the_error_can_be_pickled(tmp_path):
    error = pickle.loads(pickle.dumps(ModelFileError("model", "it is green")))
    assert (str(error), error.path) == ("model cannot be read as a rankad model: it is green.", "model")
    assert isinstance(error, ValueError)


def test_other_files_are_no_models(model_bytes, tmp_path):
    path = tmp_path / "model"
    outer, body = cases.taken_apart(model_bytes)
    for data in (
        b"",
        b"\0" * 7,
        b"\0" * 8,
        b"x,y\n1,2\n" * 50,
        pickle.dumps({"a": 1}),
        b"\xff" * 500,
        b"PK\x03\x04",
    ):
        assert "cut short, damaged, or something else" in _refused(data, path)
    del outer["__metadata__"]
    assert (
        _refused(cases.put_together(outer, body), path)
        == "it is a safetensors file, but rankad did not write it"
    )


def test_a_file_of_a_newer_rankad_says_so_whatever_else_is_in_it(model_bytes, tmp_path):
    newer = cases.with_header(
        model_bytes, lambda header: {"schema": 3, "arrays": header["arrays"], "news": True}
    )
    for read in (load, read_card):
        (tmp_path / "model").write_bytes(newer)
        with pytest.raises(ModelFileError, match=r"newer rankad \(schema 3; .*\), so update rankad"):
            read(tmp_path / "model")


def test_a_file_of_an_older_rankad_says_so(model_bytes, tmp_path):
    older = cases.with_header(model_bytes, _setting(("schema",), 1))
    assert re.search(r"older rankad, .* \(schema 1; .*\), so fit again", _refused(older, tmp_path / "model"))


def test_every_altered_byte_is_noticed(model_bytes, saved_detector, tmp_path):
    """A flip either spoils the file or is in white space or names that mean nothing."""
    rng = np.random.default_rng(8)
    path, expected = tmp_path / "model", saved_detector.score_samples(cases.others())
    (length,) = struct.unpack("<Q", model_bytes[:8])
    places = np.concatenate(
        [rng.integers(0, 8 + length, 250), rng.integers(8 + length, len(model_bytes), 150)]
    )
    loaded = 0
    for place in places:
        data = bytearray(model_bytes)
        data[place] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        try:
            detector = load(path)
        except ModelFileError:
            continue
        loaded += 1
        assert place < 8 + length
        np.testing.assert_array_equal(detector.score_samples(cases.others()), expected)
    assert loaded <= 5


def test_a_truncated_file_is_refused_at_any_length(model_bytes, tmp_path):
    rng = np.random.default_rng(9)
    for size in [*range(12), *rng.integers(12, len(model_bytes), 100), len(model_bytes) - 1]:
        assert "cut short" in _refused(model_bytes[:size], tmp_path / "model")
    assert "cut short" in _refused(model_bytes + b"\0", tmp_path / "model")


def _set(at, value):
    def change(array):
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("calibration.scores", lambda a: a[::-1].copy(), "calibration scores are not ascending"),
        ("calibration.scores", _set(3, np.nan), "'calibration.scores' holds numbers that are not finite"),
        ("calibration.scores", lambda a: a[:0], "'calibration.scores' is empty"),
        ("calibration.scores", lambda a: np.arange(121.0), "self-test p-values differ"),
        ("calibration.scores", lambda a: a - 1, "self-test p-values differ"),
        ("calibration.scores", lambda a: None, "lacks .*'calibration.scores'"),
        ("scorer.landmarks", lambda a: a.T.copy(), r"shape \(3, 15\) where \(3, 3\) is needed"),
        ("scorer.landmarks", lambda a: a[:, :2].copy(), r"shape \(15, 2\) where \(15, 3\) is needed"),
        ("scorer.landmarks", lambda a: a[:0], "'scorer.landmarks' is empty"),
        ("scorer.landmarks", lambda a: a + 0.1, "self-test scores differ"),
        ("scorer.landmarks", lambda a: a.astype(np.float32), "none of float64, int64"),
        ("scorer.coefficients", lambda a: a[:-1], r"shape \(14,\) where \(15,\) is needed"),
        ("scorer.coefficients", lambda a: a.reshape(1, -1), r"shape \(1, 15\) where"),
        ("scorer.coefficients", lambda a: a * 1.001, "self-test scores differ"),
        ("scorer.widths", _set(0, 0.0), "not above 0"),
        ("scorer.widths", _set(0, 5e-324), "self-test scores differ"),
        ("scorer.limits", _set((0, 1), np.inf), "invalid limits"),
        ("scorer.limits", lambda a: None, "'scorer.limits' is missing"),
        ("scaling.scale", _set(1, -1.0), "'scaling.scale' holds numbers that are not above 0"),
        ("ranges.unit", _set(1, 0.0), "'ranges.unit' holds numbers that are not above 0"),
        ("ranges.low", _set(1, 1e9), "invalid ranges"),
        ("levels", _set(0, 0), "levels below 1"),
        ("levels", lambda a: a.astype(float), "of float64 where int64 is needed"),
        ("training_rows", _set(0, -1), "'training_rows' has row numbers beyond its 120 rows"),
        ("training_rows", _set(0, 120), "'training_rows' has row numbers beyond its 120 rows"),
        ("nominal_rows", lambda a: a[:7], r"shape \(7, 3\) where \(120, 3\) is needed"),
        ("selection.losses", lambda a: a[:1], "'selection.losses' has shape"),
        ("selection.C", lambda a: None, "lacks the array 'selection.C'"),
        ("tests.scores", lambda a: a[:2], "'tests.scores' has shape"),
        ("surprise", lambda a: np.zeros(2), "an unknown array, 'surprise'"),
        ("ranks", lambda a: np.float64(0.5), r"lone|shape \(\)"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused_even_if_signed(model_bytes, name, change, reason, tmp_path):
    said = _refused(_with_array(model_bytes, name, _changed_or_none(change)), tmp_path / "model")
    assert re.search(reason, said), said


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("near.rows", lambda a: None, "lacks the array 'near.rows'"),
        ("nominal_rows", lambda a: None, "has a near field, but no training rows"),
        ("near.rows", lambda a: a[:, :2], r"shape \(320, 2\) where \(320, 3\) is needed"),
        ("near.rows", lambda a: a[:1], "it has too many hubs, 6"),
        ("near.rows", lambda a: a[:0], "'near.rows' is empty"),
        ("near.rows", _set((0, 0), np.nan), "not finite"),
        ("near.rows", lambda a: a + 1.0, "self-test scores differ"),
        ("near.unit", _set(2, 0.0), "'near.unit' holds numbers that are not above 0"),
        ("near.unit", _set(0, 5e-324), "self-test scores differ"),
        ("near.unit", lambda a: a[:0], "'near.unit' has shape"),
        ("mixture.means", lambda a: None, "'parts.centers' has shape"),
        ("mixture.means", lambda a: a[:0], "'mixture.means' is empty"),
        ("mixture.means", lambda a: a + 1.0, "self-test scores differ"),
        ("mixture.factors", lambda a: a[:, :2], "'mixture.factors' has shape"),
        ("mixture.factors", _set((0, 0, 1), 1.0), "factors that are not triangular"),
        ("mixture.factors", _set((0, 1, 0), np.inf), "not finite"),
        ("mixture.constants", lambda a: a[:1], "'mixture.constants' has shape"),
        ("parts.centers", lambda a: a[:2], "'parts.centers' has shape"),
        ("parts.spreads", _set(1, 0.0), "'parts.spreads' holds numbers that are not above 0"),
        ("parts.spreads", lambda a: None, "lacks the array 'parts.spreads'"),
    ],
)
def test_parts_that_do_not_fit_are_refused_even_if_signed(near_bytes, name, change, reason, tmp_path):
    said = _refused(_with_array(near_bytes, name, _changed_or_none(change)), tmp_path / "model")
    assert re.search(reason, said), said


def _changed_or_none(change):
    def changed(array):
        found = change(array)
        return None if found is None else np.asarray(found)

    return changed


@pytest.mark.parametrize(
    ("where", "value", "reason"),
    [
        (("schema",), 0, "has 0 in 'schema', which should be at least 1"),
        (("schema",), True, "should have an integer in 'schema'"),
        (("kind",), "Pickle", "'Pickle' in 'kind', none of RankAD, KLPE, EpsilonLPE, TableDetector"),
        (("kind",), "KLPE", "it says that it is a KLPE and that it is a RankAD"),
        (("detector",), "KLPE", "it says that it is a RankAD and that it is a KLPE"),
        (("detector",), "Pickle", "'Pickle' in 'detector', none of RankAD, KLPE, EpsilonLPE"),
        (("detector",), 7, "should have a text in 'detector'"),
        (("parameters", "alpha"), 2.0, "alpha must be a number strictly between 0 and 1"),
        (("parameters", "n_levels"), 10**15, "n_levels=1000000000000000 is too large"),
        (("parameters", "landmarks"), {"a": 1}, "landmarks must be"),
        (("parameters", "C"), [], "C must be"),
        (("parameters", "n_levels"), "x\n" * 5_000, "n_levels must be"),
        (("parameters", "code"), "import os", "its parameters are not those of RankAD: code"),
        (("parameters",), [1], "'parameters'"),
        (("fitted", "n_rows"), 10**30, "more than 64 bits"),
        (("fitted", "n_rows"), 5, "beyond its 5 rows"),
        (("fitted", "n_columns"), 4, r"shape \(15, 3\) where \(15, 4\) is needed"),
        (("fitted", "norm"), 1e301, "out of range"),
        (("fitted", "bandwidth"), float("nan"), "not finite"),
        (("fitted", "bandwidth"), -1.0, "out of range"),
        (("fitted", "far_field"), 1, "should have true or false in 'far_field'"),
        (("fitted", "calibration"), "leave-one-out", "none of split, cross-fit, in-sample"),
        (("fitted", "feature_names"), ["a"], "1 feature names are not for 3 columns"),
        (("fitted", "feature_names"), ["a", 2, "c"], "should have a list of texts"),
        (("fitted", "training_sha256"), "abc", "no SHA-256"),
        (("fitted", "selection", "scalings"), [], "trials do not have one scaling each"),
        (("fitted", "selection", "scalings"), ["odd"] * 6, "unknown scaling"),
        (("fitted", "selection"), None, "an unknown array, 'selection.C'"),
        (("origin", "saved"), "yesterday", "no date"),
        (("origin", "saved"), "2020-01-01", "without a time zone"),
        (("origin", "saved"), "9999-12-31T23:59:59-01:00", "no date that can be read"),
        (("origin", "saved"), "0001-01-01T00:00:00+00:01", "no date that can be read"),
        (("origin", "saved"), "10000-01-01T00:00:00+00:00", "no date that can be read"),
        (("fitted", "feature_names"), ["a", "b", "\ud800"], "half of a surrogate pair"),
        (("origin", "versions"), {"rankad": 1}, "should have a text in 'rankad'"),
        (("arrays", "ranks", "shape"), [7], "not of the kind and shape"),
        (("arrays", "ranks", "sha256"), "0" * 64, "'ranks' was altered"),
        (("arrays", "more"), {}, "not those that its header lists"),
        (("notes",), "none", "should have a list in 'notes'"),
    ],
)
def test_headers_that_do_not_fit_are_refused_even_if_signed(model_bytes, where, value, reason, tmp_path):
    forged = cases.with_header(model_bytes, _setting(where, value))
    assert re.search(reason, _refused(forged, tmp_path / "model"))


@pytest.mark.parametrize(
    ("where", "value", "reason"),
    [
        (("n_hubs",), None, "'parts.centers' has shape"),
        (("n_hubs",), 0, "has 0 in 'n_hubs', which should be at least 1"),
        (("n_hubs",), 51, "it has too many hubs, 51"),
    ],
)
def test_headers_of_near_fields_are_checked_too(near_bytes, where, value, reason, tmp_path):
    forged = cases.with_header(near_bytes, _setting(("fitted", *where), value))
    assert re.search(reason, _refused(forged, tmp_path / "model"))


@pytest.mark.parametrize(
    ("whose", "name", "change", "reason"),
    [
        ("klpe_bytes", "reference", lambda a: None, "lacks .*'reference'"),
        ("klpe_bytes", "reference", lambda a: a[:0], "'reference' is empty"),
        ("klpe_bytes", "reference", lambda a: a[:, :2], r"shape \(120, 2\) where \(120, 3\) is needed"),
        ("klpe_bytes", "reference", lambda a: np.vstack([a, a]), "more reference rows than rows"),
        ("klpe_bytes", "reference", _set((0, 0), np.nan), "not finite"),
        ("klpe_bytes", "reference", _set((0, 0), 1e300), "its reference rows hold numbers out of range"),
        ("klpe_bytes", "reference", lambda a: a + 1.0, "reference rows do not match their digest"),
        ("klpe_bytes", "scaling.scale", _set(1, 0.0), "'scaling.scale' holds numbers that are not above 0"),
        ("klpe_bytes", "scaling.scale", _set(1, 9.0), "self-test scores differ"),
        ("klpe_bytes", "scaling.center", lambda a: a[:2], r"shape \(2,\) where \(3,\) is needed"),
        ("klpe_bytes", "calibration.scores", lambda a: a[::-1].copy(), "not ascending"),
        ("klpe_bytes", "calibration.scores", lambda a: a[:0], "'calibration.scores' is empty"),
        ("klpe_bytes", "calibration.scores", lambda a: np.arange(121.0), "self-test p-values differ"),
        ("klpe_bytes", "calibration.scores", lambda a: a - 9, "self-test p-values differ"),
        ("klpe_bytes", "tests.rows", lambda a: a[:2], "'tests.scores' has shape"),
        ("klpe_bytes", "tests.rows", lambda a: np.full_like(a, 1e307), "self-test scores differ"),
        ("klpe_bytes", "ranks", lambda a: np.zeros(2), "an unknown array, 'ranks'"),
        ("epsilon_bytes", "tests.scores", lambda a: a + 1, "self-test scores differ"),
        ("epsilon_bytes", "reference", lambda a: a[:7], "reference rows do not match their digest"),
    ],
)  # fmt: skip
def test_arrays_of_density_detectors_are_checked_as_strictly(request, whose, name, change, reason, tmp_path):
    data = request.getfixturevalue(whose)
    said = _refused(_with_array(data, name, _changed_or_none(change)), tmp_path / "model")
    assert re.search(reason, said), said


@pytest.mark.parametrize(
    ("whose", "where", "value", "reason"),
    [
        ("klpe_bytes", ("kind",), "EpsilonLPE", "it says that it is a EpsilonLPE and that it is a KLPE"),
        ("klpe_bytes", ("detector",), None, "its header should have a text in 'detector'"),
        ("klpe_bytes", ("kind",), "TableDetector", "'table'"),
        ("klpe_bytes", ("parameters", "alpha"), 7, "alpha must be a number strictly between 0 and 1"),
        ("klpe_bytes", ("parameters", "statistic"), "x" * 9, "statistic must be one of"),
        ("klpe_bytes", ("parameters", "radius"), 1.0, "its parameters are not those of KLPE: radius"),
        ("klpe_bytes", ("parameters", "n_neighbors"), [3], "n_neighbors must be"),
        ("klpe_bytes", ("fitted", "n_rows"), 5, "more reference rows than rows"),
        ("klpe_bytes", ("fitted", "n_neighbors"), 0, "should be at least 1"),
        ("klpe_bytes", ("fitted", "n_neighbors"), 2**60, "fewer reference rows than it needs neighbours"),
        ("klpe_bytes", ("fitted", "n_neighbors"), 5, "self-test scores differ"),
        ("klpe_bytes", ("fitted", "statistic"), "odd", "none of mean, kth, centred"),
        ("klpe_bytes", ("fitted", "calibration"), "cross-fit", "none of leave-one-out, split"),
        ("klpe_bytes", ("fitted", "reference_apart"), 1, "should have true or false"),
        ("klpe_bytes", ("fitted", "training_sha256"), "0" * 64, "reference rows do not match their digest"),
        ("klpe_bytes", ("fitted", "feature_names"), ["a"], "1 feature names are not for 3 columns"),
        ("epsilon_bytes", ("fitted", "radius"), 0.0, "has 0 in 'radius', out of range"),
        ("epsilon_bytes", ("fitted", "radius"), None, "should have a number in 'radius'"),
        ("epsilon_bytes", ("fitted", "radius"), 9.0, "self-test scores differ"),
        ("epsilon_bytes", ("parameters", "radius"), -1.0, "radius must be 'auto' or a number > 0"),
    ],
)  # fmt: skip
def test_headers_of_density_detectors_are_checked_as_strictly(request, whose, where, value, reason, tmp_path):
    forged = cases.with_header(request.getfixturevalue(whose), _setting(where, value))
    assert re.search(reason, said := _refused(forged, tmp_path / "model")), said


def _setting(where, value):
    def edit(header):
        for key in where[:-1]:
            header = header[key]
        header[where[-1]] = value

    return edit


def _mutated_array(array, rng):
    flat = array.reshape(-1)
    strange = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 5e-324, 2.0**62]
    choice = rng.integers(6)
    if choice == 0:
        return array[: len(array) // 2]
    if choice == 1:
        return np.concatenate([array, array])
    if choice == 2:
        return array[..., None]
    if choice == 3:
        return array.astype(np.int64 if array.dtype == np.float64 else np.float64)
    if choice == 4:
        return array.T.copy() if array.ndim > 1 else flat[::-1].copy()
    if flat.size:
        with np.errstate(invalid="ignore"):
            flat[rng.integers(flat.size)] = np.array(strange[rng.integers(len(strange))]).astype(array.dtype)
    return array


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.parametrize("whose", ["model_bytes", "near_bytes", "klpe_bytes", "epsilon_bytes"])
def test_hundreds_of_signed_forgeries_are_refused_or_harmless(request, whose, tmp_path):
    """What gets through must still answer: nothing may crash later that was let in."""
    rng, model_bytes = np.random.default_rng(10), request.getfixturevalue(whose)
    path, rows, refused = tmp_path / "model", cases.others()[:50], 0
    names = sorted(json.loads(cases.taken_apart(model_bytes)[0]["__metadata__"]["rankad"])["arrays"])
    n = 400
    for turn in range(n):
        if turn % 2:
            data = cases.with_header(model_bytes, lambda header: cases.change_somewhere(header, rng))
        else:
            name = names[int(rng.integers(len(names)))]
            data = _with_array(model_bytes, name, lambda array: _mutated_array(array, rng))
        path.write_bytes(data)
        for read in (read_card, load):
            try:
                found = read(path)
            except ModelFileError:
                refused += 1
            else:
                if read is load:
                    assert not np.isnan(found.p_values(rows)).any()
                    found.false_alarm_bound()
    assert refused > n / 2


def test_outer_headers_gone_wild_are_refused_without_taking_memory(model_bytes, tmp_path):
    path = tmp_path / "model"
    outer, body = cases.taken_apart(model_bytes)
    big = {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}
    forgeries = [
        struct.pack("<Q", 2**63) + model_bytes[8:],
        struct.pack("<Q", len(model_bytes) - 7) + model_bytes[8:],
        struct.pack("<Q", 90_000_000) + model_bytes[8:],
        cases.put_together({**outer, "ranks": big}, body),
        cases.put_together({**outer, "ranks": {**outer["ranks"], "shape": [2**32, 2**32]}}, body),
        cases.put_together({**outer, "ranks": {**outer["ranks"], "shape": [-1]}}, body),
        cases.put_together({**outer, "ranks": {**outer["ranks"], "data_offsets": [8, 0]}}, body),
        cases.put_together({**outer, "ranks": outer["levels"]}, body),
        cases.put_together({**outer, "ranks": {**outer["ranks"], "dtype": "BF16"}}, body),
        cases.put_together({**outer, "ranks": {**outer["ranks"], "dtype": "I64"}}, body),
        cases.put_together(
            {**outer, "x": {"dtype": "F64", "shape": [0, 2**60], "data_offsets": [0, 0]}}, body
        ),
        cases.put_together({**outer, "__metadata__": {"rankad": 7}}, body),
        cases.with_header(model_bytes, lambda header: [header]),
        cases.with_header(model_bytes, lambda header: "header"),
        cases.signed(outer, body, "[" * 100_000),
        cases.signed(outer, body, "9" * 10_000),
        cases.signed(outer, body, '{"schema": 1e999}'),
        cases.signed(outer, body, ""),
    ]
    tracemalloc.start()
    for data in forgeries:
        _refused(data, path)
        with pytest.raises(ModelFileError):
            read_card(path)
    assert tracemalloc.get_traced_memory()[1] < 20 * len(model_bytes) + 10_000_000
    tracemalloc.stop()


def test_the_card_notices_what_it_reads_and_the_detector_the_rest(model_bytes, tmp_path):
    path = tmp_path / "model"
    (length,) = struct.unpack("<Q", model_bytes[:8])
    begin, _ = cases.taken_apart(model_bytes)[0]["ranks"]["data_offsets"]
    data = bytearray(model_bytes)
    data[8 + length + begin] ^= 1
    assert "'ranks' was altered" in _refused(data, path)
    assert read_card(path).n_rows == 120
    begin, _ = cases.taken_apart(model_bytes)[0]["selection.C"]["data_offsets"]
    data[8 + length + begin] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"'selection.C' was altered"):
        read_card(path)


def test_forged_tables_are_refused_or_harmless(tmp_path):
    table_detector = cases.fitted_on_table()
    rng, path, new = np.random.default_rng(13), tmp_path / "model", cases.new_table()
    table_detector.save(path)
    data, refused = path.read_bytes(), 0
    for _ in range(300):
        path.write_bytes(cases.with_header(data, lambda header: cases.change_somewhere(header["table"], rng)))
        try:
            detector = load(path)
        except ModelFileError:
            refused += 1
        else:
            # A column of another name is one that the table may have.
            renamed = {name: new["size"] for name in detector.feature_names_in_ if name not in new.columns}
            assert not np.isnan(detector.p_values(new.with_columns(**renamed))).any()
    assert refused > 150
    forged = cases.with_header(data, lambda header: header["fitted"].update(n_rows=81))
    assert _refused(forged, path) == "its encoder was fitted on 80 rows and its detector on 81"
    narrower = cases.with_header(
        data, lambda header: header["table"]["encoder"].update(columns=_first_two(header))
    )
    assert "its encoder and its detector do not match" in _refused(narrower, path)
    assert "'table'" in _refused(cases.with_header(data, lambda header: header.update(table=None)), path)


def _first_two(header):
    return header["table"]["encoder"]["columns"][:2]
