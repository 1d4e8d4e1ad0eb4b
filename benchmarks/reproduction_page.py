"""The tables on the page of results, refreshed from the result files.

The page is written by hand except between markers, ``<!-- NAME begin -->`` and ``<!-- NAME end -->``: one
pair for each table of the experiments, and one for how they were made.
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

MADE_WITH = "made-with"
_MARKER = re.compile(r"^<!-- ([a-z0-9-]+) (?:begin|end) -->$", re.MULTILINE)
# No other marker stands between the two of a pair.
_PAIR = re.compile(
    r"^(<!-- (?P<name>[a-z0-9-]+) begin -->\n)(?:(?!<!-- [a-z0-9-]+ (?:begin|end) -->$).*\n)*?"
    r"(<!-- (?P=name) end -->)$",
    re.MULTILINE,
)


def read_tables(results: Path) -> dict[str, str]:
    """Return the Markdown of every table in a folder of results, by name, and how they were made."""
    tables: dict[str, str] = {}
    made: dict[str, list[str]] = {}
    for experiment in sorted(EXPERIMENTS):
        path = results / f"{experiment}.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is not there, so the page cannot be refreshed; run rankad reproduce "
                f"{experiment} --out {results}"
            )
        content = json.loads(path.read_text("utf-8"))
        for table in content["tables"]:
            tables[table["name"]] = Table(**table).markdown(heading="####")
        made.setdefault(_made_with(content), []).append(experiment)
    tables[MADE_WITH] = "\n".join(f"- {', '.join(names)}: {how}" for how, names in made.items())
    return tables


def _made_with(content: dict[str, Any]) -> str:
    settings = content["settings"]
    quick = "**a quick look (--quick), not the whole experiments**; " if settings["quick"] else ""
    used = ", ".join(f"{library} {number}" for library, number in content["versions"].items())
    return f"{quick}seed {settings['seed']}; {used}."


def refresh(text: str, tables: dict[str, str]) -> str:
    """Return the page with the text between its markers replaced; raise if markers and tables do not match.

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
    if alone := _MARKER.search(_PAIR.sub("", text)):
        raise ValueError(
            f"{alone[0]!r} does not open a pair; close it with '<!-- {alone[1]} end -->' before the next "
            "marker."
        )
    names = [pair["name"] for pair in _PAIR.finditer(text)]
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
    return _PAIR.sub(lambda pair: f"{pair[1]}\n{tables[pair['name']]}\n\n{pair[3]}", text)


def refresh_page(page: Path, results: Path) -> None:
    """Refresh a page from a folder of results, whole or not at all."""
    write_atomically(page, refresh(page.read_text("utf-8"), read_tables(results)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Refresh the tables of a page from a folder of results."""
    given = [Path(each) for each in (sys.argv[1:] if arguments is None else arguments)]
    if len(given) != 2:
        sys.exit("usage: python -m benchmarks.reproduction_page PAGE.md RESULTS")
    try:
        refresh_page(*given)
    except (OSError, ValueError) as error:
        sys.exit(f"benchmarks.reproduction_page: {error}")


if __name__ == "__main__":
    main()
