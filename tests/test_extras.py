"""Without an extra, the error names the command that installs it. Here its packages are hidden."""

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rankad

ROOT = Path(__file__).parents[1]
# Extras for those who work on rankad: no user meets an error without them.
OURS = {"bench", "dev", "docs", "release", "test"}
HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in {packages}:
            raise ModuleNotFoundError(f"No module named {{top!r}}", name=top)

sys.meta_path.insert(0, Hidden())
"""


def beyond_the_core():
    """Return the packages that are installed and that the core does not bring, as one would import them."""
    core, waiting = set(), ["rankad"]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in core:
            core.add(name)
            needed = [Requirement(line) for line in importlib.metadata.requires(name) or []]
            waiting += [
                one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})
            ]
    by_import = importlib.metadata.packages_distributions()
    return {
        top for top, brought_by in by_import.items() if not core & set(map(canonicalize_name, brought_by))
    }


FITTED = """
from rankad import RankAD
detector = RankAD(near_field=False, n_components=0).fit([[i * 0.618 % 1, i * 0.755 % 1] for i in range(120)])
"""

# For each extra: packages that it alone brings, and what a user would do that needs them.
CASES = {
    # contourpy comes with matplotlib, and is all that the last line needs.
    "plot": (
        ["matplotlib"],
        [
            "import rankad; rankad.PValueDisplay.from_predictions([0.5])",
            "import rankad; rankad.ColumnsDisplay.from_predictions([])",
            FITTED + "import rankad; rankad.LevelSetDisplay.from_estimator(detector)",
            "import sys; sys.modules['contourpy'] = None\n" + FITTED + "detector.level_set(0.05).boundary()",
        ],
    ),
    "online": (["online_fdr"], ["import rankad; rankad.OnlineAlarms(0.1, n_calibration=99)"]),
    "tables": (
        ["polars"],
        ["import rankad; rankad.TableDetector()", "import rankad; rankad.score_file('a.csv', 'b', 'c')"],
    ),
    "excel": (["fastexcel"], ["from rankad.io.table_files import open_table; open_table({workbook!r})"]),
    "report": (["jinja2", "polars"], [FITTED + "detector.report([[0.5, 0.5]])"]),
    "cli": (["typer"], ["from rankad.cli import main; main(['score', 'new.csv'])"]),
    "serve": (
        ["starlette", "uvicorn", "msgspec", "prometheus_client", "httptools", "typer"],
        ["from rankad.cli import main; main(['serve', 'pump.rankad', '--history', 'none'])"],
    ),
    "client": (["httpx2"], ["import rankad; rankad.Client('http://127.0.0.1:1', 'pump')"]),
    "postgres": (
        ["psycopg"],
        ["from rankad.service.databases import Postgres; Postgres('postgresql://a@b/c', '')"],
    ),
    "dask": (["dask", "distributed", "pyarrow"], ["import rankad.dask"]),
    "spark": (["pyspark", "pyarrow"], ["import rankad.spark"]),
    "ray": (["pyarrow"], ["import rankad.ray"]),
    "experiments": (
        ["typer", "matplotlib"],
        ["from rankad.cli import main; main(['reproduce', 'figure-1', '--quick', '--out', {folder!r}])"],
    ),
}


def extras():
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]["optional-dependencies"]


def run(snippets, packages, folder):
    """Run snippets one after another in a process where packages are hidden; return the error of each."""
    code = (
        HIDE.format(packages=set(packages))
        + "from contextlib import redirect_stderr\nfrom io import StringIO\n"
    )
    for snippet in snippets:
        code += f"""
said = StringIO()
try:
    with redirect_stderr(said):
        exec({snippet!r}, {{}})
except SystemExit:
    print(*said.getvalue().split())
except Exception as error:
    print(*str(error).split())
else:
    print("worked")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=True, timeout=300
    )
    said = done.stdout.splitlines()
    assert len(said) == len(snippets), done
    return said


@pytest.fixture
def snippets(tmp_path):
    """Return what to run for an extra, with a workbook to read and a folder to write to."""
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        book.add_worksheet().write_row(0, 0, ["a", "b"])
    places = {"workbook": str(tmp_path / "a.xlsx"), "folder": str(tmp_path / "out")}
    return lambda extra: [code.format(**places) for code in CASES[extra][1]]


def test_every_extra_for_users_has_a_case():
    assert set(CASES) == set(extras()) - OURS


@pytest.mark.parametrize(("extra", "package"), [(extra, name) for extra in CASES for name in CASES[extra][0]])
def test_a_missing_package_is_told_with_the_command_that_installs_it(extra, package, snippets, tmp_path):
    wanted = {"postgres": "serve,postgres"}.get(extra, extra)
    for said in run(snippets(extra), [package], tmp_path):
        assert f"pip install 'rankad[{wanted}]'" in said


def test_with_the_core_alone_errors_name_the_extra_at_once(snippets, tmp_path):
    # Excel and PostgreSQL need another extra first.
    asked = [
        (extra, code) for extra in CASES if extra not in ("excel", "postgres") for code in snippets(extra)
    ]
    said = run([code for _, code in asked], beyond_the_core(), tmp_path)
    for (extra, code), told in zip(asked, said, strict=True):
        assert f"pip install 'rankad[{extra}]'" in told, (code, told)


def test_the_core_alone_detects_and_has_all_public_names_but_those_of_tables(tmp_path):
    names = [name for name in rankad.__all__ if name not in ("TableDetector", "score_file")]
    names_are_there = "import rankad; " + "; ".join(f"rankad.{name}" for name in names)
    detects = FITTED + "assert detector.predict([[0.5, 0.5], [9.0, 9.0]]).tolist() == [1, -1]"
    assert run([names_are_there, detects], beyond_the_core(), tmp_path) == ["worked", "worked"]
