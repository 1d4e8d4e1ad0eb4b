"""A fitted RankAD as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
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
    """What `RankAD.fit` learned from normal rows; ``detector.model_`` holds it.

    A new fitted attribute is a field here, set in `rankad.fitting.pipeline.fit_model`: `RankAD` shows it with
    an underscore, and the model file stores it by its type (limits on its values go into
    `rankad.modelfile.schema`).

    Everything that scores is in the units of rows as users pass them. Row numbers count the rows passed to
    `fit`.

    Attributes
    ----------
    scorer : FusedScorer
        Scores rows; its parts are ``scorer.kernel``, ``scorer.near`` and ``scorer.mixture``.
    calibration : Calibration
        The scores of normal rows that p-values refer to.
    recalibrated : bool
        Whether those are of fresh rows (`RankAD.calibrate`).
    scaling : Scaling
        How columns were scaled for RankSVM.
    ranges : ColumnRanges
        The range of normal rows in each column. With `far_field`, a row more than four standard deviations
        outside loses the excess from its score.
    n_neighbors : int
        K of the neighbour graph.
    bandwidth, C : float
        As used.
    selection : SelectionTable or None
        All trials with their losses; None where there was nothing to select.
    n_kernels : int or None
        How many kernels, fixed beforehand, there were to choose from; None where the score is not a g of a
        fixed kernel, so that the paper's theorem does not cover it.
    norm : float
        The norm of g in the kernel's space.
    n_iter : int
        Newton steps of the final fit.
    converged : bool
        Whether every fit met the solver's stopping rule.
    ranks, levels : ndarray of shape (n_training,)
        The ranks of the training rows and their levels.
    n_samples_fit : int
        How many rows were passed to `fit`, those left out included.
    training_rows : ndarray of int, shape (n_training,)
        Which rows trained: all, or 5,000 drawn at random, or half of them for calibration="split".
    reference_rows : ndarray of int
        With many more rows than train, those that neither train nor calibrate: training rows are ranked by
        their neighbours among these, or some of them, and the near field is made of them all. Empty where
        training rows rank one another.
    trimmed_rows : ndarray of int
        Which rows did not train as suspects (`trim`).
    repeated_rows : ndarray of int
        Which rows were left out as copies of others, because rows repeat more regularly than independent
        rows would (every one twice, say).
    nominal_rows : ndarray of shape (n_training, d) or None
        The training rows themselves, for explanations; None where they were not saved.
    training_sha256 : str or None
        Their digest, in a model that was loaded.
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
