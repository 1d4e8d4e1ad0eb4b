"""Cells that a spreadsheet would take for formulas: neutralized where asked for, and only there."""

import csv

import polars as pl
import pytest

from cli_cases import call, cells, make_files, read_text
from rankad.io.errors import TableError
from rankad.io.output import without_formulas
from rankad.io.table_files import open_output

FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "=",
    "-",
    "+x",
    "\uff1d1",
]
NUMBERS = ["-5", "+5", "-1.5e-3", "+.5", "-5 ", "-inf", "1"]
OTHERS = ["x=1", "a-b", " ", "'=1", "", "é"]


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical])
def test_formulas_get_a_quote_and_nothing_else_does(kind):
    frame = pl.DataFrame({"a": pl.Series([*FORMULAS, *NUMBERS, *OTHERS, None]).cast(kind)})
    expected = [f"'{cell}" for cell in FORMULAS] + NUMBERS + OTHERS + [None]
    assert without_formulas(frame)["a"].to_list() == expected


def test_names_of_columns_are_cells_too():
    frame = pl.DataFrame({"=a": [1.0], "-5": [True], "@b": ["@c"]})
    assert without_formulas(frame).to_dicts() == [{"'=a": 1.0, "-5": True, "'@b": "'@c"}]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("formulas"))


@pytest.mark.parametrize("options", [[], ["--sort"], ["--alarms-only", "--alpha", "0.9"], ["--resume"]])
@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.csv.gz"])
def test_score_neutralizes_formulas_where_asked_for(files, capsys, tmp_path, options, name):
    if name.endswith("gz") and options == ["--resume"]:
        pytest.skip("compressed files cannot be resumed")
    frame = read_text(files.new)
    ids = [(FORMULAS + NUMBERS)[at % 18] for at in range(frame.height)]
    frame = frame.with_columns(pl.Series("reading", ids), pl.lit("=1").alias("=note"))
    frame.write_csv(tmp_path / "t.csv")
    arguments = ["score", tmp_path / "t.csv", "--model", files.model, *options, "--out"]
    assert call(capsys, *arguments, tmp_path / name).status == 0
    assert call(capsys, *arguments, tmp_path / f"n{name}", "--neutralize-formulas").status == 0
    separator = "\t" if name == "out.tsv" else ","
    plain, neutral = (
        pl.read_csv(tmp_path / each, separator=separator, infer_schema=False) for each in (name, f"n{name}")
    )
    assert "=note" in plain.columns
    assert plain.rename({"=note": "'=note"}).columns == neutral.columns
    for before, after in zip(plain.iter_rows(), neutral.iter_rows(), strict=True):
        for old, new in zip(before, after, strict=True):
            assert new == (f"'{old}" if old in FORMULAS or old == "=1" else old)
    assert set(plain["reading"]) & set(FORMULAS)


def test_without_the_option_lines_are_copied(files, capsys, tmp_path):
    text = files.new.read_text().replace("steady", "=steady")
    (tmp_path / "t.csv").write_text(text)
    call(capsys, "score", tmp_path / "t.csv", "--model", files.model, "--out", tmp_path / "out.csv")
    assert [row[:-3] for row in cells(tmp_path / "out.csv")] == list(csv.reader(text.splitlines()))


def test_other_formats_have_no_formulas(files, capsys, tmp_path):
    with pytest.raises(TableError, match=r"CSV and TSV only, and .*t\.jsonl is written as jsonl"):
        open_output(tmp_path / "t.jsonl", neutralize_formulas=True)
    said = call(
        capsys,
        "score",
        files.new,
        "--model",
        files.model,
        "--out",
        tmp_path / "t.parquet",
        "--neutralize-formulas",
    )
    assert said.status == 1
    assert "CSV and TSV only" in said.err
    assert list(tmp_path.iterdir()) == []
