"""RankAD's parameters, read and checked before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from rankad._base.checks import check_choice, check_run, check_share, check_unit, is_count, resolve_neighbors
from rankad.fitting import sizes
from rankad.stages.levels import resolve_cuts
from rankad.stages.selection import PAPER_C, PAPER_MULTIPLES

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
    """RankAD's parameters, checked, as a fit reads them.

    `scalings`, `bandwidths` and `C` are the candidates to select from; `C` and `k` are None for "auto", and
    `trim` is the share of suspects, or "auto".
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
    calibration: str
    trim: float | str
    random_state: Any
    n_jobs: int | None
    verbose: bool

    @classmethod
    def of(cls, detector: Any) -> Plan:
        """Read the parameters of a RankAD; each is checked before any work is done."""
        check_unit("alpha", detector.alpha)
        if not (isinstance(detector.trim, str) and detector.trim == "auto"):
            check_share("trim", detector.trim, "'auto' or ")
        for flag in ("far_field", "near_field", "verbose"):
            check_choice(flag, getattr(detector, flag), (True, False))
        if not is_count(detector.n_components) or detector.n_components < 0:
            raise ValueError(
                f"n_components must be an integer >= 0 (0 for no mixture), got {detector.n_components!r}."
            )
        check_choice("selection", detector.selection, ("contrast", "shuffled", "disagreement"))
        check_choice("calibration", detector.calibration, ("cross-fit", "split", "in-sample"))
        check_choice("scaling", detector.scaling, ("auto", *AUTO_SCALINGS))
        check_run(detector.random_state, detector.n_jobs)
        landmark_method, n_landmarks = _resolve_landmarks(detector.landmarks)
        return cls(
            scalings=AUTO_SCALINGS if detector.scaling == "auto" else (detector.scaling,),
            k=resolve_neighbors(detector.n_neighbors),
            cuts=resolve_cuts(detector.n_levels),
            bandwidths=resolve_bandwidths(detector.bandwidth),
            C=_resolve_C(detector.C),
            landmark_method=landmark_method,
            n_landmarks=n_landmarks,
            far_field=bool(detector.far_field),
            near_field=bool(detector.near_field),
            n_components=int(detector.n_components),
            selection=detector.selection,
            calibration=detector.calibration,
            trim=detector.trim,
            random_state=detector.random_state,
            n_jobs=detector.n_jobs,
            verbose=bool(detector.verbose),
        )

    @property
    def n_trials(self) -> int:
        """How many triples of scaling, bandwidth and C there are to choose from."""
        return len(self.scalings) * len(self.bandwidths) * len(self.C or [None])

    @property
    def fuses(self) -> bool:
        """Whether there are parts beside RankSVM; the theorem for in-sample ranks is about g alone."""
        return (self.near_field or self.n_components > 0) and self.calibration != "in-sample"

    @property
    def leaves_out(self) -> bool:
        """Whether rows are scored by models fitted without them: to calibrate, or for the units of parts."""
        return self.calibration == "cross-fit" or self.fuses

    def n_selection_folds(self, n_training: int) -> int:
        """Return how many folds selection takes."""
        return 4 if self.selection == "disagreement" or n_training < sizes.SELECTION_OF_FEW else 2

    def smallest_fold(self, n_training: int) -> int:
        """Return how many of the training rows the smallest training fold has."""
        if self.n_trials > 1:
            n_folds = self.n_selection_folds(n_training)
        elif self.leaves_out:
            n_folds = min(n_training, sizes.CALIBRATION_FOLDS)
        else:
            return n_training
        return n_training + -n_training // n_folds


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def resolve_bandwidths(given: Any) -> list[Bandwidth]:
    """Read `bandwidth`: the candidates."""
    if isinstance(given, str) and given in ("auto", "paper"):
        multiples = AUTO_MULTIPLES if given == "auto" else PAPER_MULTIPLES
        return [Bandwidth(multiple, True) for multiple in multiples]
    several = list(given) if _is_sequence(given) else [given]
    bandwidths = []
    for value in several:
        if isinstance(value, str) and value.endswith("D_K"):
            try:
                multiple = float(value.removesuffix("D_K").strip(" *") or 1)
            except ValueError:
                multiple = np.nan
            if _is_positive(multiple):
                bandwidths.append(Bandwidth(multiple, True))
                continue
        elif _is_positive(value):
            bandwidths.append(Bandwidth(float(value), False))
            continue
        raise ValueError(
            f"bandwidth must be 'auto', 'paper', a number > 0, a multiple such as '0.5 D_K', or a sequence "
            f"of the last two; got {value!r}."
        )
    if not bandwidths:
        raise ValueError("bandwidth must not be an empty sequence; pass 'auto' or at least one value.")
    return bandwidths


def _resolve_C(given: Any) -> list[float] | None:
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


def _resolve_landmarks(given: Any) -> tuple[str, int]:
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
