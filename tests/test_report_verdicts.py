"""The verdict in words: every kind of it, with verdicts made up so that the sentence can be read off."""

import pytest

from rankad._base.wording import percent, plain
from rankad.alarms.chance import Span
from rankad.alarms.shifts import NumberShift
from rankad.alarms.verdict import Verdict
from rankad.report.verdicts import Pen, spoken, spoken_of
from rankad.tables.judging import MovedColumn, TableVerdict
from rankad.tables.strange_cells import SAME_CATEGORY

PEN = Pen(plain, lambda share: percent(share).replace("\xa0", ""))


def overall(kind="usual", shape=None, n_alarms=50, strict=None):
    return Verdict(kind, shape, 0.05, 1000, n_alarms, 50.0, Span(30, 72), strict)


def a_column(**given):
    known = {"distance": 0.5, "p_value": 0.0, "moved": True, "explains": 0.99, "blamed": 1.0}
    return MovedColumn("tx_id", **{**known, **given})


def verdict(of=None, columns=(), has_rows=True, n_looked=200, n_moved=None):
    moved = sum(column.moved for column in columns) if n_moved is None else n_moved
    return TableVerdict(of or overall(), tuple(columns), has_rows, moved, 400, n_looked)


@pytest.mark.parametrize(
    ("of", "columns", "title", "off"),
    [
        (overall(), [], "About as many alarms as normal rows raise", False),
        (overall(n_alarms=73), [], "Somewhat more alarms than usual, but chance may explain them", False),
        (overall(n_alarms=29), [], "Somewhat fewer alarms than usual, but chance may explain them", False),
        (overall("more", n_alarms=1000), [], "All rows are alarms, at a false-alarm rate of 5%", True),
        (
            overall("more", n_alarms=998),
            [],
            "998 of 1,000 rows are alarms, at a false-alarm rate of 5%",
            True,
        ),
        (
            overall("more", n_alarms=300),
            [],
            "More alarms than chance allows at 5%: 300 of 1,000 rows, where 30 to 72 are usual",
            True,
        ),
        (
            overall("fewer", n_alarms=3),
            [],
            "Fewer alarms than normal rows raise at 5%: 3 of 1,000 rows, where 30 to 72 are usual",
            True,
        ),
        (overall("some", strict=0.001), [], "Some rows stand out", True),
        (overall("unknown"), [], "How many alarms chance raises is not known", False),
        (overall("silent"), [], "No row can raise an alarm at 5%", False),
        (overall("empty"), [], "No rows were scored", False),
        (
            overall(),
            [a_column(explains=None, blamed=None)],
            "No more alarms than chance allows at 5%, but the table has moved",
            True,
        ),
        (
            overall(shape="low"),
            [],
            "No more alarms than chance allows at 5%, but p-values are lower on the whole than those of "
            "normal rows",
            True,
        ),
    ],
)
def test_the_title_is_the_verdict(of, columns, title, off):
    said = spoken(verdict(of, columns), PEN)
    assert (said.title, said.off) == (title, off)


def test_the_column_that_explains_the_alarms_is_named_and_what_to_do():
    numbers = NumberShift("goes on", 5000.0, 1000.0)
    lead = a_column(how="goes on", numbers=numbers)
    others = [a_column()._replace(column=name) for name in ("a", "b")]
    said = spoken(verdict(overall("more", "low", 990), [lead, *others], n_moved=5), PEN)
    assert said.text == (
        "The table has moved, chiefly in column tx_id: its values do not repeat and go on beyond all normal "
        "ones (median 5000, in normal rows 1000); is it an id, a counter or a time?",
        "This column alone explains 198 of the 200 alarms that were looked at.",
        "Columns a, b and 2 more moved as well.",
        "If it counts on or names rows, fit again without it (--drop tx_id): until then, p-values mean "
        "nothing.",
    )


def test_a_column_that_only_has_a_part_in_it_is_not_said_to_explain():
    said = spoken(verdict(overall("more", n_alarms=400), [a_column(explains=0.1, blamed=0.8)]), PEN)
    assert "To end 160 of the 200 alarms that were looked at, this column would have to change." in said.text
    said = spoken(verdict(overall("more", n_alarms=400), [a_column(explains=0.1, blamed=0.2)]), PEN)
    assert not any("looked at" in sentence for sentence in said.text)


def test_it_is_said_why_no_column_is_named():
    off = overall("more", n_alarms=300)
    assert spoken(verdict(off), PEN).text == ("No single column explains them.",)
    assert spoken(verdict(off, has_rows=False), PEN).text == (
        "The model holds no rows to compare columns with, so the column that is to blame cannot be named.",
    )
    assert spoken(verdict(), PEN).text == ()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (
            a_column(
                how="strange", share=0.261, value="eco", what="not among the categories of nominal rows"
            ),
            "26% of its cells are strange, such as eco: not among the categories of normal rows",
        ),
        (
            a_column(how="strange", share=1.0, value="DE ", what=SAME_CATEGORY),
            "100% of its cells are strange, such as DE : the same as a category of normal rows but for case, "
            "spaces or leading zeros",
        ),
        (
            a_column(how="strange", share=0.3, what="missing, but in no nominal row"),
            "30% of its cells are strange: missing, but in no normal row",
        ),
        (
            a_column(how="missing", share=0.5, nominal_share=0.03),
            "50% of its cells are missing, in normal rows 3%",
        ),
        (
            a_column(how="swapped", value="flow"),
            "it has what normal rows have in flow, and the other way round; are the two swapped?",
        ),
        (
            a_column(how="category", value="west", share=0.8, nominal_share=0.2),
            "west comes in 80% of the rows, in 20% of normal rows",
        ),
        (
            a_column(how="scaled", numbers=NumberShift("scaled", 1.0, 1.0, 1003.7)),
            "its values are about 1000 times those of normal rows; is it another unit?",
        ),
        (
            a_column(how="scaled", numbers=NumberShift("scaled", 1.0, 1.0, 1.8, 32.0)),
            "its values are about 1.8 times those of normal rows, plus 32; is it another unit?",
        ),
        (
            a_column(how="scaled", numbers=NumberShift("scaled", 1.0, 1.0, 1.0, -273.15)),
            "its values are about 273 lower than in normal rows; is it another unit?",
        ),
        (
            a_column(how="moved", numbers=NumberShift("moved", 12.0, 17.0, 1.0, -5.0)),
            "its values are about 5 lower than in normal rows (median 12, in normal rows 17)",
        ),
        (
            a_column(how="constant", numbers=NumberShift("constant", 7.0, 9.0)),
            "it is always 7, but varies in normal rows",
        ),
        (
            a_column(how="spread", numbers=NumberShift("spread", 7.0, 7.0, 4.8)),
            "its values vary about 4.8 times as much as in normal rows",
        ),
        (
            a_column(how="other", numbers=NumberShift("other", 7.0, 9.0)),
            "its values are not spread as in normal rows (median 7, in normal rows 9)",
        ),
        (a_column(), "its values are not spread as in normal rows"),
    ],
)
def test_the_way_a_column_has_moved_is_told(column, said):
    assert spoken_of(column, PEN) == said


def test_a_table_that_moved_is_said_to_have_where_alarms_tell_nothing():
    column = a_column(explains=None, blamed=None, how="missing", share=0.5, nominal_share=0.1)
    for kind in ("unknown", "silent"):
        said = spoken(verdict(overall(kind), [column], n_looked=0), PEN)
        assert said.off
        assert said.text[0].startswith("The table has moved, chiefly in column tx_id: 50% of its cells")
    said = spoken(verdict(overall(), [column], n_looked=0), PEN)
    assert said.text[0].startswith("It has moved chiefly in column tx_id: 50% of its cells")
