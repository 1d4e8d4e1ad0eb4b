"""What the columns of a table become, what is strange, and what is an error."""

import datetime
import json
import random
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rankad.tables import StrangeCell, TableEncoder
from rankad.tables.frames import Untyped, as_frame
from rankad.tables.strange_cells import (
    INFINITE,
    MISSING_HERE,
    NEW_CATEGORY,
    NO_BOOLEAN,
    NO_NUMBER,
    NOT_CONSTANT,
    NOT_EMPTY,
    SAME_CATEGORY,
)

HALF = np.sqrt(0.5)
COLORS = ["red"] * 6 + ["blue"] * 5 + ["pink", "gold"]
N = len(COLORS)


def naive(frame, nominal, min_count=5):
    """Encode numbers and text the slow, obvious way; no strange cells."""
    columns = []
    mixed = any(isinstance(v, str) or v is None for cells in nominal.values() for v in cells)
    for name, known in nominal.items():
        cells = frame[name]
        if any(isinstance(v, str) for v in known):
            counts = {v: known.count(v) for v in known}
            kept = sorted((v for v in counts if counts[v] >= min_count), key=lambda v: (-counts[v], v or ""))
            columns += [[HALF * (v == word) for v in cells] for word in kept]
            if len(kept) < len(counts):
                columns.append([HALF * (v not in kept) for v in cells])
            continue
        values = [v for v in known if v is not None]
        center, scale = (np.mean(values), np.std(values)) if mixed else (0.0, 1.0)
        columns.append([((np.median(values) if v is None else v) - center) / scale for v in cells])
        if None in known:
            columns.append([HALF * (v is None) for v in cells])
    return np.array(columns).T


def mixed(seed=0, n=200):
    rng = np.random.default_rng(seed)
    x = [None if gap else v for v, gap in zip(rng.normal(5, 3, n).tolist(), rng.random(n) < 0.1, strict=True)]
    words = rng.choice(["a", "b", "c", "rare", None], p=[0.5, 0.3, 0.1, 0.01, 0.09], size=n).tolist()
    return {"x": x, "y": rng.normal(size=n).tolist(), "word": words}


# --------------------------------------------------------------------------- what columns become


@pytest.mark.parametrize("seed", range(5))
def test_mixed_tables_are_encoded_as_by_the_naive_twin(seed):
    nominal = mixed(seed)
    encoded = TableEncoder.fit(nominal).encode(nominal)
    np.testing.assert_allclose(encoded.rows, naive(nominal, nominal), rtol=1e-12, atol=1e-12)
    assert encoded.strange == []


def test_numbers_without_gaps_are_left_as_they_are():
    rows = np.random.default_rng(0).normal(size=(50, 3)) * [1e-9, 1.0, 1e9]
    encoder = TableEncoder.fit(dict(zip("abc", rows.T, strict=True)))
    np.testing.assert_array_equal(encoder.encode(dict(zip("abc", rows.T, strict=True))).rows, rows)
    assert encoder.is_plain
    assert encoder.groups == ((0,), (1,), (2,))
    assert encoder.encode({"c": [3], "extra": ["?"], "a": [1], "b": [2]}).rows.tolist() == [[1.0, 2.0, 3.0]]


def test_categories_are_indicators_at_distance_one_and_the_rare_share_one():
    encoder = TableEncoder.fit({"color": COLORS})
    rows = encoder.encode({"color": ["blue", "red", "gold", "pink", "new"]}).rows
    np.testing.assert_allclose(rows, HALF * np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]))
    assert np.linalg.norm(rows[0] - rows[1]) == pytest.approx(1.0)


def test_numbers_beside_categories_are_standardized():
    x = np.arange(N, dtype=float) ** 2
    encoder = TableEncoder.fit({"x": x, "color": COLORS})
    rows = encoder.encode({"x": x, "color": COLORS}).rows
    np.testing.assert_allclose(rows[:, 0], (x - x.mean()) / x.std())
    assert encoder.groups == ((0,), (1, 2, 3))
    assert encoder.names == ("x", "color")


def test_a_missing_number_is_the_median_and_an_indicator():
    encoder = TableEncoder.fit({"x": [1.0, 2.0, None, 10.0, float("nan")]})
    center, scale = 13 / 3, np.std([1.0, 2.0, 10.0])
    expected = [[(2 - center) / scale, HALF], [(1 - center) / scale, 0.0]]
    np.testing.assert_allclose(encoder.encode({"x": [None, 1.0]}).rows, expected)


@pytest.mark.parametrize(
    "words", [["1", " 2.5", "-3e2", "NA"], ["1", "2.5 ", "-300", ""], [1, 2.5, -300, None]]
)
def test_text_that_reads_as_numbers_throughout_is_numbers(words):
    frame = as_frame({"x": words})
    encoder = TableEncoder.fit(Untyped(frame))
    assert encoder.decode(encoder.encode(frame).rows)["x"].to_list() == [1, 2.5, -300, None]


def test_categories_that_look_like_numbers_stay_categories():
    for column in (pl.Series(["1", "2"] * 6, dtype=pl.Categorical), pd.Categorical([1, 2] * 6)):
        encoder = TableEncoder.fit({"x": pd.Series(column) if isinstance(column, pd.Categorical) else column})
        assert encoder.encode({"x": ["2", "1"]}).rows.shape == (2, 2)


def test_durations_are_seconds():
    encoder = TableEncoder.fit({"t": [datetime.timedelta(minutes=m) for m in range(8)]})
    assert encoder.encode({"t": [datetime.timedelta(seconds=90)]}).rows.tolist() == [[90.0]]


def test_booleans_are_categories_of_two_however_rare_and_read_from_text():
    encoder = TableEncoder.fit({"ok": [True] * 9 + [False] * 2})
    expected = HALF * np.array([[1, 0], [0, 1]])
    np.testing.assert_array_equal(encoder.encode({"ok": [True, False]}).rows, expected)
    np.testing.assert_array_equal(encoder.encode({"ok": ["True", "FALSE"]}).rows, expected)


@pytest.mark.parametrize("words", [["True", "False"], ["true", "FALSE"], [" TRUE", "false "]])
def test_booleans_as_text_are_those_of_other_files(words):
    nominal = [words[0]] * 9 + [words[1]] * 2
    encoder = TableEncoder.fit({"ok": [*nominal, "NA"]})
    assert encoder == TableEncoder.fit({"ok": [True] * 9 + [False] * 2 + [None]})
    cells = [True, False], ["True", "FALSE"], ["1", "0"], [1, 0], [1.0, 0.0]
    for each in cells:
        found = encoder.encode({"ok": each})
        np.testing.assert_array_equal(found.rows[:, :2], HALF * np.eye(2))
        assert found.strange == []
    assert encoder.encode({"ok": ["yes", 2]}).strange_rows.tolist() == [0, 1]


def test_a_category_is_the_same_in_every_type():
    encoder = TableEncoder.fit({"c": ["1", "2", "A", None, "7.0"] * 6})
    rows = encoder.encode({"c": ["1", "2", None, "7.0"]}).rows
    for cells in ([1.0, 2.0, float("nan"), 7.0], [1.0, 2.0, None, 7.0], ["1", "2", "NA", "7.0"]):
        found = encoder.encode({"c": cells})
        np.testing.assert_array_equal(found.rows, rows)
        assert found.strange == []
    np.testing.assert_array_equal(encoder.encode({"c": [1, 2]}).rows, rows[:2])
    assert encoder.encode({"c": [3.0, 1.5]}).strange_rows.tolist() == [0, 1]


def test_a_word_for_a_missing_value_is_a_category_where_nominal_rows_have_it():
    encoder = TableEncoder.fit({"country": ["NA", "DE"] * 6})
    assert encoder.encode({"country": ["NA"]}).strange == []
    assert encoder.encode({"country": [None, "null"]}).strange_rows.tolist() == [0, 1]


@pytest.mark.parametrize("cells", [[[1]], [b"\xff"], [{"a": 1}], [object()]])
def test_a_category_of_another_type_is_an_error(cells):
    encoder = TableEncoder.fit({"c": ["a", "b"] * 6})
    with pytest.raises(ValueError, match=r"column 'c' must hold text.*but is of type"):
        encoder.encode(pl.DataFrame({"c": cells}))


def test_numbers_whose_squares_are_too_small_are_standardized_all_the_same():
    nominal = {"x": (np.arange(12) * 1e-200).tolist(), "c": ["a", "b"] * 6}
    np.testing.assert_allclose(TableEncoder.fit(nominal).encode(nominal).rows[:, 0].std(), 1.0)


def test_masked_cells_are_missing():
    masked = np.ma.masked_array([1.0, 2.0, 99.0], mask=[False, False, True])
    (column,) = TableEncoder.fit({"x": masked}).columns
    assert (column.missing, column.median) == (True, 1.5)


def test_at_most_a_hundred_categories_are_told_apart():
    words = [f"w{i}" for i in range(150) for _ in range(5 + (i < 100))]
    assert TableEncoder.fit({"w": words}).n_encoded == 101


# --------------------------------------------------------------------------- strange cells


def strange(nominal, new, **params):
    encoded = TableEncoder.fit(nominal, **params).encode(new)
    assert np.isfinite(encoded.rows).all()
    return encoded.strange


def test_a_category_that_is_new_is_strange_where_none_is_rare():
    assert strange({"c": ["a", "b"] * 5}, {"c": ["a", "z"]}) == [StrangeCell(1, "c", NEW_CATEGORY, "z")]
    assert strange({"c": COLORS}, {"c": ["red", "z"]}) == []


def test_a_category_written_otherwise_is_told_from_a_new_one():
    nominal = {"c": ["DE", "Fr", "01067"] * 5, "b": [True, False, True] * 5}
    cells = ["de", "DE ", "1067", "FR", "dé", "067"]
    found = strange(nominal, {"c": [*cells, "Fr"], "b": [True] * 7})
    expected = [SAME_CATEGORY] * 4 + [NEW_CATEGORY] * 2
    assert found == [StrangeCell(at, "c", *each) for at, each in enumerate(zip(expected, cells, strict=True))]
    found = strange(nominal, {"c": ["DE"] * 3, "b": ["yes", "TRUE", "0"]})
    assert found == [StrangeCell(0, "b", NO_BOOLEAN, "yes")]


def test_a_missing_value_is_strange_where_nominal_rows_had_none():
    nominal = {"x": np.arange(9.0), "c": ["a", "b", "b"] * 3}
    found = strange(nominal, {"x": [1.0, None], "c": [None, "b"]}, min_count=3)
    assert found == [StrangeCell(1, "x", MISSING_HERE, None), StrangeCell(0, "c", MISSING_HERE, None)]
    assert strange({"x": [1, 2, None, 4]}, {"x": [None, float("nan")]}) == []
    assert strange({"c": ["a"] * 5 + [None] * 5}, {"c": [None]}) == []


def test_infinity_is_strange_and_missing_besides_is_not():
    found = strange({"x": [1, 2, None, 4]}, {"x": [float("inf"), float("-inf"), None]})
    assert found == [StrangeCell(0, "x", INFINITE, np.inf), StrangeCell(1, "x", INFINITE, -np.inf)]


@pytest.mark.parametrize("value", [7.0, "seven", True])
def test_any_other_value_of_a_constant_is_strange(value):
    other = {7.0: 7.5, "seven": "eight", True: False}[value]
    found = strange({"k": [value] * 9, "x": range(9)}, {"k": [value, other], "x": [1, 2]})
    assert [(cell.row, cell.column, cell.value) for cell in found] == [(1, "k", other)]
    assert found[0].what in (NOT_CONSTANT, NEW_CATEGORY)


def test_any_value_in_a_column_without_nominal_values_is_strange():
    for empty in ([None] * 4, [float("nan")] * 4, ["", None, "", ""], ["NA", "nan", None, ""]):
        encoder = TableEncoder.fit({"x": [1, 2, 3, 4], "e": empty})
        assert encoder.names == ("x",)
        assert encoder.encode({"x": [1, 2], "e": [None, "v"]}).strange == [
            StrangeCell(1, "e", NOT_EMPTY, "v")
        ]
        for missing in ([float("nan")], ["NaN"], ["NA"]):
            assert encoder.encode({"x": [1], "e": missing}).strange == []


def test_strange_rows_are_listed_once_and_ascending():
    encoder = TableEncoder.fit({"a": np.arange(9.0), "b": np.arange(9.0)})
    encoded = encoder.encode({"a": [1, None, 1, None], "b": [None, None, 1, 1]})
    np.testing.assert_array_equal(encoded.strange_rows, [0, 1, 3])


def left_out_and_strange(nominal, **params):
    """Return how many rows are strange to an encoder fitted on the others."""
    n = len(next(iter(nominal.values())))
    count = 0
    for i in range(n):
        others = {name: [v for j, v in enumerate(cells) if j != i] for name, cells in nominal.items()}
        row = {name: [cells[i]] for name, cells in nominal.items()}
        count += bool(TableEncoder.fit(others, **params).encode(row).strange)
    return count


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1.0] * 9 + [2.0], 1),
        ([1.0] * 8 + [2.0] * 2, 0),
        ([1.0] * 9 + [None], 1),
        ([1.0] + [None] * 9, 1),
        ([1.0, 2.0] + [None] * 8, 2),
        (["a"] * 9 + ["b"], 1),
        (["a"] * 8 + ["b", "c"], 0),
        (["a"] * 8 + ["b", "b"], 0),
        (["a"] * 9 + [None], 1),
        (["a"] * 8 + [None, "b"], 0),
        ([True] * 9 + [False], 1),
        ([True] * 8 + [False] * 2, 0),
        ([float(i) for i in range(10)], 0),
    ],
)
def test_rows_that_would_be_strange_to_the_others_are_counted(cells, expected):
    nominal = {"c": cells, "x": [float(i) for i in range(len(cells))]}
    assert TableEncoder.fit(nominal).n_singletons == expected
    assert left_out_and_strange(nominal) == expected


# Tables of which 0, 2, 4 and 1 rows are alone.
@pytest.mark.parametrize("seed", [0, 1, 2, 6])
@pytest.mark.parametrize("min_count", [1, 2, 5])
def test_rows_that_would_be_strange_are_counted_as_by_leaving_each_out(seed, min_count):
    rng = np.random.default_rng(seed)
    n = 30
    nominal = {
        "x": rng.normal(size=n).tolist(),
        "c": rng.choice(["a", "b", "c"], p=[0.8, 0.17, 0.03], size=n).tolist(),
        "d": rng.choice(["a", None], p=[0.95, 0.05], size=n).tolist(),
        "k": rng.choice([0.0, 1.0, None], p=[0.94, 0.03, 0.03], size=n).tolist(),
        "ok": (rng.random(n) < 0.04).tolist(),
    }
    assert TableEncoder.fit(nominal, min_count=min_count).n_singletons == left_out_and_strange(
        nominal, min_count=min_count
    )


# --------------------------------------------------------------------------- frames of other libraries


def test_all_kinds_of_frames_give_the_same_rows():
    cells = {
        "x": [1.5, None, 3.0, 4.0] * 4,
        "n": [1, 2, 3, 4] * 4,
        "c": ["a", "b", None, "a"] * 4,
        "ok": [True, False, True, None] * 4,
    }
    polars = pl.DataFrame(cells)
    expected = TableEncoder.fit(polars, min_count=2).encode(polars).rows
    pandas, arrays = pd.DataFrame(cells), {name: np.array(v, dtype=object) for name, v in cells.items()}
    nullable = pandas.convert_dtypes()
    category = pandas.assign(c=pandas["c"].astype("category"))
    text = Untyped(polars.cast(pl.String))
    for frame in (cells, pa.table(cells), pandas, nullable, category, arrays, text):
        np.testing.assert_array_equal(TableEncoder.fit(frame, min_count=2).encode(frame).rows, expected)


def test_numbers_and_text_side_by_side_are_text():
    encoder = TableEncoder.fit({"c": [1, "a"] * 5})
    assert encoder.encode({"c": ["1", "a"]}).strange == []


@pytest.mark.parametrize("frame", [np.zeros((3, 2)), [[1, 2]], "table.csv", None])
def test_what_is_no_table_is_an_error(frame):
    with pytest.raises(
        TypeError, match=r"polars or pandas DataFrame.*dict of columns or a list of dicts, got"
    ):
        TableEncoder.fit(frame)


def test_columns_of_different_lengths_or_of_one_name_are_an_error():
    with pytest.raises(ValueError, match="'b' has 1 values and 'a' 2"):
        TableEncoder.fit({"a": [1, 2], "b": [1]})
    with pytest.raises(ValueError, match="'a' comes twice"):
        TableEncoder.fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))


# --------------------------------------------------------------------------- errors


def test_names_of_rows_are_left_out_with_a_note_that_says_what_to_pass():
    nominal = {"x": [3.0, 1.0] * 10, "name": [f"n{i}" for i in range(20)]}
    encoder = TableEncoder.fit(nominal)
    (note,) = [note for note in encoder.notes if note.doubt]
    assert re.search(
        r"column 'name' is taken as an id.* 20 different values.*--id name.*--drop name", note.doubt
    )
    assert (encoder.names, encoder.ids) == (("x",), ("name",))
    # It may be missing from new tables.
    assert encoder.encode({"x": [1.0]}).rows.shape == (1, 1)
    confirmed = TableEncoder.fit(nominal, ids=["name"])
    assert (confirmed.names, confirmed.ids) == (("x",), ("name",))
    assert not any(note.doubt for note in confirmed.notes)
    assert TableEncoder.fit(nominal, drop="name").names == ("x",)


def test_numbers_with_a_word_among_them_name_the_word():
    words = [f"{i % 7}.5" for i in range(40)]
    words[16] = "oops"
    encoder = TableEncoder.fit(Untyped(pl.DataFrame({"x": words})))
    assert re.search(r"1 cell of 40 .* \(row 17: 'oops'\).*--number x", encoder.notes[0].doubt)
    # Nominal rows had that word, and no other.
    assert encoder.n_singletons == 1
    found = encoder.encode({"x": ["oops", "what", "1.5"]})
    assert found.strange == [StrangeCell(1, "x", NO_NUMBER, "what")]
    assert TableEncoder.fit(Untyped(pl.DataFrame({"x": words})), numbers=["x"]).notes[0].doubt == ""


def test_what_is_not_written_as_nominal_numbers_are_is_said():
    encoder = TableEncoder.fit(Untyped(pl.DataFrame({"x": ["20,51", "19,75", "18,5", "21,25"]})))
    what = "not a number written with a decimal comma, as normal cells are"
    assert encoder.encode({"x": ["20.51"]}).strange == [StrangeCell(0, "x", what, "20.51")]


def test_text_in_a_column_of_numbers_makes_its_row_strange():
    encoder = TableEncoder.fit({"x": [1.0, 2.0, 3.0]})
    found = encoder.encode({"x": ["1", "two", None, "three"]})
    assert found.strange == [
        StrangeCell(1, "x", NO_NUMBER, "two"),
        StrangeCell(3, "x", NO_NUMBER, "three"),
        StrangeCell(2, "x", MISSING_HERE, None),
    ]
    assert encoder.columns[0].cells(pl.Series(["1", "two"])) == [1.0, "two"]


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200])
def test_nominal_values_beyond_reckoning_are_an_error(value):
    with pytest.raises(ValueError, match=r"column 'x' has .* in data row 2 .*normal numbers must lie"):
        TableEncoder.fit({"x": [1.0, value, 3.0]})


@pytest.mark.parametrize(
    "value", [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1), datetime.time(3)]
)
def test_dates_in_a_column_of_numbers_are_an_error(value):
    with pytest.raises(ValueError, match=r"column 'x' must hold numbers.* is of type"):
        TableEncoder.fit({"x": [1.0, 2.0]}).encode({"x": [value]})


def test_versions_and_codes_are_no_dates():
    words = ["1.2.3", "10.1.4", "2024-1", "12-34-5678-9"] * 6
    assert TableEncoder.fit({"w": words}).n_encoded == 4


# --------------------------------------------------------------------------- categories that were asked for


def test_categories_that_look_like_numbers_are_taken_as_written():
    codes = ["01234"] * 6 + ["1234"] * 5 + ["99999"]
    encoder = TableEncoder.fit({"zip": codes, "x": range(12)}, categories=["zip"])
    assert encoder.columns[0].categories == ("01234", "1234")
    rows = encoder.encode({"zip": ["1234", "01234", "1234.0"], "x": [0, 0, 0]}).rows
    np.testing.assert_allclose(rows[:, :3], HALF * np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]]))
    # Text in a table with types was meant to be text; of CSV, leading zeros say so.
    for frame in (pl.DataFrame({"zip": codes}), Untyped(pl.DataFrame({"zip": codes}))):
        encoder = TableEncoder.fit(frame)
        assert encoder.columns[0].categories == ("01234", "1234")
        assert re.search(
            r"column 'zip' is taken as a category: it holds digits.*--category zip.*--number zip",
            encoder.notes[0].doubt,
        )
    assert TableEncoder.fit({"zip": codes}, numbers=["zip"]).columns[0].kind == "number"


@pytest.mark.parametrize(
    "kind", [pl.Int64, pl.UInt8, pl.Float64, pl.Decimal(5, 0), pl.String, pl.Categorical]
)
def test_categories_of_any_type_of_column_are_the_same(kind):
    codes = pl.Series("code", [3, 3, 7, 7, 7]).cast(pl.String).cast(kind)
    encoder = TableEncoder.fit({"code": codes}, categories="code", min_count=2)
    assert encoder.columns[0].categories == ("7", "3")
    for new in ([7, 4], [7.0, 4.0], ["7", "4"]):
        encoded = encoder.encode({"code": new})
        assert encoded.rows[0].tolist() == [HALF, 0.0]
        assert [(cell.row, cell.what) for cell in encoded.strange] == [(1, NEW_CATEGORY)]


def test_missing_numbers_are_a_category_of_their_own():
    encoder = TableEncoder.fit({"code": [1.0, 2.0, float("nan")] * 5}, categories=["code"])
    assert set(encoder.columns[0].categories) == {"1", "2", None}
    assert encoder.encode({"code": [None, float("nan")]}).strange == []


def test_text_that_looks_like_dates_may_be_categories():
    lots = ["1.2.2024", "1.3.2024"] * 6
    assert TableEncoder.fit({"lot": lots}, categories=["lot"]).n_encoded == 2
    assert TableEncoder.fit({"lot": [datetime.date(2024, 1, 1)] * 6}, categories=["lot"]).n_encoded == 1


def test_categories_that_cannot_be_are_errors():
    table = {"a": [1, 2] * 5, "b": [3, 4] * 5}
    with pytest.raises(
        ValueError,
        match=r"the table has no column 'z', which categories \(--category\) names; it has 'a', 'b'",
    ):
        TableEncoder.fit(table, categories=["z"])
    for other, option in (("ids", "--id"), ("drop", "--drop")):
        expected = rf"'a' is named by both categories \(--category\).*\({option}\)"
        with pytest.raises(ValueError, match=expected):
            TableEncoder.fit(table, categories=["a"], **{other: ["a"]})
    with pytest.raises(ValueError, match=r"'d' is to be a category.*but is of type Duration"):
        TableEncoder.fit({"d": [datetime.timedelta(1)] * 6}, categories=["d"])
    with pytest.raises(ValueError, match=r"column 'c' has 9 different values in 9 rows, none .* as 5 rows"):
        TableEncoder.fit({"c": range(9)}, categories=["c"])


def test_names_may_come_twice():
    table = {"a": [1, 2] * 5, "b": [3, 4] * 5, "i": range(10)}
    encoder = TableEncoder.fit(table, ids=["i", "i"], categories=["a", "a"])
    assert (encoder.ids, encoder.categories) == (("i",), ("a",))
    assert TableEncoder.from_dict(encoder.to_dict()) == encoder


@pytest.mark.parametrize("names", [["x"], ["z"], ["a", "a"], None])
def test_stored_categories_must_be_columns_of_categories(names):
    stored = TableEncoder.fit({"a": [1, 2] * 5, "x": range(10)}, categories=["a"]).to_dict()
    with pytest.raises(ValueError, match="categories"):
        TableEncoder.from_dict(stored | {"categories": names})


def test_cells_are_counted_as_what_they_are_encoded_as():
    nominal = {"c": [*COLORS, None], "b": [True, False] * 7}
    encoder = TableEncoder.fit(nominal)
    colors, flags = encoder.columns
    back = encoder.decode(encoder.encode(nominal).rows)
    expected = ["red"] * 6 + ["blue"] * 5 + ["(other)"] * 3
    assert colors.labels(pl.Series(nominal["c"])) == colors.labels(back["c"]) == expected
    assert flags.labels(pl.Series(["TRUE", "0", "maybe", None])) == ["true", "false", "maybe", None]
    assert flags.labels(back["b"]) == ["true", "false"] * 7


def test_cells_that_are_lists_are_an_error():
    with pytest.raises(ValueError, match=r"column 'x' is of type List.*must hold numbers, booleans, text"):
        TableEncoder.fit({"x": [[1], [2]]})


def test_columns_that_are_not_there_are_listed():
    encoder = TableEncoder.fit({"a": [1, 2], "b": [1, 3], "c": [4, 5]})
    with pytest.raises(ValueError, match=r"lacks 'a', 'c', which .* it has 'b', 'd'"):
        encoder.encode({"b": [1], "d": [1]})
    with pytest.raises(
        ValueError, match=r"the table has no column 'z', which ids \(--id\) names; it has 'a'"
    ):
        TableEncoder.fit({"a": [1, 2]}, ids=["z"])


@pytest.mark.parametrize("min_count", [0, -1, 2.5, "5", True])
def test_min_count_is_checked(min_count):
    with pytest.raises(ValueError, match="min_count must be an integer >= 1"):
        TableEncoder.fit({"a": [1, 2]}, min_count=min_count)


@pytest.mark.parametrize("frame", [{}, {"a": []}, {"a": [None, None]}, pl.DataFrame()])
def test_nothing_to_learn_from_is_an_error(frame):
    with pytest.raises(ValueError, match=r"rows and columns to learn from|all columns are empty"):
        TableEncoder.fit(frame)


# --------------------------------------------------------------------------- back again, and stored


def test_decoding_gives_back_the_table():
    nominal = mixed(3)
    nominal["ok"] = [True, False] * 100
    encoder = TableEncoder.fit(nominal)
    back = encoder.decode(encoder.encode(nominal).rows)
    expected = pl.DataFrame(nominal).with_columns(
        word=pl.when(pl.col("word") == "rare").then(pl.lit("(other)")).otherwise("word")
    )
    assert back.columns == list(nominal)
    np.testing.assert_allclose(back["x"].to_numpy(), expected["x"].to_numpy(), rtol=1e-11)
    assert back["x"].null_count() == expected["x"].null_count() > 0
    assert back["word"].to_list() == expected["word"].to_list()
    assert back["ok"].to_list() == expected["ok"].to_list()


def test_decoding_standardized_numbers_shows_no_rounding():
    x = [0.1, 0.2, 0.7, 12.3, 1e-5, 1e7]
    encoder = TableEncoder.fit({"x": x, "ok": [True, False] * 3})
    assert encoder.decode(encoder.encode({"x": x, "ok": [True] * 6}).rows)["x"].to_list() == x


def whole():
    """Return an encoder with every kind of column."""
    nominal = mixed(4)
    nominal |= {
        "ok": [True, None] * 100,
        "e": [None] * 200,
        "k": [3] * 200,
        "zip": ["01", "2"] * 100,
        "t": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d} {i % 24}:30" for i in range(199)] + ["never"],
        "p": [f"{1 + i % 50},5 %" for i in range(200)],
        "id": [f"i{i}" for i in range(200)],
    }
    return TableEncoder.fit(nominal, ids=["id"], drop=["y"], categories=["zip", "e"])


def test_storing_as_json_keeps_everything():
    encoder = whole()
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again == encoder
    new = mixed(5) | {"ok": [False, True] * 100, "e": ["?"] * 200, "k": [3] * 200, "zip": ["01"] * 200}
    new |= {"t": ["2024-01-01 10:00", "never"] * 100, "p": ["1,5%", "2,5 %"] * 100}
    one, other = encoder.encode(new), again.encode(new)
    np.testing.assert_array_equal(one.rows, other.rows)
    assert one.strange == other.strange
    assert len(one.strange) == 300


def test_the_description_has_a_line_for_every_column():
    lines = whole().describe()
    assert [line.split(":")[0] for line in lines] == ["x", "word", "ok", "e", "k", "zip", "t", "p", "id", "y"]
    assert "missing becomes" in lines[0]
    assert re.search("'a', 'b', 'c' and for a missing value, and one for the 1 rarer", lines[1])
    assert "any other is strange" in lines[2]
    assert "any value is strange" in lines[3]
    assert "always 3, any other value is strange; missing is strange" in lines[4]
    assert re.search(
        "a category, one indicator each for '01', '2'.*; a category because asked for$", lines[5]
    )
    assert sum("asked" in line for line in lines) == 1
    assert "learned from: hour of the day, weekday" in lines[6]
    assert "with a decimal comma, in '%'" in lines[7]


def changed(stored, rng):
    """Change something somewhere in a stored encoder."""
    odd = [
        None,
        -1,
        0,
        1e300,
        float("nan"),
        float("inf"),
        10**400,
        "",
        "x",
        True,
        [],
        {},
        [None],
        {"kind": 1},
    ]
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(stored)
    node, key = rng.choice(places)
    if rng.random() < 0.2:
        del node[key]
    else:
        node[key] = rng.choice(odd)
    return stored


def test_a_stored_encoder_that_was_changed_loads_and_works_or_is_a_value_error():
    rng, text = random.Random(0), json.dumps(whole().to_dict())
    new = {"x": [1.0, None], "word": ["a", "new"], "ok": [True, False], "e": [None, 1], "k": [3, None]}
    new |= {"t": ["2024-01-01", "?"], "p": ["1,5%", "x"]}
    n_loaded, said = 0, []
    for _ in range(800):
        try:
            encoder = TableEncoder.from_dict(changed(json.loads(text), rng))
        except ValueError as error:
            said.append(str(error))
            continue
        n_loaded += 1
        frame = {column.name: new.get(column.name, [0, 1]) for column in encoder.columns}
        rows = encoder.encode(frame).rows
        assert rows.shape == (2, encoder.n_encoded)
        assert np.isfinite(rows).all()
        encoder.decode(rows)
        encoder.describe()
    assert 50 < n_loaded < 750
    assert all(10 < len(text) < 400 for text in said)


@pytest.mark.parametrize(
    "stored", [None, [], "x", 5, {}, {"schema": 3}, {"schema": 2}, {"schema": True}, {"schema": 1}]
)
def test_what_is_no_stored_encoder_is_a_value_error(stored):
    with pytest.raises(ValueError, match=r"encoder|columns must be a list"):
        TableEncoder.from_dict(stored)


def test_an_encoder_of_the_first_schema_has_to_be_fitted_again():
    with pytest.raises(ValueError, match=r"schema 1, and this rankad reads 2: fit again"):
        TableEncoder.from_dict({**whole().to_dict(), "schema": 1})
