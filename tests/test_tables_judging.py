"""The verdict on tables: faults planted in a known column are named, and nominal tables are left alone."""

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from rankad import KLPE, RankAD, TableDetector
from rankad.alarms.verdict import LEVEL
from rankad.columns.inferred import ColumnWarning
from rankad.tables.encoded_columns import CategoryColumn, NumberColumn
from rankad.tables.judging import Watch, chance_of
from rankad.tables.strange_cells import SAME_CATEGORY
from verdict_cases import CASES, N_NEW, N_NORMAL, QUICK, counted, fitted, judged, logged, machine

SEED = 20


@cache
def model(make):
    return fitted(make, np.random.default_rng(SEED))


@pytest.mark.parametrize("name", CASES)
def test_the_column_of_a_planted_fault_is_named(few_folds, name):
    case = CASES[name]
    rng = np.random.default_rng([SEED, 1])
    new = case.spoil(case.make(N_NEW, rng, first=N_NORMAL), rng)
    verdict = judged(model(case.make), new)
    assert verdict.is_off
    assert verdict.columns[0].column in case.columns
    assert verdict.columns[0].how in case.how


def gaussian(n, rng):
    return pl.DataFrame(rng.normal(size=(n, 4)), schema=list("abcd"))


def heavy(n, rng):
    return pl.DataFrame(rng.standard_t(2, size=(n, 3)), schema=list("abc"))


def counts(n, rng):
    return pl.DataFrame(rng.poisson(2.0, size=(n, 3)), schema=list("abc"))


def test_times_at_midnight_are_said_to_have_lost_the_time_of_day(few_folds):
    rng = np.random.default_rng([SEED, 2])
    new = logged(N_NEW, rng)
    detector = model(logged)
    days = new.with_columns(pl.col("started").dt.truncate("1d"))
    said = str(detector.verdict(days))
    assert (
        "in column started: its times are all at 00:00, in normal rows 0 %; was the time of day lost?" in said
    )
    assert said.endswith("P-values mean nothing until that is put right.")
    # One night, few rows, and one time that is none.
    assert detector.verdict(new.filter(pl.col("started").dt.hour() < 4)).columns == ()
    for fine in (days[:19], pl.concat([days, new[:1]]), new):
        assert all(column.how != "midnight" for column in detector.verdict(fine).columns)
    # Where half of the normal rows are dates, dates are nothing new.
    mixed = logged(N_NORMAL, rng)
    half = mixed.with_columns(
        pl.when(pl.int_range(pl.len()) % 3 > 0)
        .then(pl.col("started").dt.truncate("1d"))
        .otherwise("started")
        .alias("started")
    )
    verdict = fitted(lambda n, rng: half, rng).verdict(days)
    assert all(column.how != "midnight" for column in verdict.columns)


@pytest.mark.filterwarnings("ignore:Calibrated by a split")
def test_nominal_tables_are_left_alone_as_often_as_stated():
    rng, n_off, n_tables = np.random.default_rng(SEED), 0, 0
    for make in (machine, gaussian, heavy, counts):
        for calibration in ("split", "cross-fit"):
            for n, n_new in ((150, 20), (150, 2_000), (500, 300)):
                detector = fitted(make, rng, n, calibration=calibration)
                n_off += judged(detector, make(n_new, rng)).is_off
                n_tables += 1
    assert n_off <= binom.ppf(0.999, n_tables, LEVEL)


def test_batches_change_nothing(few_folds):
    detector = model(machine)
    rng = np.random.default_rng(5)
    new = machine(3_000, rng).with_columns(heat=pl.col("heat") + 8)
    assert judged(detector, new, batch=17) == judged(detector, new) == judged(detector, new, batch=2_999)


def test_two_columns_that_go_on_are_both_named(few_folds):
    def make(n, rng, first=0):
        at = np.arange(first, first + n)
        return gaussian(n, rng).with_columns(pl.Series("id", 100 * at), pl.Series("clock", 1e9 + 60.0 * at))

    rng = np.random.default_rng(6)
    verdict = judged(fitted(make, rng), make(400, rng, first=5_000))
    assert {column.column for column in verdict.columns[:2]} == {"id", "clock"}
    assert {column.how for column in verdict.columns[:2]} == {"goes on"}


def test_a_few_anomalies_are_no_move_of_the_table(few_folds):
    rng = np.random.default_rng(7)
    new = machine(500, rng)
    for at in range(0, 500, 10):
        column = ["flow", "power", "heat", "humidity"][at // 10 % 4]
        new[at, column] = new[at, column] * 3
    verdict = judged(model(machine), new)
    assert verdict.overall.kind in ("more", "some")
    assert not any(column.moved for column in verdict.columns)


def test_without_rows_there_is_a_verdict_and_no_column(few_folds, tmp_path):
    from rankad import load

    detector = fitted(machine, np.random.default_rng(SEED), near_field=False)
    detector.save(tmp_path / "m.rankad", rows=False)
    rng = np.random.default_rng(8)
    verdict = judged(load(tmp_path / "m.rankad"), machine(300, rng).with_columns(heat=pl.lit(0.0)))
    assert verdict.overall.kind == "more"
    assert (verdict.columns, verdict.has_rows) == ((), False)


def test_other_detectors_have_a_verdict(few_folds):
    rng = np.random.default_rng(9)
    detector = TableDetector(KLPE(0.05)).fit(gaussian(300, rng))
    assert not judged(detector, gaussian(100, rng)).is_off
    assert judged(detector, gaussian(100, rng) * 9).overall.kind == "more"


def test_trimmed_rows_are_counted_in(few_folds):
    rng = np.random.default_rng(10)
    detector = TableDetector(RankAD(0.05, trim=0.1, **QUICK)).fit(gaussian(400, rng))
    # All of those that are left calibrate.
    assert chance_of(detector).n_trimmed == 40
    detector.calibrate(gaussian(300, rng))
    assert chance_of(detector).n_trimmed == 0


def test_tables_without_rows_and_of_one_row_have_a_verdict(few_folds):
    detector = model(machine)
    assert judged(detector, machine(0, np.random.default_rng(0))).overall.kind == "empty"
    assert not judged(detector, machine(1, np.random.default_rng(0))).is_off


@pytest.mark.parametrize("name", list(CASES)[::3])
def test_the_verdict_of_a_detector_is_that_of_the_commands(few_folds, name):
    case, rng = CASES[name], np.random.default_rng([SEED, 2])
    new = case.spoil(case.make(N_NEW, rng, first=N_NORMAL), rng)
    # Printed, since a NaN in it differs from itself.
    assert repr(model(case.make).verdict(new)) == repr(judged(model(case.make), new))
    assert repr(model(case.make).verdict(new, alpha=0.2)) == repr(judged(model(case.make), new, 0.2))


def test_a_verdict_prints_what_is_said_of_python(few_folds):
    rng = np.random.default_rng(SEED)
    detector, usual = model(machine), machine(N_NEW, rng, first=N_NORMAL)
    assert str(detector.verdict(usual)).startswith("About as many alarms as normal rows raise.\n")
    n_alarms = int(np.count_nonzero(detector.predict(usual) < 0))
    assert f"{n_alarms} of {N_NEW} rows are alarms at 5 %, where " in str(detector.verdict(usual))
    number = next(column.name for column in detector.encoder_.columns if isinstance(column, NumberColumn))
    counting = usual.with_columns(pl.Series(number, np.arange(N_NEW) + 1e6))
    said = str(detector.verdict(counting)).splitlines()
    assert f"fit again without it (drop=[{number!r}])" in said[-1]


@pytest.mark.parametrize("kind", [RankAD, KLPE])
def test_rows_of_an_array_have_a_verdict(few_folds, kind):
    rng = np.random.default_rng(SEED)
    detector = kind(alpha=0.05).fit(rng.normal(size=(300, 3)))
    assert not detector.verdict(rng.normal(size=(200, 3))).is_off
    moved = detector.verdict(rng.normal([0, 0, 4], size=(200, 3)))
    assert moved.is_off
    if kind is RankAD:
        assert moved.columns[0].column == "column 2"
        assert "chiefly in column 2: its values are about " in str(moved)
    with pytest.raises(ValueError, match=r"has 2 features, but .* is expecting 3"):
        detector.verdict(np.zeros((5, 2)))


def test_a_column_that_is_written_in_another_way_is_said_where_rows_are_judged(few_folds):
    rng = np.random.default_rng(SEED)
    new = machine(N_NEW, rng, first=N_NORMAL)
    detector = model(machine)
    number = next(column.name for column in detector.encoder_.columns if isinstance(column, NumberColumn))
    commas = new.with_columns(pl.Series(number, [f"{value},5" for value in range(N_NEW)]))
    for judge in (detector.p_values, detector.predict):
        with pytest.warns(ColumnWarning, match=r"verdict\(X\) says which"):
            assert (judge(commas) < 0.05).all()
    verdict = detector.verdict(commas)
    assert verdict.columns[0].column == number
    assert str(verdict).endswith("written in another way than in the normal rows, put that right first.")
    word = next(column for column in detector.encoder_.columns if isinstance(column, CategoryColumn))
    upper = detector.verdict(new.with_columns(pl.col(word.name).cast(pl.String).str.to_uppercase()))
    assert (upper.columns[0].column, upper.columns[0].what) == (word.name, SAME_CATEGORY)
    assert str(upper).endswith("written in another way than in the normal rows, put that right first.")
    # One row in three is no reason to warn of the whole column.
    some = (
        pl.when(pl.int_range(pl.len()) % 3 == 0)
        .then(pl.lit("broken"))
        .otherwise(pl.col(number).cast(pl.String))
    )
    detector.p_values(new.with_columns(some.alias(number)))
    detector.p_values(commas.head(5))


@pytest.mark.parametrize("respell", ["upper", "space"])
def test_categories_in_another_spelling_are_said_where_rare_words_hide_them(few_folds, respell):
    rng = np.random.default_rng(SEED)

    def make(n):
        words = ["Berlin", "Hamburg", *(f"Dorf {at}" for at in range(60))]
        city = rng.choice(words, n, p=[0.5, 0.4, *[0.1 / 60] * 60])
        return pl.DataFrame({"city": city, "x": rng.normal(size=n)})

    detector = TableDetector(RankAD(**QUICK), alpha=0.05).fit(make(1_000))
    new, city = make(400), pl.col("city")
    assert not detector.verdict(new).columns
    other = city.str.to_uppercase() if respell == "upper" else city + " "
    some = pl.when(pl.int_range(pl.len()) % 4 == 0).then(other).otherwise(city)
    for spelt in (other, some):
        frame = new.with_columns(spelt.alias("city"))
        assert detector.strange_cells(frame) == []
        first = detector.verdict(frame).columns[0]
        assert (first.column, first.how) == ("city", "respelt")
        changed = (frame["city"] != new["city"]) & new["city"].is_in(detector.encoder_.columns[0].categories)
        assert first.share == pytest.approx(changed.mean())
        assert first.value in ("BERLIN", "Berlin ")
        assert "put right" in str(detector.verdict(frame))


def test_the_watch_keeps_few_rows(few_folds):
    rng = np.random.default_rng(11)
    make = counted(lambda at: at + 1)
    watch, detector = Watch(model(make), 0.05), model(make)
    for begin in range(0, 20_000, 5_000):
        part = make(5_000, rng, first=begin)
        watch.add(part, begin, detector.p_values(part))
    verdict = watch.verdict()
    assert verdict.overall.n_rows == 20_000
    assert verdict.n_compared == 2_000
    assert verdict.n_looked == 200
    assert verdict.columns[0].column == "number"


class TimeColumn(NumberColumn):
    """A column of times: a stand-in that is encoded as a number is."""

    kind = "time"


def test_a_time_that_goes_on_is_no_move(few_folds):
    def make(n, rng, first=0):
        return gaussian(n, rng).with_columns(pl.Series("hour", (np.arange(n) + first) % 24.0))

    rng = np.random.default_rng(12)
    detector = fitted(make, rng)
    night = make(400, rng).with_columns(hour=pl.Series(np.arange(400) % 6.0))
    assert judged(detector, night).columns[0].column == "hour"
    # The same column as one of times: a table of the night is what it is.
    columns = tuple(
        TimeColumn(**vars(column)) if column.name == "hour" else column
        for column in detector.encoder_.columns
    )
    detector.encoder_ = replace(detector.encoder_, columns=columns)
    verdict = judged(detector, night)
    assert not any(column.column == "hour" and column.moved for column in verdict.columns)


def test_rare_words_of_fresh_rows_are_no_move():
    """Which words are frequent enough was chance: fresh rows have "(other)" more often than nominal ones."""

    def words(n):
        numbers = [f"w{word}" for word in rng.integers(0, 130, size=n)]
        return pl.DataFrame({"x": rng.normal(size=n), "word": numbers})

    moved = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        with pytest.warns(UserWarning, match="column 'word'"):
            detector = TableDetector(RankAD(**QUICK)).fit(words(500))
        edge = next(column.edge for column in detector.encoder_.columns if column.name == "word")
        assert 0.05 < edge < 0.5
        fresh, watch = words(300), Watch(detector, 0.05)
        watch.add(fresh, 0, np.asarray(detector.p_values(fresh)))
        moved += any(column.moved for column in watch.verdict().columns)
    # One table in a hundred may be said to be off: the chance of two of eight is below 0.3 %.
    assert moved <= 1
