"""Install each extra alone into a clean environment, and use it: ``python -m tools.extras build/extras``.

`make extras` runs it. The wheel is built first, so that what is tried is what users get. Names after the
folder try these alone; ``core`` is the package without any. Needs the extra ``release`` and a package index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Extras for those who work on rankad.
OURS = {"bench", "dev", "docs", "release", "test"}

FITTED = """
import rankad
rows = [[i * 0.618 % 1, i * 0.755 % 1] for i in range(120)]
detector = rankad.RankAD(near_field=False, n_components=0).fit(rows)
"""
TABLE = """
import polars, rankad
frame = polars.DataFrame({"a": [i * 0.618 % 1 for i in range(120)], "b": ["x", "y"] * 60})
detector = rankad.TableDetector().fit(frame)
assert detector.p_values({"a": 9.0, "b": "x"})[0] < 0.05
"""
HELP = "import sys; from rankad.cli import main; main([*{words!r}, '--help'])"
# Something small that each extra is there for. It must not need another extra.
USES = {
    "core": FITTED + "assert detector.predict([[0.5, 0.5], [9.0, 9.0]]).tolist() == [1, -1]",
    "plot": "import matplotlib; matplotlib.use('agg')\n"
    + FITTED
    + "rankad.LevelSetDisplay.from_estimator(detector, rows, alphas=[0.2], n_grid=20)",
    "online": "import rankad; rankad.OnlineAlarms(0.1, n_calibration=999).update([0.5])",
    "tables": TABLE,
    "excel": "import fastexcel\n" + TABLE,
    "report": TABLE + "assert '<html' in detector.report(frame).html",
    "cli": HELP.format(words=["score"]),
    "serve": "from rankad.service.app import make_app; from rankad.service.protocol import PatientProtocol\n"
    + HELP.format(words=["serve"]),
    "client": "import rankad; rankad.Client('http://127.0.0.1:1', 'pump')",
    "postgres": "import psycopg, rankad; print(psycopg.pq.__impl__)",
    "dask": "import rankad.dask; rankad.dask.RankAD()",
    "spark": "import rankad.spark; rankad.spark.RankAD",
    "ray": "import ray.data, rankad.ray; rankad.ray.Scorer",
    "experiments": "import rankad.experiments.figure1; " + HELP.format(words=["reproduce"]),
}


def main(folder: str, *chosen: str) -> None:
    """Try all extras, or those chosen; print a line for each, and exit with 1 if one fails."""
    declared = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    if declared - OURS != set(USES) - {"core"}:
        sys.exit(f"tools/extras.py must say how to use {sorted((declared - OURS) ^ (set(USES) - {'core'}))}.")
    out = Path(folder)
    shutil.rmtree(out / "wheel", ignore_errors=True)
    uv("build", "--wheel", "--out-dir", str(out / "wheel"))
    wheel = next((out / "wheel").glob("*.whl")).resolve()
    failed = [extra for extra in chosen or USES if not works(extra, wheel, out / "venv")]
    if failed:
        sys.exit(f"Not usable alone: {', '.join(failed)}")


def works(extra: str, wheel: Path, venv: Path) -> bool:
    """Install one extra into a fresh environment and use it."""
    uv("venv", "--clear", "--python", sys.executable, str(venv))
    python = venv / ("Scripts" if os.name == "nt" else "bin") / "python"
    wanted = f"rankad @ {wheel.as_uri()}" if extra == "core" else f"rankad[{extra}] @ {wheel.as_uri()}"
    uv("pip", "install", "--python", str(python), wanted)
    # Away from the source: what is imported must be what was installed.
    command = [str(python.absolute()), "-W", "error", "-c", USES[extra]]
    done = subprocess.run(command, cwd=venv, capture_output=True, text=True, check=False)
    listed = uv("pip", "freeze", "--python", str(python))
    print(f"{extra:12} {len(listed.splitlines()):4} packages  {'works' if not done.returncode else 'FAILS'}")
    if done.returncode:
        print(done.stdout[-500:], done.stderr[-1500:], flush=True)
    return not done.returncode


def uv(*arguments: str) -> str:
    """Run uv and return what it prints."""
    command = [sys.executable, "-m", "uv", "--quiet", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"uv {' '.join(arguments[:2])} failed; see above.")
    return done.stdout


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("Name a folder for the environments: python -m tools.extras build/extras [EXTRA...]")
    main(*sys.argv[1:])
