"""What is measured: rates, shares, sizes, seeds."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["ALARM_SEEDS", "ALPHAS", "SHARES", "Sizes", "Study"]

# False-alarm rates asked for.
ALPHAS = (0.10, 0.05, 0.01)
# Shares of the training rows that are anomalies, where training is contaminated.
SHARES = (0.01, 0.05, 0.10)
# Splits on which RankAD's false alarms are counted, if that is more than detectors are compared on: of an
# exact calibration one cell in a hundred is outside its band, and it takes many to tell.
ALARM_SEEDS = 20
# Those, of them, over which AUC may spread.
_SPREAD_SEEDS = 10


class Sizes(NamedTuple):
    """The most rows of everything.

    Attributes
    ----------
    train : int
        Nominal rows that train: half of them, and no more than these.
    nominal : int
        Nominal rows that test.
    """

    train: int = 2_000
    nominal: int = 20_000


class Study(NamedTuple):
    """One run.

    Attributes
    ----------
    out : Path
        The folder of the results. Finished cells are kept in a sub-folder, and stay there.
    data : Path
        The folder of the data sets.
    n_seeds : int
        How often every set is split to compare detectors.
    n_jobs : int
        Processes.
    quick : bool
        Whether to take a cheap look: the two smallest sets, one split (two for false alarms), few rows.
    n_alarm_seeds : int
        How often every set is split to count false alarms, `n_seeds` times if that is more.
    """

    out: Path
    data: Path
    n_seeds: int = 3
    n_jobs: int = 2
    quick: bool = False
    n_alarm_seeds: int = ALARM_SEEDS

    @property
    def sizes(self) -> Sizes:
        """The most rows of everything."""
        return Sizes(300, 500) if self.quick else Sizes()

    @property
    def seeds(self) -> range:
        """The seeds of the comparison."""
        return range(1 if self.quick else self.n_seeds)

    @property
    def alarm_seeds(self) -> range:
        """The seeds of the false alarms, those of the comparison first."""
        return range(2 if self.quick else max(self.n_seeds, self.n_alarm_seeds))

    @property
    def spread_seeds(self) -> range:
        """The seeds over which AUC may spread: the first of those of the false alarms."""
        return self.alarm_seeds[:_SPREAD_SEEDS]

    @property
    def cells(self) -> Path:
        """Where finished cells are kept."""
        return self.out / "cells"
