"""--missing: values that stand for missing ones."""

import json

import numpy as np
import polars as pl
import pytest

import rankad
from cli_cases import QUICK, call
from rankad import RankAD


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Fit without selection."""
    monkeypatch.setattr(rankad, "RankAD", lambda alpha, **given: RankAD(alpha, **{**QUICK, **given}))


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    gone = rng.random(400) < 0.05
    frame = pl.DataFrame(
        {
            "flow": np.where(gone, -999.0, rng.normal(20, 2, size=400).round(2)),
            "a=b": np.where(gone, -999.0, rng.normal(20, 2, size=400).round(2)),
            "heat": rng.normal(size=400),
        }
    )
    frame.write_csv(tmp_path / "n.csv")
    return tmp_path / "n.csv"


def test_the_note_prints_the_option_and_the_option_settles_it(capsys, table, tmp_path):
    model = tmp_path / "m.rankad"
    said = call(capsys, "fit", table, "--model", model)
    assert "--missing flow=-999 (missing={'flow': '-999'})" in " ".join(said.err.split())
    said = call(capsys, "fit", table, "--model", model, "--missing", "flow=-999", "--missing", "a=b=-999")
    assert (said.status, said.err) == (0, "")
    assert [column.missing for column in rankad.load(model).encoder_.columns] == [True, True, False]
    assert "'-999' counts as missing" in " ".join(call(capsys, "inspect", model).out.split())
    said = call(capsys, "fit", table, "--model", tmp_path / "all.rankad", "--missing", "-999")
    assert (said.status, said.err) == (0, "")
    everywhere, by_name = rankad.load(tmp_path / "all.rankad"), rankad.load(model)
    assert everywhere.encoder_.columns == by_name.encoder_.columns


def test_new_rows_are_scored_as_if_the_cells_were_empty(capsys, table, tmp_path):
    model = tmp_path / "m.rankad"
    assert call(capsys, "fit", table, "--model", model, "--missing", "-999").status == 0
    rows = pl.read_csv(table).head(200)
    p_values = []
    for name, frame in (
        ("x.csv", rows),
        ("empty.csv", rows.with_columns(pl.when(pl.all() != -999).then(pl.all()))),
        ("x.parquet", rows),
    ):
        path, out = tmp_path / name, tmp_path / f"scored-{name}"
        frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
        said = call(capsys, "score", path, "--model", model, "--out", out)
        assert said.status == 0, said.err
        scored = pl.read_parquet(out) if path.suffix == ".parquet" else pl.read_csv(out)
        # Rows are written as they came.
        assert scored.select(rows.columns).equals(frame)
        p_values.append(scored["p_value"].to_list())
    assert p_values[0] == p_values[1] == p_values[2]
    said = call(capsys, "report", tmp_path / "x.csv", "--model", model, "--out", tmp_path / "r.html")
    assert said.status == 0, said.err


def test_find_has_it_too(capsys, table, tmp_path):
    said = call(capsys, "find", table, "--missing", "-999", "--json", "--model", tmp_path / "m.rankad")
    assert (said.status, said.err) == (0, "")
    assert [note["doubt"] for note in json.loads(said.out)["understood"]] == ["", "", ""]
    assert rankad.load(tmp_path / "m.rankad").encoder_.missing == ((None, "-999"),)


def test_a_column_that_is_not_there_and_an_empty_value_are_named(capsys, table, tmp_path):
    said = call(capsys, "fit", table, "--model", tmp_path / "m.rankad", "--missing", "flaw=-999")
    assert said.status == 1
    assert (
        "the table has no column 'flaw', which missing (--missing) names; it has 'flow', 'a=b', 'heat'"
        in said.err
    )
    said = call(capsys, "fit", table, "--model", tmp_path / "m.rankad", "--missing", "flow=")
    assert said.status == 1
    assert "missing must be numbers, texts or dates" in said.err
    said = call(capsys, "fit", table, "--model", tmp_path / "m.rankad", "--missing", "=NA()")
    assert "no cell of the table is '=NA()'" in said.err
