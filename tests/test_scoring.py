"""One batch scored as a pure function, and files from Python."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rankad import KLPE, TableDetector, load, score_batch, score_file


def table_of(n, seed):
    rng = np.random.default_rng(seed)
    mode = rng.choice(["eco", "full"], size=n)
    return pl.DataFrame({"flow": rng.normal(5, 1, size=n) + (mode == "full"), "mode": mode})


@pytest.fixture(scope="module")
def detector():
    from rankad import RankAD

    inner = RankAD(0.05, bandwidth="D_K", C=0.1, landmarks=40, near_field=False, n_components=0)
    return TableDetector(inner).fit(table_of(400, 0))


@pytest.fixture(scope="module")
def new():
    return table_of(90, 1).with_columns(flow=pl.when(pl.int_range(90) == 7).then(99.0).otherwise("flow"))


def test_a_batch_has_the_answers_of_the_detector(detector, new):
    answers = score_batch(detector, new)
    assert list(answers) == ["p_value", "score", "alarm"]
    np.testing.assert_array_equal(answers["p_value"], detector.p_values(new))
    np.testing.assert_array_equal(answers["score"], detector.score_samples(new))
    np.testing.assert_array_equal(answers["alarm"], detector.predict(new) == -1)
    assert answers["alarm"][7]


@pytest.mark.parametrize("size", [1, 13, 90])
def test_batches_may_be_cut_anywhere(detector, new, size):
    parts = [score_batch(detector, new[at : at + size])["score"] for at in range(0, 90, size)]
    np.testing.assert_array_equal(np.concatenate(parts), detector.score_samples(new))


def test_arrow_columns_come_back_as_arrow_columns(detector, new):
    batch = pa.Table.from_pandas(new.to_pandas()).to_batches()[0]
    for columns in (batch, pa.Table.from_batches([batch])):
        answers = score_batch(detector, columns)
        assert isinstance(answers, pa.RecordBatch)
        assert answers.schema == pa.schema(
            {"p_value": pa.float64(), "score": pa.float64(), "alarm": pa.bool_()}
        )
        np.testing.assert_array_equal(answers["score"].to_numpy(), detector.score_samples(new))
    assert score_batch(detector, batch.slice(0, 0)).num_rows == 0


def test_columns_are_found_by_name(detector, new):
    turned = new.select("mode", "flow")
    np.testing.assert_array_equal(score_batch(detector, turned)["score"], detector.score_samples(new))
    np.testing.assert_array_equal(
        score_batch(detector, new.to_dict(as_series=False))["score"], detector.score_samples(new)
    )


def test_a_detector_of_arrays_takes_arrays_and_columns():
    rows = np.random.default_rng(0).normal(size=(200, 2))
    plain = KLPE(0.05).fit(rows)
    named = KLPE(0.05).fit(pd.DataFrame(rows, columns=["x", "y"]))
    for found in (
        score_batch(plain, rows),
        score_batch(plain, {"a": rows[:, 0], "b": rows[:, 1]}),
        score_batch(named, {"y": rows[:, 1], "x": rows[:, 0]}),
    ):
        np.testing.assert_array_equal(found["score"], plain.score_samples(rows))


def test_alpha_can_be_given_and_the_detector_stays_as_it_was(detector, new):
    before = detector.alpha
    answers = score_batch(detector, new, alpha=0.5)
    np.testing.assert_array_equal(answers["alarm"], answers["p_value"] <= 0.5)
    assert detector.alpha == before
    with pytest.raises(ValueError, match="alpha must be"):
        score_batch(detector, new, alpha=2)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_file_is_scored_like_its_rows(detector, new, tmp_path, suffix):
    model, table, out = tmp_path / "m.rankad", tmp_path / f"new.{suffix}", tmp_path / "scored.parquet"
    detector.save(model)
    write = {"csv": new.write_csv, "parquet": new.write_parquet, "jsonl": new.write_ndjson}
    write[suffix](table)
    told = []
    scored = score_file(table, model, out, progress=lambda reader, label: told.append((reader.rows, label)))
    written = pl.read_parquet(out)
    np.testing.assert_array_equal(written["p_value"].to_numpy(), load(model).p_values(new))
    assert (scored.n_rows, scored.n_alarms) == (90, written["alarm"].sum())
    assert told[0] == (0, "Scoring")


def test_without_a_place_for_rows_the_most_abnormal_are_explained(detector, new, tmp_path):
    model, table = tmp_path / "m.rankad", tmp_path / "new.csv"
    detector.save(model)
    new.write_csv(table)
    scored = score_file(table, str(model), alpha=0.02)
    assert scored.alpha == 0.02
    assert scored.most[0].number == 8
    assert scored.most[0].explanation.reasons[0].column == "flow"
    assert sorted(tmp_path.iterdir()) == [model, table]


def test_an_unknown_option_is_an_error(tmp_path):
    with pytest.raises(TypeError, match="colour"):
        score_file("new.csv", "m.rankad", colour="red")


def test_rows_in_the_place_of_a_detector_are_not_printed_whole(new):
    rows = np.zeros((500, 3))
    with pytest.raises(
        TypeError, match=r"detector must be a fitted detector, got .*rankad\.load\(path\)"
    ) as error:
        score_batch(rows, rows)
    assert len(str(error.value)) < 300
