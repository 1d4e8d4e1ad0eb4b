"""The tables on the page of results, refreshed from the result files.

The page is written by hand but for what stands between markers, ``<!-- NAME begin -->`` and
``<!-- NAME end -->``: one pair for each table of the experiments, and one for how they were made.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rankad.experiments.cells import write_atomically
from rankad.experiments.reproduce import EXPERIMENTS
from rankad.experiments.results import Table

__all__ = ["MADE_WITH", "main", "read_tables", "refresh", "refresh_page"]

MADE_WITH = "made-with"
_MARKER = re.compile(r"^<!-- (?P<name>[a-z0-9-]+) (?P<which>begin|end) -->$", re.MULTILINE)


def read_tables(results: Path) -> dict[str, str]:
    """Return the Markdown of every table in a folder of results, by name, and how they were made.

    Raises
    ------
    FileNotFoundError
        The results of an experiment are not there.
    """
    found: dict[str, str] = {}
    made: dict[str, list[str]] = {}
    for experiment in sorted(EXPERIMENTS):
        path = results / f"{experiment}.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is not there, so that the page cannot be refreshed; run rankad reproduce "
                f"{experiment} --out {results}"
            )
        content = json.loads(path.read_text("utf-8"))
        for table in content["tables"]:
            found[table["name"]] = Table(**table).markdown(heading="####")
        made.setdefault(_made_with(content), []).append(experiment)
    found[MADE_WITH] = "\n".join(f"- {', '.join(names)}: {how}" for how, names in made.items())
    return found


def _made_with(content: dict[str, Any]) -> str:
    settings = content["settings"]
    quick = "**a quick look (--quick), not the whole experiments**; " if settings["quick"] else ""
    used = ", ".join(f"{library} {number}" for library, number in content["versions"].items())
    return f"{quick}seed {settings['seed']}; {used}."


def refresh(text: str, tables: dict[str, str]) -> str:
    """Return the page with what stands between its markers replaced.

    Parameters
    ----------
    text : str
        The page.
    tables : dict
        What belongs between the markers of each name.

    Raises
    ------
    ValueError
        A table has no markers, markers have no table, or they are not in pairs.

    Examples
    --------
    >>> page = '''Before.
    ... <!-- sums begin -->
    ... old
    ... <!-- sums end -->
    ... After.'''
    >>> print(refresh(page, {"sums": "new"}))
    Before.
    <!-- sums begin -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- sums end -->
    After.
    """
    marks = list(_MARKER.finditer(text))
    for begin, end in zip(marks[::2], [*marks[1::2], None], strict=False):
        paired = end is not None and begin["name"] == end["name"]
        if not paired or (begin["which"], end["which"] if end else "") != ("begin", "end"):
            raise ValueError(
                f"{begin[0]!r} does not open a pair; close it with '<!-- {begin['name']} end -->' before the "
                "next marker."
            )
    names = [mark["name"] for mark in marks[::2]]
    for name in tables:
        if names.count(name) != 1:
            raise ValueError(
                f"The page has {names.count(name)} pairs of markers for {name!r}; give it one, "
                f"'<!-- {name} begin -->' and '<!-- {name} end -->', each on a line of its own."
            )
    for name in names:
        if name not in tables:
            raise ValueError(
                f"The page has markers for {name!r}, but no result is called that; remove them or choose one "
                f"of {', '.join(sorted(tables))}."
            )
    parts, done = [], 0
    for begin, end in zip(marks[::2], marks[1::2], strict=True):
        parts += [text[done : begin.end()], f"\n\n{tables[begin['name']]}\n\n"]
        done = end.start()
    return "".join([*parts, text[done:]])


def refresh_page(page: Path, results: Path) -> None:
    """Refresh a page from a folder of results, whole or not at all."""
    write_atomically(page, refresh(page.read_text("utf-8"), read_tables(results)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Refresh the tables of a page from a folder of results."""
    given = [Path(each) for each in (sys.argv[1:] if arguments is None else arguments)]
    if len(given) != 2:
        sys.exit("usage: python -m rankad.experiments.page PAGE.md RESULTS")
    try:
        refresh_page(*given)
    except (OSError, ValueError) as error:
        sys.exit(f"rankad.experiments.page: {error}")


if __name__ == "__main__":
    main()
