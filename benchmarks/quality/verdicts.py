"""What a knob does to detection quality: every value beside the default, and whether to choose one pays.

A value that looks best on these sets was chosen on these sets. Hence the second look: for each set, the value
that is best on all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.quality.comparison import Comparison
from benchmarks.quality.knobs import Knob
from rankad._base.arrays import Floats, Ints
from rankad.experiments.results import Table, mean, standard_error

__all__ = ["Choice", "Verdict", "choice", "chosen", "pooled", "summary", "table", "verdicts"]

# Differences of AUC up to this are none.
_EVEN = 0.002


class Verdict(NamedTuple):
    """One value of a knob beside the default.

    Attributes
    ----------
    label : str
    is_default : bool
    auc, average_precision : float
        Means over sets.
    difference, error : float
        Of mean AUC to the default's, and its standard error over sets; not a number for a single set.
    better, worse : int
        Sets whose AUC differs by more than 0.002.
    worst : float
        The least difference on any set.
    worst_set : str
    """

    label: str
    is_default: bool
    auc: float
    average_precision: float
    difference: float
    error: float
    better: int
    worse: int
    worst: float
    worst_set: str


def verdicts(knob: Knob, auc: Comparison, precision: Comparison) -> list[Verdict]:
    """Compare every value of a knob with the default, set by set."""
    found = []
    for variant in knob.variants:
        key = knob.key(variant)
        gaps = auc.of(key) - auc.of("default")
        worst = int(gaps.argmin())
        found.append(
            Verdict(
                variant.label,
                variant.is_default,
                auc.means[key],
                precision.means[key],
                mean(gaps.tolist()),
                standard_error(gaps.tolist()),
                int((gaps > _EVEN).sum()),
                int((gaps < -_EVEN).sum()),
                float(gaps[worst]),
                auc.sets[worst],
            )
        )
    return found


def table(knob: Knob, found: Sequence[Verdict]) -> Table:
    """Show a knob's values, the default in bold."""
    rows = []
    for one in found:
        if one.is_default:
            cells = [one.label, f"{one.auc:.4f}", "", f"{one.average_precision:.4f}", "", "", ""]
            rows.append([f"**{cell}**" if cell else "" for cell in cells])
            continue
        rows.append(
            [
                one.label,
                f"{one.auc:.4f}",
                _gap(one.difference, one.error),
                f"{one.average_precision:.4f}",
                str(one.better),
                str(one.worse),
                f"{_signed(one.worst)}, {one.worst_set}",
            ]
        )
    columns = ["value", "mean AUC", "to the default", "mean average precision", "better", "worse", "worst"]
    title = knob.name[0].upper() + knob.name[1:]
    return Table(knob.name.replace(" ", "-").lower(), title, columns, rows, knob.notes)


class Choice(NamedTuple):
    """What choosing a value by AUC comes to.

    Attributes
    ----------
    default, hindsight : float
        Mean AUC of the default, and of the value that is best on all sets.
    best : str
        That value.
    left_out : float
        Mean AUC over sets, each with the value that is best on all others.
    difference, error : float
        Of that to the default's, and its standard error over sets.
    n_values : int
    n_default : int
        Sets for which the others choose the default.
    """

    default: float
    hindsight: float
    best: str
    left_out: float
    difference: float
    error: float
    n_values: int
    n_default: int


def chosen(values: Floats) -> Ints:
    """Return for each set the column with the highest mean over all others; of equal ones the first.

    Parameters
    ----------
    values : ndarray of shape (n_sets, n_values)
        The default first: a single set has no others, and keeps it.

    Examples
    --------
    >>> chosen(np.array([[0.5, 0.9], [0.5, 0.4], [0.5, 0.4]]))
    array([0, 1, 1])
    """
    others = values.sum(axis=0) - values if len(values) > 1 else np.zeros_like(values)
    # Equal but for rounding is equal.
    return np.asarray(others.round(10).argmax(axis=1))


def choice(labels: Sequence[str], values: Floats) -> Choice:
    """Choose among values, the default first, in hindsight and for each set by the others."""
    which = chosen(values)
    own = values[np.arange(len(values)), which]
    gaps = (own - values[:, 0]).tolist()
    best = int(values.mean(axis=0).round(10).argmax())
    return Choice(
        float(values[:, 0].mean()),
        float(values[:, best].mean()),
        labels[best],
        float(own.mean()),
        mean(gaps),
        standard_error(gaps),
        len(labels),
        int((which == 0).sum()),
    )


def pooled(knobs: Sequence[Knob]) -> dict[str, str]:
    """Return the variants of knobs, the default first: what they are called, and how to say it."""
    named = {
        knob.key(variant): variant.label if len(knobs) == 1 else knob.key(variant)
        for knob in knobs
        for variant in knob.variants
    }
    return {"default": named.pop("default"), **named}


def summary(knobs: Sequence[Knob], auc: Comparison) -> Table:
    """Show, for every knob and for all together, what choosing a value comes to."""
    rows = []
    for name, several in (*((knob.name, [knob]) for knob in knobs), ("**all together**", knobs)):
        labels = pooled(several)
        found = choice(list(labels.values()), np.column_stack([auc.of(key) for key in labels]))
        rows.append(
            [
                name,
                str(found.n_values),
                f"{found.default:.4f}",
                f"{found.hindsight:.4f}",
                found.best,
                f"{found.left_out:.4f}",
                _gap(found.difference, found.error),
                f"{found.n_default} of {len(auc.sets)}",
            ]
        )
    columns = [
        "knob",
        "values",
        "default",
        "best in hindsight",
        "which",
        "left out",
        "to the default",
        "kept",
    ]
    notes = [
        "Mean AUC over sets. In hindsight: of the value that is best on these very sets. Left out: each set "
        "with the value that is best on all the others, which is what choosing it promises for another set.",
        "To the default: the difference of left out to the default, and its standard error over sets. Kept: "
        "sets for which the others choose the default.",
    ]
    return Table("summary", "Does choosing pay?", columns, rows, notes)


def _gap(difference: float, error: float) -> str:
    return _signed(difference) + ("" if math.isnan(error) else f" ± {error:.4f}")


def _signed(difference: float) -> str:
    return f"{round(difference, 4) + 0.0:+.4f}"
