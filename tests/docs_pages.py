"""What the pages of the documentation hold: blocks of code, commands, links, headings."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATED = ("examples", "reference/generated")
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if not path.relative_to(DOCS).as_posix().startswith(GENERATED) and path.name != "README-for-authors.md"
)
EXAMPLES = sorted((DOCS / "gallery").glob("plot_*.py"))
# Those that GitHub shows, and the site includes.
OUTSIDE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_ROLE = re.compile(r"\{(class|func|meth|attr|mod|exc|term|doc|ref)\}`([^`]+)`")
_RST_ROLE = re.compile(r":(class|func|meth|attr|mod|exc|term|doc):`([^`]+)`")


class Block(NamedTuple):
    """A fenced block: where it is, what the fence says, what is in it."""

    page: Path
    line: int
    info: str
    text: str

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_cell(self):
        return self.info.startswith("{code-cell}")

    @property
    def code(self):
        """The text without the options of a cell."""
        lines = self.text.splitlines()
        if self.is_cell:
            if lines and lines[0] == "---":
                lines = lines[lines.index("---", 1) + 1 :]
            while lines and (lines[0].startswith(":") or not lines[0].strip()):
                lines = lines[1:]
        return "\n".join(lines)

    @property
    def tags(self):
        found = re.search(r"^:?tags: *\[([^\]]*)\]", self.text, re.MULTILINE) if self.is_cell else None
        return [tag.strip() for tag in found[1].split(",")] if found else []

    @property
    def is_shell(self):
        return (
            self.code.startswith("%%shell")
            if self.is_cell
            else self.info in {"bash", "sh", "console", "shell"}
        )


def blocks(page):
    """Yield the fenced blocks of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if not opened:
            at += 1
            continue
        closing = re.compile(rf"^ *{opened['fence'][0]}{{{len(opened['fence'])},}} *$")
        end = next((i for i in range(at + 1, len(lines)) if closing.match(lines[i])), len(lines))
        indent = len(opened["indent"])
        text = "\n".join(
            line[indent:] if line[:indent].isspace() or not indent else line for line in lines[at + 1 : end]
        )
        yield Block(page, at + 1, opened["info"].strip(), text)
        at = end + 1


def prose(page):
    """Return a page without its fenced blocks."""
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        if not block.info.startswith("{eval-rst}"):
            text = text.replace(block.text, "") if block.text.strip() else text
    return text


def spans(page):
    """Return the inline code of a page."""
    return [" ".join(found[1].split()) for found in _SPAN.findall(_ROLE.sub("", prose(page)))]


def links(page):
    """Return the relative links and pictures of a page."""
    text = _SPAN.sub("", prose(page))
    return [target for target in _LINK.findall(text) if not re.match(r"[a-z]+:", target)]


def roles(page):
    """Return the references of a page or an example: kind and target."""
    pattern, text = (
        (_ROLE, prose(page)) if page.suffix == ".md" else (_RST_ROLE, page.read_text(encoding="utf-8"))
    )
    for kind, written in pattern.findall(text):
        explicit = re.search(r"<([^<>]+)>$", written)
        yield kind, (explicit[1] if explicit else written).lstrip("~!")


def anchors(page):
    """Return the anchors that GitHub and the site make of a page's headings."""
    found = []
    inside = {
        line for block in blocks(page) for line in range(block.line, block.line + block.text.count("\n") + 2)
    }
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        heading = re.match(r"#{1,6} +(.*?) *#*$", line)
        if heading and number not in inside:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "").replace("*", "")
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            same = sum(1 for other in found if re.fullmatch(re.escape(slug) + r"(-\d+)?", other))
            found.append(f"{slug}-{same}" if same else slug)
    return set(found)


def toctrees(page):
    """Yield the entries of a page's tables of contents."""
    for block in blocks(page):
        if block.info == "{toctree}":
            for line in block.text.splitlines():
                entry = re.search(r"<([^<>]+)>$", line)
                if line.strip() and not line.startswith(":"):
                    yield entry[1] if entry else line.strip()


def commands(text):
    """Yield the calls of rankad in some shell text, as lists of words."""
    text = re.sub(r"\\\n\s*", " ", text)
    for line in text.splitlines():
        line = line.strip().removeprefix("$ ")
        try:
            words = list(shlex.shlex(line, posix=True, punctuation_chars="|&;()<>"))
        except ValueError:  # words of a person, with an apostrophe
            continue
        for at, word in enumerate(words):
            starts = at == 0 or set(words[at - 1]) <= set("|&;(")
            if word == "rankad" and starts:
                end = next((i for i in range(at, len(words)) if set(words[i]) <= set("|&;()<>")), len(words))
                yield words[at + 1 : end]
