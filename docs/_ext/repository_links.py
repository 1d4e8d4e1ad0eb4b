"""Links that work in the repository, and lead to a page of the site here."""

import posixpath

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

# Files above docs/, and the page that shows each.
PAGES = {
    "../README.md": "index",
    "../CHANGELOG.md": "project/changelog",
    "../CONTRIBUTING.md": "project/contributing",
    "../SECURITY.md": "project/security",
    "../LICENSE": "project/license",
    "../CITATION.cff": "project/citation",
}


def page_of(path: str) -> str | None:
    """Return the page that shows a file, given by its path from docs/; None where that is the file itself."""
    if path in {"gallery", "gallery/GALLERY_HEADER.rst"}:
        return "examples/index"
    if path.startswith("gallery/") and path.endswith(".py"):
        return "examples/" + path.removeprefix("gallery/").removesuffix(".py")
    return PAGES.get(path)


class RepositoryLinks(SphinxTransform):
    """Turn links to examples and to files above docs/ into links to pages."""

    default_priority = 10

    def apply(self, **kwargs) -> None:
        """Replace each such link."""
        for link in list(self.document.findall(_is_link)):
            page = next(filter(None, map(page_of, self._paths(link))), None)
            if page is not None:
                new = addnodes.pending_xref(
                    "",
                    nodes.inline("", "", *(child for inner in link for child in inner)),
                    refdomain="std",
                    reftype="doc",
                    reftarget="/" + page,
                    refexplicit=True,
                    refdoc=self.env.docname,
                    refwarn=True,
                )
                new.source, new.line = link.source, link.line
                link.replace_self(new)

    def _paths(self, link: nodes.Element) -> list[str]:
        """Return what a link may mean, as paths from docs/."""
        target = link["reftarget"].partition("#")[0]
        if link["refdomain"] == "doc":  # the path from docs/ without its ending, or a whole path
            target = posixpath.relpath(target, self.env.srcdir) if posixpath.isabs(target) else target
            return [target + ".md"]
        here = posixpath.dirname(self.env.docname)
        # Pages of project/ include files of the folder above docs/.
        folders = [here, ".."] if here == "project" else [here]
        return [posixpath.normpath(posixpath.join(folder, target)) for folder in folders]


def _is_link(node: nodes.Node) -> bool:
    return (
        isinstance(node, addnodes.pending_xref | addnodes.download_reference)
        and node.get("reftype") == "myst"
    )


def setup(app):
    """Register the transform."""
    app.add_transform(RepositoryLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
