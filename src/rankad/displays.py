"""Pictures in scikit-learn's convention: p-values against chance, and the columns behind alarms.

matplotlib draws them (extra ``plot``) and is imported when a picture is drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankad._base.arrays import Floats, Ints
from rankad._base.checks import check_unit, is_count
from rankad.alarms.chance import Chance, chance_of

if TYPE_CHECKING:
    from rankad.detectors.base import CalibratedDetector
    from rankad.explanations.explainer import Explanation

# Distinguishable for the colour-blind too.
_BLUE, _PALE, _RED = "#0072b2", "#9ec5e8", "#d55e00"
_N_RATES = 60
_MOST_ALARMS = 200
_MOST_COLUMNS = 15


class PValueDisplay:
    """How many rows are alarms at every rate, beside how many chance alone would raise.

    If all rows are normal, p-values are uniform: the share of rows with ``p <= alpha`` is about alpha, and
    within the band 19 times in 20 at each alpha. Above it there are more alarms than chance explains.

    Parameters
    ----------
    p_values : array-like of shape (n,)
    chance : Chance, optional
        The law of alarms among normal rows, for the band; without it there is none.
    alpha : float, optional
        A rate to be marked.
    name : str, optional
        What to call the rows in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The share of alarms at each rate.
    band_ : matplotlib collection or None
        What chance allows.

    Examples
    --------
    >>> import numpy as np
    >>> from rankad import KLPE, PValueDisplay
    >>> rng = np.random.default_rng(0)
    >>> detector = KLPE().fit(rng.normal(size=(300, 2)))
    >>> display = PValueDisplay.from_estimator(detector, rng.normal(size=(100, 2)))
    >>> display.plot().ax_.get_xlabel()
    'false-alarm rate asked for (alpha)'
    >>> PValueDisplay.from_predictions(display.p_values, alpha=0.05).alpha
    0.05
    """

    def __init__(
        self,
        *,
        p_values: ArrayLike,
        chance: Chance | None = None,
        alpha: float | None = None,
        name: str | None = None,
    ) -> None:
        self.p_values, self.chance, self.alpha, self.name = p_values, chance, alpha, name

    @classmethod
    def from_estimator(
        cls,
        estimator: CalibratedDetector,
        X: Any,
        *,
        alpha: float | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Score rows with a fitted detector and draw.

        Parameters
        ----------
        estimator : RankAD, KLPE, EpsilonLPE or TableDetector
            Fitted.
        X : array-like or data frame
            As its `p_values` takes it.
        alpha : float, optional
            A rate to be marked; the detector's own by default.
        name : str, optional
            What to call the rows in the legend.
        ax : matplotlib Axes, optional
        **kwargs
            For the line, as ``color``.
        """
        rate = estimator.alpha if alpha is None else alpha
        p_values, chance = estimator.p_values(X), chance_of(estimator)
        return cls.from_predictions(p_values, chance=chance, alpha=rate, name=name, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        p_values: ArrayLike,
        *,
        chance: Chance | None = None,
        alpha: float | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw given p-values; see the parameters of the class, and `from_estimator`."""
        return cls(p_values=p_values, chance=chance, alpha=alpha, name=name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw on `ax`, by default a new one, and return the display; see `from_estimator`."""
        p_values = _checked(self.p_values)
        alpha = None if self.alpha is None else check_unit("alpha", self.alpha)
        self.ax_, self.figure_ = _axes(ax, "PValueDisplay")
        least = min(p_values.min(), 0.01) if self.chance is None else 1 / (self.chance.n + 1)
        rates = np.geomspace(least, 1.0, _N_RATES)
        label = name or self.name or "rows"
        self._draw_band(rates, p_values.size)
        self.ax_.plot([least, 1], [least, 1], color="0.4", linestyle="--", linewidth=1, label="as asked for")
        steps = np.sort(p_values)
        at = np.concatenate([steps, [1.0]])
        share = np.concatenate([np.arange(1, steps.size + 1), [steps.size]]) / steps.size
        style = {"color": _BLUE, "drawstyle": "steps-post", "label": f"{label} ({steps.size:,})"} | kwargs
        (self.line_,) = self.ax_.plot(at, share, **style)
        if alpha is not None:
            self._mark(alpha, steps, least)
        self.ax_.set(
            xscale="log",
            yscale="log",
            xlim=(least, 1),
            ylim=(min(least, 1 / steps.size) * 0.8, 1.3),
            xlabel="false-alarm rate asked for (alpha)",
            ylabel="share of rows with p-value ≤ alpha",
        )
        self._add_legend(steps, least, marked=alpha is not None)
        return self

    def _add_legend(self, steps: Floats, least: float, *, marked: bool) -> None:
        """Put the legend where the line does not run: with many alarms, at the lower right over the note."""
        style = {"framealpha": 0.9, "edgecolor": "none"}
        in_the_middle = max(1, int(np.searchsorted(steps, np.sqrt(least), side="right"))) / steps.size
        if np.log(in_the_middle) < 0.4 * np.log(self.ax_.get_ylim()[0]):
            self.ax_.legend(loc="upper left", **style)
        else:
            self.ax_.legend(loc="lower right", bbox_to_anchor=(1.0, 0.15 if marked else 0.0), **style)

    def _draw_band(self, rates: Floats, n_rows: int) -> None:
        self.band_ = None
        if self.chance is None or not self.chance.worth:
            return
        spans = [self.chance.span(n_rows, rate) for rate in rates[:-1]]
        low, high = (np.array([*ends, n_rows]) / n_rows for ends in zip(*spans, strict=True))
        style = {"color": _PALE, "alpha": 0.5, "linewidth": 0, "label": "usual if all are normal (95 %)"}
        # A logarithmic axis has no zero.
        self.band_ = self.ax_.fill_between(rates, np.maximum(low, 1e-12), high, **style)

    def _mark(self, alpha: float, steps: Floats, least: float) -> None:
        n = int(np.searchsorted(steps, alpha, side="right"))
        usual = ""
        if self.band_ is not None and self.chance is not None:
            span = self.chance.span(steps.size, alpha)
            usual = f"\nusually {span.low:,} to {span.high:,}"
        self.ax_.axvline(alpha, color=_RED, linewidth=1)
        self.ax_.annotate(
            f"{n:,} alarm{'' if n == 1 else 's'} at {100 * alpha:g} %{usual}",
            (alpha, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(5, 0),
            textcoords="offset points",
            color=_RED,
            ha="left" if alpha < least**0.4 else "right",
        )


class ColumnsDisplay:
    """Which columns make rows abnormal.

    Parameters
    ----------
    columns : sequence of str
    n_first : sequence of int
        Of how many alarms each is the first reason.
    n_changed : sequence of int
        Of how many it is part of the smallest change that makes them normal.
    n_alarms : int
        Alarms that were explained.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer
        Of `n_first`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankad import ColumnsDisplay, RankAD
    >>> rng = np.random.default_rng(0)
    >>> detector = RankAD(bandwidth="D_K", C=0.1).fit(rng.normal(size=(100, 2)))
    >>> display = ColumnsDisplay.from_estimator(detector, [[0.0, 9.0], [0.0, 8.0], [0.1, 0.0]])
    >>> display.columns, display.n_first, display.n_alarms
    (('column 1', 'column 0'), (2, 0), 2)
    >>> ColumnsDisplay.from_predictions(detector.explain([[0.0, 9.0]])).plot().n_alarms
    1
    """

    def __init__(
        self, *, columns: Sequence[str], n_first: Sequence[int], n_changed: Sequence[int], n_alarms: int
    ) -> None:
        self.columns, self.n_first, self.n_changed, self.n_alarms = columns, n_first, n_changed, n_alarms

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        alpha: float | None = None,
        most: int = _MOST_ALARMS,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Explain the alarms among some rows and draw.

        Parameters
        ----------
        estimator : RankAD, or TableDetector that holds one
            Fitted.
        X : array-like or data frame
            As its `explain` takes it.
        alpha : float, optional
            What counts as an alarm; the detector's own by default.
        most : int
            How many alarms to explain, the most abnormal.
        ax : matplotlib Axes, optional
        **kwargs
            For the bars, as ``color``.
        """
        if not hasattr(estimator, "explain"):
            raise TypeError(
                f"estimator must be a RankAD, or a TableDetector that holds one, got "
                f"{type(estimator).__name__}, which gives no reasons."
            )
        if not is_count(most) or most < 1:
            raise ValueError(f"most must be an integer >= 1, got {most!r}.")
        level = check_unit("alpha", estimator.alpha if alpha is None else alpha)
        scores = estimator.score_samples(X)
        p_values = estimator.calibration_.p_values(scores)
        # The lowest score first, and of equal ones the earlier.
        order = np.argsort(scores, kind="stable")
        chosen = order[p_values[order] <= level][:most]
        explanations = ()
        if chosen.size:
            explanations = estimator.explain(_some_of(estimator, X, chosen), alpha=level)
        return cls.from_predictions(explanations, ax=ax, **kwargs)

    @classmethod
    def from_predictions(cls, explanations: Sequence[Explanation], *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw given explanations, those of alarms; see `from_estimator`."""
        alarms = [each for each in explanations if each.is_alarm is not False and each.reasons]
        first = Counter(_name(each.reasons[0].column) for each in alarms)
        moves = [move for each in alarms if each.change is not None for move in each.change.moves]
        changed = Counter(_name(move.column) for move in moves)
        names = dict.fromkeys(_name(reason.column) for each in alarms for reason in each.reasons)
        ordered = sorted(names, key=lambda name: (-first[name], -changed[name]))
        return cls(
            columns=tuple(ordered),
            n_first=tuple(first[name] for name in ordered),
            n_changed=tuple(changed[name] for name in ordered),
            n_alarms=len(alarms),
        ).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on `ax`, by default a new one, and return the display; see `from_estimator`."""
        self.ax_, self.figure_ = _axes(ax, "ColumnsDisplay")
        shown = slice(0, _MOST_COLUMNS)
        names, at = list(self.columns[shown]), np.arange(len(self.columns[shown]))
        label = "part of the smallest change that helps"
        self.ax_.barh(at, self.n_changed[shown], height=0.8, color=_PALE, label=label)
        style = {"height": 0.45, "color": _BLUE, "label": "first reason"} | kwargs
        self.bars_ = self.ax_.barh(at, self.n_first[shown], **style)
        self.ax_.set_yticks(at, names)
        self.ax_.invert_yaxis()
        left = len(self.columns) - len(names)
        more = f"; {left} more columns not shown" if left > 0 else ""
        self.ax_.set(xlabel=f"alarms, {self.n_alarms:,} in all{more}", xlim=(0, max(self.n_alarms, 1)))
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        if names:
            self.ax_.legend(loc="lower right", frameon=False)
        else:
            self.ax_.text(0.5, 0.5, "no alarm", transform=self.ax_.transAxes, ha="center", color="0.4")
        return self


def _some_of(estimator: Any, X: Any, chosen: Ints) -> Any:
    """Return some of the rows that a user passes, as the same kind of object."""
    if hasattr(estimator, "encoder_"):
        from rankad.tables.frames import as_frame

        return as_frame(X)[chosen]
    if hasattr(X, "iloc"):
        return X.iloc[chosen]
    return X[chosen] if hasattr(X, "columns") else np.asarray(X)[chosen]


def _name(column: Any) -> str:
    return f"column {column}" if isinstance(column, int) else str(column)


def _checked(p_values: ArrayLike) -> Floats:
    values = np.asarray(p_values, dtype=np.float64).reshape(-1)
    if not values.size:
        raise ValueError("p_values must hold at least one p-value, got none; pass p-values of some rows.")
    wrong = values[~((values > 0) & (values <= 1))]
    if wrong.size:
        raise ValueError(
            f"p_values must be above 0 and at most 1, got {wrong[0]:g}; pass what detector.p_values returns."
        )
    return values


def _axes(ax: Any, display: str) -> tuple[Any, Any]:
    """Return the axes to draw on and their figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{display} needs matplotlib: pip install 'rankad[plot]'.") from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax, ax.figure
