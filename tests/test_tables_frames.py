"""What users pass as a table: one row, too."""

import datetime

import numpy as np
import pandas
import polars
import pytest

from rankad import KLPE, TableDetector
from rankad.tables.frames import as_frame

RNG = np.random.default_rng(5)
FRAME = polars.DataFrame(
    {
        "size": RNG.normal(size=60),
        "n": RNG.integers(0, 9, size=60),
        "color": RNG.choice(["red", "blue"], size=60),
        "on": RNG.random(60) < 0.5,
    }
)


def _rows(at):
    """One row in every form that is taken."""
    pandas_frame = FRAME.to_pandas()
    return {
        "dict": FRAME.row(at, named=True),
        "dict of numpy scalars": {
            name: np.asarray(value)[()] for name, value in FRAME.row(at, named=True).items()
        },
        "pandas loc": pandas_frame.loc[at],
        "pandas iloc of one": pandas_frame.iloc[[at]],
        "polars slice": FRAME[at],
        "polars struct": FRAME.to_struct()[at : at + 1],
    }


@pytest.fixture(scope="module")
def detector():
    return TableDetector(KLPE()).fit(FRAME)


@pytest.mark.parametrize("form", list(_rows(0)))
def test_one_row_gets_the_answers_that_it_has_in_the_table(detector, form):
    for at in (0, 17, 59):
        row = _rows(at)[form]
        for method in ("p_values", "predict", "score_samples", "decision_function", "smoothed_p_values"):
            answer = getattr(detector, method)(row)
            np.testing.assert_array_equal(
                answer, getattr(detector, method)(FRAME)[at : at + 1], err_msg=method
            )


def test_a_missing_cell_of_one_row_is_missing(detector):
    row = FRAME.row(3, named=True)
    for empty in (row | {"color": None}, pandas.Series(row | {"color": None})):
        assert [cell.column for cell in detector.strange_cells(empty)] == ["color"]
    assert [cell.column for cell in detector.strange_cells(pandas.Series(row | {"size": np.nan}))] == ["size"]


def test_cells_keep_their_kinds():
    day = datetime.date(2026, 1, 2)
    assert as_frame({"a": 1, "b": "x", "c": True, "d": None, "e": day}).rows() == [(1, "x", True, None, day)]
    assert as_frame(pandas.Series({"a": 1, "b": "x"})).rows() == [(1, "x")]
    assert as_frame({}).shape == (0, 0)


def test_single_values_beside_columns_are_an_error():
    with pytest.raises(ValueError, match=r"'a' is a single value and 'b' a list; put single values in lists"):
        as_frame({"a": 1.5, "b": ["x", "y"]})
    with pytest.raises(ValueError, match=r"'b' is a single value and 'a' a ndarray"):
        as_frame({"a": np.zeros(2), "b": "text"})


def test_a_list_of_rows_is_a_table(detector):
    rows = FRAME.to_dicts()
    np.testing.assert_array_equal(detector.p_values(rows), detector.p_values(FRAME))
    assert as_frame([{"a": 1, "b": "x"}, {"b": "y"}]).rows() == [(1, "x"), (None, "y")]
    for wrong in ([1, 2], "text", None, [{"a": 1}, 2], []):
        with pytest.raises(TypeError, match=r"a list of dicts, got \w+(; read the file .*)?\.$"):
            as_frame(wrong)
    with pytest.raises(TypeError, match=r"got ndarray; name the columns of an array"):
        as_frame(np.zeros((3, 2)))


def test_a_column_is_not_taken_for_a_row():
    with pytest.raises(
        TypeError, match=r"for one row pass frame\.iloc\[\[i\]\], for one column series\.to_frame"
    ):
        as_frame(FRAME.to_pandas()["size"])
    with pytest.raises(TypeError, match=r"frame\.row\(i, named=True\)"):
        as_frame(FRAME["size"])


def test_a_row_that_lacks_a_column_says_which(detector):
    with pytest.raises(ValueError, match="lacks 'color'"):
        detector.predict({"size": 1.0, "n": 2, "on": True})


def test_intervals_and_periods_of_pandas_are_categories_and_times():
    bins = pandas.cut(np.linspace(0, 3, 60), [-1, 1, 2, 3])
    months = pandas.period_range("2024-01", periods=60, freq="M")
    table = as_frame(pandas.DataFrame({"bin": bins, "array": bins.astype(object), "month": months}))
    assert table["bin"].cast(polars.String).unique(maintain_order=True).to_list() == [
        "(-1, 1]",
        "(1, 2]",
        "(2, 3]",
    ]
    assert table["array"].dtype == polars.String
    assert table["month"][:2].to_list() == [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 2, 1)]
    gaps = pandas.Series(months).where(np.arange(60) > 0)
    assert as_frame(pandas.DataFrame({"m": gaps}))["m"][:2].to_list() == [None, datetime.datetime(2024, 2, 1)]


def test_what_must_be_read_first_is_said():
    with pytest.raises(TypeError, match=r"got LazyFrame; pass what its collect\(\) returns"):
        as_frame(polars.LazyFrame({"a": [1]}))
    with pytest.raises(TypeError, match="got str; read the file first"):
        as_frame("pumps.csv")


def test_a_column_of_nearly_the_same_name_is_asked_about(detector):
    renamed = FRAME.rename({FRAME.columns[0]: f" {FRAME.columns[0].upper()}"})
    with pytest.raises(
        ValueError, match=rf"Is ' {FRAME.columns[0].upper()}' it\? Then rename it to '{FRAME.columns[0]}'"
    ):
        detector.p_values(renamed)


def test_a_table_without_names_is_asked_about(detector):
    with pytest.raises(ValueError, match="Does the first line of the table name its columns"):
        detector.p_values(FRAME.rename({name: f"{at}.5" for at, name in enumerate(FRAME.columns)}))


def test_a_file_that_was_not_split_into_columns_is_asked_about(detector):
    lines = pandas.DataFrame({"day;flow;heat": [f"{at};{at + 1},5;20" for at in range(60)]})
    for judge in (TableDetector().fit, detector.p_values):
        with pytest.raises(
            ValueError, match=r"Then read it with sep=';' \(pandas\) or separator=';' \(polars\)"
        ):
            judge(lines)
    with pytest.raises(ValueError, match="no column to learn from") as caught:
        TableDetector().fit(pandas.DataFrame({"name": [f"n{at}" for at in range(60)]}))
    assert "sep=" not in str(caught.value)


@pytest.mark.parametrize("judge", ["p_values", "predict", "verdict", "explain", "report"])
def test_a_column_that_is_the_index_is_asked_about(detector, judge):
    name = FRAME.columns[0]
    with pytest.raises(
        ValueError, match=rf"{name!r} is in its index, which is not read: pass frame.reset_index"
    ):
        getattr(detector, judge)(FRAME.to_pandas().set_index(name))
