"""Alarms along the table and along time: counts by hand and by numpy, however batches are cut."""

from xml.etree import ElementTree

import numpy as np
import pytest

from rankad.report.charts import timeline_bars
from rankad.report.timeline import Timeline, written


@pytest.mark.parametrize("n", [1, 9, 100, 5_000, 123_457])
def test_rows_are_counted_in_their_order_however_batches_are_cut(n):
    flags = np.random.default_rng(n).random(n) < 0.1
    lines = []
    for batch in (n, 1_000, 997):
        line = Timeline()
        for begin in range(0, n, batch):
            line = line.add(begin, flags[begin : begin + batch])
        lines.append(line.spans())
    assert all(spans == lines[0] for spans in lines)
    spans = lines[0]
    assert len(spans) <= 48
    assert (spans[0].begin, spans[-1].end) == (1, n)
    for span in spans:
        assert span.n_rows == span.end - span.begin + 1
        assert span.n_alarms == flags[span.begin - 1 : span.end].sum()


def test_times_are_counted_by_a_unit_that_fits():
    rng = np.random.default_rng(1)
    begin = 1_700_000_000
    for length, unit in ((40, "second"), (3_000, "10 minutes"), (86_400, "hour"), (86_400 * 20, "day")):
        seconds = begin + rng.integers(0, length, size=3_000).astype(float)
        flags = rng.random(3_000) < 0.2
        line = Timeline("at").add_times(seconds[:100], flags[:100]).add_times(seconds[100:], flags[100:])
        assert line.unit == unit or length == 3_000
        spans = line.spans()
        assert sum(span.n_rows for span in spans) == 3_000
        for span in spans:
            inside = (seconds >= span.begin) & (seconds < span.end)
            assert (span.n_rows, span.n_alarms) == (inside.sum(), flags[inside].sum())


def test_a_few_wrong_dates_do_not_squeeze_the_others():
    seconds = np.append(1_700_000_000 + 60.0 * np.arange(1_000), [0.0, 4e9, np.nan])
    line = Timeline("at").add_times(seconds, np.zeros(1_003, dtype=bool))
    assert line.unit == "hour"
    assert (line.n_without, line.n_outside) == (1, 2)
    # They are drawn where they are many.
    half = Timeline("at").add_times(np.append(seconds, np.zeros(900)), np.zeros(1_903, dtype=bool))
    assert half.n_outside == 0


def test_times_of_any_age_are_kept_in_little_memory():
    seconds = np.linspace(-5e12, 5e12, 50_000)
    line = Timeline("at").add_times(seconds, np.zeros(50_000, dtype=bool))
    assert len(line.rows) <= 50_000
    assert written(10**18, "day").endswith(" s")


def test_the_chart_has_a_bar_for_each_bin_with_alarms():
    line = Timeline().add(0, np.arange(640) % 64 == 0)
    svg = ElementTree.fromstring(str(timeline_bars(line, 0.05)))
    bars = [part for part in svg.iter("rect") if part.get("class") == "alarm"]
    assert len(bars) == 10
    titles = [part.text for part in svg.iter("title")]
    assert titles[0] == "rows 1 to 16: 1 alarm among 16 rows"
    assert len(titles) == 40


def test_no_rows_make_an_empty_chart():
    assert Timeline().spans() == []
    assert "svg" in str(timeline_bars(Timeline(), 0.05))
