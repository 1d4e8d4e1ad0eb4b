"""A growing table: the same events however it is cut, killed or resumed, and the columns that moved."""

import io
import json
import os

import numpy as np
import polars as pl
import pytest

from cli_cases import QUICK, call
from rankad import RankAD, TableDetector
from rankad.io.errors import TableError
from rankad.scoring import watching
from rankad.scoring.watching import Watcher
from rankad.tables import Untyped


def lines(n, rng, shift=0.0):
    flow, mode = rng.normal(10 + shift, 1, n), rng.choice(["eco", "full, loud"], n)
    return [f'{value:.4f},"{word}",{5 + value / 10:.3f}\n' for value, word in zip(flow, mode, strict=True)]


@pytest.fixture(scope="module")
def table():
    """A header, and rows that drift after the 300th."""
    rng = np.random.default_rng(0)
    return ["flow,mode,load\n", *lines(300, rng), *lines(200, rng, shift=3.0)]


@pytest.fixture(scope="module")
def detector():
    rows = "".join(["flow,mode,load\n", *lines(400, np.random.default_rng(1))])
    frame = pl.read_csv(io.StringIO(rows), infer_schema=False)
    return TableDetector(RankAD(0.05, **QUICK)).fit(Untyped(frame))


def watcher(detector, folder, **options):
    return Watcher(detector, "model", folder / "state.json", folder / "events.jsonl", **options)


def events(folder):
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def whole(detector, table, tmp_path_factory):
    """The events of a run without interruption, row by row."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "t.csv").write_text("".join(table))
    watcher(detector, folder).read(folder / "t.csv")
    return events(folder)


def test_alarms_are_those_of_the_detector_and_drift_names_the_columns(detector, table, whole):
    frame = pl.read_csv(io.StringIO("".join(table)), infer_schema=False)
    p_values = detector.p_values(frame)
    alarms = [event for event in whole if "p_value" in event]
    assert [event["row"] for event in alarms] == (np.flatnonzero(p_values <= 0.05) + 1).tolist()
    assert alarms[0]["cells"]["flow"] == frame["flow"][alarms[0]["row"] - 1]
    drift = [event for event in whole if "drift" in event]
    assert 300 < drift[0]["row"] < 400
    assert {column["column"] for column in drift[0]["columns"]} & {"flow", "load"}
    assert "mode" not in {column["column"] for column in drift[0]["columns"]}


def test_a_file_that_grows_in_any_pieces_gives_the_same_events(detector, table, whole, tmp_path):
    text, path = "".join(table), tmp_path / "t.csv"
    for end in (3, 20, 5_000, 5_001, len(text) // 2, len(text)):
        path.write_text(text[:end])
        # Each time as a new process would.
        found = watcher(detector, tmp_path)
        found.read(path)
    key = lambda event: (event["row"], "drift" in event)  # noqa: E731
    ours, theirs = sorted(events(tmp_path), key=key), sorted(whole, key=key)
    assert [one for one in ours if "drift" not in one] == [one for one in theirs if "drift" not in one]
    assert [one["drift"] for one in ours if "drift" in one] == [
        one["drift"] for one in theirs if "drift" in one
    ]
    assert found.n_rows == 500


def test_a_kill_between_events_and_state_counts_nothing_twice(detector, table, whole, tmp_path, monkeypatch):
    text, path = "".join(table), tmp_path / "t.csv"
    path.write_text(text[: len(text) // 2])
    watcher(detector, tmp_path).read(path)
    path.write_text(text)

    def killed(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(watching, "replacing", killed)
        with pytest.raises(KeyboardInterrupt):
            watcher(detector, tmp_path).read(path)
    assert len(events(tmp_path)) > 1
    found = watcher(detector, tmp_path)
    found.read(path)
    assert found.n_rows == 500
    assert [one["row"] for one in events(tmp_path) if "p_value" in one] == [
        one["row"] for one in whole if "p_value" in one
    ]


def test_rows_from_a_pipe_are_the_same(detector, table, whole, tmp_path):
    watcher(detector, tmp_path).read_stream(io.BytesIO("".join(table).encode()))
    assert events(tmp_path) == whole


def test_what_does_not_fit_the_state_is_refused(detector, table, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("".join(table[:50]))
    watcher(detector, tmp_path).read(path)
    path.write_text("".join(table[:20]))
    with pytest.raises(TableError, match="it was replaced or cut"):
        watcher(detector, tmp_path).read(path)
    path.write_text("other,mode,load\n" + "".join(table[1:60]))
    with pytest.raises(TableError, match="other columns than before"):
        watcher(detector, tmp_path).read(path)
    with pytest.raises(TableError, match="state of another model"):
        Watcher(detector, "new", tmp_path / "state.json", tmp_path / "events.jsonl")
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(
        TableError,
        match=r"not the state of rankad watch \(it has no 'version'\)\. Start over",
    ):
        watcher(detector, tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        "null",
        "[]",
        {"offset": -1},
        {"offset": "7"},
        {"n_rows": 1e9},
        {"n_alarms": None},
        {"tail_size": 10**6},
        {"tail": None},
        {"recent": [1]},
        {"recent": "rows"},
        {"monitor": "null"},
    ],
)
def test_a_state_that_was_tampered_with_is_refused(detector, table, tmp_path, wrong):
    (tmp_path / "t.csv").write_text("".join(table[:50]))
    watcher(detector, tmp_path).read(tmp_path / "t.csv")
    state = tmp_path / "state.json"
    state.write_text(wrong if isinstance(wrong, str) else json.dumps(json.loads(state.read_text()) | wrong))
    with pytest.raises(TableError, match=r"is not the state of rankad watch \(.*\)\. Start over"):
        watcher(detector, tmp_path)


def test_the_command_goes_on_where_it_was(capsys, detector, table, tmp_path):
    model, path = tmp_path / "m.rankad", tmp_path / "t.csv"
    detector.save(model)
    given = ("watch", path, "--model", model, "--state", tmp_path / "s", "--out", tmp_path / "e.jsonl")
    path.write_text("".join(table[:200]))
    assert "199 rows" in call(capsys, *given).err
    path.write_text("".join(table))
    said = call(capsys, *given, "--json", "--fail-on-drift")
    answer = json.loads(said.out)
    assert (said.status, answer["rows"]) == (4, 500)
    assert answer["drift"][0]["row"] > 300
    assert json.loads(call(capsys, *given, "--json").out)["drift"] == []


def test_the_command_says_which_promise_a_drift_alarm_rests_on(capsys, detector, table, tmp_path):
    model, path = tmp_path / "m.rankad", tmp_path / "t.csv"
    detector.save(model)
    path.write_text("".join(table))
    said = call(capsys, "watch", path, "-m", model, "-s", tmp_path / "s", "-o", tmp_path / "events.jsonl").err
    drifts = [event["drift"] for event in events(tmp_path) if "drift" in event]
    expected = [
        f"Row {drift['row']:,}: drift alarm of the kind {drift['by']}; normal has drifted since about row "
        f"{drift['since']:,}."
        for drift in drifts
    ]
    # Either kind may be false now and then, so neither is said to be certain.
    assert {drift["by"] for drift in drifts} == {"run", "ever"}
    assert said.splitlines()[: len(drifts)] == expected


def test_a_table_without_a_column_is_named(capsys, detector, tmp_path):
    table, model = tmp_path / "t.csv", tmp_path / "m.rankad"
    table.write_text("mode,other\nlow,1\n")
    detector.save(model)
    ended = call(capsys, "watch", table, "-m", model, "-s", tmp_path / "s", "-o", tmp_path / "o")
    assert ended.status == 1
    assert f"{table}: the table lacks 'flow', 'load', which the detector was fitted with" in ended.err


def test_a_second_run_on_one_state_is_refused(capsys, detector, table, tmp_path):
    model, path = tmp_path / "m.rankad", tmp_path / "t.csv"
    detector.save(model)
    path.write_text("".join(table[:50]))
    given = ("watch", path, "--model", model, "--state", tmp_path / "s", "--out", tmp_path / "e.jsonl")
    with watching.watching_alone(tmp_path / "s", tmp_path / "other.jsonl"):
        said = call(capsys, *given)
    assert said.status == 1
    assert "is in use by another rankad watch" in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "s").exists()
    # With a state of its own it would write over the events of the other.
    with watching.watching_alone(tmp_path / "other", tmp_path / "e.jsonl"):
        said = call(capsys, *given)
    assert said.status == 1
    assert "e.jsonl is being written by another rankad watch; stop it, or give another --out" in said.err
    assert not (tmp_path / "s").exists()
    assert call(capsys, *given).status == 0


def test_a_table_that_is_no_text_is_refused(detector, table, tmp_path):
    path = tmp_path / "t.parquet"
    pl.read_csv(io.StringIO("".join(table))).write_parquet(path)
    with pytest.raises(TableError, match=r"t\.parquet is not text: watch reads CSV.*rankad score"):
        watcher(detector, tmp_path).read(path)


def test_blank_lines_are_no_rows(detector, table, tmp_path):
    plain, gaps = tmp_path / "plain", tmp_path / "gaps"
    for folder, text in ((plain, "".join(table)), (gaps, "\n  \r\n".join(table))):
        folder.mkdir()
        (folder / "t.csv").write_text(text)
        one = watcher(detector, folder)
        one.read(folder / "t.csv")
        assert one.n_rows == 500
    assert events(gaps) == events(plain)


def test_events_of_another_run_are_kept(detector, table, tmp_path):
    (tmp_path / "events.jsonl").write_text('{"row": 1}\n')
    (tmp_path / "t.csv").write_text("".join(table))
    watcher(detector, tmp_path).read(tmp_path / "t.csv")
    found = events(tmp_path)
    assert found[0] == {"row": 1}
    assert len(found) > 1
    # Killed before anything was saved, a run adds nothing twice.
    assert watcher(detector, tmp_path).read(tmp_path / "t.csv") == []
    assert events(tmp_path) == found


def test_a_table_replaced_by_a_longer_one_is_refused(detector, table, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("".join(table[:100]))
    watcher(detector, tmp_path).read(path)
    path.write_text("".join([table[0], *table[200:500]]))
    with pytest.raises(TableError, match="it was replaced"):
        watcher(detector, tmp_path).read(path)


def test_the_rest_of_a_file_that_was_rotated_is_read_under_its_new_name(detector, table, whole, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("".join(table[:350]))
    watcher(detector, tmp_path).read(path)
    path.write_text("".join(table))
    path.rename(tmp_path / "t.csv.1")
    path.write_text("".join(table[:3]))
    with pytest.raises(TableError, match="it was replaced or cut"):
        watcher(detector, tmp_path).read(path)
    watcher(detector, tmp_path).read(tmp_path / "t.csv.1")
    for kind in ("p_value", "drift"):
        ours, theirs = ([one[kind] for one in found if kind in one] for found in (events(tmp_path), whole))
        assert ours == theirs


def test_rows_behind_an_open_quote_are_told_of(detector, table, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("".join([*table[:3], '10.1,5" pipe,6.0\n', *table[3:6]]))
    one = watcher(detector, tmp_path)
    with pytest.warns(UserWarning, match=r"4 lines after row 2 are not scored yet: a quote is open"):
        one.read(path)
    assert one.n_rows == 2


def test_a_last_line_of_a_pipe_needs_no_line_end(detector, table, tmp_path):
    one = watcher(detector, tmp_path)
    one.read_stream(io.BytesIO("".join(table[:4]).rstrip("\n").encode()))
    assert one.n_rows == 3


def test_a_file_that_is_not_the_events_of_the_state_is_not_cut_off(detector, table, tmp_path):
    (tmp_path / "t.csv").write_text("".join(table))
    watcher(detector, tmp_path).read(tmp_path / "t.csv")
    state, longer = tmp_path / "state.json", tmp_path / "longer.jsonl"
    for text in ("".join(table) * 20, (tmp_path / "events.jsonl").read_text() * 3):
        longer.write_text(text)
        with pytest.raises(TableError, match=r"longer.jsonl is not the file of events"):
            Watcher(detector, "model", state, longer)
        assert longer.read_text() == text


@pytest.mark.parametrize("link", [False, True])
def test_state_and_events_are_two_files(capsys, detector, table, tmp_path, link):
    model, path, out = tmp_path / "m.rankad", tmp_path / "t.csv", tmp_path / "new"
    detector.save(model)
    path.write_text("".join(table))
    state = tmp_path / "link" if link else out
    if link:
        state.symlink_to(out)
    said = call(capsys, "watch", path, "--model", model, "--state", state, "--out", out)
    assert said.status == 2
    assert "write to another file" in said.err
    assert not out.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
def test_a_pipe_with_a_name_is_refused(capsys, detector, tmp_path):
    model, pipe = tmp_path / "m.rankad", tmp_path / "pipe"
    detector.save(model)
    os.mkfifo(pipe)
    # With a writer, so that opening it does not wait.
    writer = os.open(pipe, os.O_RDWR)
    said = call(capsys, "watch", pipe, "--model", model, "--state", tmp_path / "s", "--out", tmp_path / "e")
    os.close(writer)
    assert said.status == 2
    assert "give - and send it to standard input" in said.err


def test_closed_standard_input_is_said(capsys, monkeypatch, detector, tmp_path):
    model = tmp_path / "m.rankad"
    detector.save(model)
    monkeypatch.setattr("sys.stdin", None)
    said = call(capsys, "watch", "-", "--model", model, "--state", tmp_path / "s", "--out", tmp_path / "e")
    assert said.status == 1
    assert said.err == "rankad: standard input is closed; send a table through a pipe, or give a file.\n"
    assert not (tmp_path / "s").exists()
