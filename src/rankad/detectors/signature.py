"""Parameters and attributes that a detector does not have: an error that says what to do instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any

# What detectors of other packages call it, and where it is here.
_RATE = (
    "alpha is the false-alarm rate, the share of normal rows that may raise an alarm, as in "
    "{detector}(alpha=0.01)"
)
_TRIM = (
    ". Where some of the rows to fit on may be anomalies, RankAD(trim=0.02) leaves out the 2 % that lie "
    "farthest from the others"
)
_ELSEWHERE = {
    "contamination": _RATE + _TRIM,
    "nu": _RATE + _TRIM,
    "novelty": "every detector here is fitted on normal rows and judges new ones",
    "seed": "it is called random_state here",
    "n_threads": "it is called n_jobs here",
    "k": "it is called n_neighbors here",
}
# So with what detectors of other packages have.
INSTEAD = {
    "predict_proba": "p_values(rows) says how unusual each row is among normal ones; nothing here is the "
    "probability of being an anomaly",
    "decision_scores_": "score_samples(rows) scores any rows, higher is more normal; fit_p_values(rows) "
    "judges those that it is fitted on",
    "labels_": "fit_predict(rows) judges the rows that it is fitted on: -1 is an alarm",
    "threshold_": "offset_ is the score below which rows are alarms at alpha",
    "contamination": "alpha is the false-alarm rate, which may be set at any time",
}


def with_advice(init: Callable[..., None], elsewhere: Mapping[str, str]) -> Callable[..., None]:
    """Return `__init__` as it is, but for its answer to parameters that it does not have.

    Parameters
    ----------
    init : callable
    elsewhere : mapping of str to str
        What to do instead, by the name of the parameter; ``{detector}`` stands for the class.
    """
    known = inspect.signature(init).parameters
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return init

    @wraps(init)
    def checked(self: Any, *given: Any, **named: Any) -> None:
        for name in named:
            if name not in known:
                names = [each for each in known if each != "self"]
                raise TypeError(_advice(type(self).__name__, name, names, {**_ELSEWHERE, **elsewhere}))
        init(self, *given, **named)

    return checked


def _advice(detector: str, name: str, known: list[str], elsewhere: Mapping[str, str]) -> str:
    said = f"{detector} has no parameter {name!r}"
    if name in elsewhere:
        return f"{said}: {elsewhere[name].format(detector=detector)}."
    near = get_close_matches(name, known, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{said}.{hint} It has {', '.join(known)}."
