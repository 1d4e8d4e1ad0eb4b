"""Cells: saved one by one, never mixed, never lost."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from rankad.experiments.cells import Cell, CellStore, plain, run_cells, write_atomically

KEY = {"experiment": "table-0", "n": 3}


def square(i):
    return {"square": i * i, "root": float(np.sqrt(i))}


def squares(n, counted=None):
    def work(i):
        if counted is not None:
            counted.append(i)
        return square(i)

    return [Cell({"experiment": "squares", "i": i}, lambda i=i: work(i)) for i in range(n)]


# ----------------------------------------------------------------------------------------------- the store


def test_the_store_returns_what_was_put(tmp_path):
    store = CellStore(tmp_path / "cells")
    assert store.get(KEY) is None
    result = {"auc": 0.1 + 0.2, "counts": (1, 2), "name": "a|b", "none": None}
    assert store.put(KEY, result) == {**result, "counts": [1, 2]}
    assert store.get({"n": 3, "experiment": "table-0"}) == {**result, "counts": [1, 2]}
    assert CellStore(tmp_path / "cells").get(KEY)["auc"] == 0.1 + 0.2
    (file,) = (tmp_path / "cells").iterdir()
    assert file.name.startswith("table-0-")


@pytest.mark.parametrize(
    "other",
    [{**KEY, "n": 4}, {**KEY, "seed": 0}, {"experiment": "table-0"}, {**KEY, "experiment": "table-9"}],
)
def test_another_key_is_another_cell(tmp_path, other):
    store = CellStore(tmp_path)
    store.put(KEY, {"a": 1})
    assert store.get(other) is None


def test_cells_of_another_version_are_not_mixed(tmp_path):
    CellStore(tmp_path, {"rankad": "1"}).put(KEY, {"a": 1})
    assert CellStore(tmp_path, {"rankad": "2"}).get(KEY) is None
    assert CellStore(tmp_path).get(KEY) is None
    assert CellStore(tmp_path, {"rankad": "1"}).get(KEY) == {"a": 1}


def test_the_versions_and_the_source_stand_in_the_key(tmp_path):
    CellStore(tmp_path).put(KEY, {"a": 1})
    (file,) = tmp_path.iterdir()
    stamp = json.loads(file.read_text())["key"]["stamp"]
    assert {"rankad", "numpy", "scipy", "scikit-learn", "numba", "python", "source"} == set(stamp)
    assert stamp["numpy"] == np.__version__


def _changed_result(text):
    return text.replace('"a": 1', '"a": 2')


def _other_key(text):
    return text.replace('"n": 3', '"n": 7')


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text[:-4],
        lambda text: "[]",
        lambda text: "{}",
        lambda text: "\udcff\udcfe",
        _changed_result,
        _other_key,
    ],
)
def test_a_damaged_file_counts_as_missing_and_is_replaced(tmp_path, damage):
    store = CellStore(tmp_path)
    store.put(KEY, {"a": 1})
    (file,) = tmp_path.iterdir()
    before = file.read_text()
    assert damage(before) != before
    file.write_bytes(damage(before).encode("utf-8", "surrogateescape"))
    assert store.get(KEY) is None
    assert run_cells([Cell(KEY, lambda: {"a": 1})], store) == [{"a": 1}]
    assert file.read_text() == before


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"


def test_numpy_values_become_plain_ones():
    assert plain({"a": np.float64(0.5), "b": np.arange(2), "c": (np.int64(1),)}) == {
        "a": 0.5,
        "b": [0, 1],
        "c": [1],
    }
    with pytest.raises(TypeError, match=r"plain values .* got object .* Convert it first"):
        plain({"a": object()})


# ------------------------------------------------------------------------------------------------ the runner


def test_finished_cells_are_not_repeated(tmp_path):
    counted = []
    store = CellStore(tmp_path)
    first = run_cells(squares(3, counted), store)
    second = run_cells(squares(5, counted), store)
    assert counted == [0, 1, 2, 3, 4]
    assert second[:3] == first
    assert second == [square(i) for i in range(5)]


def test_an_interruption_keeps_what_is_finished(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    store = CellStore(tmp_path)
    cells = squares(4)
    with pytest.raises(KeyboardInterrupt):
        run_cells([*cells[:2], Cell({"experiment": "stop"}, interrupted), *cells[2:]], store)
    assert [store.get(cell.key) is None for cell in cells] == [False, False, True, True]


def test_two_processes_return_the_same_in_order(tmp_path):
    alone = run_cells(squares(6), CellStore(tmp_path / "one"))
    assert run_cells(squares(6), CellStore(tmp_path / "two"), n_jobs=2) == alone
    assert len(list((tmp_path / "two").iterdir())) == 6


def test_cells_with_the_same_key_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"Two cells have the same key, .*'i': 0"):
        run_cells(squares(2) + squares(1), CellStore(tmp_path))


def test_progress_goes_to_standard_error_with_time_left(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rankad._base.progress._SECONDS_BETWEEN_LINES", 0.0)
    store = CellStore(tmp_path)
    run_cells(squares(2), store, label="squares")
    run_cells(squares(4), store, label="squares")
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "rankad squares: 1 of 2, 0 s left"
    assert lines[-3:] == [
        "rankad squares: 2 of 4 finished before",
        "rankad squares: 3 of 4, 0 s left",
        "rankad squares: 4 of 4, 0 s left",
    ]


# ----------------------------------------------------------------------------------- killed, started again

EXPERIMENT = """
    import os, sys, time
    from pathlib import Path
    import numpy as np
    from rankad.experiments.cells import Cell, CellStore, run_cells
    from rankad.experiments.results import Table, write_results

    out, pause, log = Path(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])

    def work(i):
        time.sleep(pause)
        value = float(np.random.default_rng(i).normal())
        with open(log, "a") as file:
            file.write(f"{i}\\n")
        return {"value": value}

    cells = [Cell({"experiment": "fake", "i": i}, lambda i=i: work(i)) for i in range(12)]
    results = run_cells(cells, CellStore(out / "cells"), label="fake")
    rows = [[str(i), repr(result["value"])] for i, result in enumerate(results)]
    write_results(out, "fake", Table("fake", "Fake", ["i", "value"], rows), {"cells": results})
"""


def test_killed_half_way_and_started_again_it_finishes_with_the_same_results(tmp_path):
    script = tmp_path / "experiment.py"
    script.write_text(textwrap.dedent(EXPERIMENT))

    def command(name, pause):
        return [sys.executable, str(script), str(tmp_path / name), str(pause), str(tmp_path / f"{name}.log")]

    def finished():
        return list((tmp_path / "killed" / "cells").glob("fake-*.json"))

    whole = subprocess.Popen(command("whole", 0.0), stderr=subprocess.DEVNULL)
    process = subprocess.Popen(command("killed", 0.3), stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while len(finished()) < 3 and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    kept = {file: file.read_bytes() for file in finished()}
    assert 3 <= len(kept) < 12
    assert not (tmp_path / "killed" / "fake.json").exists()

    subprocess.run(command("killed", 0.0), check=True, stderr=subprocess.DEVNULL, timeout=60)
    assert whole.wait(timeout=60) == 0
    for name in ("fake.json", "fake.md"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert all(file.read_bytes() == content for file, content in kept.items())
    # At most the cell at work when the signal came was done twice.
    done = [int(line) for line in (tmp_path / "killed.log").read_text().split()]
    assert sorted(set(done)) == list(range(12))
    assert len(done) <= 13
