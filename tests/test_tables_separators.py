"""Points and commas that could stand before decimals or between thousands."""

import polars as pl
import pytest

from rankad.columns.separators import Points, ambiguous_groups, points_among_whole_numbers, stray_groups


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["999", "1.000"], Points.THOUSANDS),
        ([" -950 ", "-1.050", None], Points.THOUSANDS),
        (["100", "1.000"], Points.THOUSANDS),
        (["99", "1.000"], Points.DECIMALS),
        (["0", "1.000"], Points.CLEAR),
        (["1.000", "2.345"], Points.CLEAR),
        (["999", "998"], Points.CLEAR),
        (["999", "1.000", "1.5"], Points.CLEAR),
        (["1000", "1.000"], Points.CLEAR),
        (["999", "0.500"], Points.CLEAR),
        (["999", "1.000.000"], Points.CLEAR),
        ([], Points.CLEAR),
    ],
)
def test_points_among_whole_numbers(cells, expected):
    assert points_among_whole_numbers(pl.Series(cells, dtype=pl.String)) is expected


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
