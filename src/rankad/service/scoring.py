"""Rows of a request to answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankad._base.arrays import Floats
from rankad.alarms.decisions import PValueCounts
from rankad.scoring.batch import score_batch
from rankad.service.errors import RequestError
from rankad.service.formats import Batch
from rankad.service.models import ServedModel


class Answers(NamedTuple):
    """What is said of the rows of one request.

    Attributes
    ----------
    columns : dict of str to ndarray
        p_value, score and alarm.
    alpha : float
        The false-alarm rate, or, with a false discovery rate, the largest p-value of an alarm.
    """

    columns: dict[str, Any]
    alpha: float

    @property
    def alarms(self) -> list[tuple[int, float, float]]:
        """The alarms, as (row, p-value, score)."""
        at = np.flatnonzero(self.columns["alarm"])
        cells = (at, self.columns["p_value"][at], self.columns["score"][at])
        return list(zip(*(each.tolist() for each in cells), strict=True))


def rate_of(text: str | None, name: str) -> float | None:
    """Return a rate from a query string, or raise if it is not strictly between 0 and 1."""
    if text is None:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 < rate < 1:
        raise RequestError(422, name, f"{name} must be a number strictly between 0 and 1, got {text[:50]!r}")
    return rate


def score_rows(model: ServedModel, batch: Batch, alpha: float | None, fdr: float | None) -> Answers:
    """Score the rows of a request; errors about its columns and cells become a `RequestError`."""
    rate = model.detector.alpha if alpha is None else alpha
    if batch.n_rows == 0:
        _check_names(model, batch.columns)
        nothing: Floats = np.empty(0)
        return Answers({"p_value": nothing, "score": nothing, "alarm": np.empty(0, dtype=bool)}, rate)
    try:
        scored = _scored(model, batch)
    except (ValueError, TypeError) as error:
        raise RequestError(422, "rows", str(error)) from None
    return decide(scored, rate, fdr)


def _scored(model: ServedModel, batch: Batch) -> dict[str, Any]:
    if batch.parts is None:
        scored = score_batch(model.detector, batch.columns)
        return {name: np.asarray(scored[name]) for name in ("p_value", "score")}
    answers: dict[str, Any] = {"p_value": np.empty(batch.n_rows), "score": np.empty(batch.n_rows)}
    for rows, columns in batch.parts:
        scored = score_batch(model.detector, columns)
        for name, values in answers.items():
            values[rows] = scored[name]
    return answers


def decide(scored: dict[str, Any], rate: float, fdr: float | None) -> Answers:
    """Make alarms of p-values: at a rate of false alarms, or of false discoveries."""
    columns = {**scored, "alarm": scored["p_value"] <= rate}
    if fdr is not None:
        counts = PValueCounts()
        counts.add(columns["p_value"])
        rate = counts.level(fdr)
        columns["alarm"] = columns["p_value"] <= rate
    return Answers(columns, rate)


def check_named(model: ServedModel, batch: Batch) -> None:
    """Refuse lists of numbers where the model has columns with names."""
    if isinstance(batch.columns, np.ndarray) and model.card.columns:
        names = ", ".join(name[:100] for name in model.card.columns[:3])
        raise RequestError(
            422,
            "rows",
            f"the rows are lists, and the model has columns with names: send objects, with {names}",
        )


def _check_names(model: ServedModel, columns: Any) -> None:
    """Refuse a table without rows that lacks columns: it may have been read as what it is not."""
    names = getattr(columns, "column_names", getattr(columns, "columns", columns))
    if isinstance(names, (list, np.ndarray)) and not isinstance(columns, dict) and columns is names:
        # A list of no rows has no names.
        return
    if not model.card.columns and len(list(names)) != model.card.n_columns:
        raise RequestError(
            422,
            "rows",
            f"there are no rows, and {len(list(names))} columns for the {model.card.n_columns} of the model",
        )
    lacking = [name for name in model.card.columns if name not in list(names)]
    if lacking:
        raise RequestError(422, "rows", f"there are no rows, and no column {lacking[0]!r}")


def _explained(model: ServedModel, batch: Batch, alpha: float | None) -> list[Any]:
    # load made it one that explains; `explain_rows` has asked.
    detector: Any = model.detector
    if batch.parts is None:
        return list(detector.explain(batch.columns, alpha=alpha))
    found: dict[int, Any] = {}
    for rows, columns in batch.parts:
        found |= dict(zip(rows.tolist(), detector.explain(columns, alpha=alpha), strict=True))
    return [found[at] for at in range(batch.n_rows)]


def explain_rows(model: ServedModel, batch: Batch, alpha: float | None) -> list[dict[str, Any]]:
    """Say of each row which columns make it abnormal, and the smallest change that would make it normal."""
    if not model.describe()["explains"]:
        raise RequestError(409, "no_reasons", f"model {model.name!r} was saved without what reasons need")
    if batch.n_rows == 0:
        _check_names(model, batch.columns)
        return []
    try:
        explanations = _explained(model, batch, alpha)
    except (ValueError, TypeError) as error:
        raise RequestError(422, "rows", str(error)) from None
    return [
        {
            "p_value": each.p_value,
            "alarm": each.p_value <= (model.detector.alpha if alpha is None else alpha),
            "reasons": [
                {
                    "column": reason.column,
                    "value": reason.value,
                    "typical": reason.typical,
                    "low": reason.low,
                    "high": reason.high,
                    "p_value_if_typical": reason.p_value,
                }
                for reason in each.reasons
            ],
            "change": None
            if each.change is None
            else [
                {"column": move.column, "from": move.before, "to": move.after} for move in each.change.moves
            ],
        }
        for each in explanations
    ]
