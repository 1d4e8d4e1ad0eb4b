"""Rows that calibration cannot be trusted with: copies, and few places that decide for all rows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from rankad._base.arrays import Floats, Ints
from rankad.stages.copies import Repeats, count_places
from rankad.stages.ranks import auto_neighbors

if TYPE_CHECKING:
    from rankad.stages.neighbors import Neighbors

# Half of fewer rows would be too few to train on; of more, chance averages out.
_FEW_ROWS, _MANY_ROWS = 100, 500
# A split is better where few rows lie in fewer places than the first share of them, or where no more than the
# second share of many rows are different.
_FEWEST_PLACES, _FEWEST_DIFFERENT = 2 / 3, 1 / 10


def is_in_doubt(n: int) -> bool:
    """Tell whether `n` rows are few enough to check what is said of them, and enough to be split."""
    return _FEW_ROWS <= n < _MANY_ROWS


def most_in_a_place(n: int) -> int:
    """Return how many of `n` rows share a place with another at most; more are a cluster like any other."""
    return 2 * auto_neighbors(n // 2) + 1


def few_places(neighbors: Neighbors) -> str | None:
    """Return why a split is better if rows share places, like copies or rows of tiny clusters; else None.

    Then a few places decide for all rows. The mean rate of false alarms is right, but that of a single fit
    may be farther from it than its bound says.
    """
    n = len(neighbors.indices)
    most = most_in_a_place(n)
    n_places = count_places(neighbors.distances[:, :most], neighbors.indices[:, :most])
    if n_places >= _FEWEST_PLACES * n:
        return None
    return f"{n} rows lie in only {n_places} places: many are equal, or nearly so, and far from all others"


def few_different(rows: Floats, neighbors: Neighbors) -> str | None:
    """Return why a split is better if many rows are nearly all copies of a few; else None.

    Scores of such rows left out differ by more than the few differ from one another, so that the threshold
    lies below nearly all of them: 1,000 rows of six random bits had 1.6 % false alarms for 10 %. The most
    frequent row does not count, since a row that is most of the sample is no alarm.
    """
    n = len(rows)
    n_copies = np.count_nonzero(neighbors.distances[:, 0] == 0)
    if n < _MANY_ROWS or n_copies < (1 - _FEWEST_DIFFERENT) * n:
        return None
    times = np.unique(rows, axis=0, return_counts=True)[1]
    if len(times) - 1 > _FEWEST_DIFFERENT * (n - times.max()):
        return None
    return f"only {len(times)} of {n} rows are different"


def leave_out_copies(repeats: Repeats, n: int, least: int, stacklevel: int) -> Ints:
    """Return the copies among `n` rows, and warn of them; at least so many different rows must be left."""
    n_left = n - len(repeats.copies)
    if not repeats.copies.size:
        return repeats.copies
    if n_left < least:
        raise ValueError(
            f"X has only {n_left} different rows, each several times; at least {least} different ones "
            f"are needed. Did a join repeat them? Fit on more rows."
        )
    warnings.warn(
        f"{repeats.n_repeated} of {n_left} different rows come more than once, and more regularly than "
        f"independent rows would: did a join repeat them? Each was used once; {len(repeats.copies)} "
        f"copies were left out. Drop repeated rows before fitting.",
        UserWarning,
        stacklevel=stacklevel,
    )
    return repeats.copies


def warn_of_split(reason: str, left_out: str, stacklevel: int) -> None:
    """Warn that a detector was calibrated by a split, which is not what was asked for."""
    warnings.warn(
        f"Calibrated by a split, as with calibration='split': half of the rows train and the others "
        f"calibrate. The reason: {reason}, so that {left_out} p-values could be wrong. More rows, or "
        f"calibrate() with fresh ones, give finer p-values.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
