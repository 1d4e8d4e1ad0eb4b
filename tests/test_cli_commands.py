"""`rankad fit`, `inspect`, `explain`, `report`, `calibrate`, `demo`, and what all commands have in common."""

import io
import json
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import rankad
from cli_cases import ENVIRONMENT, QUICK, SCRIPT, call, cells, make_files, read_text, save_without_rows
from rankad import KLPE, EpsilonLPE, RankAD, TableDetector, load
from rankad.cli import example
from rankad.fitting import sizes
from rankad.io.table_files import open_table
from rankad.modelfile import read_card
from rankad.report.making import Views
from rankad.service.keys import KeyFile
from rankad.tables import Untyped


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("commands"))


@pytest.fixture(scope="module")
def without_rows(files):
    return save_without_rows(files, files.folder / "bare.rankad")


# -------------------------------------------------------------------------------------------------------- fit


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Fit by the command, on batches of some rows."""
    folder = tmp_path_factory.mktemp("fit")
    table = folder / "table.csv"
    rows = example.make_example(150, 20, seed=2).normal
    example.write_table(table, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "CALIBRATION_FOLDS", 5)
        patch.setitem(open_table.__kwdefaults__, "batch_bytes", 1_000)
        with pytest.raises(SystemExit) as ended:
            rankad.cli.main(
                [
                    "fit",
                    str(table),
                    f"--model={folder / 'm.rankad'}",
                    "--id=reading",
                    "--drop=mode",
                    "--alpha=0.1",
                ]
            )
    assert ended.value.code == 0
    return table, folder / "m.rankad"


@pytest.mark.filterwarnings("ignore:Calibrated by a split")
def test_fitting_here_is_fitting_in_python(few_folds, fitted):
    table, model = fitted
    frame = read_text(table)
    detector = TableDetector(RankAD(0.1, random_state=0), ids=["reading"], drop=["mode"]).fit(Untyped(frame))
    loaded = rankad.load(model)
    np.testing.assert_array_equal(loaded.score_samples(frame), detector.score_samples(frame))
    np.testing.assert_array_equal(loaded.calibration_.scores, detector.calibration_.scores)
    assert (loaded.alpha, loaded.encoder_) == (0.1, detector.encoder_)
    assert loaded.detector_.n_jobs is None


def test_what_was_learned_is_said_in_words(files, capsys, tmp_path, monkeypatch):
    quick(monkeypatch)
    said = call(capsys, "fit", files.normal, "--model", tmp_path / "m.rankad", "--id", "reading")
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith(f"Learned from 300 rows of {files.normal}")
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert "bearing_c number sure" in lines
    assert "vibration_mms number, or missing sure" in lines
    assert any(line.startswith("mode category: steady, ") for line in lines)
    assert "reading a name of rows, not used as asked for" in lines
    assert "at 5% about 1 in 20 normal rows will be a false alarm; no more than" in " ".join(lines)
    assert any(line.startswith("Next: rankad score") for line in lines)


def test_progress_is_shown_on_a_terminal_only_and_goes_away(files, capsys, tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    quick(monkeypatch)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    arguments = ("fit", files.normal, "--model", tmp_path / "m.rankad", "--id", "reading")
    said = call(capsys, *arguments)
    shown = terminal.getvalue()
    assert said.status == 0
    for stage in ("Reading", "Learning", "Calibration", "Saving"):
        assert stage in shown
    # The last thing is to take the line back.
    assert shown.endswith("\x1b[2K")
    assert "\x1b" not in said.out


def test_many_columns_are_told_together(capsys, tmp_path, monkeypatch):
    quick(monkeypatch)
    names = [f"c{at}" for at in range(30)]
    rows = np.random.default_rng(0).normal(size=(40, 30))
    frame = pl.DataFrame(rows, schema=names).with_columns(kind=pl.Series(["a", "b"] * 20))
    frame.write_csv(tmp_path / "t.csv")
    said = call(capsys, "fit", tmp_path / "t.csv", "--model", tmp_path / "m.rankad")
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert "c0, c1, c2 ... c29 number (30) sure" in lines
    assert "kind category: a, b (1) sure" in lines


def quick(monkeypatch, **given):
    """Make the command's RankAD a quick one, with some parameters as given."""

    def build(alpha, **parameters):
        return RankAD(alpha, **{**QUICK, **given, **parameters})

    monkeypatch.setattr(rankad, "RankAD", build)
    monkeypatch.setattr(sizes, "CALIBRATION_FOLDS", 5)


def test_the_options_reach_the_detector(files, capsys, tmp_path, monkeypatch):
    quick(monkeypatch)
    model = tmp_path / "m.rankad"
    options = ("--alpha=0.02", "--trim=0.1", "--seed=7", "--without-rows", "--json", "--id=reading")
    said = call(capsys, "fit", files.normal, "--model", model, *options)
    answer, card = json.loads(said.out), read_card(model)
    assert (answer["rows"], answer["alpha"], answer["sha256"]) == (300, 0.02, card.sha256)
    assert answer["promise"]["alpha"] == 0.02
    assert (card.parameters["trim"], card.parameters["random_state"], card.n_trimmed) == (0.1, 7, 30)
    assert not card.holds_rows


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Write a table with zip codes, one of them rare."""
    path, rng = tmp_path_factory.mktemp("places") / "places.csv", np.random.default_rng(0)
    codes = ["01234", "10000"] * 30 + ["00007"] * 3
    rows = (f"{code},{value:.3f}\n" for code, value in zip(codes, rng.normal(size=63), strict=True))
    path.write_text("zip,size\n" + "".join(rows))
    return path


def test_columns_can_be_taken_as_categories(places, capsys, tmp_path, monkeypatch):
    quick(monkeypatch)
    monkeypatch.setenv("COLUMNS", "200")
    model, new = tmp_path / "m.rankad", tmp_path / "new.csv"
    said = call(capsys, "fit", places, "--model", model, "--category", "zip", "--min-count", "3")
    assert said.status == 0
    assert "zip category: 01234, 10000, 00007" in " ".join(said.out.split())
    loaded = rankad.load(model)
    assert (loaded.categories, loaded.min_count) == (("zip",), 3)
    said = call(capsys, "inspect", model)
    assert "a category, one indicator each for '01234', '10000', '00007'" in said.out
    assert "a category because asked for" in said.out
    new.write_text("zip,size\n01234,0.0\n1234,0.0\n")
    call(capsys, "score", new, "--model", model, "--out", tmp_path / "out.csv", "--alpha", "0.1")
    assert [(row[0], row[-1]) for row in cells(tmp_path / "out.csv")[1:]] == [
        ("01234", "false"),
        ("1234", "true"),
    ]


def test_rare_categories_are_taken_together_by_default(places, capsys, tmp_path, monkeypatch):
    quick(monkeypatch)
    said = call(capsys, "fit", places, "--model", tmp_path / "m.rankad", "--category", "zip")
    assert "zip category: 01234, 10000; 1 rare one taken together" in " ".join(said.out.split())


def test_arrays_that_are_not_used_are_named(capsys, tmp_path, monkeypatch):
    quick(monkeypatch)
    table, model, out = tmp_path / "t.npz", tmp_path / "m.rankad", tmp_path / "out.csv"
    rows = np.random.default_rng(0).normal(size=(60, 2))
    np.savez(table, X=rows, y=np.zeros(60), weights=np.ones(60))
    said = call(capsys, "fit", table, "--model", model)
    note = f"rankad: note: {table} holds several arrays; the rows are those of X, not used: y, weights\n"
    assert (said.status, said.err) == (0, note)
    said = call(capsys, "score", table, "--model", model, "--out", out)
    assert (said.status, said.err) == (0, note)
    np.savez(table, X=rows)
    assert call(capsys, "score", table, "--model", model, "--out", out).err == ""


@pytest.mark.parametrize(
    ("options", "status", "expected"),
    [
        (
            ["--id", "reading", "--category", "reading"],
            1,
            "'reading' is named by both categories",
        ),
        (["--id", "reading", "--category", "name"], 1, "the table has no column 'name', which categories"),
        (["--id", "reading", "--min-count", "0"], 2, "--min-count"),
        (["--number", "reading"], 1, "none of its cells can be read as one, for example 'R00001'"),
        (["--id", "reading", "--decimal", ";"], 1, "decimal must be '.' or ',', got ';'"),
        (["--id", "name"], 1, "the table has no column 'name', which ids"),
        (["--id", "reading", "--trim", "0.7"], 2, "--trim"),
        (["--alpha", "1"], 2, "1 is not strictly between 0 and 1"),
        (["--format", "papyrus"], 1, "format must be one of csv"),
    ],
)
def test_what_cannot_be_fitted_is_one_line(files, capsys, tmp_path, options, status, expected):
    said = call(capsys, "fit", files.normal, "--model", tmp_path / "m.rankad", *options)
    assert (said.status, said.out) == (status, "")
    assert expected in said.err
    assert said.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_model_does_not_overwrite_the_table(files, capsys):
    before = files.normal.read_bytes()
    said = call(capsys, "fit", files.normal, "--model", files.normal, "--id", "reading")
    assert said.status == 2
    assert "is also read from" in said.err
    assert files.normal.read_bytes() == before


def test_quiet_commands_do_their_work_and_say_nothing(files, capsys, tmp_path, monkeypatch):
    # With something to select: there is progress in that too.
    quick(monkeypatch, C=[0.01, 0.1])
    model, page = tmp_path / "m.rankad", tmp_path / "page.html"
    steps = (
        ("fit", files.normal, "--model", model, "--id", "reading"),
        ("calibrate", files.new, "--model", model, "--out", model),
        ("report", files.new, "--model", model, "--out", page),
    )
    for step in steps:
        assert call(capsys, *step, "--quiet") == (0, "", "")
    assert rankad.load(model).calibration_.scores.size == 120
    assert page.stat().st_size > 1_000


def test_a_table_without_rows_cannot_be_learned_from(capsys, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n")
    said = call(capsys, "fit", tmp_path / "t.csv", "--model", tmp_path / "m.rankad")
    assert said.status == 1
    assert "has column names but no rows" in said.err


# ---------------------------------------------------------------------------------------------------- inspect


def test_inspect_shows_the_card(files, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    card = read_card(files.model)
    said = call(capsys, "inspect", files.model)
    assert (said.status, said.err) == (0, "")
    for expected in (
        card.sha256,
        card.training_sha256,
        "300 rows",
        "cross-fit",
        "numpy",
        "landmarks=20",
        "mode",
    ):
        assert expected in said.out
    bound = rankad.load(files.model).false_alarm_bound(0.01).bound
    assert f"{100 * bound:.3g}%" in said.out
    answer = json.loads(call(capsys, "inspect", files.model, "--json").out)
    assert (answer["n_rows"], answer["sha256"], answer["saved"]) == (300, card.sha256, card.saved.isoformat())
    assert [promise["alpha"] for promise in answer["promises"]] == [0.1, 0.05, 0.01]
    assert answer["promises"][2]["bound"] == bound


def test_inspect_refuses_an_altered_file(files, capsys, tmp_path):
    data = bytearray(files.model.read_bytes())
    data[-40] ^= 1
    (tmp_path / "m.rankad").write_bytes(data)
    said = call(capsys, "inspect", tmp_path / "m.rankad")
    assert said.status == 1
    assert "cannot be read as a rankad model" in said.err


# ---------------------------------------------------------------------------------------------------- explain


@pytest.fixture
def odd(files, tmp_path):
    """A table with two odd rows, 40 and 90."""
    frame = read_text(files.new)
    heat, modes = frame["bearing_c"].to_list(), frame["mode"].to_list()
    heat[39], modes[89] = "250.5", "sideways"
    path = tmp_path / "odd.csv"
    frame.with_columns(bearing_c=pl.Series(heat), mode=pl.Series(modes)).write_csv(path)
    return path


@pytest.mark.parametrize("batch_bytes", [1_000, 1 << 20])
def test_the_most_abnormal_rows_are_explained_by_what_is_odd(files, odd, capsys, monkeypatch, batch_bytes):
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", batch_bytes)
    answer = json.loads(call(capsys, "explain", odd, "--model", files.model, "--top", "5", "--json").out)
    detector = rankad.load(files.model)
    scores = detector.score_samples(read_text(odd))
    assert [row["row"] for row in answer] == (np.argsort(scores, kind="stable")[:5] + 1).tolist()
    found = {row["row"]: row for row in answer}
    assert found[40]["reasons"][0]["column"] == "bearing_c"
    assert found[40]["change"]["moves"][0]["before"] == pytest.approx(250.5)
    assert found[90]["strange"][0]["value"] == found[90]["reasons"][0]["value"] == "sideways"
    assert found[40]["name"] == cells(odd)[40][0]
    assert len(found[40]["nearest"]) == 3
    assert set(found[40]["nearest"][0]["values"]) == set(detector.encoder_.names)


def test_rows_can_be_named(files, odd, capsys, monkeypatch):
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", 1_000)
    monkeypatch.setenv("COLUMNS", "120")
    said = call(capsys, "explain", odd, "--model", files.model, "--row", "90", "--row", "1", "--row", "40")
    heads = [line.split()[1] for line in said.out.splitlines() if line.startswith("Row ")]
    assert heads == ["90", "1", "40"]
    assert "mode sideways: not among the categories of normal rows." in said.out
    assert "Would be normal with bearing_c 250.5 -> " in said.out
    said = call(capsys, "explain", odd, "--model", files.model, "--row", "121")
    assert said.status == 1
    assert "there is no row 121" in said.err


def test_a_model_without_rows_says_that_it_cannot_explain(files, without_rows, capsys):
    said = call(capsys, "explain", files.new, "--model", without_rows)
    assert said.status == 1
    assert "saved without the rows that explanations need" in said.err


# ----------------------------------------------------------------------------------------------------- report


@pytest.mark.parametrize("batch_bytes", [1_000, 1 << 20])
def test_the_page_has_the_alarms_and_the_title(files, odd, capsys, tmp_path, monkeypatch, batch_bytes):
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", batch_bytes)
    page = tmp_path / "page.html"
    said = call(
        capsys, "report", odd, "--model", files.model, "--out", page, "--alpha", "0.1", "--title", "<b>Pumps"
    )
    n = (rankad.load(files.model).p_values(read_text(odd)) <= 0.1).sum()
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith(f"120 rows, {n} alarms at 10%")
    text = page.read_text()
    assert "&lt;b&gt;Pumps" in text
    assert "sideways" in text
    assert "250.5" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odd.csv", "page.html"]


def test_batches_do_not_change_the_page(files, odd, capsys, tmp_path, monkeypatch):
    pages = []
    for batch_bytes in (1_000, 1 << 20):
        monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", batch_bytes)
        call(capsys, "report", odd, "--model", files.model, "--out", tmp_path / "page.html")
        lines = (tmp_path / "page.html").read_text().splitlines()
        pages.append([line for line in lines if "UTC" not in line])
    assert pages[0] == pages[1]


def test_the_page_counts_categories_as_the_model_does():
    nominal = pl.DataFrame(
        {
            "x": np.random.default_rng(0).normal(size=60),
            "word": ["a", "b"] * 25 + ["c", "d", "e", "e", "NA"] + ["a"] * 5,
            "on": ["True", "FALSE", "true"] * 20,
        }
    )
    detector = TableDetector(RankAD(0.1, **QUICK)).fit(nominal)
    views = Views(detector)
    alarms = np.arange(4) == 3
    new = {"x": [0.0] * 4, "word": ["a", "d", "new", "b"], "on": [1, 0, 1, None]}
    views.add(pl.DataFrame(new), alarms)
    _, word, on = views.columns
    assert word.all_labels[:3] == ("a", "b", "(other)")
    assert word.counts.nominal[:3] == (30, 25, 5)
    assert word.counts.scored == (1, 1, 2, 0, 0, 0)
    assert word.counts.alarms == (0, 1, 0, 0, 0, 0)
    assert (on.labels, on.counts.nominal) == (("true", "false"), (40, 20, 0, 0, 0))
    assert on.counts.scored == (2, 1, 0, 0, 1)


def test_a_page_can_be_made_without_rows_in_the_model(files, without_rows, capsys, tmp_path):
    said = call(capsys, "report", files.new, "--model", without_rows, "--out", tmp_path / "page.html")
    assert said.status == 0
    assert "saved without the rows it was fitted on" in (tmp_path / "page.html").read_text()


# -------------------------------------------------------------------------------------------------- calibrate


@pytest.mark.parametrize("batch_bytes", [1_000, 1 << 20])
def test_calibrating_compares_with_the_fresh_rows(files, capsys, tmp_path, monkeypatch, batch_bytes):
    monkeypatch.setitem(open_table.__kwdefaults__, "batch_bytes", batch_bytes)
    out = tmp_path / "fresh.rankad"
    answer = json.loads(
        call(capsys, "calibrate", files.new, "--model", files.model, "--out", out, "--json").out
    )
    before, after, frame = rankad.load(files.model), rankad.load(out), read_text(files.new)
    scores = before.score_samples(frame)
    np.testing.assert_array_equal(after.score_samples(frame), scores)
    # By hand: the share of the fresh rows that score no higher.
    expected = [(1 + (scores <= score).sum()) / (len(scores) + 1) for score in scores]
    assert after.p_values(frame).tolist() == expected
    assert answer["alarms_before"] == (before.p_values(frame) <= 0.05).sum()
    assert (answer["promise_before"]["exact"], answer["promise"]["exact"]) == (False, True)
    assert read_card(out).calibration == "split"


def test_calibrating_in_place_says_what_changed(files, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    model = tmp_path / "m.rankad"
    model.write_bytes(files.model.read_bytes())
    said = call(capsys, "calibrate", files.new, "--model", model, "--out", model)
    assert (said.status, said.err) == (0, "")
    assert "of these 120 rows were alarms at 5%" in said.out
    assert "promised before" in said.out
    assert rankad.load(model).calibration_.scores.size == 120


def test_rows_are_added_to_those_compared_with_before(files, capsys, tmp_path):
    out, again = tmp_path / "fresh.rankad", tmp_path / "again.rankad"
    call(capsys, "calibrate", files.new, "--model", files.model, "--out", out)
    given = ("calibrate", files.new, "--model", out, "--out", again, "--add")
    answer = json.loads(call(capsys, *given, "--json").out)
    known = rankad.load(out).calibration_
    assert (answer["rows"], answer["rows_before"], answer["rows_now"]) == (120, 120, 240)
    assert answer["alarms_before"] == (known.p_values(known.scores) <= 0.05).sum()
    np.testing.assert_array_equal(rankad.load(again).calibration_.scores, np.repeat(known.scores, 2))
    assert "compares with 240 rows from now on" in " ".join(call(capsys, *given).out.split())


@pytest.mark.parametrize("named", [True, False])
def test_a_model_of_an_array_stays_one_when_calibrated(capsys, tmp_path, named):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    RankAD(**QUICK).fit(pl.DataFrame(rows, schema=["a", "b"]) if named else rows).save(tmp_path / "m.rankad")
    pl.DataFrame(rng.normal(size=(30, 2)), schema=["a", "b"]).write_csv(tmp_path / "t.csv")
    said = call(
        capsys, "calibrate", tmp_path / "t.csv", "-m", tmp_path / "m.rankad", "-o", tmp_path / "n.rankad"
    )
    assert (said.status, said.err) == (0, "")
    card = read_card(tmp_path / "n.rankad")
    assert (card.kind, card.n_calibrating) == ("RankAD", 30)
    assert card.columns == (("a", "b") if named else ())


# ------------------------------------------------------------------------------------------- demo and example


def test_the_demonstration_runs_every_command_that_it_prints(capsys, tmp_path, monkeypatch):
    quick(monkeypatch)
    small = example.make_example(300, 60)
    monkeypatch.setattr(example, "make_example", lambda: small)
    monkeypatch.setenv("COLUMNS", "200")
    said = call(capsys, "demo", "--out", tmp_path / "demo")
    assert (said.status, said.err) == (0, "")
    commands = [line.split()[2] for line in said.out.splitlines() if line.startswith("$ rankad ")]
    assert commands == ["fit", "score", "explain", "report"]
    made = {path.name for path in (tmp_path / "demo").iterdir()}
    assert made == {"normal.csv", "new.csv", "pump.rankad", "scored.csv", "report.html"}
    assert "Of the 7 anomalies planted" in said.out


def test_the_example_hides_anomalies_that_no_column_shows():
    made = example.make_example(1_000, 100, seed=3)
    again = example.make_example(1_000, 100, seed=3)
    assert made == again
    assert len(made.planted) == len({planted.what for planted in made.planted}) == 7
    hidden = [planted for planted in made.planted if "usual by itself" in planted.what]
    assert len(hidden) == 2
    for planted in hidden:
        row = made.new[planted.row - 1]
        for column in ("speed_rpm", "flow_m3h", "pressure_bar", "power_kw", "bearing_c"):
            values = [normal[column] for normal in made.normal]
            assert np.quantile(values, 0.01) < row[column] < np.quantile(values, 0.99)


# ------------------------------------------------------------------------------------------ the whole command


def test_help_names_every_command_and_the_version_is_told(capsys):
    said = call(capsys, "--help")
    assert said.status == 0
    for command in (
        "demo",
        "fit",
        "score",
        "explain",
        "report",
        "inspect",
        "calibrate",
        "watch",
        "reproduce",
    ):
        assert f"\n  {command} " in said.out
        assert call(capsys, command, "--help").status == 0
    assert call(capsys, "--version").out == f"rankad {rankad.__version__}\n"
    ran = subprocess.run(
        [sys.executable, "-m", "rankad", "--version"], capture_output=True, text=True, check=True
    )
    assert ran.stdout == call(capsys, "--version").out


def test_help_waits_for_nothing_heavy():
    code = """
import sys
from importlib.metadata import version
from rankad.cli import main
try:
    main(["score", "--help"])
except SystemExit:
    print(sorted({"numba", "sklearn", "polars", "scipy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_shell_can_complete_commands_and_show_how():
    environment = {
        **ENVIRONMENT,
        "_RANKAD_COMPLETE": "complete_bash",
        "COMP_WORDS": "rankad ex",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(SCRIPT, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["explain"]
    environment = {**ENVIRONMENT, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [*SCRIPT, "--show-completion", "bash"], capture_output=True, text=True, env=environment, check=False
    )
    assert "_RANKAD_COMPLETE=complete_bash" in done.stdout


@pytest.mark.parametrize(
    ("missing", "command"), [("typer", "score"), ("polars", "score"), ("jinja2", "report")]
)
def test_a_missing_extra_is_one_line_with_its_cure(files, tmp_path, missing, command):
    code = f"import sys; sys.modules[{missing!r}] = None; from rankad.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, command, files.new, "--model", files.model, "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "pip install 'rankad[" in done.stderr


@pytest.mark.parametrize("detector", [KLPE(0.05), EpsilonLPE(0.05)], ids=repr)
@pytest.mark.parametrize("of_table", [True, False])
def test_models_of_density_detectors_score_and_say_what_they_cannot(capsys, tmp_path, detector, of_table):
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    new = pl.DataFrame({"a": [0.0, 30.0, 0.1], "b": [0.0, 0.0, -0.1]})
    new.write_csv(tmp_path / "new.csv")
    fitted = TableDetector(detector).fit(frame) if of_table else clone(detector).fit(frame)
    fitted.save(tmp_path / "model")
    said = call(
        capsys, "score", tmp_path / "new.csv", "--model", tmp_path / "model", "--out", tmp_path / "o.csv"
    )
    assert said.status == 0, said.err
    scored = pl.read_csv(tmp_path / "o.csv")
    np.testing.assert_array_equal(scored["p_value"], fitted.p_values(new))
    assert scored["alarm"].to_list() == [False, True, False]
    said = call(capsys, "explain", tmp_path / "new.csv", "--model", tmp_path / "model")
    kind = type(detector).__name__
    assert (said.status, f"holds a {kind}, which gives no reasons" in said.err) == (1, True)
    said = call(capsys, "inspect", tmp_path / "model")
    assert said.status == 0, said.err
    assert f"no: {kind} gives no reasons" in said.out
    page = tmp_path / "page.html"
    said = call(capsys, "report", tmp_path / "new.csv", "--model", tmp_path / "model", "--out", page)
    assert said.status == 0, said.err
    assert f"The model is a {kind}, which gives no reasons" in page.read_text()
    normal = tmp_path / "normal.csv"
    frame.write_csv(normal)
    said = call(capsys, "calibrate", normal, "--model", tmp_path / "model", "--out", tmp_path / "model")
    assert said.status == 0, said.err
    assert load(tmp_path / "model").calibration_.kind == "split"


# The second sentence is that of Typer before 0.29, which had its own words for wrong values.
@pytest.mark.parametrize(
    ("given", "option", "said"),
    [
        (
            ["--alpha", "abc"],
            "'--alpha' / '-a'",
            ("it must be a valid number, got 'abc'", "'abc' is not a valid float"),
        ),
        (
            ["--seed", "-1"],
            "'--seed'",
            ("it must be greater than or equal to 0, got '-1'", "-1 is not in the range 0<=x<=4294967295"),
        ),
        (
            ["--jobs", "x"],
            "'--jobs' / '-j'",
            ("it must be a valid integer, got 'x'", "'x' is not a valid integer range"),
        ),
    ],
)
def test_wrong_values_of_options_are_shown(capsys, given, option, said):
    ended = call(capsys, "fit", "t.csv", "--model", "m.rankad", *given)
    assert ended.status == 2
    is_old = tuple(map(int, version("typer").split(".")[:2])) < (0, 29)
    assert ended.err.endswith(f"{option}: {said[is_old]}. See rankad fit --help\n")


def test_an_option_without_its_value_is_named(capsys):
    ended = call(capsys, "fit", "t.csv", "--model", "m.rankad", "--missing")
    assert ended.status == 2
    assert ended.err.endswith("Option '--missing' requires an argument. See rankad fit --help\n")


@pytest.mark.parametrize("command", ["inspect", "score", "watch"])
def test_a_model_that_is_not_there_says_how_to_make_it(capsys, files, tmp_path, command):
    absent = tmp_path / "absent.rankad"
    given = {
        "inspect": [absent],
        "score": [files.new, "--model", absent],
        "watch": [files.new, "--model", absent, "--state", tmp_path / "s", "--out", tmp_path / "o"],
    }
    ended = call(capsys, command, *given[command])
    assert ended.status == 1
    assert ended.err.endswith(
        f"There is no model file {absent}; make one with rankad fit TABLE --model {absent}\n"
    )


def test_a_file_of_keys_that_is_not_there_says_how_to_make_it(tmp_path):
    absent = tmp_path / "keys"
    with pytest.raises(
        ValueError, match=f"no file of keys {absent}; make it with rankad serve --new-key NAME"
    ):
        KeyFile(absent)
