"""A cheap slice of ``make faults``, and whether the harness notices what it is there to notice."""

import json
import sys
from pathlib import Path

import pytest

# The benchmarks are not installed with the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.faults import __main__ as battery
from benchmarks.faults import page
from benchmarks.faults.bench import Bench, Case, Result, Skipped, run_cases
from benchmarks.faults.judge import ALLOWANCE, changes, faults_of, snapshot
from benchmarks.faults.process import Outcome, Worker, run
from benchmarks.faults.whole import is_whole


def python(code, **options):
    return run([sys.executable, "-S", "-c", code], **options)


# ---------------------------------------------------------------------------------- what a process can do


def test_a_good_end_is_no_fault():
    assert faults_of(python("print('fine')")) == []
    assert faults_of(python("import sys; sys.exit('rankad: t.csv is empty.')"), named=["t.csv"]) == []


def test_a_crash_is_noticed():
    assert faults_of(python("import os; os.abort()")) == ["died of SIGABRT"]
    assert faults_of(python("import os; os.kill(os.getpid(), 11)")) == ["died of SIGSEGV"]


def test_a_hang_is_noticed_and_stopped():
    done = python("import time; time.sleep(60)", seconds=0.5)
    assert done.hung
    assert done.seconds < 10
    assert faults_of(done, seconds=0.5) == ["no answer in 0.5 s"]


def test_memory_is_noticed():
    # It is looked at from outside, now and then, and must not be gone before.
    baseline = python("import time; time.sleep(0.3)").peak
    assert 1 << 20 < baseline < 100 << 20
    done = python("x = bytearray(400 << 20); x[::4096] = b'x' * len(x[::4096])")
    assert done.peak > 400 << 20
    (fault,) = faults_of(done, baseline=baseline)
    assert fault.endswith("MiB of memory for 0.0 MB of input")
    assert faults_of(done, baseline=baseline, n_bytes=200 << 20) == []


@pytest.mark.parametrize(
    ("said", "faults"),
    [
        ("rankad: t.csv is empty.\n", []),
        ("rankad: note: few rows.\nrankad: t.csv is empty.\n", []),
        ("", ["failed without a word"]),
        ("rankad: t.csv\nis empty.\n", ["an error of 2 lines"]),
        ("t.csv is empty.\n", ["an error that does not begin with 'rankad: '"]),
        ("rankad: no space left.\n", ["an error that names no file"]),
        (f"rankad: t.csv {'x' * 2000}\n", ["an error of 2,014 characters"]),
        ("rankad: t.csv: oops (--verbose shows the traceback)\n", ["an error that nobody foresaw"]),
        ("Traceback (most recent call last):\n  ...\n", ["a Python traceback"]),
        ("thread '<unnamed>' panicked at src/lib.rs\n", ["a Rust panic on standard error"]),
        ("rankad: t.csv \x1b[2J\n", ["a control character on the screen"]),
    ],
)
def test_errors_are_one_line_with_a_name(said, faults):
    assert faults_of(Outcome(1, "", said, 0.1, 0), named=["t.csv"]) == faults


def test_statuses_are_those_allowed():
    fine = Outcome(0, "", "", 0.1, 0)
    assert faults_of(fine) == []
    assert faults_of(fine, statuses=(1, 2)) == ["exit status 0, allowed are 1, 2"]
    assert faults_of(Outcome(143, "", "", 0.1, 0), statuses=(143,)) == []
    assert faults_of(Outcome(134, "", "", 0.1, 0)) == ["exit status 134, allowed are 0, 1, 2, 3"]
    assert faults_of(fine._replace(peak=ALLOWANCE + 1)) == ["300 MiB of memory for 0.0 MB of input"]


def test_lost_and_changed_files_are_noticed(tmp_path):
    for name in ("kept", "lost", "changed", "free"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("kept")
    before = snapshot(tmp_path)
    assert changes(before, snapshot(tmp_path)) == []
    (tmp_path / "lost").unlink()
    (tmp_path / "changed").write_text("else")
    (tmp_path / "free").write_text("else")
    (tmp_path / "link").unlink()
    (tmp_path / "link").write_text("kept")
    (tmp_path / "out.csv.0a1b2c3d.part").write_text("")
    found = changes(before, snapshot(tmp_path), {"free"})
    assert found == ["changed changed", "changed link", "lost lost", "left out.csv.*.part"]


def test_outputs_that_are_cut_off_are_not_whole(tmp_path):
    table = tmp_path / "out.csv"
    table.write_text("id,p_value\na,0.5\nb,1\n")
    assert is_whole(table, 2)
    assert not is_whole(table, 3)
    table.write_text("id,p_value\na,0.5\nb")
    assert not is_whole(table, 2)
    (tmp_path / "out.html").write_text("<html><body>")
    (tmp_path / "out.rankad").write_bytes(b"")
    assert not is_whole(tmp_path / "out.html", 2)
    assert not is_whole(tmp_path / "out.rankad", 2)


# ------------------------------------------------------------------------------------------ the worker


def test_a_worker_survives_what_its_commands_do(tmp_path):
    with Worker() as worker:
        assert "Traceback" in worker.call("1 / 0", tmp_path).err
        assert (
            "wrote past Python" in worker.call("import os; os.write(2, b'wrote past Python')", tmp_path).err
        )
        grown = worker.call("x = bytearray(400 << 20); x[::4096] = b'x' * len(x[::4096])", tmp_path)
        assert faults_of(grown) == [f"{grown.peak >> 20} MiB of memory for 0.0 MB of input"]
        assert worker.call("pass", tmp_path).peak < 50 << 20
        assert faults_of(worker.call("import os; os.kill(os.getpid(), 11)", tmp_path)) == ["died of SIGSEGV"]
        refused = worker.run(["inspect", "none.rankad"], tmp_path)
        assert refused.status == 1
        assert faults_of(refused, named=["none.rankad"]) == []
        assert worker.call("import time; time.sleep(60)", tmp_path, seconds=0.5).hung


# ------------------------------------------------------------------------------------------- the battery


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    found = Bench(tmp_path_factory.mktemp("faults"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def cases():
    return {kind: make() for kind, make in battery.KINDS.items()}


def test_there_are_enough_cases_and_each_has_a_name_of_its_own(cases):
    for kind, found in cases.items():
        assert len({case.name for case in found}) == len(found) >= page.LEAST[kind]


# How their labels begin.
SLICE = (
    "model files: zero bytes",
    "model files: one bit flipped in an array, table 3",
    'model files: forged: kind = "os.system", array',
    "model files: outer header: 8 TB of ranks",
    "tables: utf-16 (",
    "tables: numpy: a pickle that would run code (",
    "tables: workbook: a cell in column ZZZZZZZZ (",
    "tables: array: half of a surrogate pair (",
    "outputs and inputs: score over its table by a link",
    "outputs and inputs: fit to a FIFO that is read",
    "kills: calibrate in place, 0",
)


def test_a_slice_of_the_battery_passes(cases, bench):
    chosen = [case for found in cases.values() for case in found if case.label.startswith(SLICE)]
    assert len(chosen) == len(SLICE)
    failed = {result.name: result.faults for result in run_cases(chosen, bench, shown=False) if result.faults}
    assert failed == {}


def test_a_case_that_fails_skips_or_breaks_is_told(bench):
    def breaks(bench, folder):
        raise OSError("no disk")

    def skips(bench, folder):
        raise Skipped("no root")

    cases = [
        Case("kills", "passes", lambda bench, folder: []),
        Case("kills", "fails", lambda bench, folder: ["lost t.csv"]),
        Case("kills", "breaks", breaks),
        Case("kills", "skips", skips),
    ]
    passed, failed, broken, skipped = run_cases(cases, bench, shown=False)
    assert (passed.faults, failed.faults, skipped.faults) == ([], ["lost t.csv"], [])
    assert broken.faults == ["the case itself failed: OSError: no disk"]
    assert skipped.skipped == "no root"


def test_the_page_counts_and_tells_how_to_run_again(tmp_path):
    results = [
        Result("kills", "fit, 1", [], [], 1.0),
        Result("kills", "it's fit, 2", ["lost t.csv"], ["rankad fit t.csv -> status 0: "], 1.0),
        Result("full disks", "report", [], [], 1.0, "no root"),
    ]
    page.write(tmp_path, results)
    text = (tmp_path / "faults.md").read_text()
    assert "| kills | 2 | 1 | 1 | 0 |" in text
    assert "| full disks | 0 | 0 | 0 | 1 |" in text
    assert "**lost t.csv** (1 case). For example `rankad fit t.csv -> status 0: `" in text
    assert """python -m benchmarks.faults --case 'kills: it'"'"'s fit, 2'""" in text
    assert len(json.loads((tmp_path / "faults.json").read_text())["results"]) == 3
    assert page.read(tmp_path) == results
    mended = results[1]._replace(faults=[])
    assert page.merged(results, [mended]) == [results[0], mended, results[2]]
    assert page.summary(results).splitlines()[-1] == "in all: 1 of 2 passed"
    assert "kills: 2 cases of at least 100" in page.too_few(results)
    with pytest.raises(SystemExit, match="there is no case 'kills: none'"):
        battery.main(["--case", "kills: none"])
