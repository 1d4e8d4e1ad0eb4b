"""Fits on rows in partitions are those of one process, whatever the partitions."""

import pickle

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from rankad import RankAD, TableDetector
from rankad.engines.fitting import fit_rank_ad, fit_table
from rankad.engines.partitions import InProcess, Layout, parquet_partitions
from rankad.engines.scoring import SharedDetector, score_blocks
from rankad.engines.steps import is_sampled, nearest_distances

NAMES = ("x", "y", "z")
PARAMS = {"landmarks": 50}


def rows_of(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) * [1, 5, 0.1]


def batch_of(rows, names=NAMES, numbers=None):
    columns = dict(zip(NAMES, rows.T, strict=True))
    numbered = {} if numbers is None else {"number": numbers}
    return pa.RecordBatch.from_pydict({**{name: columns[name] for name in names}, **numbered})


@pytest.fixture(scope="module")
def rows():
    return rows_of(20_000)


@pytest.fixture(scope="module")
def local(rows):
    return RankAD(**PARAMS).fit(rows)


@pytest.fixture(scope="module")
def new():
    return rows_of(500, seed=1)


def assert_same(found, local, new):
    np.testing.assert_array_equal(found.calibration_.scores, local.calibration_.scores)
    np.testing.assert_array_equal(found.training_rows_, local.training_rows_)
    np.testing.assert_array_equal(found.reference_rows_, local.reference_rows_)
    assert found.n_samples_fit_ == local.n_samples_fit_
    rows = new if not hasattr(found, "feature_names_in_") else pl.DataFrame(new, schema=list(NAMES))
    np.testing.assert_array_equal(found.p_values(rows), local.p_values(new))
    np.testing.assert_allclose(found.score_samples(rows), local.score_samples(new), rtol=0, atol=1e-9)


CUTS = {
    "one": [],
    "even": [5_000, 10_000, 15_000],
    "skewed": [10, 19_000],
    "empty at the ends and between": [0, 0, 7_000, 7_000, 20_000],
    "one row": [1, 2, 19_999],
}


@pytest.mark.parametrize("name", CUTS)
def test_the_model_is_that_of_one_process(name, rows, local, new):
    partitions = InProcess([[part] for part in np.split(rows, CUTS[name])])
    assert_same(fit_rank_ad(RankAD(**PARAMS), partitions, Layout()), local, new)


def test_columns_may_stand_in_another_order_in_each_partition(rows, local, new):
    a, b, c = np.split(rows, [4_000, 4_001])
    turned = [batch_of(a), batch_of(b, ("z", "x", "y")), batch_of(c, ("y", "z", "x"))]
    found = fit_rank_ad(RankAD(**PARAMS), InProcess([[batch] for batch in turned]), Layout(NAMES))
    assert found.feature_names_in_.tolist() == list(NAMES)
    assert_same(found, local, new)


def test_a_column_of_row_numbers_makes_the_order_of_rows_irrelevant(rows, local, new):
    order = np.random.default_rng(3).permutation(len(rows))
    parts = [[batch_of(rows[which], numbers=which)] for which in np.split(order, [100, 12_000])]
    layout = Layout(NAMES, number="number")
    assert_same(fit_rank_ad(RankAD(**PARAMS), InProcess(parts), layout), local, new)


def test_row_numbers_must_be_each_there_once(rows):
    numbers = np.arange(len(rows))
    layout = Layout(NAMES, number="number")
    for wrong, said in ((numbers + 1, "got 1 to 20000"), (numbers // 2, "come twice")):
        with pytest.raises(ValueError, match=said):
            fit_rank_ad(RankAD(), InProcess([[batch_of(rows, numbers=wrong)]]), layout)
    with pytest.raises(ValueError, match="as integers"):
        fit_rank_ad(RankAD(), InProcess([[batch_of(rows, numbers=numbers * 1.0)]]), layout)


@pytest.mark.parametrize("calibration", ["split", "in-sample"])
def test_other_ways_to_calibrate(calibration, rows, new):
    detector = RankAD(calibration=calibration, **PARAMS)
    parts = InProcess([[part] for part in np.array_split(rows, 7)])
    assert_same(fit_rank_ad(detector, parts, Layout()), detector.fit(rows), new)


def test_few_rows_are_gathered(new, few_folds):
    rows = rows_of(300)
    parts = InProcess([[part] for part in np.array_split(rows, 5)])
    assert_same(fit_rank_ad(RankAD(), parts, Layout()), RankAD().fit(rows), new)
    with pytest.raises(ValueError, match="8 rows or more to learn from, got 3"):
        fit_rank_ad(RankAD(), InProcess([[rows[:3]]]), Layout())


def test_rows_that_a_join_repeated_are_found_across_partitions(new):
    rows = rows_of(16_000)
    twice = np.concatenate([rows, rows[:6_000]])
    with pytest.warns(UserWarning, match="did a join repeat them"):
        local = RankAD(**PARAMS).fit(twice)
    with pytest.warns(UserWarning, match="did a join repeat them"):
        found = fit_rank_ad(RankAD(**PARAMS), InProcess([[p] for p in np.array_split(twice, 4)]), Layout())
    np.testing.assert_array_equal(found.repeated_rows_, local.repeated_rows_)
    assert_same(found, local, new)


def test_of_more_rows_than_the_limit_a_sample_takes_part(rows, new):
    fits = [
        fit_rank_ad(
            RankAD(**PARAMS), InProcess([[p] for p in np.array_split(rows, k)]), Layout(), max_rows=16_000
        )
        for k in (1, 6)
    ]
    assert_same(fits[1], fits[0], new)
    kept = np.flatnonzero(is_sampled(np.arange(20_000), 0.8))
    assert abs(len(kept) - 16_000) < 300
    expected = RankAD(**PARAMS).fit(rows[kept]).calibration_.scores
    np.testing.assert_array_equal(fits[0].calibration_.scores, expected)
    assert set(fits[0].training_rows_) <= set(kept)


def test_cells_that_cannot_be_learned_from_are_named(rows):
    bad = rows.copy()
    bad[15_000, 1], bad[16_000, 2] = np.nan, np.inf
    parts = InProcess([[batch_of(part)] for part in np.array_split(bad, 3)])
    with pytest.raises(
        ValueError, match=r"'y' \(NaN in 1 of 20000 rows, the first is row 15000\), 'z' \(inf"
    ):
        fit_rank_ad(RankAD(), parts, Layout(NAMES))
    text = InProcess([[pa.RecordBatch.from_pydict({"x": ["a"] * 20})]])
    with pytest.raises(ValueError, match="column 'x' is of type string"):
        fit_rank_ad(RankAD(), text, Layout(("x",)))
    with pytest.raises(ValueError, match="columns 'w' are missing"):
        fit_rank_ad(RankAD(), parts, Layout(("x", "w")))
    with pytest.raises(ValueError, match="trim must be 0"):
        fit_rank_ad(RankAD(trim=0.1), InProcess([[rows]]), Layout())


def test_nearest_distances_to_all_rows(rows):
    asked = rows_of(20, seed=9)
    parts = InProcess([[rows[:2]], [], [rows[2:9_000], rows[9_000:]]])
    slow = np.sort(np.linalg.norm(asked[:, None] - rows[None], axis=2), axis=1)[:, :5]
    np.testing.assert_allclose(nearest_distances(parts, Layout(), asked, 5), slow, atol=1e-9)


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    mode = rng.choice(["eco", "full", None], size=n, p=[0.5, 0.4, 0.1])
    flow = np.where(rng.random(n) < 0.05, None, rng.normal(5, 1, n) + (mode == "full"))
    heat = rng.normal(size=n)
    return pa.table(
        {"flow": pa.array(flow, pa.float64()), "mode": mode, "heat": heat, "number": np.arange(n)}
    )


TABLE_COLUMNS = ("flow", "mode", "heat")


@pytest.mark.parametrize("number", [None, "number"])
def test_tables_have_the_model_of_one_process(number, few_folds):
    table, columns = table_of(1_000), TABLE_COLUMNS
    local = TableDetector().fit(table.select(columns))
    cuts = [
        table.slice(0, 1),
        table.slice(1, 0),
        table.slice(1, 600).select(["heat", "mode", "number", "flow"]),
    ]
    parts = [part.to_batches() for part in (*cuts, table.slice(601))]
    found = fit_table(
        TableDetector(),
        InProcess(parts[::-1] if number else parts),
        Layout(columns, number=number),
    )
    new = table_of(200, seed=1).select(columns)
    np.testing.assert_array_equal(found.p_values(new), local.p_values(new))
    np.testing.assert_array_equal(found.score_samples(new), local.score_samples(new))


def test_of_a_large_table_some_rows_are_learned_from_and_all_others_calibrate(few_folds):
    table, columns = table_of(3_000), TABLE_COLUMNS
    found = fit_table(
        TableDetector(),
        InProcess([part.to_batches() for part in (table.slice(0, 100), table.slice(100))]),
        Layout(columns),
        max_rows=1_000,
    )
    chosen = is_sampled(np.arange(3_000), 1_000 / 3_000)
    local = TableDetector().fit(table.filter(chosen).select(columns))
    local.calibrate(table.filter(~chosen).select(columns))
    np.testing.assert_array_equal(found.calibration_.scores, local.calibration_.scores)


def test_parquet_folders_and_urls(rows, local, new, tmp_path):
    for at, part in enumerate(np.array_split(rows, 3)):
        pl.DataFrame(part, schema=list(NAMES)).write_parquet(tmp_path / f"part-{at}.parquet")
    for path in (str(tmp_path), tmp_path.as_uri()):
        assert_same(fit_rank_ad(RankAD(**PARAMS), parquet_partitions(path), Layout(NAMES)), local, new)


def test_blocks_are_scored_with_their_columns_kept(local, rows, new):
    named = RankAD(**PARAMS).fit(pl.DataFrame(rows, schema=list(NAMES)))
    shared = SharedDetector(named)
    sent = pickle.dumps(shared)
    assert pickle.loads(sent).detector is pickle.loads(sent).detector
    batch = batch_of(new, ("z", "y", "x"), np.arange(len(new)))
    (scored,) = score_blocks(shared, iter([batch]), Layout(NAMES), ("p", "s", "a"))
    assert scored.schema.names == ["z", "y", "x", "number", "p", "s", "a"]
    np.testing.assert_array_equal(scored.column("p").to_numpy(), local.p_values(new))
    assert len(next(score_blocks(shared, iter([batch.slice(0, 0)]), Layout(NAMES)))) == 0
    with pytest.raises(ValueError, match=r"the table lacks 'z', which .*; it has .* Add what is missing"):
        next(score_blocks(shared, iter([batch_of(new, ("x", "y"))]), Layout(NAMES)))


def test_parquet_is_written_in_several_files(new, tmp_path, monkeypatch):
    from rankad.engines import partitions

    monkeypatch.setattr(partitions, "_FILE_ROWS", 200)
    batch = batch_of(new)
    batches = [batch.slice(begin, 100) for begin in range(0, 500, 100)]
    partitions.write_parquet(batches, batch.schema, str(tmp_path / "out"))
    assert len(list((tmp_path / "out").iterdir())) == 3
    url = (tmp_path / "url").as_uri()
    partitions.write_parquet(partitions.read_parquet_batches(str(tmp_path / "out")), batch.schema, url)
    assert partitions.parquet_dataset(url).to_table().equals(pa.Table.from_batches([batch]))
    partitions.write_parquet([], batch.schema, str(tmp_path / "empty"))
    assert partitions.parquet_dataset(str(tmp_path / "empty")).count_rows() == 0
