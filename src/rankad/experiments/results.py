"""Results as people read them (Markdown) and as programs do (JSON)."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean as mean
from typing import Any, NamedTuple

from rankad.experiments.cells import plain, versions, write_atomically

__all__ = ["Table", "mean", "standard_error", "write_results"]


class Table(NamedTuple):
    """A table of text, with notes on how to read it.

    Examples
    --------
    >>> print(Table("sums", "Sums", ("a", "b"), [("1", "2")], ["Both are counts."]).markdown())
    ## Sums
    <BLANKLINE>
    | a | b |
    |---|---|
    | 1 | 2 |
    <BLANKLINE>
    - Both are counts.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self, heading: str = "##") -> str:
        """Return the table as Markdown, under a heading of the given depth."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"Table {self.name!r} has {len(self.columns)} columns, but a row of {len(row)} cells, "
                    f"{list(row)!r}; give every row one cell a column."
                )
        lines = [f"{heading} {self.title}", "", _line(self.columns), "|" + "---|" * len(self.columns)]
        lines += [_line(row) for row in self.rows]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines)


def write_results(
    out_dir: Path,
    name: str,
    tables: Table | Sequence[Table],
    raw: Mapping[str, Any],
    figures: Sequence[Path | str] = (),
) -> None:
    """Write ``NAME.md`` and ``NAME.json``, each whole or not at all.

    The Markdown file has the tables and shows the pictures, which are in the folder already. The JSON file
    also has what they were made from, `raw`; numbers that are not finite become null.
    """
    several = [tables] if isinstance(tables, Table) else list(tables)
    pictures = [Path(figure).name for figure in figures]
    used = versions()
    made_with = ", ".join(f"{library} {number}" for library, number in used.items())
    parts = [f"# {name}", *(f"![{picture}]({picture})" for picture in pictures)]
    parts += [table.markdown() for table in several]
    parts += [f"Made by `rankad reproduce {name}` with {made_with}."]
    content = {
        "name": name,
        "versions": used,
        "machine": {"system": platform.platform(), "processor": platform.machine()},
        "figures": pictures,
        "tables": [table._asdict() for table in several],
        **raw,
    }
    text = json.dumps(_finite(plain(content)), indent=1, allow_nan=False)
    write_atomically(Path(out_dir) / f"{name}.json", text + "\n")
    write_atomically(Path(out_dir) / f"{name}.md", "\n\n".join(parts) + "\n")


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean; NaN for a single value.

    Examples
    --------
    >>> standard_error([1.0, 3.0])
    1.0
    """
    n = len(values)
    if n < 2:
        return math.nan
    center = mean(values)
    return math.sqrt(math.fsum((value - center) ** 2 for value in values) / (n - 1) / n)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
