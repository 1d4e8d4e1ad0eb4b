"""How executed cells look: shell cells as a console, and neighbouring cells in tabs."""

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx_design.shared import create_component

MAGIC = "%%shell"
TABS = {"tag_tab-shell": "Command line", "tag_tab-python": "Python"}


class ShellCells(SphinxTransform):
    """Show a shell cell's commands behind a prompt, without the line that makes it one."""

    default_priority = 800

    def apply(self, **kwargs) -> None:
        """Change the inputs of shell cells."""
        for code in list(self.document.findall(nodes.literal_block)):
            if "cell_input" in code.parent.get("classes", []) and code.astext().startswith(MAGIC):
                text = as_console(code.astext())
                new = nodes.literal_block(text, text, language="console", classes=code["classes"])
                new.source, new.line = code.source, code.line
                code.replace_self(new)


def as_console(cell: str) -> str:
    """Return the commands of a shell cell, each behind a prompt; lines that continue one are indented."""
    lines, continued = [], False
    for line in cell.splitlines()[1:]:
        comment = line.startswith("#") or not line.strip()
        lines.append(line if continued or comment else f"$ {line}")
        continued = line.endswith("\\")
    return "\n".join(lines)


class TabbedCells(SphinxTransform):
    """Put neighbouring cells that are tagged tab-shell and tab-python into one set of tabs."""

    default_priority = 801

    def apply(self, **kwargs) -> None:
        """Replace each run of tagged cells."""
        for parent in {id(cell.parent): cell.parent for cell in self.document.findall(_tab)}.values():
            children, run = [], []
            for child in [*parent.children, None]:
                if child is not None and _tab(child):
                    run.append(child)
                    continue
                if run:
                    children.append(_tab_set(run))
                    run = []
                if child is not None:
                    children.append(child)
            parent.children = []
            parent.extend(children)


def _tab(node: nodes.Node) -> str | None:
    classes = node.get("classes", []) if isinstance(node, nodes.container) else []
    return next((title for tag, title in TABS.items() if tag in classes and "cell" in classes), None)


def _tab_set(cells: list[nodes.container]) -> nodes.container:
    items = []
    for title in TABS.values():
        of_title = [cell for cell in cells if _tab(cell) == title]
        if of_title:
            label = nodes.rubric(title, title, classes=["sd-tab-label"], sync_id=title, sync_group="language")
            content = create_component("tab-content", classes=["sd-tab-content"], children=of_title)
            items.append(create_component("tab-item", classes=["sd-tab-item"], children=[label, content]))
    return create_component("tab-set", classes=["sd-tab-set"], children=items)


def setup(app):
    """Register the transforms."""
    app.add_transform(ShellCells)
    app.add_transform(TabbedCells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
