"""Compiled loops: kept on the disk, compiled again where one is damaged, in memory where none can be kept."""

import os
import subprocess
import sys

import numba
import pytest

MODULE = """
from rankad._loops.cache import compiled

@compiled
def add(a, b):
    return a + b

@compiled(error_model="numpy")
def over(a, b):
    return a / b
"""
RUN = (
    "import loops; from rankad._loops.cache import n_compiled; "
    "print(loops.add(2, 3), loops.over(1.0, 0.0), dict(loops.add.stats.cache_hits) != {}, n_compiled())"
)


@pytest.fixture
def run(tmp_path):
    (tmp_path / "loops.py").write_text(MODULE)

    def run(**environment):
        found = subprocess.run(
            [sys.executable, "-c", RUN],
            cwd=tmp_path,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert found.returncode == 0, found.stderr
        return found

    return run


def kept(tmp_path):
    return sorted(path for path in (tmp_path / "cache").rglob("*") if path.suffix in (".nbi", ".nbc"))


def test_what_is_compiled_once_is_loaded_from_then_on(run, tmp_path):
    assert run().stdout == "5 inf False 2\n"
    assert len(kept(tmp_path)) == 4
    again = run()
    assert (again.stdout, again.stderr) == ("5 inf True 0\n", "")


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "gone", "data gone"])
def test_a_damaged_file_is_compiled_again_and_replaced(run, tmp_path, damage):
    run()
    for path in kept(tmp_path):
        whole = path.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        written = {"empty": b"", "cut": whole[: len(whole) // 2], "flipped": bytes(flipped)}
        if damage == "gone" or (damage == "data gone" and path.suffix == ".nbc"):
            path.unlink()
        elif damage in written:
            path.write_bytes(written[damage])
    mended = run()
    assert (mended.stdout, mended.stderr) == ("5 inf False 2\n", "")
    assert run().stdout == "5 inf True 0\n"


@pytest.mark.skipif(not hasattr(numba.config, "CACHE_LOCATOR_CLASSES"), reason="numba keeps code everywhere")
def test_where_nothing_can_be_kept_one_line_says_so(run, tmp_path):
    # The only place allowed is one that a function in a file cannot be kept in.
    found = run(NUMBA_CACHE_LOCATOR_CLASSES="IPythonCacheLocator")
    assert found.stdout == "5 inf False 0\n"
    assert found.stderr.count("UserWarning: Compiled in memory") == 1
    assert "set the environment variable NUMBA_CACHE_DIR to a folder that can be written to" in found.stderr
    assert not kept(tmp_path)


def test_a_folder_that_is_lost_later_is_no_error(run, tmp_path):
    code = (
        "import loops, shutil, os; folder = loops.add._cache.cache_path; shutil.rmtree(folder); "
        "open(folder, 'w').close(); print(loops.add(2, 3))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.stdout == "5\n", found.stderr
    assert "Compiled in memory" in found.stderr
