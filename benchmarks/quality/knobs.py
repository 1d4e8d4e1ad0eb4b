"""What the research study varies: one thing at a time, from default RankAD.

Everything is plain values, and they are the keys of the cells: a value added or changed here costs its own
cells only.
"""

from __future__ import annotations

from fractions import Fraction
from inspect import signature
from itertools import combinations
from pkgutil import resolve_name
from typing import Any, NamedTuple

from rankad import RankAD
from rankad.fitting.plan import resolve_bandwidths
from rankad.fitting.sizes import AUTO_C

__all__ = ["DEFAULT", "KNOBS", "PARTS", "Fit", "Knob", "Reading", "Variant", "fit"]

PARTS = ("RankSVM", "near rows", "mixture")


class Fit(NamedTuple):
    """One fit of RankAD: what differs from the default.

    Attributes
    ----------
    parameters : tuple of (str, value)
        Of `RankAD`.
    constants : tuple of (str, value)
        Of modules of rankad, by their dotted names.
    C_times_rows : float or None
        C, times the number of training rows.
    later_seed : int
        Added to the seed.
    """

    parameters: tuple[tuple[str, Any], ...] = ()
    constants: tuple[tuple[str, float], ...] = ()
    C_times_rows: float | None = None
    later_seed: int = 0


DEFAULT = (Fit(),)
_DEFAULTS = {name: parameter.default for name, parameter in signature(RankAD).parameters.items()}


def fit(**differences: Any) -> Fit:
    """Return a fit; what is RankAD's default is no difference.

    Examples
    --------
    >>> fit(trim=0.0) == fit(), fit(C_times_rows=10.0) == fit(), fit(trim=0.1, later_seed=3)
    (True, True, Fit(parameters=(('trim', 0.1),), constants=(), C_times_rows=None, later_seed=3))
    """
    if differences.get("C_times_rows") == AUTO_C:
        del differences["C_times_rows"]
    constants = differences.pop("constants", {})
    changed = tuple((name, value) for name, value in constants.items() if value != resolve_name(name))
    unlike = [item for item in differences.items() if item[0] in _DEFAULTS and not _is_default(*item)]
    others = {name: value for name, value in differences.items() if name not in _DEFAULTS}
    return Fit(tuple(unlike), changed, **others)


def _is_default(name: str, value: Any) -> bool:
    default = _DEFAULTS[name]
    if name == "bandwidth":
        # "D_K" and "1 D_K" are the same.
        return bool(resolve_bandwidths(value) == resolve_bandwidths(default))
    return bool(value == default)


class Reading(NamedTuple):
    """What is made of the parts of fitted scorers; of several scorers, the mean.

    Attributes
    ----------
    parts : tuple of str
        Those of `PARTS` that are fused.
    fusion : {"soft minimum", "mean", "minimum"}
    reach : float or None
        Of the soft minimum: so many units below the middle, scores go on as logarithms. None is the default.
    """

    parts: tuple[str, ...] = PARTS
    fusion: str = "soft minimum"
    reach: float | None = None


class Variant(NamedTuple):
    """One value of a knob.

    Attributes
    ----------
    label : str
    fits : tuple of Fit
    reading : Reading
    """

    label: str
    fits: tuple[Fit, ...] = DEFAULT
    reading: Reading = Reading()

    @property
    def is_default(self) -> bool:
        """Whether this is default RankAD."""
        return self.fits == DEFAULT and self.reading == Reading()


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


def _numbers(name: str, *values: float) -> tuple[Variant, ...]:
    """Return a variant for each number, the default among them, ascending."""
    return _each(name, *sorted({*values, _DEFAULTS[name]}))


def _constants(name: str, *values: float) -> tuple[Variant, ...]:
    """Return a variant for each number that a constant may be, its own among them, ascending."""
    return tuple(
        Variant(_text(value), (fit(constants={name: value}),))
        for value in sorted({*values, resolve_name(name)})
    )


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if not isinstance(value, float):
        return str(value)
    text = f"{value:g}"
    return text if float(text) == value else str(Fraction(value).limit_denominator(99))


def _cuts(*cuts: float) -> Variant:
    return Variant("cut at " + ", ".join(f"{100 * cut:g}" for cut in cuts) + " %", (fit(n_levels=cuts),))


def _subsets() -> tuple[Variant, ...]:
    subsets = [subset for size in (1, 2, 3) for subset in combinations(PARTS, size)]
    return tuple(Variant(" + ".join(subset), reading=Reading(subset)) for subset in subsets)


def _reaches() -> tuple[Variant, ...]:
    own = resolve_name("rankad.scorers.fusion._REACH")
    return tuple(
        Variant(
            "any" if reach == _ANY else _text(reach), reading=Reading(reach=reach if reach != own else None)
        )
        for reach in sorted({0.0, 2.0, own, 8.0, _ANY})
    )


# A reach that no row is beyond.
_ANY = 1e6

KNOBS = (
    Knob(
        "parts",
        _subsets(),
        ("The default's fit, read anew. Where there is none of the parts named, RankSVM stands in.",),
    ),
    Knob(
        "fusion",
        tuple(Variant(name, reading=Reading(fusion=name)) for name in ("soft minimum", "mean", "minimum")),
        ("The default's fit, read anew.",),
    ),
    Knob(
        "reach of the soft minimum",
        _reaches(),
        ("So many units below the middle, scores go on as logarithms. The default's fit, read anew.",),
    ),
    Knob(
        "bandwidth",
        tuple(
            Variant(f"{many:g} D_K", (fit(bandwidth=f"{many:g} D_K"),))
            for many in (0.125, 0.25, 0.5, 1.0, 2.0)
        ),
    ),
    Knob(
        "C",
        tuple(Variant(f"{c:g} / n", (fit(C_times_rows=c),)) for c in sorted({0.1, 1.0, 100.0, AUTO_C})),
        ("n is the number of training rows.",),
    ),
    Knob(
        "landmarks",
        _numbers("landmarks", 50, 100, 250, 500, 1_000),
        ("As many as there are training rows, at most.",),
    ),
    Knob(
        "neighbours",
        _each("n_neighbors", 3, 8, "auto", 40),
        ("K; a sixth of the training rows at most.",),
    ),
    Knob(
        "levels",
        (
            *_each("n_levels", "tail"),
            *(Variant(f"{many} uniform", (fit(n_levels=many),)) for many in (3, 20)),
            _cuts(0.05),
        ),
    ),
    Knob(
        "weight at infinity",
        (
            Variant("no far field", (fit(far_field=False),)),
            *_constants("rankad.fitting.ranker.FAR_SHARE", 0.1, 1.0, 3.0),
        ),
        (
            "As a share of the training rows. No far field: far_field=False, without far distances and the "
            "ranges of columns as well.",
        ),
    ),
    Knob("scaling", _each("scaling", "standard", "robust", None), ("Of the columns that RankSVM gets.",)),
    Knob("Gaussians", _numbers("n_components", 1, 5, 10, 40), ("One for every 20 training rows at most.",)),
    Knob("steps of EM", _constants("rankad.scorers.mixture._STEPS", 0, 1, 10, 30)),
    Knob(
        "least variance",
        _constants("rankad.scorers.mixture._LEAST_VARIANCE", 1e-5, 1e-3, 1e-2),
        ("Added to every variance of a Gaussian, on standardized columns.",),
    ),
    Knob(
        "seeds",
        (Variant("1"), Variant("3", tuple(fit(later_seed=1_000 * at) for at in range(3)))),
        ("The mean of scores with the split's seed and two more, for halves, landmarks and first centres.",),
    ),
    Knob(
        "trim",
        _numbers("trim", 0.05, 0.1),
        ("On clean training rows: what trimming costs where nothing need be trimmed.",),
    ),
)
