"""The README: every figure is on a page that a command writes, every link leads somewhere, all code runs."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from rankad.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def tables(page):
    """Return all tables of a page, each as lists of plain cells."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("*", "")
    found, last = [], None
    for at, line in enumerate(text.splitlines()):
        if line.startswith("|"):
            if last != at - 1:
                found.append([])
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
            last = at
    return found


def means(page, number):
    """Return the means of one table of detectors by data set, the AUC or the average precision."""
    table = [one for one in tables(page) if one[0][0] == "set" and "RankAD" in one[0]][number]
    return dict(zip(table[0], next(row for row in table if row[0] == "mean"), strict=True))


def test_the_table_says_what_the_measured_pages_say():
    header, _, *rows = next(one for one in tables("README.md") if "mean AUC" in one[0])
    asked = "mean AUC|mean average precision|AUC, one table|rows scored a second|one row|fit"
    assert header[1:] == asked.split("|")
    speed = {row[0]: row for row in tables("docs/benchmarks/speed.md")[0]}
    assert speed["method"][1:3] == ["rows/s", "one row, median"]
    assert speed["method"][6] == "fit time"
    in_speed = {"k-NN 5": "PyOD KNN", "ECOD": "PyOD ECOD"}
    in_quality = {"LocalOutlierFactor": "LOF"}
    assert len(rows) == 6
    for name, auc, precision, one_table, *fast in rows:
        known = in_quality.get(name, name)
        assert auc == means("docs/quality/quality.md", 0)[known]
        assert precision == means("docs/quality/quality.md", 1)[known]
        assert one_table == means("docs/quality/one_table.md", 0)[known]
        measured = speed[in_speed.get(name, name)]
        assert fast == [measured[1], measured[2], measured[6]]


def test_the_speed_after_large_fits_is_that_measured():
    near = next(
        table for table in tables("docs/benchmarks/speed.md") if table[0][:2] == ["data", "near field"]
    )
    measured = next(row for row in near if row[:3] == ["cover", "with", "200,000"])
    assert near[0][5] == "rows/s"
    assert f"some {round(int(measured[5].replace(',', '')), -5):,} rows a second with 200,000" in README


def test_false_alarms_are_those_measured():
    page = tables("docs/quality/quality.md")
    rates = next(row for table in page for row in table if row[0] == "mean" and row[1] == "")
    assert [cell.removesuffix(" %") for cell in rates if cell.endswith("%")] == ["9.91", "4.84", "0.89"]
    assert "9.91, 4.84 and 0.89 %" in README


def test_it_is_short_and_its_links_lead_somewhere():
    assert len(README.splitlines()) < 120
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)|src=\"([^\"]+)\"", README)
    assert len(targets) > 20
    lost = [one or other for one, other in targets if not (ROOT / (one or other)).exists()]
    assert lost == []


@pytest.mark.parametrize("name", ["docs/readme-level-set.png", "docs/readme-report.png"])
def test_pictures_are_small_palettes(name):
    from PIL import Image

    assert (ROOT / name).stat().st_size <= 80_000
    with Image.open(ROOT / name) as image:
        assert image.mode == "P"


def test_the_code_runs(few_folds):
    rng = np.random.default_rng(0)
    names = {"normal_rows": rng.normal(size=(300, 2)), "new_rows": np.array([[0.0, 0.0], [9.0, 9.0]])}
    exec(re.search(r"```python\n(.*?)```", README, re.DOTALL)[1], names)
    assert names["detector"].predict(names["new_rows"]).tolist() == [1, -1]


@pytest.mark.slow
def test_the_commands_run_one_after_another(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    block = next(one for one in README.split("```") if one.startswith("\nrankad "))
    lines = [line.partition("#")[0].partition("&&")[0] for line in block.splitlines() if line]
    assert [line.split()[1] for line in lines] == ["demo", "fit", "score", "explain", "report"]
    for line in lines:
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(line)[1:])
        assert not ended.value.code, capsys.readouterr().err
        if line.split()[1] == "demo":
            monkeypatch.chdir("rankad-demo")
    assert Path("report.html").stat().st_size > 50_000
