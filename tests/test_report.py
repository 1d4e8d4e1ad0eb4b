"""The report: its counts against naive ones, its words, and the page in a real browser."""

import base64
import hashlib
import itertools
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import beta, binomtest

from rankad import KLPE, RankAD
from rankad._base.wording import difference, percent, plain
from rankad.alarms.chance import Chance
from rankad.report import Alarm, CategoryView, ModelFacts, NumericView, PValueSummary, ReportData, render
from rankad.report.charts import category_bars, column_histogram, gain_bar, p_value_histogram, value_strip
from rankad.report.making import promised_rates
from rankad.report.page import headline
from rankad.report.views import Counts
from rankad.stages.calibration import Calibration, FalseAlarmBound, beta_bound, n_attainable
from rankad.stages.selection import SelectionTable

# Explanations as rankad.explanations.explainer makes them, by hand.


class Reason(NamedTuple):
    column: Any
    value: Any
    typical: Any
    low: Any
    high: Any
    p_value: float
    gain: float


class Neighbor(NamedTuple):
    row: int
    distance: float
    values: Any


class Move(NamedTuple):
    column: Any
    before: Any
    after: Any


class Change(NamedTuple):
    moves: tuple[Move, ...]
    p_value: float


class Explanation(NamedTuple):
    reasons: tuple[Reason, ...]
    nearest: tuple[Neighbor, ...] = ()
    change: Change | None = None


class Strange(NamedTuple):
    row: int
    column: str
    what: str
    value: Any


def a_model(alpha=0.05, n=999, **facts):
    calibration = Calibration.from_scores(np.arange(n), "split")
    bound = beta_bound(calibration, alpha, 0.05)
    selection = SelectionTable(
        ("standard", None),
        np.array([1.5, 3.0]),
        np.array([0.1, 0.2]),
        np.array([[0.3, 0.02], [0.4, 0.03]]),
        np.array([1.0, 1.25]),
        np.array([0.0, 0.1]),
        "contrast",
    )
    known = {
        "name": "pumps.rankad",
        "n_fitted": 2 * n,
        "n_calibration": n,
        "calibration": "split",
        "bound": bound,
        "fitted": "2026-01-02",
        "versions": {"rankad": "0.1.0"},
        "parameters": {"alpha": alpha, "trim": 0.0, "n_jobs": None},
        "selection": selection,
        "encoding": ["pressure: a number, as it is"],
        "fingerprint": "9f2c1b7e",
    }
    return ModelFacts(**{**known, **facts})


def an_alarm(row=7, score=-3.5, **more):
    reasons = (
        Reason("pressure", 9.1, 3.2, 2.8, 3.9, 0.23, 4.0),
        Reason("valve", "drain", "open", None, None, 0.012, 1.0),
        Reason("flow", 120.0, 121.0, 100.0, 140.0, 0.001, 0.01),
    )
    own = {"pressure": 9.1, "valve": "drain", "flow": 120.0}
    near = (Neighbor(16, 0.41, {"pressure": 3.1, "valve": "open", "flow": 119.0}),)
    change = Change((Move("pressure", 9.1, 3.2),), 0.052)
    explained = Explanation(reasons, near, change)
    return Alarm(row, 0.001, score, **{"id": f"P-{row}", "explanation": explained, "values": own, **more})


def a_report(alpha=0.05, p_values=None, **parts):
    rng = np.random.default_rng(0)
    if p_values is None:
        p_values = np.append(rng.integers(1, 1001, size=1900) / 1000, np.full(100, 0.001))
    alarms = p_values <= alpha
    n = len(p_values)
    columns = [
        NumericView.of("pressure", rng.normal(size=500)).add(rng.normal(size=n), alarms),
        NumericView.of("rooms", rng.integers(1, 6, size=500)).add(rng.integers(1, 9, size=n), alarms),
        CategoryView.of("valve", ["open", "shut"] * 50).add(["open", "drain"] * (n // 2), alarms),
    ]
    given = {
        "title": "Pumps",
        "alpha": alpha,
        "p_values": PValueSummary.of([p_values], alpha),
        "model": a_model(alpha),
        "alarms": [an_alarm(7, -3.5), an_alarm(4, -9.0), an_alarm(90, -1.0, id=None)],
        "columns": columns,
        "source": "week-46.csv",
        "made": "2026-01-03",
    }
    return ReportData(**{**given, **parts})


# ----------------------------------------------------------------------------------------------- what is said


@pytest.mark.parametrize(
    ("n_alarms", "verdict", "said"),
    [
        (200, "more", "There are 200, about 150 more than that"),
        (52, "usual", "There are 52. Some rows may be abnormal all the same"),
        (72, "usual", "There are 72: unusual, but not enough to rule out chance"),
        (3, "fewer", "There are 3. Rows that vary less"),
        (1, "fewer", "There is one. Rows"),
        (0, "fewer", "There are none. Rows"),
    ],
)
def test_the_headline_holds_alarms_against_chance(n_alarms, verdict, said):
    p_values = np.append(np.full(n_alarms, 0.03), np.linspace(0.051, 1, 1000 - n_alarms))
    head = headline(a_report(p_values=p_values, columns=[]))
    assert head.verdict == verdict
    assert said in head.text
    assert (head.n_alarms, head.n_rows, head.expected) == (str(n_alarms), "1,000", "50")
    assert "about 50 alarms" in head.text
    span = Chance(999).span(1000, 0.05)
    assert f"between {span.low} and {span.high}." in head.text
    assert head.off == (verdict != "usual")


@pytest.mark.parametrize(("n_alarms", "n_sure"), [(52, 33), (52, 52), (40, 33)])
def test_the_headline_does_not_miss_a_few_sure_ones_among_as_many_alarms_as_usual(n_alarms, n_sure):
    most = Chance(999).span(1000, 0.01).high
    p_values = np.repeat([0.005, 0.03], [n_sure, n_alarms - n_sure])
    p_values = np.append(p_values, np.linspace(0.051, 1, 1000 - n_alarms))
    head = headline(a_report(p_values=p_values, columns=[]))
    assert head.verdict == "some"
    assert (
        f"There are {n_alarms}, no more than that. But {n_sure} would be alarms even at 1\xa0%" in head.text
    )
    assert f"where {most} are usual at most" in head.text


def test_the_headline_says_when_no_alarm_is_possible_or_nothing_was_scored():
    few = a_report(0.01, model=a_model(0.01, n=50), columns=[])
    assert headline(few).verdict == "silent"
    assert "smallest there can be is 1 in 51" in headline(few).text
    assert "too few normal rows for this rate" in render(few)
    empty = a_report(p_values=np.empty(0), columns=[], alarms=[])
    assert headline(empty).verdict == "empty"
    assert "There are no alarms at this rate." in render(empty)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (-0.5, "−0.5"),
        (123456.7, "123457"),
        (9.9996, "10"),
        (1e-5, "0.00001"),
        (1e7, "1e7"),
        (-2.5e-20, "−2.5e-20"),
        (math.inf, "∞"),
        (np.float32(0.1), "0.1"),
        (np.int64(-12), "−12"),
        (10**15, "1e15"),
        (np.True_, "true"),
        ("x" * 200, "x" * 79 + "…"),
        ((1.0, 0.5), "1, 0.5"),
    ],
)
def test_cells_are_written_plainly(value, written):
    assert plain(value) == written


def test_values_that_differ_are_written_so_that_they_differ():
    for before, after in itertools.permutations([1.0, 1.0 + 1e-9, 1.0 + 2e-16, 2.0, "a"], 2):
        if before != after:
            assert len(set(difference(before, after))) == 2
    assert difference(1.0, 1.0) == ("1", "1")


@pytest.mark.parametrize(
    ("ends", "ticks"),
    [
        ((-6.511, 6.502), ["−6.5", "0", "6.5"]),
        ((2001.21, 2001.93), ["2001.21", "2001.57", "2001.93"]),
        ((1e-200, 3e-200), ["1e-200", "2e-200", "3e-200"]),
    ],
)
def test_an_axis_is_written_to_what_it_spans(ends, ticks):
    svg = _svg_of(column_histogram(NumericView("x", ends, False, Counts.begin((0, 1, 0, 0)))))
    assert [text.text for text in svg.iter("text")] == [ticks[0], ticks[2], ticks[1]]


def test_the_promise_must_be_that_of_the_report():
    with pytest.raises(ValueError, match=r"model.bound must be the promise at the report's alpha=0.05"):
        a_report(0.05, model=a_model(0.01))


# ---------------------------------------------------------------------------------------------------- columns


def test_a_numeric_view_counts_as_numpy_does_batch_by_batch():
    rng = np.random.default_rng(3)
    nominal, scored = (
        rng.normal(size=800),
        np.append(rng.normal(scale=3, size=500), [np.nan, np.inf, -np.inf]),
    )
    flags = rng.random(scored.size) < 0.3
    view = NumericView.of("x", nominal)
    for part in np.array_split(np.arange(scored.size), 4):
        view = view.add(scored[part], flags[part])
    for counts, values in (
        (view.counts.nominal, nominal),
        (view.counts.scored, scored),
        (view.counts.alarms, scored[flags]),
    ):
        inside = np.histogram(values[np.isfinite(values)], view.edges)[0]
        ends = (values < view.edges[0]).sum(), (values > view.edges[-1]).sum(), np.isnan(values).sum()
        assert counts == (ends[0], *inside, *ends[1:])


@pytest.mark.parametrize(
    "nominal",
    [
        [],
        [None, None],
        [5.0] * 4,
        [0.1] * 4,
        [1e300, -1e300, 3.5],
        [1.7e308, -1.7e308],
        [1.7e308] * 3,
        [1e15 + 0.5, 1e15],
        [2.0**60, 2.0**60 + 512],
        [1e-320, 2e-320],
        [np.inf, 1.5, 2.25],
    ],
)
def test_bins_rise_and_charts_are_drawn_whatever_the_values(nominal):
    view = NumericView.of("x", nominal).add([0.0, 1e308, None], [True, True, False])
    assert np.isfinite(view.edges).all()
    assert (np.diff(view.edges) > 0).all()
    assert sum(view.counts.nominal) == len(nominal)
    assert "nan" not in _svg_of(column_histogram(view)).attrib["aria-label"]


def test_a_category_view_counts_by_hand():
    nominal = ["b"] * 3 + ["a"] * 3 + [f"rare {at:02d}" for at in range(14)] + [None]
    view = CategoryView.of("kind", nominal).add(["a", "rare 13", "new", None, math.nan], [0, 1, 1, 0, 1])
    assert view.labels[:3] == ("a", "b", "rare 00")
    assert len(view.labels) == 12
    assert view.counts.nominal[-3:] == (4, 0, 1)
    assert view.counts.scored == (1, *[0] * 11, 1, 1, 2)
    assert view.counts.alarms == (0, *[0] * 11, 1, 1, 1)
    chart = _svg_of(category_bars(view))
    assert "never seen in normal rows" in [text.text for text in chart.iter("text")]


def test_a_view_wants_one_alarm_flag_per_value():
    with pytest.raises(ValueError, match="alarms must have one entry per value, 2; got 1"):
        NumericView.of("x", [1.0]).add([1.0, 2.0], [True])


# ----------------------------------------------------------------------------------------------------- charts


def _svg_of(markup):
    return ElementTree.fromstring(str(markup))


def _drawn(svg, kind, attribute):
    return [
        float(rect.attrib[attribute].rstrip("%")) for rect in svg.iter("rect") if rect.attrib["class"] == kind
    ]


def test_the_histogram_of_p_values_is_to_scale():
    # 60 rows in the first bin, of which 40 are alarms at 2 %; 40 in the last.
    p_values = np.repeat([0.02, 0.04, 0.99], [40, 20, 40])
    svg = _svg_of(p_value_histogram(PValueSummary.of([p_values], 0.02), int((p_values <= 0.02).sum()), 999))
    (alarms,), (rest, last) = _drawn(svg, "alarm", "height"), _drawn(svg, "scored", "height")
    assert alarms == pytest.approx(2 * rest, abs=0.2)
    assert last == pytest.approx(alarms, abs=0.2)
    titles = [title.text for title in svg.iter("title")]
    assert titles[0] == "p-value above 0, up to 0.05: 60 rows, 40 alarms among them"
    assert len(titles) == 20


def test_promised_and_obtained_rates_are_drawn_to_scale():
    detector = KLPE(0.05).fit(np.random.default_rng(0).normal(size=(50, 2)))
    detector.calibrate(np.random.default_rng(1).normal(size=(999, 2)))
    known = promised_rates(detector)
    assert (known[0].alpha, known[-1].alpha) == (0.001, pytest.approx(0.5))
    for alpha, low, high in known:
        r = n_attainable(999, alpha)
        assert (low, high) == pytest.approx(tuple(beta.ppf([0.025, 0.975], r, 1000 - r)))
    p_values = np.repeat([0.0005, 0.03, 0.15, 0.9], [20, 30, 50, 900])
    page = render(a_report(p_values=p_values, model=a_model(promised=known)))
    chart = ElementTree.fromstring(re.search(r'<svg class="chart promised".*?</svg>', page)[0])
    dots = [group for group in chart.findall("g") if group.find("circle") is not None]
    counts = {0.001: 20, 0.01: 20, 0.05: 50, 0.1: 50, 0.2: 100, 0.5: 100}
    assert len(dots) == len(counts)
    for group, (alpha, n) in zip(dots, counts.items(), strict=True):
        interval = binomtest(n, 1000).proportion_ci(method="exact")
        assert group.find("title").text == (
            f"{percent(alpha)} asked for: {percent(n / 1000)} obtained, "
            f"{percent(interval.low)} to {percent(interval.high)}"
        )
        # From 0.01 % at the bottom to all at the top, and from 0.1 % at the left to 50 % at the right.
        dot, line = group.find("circle"), group.find("line")
        assert float(dot.get("cy")) == pytest.approx(200 - 190 * (math.log10(n / 1000) + 4) / 4, abs=0.06)
        assert float(line.get("y2")) == pytest.approx(
            200 - 190 * (math.log10(interval.high) + 4) / 4, abs=0.06
        )
        across = 10 + 90 * math.log(alpha / 0.001) / math.log(500)
        assert float(dot.get("cx").rstrip("%")) == pytest.approx(across, abs=0.006)
    bands = [group.find("rect") for group in chart.findall("g") if group.find("rect") is not None]
    for band, each in zip(bands, known, strict=False):
        bottom = float(band.get("y")) + float(band.get("height"))
        assert bottom == pytest.approx(200 - 190 * max(math.log10(max(each.low, 1e-9)) + 4, 0) / 4, abs=0.11)
        assert float(band.get("y")) == pytest.approx(200 - 190 * (math.log10(each.high) + 4) / 4, abs=0.06)


def test_promises_are_not_drawn_where_there_are_none():
    assert "Promised and obtained" not in render(a_report())
    rows = np.random.default_rng(0).normal(size=(60, 2))
    assert promised_rates(RankAD.as_published().fit(rows)) == []
    few = KLPE(0.05).fit(rows).calibrate(rows[:30])
    assert promised_rates(few)[0].alpha == 1 / 31
    empty = a_report(p_values=np.array([]), alarms=[], model=a_model(promised=promised_rates(few)))
    assert "Promised and obtained" not in render(empty)
    # With one calibration row alone, half of all rows or none are alarms.
    with pytest.warns(UserWarning, match="no row will ever raise an alarm"):
        assert promised_rates(KLPE(0.05).fit(rows).calibrate(rows[:1])) == []


def test_the_even_line_follows_coarse_p_values():
    # With nine nominal rows p-values are tenths: every other bin is empty.
    svg = _svg_of(p_value_histogram(PValueSummary.of([[0.1, 0.5]]), 1, 9))
    levels = {line.attrib["y1"] for line in svg.iter("line") if line.attrib["class"] == "even"}
    assert len(levels) == 2


def test_a_column_chart_draws_every_count():
    view = NumericView.of("x", np.linspace(0, 1, 101)).add([0.5, 2.0, -5.0, -6.0], [False, True, True, True])
    svg = _svg_of(column_histogram(view))
    hanging = _drawn(svg, "alarm", "height")
    # One above, two below: twice the height.
    assert sorted(hanging) == pytest.approx([17.0, 34.0], abs=0.2)
    assert len(_drawn(svg, "nominal", "height")) == 30
    for x, width in zip(_drawn(svg, "nominal", "x"), _drawn(svg, "nominal", "width"), strict=True):
        assert 0 <= x < x + width <= 100.01


@pytest.mark.parametrize(
    ("value", "typical", "low", "high", "far"),
    [
        (9.1, 3.2, 2.8, 3.9, False),
        (-9.1, 3.2, 2.8, 3.9, True),
        (1e300, 3.2, 2.8, 3.9, True),
        (1.7e308, -1.7e308, -1.7e308, -1.6e308, True),
        (5, 3, 3, 3, False),
    ],
)
def test_a_strip_shows_the_value_or_an_arrow_to_it(value, typical, low, high, far):
    svg = _svg_of(value_strip(value, typical, low, high))
    assert (svg.find("circle") is None) == far
    assert (svg.find("text") is not None) == far
    places = [float(line.attrib["x1"].rstrip("%")) for line in svg.iter("line")]
    assert all(0 <= place <= 100 for place in places)


@pytest.mark.parametrize("value", ["drain", None, math.nan, math.inf, (1.0, 0.0), True])
def test_what_is_no_number_has_no_strip(value):
    assert value_strip(value, 3.2, 2.8, 3.9) is None


def test_nothing_to_tell_apart_has_no_strip():
    assert value_strip(3.0, 3.0, 3.0, 3.0) is None
    assert value_strip(0.0, 0.0, 0.0, 0.0) is None


@pytest.mark.parametrize(("share", "width"), [(-1.0, 0.0), (0.25, 25.0), (7.0, 100.0)])
def test_a_weight_is_drawn_from_nothing_to_all(share, width):
    assert _drawn(_svg_of(gain_bar(share, "weight")), "alarm", "width") == [width]


# ------------------------------------------------------------------------------------------------------- page


class Read(HTMLParser):
    """What a page holds: tags with their attributes, and text outside scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(page)
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_page_says_what_is_known():
    page = Read(render(a_report(notes=["Twelve rows are strange."])))
    assert page.open == []
    for words in (
        "Pumps",
        "week-46.csv",
        "Twelve rows are strange.",
        "usually 3.2 (2.8 to 3.9)",
        "To be normal: pressure from 9.1 to 3.2 (p-value then 0.052)",
        "1 more column weighs little or nothing.",
        "Normal row 17",
        "distance 0.41",
        "A theorem covers this model as fitted.",
        "1,998",
        "split, 999 rows",
        "rankad 0.1.0",
        "2 trials, judged by contrast",
        "pressure: a number, as it is",
        "first reason of 3 of the 3 alarms shown",
    ):
        assert words in page.text
    assert not re.search(r"\b(nan|None|inf)\b", page.text.replace("n_jobs None", ""))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"] for link in page.all("a")} <= {f"#{name}" for name in ids}


def test_the_lowest_score_comes_first():
    cards = [tag for tag in Read(render(a_report())).all("details") if tag.get("class") == "case"]
    assert [card["data-row"] for card in cards] == ["4", "7", "90"]


def test_the_table_of_rates_is_exact():
    text = Read(render(a_report())).text.replace("\xa0", " ")
    p_values = a_report().p_values
    for alpha, expected in (("10", "200"), ("1", "20"), ("0.1", "2")):
        n = p_values.n_alarms(float(alpha) / 100)
        assert f"{alpha} % {n} {expected} " in text
    assert f"5 % chosen {p_values.n_alarms(0.05)} 100 " in text


def test_strange_cells_are_told():
    cells = [
        Strange(0, "valve", "not among the categories", "drain"),
        Strange(0, "flow", "missing here", None),
    ]
    alarm = an_alarm(score=-1e140, explanation=None, strange=cells)
    text = Read(render(a_report(alarms=[alarm]))).text
    assert "valve drain : not among the categories" in text
    assert "flow : missing here" in text
    assert "Score: the lowest there is" in text


@pytest.mark.parametrize(
    "gains", [(0.0, 0.0, 0.0), (-1.0, 5.0, -2.0), (math.inf, 1.0, math.inf), (1e300, 1, 0)]
)
def test_any_gain_can_be_drawn(gains):
    reasons = tuple(Reason(f"c{at}", 1.0, 2.0, 1.5, 2.5, 0.5, gain) for at, gain in enumerate(gains))
    page = render(a_report(alarms=[an_alarm(explanation=Explanation(reasons))]))
    assert "nan" not in page
    # The first reason is always there: it is what the explanation begins with.
    assert "weight of c0" in page


def test_a_column_of_the_change_is_shown_however_little_it_weighs_alone():
    reasons = (Reason("a", 9.0, 1.0, 0.0, 2.0, 0.01, 5.0), Reason("b", 9.0, 1.0, 0.0, 2.0, 0.01, -0.1))
    moves = (Move("a", 9.0, 2.0), Move("b", 9.0, 2.0))
    page = render(a_report(alarms=[an_alarm(explanation=Explanation(reasons, (), Change(moves, 0.06)))]))
    assert "weight of b: 0% of the greatest" in page


def test_neighbours_may_come_without_names_but_not_with_other_columns():
    near = (Neighbor(0, 1.0, (3.0, "open", 119.0)),)
    assert (
        "Normal row 1 " in Read(render(a_report(alarms=[an_alarm(explanation=Explanation((), near))]))).text
    )
    with pytest.raises(ValueError, match="has 1 values, the alarm has 3 columns"):
        render(a_report(alarms=[an_alarm(explanation=Explanation((), (Neighbor(0, 1.0, (3.0,)),)))]))


def test_many_columns_are_cut_and_said_to_be():
    views = [NumericView.of(f"x{at}", [1.0, 2.0]) for at in range(60)]
    page = render(a_report(columns=views))
    assert "12 more columns are left out" in Read(page).text


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (FalseAlarmBound(1.0, 0.05, 0.05, False, "x"), "Nothing can be promised"),
        (FalseAlarmBound(0.0, 0.05, 0.05, True, "x"), "No row can raise an alarm"),
        (FalseAlarmBound(0.06, 0.05, 0.05, False, "x"), "This is an approximation."),
    ],
)
def test_no_more_is_promised_than_holds(bound, said):
    assert said in Read(render(a_report(model=a_model(bound=bound)))).text


def test_models_calibrated_in_sample_carry_a_caution():
    assert "more false alarms than asked for" in render(a_report(model=a_model(calibration="in-sample")))
    assert "more false alarms than asked for" not in render(a_report())


EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}&amp;"


def evil_report():
    """Put hostile text wherever text can come from a file."""
    reasons = (
        Reason(EVIL, EVIL, EVIL, None, None, 0.1, 1.0),
        Reason(EVIL + "2", 9.0, 1.0, 0.0, 2.0, 0.1, 1.0),
    )
    explained = Explanation(
        reasons, (Neighbor(1, 0.5, {EVIL: EVIL}),), Change((Move(EVIL, EVIL, EVIL + "3"),), 0.2)
    )
    alarm = an_alarm(
        id=EVIL, explanation=explained, strange=[Strange(0, EVIL, EVIL, EVIL)], values={EVIL: EVIL}
    )
    columns = [
        NumericView.of(EVIL, [1.0, 2.0]).add([1.0], [True]),
        CategoryView.of(EVIL, [EVIL, EVIL + "4"]).add([EVIL], [True]),
    ]
    bound = FalseAlarmBound(0.06, 0.05, 0.05, False, EVIL)
    model = a_model(
        name=EVIL,
        fitted=EVIL,
        bound=bound,
        versions={EVIL: EVIL},
        parameters={EVIL: EVIL},
        encoding=[EVIL],
        fingerprint=EVIL,
    )
    return a_report(
        title=EVIL, source=EVIL, made=EVIL, notes=[EVIL], alarms=[alarm], columns=columns, model=model
    )


def test_all_text_is_escaped():
    page = Read(render(evil_report()))
    assert len(page.all("script")) == 1
    assert page.all("img") == []
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    # Whole and unchanged wherever there is room for it.
    assert page.text.count(EVIL) > 12
    assert "{{ 7 * 7 }}" in page.text
    assert dict(page.tags[[tag for tag, _ in page.tags].index("details")][1])["data-id"] == EVIL


def test_the_policy_lets_only_the_page_s_own_script_run():
    page = render(a_report())
    script = re.search(r"<script>(.*)</script>", page, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(
        tag["content"] for tag in Read(page).all("meta") if tag.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?:|url\(|@import", page)


def _luminance(color):
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1, 2])
def test_text_stands_out_from_its_ground_in_every_scheme(scheme):
    style = files("rankad.report").joinpath("style.css").read_text("utf-8")
    colors = dict(
        re.findall(r"--([a-z-]+): (#[0-9a-f]{3,8});", style.split(":root {")[scheme + 1].split("}")[0])
    )
    colors = {
        name: "#" + "".join(2 * c for c in hexa[1:]) if len(hexa) == 4 else hexa
        for name, hexa in colors.items()
    }
    pairs = [(text, ground) for text in ("ink", "soft", "alarm", "scored") for ground in ("page", "panel")]
    pairs += [("alarm", "track"), ("soft", "track"), ("ink", "alarm-wash"), ("ink", "good-wash")]
    pairs += [("soft", "good-wash"), ("good", "good-wash"), ("note", "note-wash")]
    for text, ground in pairs:
        light, dark = sorted((_luminance(colors[text]), _luminance(colors[ground])), reverse=True)
        # What the Web Content Accessibility Guidelines ask of text, level AA.
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


# ---------------------------------------------------------------------------------------------------- browser


@pytest.fixture
def show(browser, tmp_path):
    """Open a report; afterwards see that nothing was loaded and nothing went wrong."""
    opened, wrong = [], []

    def shown(data, **context):
        path = tmp_path / "report.html"
        path.write_text(render(data), "utf-8")
        page = browser.new_context(**context).new_page()
        opened.append(page)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on(
            "request", lambda made: None if made.url in (path.as_uri(), "data:,") else wrong.append(made.url)
        )
        page.goto(path.as_uri())
        return page

    yield shown
    for page in opened:
        page.context.close()
    assert wrong == []


LONG = "a_column_with_a_name_that_is_much_longer_than_a_small_screen_is_wide_" * 2


def wide_report():
    """Names and values as long as they come."""
    values = {f"{LONG}{at}": at * 1e-200 for at in range(3)}
    near = tuple(Neighbor(at, 0.5, values) for at in range(3))
    explained = Explanation((Reason(LONG, "v" * 300, "w" * 300, None, None, 0.1, 1.0),), near)
    views = [CategoryView.of(LONG, ["v" * 300]), NumericView.of(LONG, [1e-200, 2.5e-200])]
    alarms = [an_alarm(id=LONG, explanation=explained, values=values), an_alarm()]
    return a_report(title=LONG, source=LONG, notes=[LONG], alarms=alarms, columns=views)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("make", [a_report, wide_report, evil_report])
def test_the_page_fits_the_screen(show, make, width, scheme):
    page = show(make(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Of a row and its neighbours, no cell is cut off on a phone.
    cut = "[...document.querySelectorAll('.near .scroll')].filter(one => one.scrollWidth > one.clientWidth)"
    assert width > 400 or page.evaluate(f"{cut}.length") == 0
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", ground)[:3])) / 3
    assert (brightness > 128) == (scheme == "light")


def test_users_are_told_of_normal_rows():
    strange = [Strange(row=0, column="valve", what="not among the categories of nominal rows", value="drain")]
    bound = beta_bound(Calibration.from_scores(np.arange(999), "cross-fit"), 0.05, 0.05, 9, 1_008)
    page = Read(render(a_report(alarms=[an_alarm(strange=strange)], model=a_model(bound=bound))))
    labels = [attributes.get("aria-label", "") for _, attributes in page.tags]
    assert "nominal" not in " ".join([page.text, *labels]).lower()
    assert "not among the categories of normal rows" in page.text


def test_only_cells_that_matter_are_red():
    page = Read(render(a_report(alarms=[an_alarm()])))
    cells = [attributes["class"] for attributes in page.all("td") if "own" in attributes.get("class", "")]
    # Pressure has to change; valve and flow do not.
    assert cells == ["own reason", "own", "own"]


def test_one_row_is_one_row():
    missing = NumericView.of("x", [1.0, 2.5, 3.0]).add([1.0, None], [False, True])
    text = Read(render(a_report(columns=[missing]))).text
    assert "missing in 1 row, an alarm" in text
    both = missing.add([None], [False])
    assert "missing in 2 rows, 1 of them an alarm" in Read(render(a_report(columns=[both]))).text


def test_the_page_says_which_discovery_rate_was_asked_for():
    p_values = np.append(np.full(30, 0.002), np.linspace(0.01, 1, 970))
    summary = PValueSummary.of([p_values], 0.05, 0.002)
    data = a_report(p_values=p_values, columns=[], fdr=0.1, level=0.002)
    data = replace(data, p_values=summary)
    assert data.n_alarms == 30
    text = Read(render(data)).text
    assert "at a false discovery rate of 10\xa0%" in text.replace(" %", "\xa0%")
    assert "False among the alarms 3 at most, on average" in text
    assert replace(data, level=0.0).n_alarms == 0
    with pytest.raises(ValueError, match="fdr and level go together"):
        a_report(fdr=0.1)


def test_alarms_can_be_sorted_and_found(show):
    page = show(a_report())

    def rows():
        return page.eval_on_selector_all(".case", "cards => cards.map(card => card.dataset.row)")

    assert rows() == ["4", "7", "90"]
    page.get_by_label("Order").select_option("by id")
    assert rows() == ["90", "4", "7"]
    page.get_by_label("Find a row").fill("P-7")
    assert page.locator(".case:visible").count() == 1
    page.get_by_label("Find a row").fill("")
    page.get_by_role("button", name="Close all").click()
    assert page.locator(".case[open]").count() == 0


def test_the_page_can_be_read_without_its_script(show):
    page = show(a_report(), java_script_enabled=False)
    assert page.locator(".case").count() == 3
    assert page.get_by_label("Order").count() == 0
    page.locator(".near > summary").first.click()
    assert page.get_by_text("Normal row 17").first.is_visible()


@pytest.mark.parametrize("script", [True, False])
def test_every_alarm_is_printed(show, script):
    alarms = [an_alarm(row, -float(row)) for row in range(1, 9)]
    page = show(a_report(alarms=alarms), java_script_enabled=script)
    assert page.locator(".change:visible").count() < 8
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert all(line.bounding_box()["height"] > 10 for line in page.locator(".change").all())
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
