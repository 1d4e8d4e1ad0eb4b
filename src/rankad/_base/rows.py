"""What a user passes to float64 rows, or an error that names the columns at fault."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _get_feature_names, validate_data

from rankad._base.arrays import LARGEST, Floats

_SHOWN = 5


class _NamedRows:
    """A polars frame whose names scikit-learn before 1.9 can read; polars 2 alone does not offer them."""

    def __init__(self, frame: Any) -> None:
        self._frame, self.shape = frame, frame.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._frame.__array__(dtype)

    def __dataframe__(self, **_: Any) -> _NamedRows:
        return self

    def column_names(self) -> list[str]:
        return list(self._frame.columns)


def _has_unread_names(X: Any) -> bool:
    is_polars = type(X).__name__ == "DataFrame" and type(X).__module__.partition(".")[0] == "polars"
    return is_polars and not hasattr(X, "__dataframe__") and _get_feature_names(X) is None


class NotNumbersError(ValueError, TypeError):
    """Cells that are not numbers: scikit-learn raises either of the two errors for them."""


def validate_rows(estimator: BaseEstimator, X: Any, *, reset: bool, least: int = 1) -> Floats:
    """Return X as rows of finite float64, or raise a ValueError that names what is wrong.

    With `reset`, as in fit, the estimator's ``n_features_in_`` and ``feature_names_in_`` are set, else
    checked.
    """
    if X is None or isinstance(X, (str, os.PathLike)):
        remedy = "" if X is None else " Read the file first, for example with polars.read_csv."
        raise ValueError(
            f"X must be rows of numbers, as an array of two dimensions or a data frame, got {X!r}.{remedy}"
        )
    try:
        rows = validate_data(
            estimator,
            _NamedRows(X) if _has_unread_names(X) else X,
            reset=reset,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=least,
        )
        if not _holds_numbers_alone(X) and _columns_of_text(X):
            raise ValueError("text and dates are not numbers")
        rows = np.ascontiguousarray(rows, dtype=np.float64)
    except (ValueError, TypeError) as error:
        text = _columns_of_text(X)
        if text:
            raise NotNumbersError(
                f"X must hold numbers, but {_listed(text)} cannot be read as such ({_in_brief(error)}). "
                f"{_for_tables(estimator, X)} takes text, categories and missing values as they are; or "
                f"leave these columns out."
            ) from error
        if "Expected 2D" in str(error) or "2-dimensional container" in str(error):
            row = "frame.iloc[[i]]" if hasattr(X, "iloc") else "X=[row]"
            # scikit-learn prints all numbers of the array.
            said = str(error).partition(" instead")[0]
            raise ValueError(
                f"{said} instead, of shape {np.shape(X)}. Reshape your data: one row is {row}, one column "
                f"X=[[x] for x in column]."
            ) from error
        if "Complex data" in str(error):
            raise ValueError(
                "Complex data not supported: X must hold real numbers. Give both parts as columns, as in "
                "np.hstack([X.real, X.imag])."
            ) from error
        if reset and "while a minimum of" in str(error) and "sample" in str(error):
            raise ValueError(
                f"{type(estimator).__name__} needs {least} rows or more to learn from, but X has "
                f"n_samples={len(X)}. Fit on more normal rows."
            ) from error
        if "features as input" in str(error):
            raise ValueError(f"{error} Pass the columns that it was fitted on, in their order.") from error
        if "same order" in str(error):
            pairs = zip(estimator.feature_names_in_, X.columns, strict=True)
            moved = [repr(str(now)) for seen, now in pairs if seen != now]
            raise ValueError(
                f"{error}\nOut of place: {_listed(moved)}. Reorder them, as in X[model.feature_names_in_]."
            ) from error
        raise
    _check_values(estimator, X, rows, LARGEST if reset else np.inf)
    return rows


def is_plain(estimator: BaseEstimator, X: Any) -> bool:
    """Tell whether X is an array of numbers in which nothing but the values can be wrong."""
    return (
        type(X) in (np.ndarray, np.memmap)
        and X.dtype.kind in "fiub"
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    )


def _holds_numbers_alone(X: Any) -> bool:
    """Tell from the types of the columns; False where only the cells can tell."""
    types = getattr(X, "dtypes", None)
    kinds = [getattr(X, "dtype", object)] if types is None else list(types)
    return all(re.match("bool|u?int|float", str(kind).lower()) for kind in kinds)


def _names(X: Any, d: int) -> list[str]:
    names = X.columns if _has_unread_names(X) else _get_feature_names(X)
    return [f"column {i}" for i in range(d)] if names is None else [repr(str(name)) for name in names]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _in_brief(error: Exception) -> str:
    """Return the first sentence of what NumPy or scikit-learn says; the rest is about their types."""
    if "dtype='numeric'" in str(error):
        return "text and dates are not numbers"
    return str(error).partition(". ")[0].partition("\n")[0][:200]


def _for_tables(estimator: BaseEstimator, X: Any) -> str:
    """Write how to fit on a table as it is, by the same detector."""
    name = type(estimator).__name__
    inside = "" if name == "RankAD" else f"{name}()"
    table = "frame" if hasattr(X, "columns") else "dict(zip(names, X.T))"
    return f"TableDetector({inside}).fit({table})"


def _columns_of_text(X: Any) -> list[str]:
    columns = getattr(X, "columns", None)
    if columns is not None and hasattr(X, "__getitem__"):
        named = [(repr(str(name)), X[name]) for name in columns]
    else:
        try:
            cells = np.asarray(X)
        except ValueError:
            return []
        if cells.ndim != 2 or cells.dtype.kind not in "OUSMm":
            return []
        named = [(f"column {i}", column) for i, column in enumerate(cells.T)]
    bad = []
    for name, column in named:
        values = np.asarray(column)
        if values.dtype.kind in "biuf":
            continue
        wrong = next((value for value in values.ravel() if not _is_number(value)), None)
        if wrong is not None:
            shown = str(wrong) if isinstance(wrong, (np.str_, np.datetime64, np.timedelta64)) else wrong
            bad.append(f"{name} (with {shown!r})")
    return bad


def _is_number(value: Any) -> bool:
    if isinstance(value, (str, bytes, np.datetime64, np.timedelta64, complex)):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True


def _check_values(estimator: BaseEstimator, X: Any, rows: Floats, largest: float) -> None:
    fine = np.abs(rows) <= largest
    fine &= np.isfinite(rows)
    if fine.all():
        return
    names = _names(X, rows.shape[1])
    at_fault = []
    kinds: set[str] = set()
    for i in np.flatnonzero(~fine.all(axis=0)):
        bad = rows[~fine[:, i], i]
        here = [
            kind
            for kind, present in (
                ("NaN", np.isnan(bad).any()),
                ("infinity", np.isinf(bad).any()),
                (f"values too large, above {largest:g},", np.isfinite(bad).any()),
            )
            if present
        ]
        kinds.update(kind.split(",")[0] for kind in here)
        at_fault.append(
            f"{names[i]} ({' and '.join(here)} in {bad.size} of {len(rows)} rows, the first is row "
            f"{int((~fine[:, i]).argmax())})"
        )
    if kinds == {"values too large"}:
        advice = "Divide the column by a constant, or take its logarithm, before fitting."
    elif kinds == {"NaN"}:
        advice = (
            f"{_for_tables(estimator, X)} takes missing cells as they are; else fill the cells or drop the "
            f"rows, and do the same at prediction time."
        )
    else:
        advice = "Fill the cells or drop the rows, and do the same at prediction time."
    raise ValueError(
        f"Input X contains {' and '.join(sorted(kinds))} in {_listed(at_fault)}. "
        f"{type(estimator).__name__} takes finite numbers only, whose squares are finite too. {advice}"
    )
