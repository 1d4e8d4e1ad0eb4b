"""Parameters, and rows, as they were given: checked, or an error that says what is allowed."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from rankad._base.arrays import LARGEST, Floats


def check_unit(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1, or raise."""
    if isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < 1.0:
        return float(value)
    raise ValueError(
        f"{name} must be a number strictly between 0 and 1, got {value!r}; "
        f"for five per cent pass {name}=0.05."
    )


def check_share(name: str, value: Any, also: str = "") -> float:
    """Return a share below one half, or raise; `also` says what else is allowed."""
    if isinstance(value, Real) and not isinstance(value, bool) and 0.0 <= float(value) < 0.5:
        return float(value)
    raise ValueError(
        f"{name} must be {also}a number from 0 to below 0.5, got {value!r}; for five per cent pass "
        f"{name}=0.05."
    )


def check_run(random_state: Any, n_jobs: Any) -> None:
    """Raise unless both are as scikit-learn wants them."""
    # Decisions on p-values are checked here too, and do without scikit-learn.
    from sklearn.utils import check_random_state

    try:
        check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state must be None, an integer from 0 to 2**32 - 1, or a numpy RandomState; "
            f"got {random_state!r}."
        ) from error
    if n_jobs is not None and (not is_count(n_jobs) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None, an integer >= 1, or a negative one (-1: all cores); got {n_jobs!r}."
        )


def resolve_neighbors(k: Any) -> int | None:
    """Return `n_neighbors` as an integer, None for "auto", or raise."""
    if isinstance(k, str) and k == "auto":
        return None
    if is_count(k) and k >= 1:
        return int(k)
    raise ValueError(f"n_neighbors must be 'auto' or an integer >= 1, got {k!r}.")


def is_count(value: Any) -> bool:
    """Return whether a value is an integer, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Raise unless `value` is one of the allowed."""
    plain = bool(value) if isinstance(value, np.bool_) else value
    if not any(plain is choice or (isinstance(plain, str) and plain == choice) for choice in allowed):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def check_p_values(values: Floats) -> None:
    """Raise unless all are numbers from 0 to 1."""
    wrong = values[~((values >= 0) & (values <= 1))]
    if wrong.size:
        raise ValueError(
            f"p_values must be numbers from 0 to 1, got {wrong.flat[0]:g}; pass what a detector's p_values() "
            f"returns."
        )


def check_range(*tables: Floats) -> None:
    """Raise where rows hold NaN, or numbers whose squares overflow."""
    for table in tables:
        largest = max(-float(table.min(initial=0.0)), float(table.max(initial=0.0)))
        if not largest <= LARGEST:
            raise ValueError(
                f"Rows must hold finite values of at most {LARGEST:g}, got {largest:g}: squared distances "
                f"would overflow. Scale the columns first."
            )
