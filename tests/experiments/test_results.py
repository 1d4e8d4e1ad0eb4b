"""Results: Markdown for people, JSON for programs."""

import json
import math

import numpy as np
import pytest

from rankad.experiments.results import Table, mean, standard_error, write_results

TABLE = Table("t", "A title", ("a", "b"), [("1", "x|y"), ("2", "two\nlines")], ["A note.", "Another."])


def test_markdown_of_a_table():
    assert TABLE.markdown().splitlines() == [
        "## A title",
        "",
        "| a | b |",
        "|---|---|",
        "| 1 | x\\|y |",
        "| 2 | two lines |",
        "",
        "- A note.",
        "- Another.",
    ]


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(
        ValueError, match=r"Table 't' has 2 columns, but a row of 1 cells, \['1'\]; give every row"
    ):
        Table("t", "T", ("a", "b"), [("1",)]).markdown()


def test_both_files_are_written(tmp_path):
    raw = {"seeds": [0, np.int64(1)], "paper": {"auc": (0.5, math.nan)}, "best": np.inf}
    write_results(tmp_path / "new", "table-9", TABLE, raw, [tmp_path / "new" / "curve.png"])
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["table-9.json", "table-9.md"]
    content = json.loads((tmp_path / "new" / "table-9.json").read_text())
    assert content["seeds"] == [0, 1]
    assert content["paper"] == {"auc": [0.5, None]}
    assert content["best"] is None
    assert content["versions"]["numpy"] == np.__version__
    assert {"rankad", "numpy", "scipy", "scikit-learn", "python"} <= set(content["versions"])
    assert content["tables"][0]["rows"][0] == ["1", "x|y"]
    text = (tmp_path / "new" / "table-9.md").read_text()
    assert text.startswith("# table-9\n\n![curve.png](curve.png)\n\n## A title\n")
    assert f"numpy {np.__version__}" in text


def test_several_tables_go_to_one_page(tmp_path):
    write_results(tmp_path, "two", [TABLE, TABLE._replace(title="Second")], {})
    text = (tmp_path / "two.md").read_text()
    assert text.index("## A title") < text.index("## Second")


def test_the_same_results_are_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_results(tmp_path / name, "t", TABLE, {"x": 0.1})
    for file in ("t.md", "t.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_mean_and_standard_error_agree_with_numpy():
    values = [0.91, 0.93, 0.92, 0.99, 0.90]
    assert mean(values) == pytest.approx(np.mean(values), rel=1e-15)
    assert standard_error(values) == pytest.approx(np.std(values, ddof=1) / np.sqrt(5), rel=1e-14)
    assert math.isnan(standard_error([0.9]))
