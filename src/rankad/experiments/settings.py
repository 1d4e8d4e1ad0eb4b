"""What a user may choose about a reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import cpu_count

from rankad.experiments.cells import Cell, CellStore, run_cells

__all__ = ["Settings"]


class Settings(NamedTuple):
    """The choices that all tables and figures share: those of the command ``rankad reproduce``.

    Finished cells are kept in the sub-folder ``cells`` of `out`. If `data` is None, data sets come from the
    folder that ``RANKAD_DATA`` names, else by download. If `n_jobs` is None, there are as many processes as
    cores, but one where times are taken.

    Examples
    --------
    >>> settings = Settings(seed=3)
    >>> settings.run_seed(0), settings.run_seed(1)
    (1576890651, 457190280)
    """

    out: Path = Path("results")
    data: Path | None = None
    seed: int = 0
    quick: bool = False
    n_jobs: int | None = None

    @property
    def n_runs(self) -> int:
        """How often everything is repeated: five times as in the paper, or once."""
        return 1 if self.quick else 5

    @property
    def raw(self) -> dict[str, Any]:
        """What the JSON file of every experiment says of these choices."""
        return {"seed": self.seed, "quick": self.quick, "runs": self.n_runs}

    def run_seed(self, run: int) -> int:
        """Return the seed of one run; no two runs of two seeds share theirs but by chance."""
        return int(np.random.SeedSequence([self.seed, run]).generate_state(1)[0])

    def run_seeds(self, n_runs: int) -> list[int]:
        """Return the seeds of the first runs."""
        return [self.run_seed(run) for run in range(n_runs)]

    def run(self, cells: Sequence[Cell], label: str, n_jobs: int | None = None) -> list[dict[str, Any]]:
        """Do the cells that are not finished yet, and return the key and the result of all, joined.

        Processes: those given, else `n_jobs`, else all cores.
        """
        workers = n_jobs or self.n_jobs or cpu_count()
        results = run_cells(cells, CellStore(self.out / "cells"), workers, label)
        return [{**cell.key, **result} for cell, result in zip(cells, results, strict=True)]
