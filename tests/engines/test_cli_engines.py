"""``rankad fit`` and ``rankad score`` on Parquet folders."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import rankad
from rankad.cli.app import build


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"flow": rng.normal(5, 1, 600), "mode": rng.choice(["eco", "full"], 600)})
    (tmp_path / "normal").mkdir()
    for at in range(3):
        table[at * 200 : (at + 1) * 200].write_parquet(tmp_path / "normal" / f"{at}.parquet")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(build(), [str(each) for each in arguments])


@pytest.mark.parametrize("engine", ["local", "dask"])
@pytest.mark.filterwarnings("ignore::Warning")
def test_a_folder_is_fitted_and_scored(folder, few_folds, engine):
    if engine == "dask":
        pytest.importorskip("dask", reason="dask is not installed: pip install 'rankad[dask]'")
    fitted = run("fit", folder / "normal", "--model", folder / "m.rankad", "--engine", engine, "--json")
    assert fitted.exit_code == 0, fitted.output
    assert json.loads(fitted.stdout)["rows"] == 600
    whole = pl.read_parquet(folder / "normal" / "*.parquet")
    local = rankad.TableDetector(rankad.RankAD(0.05)).fit(whole)
    scored = run(
        *("score", folder / "normal", "--model", folder / "m.rankad", "--out", folder / "out"),
        *("--engine", engine, "--prefix", "r_", "--alpha", 0.02, "--json"),
    )
    assert scored.exit_code == 0, scored.output
    written = pl.read_parquet(folder / "out" / "*.parquet")
    np.testing.assert_array_equal(written["r_p_value"].to_numpy(), local.p_values(whole))
    assert json.loads(scored.stdout)["alarms"] == int((local.p_values(whole) <= 0.02).sum())


def test_what_does_not_go_together_is_said(folder, few_folds):
    fitted = run("fit", folder / "normal", "--model", folder / "m.rankad", "--engine", "local", "--quiet")
    assert fitted.exit_code == 0, fitted.output
    score = ("score", folder / "normal", "--model", folder / "m.rankad", "--engine")
    assert "it must be local, dask or spark, got 'flink'" in run(*score, "flink").output
    assert "name a folder" in run(*score, "local").output
    assert "does not go with" in run(*score, "local", "--out", folder / "o", "--sort").output
    assert "is there already" in run(*score, "local", "--out", folder / "normal").output


def test_a_table_that_is_no_parquet_is_named(folder):
    table = folder / "rows.csv"
    table.write_text("x\n1\n")
    said = " ".join(run("fit", table, "--model", folder / "m.rankad", "--engine", "local").exception.args)
    assert "rows.csv cannot be read as Parquet" in said
    assert "without an engine" in said
    said = run("fit", folder / "absent", "--model", folder / "m.rankad", "--engine", "local").exception
    assert isinstance(said, FileNotFoundError)
    assert said.strerror
    assert said.filename.endswith("absent")


def test_nothing_is_written_into_the_folder_that_is_read(folder, few_folds):
    rows, link = folder / "normal", folder / "link"
    link.hardlink_to(rows / "1.parquet")
    before = {path.name: path.read_bytes() for path in rows.iterdir()}
    for model in (rows / "0.parquet", rows / "m.rankad", link):
        fitted = run("fit", rows, "--model", model, "--engine", "local")
        assert fitted.exit_code == 2
        assert "is also read from" in " ".join(fitted.output.split())
    model = folder / "m.rankad"
    assert run("fit", rows, "--model", model, "--engine", "local", "--quiet").exit_code == 0
    scored = run("score", rows, "--model", model, "--out", rows / "scored", "--engine", "local")
    assert scored.exit_code == 2
    assert "which is read" in " ".join(scored.output.split())
    assert {path.name: path.read_bytes() for path in rows.iterdir()} == before
