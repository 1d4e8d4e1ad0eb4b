"""Every table and figure, and the findings, by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from rankad.experiments.cells import Settings

# Name to module, in the order in which "all" runs them: what may be missing first, the longest last.
EXPERIMENTS = {
    "table-2": "rankad.experiments.table2",
    "table-1": "rankad.experiments.table1",
    "figure-1": "rankad.experiments.figure1",
    "figure-2": "rankad.experiments.figure2",
    "findings": "rankad.experiments.findings",
    "table-3": "rankad.experiments.table3",
}
ALL = "all"


def names(wanted: str) -> list[str]:
    """Return the experiments that a name stands for.

    Examples
    --------
    >>> names("table-1")
    ['table-1']
    """
    if wanted == ALL:
        return list(EXPERIMENTS)
    if wanted not in EXPERIMENTS:
        raise ValueError(
            f"No experiment is called {wanted!r}; choose {', '.join(sorted(EXPERIMENTS))} or {ALL}."
        )
    return [wanted]


def reproduce(wanted: str, settings: Settings, finished: Callable[[str], None] | None = None) -> None:
    """Run one experiment or all; call `finished` with the name of each when its results are written."""
    for name in names(wanted):
        # Imported one at a time, so that a table does not need what only a figure does.
        import_module(EXPERIMENTS[name]).run(settings)
        if finished is not None:
            finished(name)
