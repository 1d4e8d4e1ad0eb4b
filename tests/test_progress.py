"""Progress goes to standard error, and only when asked for."""

import io
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from rankad._base import progress as _progress

TRIALS = ["D_K", "2 D_K"]
LINE = re.compile(r"rankad (\w+): (\d+) of (\d+), (?:\d+ min )?\d+ s left")


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(80, 2))


def reports(text):
    """Return {label: [(done, total), ...]}."""
    found = {}
    for label, done, total in LINE.findall(text):
        found.setdefault(label, []).append((int(done), int(total)))
    return found


def test_silent_by_default(build, rows, capfd):
    detector = build().fit(rows)
    detector.predict(rows)
    assert capfd.readouterr() == ("", "")


def test_silent_while_selecting_by_default(quick_rankad, rows, capfd):
    quick_rankad(bandwidth=TRIALS).fit(rows)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_verbose_counts_selection_and_calibration_on_standard_error(quick_rankad, rows, capfd, n_jobs):
    quick_rankad(bandwidth=TRIALS, verbose=True, n_jobs=n_jobs).fit(rows)
    out, err = capfd.readouterr()
    assert out == ""
    found = reports(err)
    assert set(found) == {"selection", "calibration"}
    for steps in found.values():
        done = [step for step, _ in steps]
        assert done == sorted(set(done))
        assert done[-1] == steps[-1][1], "the last report says that all is done"
    assert all(LINE.fullmatch(line) for line in err.splitlines())


def test_a_long_count_is_reported_now_and_then(monkeypatch, capsys):
    """Sixty steps of one second each: some lines, far fewer than steps, and one at the end."""
    seconds = iter(range(1_000))
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))
    progress = _progress.Progress("selection", 60, shown=True)
    for _ in range(60):
        progress.advance()
    progress.finish()
    steps = reports(capsys.readouterr().err)["selection"]
    assert 2 <= len(steps) <= 30
    assert steps[-1] == (60, 60)


def test_the_time_left_is_estimated_by_the_steps_of_this_run(monkeypatch, capsys):
    """Forty steps of four seconds are left of a hundred; those done before took no time."""
    seconds = iter(range(0, 1_000, 4))
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))
    monkeypatch.setattr(_progress, "_SECONDS_BETWEEN_LINES", 0.0)
    progress = _progress.Progress("selection", 100, shown=True, finished=59)
    progress.advance()
    assert capsys.readouterr().err == "rankad selection: 60 of 100, 2 min 40 s left\n"


def test_verbose_and_silent_fits_are_the_same_fit(quick_rankad, rows):
    loud = quick_rankad(bandwidth=TRIALS, verbose=True).fit(rows)
    silent = quick_rankad(bandwidth=TRIALS).fit(rows)
    np.testing.assert_array_equal(loud.score_samples(rows), silent.score_samples(rows))


def test_on_a_terminal_one_line_is_rewritten(quick_rankad, rows, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    quick_rankad(bandwidth=TRIALS, verbose=True).fit(rows)
    written = terminal.getvalue()
    assert written.startswith("\rrankad selection: 1 of ")
    assert written.count("\n") == 2, "one line for selection, one for calibration"
    assert written.endswith("\n")
