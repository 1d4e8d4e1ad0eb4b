"""Names of months in the languages that tables most often have them in, also shortened."""

from __future__ import annotations

__all__ = ["MONTHS"]

_NAMES = (
    "january february march april may june july august september october november december",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
)
_LEAST = 3


def _by_name() -> dict[str, int]:
    """Return the month of each name and of its beginnings, of those that could be one month only."""
    found: dict[str, set[int]] = {"mrz": {3}}
    for names in _NAMES:
        for month, name in enumerate(names.split(), start=1):
            for end in range(_LEAST, len(name) + 1):
                found.setdefault(name[:end], set()).add(month)
    return {name: months.pop() for name, months in found.items() if len(months) == 1}


MONTHS = _by_name()
