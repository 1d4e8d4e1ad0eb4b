"""RankAD's parameters, read and checked before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from rankad._base.checks import check_choice, is_count
from rankad.stages.selection import PAPER_C, PAPER_MULTIPLES

__all__ = ["Bandwidth", "Plan", "resolve_C", "resolve_bandwidths", "resolve_landmarks", "resolve_scalings"]

# What bandwidth="auto" tries, in multiples of D_K.
AUTO_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
# What scaling="auto" tries.
AUTO_SCALINGS = ("standard", "robust", None)
# More landmarks than there can be rows: every distinct row is one.
_ALL = 2**31


class Bandwidth(NamedTuple):
    """A bandwidth: sigma itself, or a multiple of D_K."""

    value: float
    relative: bool

    def sigma(self, unit: float) -> float:
        """Return sigma where D_K is `unit`."""
        return self.value * unit if self.relative else self.value


class Plan(NamedTuple):
    """RankAD's parameters as a fit reads them, checked.

    Attributes
    ----------
    scalings : tuple of str or None
        The candidates; so are `bandwidths` and `C`, which is None for "auto".
    k : int or None
        K of the neighbour graph; None for "auto".
    cuts : tuple of float
        Where ranks are cut into levels.
    landmark_method : {"kmeans", "random"}
    n_landmarks : int
    far_field, near_field : bool
    n_components : int
        Gaussians in the mixture; 0 for none.
    selection : {"contrast", "shuffled", "disagreement"}
    n_jobs : int or None
    verbose : bool
    """

    scalings: tuple[str | None, ...]
    k: int | None
    cuts: tuple[float, ...]
    bandwidths: list[Bandwidth]
    C: list[float] | None
    landmark_method: str
    n_landmarks: int
    far_field: bool
    near_field: bool
    n_components: int
    selection: str
    n_jobs: int | None
    verbose: bool

    @property
    def n_trials(self) -> int:
        """How many triples of scaling, bandwidth and C there are to choose from."""
        return len(self.scalings) * len(self.bandwidths) * len(self.C or [None])


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def resolve_scalings(given: Any) -> tuple[str | None, ...]:
    """Read `scaling`: the candidates."""
    check_choice("scaling", given, ("auto", *AUTO_SCALINGS))
    return AUTO_SCALINGS if given == "auto" else (given,)


def resolve_bandwidths(given: Any) -> list[Bandwidth]:
    """Read `bandwidth`: the candidates."""
    if isinstance(given, str) and given in ("auto", "paper"):
        multiples = AUTO_MULTIPLES if given == "auto" else PAPER_MULTIPLES
        return [Bandwidth(multiple, True) for multiple in multiples]
    several = list(given) if _is_sequence(given) else [given]
    found = []
    for value in several:
        if isinstance(value, str) and value.endswith("D_K"):
            try:
                multiple = float(value.removesuffix("D_K").strip(" *") or 1)
            except ValueError:
                multiple = np.nan
            if _is_positive(multiple):
                found.append(Bandwidth(multiple, True))
                continue
        elif _is_positive(value):
            found.append(Bandwidth(float(value), False))
            continue
        raise ValueError(
            f"bandwidth must be 'auto', 'paper', a number > 0, a multiple such as '0.5 D_K', or a sequence "
            f"of the last two; got {value!r}."
        )
    if not found:
        raise ValueError("bandwidth must not be an empty sequence; pass 'auto' or at least one value.")
    return found


def resolve_C(given: Any) -> list[float] | None:
    """Read `C`: the candidates, ascending; None for "auto", which depends on the number of rows."""
    if isinstance(given, str) and given == "auto":
        return None
    if isinstance(given, str) and given == "paper":
        return list(PAPER_C)
    several = list(given) if _is_sequence(given) else [given]
    if not several or not all(_is_positive(value) for value in several):
        raise ValueError(
            f"C must be 'auto', 'paper', a number > 0, or a non-empty sequence of such numbers; "
            f"got {given!r}."
        )
    return sorted(float(value) for value in several)


def resolve_landmarks(given: Any) -> tuple[str, int]:
    """Read `landmarks`: how they are chosen and how many."""
    if isinstance(given, str) and given == "all":
        return "kmeans", _ALL
    method: Any
    count: Any
    method, count = ("kmeans", given) if is_count(given) else (None, None)
    if isinstance(given, tuple | list) and len(given) == 2:
        method, count = given
    if isinstance(method, str) and method in ("kmeans", "random") and is_count(count) and count >= 1:
        return method, int(count)
    raise ValueError(
        f"landmarks must be an integer >= 1, 'all', or a pair such as ('random', 200) or ('kmeans', 200); "
        f"got {given!r}."
    )
