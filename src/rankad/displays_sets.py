"""Pictures of level sets, certificates, mass-volume curves and drift, in scikit-learn's convention.

matplotlib draws them (extra ``plot``) and is imported when a picture is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Floats
from rankad.certificates.certificate import Certificate
from rankad.level_sets.curves import MassVolumeCurve, mass_volume_curve
from rankad.level_sets.level_set import LevelSet
from rankad.monitoring.drift import DriftAlarm, DriftMonitor

if TYPE_CHECKING:
    from rankad.detectors.base import CalibratedDetector

# Apart from one another for the colour-blind too.
_BLUE, _PALE, _RED, _GREY = "#0072b2", "#9ec5e8", "#d55e00", "#666666"
_N_RATES = 80


def _axes(ax: Any, size: tuple[float, float] = (6.0, 4.5)) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install 'rankad[plot]'.") from error
    return plt.subplots(figsize=size, layout="constrained")[1]


class CertificateDisplay:
    """The false-alarm rates that are promised at every alpha, and those obtained on labelled normal rows.

    The dark band holds at each alpha alone, the light one at all of them together. If the line of obtained
    rates leaves the light band, the rows are not like the calibration rows (or they are few: at the left end
    it rests on a handful of alarms).

    Parameters
    ----------
    certificate : Certificate
    p_values : array-like of shape (n,), optional
        Of fresh normal rows, for the line.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D or None

    Examples
    --------
    >>> import numpy as np
    >>> from rankad import KLPE, CertificateDisplay
    >>> rng = np.random.default_rng(0)
    >>> detector = KLPE().fit(rng.normal(size=(200, 2))).calibrate(rng.normal(size=(300, 2)))
    >>> display = CertificateDisplay.from_estimator(detector, rng.normal(size=(400, 2)))
    >>> display.plot().ax_.get_xlabel()
    'false-alarm rate asked for (alpha)'
    """

    def __init__(self, *, certificate: Certificate, p_values: ArrayLike | None = None) -> None:
        self.certificate, self.p_values = certificate, p_values

    @classmethod
    def from_estimator(
        cls,
        estimator: CalibratedDetector,
        X: Any = None,
        *,
        delta: float = 0.05,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the certificate of a fitted detector, and the rates on normal rows X where they are given.

        Parameters
        ----------
        estimator : RankAD, KLPE, EpsilonLPE or TableDetector
            Fitted.
        X : array-like or data frame, optional
            Normal rows that were neither fitted on nor calibrated with.
        delta : float
            The probability with which the bands may fail.
        ax : matplotlib Axes, optional
        **kwargs
            For the line, as ``color``.
        """
        p_values = None if X is None else estimator.p_values(X)
        return cls(certificate=estimator.certificate(delta), p_values=p_values).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; see `from_estimator`."""
        ax, certificate = _axes(ax), self.certificate
        alphas = np.geomspace(max(certificate.smallest_alpha * 1.0001, 1e-5), 0.5, _N_RATES)
        together = [certificate.simultaneous(alpha) for alpha in alphas.tolist()]
        alone = [certificate.range(alpha) for alpha in alphas.tolist()]
        floor = float(alphas[0]) / 10
        for ranges, colour, opacity, label in (
            (together, _PALE, 0.5, "all alphas at once"),
            (alone, _BLUE, 0.35, "one alpha alone"),
        ):
            low, high = (np.array([one[at] for one in ranges]) for at in (1, 2))
            ax.fill_between(
                alphas, np.maximum(low, floor), high, color=colour, alpha=opacity, linewidth=0, label=label
            )
        ax.plot(alphas, alphas, color=_GREY, linestyle=":", linewidth=1, label="as asked for")
        self.line_ = None
        if self.p_values is not None:
            values = np.sort(np.asarray(self.p_values, dtype=np.float64))
            shares = np.searchsorted(values, alphas, side="right") / max(values.size, 1)
            style = {"color": _RED, "linewidth": 1.5, "label": f"obtained, {values.size:,} rows", **kwargs}
            (self.line_,) = ax.plot(alphas, np.maximum(shares, floor), **style)
        ax.set(xscale="log", yscale="log", xlim=(alphas[0], alphas[-1]), ylim=(floor, 1))
        ax.set_xlabel("false-alarm rate asked for (alpha)")
        kind = "" if certificate.exact else ", approximate"
        ax.set_ylabel(f"realised rate, confidence {1 - certificate.delta:.3g}{kind}")
        ax.legend(loc="upper left", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class LevelSetDisplay:
    """The sets that a detector calls normal at several alphas, in two columns.

    Parameters
    ----------
    level_sets : sequence of LevelSet
        Of one detector on two columns.
    rows : array-like of shape (n, 2), optional
        To be drawn as points.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from rankad import KLPE, LevelSetDisplay
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> display = LevelSetDisplay.from_estimator(KLPE().fit(rows), rows, alphas=[0.1, 0.5], n_grid=50)
    >>> len(display.plot(n_grid=20).level_sets)
    2
    """

    def __init__(self, *, level_sets: Sequence[LevelSet], rows: ArrayLike | None = None) -> None:
        self.level_sets, self.rows = level_sets, rows

    @classmethod
    def from_estimator(
        cls,
        estimator: CalibratedDetector,
        X: Any = None,
        *,
        alphas: Sequence[float] = (0.01, 0.05, 0.2, 0.5),
        n_grid: int = 200,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the sets of a detector fitted on two columns, and rows X as points where they are given.

        Parameters
        ----------
        estimator : RankAD, KLPE or EpsilonLPE
            Fitted on two columns.
        X : array-like or data frame of shape (n, 2), optional
            Rows to be drawn as points.
        alphas : sequence of float
            Those below the smallest p-value of the detector are left out.
        n_grid : int
            Scores are taken on a grid of n_grid by n_grid points.
        ax : matplotlib Axes, optional
        **kwargs
            For the points, as ``c`` or ``s`` of ``scatter``.
        """
        sets = [estimator.level_set(alpha) for alpha in sorted(alphas)]
        names = getattr(estimator, "feature_names_in_", ("first column", "second column"))
        made = cls(level_sets=[one for one in sets if one.is_bounded], rows=X).plot(
            ax, n_grid=n_grid, **kwargs
        )
        made.ax_.set(xlabel=str(names[0]), ylabel=str(names[1]))
        return made

    def plot(self, ax: Any = None, *, n_grid: int = 200, **kwargs: Any) -> Self:
        """Draw; see `from_estimator`."""
        if not self.level_sets:
            raise ValueError(
                "There is no set to draw: all alphas are below the smallest p-value of the detector. "
                "Give a larger alpha, or fit on more rows."
            )
        ax = _axes(ax, (5.5, 5.0))
        largest = min(self.level_sets, key=lambda one: one.threshold)
        if largest.rows.shape[1] != 2:
            raise ValueError(
                f"Level sets can be drawn for a detector of two columns only, and this one has "
                f"{largest.rows.shape[1]}. Fit one on the two columns to draw."
            )
        xs, ys, scores = largest.grid(n_grid)
        levels = sorted({one.threshold for one in self.level_sets})
        shades = [(0.0, 0.447, 0.698, 0.15 + 0.6 * at / max(len(levels), 1)) for at in range(len(levels))]
        top = max(float(scores.max()), levels[-1] + 1e-9)
        ax.contourf(xs, ys, scores, levels=[*levels, top + 1e-9], colors=shades)
        ax.contour(xs, ys, scores, levels=levels, colors=_BLUE, linewidths=0.8, linestyles="solid")
        names = {one.threshold: f"{one.alpha:g}" for one in self.level_sets}
        for level, shade in zip(levels, shades, strict=True):
            ax.fill([], [], color=shade, label=names[level])
        ax.legend(title="no alarm at alpha", loc="upper right", frameon=False, fontsize=8, title_fontsize=8)
        if self.rows is not None:
            points: Floats = np.asarray(self.rows, dtype=np.float64)
            colour = {} if {"c", "color"} & {*kwargs} else {"color": "0.2"}
            ax.scatter(*points.T, **({"s": 8, "alpha": 0.6, "linewidth": 0} | colour | kwargs))
        self.ax_, self.figure_ = ax, ax.figure
        return self


class MassVolumeDisplay:
    """Mass-volume curves of several detectors: the lower, the better it knows where normal rows are.

    Parameters
    ----------
    curves : dict of str to MassVolumeCurve
        By the name of the detector.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from rankad import KLPE, MassVolumeDisplay
    >>> rng = np.random.default_rng(0)
    >>> detectors = {f"K = {k}": KLPE(n_neighbors=k).fit(rng.normal(size=(200, 2))) for k in (2, 20)}
    >>> display = MassVolumeDisplay.from_estimators(detectors, rng.normal(size=(300, 2)), n_points=2000)
    >>> display.plot().ax_.get_xlabel()
    'share of normal rows in the set'
    """

    def __init__(self, *, curves: dict[str, MassVolumeCurve]) -> None:
        self.curves = curves

    @classmethod
    def from_estimators(cls, estimators: dict[str, Any], X: Any, *, ax: Any = None, **options: Any) -> Self:
        """Compare detectors, each with `score_samples`, on normal rows that none was fitted on.

        Options are those of `rankad.mass_volume_curve`.
        """
        curves = {name: mass_volume_curve(one, X, **options) for name, one in estimators.items()}
        return cls(curves=curves).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw; see `from_estimators`."""
        if not self.curves:
            raise ValueError("There is no curve to draw: give at least one detector, as {'name': detector}.")
        ax, self.lines_ = _axes(ax), []
        for name, curve in self.curves.items():
            (line,) = ax.plot(
                curve.mass, curve.volume, label=f"{name} (area {curve.area():.3g})", linewidth=1.5
            )
            ax.fill_between(
                curve.mass,
                np.maximum(curve.volume - 2 * curve.error, curve.volume / 10),
                curve.volume + 2 * curve.error,
                color=line.get_color(),
                alpha=0.2,
                linewidth=0,
            )
            self.lines_.append(line)
        # Sets of some detectors have no end: their volumes are huge.
        ax.set(xlabel="share of normal rows in the set", ylabel="volume of the set", yscale="log")
        ax.legend(loc="upper left", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class DriftDisplay:
    """The evidence of drift along a stream, and where drift alarms were raised.

    Parameters
    ----------
    evidence, run_evidence : array-like of shape (k,)
        `DriftMonitor.evidence` and `DriftMonitor.run_evidence` along the stream.
    rows : array-like of shape (k,)
        The rows at which they were taken.
    alarms : sequence of DriftAlarm

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from rankad import DriftDisplay, DriftMonitor
    >>> p_values = np.random.default_rng(0).integers(1, 501, size=200) / 500
    >>> display = DriftDisplay.from_p_values(DriftMonitor(499), p_values)
    >>> display.plot().alarms
    []
    """

    def __init__(
        self, *, evidence: ArrayLike, run_evidence: ArrayLike, rows: ArrayLike, alarms: Sequence[DriftAlarm]
    ) -> None:
        self.evidence, self.run_evidence, self.rows, self.alarms = evidence, run_evidence, rows, alarms

    @classmethod
    def from_p_values(
        cls, monitor: DriftMonitor, p_values: ArrayLike, *, n_points: int = 500, ax: Any = None
    ) -> Self:
        """Pass p-values through a monitor, which goes on from where it is, and draw its evidence."""
        parts = np.array_split(
            np.asarray(p_values, dtype=np.float64), max(1, min(n_points, np.size(p_values)))
        )
        taken, alarms = [], []
        for part in parts:
            alarms += monitor.update(part)
            taken.append((monitor.n_rows, monitor.evidence, monitor.run_evidence))
        rows, evidence, run_evidence = np.array(taken).T
        return cls(evidence=evidence, run_evidence=run_evidence, rows=rows, alarms=alarms).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw; see `from_p_values`."""
        ax = _axes(ax, (7.5, 3.5))
        ax.plot(self.rows, self.evidence, color=_BLUE, linewidth=1.5, label="ever (martingale)")
        ax.plot(self.rows, self.run_evidence, color=_GREY, linewidth=1, label="run")
        ax.axhline(1, color=_RED, linestyle="--", linewidth=1, label="drift alarm")
        for number, alarm in enumerate(self.alarms):
            label = "drift began, was noticed" if number == 0 else None
            ax.axvspan(alarm.since, alarm.row, color=_RED, alpha=0.12, linewidth=0, label=label)
        ax.set(xlabel="row", ylabel="evidence of drift", ylim=(0, 1.1))
        # In one line above the axes, narrow enough for a picture of six inches.
        style = {"fontsize": "small", "columnspacing": 1.2, "handlelength": 1.5, "frameon": False}
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, **style)
        self.ax_, self.figure_ = ax, ax.figure
        return self
