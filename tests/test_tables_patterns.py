"""Small patterns by which columns are inferred: of numbers, of words, of names, of likely missing markers."""

import numpy as np
import polars as pl
import pytest

from rankad.columns import column_names
from rankad.columns import number_patterns as patterns
from rankad.columns.infer_text import _distinguishable, _may_be_durations
from rankad.columns.infer_words import _same_pattern
from rankad.columns.missing_values import _is_code, likely_marker
from rankad.columns.times import TimeFormat, epoch_unit, excel_days, label
from rankad.columns.words import leading_zeros, least_count
from rankad.tables import TableEncoder

RNG = np.random.default_rng(0)
METERS = np.cumsum(RNG.integers(1, 90, size=(100, 3)), axis=0) + np.array([0.0, 50_000, 90_000])
HUNDRED = np.arange(100.0)


@pytest.mark.parametrize(
    ("pattern", "values", "expected"),
    [
        (patterns.only_grows, HUNDRED, True),
        (patterns.only_grows, np.sort(RNG.integers(0, 9, 100)), False),
        (patterns.follows_row_order, HUNDRED + RNG.normal(size=100), 1),
        (patterns.follows_row_order, -HUNDRED + RNG.normal(size=100), -1),
        (patterns.follows_row_order, RNG.normal(size=100), 0),
        (patterns.never_returns, np.repeat([2021.0, 2022.0, 2023.0], 20), True),
        (patterns.never_returns, np.tile([1.0, 2.0, 3.0], 20), False),
        (patterns.regular_steps, np.arange(30) * 0.1, True),
        (patterns.regular_steps, np.exp(np.arange(30.0)), False),
        (patterns.is_permutation, RNG.permutation(1000) * 1.0, True),
        (patterns.is_permutation, RNG.integers(0, 10**9, 1000) * 1.0, False),
        (patterns.looks_like_ids, RNG.integers(0, 2**32, 100) * 1.0, True),
        (patterns.looks_like_ids, RNG.permutation(1000) * 1.0, False),
        (patterns.fill_their_digits, np.random.default_rng(0).integers(0, 10**6, 200) * 1.0, True),
        (patterns.fill_their_digits, np.random.default_rng(0).integers(0, 700_000, 200) * 1.0, False),
        (patterns.are_codes, np.array([200.0, 301, 404, 500] * 20), True),
        (patterns.are_codes, np.arange(60.0) % 6 * 10, False),
        (patterns.interleaved_counters, METERS.ravel(), 3),
        (patterns.interleaved_counters, RNG.normal(size=300), 0),
        (
            patterns.date_in_digits,
            np.array([*range(202301, 202313)]) * 1.0,
            "year and month",
        ),
        (patterns.date_in_digits, np.arange(202300.0, 202400), ""),
        (patterns.days_since, np.random.default_rng(0).integers(43_000, 45_500, 200) * 1.0, "days as Excel"),
        (patterns.days_since, np.random.default_rng(0).normal(45e3, 400, 200).round(), ""),
        (epoch_unit, np.array([1.7e9, 1.7e9 + 60]), "s"),
        (epoch_unit, np.array([5.0, 7.0]), ""),
        (excel_days, np.array([45123.0, 45124.5]), True),
        (excel_days, np.array([45123.0, 100.0]), False),
    ],
)
def test_patterns_of_numbers(pattern, values, expected):
    found = pattern(values)
    assert found == expected or (expected and isinstance(found, str) and found.startswith(expected))


@pytest.mark.parametrize(
    ("others", "value", "is_marker"),
    [
        (RNG.normal(20, 2, size=97), -999.0, True),
        (RNG.normal(20, 2, size=97), 0.0, True),
        (np.random.default_rng(0).gamma(2, 2, size=97), 0.0, False),
    ],
)
def test_likely_markers(others, value, is_marker):
    marker = likely_marker(np.append(others.round(1), [value] * 3))
    assert (marker is not None and marker.value == value) == is_marker


def test_numbers_that_are_written_for_missing_ones():
    codes = [value for value in (-1.0, 1.0, -9.0, 99.0, 99.99, 98.0, 65535.0) if _is_code(value)]
    assert codes == [-1.0, -9.0, 99.0, 99.99, 65535.0]


@pytest.mark.parametrize(
    ("pattern", "words", "expected"),
    [
        (leading_zeros, ["01067", "80331"], True),
        (leading_zeros, ["0", "12", "0.5"], False),
        (_same_pattern, ["3/10", "12/10"], True),
        (_same_pattern, ["A1", "B1"], False),
        (lambda words: _may_be_durations(words, TimeFormat(("clock",))), ["07:49", "13:05"], True),
        (lambda words: _may_be_durations(words, TimeFormat(("clock",))), ["07:49:10", "13:05:10"], False),
        (
            lambda words: _distinguishable(words, np.array([1e16, 1e16])),
            [f"1{'0' * 15}1", f"1{'0' * 15}2"],
            False,
        ),
    ],
)
def test_patterns_of_words(pattern, words, expected):
    assert pattern(pl.Series(words)) == expected


@pytest.mark.parametrize("name", ["zip", "customerId", "account_number", "idClient", "ZIP-code"])
def test_names_of_ids(name):
    assert column_names.suggests_id(name)


@pytest.mark.parametrize("name", ["account_balance", "id_count", "rpm_no", "number", ""])
def test_names_of_measurements(name):
    assert not column_names.suggests_id(name)


def test_parts_of_times_are_labelled():
    assert [label("hour", 0.5), label("weekday", 6 / 7), label("month", 0.999)] == [
        "12:00",
        "Sunday",
        "December",
    ]


def test_a_word_needs_more_rows_in_larger_tables():
    assert [least_count(300, 5), least_count(5000, 5)] == [5, 25]


STEPS = np.random.default_rng(0).uniform(0.05, 0.3, 400)


def learned(name, cells):
    """Return the encoder of a table with this column, and what it doubts of it."""
    frame = pl.DataFrame({name: cells, "x": np.random.default_rng(1).normal(size=400)})
    encoder = TableEncoder.fit(frame)
    return encoder, {note.name: note.doubt for note in encoder.notes}.get(name, "")


@pytest.mark.parametrize(
    "cells",
    [
        [f"{value:.1f}".replace(".", ",") for value in np.arange(10_000, 10_040, 0.1)[:400]],
        [f"{value} kWh" for value in range(10_000, 10_400)],
        [f"{value:,}".replace(",", ".") for value in range(10_000, 10_400)],
    ],
    ids=["decimal comma", "unit", "points between thousands"],
)
def test_counters_are_not_learned_from_however_they_are_written(cells):
    encoder, doubt = learned("count", cells)
    assert "is taken as an id and not learned from" in doubt
    assert [column.name for column in encoder.columns] == ["x"]
    assert encoder.ids == ("count",)


@pytest.mark.parametrize(
    ("power", "taken_as", "used"), [(1, "an id", ["x"]), (9, "a number", ["hours", "x"])]
)
@pytest.mark.parametrize("unit", ["", " h"])
def test_what_is_said_of_a_column_is_what_is_done_with_it(unit, power, taken_as, used):
    hours = 1_000 + np.cumsum((5 * STEPS) ** power)
    encoder, doubt = learned("hours", [f"{value:.6f}{unit}".replace(".", ",") for value in hours])
    assert f"is taken as {taken_as}" in doubt
    assert [column.name for column in encoder.columns] == used


def test_days_of_excel_with_a_decimal_comma_are_numbers_and_said_to_be():
    days = 45_000 + np.cumsum(np.random.default_rng(0).uniform(0.01, 0.05, 400))
    encoder, doubt = learned("date", [f"{value:.4f}".replace(".", ",") for value in days])
    assert "'date' is taken as a number" in doubt
    assert "times are read from plain numbers alone" in doubt
    assert encoder.columns[0].name == "date"


def test_options_that_notes_name_can_be_pasted():
    _, doubt = learned("run time (h)", range(10_000, 10_400))
    assert "--id 'run time (h)' (ids=['run time (h)'])" in doubt
