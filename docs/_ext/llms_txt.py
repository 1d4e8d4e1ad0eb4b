"""Every page as text beside its HTML; llms.txt, a list of them; llms-full.txt, most of them in one file."""

import re

from docutils import nodes
from sphinx.builders.text import TextBuilder
from sphinx.util import logging
from sphinx.util.display import status_iterator
from sphinx.writers.text import TextTranslator

# Tables of thousands of figures, by the beginnings of their names: in the list, not in the one file.
LONG = (
    "benchmarks/",
    "certificates",
    "examples/index",
    "faults/",
    "genindex",
    "promises/",
    "quality/",
    "reproduction",
)


class _Text(TextTranslator):
    """Text of whatever extensions put on a page: what has no text form is left out, or is its children."""

    def unknown_visit(self, node: nodes.Node) -> None:
        if isinstance(node, nodes.raw | nodes.Invisible) or not node.children:
            raise nodes.SkipNode

    def unknown_departure(self, node: nodes.Node) -> None:
        """Leave it."""


class _Builder(TextBuilder):
    """Only makes the text; nothing is written by it."""

    name = "text"

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        return docname + ".txt"


def write_texts(app, exception) -> None:
    """Write the texts when the HTML is there."""
    if exception is not None or app.builder.format != "html" or app.builder.name != "html":
        return
    env, builder = app.env, _Builder(app, app.env)
    builder.init()
    lines = [f"# {app.config.project}", "", f"> {summary(env.get_doctree(app.config.root_doc))}", ""]
    whole = []
    for name in status_iterator(_in_order(env), "writing texts... ", "brown", length=len(env.all_docs)):
        with logging.suppress_logging():  # all was said when the HTML was made
            text = as_text(env, builder, name)
        (app.outdir / f"{name}.txt").write_text(text, encoding="utf-8")
        title = env.titles[name].astext()
        if name in env.toctree_includes.get(app.config.root_doc, []):
            lines += ["", f"## {title}", ""]
        if name != app.config.root_doc:
            about = summary(env.get_doctree(name))
            lines.append(f"- [{title}]({name}.txt)" + (f": {about}" if about else ""))
        if not name.startswith(LONG):
            whole.append(f"<!-- {name}.html -->\n\n{text}")
    lines += ["", "## Optional", "", "- [All but long tables in one file](llms-full.txt)"]
    (app.outdir / "llms.txt").write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n", encoding="utf-8")
    (app.outdir / "llms-full.txt").write_text("\n\n".join(whole) + "\n", encoding="utf-8")


def as_text(env, builder: TextBuilder, name: str) -> str:
    """Return a page as text."""
    doctree = env.get_doctree(name)
    for bundle in list(doctree.findall(_is_bundle)):
        # Of what a cell gave in several forms, the text, but for pictures.
        forms = {form["mime_type"]: form for form in bundle.children}
        if "text/plain" in forms and not any(kind.startswith("image/") for kind in forms):
            bundle.children = [forms["text/plain"]]
    doctree = env.get_and_resolve_doctree(name, builder, doctree=doctree)
    for table in list(doctree.findall(nodes.table)):
        _as_markdown(table)
    translator = _Text(doctree, builder)
    doctree.walkabout(translator)
    return translator.body


def _is_bundle(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "mime_bundle"


def _as_markdown(table: nodes.table) -> None:
    """Replace a table by its rows, cells between bars: narrower than a drawn one, and so read by programs."""
    rows = [
        "| " + " | ".join(" ".join(cell.astext().split()) for cell in row) + " |"
        for row in table.findall(nodes.row)
    ]
    for head in table.findall(nodes.thead):
        at = len(list(head.findall(nodes.row)))
        columns = len(next(iter(head.findall(nodes.row))))
        rows.insert(at, "|" + "---|" * columns)
    text = "\n".join(rows)
    table.replace_self(nodes.literal_block(text, text))


def summary(doctree: nodes.document) -> str:
    """Return the first sentence of a page, or nothing."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > 20:
            # The first sentence, and the next where that is as short as a word or two.
            return re.split(r"(?<=.{20}[.!?])\s+(?=[A-Z])", text, maxsplit=1)[0].rstrip(":")
    return ""


def _in_order(env) -> list[str]:
    """Return the names of all pages as the tables of contents have them, the first page first."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in found and name in env.all_docs:
            found[name] = None
            for child in env.toctree_includes.get(name, []):
                visit(child)

    visit(env.config.root_doc)
    return [*found, *sorted(set(env.all_docs) - set(found))]


def setup(app):
    """Register the event."""
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
