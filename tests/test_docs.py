"""Pages of the documentation: their code, their commands, their links, and that the reference has every name.

`make docs` runs all of it. This is what can be said in a minute without the tools that build the site.
"""

import ast
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rankad
from docs_pages import (
    DOCS,
    EXAMPLES,
    OUTSIDE,
    PAGES,
    ROOT,
    anchors,
    blocks,
    commands,
    links,
    prose,
    roles,
    spans,
    toctrees,
)

if not (DOCS / "_static" / "rankad.css").exists():
    pytest.skip("the pages are not part of a source distribution", allow_module_level=True)

BLOCKS = [block for page in [*PAGES, *OUTSIDE] for block in blocks(page)]
CELLS = [block for block in BLOCKS if block.is_cell]
REFERENCE = DOCS / "reference" / "index.md"


def short(path):
    """Name a page in the output of pytest."""
    return path.relative_to(ROOT).as_posix() if isinstance(path, Path) else str(path)


# ------------------------------------------------------------------ code


def python_of(block):
    """Return a block's Python without IPython's own lines."""
    return "\n".join("" if re.match(r"\s*[%!]", line) else line for line in block.code.splitlines())


def sources():
    """Yield every page and example that has Python, with all its Python that is one program."""
    for page in [*PAGES, *OUTSIDE]:
        found = [b for b in blocks(page) if (b.is_cell and not b.is_shell) or b.info in {"python", "py"}]
        if found:
            yield pytest.param([python_of(block) for block in found], id=short(page))
    for example in EXAMPLES:
        yield pytest.param([example.read_text(encoding="utf-8")], id=short(example))


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_a_page_with_cells_says_that_it_is_run(page):
    if any(block.is_cell for block in blocks(page)):
        head = page.read_text(encoding="utf-8").partition("\n---\n")[0]
        assert head.startswith("---\n"), f"{short(page)} has cells and does not begin with its settings"
        assert "file_format: mystnb" in head
        assert "name: python3" in head


@pytest.mark.parametrize("block", CELLS, ids=str)
def test_cells_are_python_or_shell(block):
    assert block.info == "{code-cell} ipython3"
    if block.is_shell:
        assert re.match(r"%%shell( \d+)?\n", block.code), (
            "a shell cell begins with %%shell and a line of its own"
        )
        if shutil.which("bash"):
            said = subprocess.run(
                ["bash", "-n"], input=block.code.partition("\n")[2], text=True, capture_output=True
            )
            assert not said.stderr, said.stderr
    else:
        compile(python_of(block), str(block), "exec")


@pytest.mark.parametrize("code", list(sources()))
def test_python_uses_names_that_exist(code):
    names = Names()
    for block in code:
        names.visit(ast.parse(block))


class Names(ast.NodeVisitor):
    """Follows imports of rankad through a program, and checks names, attributes and keywords."""

    def __init__(self):
        self.known = {}

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name.split(".")[0] == "rankad":
                module = importlib.import_module(alias.name)
                self.known[alias.asname or "rankad"] = module if alias.asname else rankad

    def visit_ImportFrom(self, node):
        if (node.module or "").split(".")[0] == "rankad":
            for alias in node.names:
                self.known[alias.asname or alias.name] = self.attribute(
                    importlib.import_module(node.module), alias.name
                )

    def visit_Assign(self, node):
        self.generic_visit(node)
        of = self.made_by(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.known.pop(target.id, None)
                if of is not None:
                    self.known[target.id] = of

    def visit_Attribute(self, node):
        self.generic_visit(node)
        self.value(node)

    def visit_Call(self, node):
        self.generic_visit(node)
        called = self.value(node.func)
        if called is None or not callable(called) or isinstance(called, Instance):
            return
        parameters = inspect.signature(called).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            for keyword in node.keywords:
                assert keyword.arg is None or keyword.arg in parameters, (
                    f"line {node.lineno}: {ast.unparse(node.func)} has no parameter {keyword.arg}"
                )

    def value(self, node):
        """Return what an expression is, as far as that is known without running it."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value) or self.made_by(node.value)
            if isinstance(owner, Instance):
                return owner.attribute(node.attr)
            if owner is not None and (inspect.ismodule(owner) or inspect.isclass(owner)):
                return self.attribute(owner, node.attr)
        return None

    def made_by(self, node):
        """Return the detector that an expression makes: a call of its class, or of its fit."""
        if isinstance(node, ast.Call):
            called = self.value(node.func)
            if inspect.isclass(called) and called.__module__.startswith("rankad"):
                return Instance(called)
            if isinstance(node.func, ast.Attribute) and node.func.attr == "fit":
                return self.value(node.func.value) or self.made_by(node.func.value)
        return None

    @staticmethod
    def attribute(owner, name):
        try:
            return getattr(owner, name)
        except AttributeError:
            if inspect.ismodule(owner):
                return importlib.import_module(f"{owner.__name__}.{name}")
            raise


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("from rankad import Detector", "Detector"),
        ("import rankad\nrankad.fit_all", "fit_all"),
        ("import rankad\nrankad.RankAD(alfa=0.1)", "no parameter alfa"),
        ("from rankad import RankAD as R\nd = R().fit(x)\nd.p_value(x)", "RankAD has no p_value"),
        ("from rankad import RankAD\nRankAD().p_values(rows=3)", "no parameter rows"),
        ("import rankad.stages.ranks as ranks\nranks.nothing()", "nothing"),
    ],
)
def test_wrong_names_are_noticed(code, said):
    with pytest.raises((AssertionError, AttributeError, ImportError), match=said):
        Names().visit(ast.parse(code))


class Instance:
    """Something of a class; what it has learned, and what it was made with, is taken to be there."""

    def __init__(self, cls):
        self.cls = cls

    def attribute(self, name):
        told = set(inspect.signature(self.cls).parameters) | set(re.findall(r"\w+", self.cls.__doc__ or ""))
        if not name.endswith("_") and name not in told:
            assert hasattr(self.cls, name), f"{self.cls.__name__} has no {name}"
        found = inspect.getattr_static(self.cls, name, None)
        return found if inspect.isfunction(found) else None


# -------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def options():
    """Return the options of each command."""
    typer = pytest.importorskip("typer", reason="the command line needs the extra cli")
    from rankad.cli.app import build

    program = typer.main.get_command(build())
    found = {
        name: {o for p in command.params for o in [*p.opts, *p.secondary_opts]} | {"--help", "-h"}
        for name, command in program.commands.items()
    }
    found[""] = {o for p in program.params for o in p.opts} | {"--help", "-h"}
    return found


def wrong_calls(text, options):
    """Yield what is wrong with the calls of rankad in some shell text."""
    for words in commands(text):
        name = words[0] if words and not words[0].startswith("-") else ""
        if name.isupper() or not words:  # rankad COMMAND, and the bare word
            continue
        if name not in options:
            yield f"no command {name!r}: rankad {' '.join(words)}"
            continue
        flags = (re.match(r"--?[a-zA-Z][\w-]*", word) for word in words)
        yield from (
            f"rankad {name} has no {flag[0]}" for flag in flags if flag and flag[0] not in options[name]
        )


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("rankad fit normal.csv -m pump.rankad \\\n  --alpha=0.01  # a comment", 0),
        ("$ zcat log.gz | rankad score - --model pump.rankad --alarms-only | mail ops", 0),
        ("rankad fit normal.csv --modell pump.rankad", 1),
        ("cat x.csv | rankad scores - --model pump.rankad && rankad score x -z", 2),
        ("what rankad says is --no option", 0),
    ],
)
def test_wrong_commands_are_noticed(text, wrong, options):
    assert len(list(wrong_calls(text, options))) == wrong


@pytest.mark.parametrize("page", [*PAGES, *OUTSIDE], ids=short)
def test_commands_exist_and_have_the_options_shown(page, options):
    shell = [block.code for block in blocks(page) if block.is_shell or block.info == ""]
    inline = [span for span in spans(page) if span.startswith("rankad ")]
    wrong = [found for text in [*shell, *inline] for found in wrong_calls(text, options)]
    assert not wrong


# ----------------------------------------------------------------- links


@pytest.mark.parametrize("page", [*PAGES, *OUTSIDE], ids=short)
def test_links_and_pictures_lead_somewhere(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if page.parent == DOCS / "project" and not target.exists():
            target = (ROOT / path).resolve()
        assert target.exists(), f"{short(page)} links to {link}, which is not there"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), (
                f"{short(page)}: there is no heading for #{anchor} in {short(target)}"
            )


@pytest.mark.parametrize("page", [*PAGES, *OUTSIDE], ids=short)
def test_links_have_words(page):
    """The site would fill in the title of the page; where pages are read as files, nothing would be seen."""
    assert "[](" not in page.read_text("utf-8")


def resolved(name):
    """Return the object with a full name such as rankad.RankAD.fit."""
    parts = name.removesuffix("()").split(".")
    found = importlib.import_module(parts[0])
    for at, part in enumerate(parts[1:], start=1):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join(parts[: at + 1]))
    return found


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=short)
def test_references_to_names_words_and_pages_exist(page):
    words = {
        word.lower()
        for word in re.findall(r"^   (\S.*)$", prose(DOCS / "reference" / "glossary.md"), re.MULTILINE)
    }
    for kind, target in roles(page):
        if kind == "term":
            assert target.lower() in words, f"{short(page)}: the glossary has no {target!r}"
        elif kind == "doc":
            path = DOCS / target[1:] if target.startswith("/") else page.parent / target
            in_gallery = DOCS / "gallery" / f"{path.name}.py"
            there = any(path.with_name(path.name + end).exists() for end in (".md", ".rst"))
            assert (
                there
                or (path.parent.name == "examples" and in_gallery.exists())
                or target == "/examples/index"
            ), f"{short(page)}: there is no page {target}"
        elif kind != "ref":
            assert target.startswith("rankad"), f"{short(page)}: give the full name of {target}"
            resolved(target)


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in PAGES:
        for entry in toctrees(page):
            path = DOCS / entry[1:] if entry.startswith("/") else page.parent / entry
            name = os.path.relpath(os.path.normpath(path), DOCS)
            if name == "examples/index":
                continue
            files = [
                DOCS / f"{name}{end}" for end in (".md", ".rst", "") if (DOCS / f"{name}{end}").is_file()
            ]
            assert files, f"{short(page)} lists {entry}, which is not there"
            listed.add(files[0])
    assert {page for page in PAGES if page not in listed} == {DOCS / "index.md"}


# ------------------------------------------------------------- reference


def test_the_reference_has_every_public_name():
    shown = set(re.findall(r"^   ([A-Za-z_.]+)$", prose(REFERENCE), re.MULTILINE))
    assert {name for name in rankad.__all__ if name != "__version__"} <= shown
    for block in blocks(REFERENCE):
        if block.info == "{eval-rst}":
            module = re.search(r"currentmodule:: (\S+)", block.text)[1]
            for name in re.findall(r"^   ([A-Za-z_.]+)$", block.text, re.MULTILINE):
                if module in {"rankad.dask", "rankad.spark"}:
                    # Without its engine the module cannot be imported; its text has the name.
                    text = (
                        (ROOT / "src" / Path(*module.split(".")))
                        .with_suffix(".py")
                        .read_text(encoding="utf-8")
                    )
                    assert f'"{name}"' in text[text.index("__all__") :]
                else:
                    resolved(f"{module}.{name}")


@pytest.mark.parametrize("engine", ["dask", "spark", "ray"])
def test_the_reference_has_what_engines_export(engine):
    tree = ast.parse((ROOT / "src" / "rankad" / f"{engine}.py").read_text(encoding="utf-8"))
    [exported] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    [text] = [b.text for b in blocks(REFERENCE) if f"currentmodule:: rankad.{engine}\n" in b.text + "\n"]
    missing = {name for name in exported if not name.endswith("Partitions")} - set(text.split())
    assert not missing


def test_the_reference_has_every_stage():
    stages = {f"rankad.stages.{p.stem}" for p in (ROOT / "src/rankad/stages").glob("[a-z]*.py")}
    assert stages <= set(prose(DOCS / "reference" / "stages.md").split())


# ------------------------------------------------------------- execution

# Cheap ones that between them use most of what pages show. tests/test_gallery.py runs examples.
RUN_PAGES = ["index.md"]

RUNNER = """
import os, subprocess, sys, json
import matplotlib; matplotlib.use("Agg")
namespace = {"__name__": "__main__", "display": print}
for cell in json.load(sys.stdin):
    if cell["shell"] is not None:
        shell = ["bash", "-eu", "-o", "pipefail", "-c", cell["code"]]
        ended = subprocess.run(shell, stdin=subprocess.DEVNULL)
        assert ended.returncode == cell["shell"], (cell["where"], ended.returncode)
        continue
    try:
        exec(compile(cell["code"], cell["where"], "exec"), namespace)
    except Exception:
        if not cell["raises"]:
            raise
"""


@pytest.fixture
def environment(tmp_path):
    """Return variables with which `rankad` and `python` are those of this tree, in an empty folder."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in {"python": "", "rankad": " -m rankad"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    (tmp_path / "page").mkdir()
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(paths),
        "MPLBACKEND": "Agg",
        "COLUMNS": "100",
    }


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="shell cells need bash")
@pytest.mark.parametrize("page", RUN_PAGES)
def test_pages_run(page, tmp_path, environment):
    import json

    cells = [
        {
            "where": str(block),
            "raises": "raises-exception" in block.tags,
            "shell": int(block.code.partition("\n")[0][len("%%shell") :] or 0) if block.is_shell else None,
            "code": block.code.partition("\n")[2] if block.is_shell else python_of(block),
        }
        for block in blocks(DOCS / page)
        if block.is_cell
    ]
    assert cells
    ended = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(cells),
        cwd=tmp_path / "page",
        env=environment,
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
