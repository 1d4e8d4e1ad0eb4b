"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["amount", "bytes_text", "seconds_text", "show", "threads_name"]


def amount(value: float) -> str:
    """Return a count with its thousands set apart."""
    return f"{value:,.0f}"


def seconds_text(value: float) -> str:
    """Return a time in the unit that suits it.

    Examples
    --------
    >>> seconds_text(0.00012), seconds_text(0.034), seconds_text(2.5), seconds_text(75.0)
    ('120 µs', '34 ms', '2.50 s', '75.0 s')
    """
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 0.1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def bytes_text(value: float) -> str:
    """Return an amount of memory in the unit that suits it.

    Examples
    --------
    >>> bytes_text(900), bytes_text(25_600), bytes_text(3.2e6), bytes_text(2.5e9)
    ('0.9 kB', '25.6 kB', '3.2 MB', '2.5 GB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value / 1e3:.1f} kB"


def threads_name(threads: int) -> str:
    """Return "one thread" or "two threads"."""
    return {1: "one thread", 2: "two threads"}.get(threads, f"{threads} threads")


_TEXT: dict[str, Callable[[float], str]] = {
    "fit_seconds": seconds_text,
    "median": seconds_text,
    "p99": seconds_text,
    "peak_bytes": bytes_text,
    "model_bytes": bytes_text,
    "rows_per_second": amount,
    "auc": "{:.4f}".format,
}


def show(record: Mapping[str, Any], what: str) -> str:
    """Return one figure of a record, or why it is missing."""
    return str(record["missing"]) if "missing" in record else _TEXT[what](record[what])
