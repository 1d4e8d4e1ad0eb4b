"""Names for array types, and work on rows in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

# Beyond this, sums of squares may overflow.
LARGEST = 1e140

T = TypeVar("T")


def in_blocks(work: Callable[[int, int], T], n: int, block: int, n_jobs: int | None = None) -> list[T]:
    """Return ``work(begin, end)`` for every block of `block` of n rows, in order, on `n_jobs` threads."""
    bounds = [(begin, min(begin + block, n)) for begin in range(0, max(n, 1), block)]
    if len(bounds) == 1:
        return [work(*bounds[0])]
    tasks = (delayed(work)(*bound) for bound in bounds)
    return list(Parallel(n_jobs=n_jobs, prefer="threads")(tasks))
