"""One run as files: ``speed.md`` for people, ``speed.json`` for programs."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Shown

from benchmarks.peers import NOTES
from benchmarks.process import available_cores
from benchmarks.settings import Bench
from rankad.experiments.cells import plain, versions, write_atomically
from rankad.experiments.results import Table

__all__ = ["print_bars", "used_versions", "write"]


def used_versions() -> dict[str, str]:
    """Return the versions of all that is compared."""
    return {**versions(), "pyod": version("pyod")}


def write(
    bench: Bench, tables: Sequence[Table], pictures: Sequence[Path], raw: Mapping[str, Any], seconds: float
) -> None:
    """Write both files, each whole or not at all."""
    machine = {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": min(2, len(available_cores())),
    }
    content = {
        "quick": bench.quick,
        "versions": used_versions(),
        "machine": machine,
        "seconds": seconds,
        "sizes": bench.sizes._asdict(),
        **raw,
        "tables": [table._asdict() for table in tables],
        "pictures": [path.name for path in pictures],
    }
    text = json.dumps(plain(content), indent=1, allow_nan=False)
    parts = ["# Speed", *_opening(bench, machine)]
    parts += [table.markdown() for table in tables]
    parts += [f"![{path.stem}]({path.name})" for path in pictures]
    used = ", ".join(f"{library} {number}" for library, number in used_versions().items())
    command = "python -m benchmarks --quick" if bench.quick else "make bench"
    parts += [f"Made by `{command}` in {seconds / 60:.0f} minutes with {used}."]
    write_atomically(bench.out / "speed.json", text + "\n")
    write_atomically(bench.out / "speed.md", "\n\n".join(parts) + "\n")


def _opening(bench: Bench, machine: Mapping[str, Any]) -> list[str]:
    said = [
        f"{machine['processor']}, {machine['cores']} core{'s' * (machine['cores'] > 1)}, {platform.system()}."
    ]
    if bench.quick:
        said.append("**Quick look (--quick)**: fewer rows, two threads only; not the figures to quote.")
    if machine["cores"] < 2:
        said.append("**One core only**: what is said of two threads was measured on one core.")
    return [" ".join(said), "\n".join(f"- {note}" for note in NOTES)]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def print_bars(bars: Sequence[Any], quick: bool, page: Path) -> None:
    """Show on the terminal what was asked, what was found, and where the rest is.

    Parameters
    ----------
    bars : sequence
        Each with `what`, `asked`, `found` and `met`.
    quick : bool
    page : Path
    """
    shown = Shown("bar", "asked", "measured", "", title="Bars" + " (quick look)" * quick)
    for bar in bars:
        shown.add_row(bar.what, bar.asked, bar.found, "met" if bar.met else "[bold]not met[/bold]")
    console = Console()
    console.print(shown)
    console.print(f"{page}")
