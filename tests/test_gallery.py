"""Every example of the gallery is whole, and the cheapest ones run as they stand."""

import ast
import importlib
import runpy
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))
# A second or two each; `make docs` runs all of them.
CHEAP = ["plot_few_rows.py", "plot_false_discoveries.py", "plot_level_sets.py"]
LAST = "plt.show()"

if not GALLERY.is_dir():
    pytest.skip("the gallery is not part of a source distribution", allow_module_level=True)

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def pictures(monkeypatch):
    plt.close("all")
    plt.switch_backend("agg")
    # It would warn that there is no window.
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


def faults_of(source):
    """Return what is wrong with an example, without running it."""
    tree = ast.parse(source)
    lines = (ast.get_docstring(tree, clean=False) or "").strip().splitlines()
    if len(lines) < 4 or set(lines[1]) != {"="} or len(lines[0]) > len(lines[1]):
        yield "it does not begin with a title, underlined, and a text"
    if "\n# %%\n# " not in source:
        yield "it has no block of text"
    if source.rstrip().splitlines()[-1] != LAST:
        yield f"it does not end with {LAST}"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "rankad":
            module = importlib.import_module(node.module)
            yield from (
                f"{node.module} has no {name.name}" for name in node.names if not hasattr(module, name.name)
            )


def test_there_are_enough_examples_and_the_cheap_ones_are_among_them():
    assert len(EXAMPLES) >= 14
    assert {*CHEAP} <= {path.name for path in EXAMPLES}
    titles = [ast.get_docstring(ast.parse(path.read_text("utf-8"))).splitlines()[0] for path in EXAMPLES]
    assert len({*titles}) == len(titles)


def test_the_order_of_the_gallery_has_every_example_once():
    settings = ast.parse((GALLERY.parent / "conf.py").read_text("utf-8")).body
    assigned = {ast.unparse(node.targets[0]): node.value for node in settings if isinstance(node, ast.Assign)}
    order = ast.literal_eval(assigned["_teaching_order"])
    assert sorted(f"plot_{name}.py" for name in order) == [path.name for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_whole(path):
    source = path.read_text("utf-8")
    compile(source, str(path), "exec")
    assert list(faults_of(source)) == []


def test_faults_of_an_example_are_noticed():
    whole = '"""\nTitle\n=====\n\nText.\n"""\n\nfrom rankad import RankAD\n\n# %%\n# More.\nplt.show()\n'
    assert list(faults_of(whole)) == []
    for broken, fault in [
        (whole.replace("=====\n", ""), "title"),
        (whole.replace("# %%\n", ""), "block of text"),
        (whole.replace("plt.show()", "print()"), "does not end"),
        (whole.replace("RankAD", "RankedAD"), "rankad has no RankedAD"),
    ]:
        assert [fault in said for said in faults_of(broken)] == [True]


@pytest.mark.parametrize("name", CHEAP)
def test_a_cheap_example_runs_and_ends_in_a_picture(name, pictures, capsys):
    runpy.run_path(str(GALLERY / name), run_name="__main__")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        assert figure.axes
        assert all(ax.has_data() for ax in figure.axes)
        # Text that does not fit makes the layout warn, which is a failure here.
        figure.canvas.draw()
    assert capsys.readouterr().out.strip()
