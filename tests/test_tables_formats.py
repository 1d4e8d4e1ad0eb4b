"""Numbers as people write them: read right, or not at all."""

import numpy as np
import polars as pl
import pytest

from rankad.columns.formats import (
    PLAIN,
    NumberFormat,
    ambiguous_groups,
    points_among_whole_numbers,
    recognize_numbers,
    stray_groups,
)

VALUES = [0.5, -3.25, 1234.5, 70.0, -98765.25, 12.0, 1234567.75]


def written(value, decimal, thousands, unit=""):
    return f"{value:,.2f}".replace(",", "#").replace(".", decimal).replace("#", thousands) + unit


@pytest.mark.parametrize("unit", ["", "%", " mm/s", " €", " m3"])
@pytest.mark.parametrize(
    ("decimal", "thousands"),
    [(".", ""), (",", ""), (".", ","), (",", "."), (".", "'"), (",", " "), (".", " ")],
)
def test_what_was_written_so_is_read_so(decimal, thousands, unit):
    cells = pl.Series([written(value, decimal, thousands, unit) for value in VALUES])
    found = recognize_numbers(cells)
    assert (found.odd.size, found.rival) == (0, None)
    assert found.format.read(cells).to_list() == VALUES
    assert found.format.unit == unit.strip()


@pytest.mark.parametrize(
    "word",
    ["1.2.3", "192.168.1.1", "12:30", "2024-12-31", "+49 170 1234567", "1,23,4", "ERR", "1-2", "A12", "",
     "--5", "1 2", "12,34.5", "0x1F", "1e", "()"],
)  # fmt: skip
def test_what_is_no_number_is_read_as_none(word):
    cells = pl.Series(["1,234.50", "2.5", "3"] * 10 + [word])
    found = recognize_numbers(cells)
    assert found.odd.tolist() == [30]
    assert found.format.read(cells).null_count() == 1


@pytest.mark.parametrize(
    "form", [NumberFormat(","), NumberFormat(unit="%", bare=False), NumberFormat(".", ",")]
)
def test_a_format_reads_nothing_that_is_written_otherwise(form):
    odd = {",": ["1.5", "1,5 kg"], "%": ["1.5", "1.5 kg"], ".": ["1,5", "1'234.5"]}
    key = form.unit or form.decimal
    assert form.read(pl.Series(odd[key])).to_list() == [None, None]


def test_three_digits_after_every_comma_could_be_either():
    cells = pl.Series(["101,802", "99,123", "7"])
    either = recognize_numbers(cells)
    assert either.format.read(cells).to_list() == [101802.0, 99123.0, 7.0]
    assert either.rival is not None
    assert either.rival.read(cells).to_list() == [101.802, 99.123, 7.0]
    told = recognize_numbers(cells, decimal=",")
    assert (told.format.decimal, told.rival) == (",", None)
    # Another column has decimal commas, or a cell that is no group of three.
    assert recognize_numbers(cells, elsewhere=",").format.decimal == ","
    for cell in ("0,802", "1,5", "1234,567"):
        assert recognize_numbers(pl.Series([*cells, cell])).format == NumberFormat(",")
    assert recognize_numbers(pl.Series([*cells, "1,234.5"])).rival is None


def test_points_are_decimals_unless_other_columns_have_commas():
    cells = pl.Series(["1.234", "2.345"])
    assert recognize_numbers(cells)[:3] == (PLAIN, pytest.approx(np.empty(0)), None)
    german = recognize_numbers(cells, elsewhere=",")
    assert german.format.read(cells).to_list() == [1234.0, 2345.0]
    assert german.rival == PLAIN


def test_signs_of_accountants_are_read_where_cells_have_them():
    cells = pl.Series(["(12.50)", "3.10-", "7", "-2"])
    found = recognize_numbers(cells)
    assert found.format.read(cells).to_list() == [-12.5, -3.1, 7.0, -2.0]
    assert PLAIN.read(cells).to_list() == [None, None, 7.0, -2.0]


def test_a_second_unit_is_odd():
    cells = pl.Series(["1 kWh"] * 9 + ["1 MWh"])
    assert recognize_numbers(cells).odd.tolist() == [9]
    # A few cells with a unit among many without are odd, too.
    assert recognize_numbers(pl.Series(["1"] * 30 + ["5 kg"])).odd.tolist() == [30]


def test_points_are_thousands_where_other_cells_are_whole_numbers_below():
    cells = pl.Series(["950", "1.050", "999", "1.000"])
    found = recognize_numbers(cells)
    assert found.format.read(cells).to_list() == [950.0, 1050.0, 999.0, 1000.0]
    assert found.rival == PLAIN
    assert recognize_numbers(cells, decimal=".")[:3] == (PLAIN, pytest.approx(np.empty(0)), None)
    # A cell shows that they are decimals; zeros show nothing.
    for cell in ("1.05", "1.0505", "0.950", "1050"):
        assert recognize_numbers(pl.Series([*cells, cell]))[::2] == (PLAIN, None)
    assert recognize_numbers(pl.Series(["0", "1.050", "2.000"])).rival is None


def test_whole_numbers_far_below_leave_points_before_decimals():
    cells = pl.Series(["5", "5.123", "4.998"])
    found = recognize_numbers(cells)
    assert found.format == PLAIN
    assert found.rival is not None
    assert found.rival.read(cells).to_list() == [5.0, 5123.0, 4998.0]


@pytest.mark.parametrize("mark", [".", ","])
def test_the_other_mark_before_decimals_is_no_mark_between_thousands(mark):
    other = "," if mark == "." else "."
    cells = pl.Series([f"5{mark}1234", f"4{mark}9876", f"5{mark}5", f"5{other}123"])
    found = recognize_numbers(cells)
    assert (found.format, found.odd.tolist()) == (NumberFormat(mark), [3])
    # As thousands they would be no larger than others.
    cells = pl.Series([f"5{mark}1234", f"4{mark}9876", f"812{mark}5", f"5{other}123"])
    found = recognize_numbers(cells)
    assert found.format.read(cells).to_list() == [5.1234, 4.9876, 812.5, 5123.0]
    assert found.ambiguous.tolist() == [3]
    assert recognize_numbers(cells, decimal=mark).ambiguous.size == 0
    assert recognize_numbers(pl.Series([*cells, f"1{other}234{mark}5"])).ambiguous.size == 0


def test_hexadecimal_digits_are_no_unit():
    assert recognize_numbers(pl.Series(["12", "0xFF", "0xFF", "0x1F"])).odd.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["999", "1.000"], "thousands"),
        ([" -950 ", "-1.050", None], "thousands"),
        (["100", "1.000"], "thousands"),
        (["99", "1.000"], "decimals"),
        (["0", "1.000"], ""),
        (["1.000", "2.345"], ""),
        (["999", "998"], ""),
        (["999", "1.000", "1.5"], ""),
        (["1000", "1.000"], ""),
        (["999", "0.500"], ""),
        (["999", "1.000.000"], ""),
        ([], ""),
    ],
)
def test_points_among_whole_numbers(cells, expected):
    assert points_among_whole_numbers(pl.Series(cells, dtype=pl.String)) == expected


@pytest.mark.parametrize(
    ("others", "stray"),
    [
        (["5.1", "4.9"], True),
        # Not far above the others, or like none of them with decimals.
        (["5.1", "4.9", "900"], False),
        (["50.25", "51.5"], False),
        # No other cell says what stands before decimals.
        (["5", "4"], False),
    ],
)
def test_stray_groups(others, stray):
    cells = pl.Series([*others, "5,123"])
    values = cells.str.replace(",", "").cast(pl.Float64)
    assert stray_groups(cells, values, ".", ",").to_list() == [False] * len(others) + [stray]


def test_groups_are_in_doubt_until_as_many_cells_show_what_they_are():
    cells = ["812.5", "1,234", "2,345", "1,234,567"]
    assert ambiguous_groups(pl.Series(cells), ".", ",").tolist() == [1, 2]
    assert ambiguous_groups(pl.Series([*cells, "1,234.5"]), ".", ",").size == 0
    assert ambiguous_groups(pl.Series(["812", "1,234"]), ".", ",").size == 0


def test_points_before_a_decimal_comma_separate_thousands_even_if_no_cell_had_any():
    found = recognize_numbers(pl.Series(["99,36", "870,00", "4,5"]))
    assert found.format == NumberFormat(",")
    cells = {"1.290,00": 1290.0, "-12.345.678,5": -12345678.5, "99,50": 99.5}
    others = ["1.290", "99.50", "1,290.00", "12.90,00", "0.290,00", "1.290,00,0", None]
    assert found.format.read(pl.Series([*cells, *others])).to_list() == [
        *cells.values(),
        *[None] * len(others),
    ]
    assert NumberFormat(",", unit="€").read(pl.Series(["€ 1.290,00", "1.290,00 kg"])).to_list() == [
        1290.0,
        None,
    ]
