"""Times as people write them, and what comes round again."""

import datetime
import json

import numpy as np
import polars as pl
import pytest

from rankad.columns.inferred import ColumnOptions, ColumnWarning
from rankad.columns.times import TimeFormat, epoch_unit, parts_of, recognize_times
from rankad.tables import TableEncoder
from rankad.tables.learning import learn_encoder
from rankad.tables.strange_cells import MISSING_HERE, NO_CLOCK, NO_TIME, StrangeCell
from rankad.tables.time_column import TimeColumn

MOMENT = datetime.datetime(2024, 12, 31, 14, 5, 6)


@pytest.mark.parametrize(
    "pattern",
    [
        "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+01:00", "%Y/%m/%d %H:%M:%S.123",
        "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%d/%b/%Y:%H:%M:%S +0000",
        "%d %B %Y %H:%M:%S", "%B %d, %Y %H:%M:%S", "%a, %d %b %Y %H:%M:%S GMT", "%Y%m%d%H%M%S",
        "%d.%m.%y %H:%M:%S",
    ],
)  # fmt: skip
def test_every_way_to_write_a_time_is_read(pattern):
    cells = pl.Series([MOMENT.strftime(pattern)] * 3)
    found = recognize_times(cells)
    assert (found.odd.size, found.ambiguous) == (0, False)
    assert found.format.read(cells).to_list() == [MOMENT] * 3


@pytest.mark.parametrize(
    "word", ["1.2.3", "2024-13-01", "31.02.2024", "25:00", "12", "2024", "soon", "1/2", "10.0.0.1"]
)
def test_what_is_no_time_is_none(word):
    assert recognize_times(pl.Series([word])) is None


def test_all_cells_decide_what_comes_first():
    unclear = pl.Series(["03/04/2024", "05/06/2024"])
    assert recognize_times(unclear).ambiguous
    for day_first, month in ((True, 4), (False, 3)):
        found = recognize_times(unclear, day_first=day_first)
        assert not found.ambiguous
        assert found.format.read(unclear)[0].month == month
    for other, order in (("13/01/2024", "dmy"), ("01/13/2024", "mdy")):
        found = recognize_times(pl.Series([*unclear, other]))
        assert (found.format.orders, found.ambiguous) == ((order,), False)


def test_numbers_of_this_century_are_times_since_1970():
    seconds = MOMENT.replace(tzinfo=datetime.UTC).timestamp()
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        values = np.array([seconds, seconds + 60]) * factor
        assert epoch_unit(values) == unit
        for cells in (
            pl.Series(values),
            pl.Series(values.astype(np.int64)),
            pl.Series(values.astype(np.int64)).cast(pl.String),
        ):
            assert TimeFormat(epoch=unit).read(cells)[0] == MOMENT
    assert epoch_unit(np.array([1.0, 2e9])) == ""


def every(n, **step):
    return [
        MOMENT + datetime.timedelta(**{name: at * size for name, size in step.items()}) for at in range(n)
    ]


@pytest.mark.parametrize(
    ("times", "parts"),
    [
        (every(20, hours=1), ()),
        (every(60, hours=1), ("hour",)),
        (every(30, days=1), ("weekday",)),
        (every(200, days=2, hours=5), ("hour", "weekday", "month")),
        (every(30, weeks=4), ("month",)),
        ([MOMENT] * 20, ()),
        ([datetime.datetime(1970, 1, 1, hour) for hour in range(20)], ("hour",)),
    ],
)
def test_only_what_comes_round_again_is_learned_from(times, parts):
    assert parts_of(pl.Series(times)) == parts


def test_midnight_is_near_midnight_and_parts_come_back_in_words():
    times = every(2000, hours=7)
    column = TimeColumn.learn(pl.Series("t", times), TimeFormat()).column
    assert (column.parts, column.width, column.missing) == (("hour", "weekday", "month"), 6, False)
    cells = pl.Series("t", [datetime.datetime(2025, 1, 5, 23, 59), datetime.datetime(2025, 1, 6, 0, 1)])
    out = np.empty((2, 6))
    assert column.encode(cells, out) == []
    assert np.linalg.norm(out[0, :2] - out[1, :2]) < 0.01
    np.testing.assert_allclose(np.linalg.norm(out.reshape(2, 3, 2), axis=2), 1.0)
    assert (
        column.cells(cells)
        == column.decode(out).to_list()
        == ["23:59, Sunday, January", "00:01, Monday, January"]
    )


def test_what_is_no_time_is_strange_and_the_raw_time_does_not_matter():
    cells = [f"{time:%Y-%m-%d %H:%M}" for time in every(500, hours=7)]
    column = TimeColumn.learn(pl.Series("t", cells), TimeFormat(("ymd",))).column
    out = np.empty((4, column.width))
    found = column.encode(pl.Series("t", ["2090-01-01 10:00", "soon", None, "2024-01-01 10:00"]), out)
    assert found == [StrangeCell(1, "t", NO_TIME, "soon"), StrangeCell(2, "t", MISSING_HERE, None)]
    np.testing.assert_allclose(out[0, :2], out[3, :2])
    gaps = TimeColumn.learn(
        pl.Series("t", [*cells, None, None, "n.n.", "n.n."]), TimeFormat(("ymd",)), ("n.n.",)
    )
    assert (gaps.column.missing, gaps.singletons.size) == (True, 0)
    assert gaps.column.encode(pl.Series("t", [None, "n.n."]), np.empty((2, gaps.column.width))) == []


def test_times_of_all_types_are_the_same():
    column = TimeColumn("t", ("hour",), False, TimeFormat(("ymd",)))
    aware = MOMENT.replace(tzinfo=datetime.UTC)
    for cell in (MOMENT, aware, "2024-12-31 14:05:06", "2024-12-31T14:05:06+05:00"):
        assert column.times(pl.Series([cell])).to_list() == [MOMENT]
    assert column.times(pl.Series([MOMENT.date()])).to_list() == [datetime.datetime(2024, 12, 31)]
    with pytest.raises(ValueError, match="column 't' must hold times"):
        column.times(pl.Series("t", [[1]]))


def test_a_zone_that_normal_rows_did_not_have_is_said():
    own = pl.Series("t", every(500, hours=7))
    encoder = TableEncoder.fit(pl.DataFrame({"t": own}))
    with pytest.warns(
        ColumnWarning, match="column 't' has times in the zone UTC, and those of normal rows had none"
    ):
        encoded = encoder.encode(pl.DataFrame({"t": own.dt.replace_time_zone("UTC")}))
    np.testing.assert_array_equal(encoded.rows, encoder.encode(pl.DataFrame({"t": own})).rows)
    # Days are the same in most zones, and whoever learns from them alone need not care.
    days = pl.DataFrame({"t": pl.Series("t", every(200, hours=24))})
    of_days = TableEncoder.fit(days)
    assert "hour" not in of_days.columns[0].parts
    of_days.encode(days.with_columns(pl.col("t").dt.replace_time_zone("UTC")))


def test_times_with_a_zone_are_read_on_the_clock_of_normal_rows():
    own = pl.Series("t", every(500, hours=7)).dt.replace_time_zone("Europe/Berlin", ambiguous="earliest")
    learned = learn_encoder(pl.DataFrame({"t": own}), ColumnOptions(), min_count=5).encoder
    again = TableEncoder.from_dict(json.loads(json.dumps(learned.to_dict())))
    for encoder in (learned, again):
        assert "on the clock of Europe/Berlin" in encoder.describe()[0]
        usual = encoder.encode(pl.DataFrame({"t": own})).rows
        for zone in ("UTC", "Asia/Tokyo"):
            moved = pl.DataFrame({"t": own.dt.convert_time_zone(zone)})
            np.testing.assert_array_equal(encoder.encode(moved).rows, usual)
        # What has no zone is read as it stands.
        np.testing.assert_array_equal(
            encoder.encode(pl.DataFrame({"t": own.dt.replace_time_zone(None)})).rows, usual
        )
    older = learned.to_dict()
    assert older["columns"][0].pop("zone") == "Europe/Berlin"
    assert TableEncoder.from_dict(older).columns[0].zone == ""
    for forged in ("Nowhere", 5, None):
        older["columns"][0]["zone"] = forged
        with pytest.raises(ValueError, match="zone of column 't' must be a time zone"):
            TableEncoder.from_dict(older)


def test_a_date_without_its_time_of_day_is_strange_where_hours_are_learned_from():
    cells = [f"{time:%d.%m.%Y %H:%M}" for time in every(500, hours=7)]
    column = TimeColumn.learn(pl.Series("t", cells), TimeFormat(("dmy",))).column
    out = np.empty((2, column.width))
    found = column.encode(pl.Series("t", ["01.02.2024", "01.02.2024 07:00"]), out)
    assert found == [StrangeCell(0, "t", NO_CLOCK, "01.02.2024")]
    day = datetime.date(2024, 2, 1)
    assert column.encode(pl.Series("t", [day, day]), out) == [
        StrangeCell(r, "t", NO_CLOCK, day) for r in (0, 1)
    ]
    # Where nominal rows have such cells, they are nothing special; a single one would be strange to them.
    mixed = TimeColumn.learn(pl.Series("t", [*cells, "01.02.2024", "02.02.2024"]), TimeFormat(("dmy",)))
    assert mixed.column.encode(pl.Series("t", ["01.02.2024"]), np.empty((1, mixed.column.width))) == []
    assert TimeColumn.learn(
        pl.Series("t", [*cells, "01.02.2024"]), TimeFormat(("dmy",))
    ).singletons.tolist() == [500]


@pytest.mark.parametrize(
    ("cells", "orders"),
    [
        (["3/1/24", "3/21/24", "10/11/24"], ("mdy slashed short",)),
        (["21/3/24", "1/3/24 14:05"], ("dmy slashed short",)),
        (["01-Mar-24", "2 Apr 24"], ("dmy in words short",)),
        (["01.03.24", "21.03.24"], ("dmy short",)),
    ],
)
def test_years_of_two_digits(cells, orders):
    found = recognize_times(pl.Series(cells))
    assert (found.format.orders, found.odd.size, found.ambiguous) == (orders, 0, False)
    assert found.format.read(pl.Series(cells)).dt.year().to_list() == [2024] * len(cells)


def test_months_have_no_weekday():
    months = [datetime.datetime(2020 + at // 12, at % 12 + 1, 1) for at in range(40)]
    assert parts_of(pl.Series(months)) == ("month",)
    assert parts_of(pl.Series([month + datetime.timedelta(days=1) for month in months])) == (
        "weekday",
        "month",
    )


def test_times_with_a_type_are_read_from_text_too():
    moments = [datetime.datetime(2024, 3, 1, 14, 5), datetime.datetime(2025, 1, 31)]
    text = pl.Series(["2024-03-01T14:05:00", "2025-01-31", "soon"])
    assert TimeFormat().read(text).to_list() == [*moments, None]


def test_days_as_excel_counts_them_are_read_with_and_without_a_type_and_kept():
    moments = [datetime.datetime(1999, 12, 31, 23, 59, 59), datetime.datetime(2024, 2, 29, 6)]
    days = [36525.99998842593, 45351.25]
    told = TableEncoder.fit({"t": days * 20, "x": range(40)}, times=["t"], numbers=["x"])
    kept = TableEncoder.from_dict(told.to_dict())
    assert kept == told
    for cells in (pl.Series(days), pl.Series([str(day) for day in days])):
        assert kept.columns[0].times(cells).to_list() == moments
    assert kept.columns[0].times(pl.Series([1e9, float("nan")])).to_list() == [None, None]
    with pytest.raises(ValueError, match="or as days as Excel counts them"):
        TableEncoder.fit({"t": [5.0, 7.0]}, times=["t"])
