"""What users pass in: the right answer, or an error that says what is wrong and where."""

import datetime
import re
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from rankad import KLPE, EpsilonLPE, RankAD, TableDetector

NAMES = ["a", "b", "c"]
NEW = np.array([[0.1, -0.2, 0.3], [2.0, 2.0, -2.0], [9.0, 0.0, 0.0]])


def answers(detector, rows):
    return np.concatenate([detector.score_samples(rows), detector.p_values(rows), detector.predict(rows)])


# ------------------------------------------------------------------ odd, but fine


def test_all_rows_identical(build):
    detector = build().fit(np.full((60, 3), 4.0))
    np.testing.assert_array_equal(detector.predict([[4.0, 4.0, 4.0]]), [1])
    np.testing.assert_array_equal(detector.predict([[4.0, 104.0, 4.0], [-96.0, -96.0, -96.0]]), [-1, -1])


@pytest.mark.parametrize("scaling", ["standard", "robust", None])
def test_a_row_that_differs_in_a_constant_column_is_an_alarm(build, nominal, scaling):
    rows = nominal.copy()
    rows[:, 1] = 7.0
    detector = build(alpha=0.2, scaling=scaling).fit(rows)
    inside, outside = [0.0, 7.0, 0.0], [0.0, 107.0, 0.0]
    np.testing.assert_array_equal(detector.predict([inside, outside]), [1, -1])


@pytest.mark.parametrize("detector", [KLPE(), KLPE(statistic="kth"), EpsilonLPE()], ids=repr)
def test_a_constant_column_changes_nothing_for_rows_that_share_it(detector, nominal):
    two = np.delete(nominal, 1, axis=1)
    three = np.insert(two, 1, 7.0, axis=1)
    expected = answers(detector.fit(two), two)
    np.testing.assert_array_equal(answers(detector.fit(three), three), expected)


@pytest.mark.parametrize("scaling", ["standard", "robust", None])
@pytest.mark.parametrize("n", [80, 100])
def test_most_rows_duplicates_of_one(build, scaling, n):
    rng = np.random.default_rng(3)
    rows = np.vstack([np.full((n - 40, 3), 0.5), rng.normal(size=(40, 3))])
    with warnings.catch_warnings():
        # With 100 rows in 41 places, half of them calibrate.
        warnings.filterwarnings("ignore", "Calibrated by a split.*100 rows lie in only")
        detector = build(scaling=scaling).fit(rng.permutation(rows))
    often, far = [0.5, 0.5, 0.5], [100.0, 100.0, 100.0]
    np.testing.assert_array_equal(detector.predict([often, far]), [1, -1])


@pytest.mark.parametrize("calibration", ["default", "split"])
def test_every_row_several_times(build, nominal, calibration):
    params = {} if calibration == "default" else {"calibration": calibration}
    detector = build(alpha=0.2, **params)
    with pytest.warns(UserWarning, match="60 of 60 different rows come more than once.*180 copies were left"):
        detector.fit(np.repeat(nominal, 4, axis=0))
    np.testing.assert_array_equal(detector.predict([[0.0, 0.0, 0.0], [100.0, 0.0, 0.0]]), [1, -1])


def test_one_column(build, nominal):
    detector = build(alpha=0.2).fit(nominal[:, :1])
    np.testing.assert_array_equal(detector.predict([[0.0], [100.0], [-100.0]]), [1, -1, -1])


def test_one_column_with_the_default_selection(few_folds, nominal):
    detector = RankAD(bandwidth="auto", random_state=0).fit(nominal[:, :1])
    assert len(detector.selection_.bandwidths) == 5
    np.testing.assert_array_equal(detector.predict([[0.0], [100.0], [-100.0]]), [1, -1, -1])


def test_one_column_cannot_be_shuffled(nominal):
    with pytest.raises(ValueError, match=r"selection='shuffled'.*two columns.*1 feature.*'contrast'"):
        RankAD(selection="shuffled", bandwidth="auto").fit(nominal[:, :1])


@pytest.mark.parametrize(
    "detector",
    [RankAD(scaling="standard", C=0.1, random_state=0), KLPE(), EpsilonLPE(alpha=0.2)],
    ids=repr,
)
def test_a_thousand_columns(few_folds, detector):
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(150, 1_000))
    detector.fit(rows)
    np.testing.assert_array_equal(
        detector.predict(np.vstack([np.zeros(1_000), np.full(1_000, 9.0)])), [1, -1]
    )
    # A nominal row that strays in one column only.
    one_off = np.zeros((1, 1_000))
    one_off[0, 17] = 1_000.0
    np.testing.assert_array_equal(detector.predict(one_off), [-1])


# --------------------------------------------------- the same numbers in another form


@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "int64", "uint16", "bool"])
def test_the_type_of_the_numbers_does_not_matter(build, nominal, kind):
    rows = (np.abs(nominal) * (1 if kind.startswith("float") or kind == "bool" else 10)).astype(kind)
    expected = answers(build().fit(rows.astype(np.float64)), rows.astype(np.float64))
    np.testing.assert_array_equal(answers(build().fit(rows), rows), expected)


@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
        lambda rows: rows[::-1][::-1],
        lambda rows: rows.astype(object),
        lambda rows: rows.tolist(),
        lambda rows: pd.DataFrame(rows, columns=NAMES),
        lambda rows: pd.DataFrame(rows, columns=NAMES, index=np.arange(len(rows))[::-1]),
        lambda rows: pd.DataFrame(rows, columns=NAMES).convert_dtypes(),
        lambda rows: pl.DataFrame(rows, schema=NAMES),
    ],
    ids=["fortran", "strided", "reversed", "objects", "lists", "pandas", "index", "nullable", "polars"],
)
def test_the_form_of_the_table_does_not_matter(build, fit_nominal, nominal, form):
    expected = answers(fit_nominal(), NEW)
    np.testing.assert_array_equal(answers(build().fit(form(nominal)), form(NEW)), expected)


def test_the_rows_passed_in_are_not_changed(build, nominal):
    before = nominal.copy()
    build().fit(nominal).predict(nominal)
    np.testing.assert_array_equal(nominal, before)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_columns_are_kept(build, nominal, frame):
    detector = build().fit(frame(dict(zip(NAMES, nominal.T, strict=True))))
    assert list(detector.feature_names_in_) == NAMES
    assert detector.n_features_in_ == 3


def test_arrays_have_no_names(fit_nominal):
    detector = fit_nominal()
    assert not hasattr(detector, "feature_names_in_")
    assert detector.n_features_in_ == 3


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_mixed_number_types(build, nominal, frame):
    whole = np.round(nominal[:, 0] * 10).astype(np.int32)
    flag = nominal[:, 1] > 0
    table = frame({"whole": whole, "flag": flag, "c": nominal[:, 2].astype(np.float32)})
    same = np.column_stack([whole, flag, nominal[:, 2].astype(np.float32)]).astype(np.float64)
    np.testing.assert_array_equal(answers(build().fit(table), table), answers(build().fit(same), same))


# ----------------------------------------------------------------- cells that are not numbers

DAY = datetime.datetime(2024, 5, 17)
BAD_CELLS = {
    "nan": np.nan,
    "inf": np.inf,
    "minus inf": -np.inf,
    "none": None,
    "text": "high",
    "datetime": DAY,
}


def spoiled(form, cell, rows):
    """Put a bad cell, or where types are by column a bad column, into column 1 of the rows."""
    if form == "array":
        table = rows.astype(object if cell is None or isinstance(cell, str | datetime.datetime) else float)
        table[3, 1] = cell
        return table
    whole_column = isinstance(cell, str | datetime.datetime)
    column = [cell] * len(rows) if whole_column else [*rows[:3, 1], cell, *rows[4:, 1]]
    frame = pd.DataFrame if form == "pandas" else pl.DataFrame
    return frame({"a": rows[:, 0], "b": column, "c": rows[:, 2]})


@pytest.mark.parametrize("form", ["array", "pandas", "polars"])
@pytest.mark.parametrize("cell", BAD_CELLS.values(), ids=BAD_CELLS)
def test_fit_names_the_column_that_holds_no_finite_numbers(build, nominal, form, cell):
    named = r"\bcolumn 1\b" if form == "array" else "'b'"
    with pytest.raises(ValueError, match=named) as caught:
        build().fit(spoiled(form, cell, nominal))
    assert not re.search(r"\bcolumn [02]\b|'a'|'c'", str(caught.value)), "no other column is at fault"


@pytest.mark.parametrize("form", ["array", "pandas", "polars"])
@pytest.mark.parametrize("cell", BAD_CELLS.values(), ids=BAD_CELLS)
def test_answers_name_the_column_that_holds_no_finite_numbers(form, cell, nominal):
    table = {
        "array": lambda: nominal,
        "pandas": lambda: pd.DataFrame(nominal, columns=NAMES),
        "polars": lambda: pl.DataFrame(nominal, schema=NAMES),
    }[form]()
    detector = KLPE().fit(table)
    for method in (detector.predict, detector.p_values, detector.score_samples):
        with pytest.raises(ValueError, match=r"\bcolumn 1\b" if form == "array" else "'b'"):
            method(spoiled(form, cell, nominal))


def test_a_missing_cell_is_located(build, nominal):
    nominal[[5, 8], 1] = np.nan
    with pytest.raises(
        ValueError, match=r"NaN in column 1 \(NaN in 2 of 60 rows, the first is row 5\).*drop the rows"
    ):
        build().fit(nominal)


def test_infinity_is_not_called_nan(build, nominal):
    nominal[5, 1] = np.inf
    nominal[6, 2] = np.nan
    with pytest.raises(ValueError, match="column 1") as caught:
        build().fit(nominal)
    assert re.search(r"(?i)infinit", str(caught.value))
    assert "NaN" in str(caught.value)


def test_many_bad_columns_are_not_all_listed(build):
    with pytest.raises(ValueError, match=r"column 0 .*column 4 .* and 25 more"):
        build().fit(np.full((20, 30), np.nan))


@pytest.mark.parametrize(
    "table",
    [
        np.full((60, 2), np.datetime64("2024-05-17")),
        np.full((60, 2), np.timedelta64(3, "s")),
        pd.DataFrame({"a": [DAY] * 60, "b": [DAY] * 60}),
        pd.DataFrame({"a": [datetime.timedelta(3)] * 60, "b": [datetime.timedelta(3)] * 60}),
        pl.DataFrame({"a": [DAY] * 60, "b": [DAY] * 60}),
        pl.DataFrame({"a": [DAY.date()] * 60, "b": [1.0] * 60}),
        np.full((60, 2), "high"),
        pd.DataFrame({"a": ["high"] * 60}),
        pl.DataFrame({"a": ["high"] * 60}),
    ],
    ids=[
        "M8",
        "m8",
        "pandas M8",
        "pandas m8",
        "polars M8",
        "polars dates",
        "text",
        "pandas text",
        "polars text",
    ],
)
def test_a_whole_table_of_something_else(build, table):
    with pytest.raises(ValueError, match=r"column 0|'a'"):
        build().fit(table)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(60), "2D array"),
        (np.zeros((6, 10, 2)), r"dim 3|3 dimension"),
        (np.zeros((60, 2), dtype=complex), "(?i)complex"),
        (np.zeros((60, 0)), "0 feature"),
        ("text", "rows of numbers"),
        (3.0, "2D array"),
    ],
    ids=["vector", "cube", "complex", "no columns", "text", "number"],
)
def test_what_is_no_table_of_numbers(build, rows, message):
    with pytest.raises(ValueError, match=message):
        build().fit(rows)


# -------------------------------------------------------------------- columns and rows


def test_another_number_of_columns(fit_nominal):
    detector = fit_nominal()
    for width in (2, 4):
        with pytest.raises(ValueError, match=rf"{width} features.*expecting 3"):
            detector.predict(np.zeros((5, width)))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_other_names(build, nominal, frame):
    columns = dict(zip(NAMES, nominal.T, strict=True))
    detector = build().fit(frame(columns))
    with pytest.raises(ValueError, match=r"(?s)unseen.*\bother\b.*missing.*\bb\b"):
        detector.predict(frame({"a": columns["a"], "other": columns["b"], "c": columns["c"]}))
    with pytest.raises(ValueError, match=r"(?s)missing.*\bc\b"):
        detector.predict(frame({"a": columns["a"], "b": columns["b"]}))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_another_order_of_named_columns(build, nominal, frame):
    table = frame(dict(zip(NAMES, nominal.T, strict=True)))
    detector = build().fit(table)
    with pytest.raises(ValueError, match=r"(?s)same order.*'c', 'b'.*feature_names_in_"):
        detector.predict(table[["a", "c", "b"]])
    # What the message advises works.
    detector.predict(table[["a", "c", "b"]][list(detector.feature_names_in_)])


def test_too_few_rows(build, nominal):
    with pytest.raises(
        ValueError, match=r"needs [48] rows or more .*n_samples=3\. Fit on more normal rows\.$"
    ):
        build().fit(nominal[:3])
    with pytest.raises(ValueError, match="X has n_samples=0"):
        build().fit(nominal[:0])


def test_an_array_of_one_dimension_is_not_printed(build, nominal):
    with pytest.raises(
        ValueError, match=r"got 1D array instead, of shape \(300,\)\. .* one row is X=\[row\]"
    ) as e:
        build().fit(np.arange(300.0))
    assert len(str(e.value)) < 200


def test_complex_numbers_say_what_to_do(build, nominal):
    with pytest.raises(
        ValueError, match=r"Complex data not supported: .* np\.hstack\(\[X\.real, X\.imag\]\)"
    ) as e:
        build().fit(nominal + 1j)
    assert len(str(e.value)) < 200


def test_cells_of_text_are_shown_as_they_are(build):
    with pytest.raises(
        ValueError, match=r"column 0 \(with 'x'\), .* cannot be read as such \(text and dates are not"
    ):
        build().fit(np.array([["x", "1"]] * 20))


def test_no_rows_to_judge(fit_nominal, nominal):
    with pytest.raises(ValueError, match="0 sample"):
        fit_nominal().predict(nominal[:0])


@pytest.mark.filterwarnings("ignore:alpha=.* is below the smallest p-value")
@pytest.mark.parametrize("n", [4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize(
    "detector",
    [
        KLPE(),
        KLPE(statistic="kth"),
        KLPE(statistic="centred"),
        KLPE(calibration="split"),
        KLPE(statistic="centred", calibration="split"),
        EpsilonLPE(),
        EpsilonLPE(calibration="split"),
        RankAD(),
        RankAD(calibration="split"),
        RankAD(calibration="in-sample"),
        RankAD(bandwidth="auto", selection="disagreement"),
        RankAD(bandwidth="auto", selection="disagreement", calibration="split"),
        RankAD(bandwidth="auto", selection="shuffled"),
        RankAD(bandwidth="auto", selection="contrast"),
        RankAD(scaling="standard", bandwidth="D_K", C=0.1),
        RankAD(scaling="standard", bandwidth="D_K", C=0.1, calibration="split"),
    ],
    ids=repr,
)
def test_a_handful_of_rows_is_enough(detector, n):
    n += 4 if isinstance(detector, RankAD) else 0
    rows = np.random.default_rng(n).normal(size=(n, 2))
    detector.set_params(alpha=0.4).fit(rows)
    p = detector.p_values([[0.0, 0.0], [100.0, 100.0]])
    assert np.all((p > 0) & (p <= 1))
    assert p[1] <= p[0]


# ------------------------------------------------------------------- few rows, many neighbours


def test_rankad_with_more_neighbors_than_there_are(nominal, quick_rankad):
    with pytest.raises(
        ValueError, match=r"n_neighbors=30.*20 training rows.*(\d+) at most.*'auto'"
    ) as caught:
        quick_rankad(n_neighbors=30).fit(nominal[:20])
    most = int(re.search(r"(\d+) at most", str(caught.value)).group(1))
    assert quick_rankad(n_neighbors=most).fit(nominal[:20]).n_neighbors_ == most
    with pytest.raises(ValueError, match=f"n_neighbors={most + 1}"):
        quick_rankad(n_neighbors=most + 1).fit(nominal[:20])


@pytest.mark.parametrize(
    "params",
    [
        {"bandwidth": "auto"},
        {"bandwidth": "auto", "selection": "disagreement"},
        {"calibration": "split"},
        {"calibration": "in-sample"},
        {"bandwidth": "auto", "calibration": "split"},
    ],
    ids=repr,
)
def test_the_number_of_neighbors_that_rankad_allows_works(nominal, quick_rankad, params):
    with pytest.raises(ValueError, match="at most") as caught:
        quick_rankad(n_neighbors=30, **params).fit(nominal[:40])
    most = int(re.search(r"(\d+) at most", str(caught.value)).group(1))
    assert quick_rankad(n_neighbors=most, **params).fit(nominal[:40]).n_neighbors_ == most


@pytest.mark.parametrize(("statistic", "most"), [("mean", 19), ("kth", 19), ("centred", 13)])
def test_klpe_with_more_neighbors_than_there_are(nominal, statistic, most):
    rows = nominal[:20]
    assert KLPE(n_neighbors=most, statistic=statistic).fit(rows).n_neighbors_ == most
    with pytest.raises(ValueError, match=rf"n_neighbors={most + 1} .*only 19 others.*'auto'"):
        KLPE(n_neighbors=most + 1, statistic=statistic).fit(rows)


def test_auto_neighbors_need_no_thought(nominal, quick_rankad):
    for n in (8, 9, 10, 20):
        assert 1 <= quick_rankad(alpha=0.3).fit(nominal[:n]).n_neighbors_ < n
        assert 1 <= KLPE(alpha=0.3).fit(nominal[:n]).n_neighbors_ < n


# ------------------------------------------------------------------------- large numbers

# Powers of two, so that dividing by them is exact; columns may hold up to 1e140.
LARGE = {"1e90": 2.0**299, "1e135": 2.0**449}


@pytest.mark.parametrize("large", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("scaling", ["standard", "robust"])
def test_a_column_of_large_numbers_is_scaled(build, nominal, large, scaling):
    expected = build(scaling=scaling).fit(nominal).p_values(NEW)
    detector = build(scaling=scaling).fit(nominal * [1.0, large, 1.0])
    np.testing.assert_array_equal(detector.p_values(NEW * [1.0, large, 1.0]), expected)


@pytest.mark.parametrize("huge", [1e141, 1e160, 1e200, 1e300])
@pytest.mark.parametrize("scaling", ["standard", "robust", None])
def test_huge_numbers_whose_squares_overflow_are_refused(build, nominal, scaling, huge):
    with pytest.raises(ValueError, match=r"(?i)\bcolumn 1\b.*too large.*1e\+140.*logarithm"):
        build(scaling=scaling).fit(nominal * [1.0, huge, 1.0])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_named_column_of_huge_numbers_is_named(build, nominal, frame):
    table = frame(dict(zip(NAMES, (nominal * [1.0, 1e200, 1.0]).T, strict=True)))
    with pytest.raises(ValueError, match=r"'b'.*too large"):
        build().fit(table)


@pytest.mark.parametrize("shrunk", [1.0, 1e-3])
def test_a_huge_new_row_is_simply_far(build, nominal, shrunk):
    detector = build(alpha=0.3).fit(nominal * shrunk)
    for value in (1e155, 1e200, 1e300, 1.7e308, -1.7e308):
        new = np.array([[0.0, 0.0, 0.0], [0.0, value, 0.0], [value, value, value]])
        np.testing.assert_array_equal(detector.predict(new), [1, -1, -1])
        assert not np.isnan(detector.score_samples(new)).any()
        assert detector.p_values(new)[1] == detector.p_values([[1e6, 1e6, 1e6]])[0]


def test_a_huge_offset_changes_no_answer(build, nominal):
    # Multiples of 2^-20 keep their value under an offset of 2^30, about 1e9.
    rows = np.round(nominal * 2**20) / 2**20
    moved = build().fit(rows + 2.0**30).p_values(NEW + 2.0**30)
    # Scaling rounds, so a nominal row may change sides with a new one that scores alike: one rank at most.
    np.testing.assert_allclose(moved, build().fit(rows).p_values(NEW), rtol=0, atol=1 / 60)


def test_a_large_offset_with_many_rows(build):
    rows = np.random.default_rng(2).normal(size=(300, 2)) + 1e9
    detector = build(alpha=0.2).fit(rows)
    np.testing.assert_array_equal(detector.predict([[1e9, 1e9], [1e9 + 100, 1e9]]), [1, -1])


# --------------------------------------------------------------------------- bad parameters

COMMON = {
    "alpha": [0, 1, 0.0, 1.0, -0.1, 2, "x", np.nan, np.inf, None, True, [0.1]],
    "calibration": ["none", None, 0, ["split"]],
    "scaling": ["minmax", 0, True],
    "random_state": ["x", -1, 1.5],
    "n_jobs": [0, "x", 1.5],
}
BAD = {
    RankAD: {
        **COMMON,
        "calibration": [*COMMON["calibration"], "leave-one-out"],
        "n_neighbors": [0, -1, 2.5, "x", None, True, [3], np.nan],
        "n_levels": [0, 1, -3, "x", None, 2.5, True, [], [0.5, 0.2], [0.0, 0.5], [0.5, 1.0], ["a"], np.nan],
        "bandwidth": [0, -1, "x", None, np.nan, np.inf, True, [], "x D_K", "-1 D_K", "0 D_K", "nan D_K"],
        "C": [0, -1, "x", None, np.nan, np.inf, True, [], [1, -1], ["a"]],
        "landmarks": [0, -1, 2.5, "x", None, True, ("kmeans",), ("grid", 3), ("random", 0), ("random", 2.5)],
        "far_field": ["x", None, 2],
        "near_field": ["x", None, 2],
        "n_components": [-1, 2.5, "x", None, True],
        "selection": ["x", None, 0],
        "trim": [-0.1, 0.5, 1, "x", None, True, np.nan],
        "verbose": ["loud"],
    },
    KLPE: {
        **COMMON,
        "calibration": [*COMMON["calibration"], "cross-fit", "in-sample"],
        "n_neighbors": [0, -1, 2.5, "x", None, True, [3], np.nan],
        "statistic": ["median", None, 0],
    },
    EpsilonLPE: {
        **COMMON,
        "calibration": [*COMMON["calibration"], "cross-fit", "in-sample"],
        "radius": [0, -1, "x", None, np.nan, np.inf, True, [1.0]],
    },
}
CASES = [
    pytest.param(cls, name, value, id=f"{cls.__name__}-{name}-{value!r}")
    for cls, parameters in BAD.items()
    for name, values in parameters.items()
    for value in values
]


def cheap(cls, **params):
    quick = {"landmarks": 20, "scaling": "standard", "bandwidth": "D_K", "C": 0.1, "random_state": 0}
    quick["calibration"] = "split"
    return cls(**{**(quick if cls is RankAD else {}), **params})


@pytest.fixture(scope="module")
def cheap_fits():
    """Each of them fitted on the nominal rows; not to be changed."""
    rows = np.random.default_rng(7).normal(size=(60, 3))
    return {cls: cheap(cls).fit(rows) for cls in (RankAD, KLPE, EpsilonLPE)}


@pytest.mark.parametrize("value", ["minmax", "Standard", 0, False, ["standard", None]])
def test_a_bad_scaling_is_told_what_is_allowed(value, nominal):
    got = re.escape(f"; got {value!r}.")
    with pytest.raises(ValueError, match=r"^scaling must be one of 'auto', 'standard', 'robust', None" + got):
        RankAD(scaling=value).fit(nominal)


@pytest.mark.parametrize("cls", [KLPE, EpsilonLPE])
def test_scaling_is_selected_by_rankad_only(cls, nominal):
    with pytest.raises(ValueError, match=r"scaling must be one of 'standard', 'robust', None; got 'auto'\."):
        cls(scaling="auto").fit(nominal)


class NoData:
    """Rows that must not be looked at."""

    def __array__(self, *_, **__):
        raise AssertionError("the rows were looked at")


def test_every_parameter_has_bad_values():
    for cls, parameters in BAD.items():
        assert set(parameters) == set(cls().get_params())


@pytest.mark.parametrize(("cls", "name", "value"), CASES)
def test_a_bad_parameter_is_named_with_its_value(cls, name, value, nominal):
    # Storing it is allowed, as scikit-learn wants it; fit refuses.
    with pytest.raises((ValueError, TypeError)) as caught:
        cheap(cls, **{name: value}).fit(nominal)
    message = str(caught.value)
    assert re.search(rf"\b{name}\b", message), message
    assert repr(value) in message or (value == [] and "empty" in message), message


@pytest.mark.parametrize(("cls", "name", "value"), CASES)
def test_a_bad_parameter_is_refused_before_any_work(cls, name, value):
    with pytest.raises((ValueError, TypeError)):
        cheap(cls, **{name: value}).fit(NoData())


@pytest.mark.parametrize(("cls", "name", "value"), CASES)
def test_a_bad_parameter_leaves_the_earlier_fit_usable(cheap_fits, cls, name, value, nominal):
    detector = deepcopy(cheap_fits[cls])
    good = detector.get_params()[name]
    before = answers(detector, NEW)
    others = nominal[:50, :2] * 30 + 5
    with pytest.raises((ValueError, TypeError)):
        detector.set_params(**{name: value}).fit(others)
    detector.set_params(**{name: good})
    np.testing.assert_array_equal(answers(detector, NEW), before)


@pytest.mark.parametrize("cls", [RankAD, KLPE])
def test_too_many_neighbors_leave_the_earlier_fit_usable(cls, nominal):
    detector = cheap(cls).fit(nominal)
    before = answers(detector, NEW)
    with pytest.raises(ValueError, match="n_neighbors=500"):
        detector.set_params(n_neighbors=500).fit(nominal[:50] * 30 + 5)
    np.testing.assert_array_equal(answers(detector, NEW), before)


@pytest.mark.parametrize(
    "rows",
    [np.full((20, 2), np.nan), np.full((20, 2), "x"), np.zeros((2, 2)), np.eye(20) * 1e200],
    ids=["nan", "text", "two rows", "huge"],
)
def test_bad_rows_leave_the_earlier_fit_usable(fit_nominal, rows):
    detector = fit_nominal()
    before = answers(detector, NEW)
    with pytest.raises(ValueError, match=r"\w"):
        detector.fit(rows)
    np.testing.assert_array_equal(answers(detector, NEW), before)


@pytest.mark.parametrize("value", [0, 1, "x", np.nan])
def test_a_bad_alpha_after_fitting(fit_nominal, value):
    detector = fit_nominal()
    p = detector.p_values(NEW)
    detector.alpha = value
    for decide in (detector.predict, detector.decision_function, lambda _: detector.offset_):
        with pytest.raises(ValueError, match=rf"alpha must be a number.*got {value!r}"):
            decide(NEW)
    np.testing.assert_array_equal(detector.p_values(NEW), p)


@pytest.mark.parametrize("good", [np.float32(0.125), np.float64(0.1)])
def test_numpy_numbers_are_numbers(build, nominal, good):
    assert build(alpha=good).fit(nominal).predict(NEW).shape == (3,)
    assert KLPE(n_neighbors=np.int64(3)).fit(nominal).n_neighbors_ == 3
    assert EpsilonLPE(radius=np.float32(1.5)).fit(nominal).radius_ == 1.5


def test_numpy_numbers_are_numbers_for_rankad(quick_rankad, nominal):
    params = {"n_levels": np.int64(4), "C": np.array([0.1, 1.0]), "bandwidth": np.array([0.5, 1.0])}
    plain = {"n_levels": 4, "C": [0.1, 1.0], "bandwidth": [0.5, 1.0]}
    numpy = {**params, "n_neighbors": np.int32(3), "landmarks": np.int64(20), "far_field": np.True_}
    np.testing.assert_array_equal(
        quick_rankad(**numpy).fit(nominal).p_values(NEW),
        quick_rankad(**plain, n_neighbors=3).fit(nominal).p_values(NEW),
    )


# -------------------------------------------------------------------------- not fitted


@pytest.mark.parametrize("method", ["score_samples", "p_values", "decision_function", "predict"])
def test_answers_before_fit(build, method):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(build(), method)(NEW)


def test_offset_and_bound_before_fit(build):
    with pytest.raises(NotFittedError, match="not fitted"):
        _ = build().offset_
    with pytest.raises(NotFittedError, match="not fitted"):
        build().false_alarm_bound()


@pytest.mark.parametrize("method", ["score_samples", "p_values", "decision_function", "predict"])
def test_a_fit_that_failed_is_no_fit(build, method):
    detector = build()
    with pytest.raises(ValueError, match="NaN"):
        detector.fit(np.full((20, 3), np.nan))
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(detector, method)(NEW)


def test_errors_tell_who_takes_text_and_missing_values(build, nominal):
    inside = "" if build().__class__ is RankAD else f"{build().__class__.__name__}()"
    words = nominal.astype(object)
    words[3, 1] = "red"
    with pytest.raises(ValueError, match=re.escape(f"TableDetector({inside}).fit(dict(zip(names, X.T)))")):
        build().fit(words)
    frame = pd.DataFrame(nominal, columns=list("abc")).assign(c="red")
    with pytest.raises(ValueError, match=re.escape(f"TableDetector({inside}).fit(frame) takes text")):
        build().fit(frame)
    holes = nominal.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match=re.escape(f"TableDetector({inside}).fit(dict(zip(names, X.T)))")):
        build().fit(holes)
    # What it says to do can be done.
    assert TableDetector(build()).fit(dict(zip("abc", holes.T, strict=True))).n_features_in_ == 3


def test_one_row_is_a_list_of_it(build, nominal):
    detector = build().fit(nominal)
    for row in (nominal[0], nominal[0].tolist(), pd.Series(nominal[0])):
        said = r"frame\.iloc\[\[i\]\]" if isinstance(row, pd.Series) else r"X=\[row\]"
        with pytest.raises(ValueError, match=f"one row is {said}, one column"):
            detector.predict(row)
    assert detector.predict([nominal[0]]).shape == (1,)


@pytest.mark.parametrize("name", ["ranks_", "scorer_", "selection_", "calibration_"])
def test_a_fitted_attribute_that_is_not_there_is_named(name):
    detector = RankAD()
    assert not hasattr(detector, name)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(detector, name)


@pytest.mark.parametrize("path", ["pump.csv", Path("pump.csv")])
def test_a_path_in_the_place_of_rows_is_told_to_be_read_first(path):
    with pytest.raises(ValueError, match=r"X must be rows of numbers.*pump\.csv.*Read the file first"):
        RankAD().fit(path)


def test_nothing_in_the_place_of_rows_is_named():
    with pytest.raises(ValueError, match=r"X must be rows of numbers.*got None\.$"):
        RankAD().fit(None)


def test_other_columns_than_at_fit_have_a_remedy():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=r"X has 2 features.*Pass the columns that it was fitted on"):
        KLPE().fit(rows).p_values(rows[:, :2])


def test_a_detector_that_is_not_fitted_says_what_to_do():
    with pytest.raises(NotFittedError, match="EpsilonLPE is not fitted yet: call fit with normal rows first"):
        EpsilonLPE().p_values(np.zeros((2, 2)))
