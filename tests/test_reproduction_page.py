"""The page of results: tables between markers, refreshed from the result files."""

import re
from pathlib import Path

import pytest

from benchmarks.reproduction_page import MADE_WITH, main, read_tables, refresh, refresh_page
from rankad.experiments.findings import FINDINGS
from rankad.experiments.reproduce import EXPERIMENTS
from rankad.experiments.results import Table, write_results
from rankad.stages.levels import TAIL_CUTS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "reproduction.md"
NAMES = [
    MADE_WITH,
    *("table-1-printed", "table-1-deviations", "table-2"),
    *(f"table-3-{part}" for part in ("auc", "test-time", "fit-time", "support", "false-alarms", "tried")),
    *("figure-1", "figure-2"),
    *(f"finding-{number:02d}" for number in range(1, 11)),
]
TWO = "Top.\n\n<!-- a begin -->\nold\n<!-- a end -->\n\nMiddle.\n\n<!-- b begin -->\n<!-- b end -->\n"


def write_all(folder, value="1", quick=False):
    """Write results of every experiment: one table each, called like the experiment."""
    for name in EXPERIMENTS:
        table = Table(name, f"Title of {name}", ("x",), [(value,)], ["A note."])
        write_results(folder, name, table, {"settings": {"seed": 3, "quick": quick}})


def markers(names):
    return "".join(f"## {name}\n\n<!-- {name} begin -->\n<!-- {name} end -->\n\n" for name in names)


def test_only_what_stands_between_markers_changes():
    assert refresh(TWO, {"a": "| new |", "b": "B"}) == (
        "Top.\n\n<!-- a begin -->\n\n| new |\n\n<!-- a end -->\n\nMiddle.\n\n"
        "<!-- b begin -->\n\nB\n\n<!-- b end -->\n"
    )


def test_refreshing_twice_is_refreshing_once():
    tables = {"a": "| x |\n\n- A note.", "b": "B"}
    once = refresh(TWO, tables)
    assert refresh(once, tables) == once


@pytest.mark.parametrize(
    ("text", "tables", "expected"),
    [
        (TWO, {"a": "", "b": "", "c": ""}, "0 pairs of markers for 'c'; give it one, '<!-- c begin -->'"),
        (TWO + TWO, {"a": "", "b": ""}, "2 pairs of markers for 'a'"),
        (TWO, {"a": ""}, "markers for 'b', but no result is called that; remove them or choose one of a"),
        (TWO.replace("<!-- a end -->\n", ""), {"a": "", "b": ""}, "'<!-- a begin -->' does not open a pair"),
        (TWO.replace("<!-- b end -->\n", ""), {"a": "", "b": ""}, "'<!-- b begin -->' does not open a pair"),
        (TWO.replace("<!-- a begin -->\n", ""), {"a": "", "b": ""}, "'<!-- a end -->' does not open a pair"),
    ],
)
def test_markers_and_results_must_match(text, tables, expected):
    with pytest.raises(ValueError, match=re.escape(expected)):
        refresh(text, tables)


def test_a_page_is_filled_from_the_result_files(tmp_path):
    write_all(tmp_path / "results", "0.125")
    page = tmp_path / "results.md"
    page.write_text(markers([*EXPERIMENTS, MADE_WITH]))
    main([str(page), str(tmp_path / "results")])
    text = page.read_text()
    assert text.count("| 0.125 |") == len(EXPERIMENTS)
    assert "#### Title of table-1\n" in text
    assert "- figure-1, figure-2, findings, table-1, table-2, table-3: seed 3; rankad " in text
    assert "quick" not in text
    refresh_page(page, tmp_path / "results")
    assert page.read_text() == text


def test_a_quick_look_is_called_one(tmp_path):
    write_all(tmp_path, quick=True)
    table = Table("table-2", "T", ("x",), [("1",)])
    write_results(tmp_path, "table-2", table, {"settings": {"seed": 4, "quick": False}})
    looks, whole = read_tables(tmp_path)[MADE_WITH].splitlines()
    assert looks.startswith("- figure-1, figure-2, findings, table-1, table-3: **a quick look (--quick)")
    assert whole.startswith("- table-2: seed 4; rankad ")


def test_missing_results_are_told_and_the_page_is_left_alone(tmp_path):
    write_all(tmp_path / "results")
    (tmp_path / "results" / "figure-2.json").unlink()
    page = tmp_path / "results.md"
    page.write_text(markers([*EXPERIMENTS, MADE_WITH]))
    before = page.read_bytes()
    with pytest.raises(SystemExit, match=r"figure-2.json is not there.*run rankad reproduce figure-2 --out"):
        main([str(page), str(tmp_path / "results")])
    assert page.read_bytes() == before


def test_a_call_without_a_page_says_how_to_call():
    with pytest.raises(SystemExit, match="usage: "):
        main([])


# --------------------------------------------------------------------------------------------- our own page


def test_our_page_has_a_table_for_every_result():
    text = PAGE.read_text("utf-8")
    filled = re.findall(r"^<!-- (\S+) begin -->\n\n(.+?)\n\n<!-- \1 end -->$", text, re.MULTILINE | re.DOTALL)
    tables = dict(filled)
    assert sorted(tables) == sorted(NAMES)
    assert refresh(text, tables) == text
    assert tables.pop(MADE_WITH).startswith("- figure-1, ")
    assert all(table.startswith("#### ") and "\n|---|" in table for table in tables.values())


def test_our_page_shows_every_picture():
    shown = re.findall(r"^!\[.+\]\(reproduction/(.+)\)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert shown == ["figure-1.png", "figure-2.png", *(f"{module.NAME}.png" for module in FINDINGS)]
    assert [module.NAME for module in FINDINGS] == NAMES[-10:]
    # A source distribution has no pictures.
    if (DOCS / "reproduction").is_dir():
        assert all((DOCS / "reproduction" / name).is_file() for name in shown)


def test_docs_hold_pages_and_small_pictures_only():
    # Caches of tools and what a build of the site leaves are not in git.
    made = ("examples", "generated", "backreferences", "__pycache__", "sg_execution_times.rst")
    files = [
        path
        for path in DOCS.rglob("*")
        if path.is_file() and not any(part in made or part.startswith(".") for part in path.parts)
    ]
    pages = {".md", ".rst", ".py"}
    assert {path.suffix for path in files} <= pages | {".png", ".svg", ".css", ".js", ".html", ".toml"}
    shown = "".join(path.read_text("utf-8") for path in files if path.suffix in pages)
    shown += (DOCS.parent / "README.md").read_text("utf-8")
    for path in files:
        if path.suffix == ".png":
            assert path.name in shown
            assert path.stat().st_size <= 100_000, path


def test_the_prose_of_our_page_quotes_no_measurement():
    prose = refresh(PAGE.read_text("utf-8"), dict.fromkeys(NAMES, ""))
    # The paper's Bayes figure, one-class SVM's nu, and the default's cuts; no others with a decimal point.
    cuts = {text for text in (f"{100 * cut:g}" for cut in TAIL_CUTS) if "." in text}
    assert set(re.findall(r"\d+\.\d+", prose)) == {"0.929", "0.5"} | cuts
