"""A fitted RankAD as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rankad._base.arrays import Floats, Ints
from rankad.scorers.farfield import ColumnRanges
from rankad.stages.calibration import Calibration
from rankad.stages.scaling import Scaling
from rankad.stages.selection import SelectionTable

if TYPE_CHECKING:
    from rankad.scorers.fusion import FusedScorer

__all__ = ["RankModel"]


@dataclass(frozen=True, kw_only=True)
class RankModel:
    """What `RankAD.fit` learned from nominal rows; ``detector.model_`` holds it.

    Everything that scores is in the units of rows as they come. Row numbers count the rows passed to `fit`.

    Attributes
    ----------
    scorer : FusedScorer
        Scores rows.
    calibration : Calibration
        The nominal scores that p-values refer to.
    recalibrated : bool
        Whether those are of fresh rows (`RankAD.calibrate`).
    scaling : Scaling
        How columns were scaled for RankSVM.
    ranges : ColumnRanges
        What nominal rows span in each column.
    n_neighbors : int
        K of the neighbour graph.
    bandwidth, C : float
        As used.
    selection : SelectionTable or None
        All that was tried, with its losses; None where there was nothing to select.
    n_kernels : int or None
        How many kernels, fixed beforehand, there were to choose from; None where the score is not a g of a
        fixed kernel, so that the paper's theorem does not cover it.
    norm : float
        The length of g in the kernel's space.
    n_iter : int
        Newton steps of the final fit.
    converged : bool
        Whether every fit met the solver's stopping rule.
    ranks, levels : ndarray of shape (n_training,)
        The ranks of the training rows and their levels.
    n_samples_fit : int
        How many rows it was fitted on, those left out included.
    training_rows, reference_rows, trimmed_rows, repeated_rows : ndarray of int
        Which rows trained, which ranked them, which did not train as suspects, and which were left out as
        copies of others.
    nominal_rows : ndarray of shape (n_training, d) or None
        The training rows themselves; None where they were not saved.
    training_sha256 : str or None
        Their digest, of a model that was loaded.
    """

    scorer: FusedScorer
    calibration: Calibration
    recalibrated: bool = False
    scaling: Scaling
    ranges: ColumnRanges
    n_neighbors: int
    bandwidth: float
    C: float
    selection: SelectionTable | None
    n_kernels: int | None
    norm: float
    n_iter: int
    converged: bool
    ranks: Floats
    levels: Ints
    n_samples_fit: int
    training_rows: Ints
    reference_rows: Ints
    trimmed_rows: Ints
    repeated_rows: Ints
    nominal_rows: Floats | None
    training_sha256: str | None = None

    def compared_with(self, calibration: Calibration, *, fresh: bool) -> RankModel:
        """Return the model with other nominal scores, of rows it was fitted on or of fresh ones."""
        return replace(self, calibration=calibration, recalibrated=fresh)
