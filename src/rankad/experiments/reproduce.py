"""Every table and figure, and the findings, by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from rankad.experiments.cells import Settings

# In the order in which "all" runs them: what may be missing first, the longest last.
EXPERIMENTS = ("table-2", "table-1", "figure-1", "figure-2", "findings", "table-3")
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
        # Each has the module of its name, imported when its turn comes: a table needs less than a figure.
        import_module(f"rankad.experiments.{name.replace('-', '')}").run(settings)
        if finished is not None:
            finished(name)
