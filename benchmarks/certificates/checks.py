"""How often a promise failed, and whether that is evidence against it."""

from __future__ import annotations

from typing import NamedTuple

from scipy.stats import binom

__all__ = ["Check", "Mean"]

# One study in a hundred thousand would be said to break a promise that it keeps.
_STRICT = 1e-5


class Check(NamedTuple):
    """How often a promise failed, beside how often it may."""

    promise: str
    setting: str
    failures: int
    repetitions: int
    allowed: float

    @property
    def p_value(self) -> float:
        """The probability of so many failures or more, if they come at the rate allowed."""
        return float(binom.sf(self.failures - 1, self.repetitions, self.allowed))

    @property
    def holds(self) -> bool:
        """Whether the failures are no evidence against the promise."""
        return self.p_value > _STRICT


class Mean(NamedTuple):
    """A mean over repetitions, beside what it may be at most."""

    promise: str
    setting: str
    mean: float
    error: float
    allowed: float

    @property
    def holds(self) -> bool:
        """Whether the mean is no evidence against the promise: within 4.3 standard errors."""
        return self.mean <= self.allowed + 4.3 * self.error
