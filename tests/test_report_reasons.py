"""Which reasons are worth a line: gains made up so that the answer can be read off."""

from rankad.explanations.explainer import Change, Explanation, Move, Reason
from rankad.explanations.sentences import MOST_REASONS, weighing


def explained(gains, moved=()):
    """An explanation with these gains by column, in this order, and a change of the columns `moved`."""
    reasons = tuple(Reason(name, 9.0, 0.0, -1.0, 1.0, 0.5, gain) for name, gain in gains.items())
    change = Change(tuple(Move(name, 9.0, 1.0) for name in moved), 0.06, 0.0) if moved else None
    return Explanation(0.01, -1.0, reasons, (), change)


def shown(gains, moved=()):
    """The columns of the reasons worth a line."""
    return [reason.column for reason in weighing(explained(gains, moved))]


def test_a_reason_weighs_above_a_twentieth_of_the_largest_gain():
    # A twentieth of 2 is 0.1.
    assert shown({"a": 2.0, "b": 0.11, "c": 0.1, "d": 0.09, "e": 0.0, "f": -1.0}) == ["a", "b"]


def test_lines_come_by_gain_though_reasons_do_not():
    # A twentieth of 4 is 0.2; the first of the reasons stays though it weighs less.
    assert shown({"a": 0.1, "b": 0.3, "c": 0.15, "d": 4.0}) == ["d", "b", "a"]


def test_columns_of_the_change_are_shown_whatever_they_weigh():
    gains = {"a": 2.0, "b": 0.0, "c": -1.0, "d": 0.05}
    assert shown(gains) == ["a"]
    assert shown(gains, moved=["c", "a"]) == ["a", "c"]
    assert shown(gains | {"c": 3.0}, moved=["c", "a"]) == ["c", "a"]


def test_without_a_gain_the_first_alone_is_shown():
    assert shown({"a": 0.0, "b": 0.0}) == ["a"]
    assert shown({"a": -2.0, "b": -1.0, "c": 0.0}) == ["a"]
    assert shown({}) == []


def test_there_are_no_more_than_six_lines():
    assert MOST_REASONS == 6
    gains = {name: 1.0 for name in "abcdefgh"}
    assert shown(gains) == list("abcdef")
    # The change has no more of a claim to a line than the order gives it.
    assert shown(gains, moved=["h"]) == list("abcdef")


def test_the_reasons_themselves_come_back():
    found = explained({"a": 2.0, "b": 1.0, "c": 0.0})
    assert weighing(found) == list(found.reasons[:2])
