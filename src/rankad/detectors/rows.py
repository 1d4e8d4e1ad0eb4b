"""What a user passes to float64 rows, or an error that names the columns at fault."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _get_feature_names, validate_data

from rankad._arrays import Floats

__all__ = ["validate_rows"]

_SHOWN = 5


def validate_rows(estimator: BaseEstimator, X: Any, *, reset: bool, least: int = 1) -> Floats:
    """Return X as rows of finite float64, or raise a ValueError that names what is wrong.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose ``n_features_in_`` and ``feature_names_in_`` are set (`reset`) or checked.
    X : array-like or data frame of shape (n, d)
    reset : bool
        True in fit.
    least : int
        The least number of rows.
    """
    try:
        rows = validate_data(
            estimator,
            X,
            reset=reset,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=least,
        )
        rows = np.ascontiguousarray(rows, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise type(error)(_explain(estimator, X, str(error))) from error
    _check_finite(estimator, X, rows)
    return rows


def _names(X: Any, d: int) -> list[str]:
    found = _get_feature_names(X)
    return [f"column {i}" for i in range(d)] if found is None else [repr(str(name)) for name in found]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _explain(estimator: BaseEstimator, X: Any, message: str) -> str:
    """Add the names of the columns at fault to one of scikit-learn's messages, where it leaves them out."""
    if "same order" in message:
        seen, now = list(estimator.feature_names_in_), list(X.columns)
        moved = [repr(str(b)) for a, b in zip(seen, now, strict=True) if a != b]
        return f"{message}\nOut of place: {_listed(moved)}. Reorder them, as in X[model.feature_names_in_]."
    text = _columns_of_text(X)
    if text:
        return (
            f"X must hold numbers, but {_listed(text)} cannot be read as such ({message}). "
            f"Leave these columns out, or encode them as numbers."
        )
    return message


def _columns_of_text(X: Any) -> list[str]:
    columns = getattr(X, "columns", None)
    if columns is not None and hasattr(X, "__getitem__"):
        found = [(repr(str(name)), X[name]) for name in columns]
    else:
        try:
            cells = np.asarray(X)
        except ValueError:
            return []
        if cells.ndim != 2 or cells.dtype.kind not in "OUSMm":
            return []
        found = [(f"column {i}", column) for i, column in enumerate(cells.T)]
    bad = []
    for name, column in found:
        values = np.asarray(column)
        if values.dtype.kind in "biuf":
            continue
        wrong = next((value for value in values.ravel() if not _is_number(value)), None)
        if wrong is not None:
            bad.append(f"{name} (with {wrong!r})")
    return bad


def _is_number(value: Any) -> bool:
    if isinstance(value, (np.datetime64, np.timedelta64, complex)):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True


def _check_finite(estimator: BaseEstimator, X: Any, rows: Floats) -> None:
    bad = ~np.isfinite(rows)
    if not bad.any():
        return
    what = "NaN" if np.isnan(rows).any() else "infinity"
    names = _names(X, rows.shape[1])
    at_fault = [
        f"{names[i]} ({int(bad[:, i].sum())} of {len(rows)} rows, the first is row {int(bad[:, i].argmax())})"
        for i in np.flatnonzero(bad.any(axis=0))
    ]
    raise ValueError(
        f"Input X contains {what} in {_listed(at_fault)}. {type(estimator).__name__} takes finite numbers "
        f"only: fill the missing cells or drop the rows, and do the same at prediction time."
    )
