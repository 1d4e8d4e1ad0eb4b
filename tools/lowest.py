"""Test with the lowest versions that pyproject.toml allows: ``python -m tools.lowest build/lowest``.

`make lowest` runs it, on Python 3.11, the only one for which all of these have wheels. Needs the extra
``release`` (uv resolves) and a package index. More arguments are for pytest.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Ray is left out: it has no bound but its own, and takes half a gigabyte.
EXTRAS = ("plot", "online", "cli", "serve", "client", "postgres", "dask", "spark", "experiments")
# What the tests themselves need, at any version that goes with the lowest ones above.
# Starlette of that age tests with httpx, and checks of scikit-learn 1.6 are too old for pytest 9.
TOOLS = ("httpx", "hypothesis", "packaging", "playwright", "pytest>=8,<9", "pytest-xdist", "xlsxwriter")
# Tests of the studies, which compare with packages that are not asked for at any version.
PEERS = ("benchmarks", "one_table", "quality", "research")


def main(folder: str, *arguments: str) -> None:
    """Resolve, install, and run the tests."""
    if sys.version_info[:2] != (3, 11):
        sys.exit("The lowest versions have wheels for Python 3.11 alone; run make PYTHON=python3.11 lowest")
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    pinned, python = str(out / "lowest.txt"), str(out / "venv" / "bin" / "python")
    extras = [part for extra in EXTRAS for part in ("--extra", extra)]
    uv(
        "pip",
        "compile",
        "--resolution",
        "lowest-direct",
        "pyproject.toml",
        *extras,
        "--no-header",
        "-o",
        pinned,
    )
    uv("venv", "--clear", "--python", sys.executable, str(out / "venv"))
    uv("pip", "install", "--python", python, "-r", pinned)
    uv("pip", "install", "--python", python, "-c", pinned, *TOOLS)
    uv("pip", "install", "--python", python, "--no-deps", "-e", ".")
    left_out = [f"--ignore={ROOT / 'tests' / f'test_{name}.py'}" for name in PEERS]
    # Starlette's client for tests, of that age, uses an old name of the newest anyio; the service does not.
    ignored = ["-W", "ignore:The anyio.abc.BlockingPortal:DeprecationWarning"]
    command = [python, "-m", "pytest", "-q", "-m", "not slow", *ignored, *left_out]
    command += arguments or ["-n", "2", str(ROOT / "tests")]
    sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)


def uv(*arguments: str) -> None:
    """Run uv, quietly, and stop where it fails."""
    done = subprocess.run([sys.executable, "-m", "uv", "--quiet", *arguments], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(f"uv {' '.join(arguments[:2])} failed; see above.")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("Name a folder for the environment: python -m tools.lowest build/lowest")
    main(*sys.argv[1:])
