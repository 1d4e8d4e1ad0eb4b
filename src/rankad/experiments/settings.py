"""What a person may choose about a reproduction."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import cpu_count

__all__ = ["Settings"]


class Settings(NamedTuple):
    """The choices that every table and figure shares.

    Attributes
    ----------
    out : Path
        The folder of the results; finished cells are kept in its sub-folder ``cells``.
    data : Path or None
        The folder of the data sets; None: ``RANKAD_DATA``, else downloaded.
    seed : int
        From which the seed of every run is derived.
    quick : bool
        Whether to take a cheap look: one run, fewer rows.
    n_jobs : int or None
        Processes that share the cells; None: as many as there are cores, but one where times are taken.

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
    def workers(self) -> int:
        """How many processes share the cells of an experiment that takes no times."""
        return self.n_jobs or cpu_count()

    @property
    def cells(self) -> Path:
        """Where finished cells are kept."""
        return self.out / "cells"

    def run_seed(self, run: int) -> int:
        """Return the seed of one run; no two runs of two seeds share theirs but by chance."""
        return int(np.random.SeedSequence([self.seed, run]).generate_state(1)[0])
