"""Explanations as they print, in notebooks, and as data frames."""

import copy
import pickle
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas
import polars
import pytest
from sklearn.base import clone

from rankad import RankAD, TableDetector
from rankad.explanations.explainer import Change, Explanation, Explanations, Move, Reason

ODD = "<script>alert(1)</script>"


def explanation(p_value=0.004, change=True, row=3, column="flow", value=9.1, alpha=0.05):
    """One that is written down by hand."""
    reasons = (
        Reason(column, value, 3.2, 2.9, 3.6, 0.45, 6.0),
        Reason("color", "red", "blue", None, None, 0.2, 1.0),
        Reason("size", -1.5, -1.4, -2.0, 0.5, 0.004, 0.01),
    )
    moved = Change((Move(column, value, 3.9),), 0.06, 1.0) if change else None
    return Explanation(p_value, -2.0, reasons, (), moved, alpha, row)


def test_one_prints_as_lines_that_can_be_read():
    assert repr(explanation()) == str(explanation())
    assert str(explanation()).splitlines() == [
        "Row 3: p-value 0.004, an alarm at 5 %",
        "  column  value  usually           p-value if usual",
        "  flow    9.1    3.2 (2.9 to 3.6)  0.45",
        "  color   red    blue              0.2",
        "  1 more column weighs less.",
        "  Would be normal with flow: 9.1 -> 3.9 (p-value 0.06).",
    ]


def test_what_is_not_known_is_not_told():
    text = str(explanation(alpha=None, row=None, change=False, column=2))
    assert text.splitlines()[0] == "A row: p-value 0.004"
    assert "  column 2  9.1" in text
    assert "normal with" not in text
    assert explanation(alpha=None).is_alarm is None
    assert [explanation(p_value=p).is_alarm for p in (0.05, 0.051)] == [True, False]
    assert "no alarm at 5 %" in str(explanation(p_value=0.3))


def test_a_few_print_in_full_and_many_a_line_each():
    assert str(Explanations()) == "No rows to explain."
    three = Explanations([explanation(row=row) for row in range(3)])
    assert str(three) == "\n\n".join(map(str, three))
    many = Explanations([explanation(row=row, p_value=0.04 + 0.01 * row) for row in range(50)])
    lines = str(many).splitlines()
    assert lines[1].split() == ["0", "0.04", "alarm", "flow", "9.1", "3.2", "(2.9", "to", "3.6)"]
    assert lines[3].split() == ["2", "0.06", "flow", "9.1", "3.2", "(2.9", "to", "3.6)"]
    assert len(lines) == 22
    assert lines[-1].strip() == "... and 30 more rows; to_frame() has them all."


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_html_holds_the_cells_and_no_tags_of_theirs(n):
    page = Explanations([explanation(column=ODD, value=ODD, row=row) for row in range(n)])._repr_html_()
    found = _Tags()
    found.feed(page)
    assert set(found.tags) <= {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert ODD in found.text
    assert "3.2 (2.9 to 3.6)" in found.text
    assert Explanations([explanation()])._repr_html_() == explanation()._repr_html_()


def test_what_a_terminal_would_obey_is_escaped():
    text = str(explanation(column="a\x1b[31m\nb", value="x\ty"))
    assert "\x1b" not in text
    assert len(text.splitlines()) == 6


def test_they_are_a_list():
    found = Explanations([explanation(row=row) for row in range(5)], library="pandas")
    assert isinstance(found, list)
    assert len(found) == 5
    assert [each.row for each in found] == list(range(5))
    assert (found[-1].row, found[1:3][0].row) == (4, 1)
    assert isinstance(found[1:3].to_frame(), pandas.DataFrame)
    for again in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert again == found
        assert isinstance(again.to_frame(), pandas.DataFrame)
    assert found == list(found)
    # Where a row stood does not make its explanation another.
    assert found[0] == found[1]


def test_a_frame_has_a_line_for_each_reason():
    found = Explanations([explanation(), explanation(p_value=0.5, row=7)])
    frame = found.to_frame()
    assert isinstance(frame, polars.DataFrame)
    assert frame.columns == [
        "row", "p_value", "alarm", "column", "value", "typical", "low", "high", "p_value_if_typical", "gain",
        "place",
    ]  # fmt: skip
    assert frame.row(0) == (3, 0.004, True, "flow", "9.1", "3.2", 2.9, 3.6, 0.45, 6.0, 1)
    assert frame.row(4) == (7, 0.5, False, "color", "red", "blue", None, None, 0.2, 1.0, 2)
    assert frame.height == 6
    assert found.to_frame(top=1)["row"].to_list() == [3, 7]
    # Numbers stay numbers where there is nothing else.
    assert found.to_frame(top=1)["value"].to_list() == [9.1, 9.1]
    same = found.to_frame(library="pandas")
    assert isinstance(same, pandas.DataFrame)
    assert same["gain"].tolist() == frame["gain"].to_list()
    with pytest.raises(ValueError, match=r"library must be 'polars', 'pandas' or None, got 'arrow'"):
        found.to_frame(library="arrow")
    with pytest.raises(ValueError, match=r"top must be an integer >= 1 or None, got 0"):
        found.to_frame(top=0)
    assert Explanations().to_frame().shape == (0, 11)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    frame = polars.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["x", "y"], size=90)})
    inner = RankAD(landmarks=15, scaling="standard", bandwidth="D_K", C=0.1)
    return TableDetector(inner).fit(frame), frame


def test_rows_are_called_by_their_ids_or_else_by_their_index(fitted):
    plain, frame = fitted
    detector = TableDetector(clone(plain.detector), ids=["id"]).fit(
        frame.with_columns(id=polars.int_range(polars.len()))
    )
    new = frame[:40].with_columns(id=polars.format("S{}", polars.int_range(polars.len()) + 7))
    pandas_new = new.to_pandas()
    for why in (detector.explain(new[[3, 5]]), detector.explain(pandas_new.iloc[[3, 5]])):
        assert [each.name for each in why] == ["S10", "S12"]
        assert str(why[1]).startswith("Row 1 (S12): p-value ")
        assert list(why.to_frame(top=1)["name"]) == ["S10", "S12"]
    assert str(detector.explain(new)).splitlines()[4].split()[:2] == ["3", "(S10)"]
    without = pandas_new.drop(columns="id")
    assert [each.name for each in detector.explain(without.iloc[[3, 5]])] == ["3", "5"]
    assert [each.name for each in detector.explain(without.loc[3])] == ["3"]
    assert [each.name for each in detector.explain(without.set_index(pandas_new["id"]))][:1] == ["S7"]
    # An index that only counts says nothing more.
    for nameless in (without, frame[:2]):
        assert detector.explain(nameless)[0].name == ""
        assert "name" not in detector.explain(nameless).to_frame().columns


def test_frames_are_of_the_library_that_the_rows_came_in(fitted):
    detector, frame = fitted
    assert isinstance(detector.explain(frame[:2]).to_frame(), polars.DataFrame)
    assert isinstance(detector.explain(frame[:2].to_pandas()).to_frame(), pandas.DataFrame)
    assert isinstance(detector.explain(frame[:0].to_pandas()).to_frame(), pandas.DataFrame)
    assert isinstance(detector.explain(frame.row(0, named=True)).to_frame(), polars.DataFrame)
    rows = frame.select("a").to_pandas()
    alone = RankAD(landmarks=15, scaling="standard", bandwidth="D_K", C=0.1).fit(rows)
    assert isinstance(alone.explain(rows[:2]).to_frame(), pandas.DataFrame)


def test_rows_are_numbered_as_they_were_passed(fitted):
    detector, frame = fitted
    found = detector.explain(frame, alpha=0.2)
    assert [each.row for each in found] == list(range(90))
    assert {each.alpha for each in found} == {0.2}
    np.testing.assert_array_equal([each.is_alarm for each in found], detector.p_values(frame) <= 0.2)
    strange = detector.explain({"a": 0.0, "b": "new"})[0]
    assert str(strange).splitlines()[3].split()[:2] == ["b", "new"]


def test_they_print_without_jinja_and_without_data_frames():
    code = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jinja2", "markupsafe", "pandas", "polars"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import importlib.util
importlib.util.find_spec = lambda name: None
from rankad.explanations.explainer import Explanation, Explanations, Reason
found = Explanations([Explanation(0.01, 0.0, (Reason("a", 1.0, 2.0, 1.5, 2.5, 0.5, 1.0),), (), None)])
print(found)
try:
    found.to_frame()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "a       1      2 (1.5 to 2.5)  0.5" in done.stdout
    assert "to_frame needs polars or pandas: pip install 'rankad[tables]'" in done.stdout


def test_what_no_normal_row_has_is_said_first():
    rng = np.random.default_rng(0)
    table = {"flow": rng.normal(size=80), "mode": rng.choice(["eco", "full"], size=80)}
    detector = TableDetector(RankAD(0.05, near_field=False, n_components=0)).fit(table)
    why = detector.explain({"flow": [0.1, 0.2], "mode": [ODD, "eco"]})
    assert why[0].strange == (f"mode {ODD}: not among the categories of normal rows",)
    assert why[1].strange == ()
    assert str(why[0]).splitlines()[1] == f"  {why[0].strange[0]}."
    assert ODD not in why._repr_html_()
    assert "not among the categories of normal rows." in why._repr_html_()
