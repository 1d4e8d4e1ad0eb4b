"""Memory that is used again."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Scratch(threading.local):
    """Memory for arrays that are needed for a short time, again and again; every thread has its own.

    New memory comes from the system page by page, which takes about as long as filling it, and threads that
    ask for it wait for one another.
    """

    def __init__(self) -> None:
        self._memory: dict[str, NDArray[Any]] = {}

    def empty(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """Return an array, good until its name is asked for again; what is in it means nothing."""
        size = math.prod(shape)
        memory = self._memory.get(name)
        if memory is None or memory.size < size or memory.dtype != dtype:
            memory = self._memory[name] = np.empty(size, dtype)
        return memory[:size].reshape(shape)
