"""`rankad score`: the same answers as in Python, in every format and order, in constant memory."""

import csv
import gzip
import io
import json
import os
import re
import sys

import numpy as np
import polars as pl
import pytest
from scipy.stats import false_discovery_control

import rankad
from cli_cases import QUICK, call, cells, make_files, read_text
from rankad import RankAD
from rankad.io import table_files
from rankad.io.table_files import open_table
from rankad.scoring import score_file as scoring


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("score"))


@pytest.fixture
def small_batches(monkeypatch):
    """Read tables in batches of a few rows."""
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", 1_000)


@pytest.fixture
def p_values(files):
    return rankad.load(files.model).p_values(read_text(files.new))


def score(capsys, files, tmp_path, *options, table=None, out="out.csv"):
    path = tmp_path / out
    said = call(capsys, "score", table or files.new, "--model", files.model, "--out", path, *options)
    return said, path


# -------------------------------------------------------------------------------------- the same as in Python


def test_rows_come_out_as_they_came_in_with_the_answers_of_python_to_the_last_bit(
    files, capsys, tmp_path, p_values
):
    said, out = score(capsys, files, tmp_path)
    assert (said.status, said.err) == (0, "")
    before, after = cells(files.new), cells(out)
    assert [row[:-3] for row in after] == before
    assert after[0][-3:] == ["p_value", "score", "alarm"]
    detector, frame = rankad.load(files.model), read_text(files.new)
    assert [float(row[-3]) for row in after[1:]] == p_values.tolist()
    assert [float(row[-2]) for row in after[1:]] == detector.score_samples(frame).tolist()
    alarms = np.where(detector.predict(frame) == -1, "true", "false")
    assert [row[-1] for row in after[1:]] == alarms.tolist()
    assert 0 < (p_values <= 0.05).sum() < len(p_values)


def test_batches_change_nothing(files, capsys, tmp_path, monkeypatch):
    _, whole = score(capsys, files, tmp_path)
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", 700)
    _, parts = score(capsys, files, tmp_path, "--jobs", "2", out="parts.csv")
    assert parts.read_bytes() == whole.read_bytes()


@pytest.mark.usefixtures("small_batches")
def test_a_carriage_return_in_a_cell_ends_no_row_for_whoever_reads_the_output(files, capsys, tmp_path):
    table = tmp_path / "new.csv"
    table.write_text(files.new.read_text().replace("R00305", "R\r00305", 1), newline="\n")
    _, out = score(capsys, files, tmp_path, table=table)
    with open(out, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {12}
    assert rows[5][0] == "R\r00305"


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("cell", ['"R00301"', "NA", " 1450.0 "])
def test_cells_that_keep_rows_from_being_copied_change_no_other(files, capsys, tmp_path, cell):
    """A quoted cell, a word for a missing number, blanks: all else is the same in every batch."""
    lines = files.new.read_text().splitlines()
    column = 0 if cell.startswith('"') else lines[0].split(",").index("speed_rpm")
    plain, odd = list(lines), list(lines)
    for at in (5, 60):
        cells_of_row = lines[at].split(",")
        cells_of_row[column] = {"NA": "", " 1450.0 ": "1450.0"}.get(cell, "R00301")
        plain[at] = ",".join(cells_of_row)
        cells_of_row[column] = cell
        odd[at] = ",".join(cells_of_row)
    for name, text in (("plain", plain), ("odd", odd)):
        (tmp_path / f"{name}.csv").write_text("\n".join([*text, ""]))
        score(capsys, files, tmp_path, table=tmp_path / f"{name}.csv", out=f"{name}.out.csv")
    expected = (tmp_path / "plain.out.csv").read_text().splitlines()
    found = (tmp_path / "odd.out.csv").read_text().splitlines()
    for at in (5, 60):
        assert found[at].split(",")[column] == cell.strip('"')
        found[at] = found[at].replace(cell, {"NA": "", " 1450.0 ": "1450.0"}.get(cell, "R00301"))
    assert found == expected


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet", "out.arrow", "out.tsv", "out.csv.gz"])
def test_every_format_holds_the_same_answers(files, capsys, tmp_path, p_values, out):
    said, path = score(capsys, files, tmp_path, out=out)
    assert said.status == 0, said.err
    read = {
        "out.jsonl": pl.read_ndjson,
        "out.parquet": pl.read_parquet,
        "out.arrow": pl.read_ipc,
        "out.tsv": lambda path: pl.read_csv(path, separator="\t"),
        "out.csv.gz": lambda path: pl.read_csv(gzip.decompress(path.read_bytes())),
    }[out]
    frame = read(path)
    assert frame["p_value"].to_list() == p_values.tolist()
    # Text of a CSV file has become numbers where it leaves CSV.
    assert frame["power_kw"].dtype == pl.Float64
    assert frame["mode"].dtype == pl.String


@pytest.mark.usefixtures("small_batches")
def test_parquet_in_is_scored_like_csv(files, capsys, tmp_path, p_values):
    table = tmp_path / "new.parquet"
    pl.read_csv(files.new).write_parquet(table)
    _, out = score(capsys, files, tmp_path, table=table)
    assert [float(row[-3]) for row in cells(out)[1:]] == p_values.tolist()


def test_semicolons_stay_semicolons(files, capsys, tmp_path, p_values):
    table = tmp_path / "new.csv"
    read_text(files.new).write_csv(table, separator=";")
    _, out = score(capsys, files, tmp_path, table=table)
    assert [float(row[-3]) for row in cells(out, ";")[1:]] == p_values.tolist()


@pytest.mark.parametrize("named", [True, False])
def test_a_model_of_an_array_scores_tables_too(capsys, tmp_path, named):
    rng = np.random.default_rng(0)
    nominal, new = rng.normal(size=(100, 2)), rng.normal(size=(30, 2))
    detector = RankAD(0.1, **QUICK)
    detector.fit(pl.DataFrame(nominal, schema=["b", "a"]) if named else nominal)
    detector.save(tmp_path / "m.rankad")
    # By name where there are names, by place where there are none.
    frame = pl.DataFrame(new, schema=["b", "a"])
    frame = frame.select("a", "b").with_columns(note=pl.lit("x")) if named else frame
    frame.write_csv(tmp_path / "new.csv")
    said = call(capsys, "score", tmp_path / "new.csv", "--model", tmp_path / "m.rankad", "--out", "-")
    assert said.status == 0
    assert said.err.startswith("30 rows, ")
    found = [float(row["p_value"]) for row in csv.DictReader(io.StringIO(said.out))]
    assert found == detector.p_values(pl.DataFrame(new, schema=["b", "a"]) if named else new).tolist()


def test_a_table_of_other_columns_is_refused_where_the_model_has_no_names(capsys, tmp_path):
    RankAD(**QUICK).fit(np.random.default_rng(0).normal(size=(60, 2))).save(tmp_path / "m.rankad")
    (tmp_path / "new.csv").write_text("a,b,c\n1,2,3\n")
    said = call(capsys, "score", tmp_path / "new.csv", "-m", tmp_path / "m.rankad")
    assert said.status == 1
    assert "an array of 2 columns without names, but the table has 3" in said.err


# ------------------------------------------------------------------------------------------- what is an alarm


@pytest.mark.parametrize("alpha", [0.01, 0.2])
def test_another_alpha_needs_no_fit(files, capsys, tmp_path, p_values, alpha):
    _, out = score(capsys, files, tmp_path, "--alpha", alpha)
    assert [row[-1] == "true" for row in cells(out)[1:]] == (p_values <= alpha).tolist()


@pytest.mark.usefixtures("small_batches")
def test_alarms_only_leaves_the_others_out(files, capsys, tmp_path, p_values):
    _, every = score(capsys, files, tmp_path)
    _, out = score(capsys, files, tmp_path, "--alarms-only", out="alarms.csv")
    assert cells(out)[1:] == [row for row in cells(every)[1:] if row[-1] == "true"]
    assert len(cells(out)) == 1 + (p_values <= 0.05).sum()


@pytest.mark.usefixtures("small_batches")
def test_sorting_puts_the_most_abnormal_first(files, capsys, tmp_path):
    _, every = score(capsys, files, tmp_path)
    _, out = score(capsys, files, tmp_path, "--sort", out="sorted.csv")
    rows = cells(every)[1:]
    assert cells(out)[1:] == sorted(rows, key=lambda row: (float(row[-3]), float(row[-2])))


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 0.6])
def test_the_false_discovery_rate_is_that_of_benjamini_and_hochberg(files, capsys, tmp_path, p_values, rate):
    said, out = score(capsys, files, tmp_path, "--fdr", rate)
    expected = false_discovery_control(p_values) <= rate
    assert [row[-1] == "true" for row in cells(out)[1:]] == expected.tolist()
    told = (
        "no alarm" if not expected.any() else "1 alarm" if expected.sum() == 1 else f"{expected.sum()} alarms"
    )
    assert f"120 rows, {told} with a false discovery rate of" in said.out


def test_rows_with_something_never_seen_are_alarms_and_told(files, capsys, tmp_path):
    table = tmp_path / "new.csv"
    read_text(files.new).head(3).with_columns(mode=pl.lit("unheard of")).write_csv(table)
    said, out = score(capsys, files, tmp_path, table=table)
    assert [row[-1] for row in cells(out)[1:]] == ["true"] * 3
    assert "3 rows have a cell such as no normal row had" in said.out


def test_a_rate_that_allows_no_alarm_is_told(files, capsys, tmp_path):
    said, _ = score(capsys, files, tmp_path, "--alpha", "0.0001")
    assert said.status == 0
    assert said.err.startswith("rankad: note: alpha=0.0001 is below the smallest p-value there can be")
    assert said.err.count("\n") == 1


# ----------------------------------------------------------------------------------------------- what is said


def test_the_summary_is_one_line_with_what_chance_would_raise(files, capsys, tmp_path, p_values):
    said, out = score(capsys, files, tmp_path)
    n = (p_values <= 0.05).sum()
    text = " ".join(said.out.split())
    assert text.startswith(
        f"120 rows, {n} alarms at 5%. If all rows were normal, there would be about 6 (usually "
    )
    assert "Next: rankad explain" in text
    assert str(out) in text


def test_rows_on_standard_output_leave_the_summary_to_standard_error(files, capsys, p_values):
    said = call(capsys, "score", files.new, "--model", files.model)
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [float(row["p_value"]) for row in rows] == p_values.tolist()
    assert said.err.startswith("120 rows, ")
    assert call(capsys, "score", files.new, "--model", files.model, "--quiet").err == ""


@pytest.mark.parametrize("out", [True, False])
def test_json_is_one_object(files, capsys, tmp_path, p_values, out):
    written = ["--out", tmp_path / "out.csv"] if out else []
    said = call(capsys, "score", files.new, "-m", files.model, "--json", "--alpha", "0.1", *written)
    answer = json.loads(said.out)
    assert said.err == ""
    assert (answer["rows"], answer["alarms"]) == (120, (p_values <= 0.1).sum())
    assert answer["expected_false_alarms"] == pytest.approx(12)
    assert (answer["alpha"], answer["fdr"]) == (0.1, None)
    assert (answer["out"] is not None) == out == (tmp_path / "out.csv").exists()


def test_on_a_terminal_the_most_abnormal_rows_are_shown_and_no_others(files, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    said = call(capsys, "score", files.new, "--model", files.model)
    p_values = rankad.load(files.model).p_values(read_text(files.new))
    lines = [line.split() for line in said.out.splitlines()[3:13]]
    assert sorted(int(line[0]) for line in lines[:3]) == sorted(
        (np.argsort(p_values, kind="stable")[:3] + 1).tolist()
    )
    assert "p_value" not in said.out
    assert "what stands out" in said.out
    assert "--out scored.csv" in said.out


@pytest.mark.parametrize(("alpha", "status"), [("0.05", 3), ("0.0001", 0)])
def test_alarms_fail_the_command_where_that_is_asked_for(files, capsys, tmp_path, alpha, status):
    said, out = score(capsys, files, tmp_path, "--fail-on-alarm", "--alpha", alpha)
    assert said.status == status
    assert out.exists()


# ------------------------------------------------------------------------------------------ what can go wrong


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--alpha", "5"], "5 is not strictly between 0 and 1; for five per cent give 0.05"),
        (["--fdr", "0"], "0 is not strictly between 0 and 1"),
        (["--alpha", "0.1", "--fdr", "0.1"], "either --alpha or --fdr"),
        (["--json", "--out", "-"], "give --out FILE"),
        (["--resume"], "a table in a file and --out FILE, but there is no --out"),
        (["--resume", "--sort", "--out", "x.csv"], "cannot be written in parts"),
        (["--out", "/no/such/folder/x.csv"], "There is no folder /no/such/folder"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(files, capsys, options, expected):
    said = call(capsys, "score", files.new, "--model", files.model, *options)
    assert (said.status, said.out) == (2, "")
    assert expected in said.err
    assert said.err.count("\n") == 1
    assert said.err.endswith("See rankad score --help\n")


def test_the_false_discovery_rate_takes_a_file(files, capsys):
    said = call(capsys, "score", "-", "--model", files.model, "--fdr", "0.1")
    assert said.status == 2
    assert "must be a file, not -" in said.err


def test_a_name_that_is_taken_is_an_error_with_a_way_out(files, capsys, tmp_path):
    _, out = score(capsys, files, tmp_path)
    said, _ = score(capsys, files, tmp_path, table=out, out="twice.csv")
    assert said.status == 1
    assert "the table has a column 'p_value' already" in said.err
    assert "--prefix rankad_" in said.err
    said, twice = score(capsys, files, tmp_path, "--prefix", "new_", table=out, out="twice.csv")
    assert cells(twice)[0][-3:] == ["new_p_value", "new_score", "new_alarm"]


@pytest.mark.usefixtures("small_batches")
def test_a_cell_that_is_no_number_makes_its_row_strange_and_the_others_have_answers(files, capsys, tmp_path):
    frame = read_text(files.new)
    words = frame["power_kw"].to_list()
    words[77] = "high"
    frame.with_columns(power_kw=pl.Series(words)).write_csv(tmp_path / "bad.csv")
    said, out = score(capsys, files, tmp_path, table=tmp_path / "bad.csv")
    assert (said.status, said.err) == (0, "")
    found, plain = read_text(out), rankad.load(files.model).p_values(frame)
    assert found["power_kw"].to_list() == words
    p_values = found["p_value"].cast(pl.Float64).to_numpy()
    assert p_values[77] == p_values.min() < 0.05
    np.testing.assert_allclose(np.delete(p_values, 77), np.delete(plain, 77), rtol=1e-5)
    said = call(capsys, "explain", tmp_path / "bad.csv", "--model", files.model, "--top", "20")
    assert "power_kw high: not a number, as normal cells are" in said.out
    # Where numbers must be numbers, what is lost is said.
    to = tmp_path / "out.parquet"
    said = call(capsys, "score", tmp_path / "bad.csv", "--model", files.model, "--out", to)
    assert "column 'power_kw' is written as numbers, but data row 78" in said.err
    assert pl.read_parquet(to)["power_kw"].null_count() == 1


@pytest.mark.parametrize(
    ("table", "model", "expected"),
    [
        ("absent.csv", None, "Cannot open"),
        (None, "absent.rankad", "make one with rankad fit TABLE --model"),
        (None, "new.csv", "cannot be read as a rankad model"),
    ],
)
def test_files_that_are_not_there_are_one_line(files, capsys, table, model, expected):
    said = call(
        capsys,
        *("score", files.folder / (table or "new.csv")),
        *("--model", files.folder / (model or "pump.rankad"), "--quiet"),
    )
    assert (said.status, said.out) == (1, "")
    assert expected in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("what", ["table", "model"])
def test_what_is_read_is_not_overwritten(files, capsys, tmp_path, what):
    table, model = tmp_path / "new.csv", tmp_path / "model.csv"
    table.write_bytes(files.new.read_bytes())
    model.write_bytes(files.model.read_bytes())
    target = table if what == "table" else model
    before = target.read_bytes()
    said = call(capsys, "score", table, "--model", model, "--out", target)
    assert said.status == 2
    assert "also read from" in said.err
    assert target.read_bytes() == before


@pytest.mark.parametrize("out", ["out.csv", "out.jsonl", "out.parquet"])
def test_a_table_without_rows_gives_one_without_rows(files, capsys, tmp_path, out):
    (tmp_path / "empty.csv").write_text(files.new.read_text().splitlines()[0] + "\n")
    said, path = score(capsys, files, tmp_path, table=tmp_path / "empty.csv", out=out)
    assert said.status == 0, said.err
    assert said.out.startswith("0 rows, no alarm at 5%")
    assert path.exists()
    if out == "out.csv":
        assert cells(path) == [[*cells(files.new)[0], "p_value", "score", "alarm"]]


# --------------------------------------------------------------------------------------------------- going on


def interrupted_after(monkeypatch, n_batches):
    """Interrupt scoring once, after so many batches."""
    scan = scoring.scan

    def some(*arguments, **named):
        for at, batch in enumerate(scan(*arguments, **named)):
            if at == n_batches:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(scoring, "scan", some)
    return lambda: monkeypatch.setattr(scoring, "scan", scan)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("options", [[], ["--alarms-only"], ["--fdr", "0.3"]])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_an_interrupted_run_goes_on_to_the_same_bytes(files, capsys, tmp_path, monkeypatch, options, suffix):
    _, whole = score(capsys, files, tmp_path, *options, out=f"whole.{suffix}")
    as_before = interrupted_after(monkeypatch, 4)
    said, out = score(capsys, files, tmp_path, *options, "--resume", out=f"out.{suffix}")
    assert said.status == 130
    assert (
        said.err
        == "rankad: interrupted; finished parts are kept, and the same command continues from there\n"
    )
    assert not out.exists()
    as_before()
    said, out = score(capsys, files, tmp_path, *options, "--resume", out=f"out.{suffix}")
    assert said.status == 0
    assert said.err.startswith("Resuming after ")
    assert out.read_bytes() == whole.read_bytes()
    assert said.out.startswith("120 rows, ")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out.{suffix}", f"whole.{suffix}"]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("changed", ["alpha", "table", "prefix"])
def test_a_run_of_something_else_does_not_go_on(files, capsys, tmp_path, monkeypatch, changed):
    table = tmp_path / "new.csv"
    table.write_bytes(files.new.read_bytes())
    as_before = interrupted_after(monkeypatch, 4)
    score(capsys, files, tmp_path, "--resume", table=table)
    as_before()
    if changed == "table":
        table.write_bytes(files.new.read_bytes() + files.new.read_bytes().splitlines(keepends=True)[-1])
    options = {"alpha": ["--alpha", "0.1"], "table": [], "prefix": ["--prefix", "x_"]}[changed]
    said, out = score(capsys, files, tmp_path, "--resume", *options, table=table)
    assert said.status == 1
    assert f"({changed} changed)" in said.err
    assert not out.exists()


def edited(path, share):
    """Change a digit of a file, and nothing that the system tells of it."""
    about, data = path.stat(), bytearray(path.read_bytes())
    at = next(at for at in range(int(share * len(data)), len(data)) if data[at] in b"12345678")
    data[at] += 1
    path.write_bytes(data)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (about.st_size, about.st_mtime_ns)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("options", [[], ["--fdr", "0.3"]])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "csv.gz", "arrow"])
def test_a_table_that_was_edited_where_it_was_read_does_not_go_on(
    files, capsys, tmp_path, monkeypatch, suffix, options
):
    # Far less than the file: what lies between is where an edit was not seen.
    monkeypatch.setattr(table_files, "_IDENTITY_BYTES", 100)
    table, frame = tmp_path / f"new.{suffix}", read_text(files.new)
    match suffix:
        case "csv.gz":
            # Stored, so that a digit is a byte.
            table.write_bytes(gzip.compress(frame.write_csv().encode(), 0))
        case "jsonl":
            frame.write_ndjson(table)
        case "arrow":
            frame.write_ipc(table)
        case _:
            frame.write_csv(table, separator="\t" if suffix == "tsv" else ",")
    as_before = interrupted_after(monkeypatch, 4)
    assert score(capsys, files, tmp_path, "--resume", *options, table=table)[0].status == 130
    as_before()
    edited(table, 0.15)
    said, out = score(capsys, files, tmp_path, "--resume", *options, table=table)
    assert said.status == 1
    assert said.err.count("\n") == 1
    start_over = (
        r"(was changed since .*\.part was started|was started with different inputs).* To start over, remove"
    )
    # Counting discoveries reads all of the file, and so finds by itself that gzip's checksum is wrong.
    assert re.search(
        f"{start_over}|CRC check failed" if suffix == "csv.gz" and options else start_over, said.err
    )
    assert not out.exists()


@pytest.mark.usefixtures("small_batches")
def test_a_table_that_was_edited_further_on_goes_on_but_for_discoveries(files, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "_IDENTITY_BYTES", 100)
    table = tmp_path / "new.csv"
    for options, status in ([], 0), (["--fdr", "0.3"], 1):
        table.write_bytes(files.new.read_bytes())
        as_before = interrupted_after(monkeypatch, 1)
        score(capsys, files, tmp_path, "--resume", *options, table=table)
        as_before()
        about, rows = table.stat(), table.read_bytes().splitlines(keepends=True)
        # Copies of a row that is an alarm: the level of discoveries changes.
        head, tail = rows[:40], rows[80:]
        loudest = max(rows[1:], key=lambda row: row.count(b"bypass"))
        middle = b"".join([loudest] * 60)[: sum(map(len, rows[40:80]))]
        middle = middle[: middle.rfind(b"\n") + 1]
        lack = sum(map(len, rows[40:80])) - len(middle)
        table.write_bytes(b"".join(head) + b"\n" * lack + middle + b"".join(tail))
        os.utime(table, ns=(about.st_atime_ns, about.st_mtime_ns))
        assert table.stat().st_size == about.st_size
        said, _ = score(capsys, files, tmp_path, "--resume", *options, table=table)
        assert said.status == status, said.err
    assert "(largest p-value of alarms changed)" in said.err


@pytest.mark.usefixtures("small_batches")
def test_without_resume_an_interruption_leaves_nothing(files, capsys, tmp_path, monkeypatch):
    interrupted_after(monkeypatch, 4)
    said, _ = score(capsys, files, tmp_path)
    assert (said.status, said.err) == (130, "rankad: interrupted; no file was changed\n")
    assert list(tmp_path.iterdir()) == []
