"""What the research study varies: one thing at a time, from default RankAD.

Everything is plain values, and they are the keys of the cells: a value added or changed here costs its own
cells only.
"""

from __future__ import annotations

from fractions import Fraction
from inspect import signature
from typing import Any, NamedTuple

from rankad import RankAD
from rankad._simd import NEAREST
from rankad.detectors.ranker import FAR_SHARE

__all__ = ["DEFAULT", "KNOBS", "Fit", "Knob", "Variant", "fit"]


class Fit(NamedTuple):
    """One fit of RankAD: what differs from the default.

    Attributes
    ----------
    parameters : tuple of (str, value)
        Of `RankAD`.
    C_times_rows : float or None
        C, times the number of training rows.
    rows : {"whitened", "quantile"} or None
        What is done to the rows first.
    far_share : float or None
        The weight of the point at infinity, as a share of the rows.
    negatives : {"uniform"} or None
        The only made-up rows by which to select.
    later_seed : int
        Added to the seed.
    """

    parameters: tuple[tuple[str, Any], ...] = ()
    C_times_rows: float | None = None
    rows: str | None = None
    far_share: float | None = None
    negatives: str | None = None
    later_seed: int = 0


DEFAULT = (Fit(),)
_DEFAULTS = {name: parameter.default for name, parameter in signature(RankAD).parameters.items()}


def fit(**differences: Any) -> Fit:
    """Return a fit; what is RankAD's default is no difference.

    Examples
    --------
    >>> fit(scaling="auto") == fit(), fit(trim=0.1, rows="whitened").parameters
    (True, (('trim', 0.1),))
    """
    if differences.get("far_share") == FAR_SHARE:
        del differences["far_share"]
    unlike = [item for item in differences.items() if item[0] in _DEFAULTS and item[1] != _DEFAULTS[item[0]]]
    others = {name: value for name, value in differences.items() if name not in _DEFAULTS}
    return Fit(tuple(unlike), **others)


class Variant(NamedTuple):
    """One value of a knob.

    Attributes
    ----------
    label : str
    fits : tuple of Fit
    reading : {"score", "ranks", "scores"} or int
        What to make of the fits: the score of the only one; the mean of ranks or of scores, of several; or
        the only one's score with far distances that are means over so many landmarks.
    """

    label: str
    fits: tuple[Fit, ...] = DEFAULT
    reading: str | int = "score"

    @property
    def is_default(self) -> bool:
        """Whether this is default RankAD."""
        return self.fits == DEFAULT and self.reading == "score"


class Knob(NamedTuple):
    """One ingredient, and the values it is given.

    Attributes
    ----------
    name : str
    variants : tuple of Variant
        One is the default.
    notes : tuple of str
        What a reader must know.
    """

    name: str
    variants: tuple[Variant, ...]
    notes: tuple[str, ...] = ()

    def key(self, variant: Variant) -> str:
        """Return what a variant is called among those of all knobs."""
        return "default" if variant.is_default else f"{self.name}: {variant.label}"


def _each(name: str, *values: Any) -> tuple[Variant, ...]:
    """Return a variant for each value of one parameter."""
    return tuple(Variant(_text(value), (fit(**{name: value}),)) for value in values)


def _numbers(name: str, default: float, *values: float) -> tuple[Variant, ...]:
    """Return a variant for each number, the default among them, ascending."""
    return _each(name, *sorted({*values, default}))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if not isinstance(value, float):
        return str(value)
    text = f"{value:g}"
    return text if float(text) == value else str(Fraction(value).limit_denominator(99))


def _cuts(*cuts: float) -> Variant:
    return Variant("cut at " + ", ".join(f"{100 * cut:g}" for cut in cuts) + " %", (fit(n_levels=cuts),))


def _bandwidth(multiple: float) -> Fit:
    return fit(bandwidth=f"{multiple:g} D_K")


_MULTIPLES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
_AVERAGED = {
    "3 seeds": tuple(fit(later_seed=1_000 * at) for at in range(3)),
    "3 scalings": tuple(fit(scaling=name) for name in ("standard", "robust", None)),
    "3 bandwidths": tuple(map(_bandwidth, (0.25, 0.5, 1.0))),
}

KNOBS = (
    Knob(
        "bandwidth",
        (*(Variant(f"{m:g} D_K", (_bandwidth(m),)) for m in _MULTIPLES), *_each("bandwidth", "auto")),
        ("Scaling and C are selected all the same.",),
    ),
    Knob(
        "C",
        (
            *(Variant(f"{c:g} / n", (fit(C_times_rows=c),)) for c in (0.1, 1.0, 10.0, 100.0)),
            *_each("C", "auto"),
        ),
        ("n is the number of training rows. Scaling and bandwidth are selected all the same.",),
    ),
    Knob(
        "landmarks",
        _numbers("landmarks", _DEFAULTS["landmarks"], 50, 100, 250, 500, 1_000),
        ("As many as there are training rows, at most.",),
    ),
    Knob(
        "neighbours",
        _each("n_neighbors", 3, 5, 10, "auto", 30, 60),
        ("K; a quarter of the training rows at most.",),
    ),
    Knob(
        "levels",
        (
            *_each("n_levels", "tail"),
            *(Variant(f"{many} uniform", (fit(n_levels=many),)) for many in (3, 5, 10, 20, 100)),
            _cuts(0.05),
            _cuts(0.01, 0.05, 0.25),
        ),
    ),
    Knob(
        "weight at infinity",
        (
            Variant("no far field", (fit(far_field=False),)),
            *_numbers("far_share", FAR_SHARE, 0.1, 1 / 3, 1.0, 3.0),
        ),
        (
            "As a share of the training rows. No far field: far_field=False, without far distances and the "
            "ranges of columns as well.",
        ),
    ),
    Knob(
        "far distance",
        tuple(
            Variant(f"{many} nearest", reading="score" if many == NEAREST else many)
            for many in sorted({1, 2, 3, 5, 8, NEAREST})
        ),
        (
            "Far from all landmarks the mean distance to so many of the nearest is subtracted, capped at as "
            "many times that to the nearest. The default's fit, scored anew; selection is the default's.",
        ),
    ),
    Knob(
        "scaling",
        (
            *_each("scaling", "auto", "standard", "robust", None),
            *(Variant(rows, (fit(rows=rows, scaling=None),)) for rows in ("whitened", "quantile")),
        ),
        (
            "Whitened: rotated to the training rows' principal axes, each with variance 1. Quantile: every "
            "column to a normal distribution by the training rows' quantiles, beyond which nothing is told "
            "apart.",
        ),
    ),
    Knob(
        "selection",
        (
            *_each("selection", "contrast", "shuffled", "disagreement"),
            Variant("uniform", (fit(negatives="uniform"),)),
        ),
        ("Uniform: contrast without its shuffled rows.",),
    ),
    Knob(
        "averaging",
        (
            Variant("one scorer"),
            *(
                Variant(f"{what}, {name}", fits, what)
                for what in ("ranks", "scores")
                for name, fits in _AVERAGED.items()
            ),
        ),
        (
            "Ranks: the mean over scorers of a row's rank among the training rows' scores. Rows below all of "
            "these are not told apart, and scorers that flatter their training rows have many. Scores: the "
            "mean of scores, each less the training rows' mean and over their standard deviation.",
            "Seeds: that of the split and two more, for halves, folds, landmarks and made-up rows. "
            "Bandwidths: 1/4, 1/2 and 1 D_K.",
        ),
    ),
    Knob(
        "trim",
        _numbers("trim", _DEFAULTS["trim"], 0.0, 0.05, 0.1),
        ("On clean training rows: what trimming costs where nothing need be trimmed.",),
    ),
)
