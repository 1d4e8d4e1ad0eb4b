"""Values that stand for missing ones, as the user says."""

import datetime
import warnings

import numpy as np
import polars as pl
import pytest

import rankad
from cli_cases import QUICK
from rankad import RankAD, TableDetector
from rankad.columns.inferred import ColumnWarning
from rankad.columns.missing_values import MissingMarker, parse_markers
from rankad.tables import TableEncoder, Untyped


def found(value, cells, dtype=None):
    return MissingMarker(None, value).matches(pl.Series("c", cells, dtype=dtype)).to_list()


@pytest.mark.parametrize(
    ("value", "cells", "dtype"),
    [
        ("-999", ["-999", "12", None], pl.String),
        ("-999", [" -999.00", "-99", ""], pl.String),
        ("ERR", ["ERR ", "err", None], pl.String),
        ("-999,9", ["-999,9", "-999.9", None], pl.String),
        ("9", ["9", "19", None], pl.Categorical),
        ("0", [0, 1, None], pl.Int64),
        ("999.9", [999.9, 999.0, None], pl.Float32),
        ("999.9", [999.9, 999.0, float("nan")], pl.Float64),
        ("inf", [float("inf"), float("-inf"), None], pl.Float64),
        ("FALSE", [False, True, None], pl.Boolean),
        ("-1", [datetime.timedelta(seconds=-1), datetime.timedelta(1), None], pl.Duration("ms")),
        ("1900-01-01", [datetime.date(1900, 1, 1), datetime.date(1900, 1, 2), None], pl.Date),
        ("01.01.1900", [datetime.datetime(1900, 1, 1), datetime.datetime(1900, 1, 1, 1), None], None),
        ("1900-01-01", ["1900-01-01 00:00:00", "1900-01-01 00:00:01", ""], pl.String),
    ],
)
def test_a_cell_is_found_by_what_it_is(value, cells, dtype):
    """The first is it, the others are not."""
    assert found(value, cells, dtype) == [True, False, False]


def test_values_that_no_cell_of_a_type_can_have_are_not_found():
    assert found("ERR", [1, 2], pl.Int64) == [False, False]
    assert found("ERR", [datetime.date(1900, 1, 1)], pl.Date) == [False]
    assert found("1", [[1], [2]]) == [False, False]


@pytest.mark.parametrize("value", ["", "  ", None, float("nan"), b"x"])
def test_what_cannot_be_written_is_refused(value):
    with pytest.raises(ValueError, match="missing must be numbers, texts or dates"):
        parse_markers([value])
    with pytest.raises(ValueError, match="missing must name columns by text, got 3; None stands for all"):
        parse_markers({3: 0})


def test_numbers_and_dates_of_python_and_numpy_are_taken():
    given = [-999, -999.0, np.float64(0.5), np.int64(7), True, datetime.date(1900, 1, 1), "off"]
    assert [each.value for each in parse_markers(given)] == ["-999", "0.5", "7", "true", "1900-01-01", "off"]
    assert parse_markers(-999) == parse_markers(np.array([-999])) == (MissingMarker(None, "-999"),)


def readings(seed, n=300):
    """Flow is -999 and the mode ? where nothing was measured."""
    rng = np.random.default_rng(seed)
    gone = rng.random(n) < 0.1
    return pl.DataFrame(
        {
            "flow": np.where(gone, -999.0, rng.normal(20, 2, size=n).round(2)),
            "mode": np.where(gone, "?", rng.choice(["eco", "boost"], size=n)),
            "ended": [datetime.date(1900, 1, 1) if bad else datetime.date(2024, 3, 1) for bad in gone],
            "heat": rng.normal(size=n),
        }
    )


def emptied(frame):
    return frame.with_columns(
        flow=pl.when(pl.col("flow") != -999).then("flow"),
        mode=pl.when(pl.col("mode") != "?").then("mode"),
        ended=pl.when(pl.col("ended") > datetime.date(1900, 1, 1)).then("ended"),
    )


TOLD = {"flow": -999, "mode": ["?"], "ended": datetime.date(1900, 1, 1)}


@pytest.mark.parametrize(
    "missing", [TOLD, [-999, "?", "1900-01-01"], {None: [-999, "?"], "ended": "1900-01-01"}]
)
@pytest.mark.filterwarnings("ignore:most of these rows have a cell")
def test_such_cells_are_treated_exactly_as_missing_ones(missing, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = TableDetector(RankAD(**QUICK), missing=missing).fit(readings(0))
        empty = TableDetector(RankAD(**QUICK)).fit(emptied(readings(0)))
    new = readings(1).with_columns(heat=pl.lit(None, dtype=pl.Float64))
    for rows in (readings(1), new):
        np.testing.assert_array_equal(told.p_values(rows), empty.p_values(emptied(rows)))
        assert told.strange_cells(rows) == empty.strange_cells(emptied(rows))
        assert told.explain(rows[:5]) == empty.explain(emptied(rows)[:5])
    told.save(tmp_path / "m.rankad")
    loaded = rankad.load(tmp_path / "m.rankad")
    assert loaded.encoder_ == told.encoder_
    np.testing.assert_array_equal(loaded.p_values(readings(1)), empty.p_values(emptied(readings(1))))
    # What it was told outlives another fit.
    again = loaded.fit(readings(0))
    np.testing.assert_array_equal(again.p_values(readings(1)), empty.p_values(emptied(readings(1))))


def test_text_of_a_file_is_treated_as_typed_cells_are():
    encoder = TableEncoder.fit(readings(0), missing=TOLD)
    text = readings(1).cast(pl.String)
    np.testing.assert_array_equal(encoder.encode(text).rows, encoder.encode(readings(1)).rows)
    assert encoder.encode(text).strange == []


def test_a_value_elsewhere_is_what_it_is():
    encoder = TableEncoder.fit(readings(0), missing={"flow": -999})
    (strange,) = encoder.encode(readings(0).head(1).with_columns(mode=pl.lit("-999"))).strange
    assert (strange.column, strange.value) == ("mode", "-999")


def test_the_card_says_so():
    encoder = TableEncoder.fit(readings(0), missing={"flow": [-999, -9]})
    (line,) = [line for line in encoder.describe() if line.startswith("flow: ")]
    assert line.endswith("; '-999', '-9' count as missing")
    assert sum("count as missing" in line for line in encoder.describe()) == 1


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(
        ValueError,
        match=r"the table has no column 'flaw', which missing \(--missing\) names; it has 'flow', 'mode'",
    ):
        TableDetector(missing={"flaw": -999}).fit(readings(0))


def test_a_value_that_no_cell_has_is_named():
    with pytest.warns(ColumnWarning, match="no cell of column 'heat' is '-99', which is to mark missing"):
        TableDetector(RankAD(**QUICK), missing=TOLD | {"heat": -99}).fit(readings(0))
    with pytest.warns(ColumnWarning, match="no cell of the table is '-98', which is to mark missing"):
        TableDetector(RankAD(**QUICK), missing=TOLD | {None: -98}).fit(readings(0))


@pytest.mark.parametrize(
    "stored", [{}, [0], [{"column": 1, "value": "x"}], [{"column": "flow"}], [{"column": None, "value": ""}]]
)
def test_a_model_that_stores_something_else_is_refused(stored):
    kept = TableEncoder.fit(readings(0), missing=TOLD).to_dict()
    with pytest.raises(ValueError, match="missing must"):
        TableEncoder.from_dict(kept | {"missing": stored})
    # Models of before had none.
    kept.pop("missing")
    assert TableEncoder.from_dict(kept).missing == ()


def test_decimal_commas_and_units_are_found_as_they_are_written():
    cells = [f"{v:.1f} °C".replace(".", ",") for v in np.random.default_rng(0).normal(20, 2, size=200)]
    frame = pl.DataFrame({"heat": [*cells, *["-999,0 °C"] * 9]})
    encoder = TableEncoder.fit(Untyped(frame), missing="-999,0 °C")
    assert (encoder.notes[0].doubt, encoder.columns[0].missing) == ("", True)
    assert encoder.columns[0].median < 30
