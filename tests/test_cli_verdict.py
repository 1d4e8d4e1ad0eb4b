"""What the commands say of a table as a whole, reasons in the output, rows by id, and discovery rates."""

import csv
import json
import re
import sys

import numpy as np
import polars as pl
import pytest
from scipy.stats import false_discovery_control

import rankad
from cli_cases import call, cells, make_files, read_text, save_without_rows
from rankad.explanations.sentences import reason_text
from rankad.io.table_files import open_table
from rankad.report.making import Course
from test_cli_score import interrupted_after


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("pump"))


@pytest.fixture(scope="module")
def without_rows(files):
    return save_without_rows(files, files.folder / "without.rankad")


@pytest.fixture(scope="module")
def hot(files):
    """New rows with one column in another unit: all of them are alarms."""
    path = files.folder / "hot.csv"
    frame = read_text(files.new)
    heat = (frame["bearing_c"].cast(pl.Float64) * 1000).cast(pl.String)
    frame.with_columns(bearing_c=heat).write_csv(path)
    return path


# --------------------------------------------------------------------------------------------- the verdict


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_beyond_all_chance_is_said_before_the_rows(
    files, hot, capsys, monkeypatch, tmp_path, terminal
):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    out = [] if terminal else ["--out", tmp_path / "out.csv"]
    said = call(capsys, "score", hot, "--model", files.model, *out).out
    said = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()
    assert said[0] == "All rows are alarms, at a false-alarm rate of 5%."
    assert said[1].startswith("The table has moved, chiefly in column bearing_c: its values are about 1")
    assert said[1].endswith("times those of normal rows; is it another unit?")
    assert said[2].startswith("This column alone explains ")
    where = [at for at, line in enumerate(said) if "most abnormal rows" in line]
    assert (where > [2]) == terminal


def test_a_table_as_expected_has_no_verdict_on_the_screen_but_one_in_json(files, capsys):
    said = call(capsys, "score", files.new, "--model", files.model, "--json")
    verdict = json.loads(said.out)["verdict"]
    assert verdict["alarms"] == "usual"
    assert verdict["p_values"] == "as those of normal rows"
    assert verdict["beyond_chance"] is False
    assert (verdict["columns"], verdict["alpha"], verdict["wrong_at_most"]) == ([], 0.05, 0.01)
    assert verdict["n_alarms"] == (rankad.load(files.model).p_values(read_text(files.new)) <= 0.05).sum()
    low, high = verdict["usual_alarms"]
    assert low < verdict["expected_alarms"] == 6 < high


def test_the_verdict_in_json_names_the_column(files, hot, capsys):
    verdict = json.loads(call(capsys, "score", hot, "--model", files.model, "--json").out)["verdict"]
    assert (verdict["alarms"], verdict["beyond_chance"], verdict["n_alarms"]) == ("more", True, 120)
    first = verdict["columns"][0]
    assert (first["column"], first["how"], first["moved"]) == ("bearing_c", "scaled", True)
    assert first["explains_alarms"] > 0.8
    assert verdict["text"][0] == "All rows are alarms, at a false-alarm rate of 5%."


def test_the_page_and_explain_say_it_first_too(files, hot, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    page = tmp_path / "page.html"
    for said in (
        call(capsys, "report", hot, "--model", files.model, "--out", page),
        call(capsys, "explain", hot, "--model", files.model, "--top", "1"),
    ):
        assert said.out.startswith("All rows are alarms, at a false-alarm rate of 5%.\nThe table has moved, ")
    text = page.read_text()
    verdict = text.index("chiefly in column bearing_c")
    assert verdict < text.index("Rows scored") < text.index('id="alarms"')
    assert "All rows are alarms" in text


def test_without_rows_the_column_cannot_be_named(files, hot, without_rows, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    told = "The model holds no rows to compare columns with, so the column that is to blame cannot be named."
    said = call(capsys, "score", hot, "--model", without_rows, "--out", tmp_path / "out.csv")
    assert said.out.splitlines()[:2] == ["All rows are alarms, at a false-alarm rate of 5%.", told]
    verdict = json.loads(call(capsys, "score", hot, "--model", without_rows, "--json").out)["verdict"]
    assert verdict["columns"] is None
    call(capsys, "report", hot, "--model", without_rows, "--out", tmp_path / "page.html")
    assert told in (tmp_path / "page.html").read_text()


def test_a_run_that_goes_on_judges_all_rows_and_says_which_it_compared(
    files, hot, capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", 1_000)
    command = ["score", hot, "--model", files.model, "--out", tmp_path / "out.csv", "--resume"]
    with monkeypatch.context() as patched:
        interrupted_after(patched, 2)
        assert call(capsys, *command).status == 130
    said = call(capsys, *command)
    assert said.out.startswith("All rows are alarms, at a false-alarm rate of 5%.\n")
    assert "chiefly in column bearing_c" in said.out
    assert "Columns were compared on the rows of this run only" in said.out
    assert "120 rows, 120 alarms at 5%." in " ".join(said.out.split())


# --------------------------------------------------------------------------------------------- reasons


def test_reasons_are_those_of_explain_for_alarms_alone(files, capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", 1_500)
    out = tmp_path / "out.csv"
    plain = tmp_path / "plain.csv"
    call(capsys, "score", files.new, "--model", files.model, "--out", out, "--reasons")
    call(capsys, "score", files.new, "--model", files.model, "--out", plain)
    detector, frame = rankad.load(files.model), read_text(files.new)
    alarms = detector.p_values(frame) <= 0.05
    explanations = iter(detector.explain(frame.filter(pl.Series(alarms))))
    strange = {}
    for cell in detector.strange_cells(frame):
        strange.setdefault(cell.row, []).append(cell)
    expected = [
        reason_text(next(explanations), strange.get(at, [])) if alarm else ""
        for at, alarm in enumerate(alarms)
    ]
    rows = cells(out)
    assert rows[0][-1] == "reason"
    assert [row[-1] for row in rows[1:]] == expected
    assert any("," in text and ";" in text for text in expected)
    # Nothing else is changed.
    assert [row[:-1] for row in rows] == cells(plain)


def test_a_reason_says_what_is_strange_and_what_would_have_to_change(files, capsys, tmp_path):
    frame = read_text(files.new)
    frame[3, "mode"], frame[4, "bearing_c"] = "sideways", "250.5"
    frame.write_csv(tmp_path / "odd.csv")
    out = tmp_path / "out.jsonl"
    call(capsys, "score", tmp_path / "odd.csv", "--model", files.model, "--out", out, "--reasons")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[3]["reason"].startswith("mode sideways: not among the categories of normal rows")
    assert rows[4]["reason"].startswith("bearing_c 250.5, usually ")
    assert all((row["reason"] is not None) == row["alarm"] for row in rows)


def test_reasons_are_bounded_and_say_so(files, hot, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("rankad.scoring.batches.MOST_REASONS", 7)
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", 1_000)
    out = tmp_path / "out.csv"
    call(capsys, "score", hot, "--model", files.model, "--out", out, "--reasons", "--prefix", "rankad_")
    with open(out, newline="") as file:
        reasons = [row["rankad_reason"] for row in csv.DictReader(file)]
    assert all("bearing_c" in reason for reason in reasons[:7])
    assert set(reasons[7:]) == {"not explained: 7 alarms before this one have reasons"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_without_rows_has_a_column_of_reasons(files, capsys, tmp_path, suffix):
    (tmp_path / "none.csv").write_text(files.new.read_text().splitlines()[0] + "\n")
    out = tmp_path / f"out.{suffix}"
    call(capsys, "score", tmp_path / "none.csv", "--model", files.model, "--out", out, "--reasons")
    frame = pl.read_csv(out) if suffix == "csv" else pl.read_parquet(out)
    assert frame.columns[-4:] == ["p_value", "score", "alarm", "reason"]
    assert frame.height == 0


def test_reasons_take_a_model_with_rows_and_a_free_name(files, without_rows, capsys, tmp_path):
    said = call(capsys, "score", files.new, "--model", without_rows, "--reasons")
    assert said.status == 1
    assert "was saved without the rows that explanations need" in said.err
    table = tmp_path / "taken.csv"
    read_text(files.new).with_columns(reason=pl.lit("x")).write_csv(table)
    said = call(capsys, "score", table, "--model", files.model, "--reasons")
    assert "the table has a column 'reason' already" in said.err
    assert call(capsys, "score", table, "--model", files.model, "--quiet").status == 0


def test_at_a_rate_below_all_p_values_no_alarm_is_expected(files, capsys):
    said = call(capsys, "score", files.new, "--model", files.model, "--alpha", "1e-6")
    words = " ".join(said.err.split())
    assert "no alarm at 0.0001%. None can be: this rate is below the smallest p-value." in words
    assert "If all rows were normal" not in words


# ---------------------------------------------------------------------------------- rows by id, and by rate


def explained(capsys, files, *options, table=None):
    said = call(capsys, "explain", table or files.new, "--model", files.model, "--json", *options)
    assert said.status == 0, said.err
    return [(row["row"], row["name"]) for row in json.loads(said.out)]


def test_rows_can_be_named_by_their_id_or_number(files, capsys, tmp_path):
    names = read_text(files.new)["reading"].to_list()
    assert explained(capsys, files, "--row", names[6]) == [(7, names[6])]
    both = explained(capsys, files, "-r", names[99], "-r", "3", "-r", names[99])
    assert both == [(100, names[99]), (3, names[2])]
    # An id that comes twice is explained twice; one that is a number beside the row of that number.
    frame = read_text(files.new)
    frame[10, "reading"] = frame[20, "reading"] = "twice"
    frame[30, "reading"] = "5"
    frame.write_csv(tmp_path / "ids.csv")
    assert explained(capsys, files, "--row", "twice", table=tmp_path / "ids.csv") == [
        (11, "twice"),
        (21, "twice"),
    ]
    found = explained(capsys, files, "--row", "5", table=tmp_path / "ids.csv")
    assert found == [(5, names[4]), (31, "5")]


def test_of_many_rows_of_one_id_the_first_are_explained_and_the_others_counted(files, capsys, tmp_path):
    frame = read_text(files.new)
    frame[:13].with_columns(reading=pl.lit("same")).write_csv(tmp_path / "same.csv")
    said = call(capsys, "explain", tmp_path / "same.csv", "--model", files.model, "--row", "same", "--json")
    assert [row["row"] for row in json.loads(said.out)] == list(range(1, 11))
    assert (
        said.err == "rankad: note: --row same: 3 more rows have this id; only the first 10 are explained.\n"
    )


def test_rows_that_are_not_there_are_told(files, capsys, tmp_path):
    for row, expected in (
        ("R9", "there is no row 'R9': "),
        ("121", "there is no row 121; "),
        ("121", "has 120 (the first is 1), and no 121 in column 'reading'."),
    ):
        said = call(capsys, "explain", files.new, "--model", files.model, "--row", row)
        assert said.status == 1
        assert expected in said.err
    assert call(capsys, "explain", files.new, "--model", files.model, "--row", "0").status == 2
    table = tmp_path / "bare.csv"
    read_text(files.new).drop("reading").write_csv(table)
    said = call(capsys, "explain", table, "--model", files.model, "--row", "R9")
    assert "--row R9 is not a row number, and " in said.err
    assert "lacks the id column 'reading'" in said.err
    assert explained(capsys, files, "--row", "9", table=table) == [(9, None)]


@pytest.mark.parametrize("rate", [0.05, 0.4])
def test_explain_and_report_know_discovery_rates(files, hot, capsys, tmp_path, rate):
    p_values = rankad.load(files.model).p_values(read_text(files.new))
    chosen = false_discovery_control(p_values) <= rate
    said = call(capsys, "explain", files.new, "--model", files.model, "--fdr", rate, "--top", "120", "--json")
    found = {row["row"]: row["alarm"] for row in json.loads(said.out)}
    assert [found[at + 1] for at in range(120)] == chosen.tolist()
    said = call(capsys, "explain", files.new, "--model", files.model, "--fdr", rate, "--top", "1")
    assert f"at a false discovery rate of {100 * rate:g}%" in " ".join(said.out.split())
    page = tmp_path / "page.html"
    said = call(capsys, "report", files.new, "--model", files.model, "--fdr", rate, "--out", page)
    n = int(chosen.sum())
    alarms = "no alarm" if not n else "1 alarm" if n == 1 else f"{n} alarms"
    assert f"With a false discovery rate of {100 * rate:g}%: {alarms}." in said.out
    text = page.read_text()
    assert f"<dt>Alarms</dt><dd>{n}</dd>" in text
    assert f"at a false discovery rate of {100 * rate:g}\xa0%" in text
    assert text.count('<details class="case"') == min(n, 20)


@pytest.mark.parametrize("command", ["explain", "report"])
def test_discovery_rates_take_a_file_and_no_other_rate(files, capsys, tmp_path, command):
    out = ["--out", tmp_path / "page.html"] if command == "report" else []
    said = call(capsys, command, "-", "--model", files.model, "--fdr", "0.1", *out)
    assert said.status == 2
    assert "the table is read twice" in said.err
    said = call(capsys, command, files.new, "--model", files.model, "--fdr", "0.1", "--alpha", "0.1", *out)
    assert "either --alpha or --fdr" in said.err


@pytest.mark.parametrize("name", ["m.pdf", "M.PDF", "page.docx", "page.csv"])
def test_a_report_is_html_and_nothing_else(files, capsys, tmp_path, name):
    said = call(capsys, "report", files.new, "--model", files.model, "--out", tmp_path / name)
    assert said.status == 2
    assert "a report is an HTML page. Give --out " in said.err
    assert list(tmp_path.iterdir()) == []
    assert call(capsys, "report", files.new, "--model", files.model, "--out", tmp_path / "page").status == 0


# ---------------------------------------------------------------------------------------- alarms over time


class TimeColumn:
    """A column of times as the encoder has them: a stand-in."""

    kind, name = "time", "at"

    @staticmethod
    def times(series):
        return series.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)


class Encoder:
    columns = (TimeColumn(),)

    def cells(self, table, name):
        return table[name]


class Detector:
    encoder_ = Encoder()


def test_alarms_are_counted_by_time_where_there_is_one():
    course = Course(Detector())
    at = [f"2026-03-0{1 + hour // 24} {hour % 24:02d}:30:00" for hour in range(48)]
    course.add(pl.DataFrame({"at": at}), 0, np.arange(48) == 30)
    course.add(pl.DataFrame({"at": ["never", None]}), 48, np.array([True, False]))
    line = course.timeline
    assert (line.column, line.unit, line.n_rows, line.n_without) == ("at", "hour", 48, 2)
    spans = line.spans()
    assert [span.n_alarms for span in spans] == [int(hour == 30) for hour in range(48)]


def test_the_page_shows_alarms_along_the_table(files, capsys, tmp_path):
    page = tmp_path / "page.html"
    call(capsys, "report", files.new, "--model", files.model, "--out", page)
    assert "Alarms along the table." in page.read_text()
