"""The page from Python: the same as the command's."""

import difflib
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from cli_cases import call
from rankad import KLPE, EpsilonLPE, RankAD, TableDetector

QUICK = {"landmarks": 15, "scaling": "standard", "bandwidth": "D_K", "C": 0.1}


def table(n=120, seed=1):
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"id": np.arange(n), "a": rng.normal(size=n), "b": rng.choice(["x", "y"], size=n)})


@pytest.fixture(scope="module")
def detector():
    return TableDetector(RankAD(**QUICK), alpha=0.05, ids=["id"]).fit(table())


NEW = pl.concat(
    [table(60, seed=2), pl.DataFrame({"id": [900, 901], "a": [50.0, 0.0], "b": ["x", "<script>"]})]
)


class _Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.skip = [], 0

    def handle_starttag(self, tag, attrs):
        self.skip += tag in ("style", "script")

    def handle_endtag(self, tag):
        self.skip -= tag in ("style", "script")

    def handle_data(self, data):
        if not self.skip and data.strip():
            self.found.append(" ".join(data.split()))


def lines_of(page):
    """Return the texts of a page, dates left out."""
    reader = _Text()
    reader.feed(page)
    return [re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", "DATE", text) for text in reader.found]


def test_the_page_is_that_of_the_command(detector, capsys, tmp_path):
    model, new, out = tmp_path / "m.rankad", tmp_path / "new.parquet", tmp_path / "r.html"
    detector.save(model)
    NEW.write_parquet(new)
    said = call(capsys, "report", new, "--model", model, "--out", out)
    assert said.status == 0, said.err
    ours = lines_of(detector.report(NEW, title="Anomalies in new.parquet").html)
    theirs = lines_of(out.read_text())
    assert len(ours) > 300
    differ = [line for line in difflib.ndiff(ours, theirs) if line[0] in "+-"]
    assert sorted(differ) == [
        "+ DATE",
        "+ Date",
        "+ model m.rankad",
        "+ new.parquet",
        "- model TableDetector",
    ]


def test_it_counts_shows_itself_and_is_saved(detector, tmp_path):
    made = detector.report(NEW, tmp_path / "r.html")
    p = detector.p_values(NEW)
    assert (made.n_rows, made.n_alarms, made.alpha) == (62, np.count_nonzero(p <= 0.05), 0.05)
    assert repr(made).startswith(f"<Report: 62 rows, {made.n_alarms} alarms at alpha=0.05; save(")
    assert (tmp_path / "r.html").read_text() == made.html
    assert made.html.lower().startswith("<!doctype html>")
    frame = made._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert frame.count('"') == 6
    assert "<script>" not in frame
    made.save(tmp_path / "again.htm")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.htm", "r.html"]
    with pytest.raises(ValueError, match=r"r\.pdf promises something else; name it r\.html"):
        made.save(tmp_path / "r.pdf")
    with pytest.raises(OSError, match="nowhere"):
        made.save(tmp_path / "nowhere" / "r.html")


def test_rates_titles_and_how_many(detector):
    made = detector.report(NEW, alpha=0.2, title="Pumps & <b>", top=0)
    assert made.n_alarms == np.count_nonzero(detector.p_values(NEW) <= 0.2)
    assert "Pumps &amp; &lt;b&gt;" in made.html
    assert "20\xa0%" in made.html
    # The detector's own rate stays.
    assert detector.alpha == 0.05
    assert detector.report(NEW.row(60, named=True)).n_alarms == 1
    with pytest.raises(ValueError, match="alpha must be a number strictly between 0 and 1, got 3"):
        detector.report(NEW, alpha=3)
    with pytest.raises(ValueError, match="top must be an integer >= 0, got -1"):
        detector.report(NEW, top=-1)
    with pytest.raises(ValueError, match="lacks 'a'"):
        detector.report(NEW.drop("a"))
    assert detector.report(NEW[:0]).n_rows == 0


@pytest.mark.parametrize("inner", [RankAD(**QUICK), KLPE(), EpsilonLPE()], ids=repr)
@pytest.mark.parametrize("form", ["array", "pandas"])
def test_detectors_of_rows_report_too(inner, form):
    rng = np.random.default_rng(3)
    rows, new = rng.normal(size=(100, 2)), np.vstack([rng.normal(size=(30, 2)), [[40.0, 0.0]]])
    if form == "pandas":
        rows, new = (pandas.DataFrame(each, columns=["flow", "heat"]) for each in (rows, new))
    fitted = inner.fit(rows)
    made = fitted.report(new)
    assert made.n_alarms == np.count_nonzero(fitted.p_values(new) <= 0.05)
    if isinstance(inner, RankAD):
        assert ("flow" if form == "pandas" else "column 0") in made.html
    else:
        assert "gives no reasons" in made.html


def test_what_is_not_fitted_does_not_report():
    for detector in (RankAD(), KLPE(), TableDetector()):
        with pytest.raises(NotFittedError):
            detector.report(NEW)


def test_it_says_what_to_install():
    code = """
import sys
sys.modules["jinja2"] = None
from rankad import KLPE
try:
    KLPE().fit([[float(i)] for i in range(30)]).report([[1.0]])
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'rankad[report]'" in done.stdout
