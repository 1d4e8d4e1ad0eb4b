"""Inferring columns: nothing is taken for what it is not without a warning that names it."""

import datetime
import re

import numpy as np
import polars as pl
import pytest

from rankad.columns.inference import infer_column
from rankad.columns.inferred import ColumnOptions
from rankad.tables.frames import Untyped
from rankad.tables.learning import learn_encoder
from table_battery import TABLES, tables

CASES = [(f"{name}-{seed}", made) for seed in range(3) for name, made in tables(seed)]


def notes_of(made):
    frame = made.frame()
    learned = learn_encoder(frame if made.typed else Untyped(frame), ColumnOptions(), min_count=5)
    return {note.name: note for note in learned.encoder.notes}, learned.encoder


def test_the_battery_is_large_enough():
    assert len(TABLES) >= 40


@pytest.mark.parametrize("made", [made for _, made in CASES], ids=[name for name, _ in CASES])
def test_no_column_of_the_battery_is_misread_in_silence(made):
    lone = not any(column.kind.strip("!") not in ("id", "text") for column in made.columns.values())
    if lone:
        with pytest.raises(ValueError, match="no column to learn from") as caught:
            notes_of(made)
        assert all(repr(name) in str(caught.value) for name in made.columns)
        return
    notes, encoder = notes_of(made)
    columns = {column.name: column for column in encoder.columns}
    frame = made.frame()
    for name, answer in made.columns.items():
        note = notes[name]
        warned = note.doubt.startswith(f"column {name!r}") and re.search(
            rf"--(\w|-)+ {name}\b|--decimal|--day", note.doubt
        )
        assert note.kind == answer.kind.strip("!") or warned, (note, answer.kind)
        assert warned or not answer.kind.endswith("!"), note
        assert (note.sure == "sure") == (not note.doubt)
        if answer.first is not None and note.kind == answer.kind.strip("!"):
            column, first = columns[name], frame[name].head(1)
            if note.kind == "number":
                np.testing.assert_allclose(column.read(first), [answer.first])
            else:
                assert column.times(first).to_list() == [answer.first]


def test_the_battery_is_taken_for_what_it_is():
    """Not only not misread: nearly all of it is read right."""
    right = wrong = 0
    for _, made in CASES:
        for name, answer in made.columns.items():
            others = [series for series in made.frame() if series.name != name]
            found = infer_column(made.frame()[name], typed=made.typed)
            right += found.kind == answer.kind.strip("!")
            wrong += found.kind != answer.kind.strip("!")
            assert len(others) < 10
    assert wrong <= 0.02 * right


ORDINARY = [
    "plain_floats",
    "plain_integers",
    "scientific",
    "grades",
    "versions",
    "ip_addresses",
    "letters_with_numbers",
    "sizes",
    "yes_and_no",
    "clock_times",
    "iso_dates",
    "measurements_named_after_what_has_ids",
    "months_in_words_and_years",
    "idle_and_signed",
    "columns_named_as_polars_names_its_own",
    "zeros_that_are_measured",
    "what_comes_and_goes",
    "large_whole_measurements",
    "a_minus_before_zero",
    "dashes_for_minus",
    "dates_in_other_languages",
    "numbers_as_large_as_dates",
]


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_columns_raise_no_doubt(name):
    """Warnings that come always are not read."""
    for seed in range(3):
        made = dict(tables(seed))[name]
        for column, answer in made.columns.items():
            found = infer_column(made.frame()[column], typed=made.typed)
            assert (found.kind, found.sure, found.doubt) == (answer.kind, "sure", "")


def shuffled(name, cells):
    return pl.Series(name, np.random.default_rng(0).permutation(cells).tolist())


def test_a_doubt_of_rare_words_counts_them():
    cells = ["120/80"] * 30 + ["118/79"] * 20 + [f"{high}/70" for high in range(100, 130)]
    found = infer_column(shuffled("pressure", cells), typed=False)
    assert (found.kind, found.sure) == ("category", "unsure")
    assert "30 of its 32 different values are rare ('100/70', '101/70', '102/70' ...)" in found.doubt
    assert "in 30 of 80 rows" in found.doubt
    assert "--category pressure" in found.doubt
    assert "--drop pressure" in found.doubt
    said = infer_column(
        pl.Series("pressure", cells), typed=False, options=ColumnOptions(categories=["pressure"])
    )
    assert said.doubt == ""


def test_one_rare_word_among_many_rows_is_no_doubt():
    for cells in (
        ["red"] * 100 + ["green"] * 90 + ["mauve"] * 2,
        ["v1"] * 100 + ["v2"] * 90 + ["v3"] * 2,
    ):
        assert infer_column(shuffled("color", cells), typed=False).doubt == ""


def test_cycles_do_not_grow_along_the_table():
    rng = np.random.default_rng(0)
    for values in (np.sin(np.arange(5_000) / 50), np.arange(5_000) % 24 + rng.random(5_000)):
        assert infer_column(pl.Series("x", values), typed=True).doubt == ""


def doubt_of(cells, **told):
    return infer_column(pl.Series("c", cells), typed=False, options=ColumnOptions(**told)).doubt


def test_points_between_thousands_are_named_with_both_readings_and_what_settles_them():
    cells = [f"{v:,}".replace(",", ".") for v in [*range(900, 1_100)]][::-1] * 2
    said = doubt_of(cells)
    assert "'1.099' could be 1099 or 1.099 and is read as the first, as three digits follow" in said
    assert (
        "confirm with --number c (numbers=['c']), or choose the second with --decimal '.' (decimal='.')"
        in said
    )
    assert doubt_of(cells, numbers=["c"]) == doubt_of(cells, decimal=".") == ""


def test_cells_with_the_other_decimal_mark_are_named():
    said = doubt_of(["5.1234", "4.9876", "5.5", "5.25", "5,934"])
    assert "(row 5: '5,934') and counts as missing, as some have commas before decimals" in said


def test_two_ways_of_writing_that_read_no_cell_both_are_named():
    said = doubt_of(["5,123.25", "5.123,25"] * 20)
    assert "as many cells are written like '5,123.25' as like '5.123,25'" in said
    assert "write all cells alike" in said


def test_two_spellings_of_one_number_are_named():
    said = doubt_of(["1.1", "1.10", "1.9", "2.0"] * 20)
    assert "one is written as '1.1' and as '1.10', as in versions" in said
    # Many different numbers are measured.
    assert doubt_of([f"{v / 10}" for v in range(50, 0, -1)] + ["1.10", "4.50"]) == ""


def test_a_placeholder_is_named_with_its_cells_and_what_settles_it():
    rng = np.random.default_rng(0)
    cells = [
        -999.0 if at % 20 == 3 else value for at, value in enumerate(rng.normal(20, 2, size=200).round(1))
    ]
    said = infer_column(pl.Series("c", cells), typed=True)
    assert (said.kind, said.sure) == ("number", "unsure")
    assert "-999 stands in 10 of 200 cells and lies far from all others" in said.doubt
    assert "--missing c=-999 (missing={'c': '-999'})" in said.doubt
    assert "--number c (numbers=['c'])" in said.doubt
    assert infer_column(pl.Series("c", cells), typed=True, options=ColumnOptions(numbers=["c"])).doubt == ""
    assert infer_column(pl.Series("c", cells).replace(-999.0, None), typed=True).doubt == ""


def test_a_placeholder_is_written_as_its_cells_are():
    rng = np.random.default_rng(0)
    cells = [f"{v:.1f} °C".replace(".", ",") for v in rng.normal(20, 2, size=200)]
    assert "--missing 'c=-999,9 °C'" in doubt_of([*cells, *["-999,9 °C"] * 9])
    days = [f"{day:02d}.03.2024" for day in range(1, 32)] * 3
    assert "--missing c=01.01.1900" in doubt_of([*days, *["01.01.1900"] * 5])
    assert "--missing c=19000101" in doubt_of(
        [*[f"202403{day:02d}" for day in range(1, 32)], *["19000101"] * 5]
    )


def test_cells_with_and_without_a_factor_are_named_with_what_they_are_taken_as():
    said = doubt_of(["45%", "0.47", "44%", "0.41"] * 10)
    assert "'%' stands in 20 cells (row 1: '45%', read as 45)" in said
    assert "not in others (row 2: '0.47', read as 0.47)" in said


def test_a_placeholder_does_not_lengthen_the_time_that_rows_span():
    days = [datetime.date(2024, 3, 1) + datetime.timedelta(days=at % 50) for at in range(200)]
    filled = [datetime.date(9999, 12, 31) if at % 4 == 0 else day for at, day in enumerate(days)]
    parts = [
        learn_encoder(pl.DataFrame({"c": cells, "x": range(200)}), ColumnOptions(numbers=["x"]), min_count=5)
        .encoder.columns[0]
        .parts
        for cells in (days, filled)
    ]
    assert parts == [("weekday",), ("weekday",)]


def rows_doubted(frame):
    return learn_encoder(Untyped(frame.cast(pl.String)), ColumnOptions(), min_count=5).warnings


def test_a_line_of_sums_at_the_end_is_named():
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"day": ["Mon", "Tue"] * 50, "sold": rng.normal(50, 9, size=100).round(2)})
    assert rows_doubted(rows) == ()
    sums = pl.DataFrame({"day": ["Total"], "sold": [float(rows["sold"].sum())]})
    (said,) = rows_doubted(pl.concat([rows, sums]))
    assert "the last row, 101, looks like a line of sums" in said
    assert "column 'day' has 'Total' there" in said
    (said,) = rows_doubted(pl.concat([rows, sums.with_columns(day=pl.lit("Mon"))]))
    assert "in column 'sold' it is the sum of all rows above" in said
    # A word that comes elsewhere, too, is one of the table's.
    total = rows.with_columns(day=pl.Series(["Total", "Tue"] * 50)).reverse()
    assert rows_doubted(total) == ()


def test_rows_without_any_cell_are_named():
    rows = pl.DataFrame({"a": ["1.5", "2.5"] * 20 + [None, None], "b": ["x", "y"] * 20 + [None, None]})
    (said,) = rows_doubted(rows)
    assert "2 rows of the table (row 41, 42) have no filled cell" in said
    assert rows_doubted(rows.with_columns(b=pl.col("b").fill_null("x"))) == ()


def test_the_row_that_is_named_is_no_number():
    assert "(row 3: '0xFF')" in doubt_of(["12", "14", "0xFF", "0xFF", "0xFF"] * 5)


def test_zeros_among_times_are_named_as_what_stands_for_missing_ones():
    cells = [0 if at % 20 == 7 else 1_700_000_000 + 60 * at for at in range(200)]
    assert "--missing c=0 (missing={'c': '0'})" in doubt_of([str(cell) for cell in cells])


def test_two_equal_measurements_side_by_side_are_no_batches():
    values = np.random.default_rng(0).choice(90_000, size=200, replace=False)
    values[51] = values[50]
    assert infer_column(pl.Series("c", values), typed=True).doubt == ""
