"""What a fitted detector promises: bounds, certificates, and the set of rows that are not alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankad._base.checks import check_unit
from rankad._base.rows import validate_rows
from rankad.stages.calibration import Calibration, FalseAlarmBound, beta_bound

if TYPE_CHECKING:
    from rankad.certificates.certificate import Certificate
    from rankad.level_sets.level_set import LevelSet


class Guarantees:
    """The promises of a detector, read from its calibration; `CalibratedDetector` has the examples."""

    alpha: float
    calibration_: Calibration

    def _check_fitted(self) -> None:
        raise NotImplementedError

    def false_alarm_bound(self, alpha: float | None = None, delta: float = 0.05) -> FalseAlarmBound:
        """Return what is promised about the realised false-alarm rate.

        Parameters
        ----------
        alpha : float, optional
            The false-alarm rate asked for; the detector's own by default.
        delta : float
            The probability, over samples of normal rows, with which the bound may fail.

        Returns
        -------
        FalseAlarmBound
            The bound, whether a theorem covers it, and which.
        """
        self._check_fitted()
        level = check_unit("alpha", self.alpha if alpha is None else alpha)
        return self._bound(level, check_unit("delta", delta))

    def certificate(self, delta: float = 0.05, *, contamination: float = 0.0) -> Certificate:
        """Return the realised false-alarm rates that are compatible with the calibration, at every alpha.

        Parameters
        ----------
        delta : float
            The probability, over calibration samples, with which a promise may fail.
        contamination : float
            The share of calibration rows that may be anomalies.

        Returns
        -------
        Certificate
            ``print`` shows it; `range`, `simultaneous`, `upper` and `alpha_for` are its numbers.
        """
        from rankad.certificates.certificate import certificate_of

        self._check_fitted()
        return certificate_of(self, check_unit("delta", delta), contamination)

    def level_set(self, alpha: float | None = None, rows: Any = None) -> LevelSet:
        """Return the region of rows that are not alarms at alpha, as an object.

        Parameters
        ----------
        alpha : float, optional
            The detector's own by default.
        rows : array-like of shape (n, d), optional
            Normal rows, for where to look for the set; by default those that the detector keeps.

        Returns
        -------
        LevelSet
            With `contains`, `volume`, `sample`, `project` and, in two columns, `boundary`.
        """
        from rankad.level_sets.level_set import LevelSet, kept_rows

        self._check_fitted()
        known = kept_rows(self) if rows is None else validate_rows(self, rows, reset=False)
        return LevelSet(self, self.alpha if alpha is None else alpha, known)

    def _bound(self, alpha: float, delta: float) -> FalseAlarmBound:
        return beta_bound(self.calibration_, alpha, delta)
