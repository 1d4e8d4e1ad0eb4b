"""Tables and figures by name, and the command."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from rankad.cli import main
from rankad.experiments import reproduce as registry
from rankad.experiments.cells import Settings


def module_of(name):
    return "rankad.experiments." + name.replace("-", "")


NAMES = ["figure-1", "figure-2", "findings", "table-1", "table-2", "table-3"]


@pytest.fixture
def ran(monkeypatch):
    """Put fakes in the place of all experiments; they note what they were given."""
    notes = []
    for name in registry.EXPERIMENTS:
        fake = SimpleNamespace(run=lambda settings, name=name: notes.append((name, settings)))
        monkeypatch.setitem(sys.modules, module_of(name), fake)
    return notes


def fail_with(monkeypatch, error):
    def run(settings):
        raise error

    monkeypatch.setitem(sys.modules, module_of("table-1"), SimpleNamespace(run=run))


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_every_table_and_figure_has_a_module_named_after_it():
    assert sorted(registry.EXPERIMENTS) == NAMES
    for name in registry.EXPERIMENTS:
        assert hasattr(import_module(module_of(name)), "run")


def test_all_runs_everything_once_and_tells_what_is_finished(ran):
    told = []
    registry.reproduce("all", Settings(), told.append)
    assert sorted(told) == NAMES
    assert [name for name, _ in ran] == told


def test_an_unknown_name_is_refused_with_the_names_there_are():
    expected = (
        "No experiment is called 'table-9'; choose figure-1, figure-2, findings, table-1, table-2, table-3 "
        "or all."
    )
    with pytest.raises(ValueError, match=expected):
        registry.reproduce("table-9", Settings())


def test_run_seeds_differ_and_stay():
    seeds = [Settings(seed=seed).run_seed(run) for seed in range(20) for run in range(5)]
    assert len(set(seeds)) == 100
    assert seeds[0] == Settings(seed=0, quick=True).run_seed(0)
    assert (Settings().n_runs, Settings(quick=True).n_runs) == (5, 1)


# ----------------------------------------------------------------------------------------------- the command


def test_the_command_passes_its_options_on(ran, capsys, tmp_path):
    out = tmp_path / "out"
    code, said, err = call(
        capsys,
        *("reproduce", "figure-2", "--quick", "--seed", "7", "--jobs", "2"),
        *("--data", str(tmp_path), "--out", str(out)),
    )
    assert (code, err) == (0, "")
    assert ran == [("figure-2", Settings(out=out, data=tmp_path, seed=7, quick=True, n_jobs=2))]
    assert said == f"figure-2: {out / 'figure-2.md'}\n"


def test_the_commands_defaults(ran, capsys):
    assert call(capsys, "reproduce", "all")[0] == 0
    assert [settings for _, settings in ran] == [Settings(Path("results"), None, 0, False, None)] * 6


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["reproduce", "table-9"],
            "'table-9'; choose figure-1, figure-2, findings, table-1, table-2, table-3",
        ),
        (["reproduce"], "WHAT"),
        (["reproduce", "table-1", "--seed", "-1"], "--seed"),
        (["reproduce", "table-1", "--jobs", "0"], "--jobs"),
        (["reproduce", "table-1", "--seed", "x"], "--seed"),
        (["reproduce", "table-1", "--data", "/no/such/folder"], "/no/such/folder"),
        (["reproduce", "table-1", "--out", __file__], "test_reproduce.py"),
        (["reproduce", "table-1", "--fast"], "--fast"),
        (["invent"], "invent"),
        ([], "command"),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(ran, capsys, arguments, expected):
    code, out, err = call(capsys, *arguments)
    assert (code, out, ran) == (2, "", [])
    assert err.startswith("rankad: ")
    assert err.count("\n") == 1
    assert expected in err


def test_a_failure_is_one_line_and_status_1(ran, capsys, monkeypatch):
    fail_with(monkeypatch, RuntimeError("16_http.npz is not\nin the data folder"))
    code, out, err = call(capsys, "reproduce", "table-1")
    assert (code, out) == (1, "")
    assert err == "rankad: 16_http.npz is not in the data folder (--verbose shows the traceback)\n"
    code, out, err = call(capsys, "reproduce", "table-1", "--verbose")
    assert code == 1
    assert "Traceback" in err
    assert err.endswith("rankad: 16_http.npz is not in the data folder\n")


def test_a_missing_package_is_told_with_its_cure(ran, capsys, monkeypatch):
    fail_with(monkeypatch, ModuleNotFoundError("No module named 'pooch'"))
    code, _, err = call(capsys, "reproduce", "table-1")
    assert code == 1
    assert "No module named 'pooch'; run pip install 'rankad[experiments]'" in err


def test_without_typer_the_command_says_so():
    # In a process that has not imported it before.
    code = (
        "import sys; sys.modules['typer'] = None; from rankad.cli import main; main(['reproduce', 'table-1'])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert "run pip install 'rankad[experiments]'" in said.stderr
    assert said.stderr.count("\n") == 1


def test_an_interruption_says_that_the_work_is_kept(ran, capsys, monkeypatch):
    fail_with(monkeypatch, KeyboardInterrupt())
    code, _, err = call(capsys, "reproduce", "table-1")
    assert code == 130
    assert err == "rankad: interrupted; finished parts are kept, and the same command continues from there\n"


def test_help_names_everything(capsys):
    code, out, err = call(capsys, "reproduce", "--help")
    assert (code, err) == (0, "")
    for word in (*NAMES, "all", "--quick", "--seed", "--data", "--out", "--jobs", "--verbose"):
        assert word in out
