"""Numbers and other values as a reader wants them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

_LONGEST = 80
# Characters that change the direction of what follows: embeddings, overrides and isolates.
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_ISOLATE, _END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"


def count(n: int) -> str:
    """Write a number of rows with thousands separators, as 1,234,567."""
    return f"{n:,}"


def counted(n: int, thing: str) -> str:
    """Write a number of things.

    >>> counted(1, "row"), counted(2000, "row"), counted(0, "alarm")
    ('1 row', '2,000 rows', '0 alarms')
    """
    return f"{count(n)} {thing}{'' if n == 1 else 's'}"


def percent(share: float, digits: int = 3) -> str:
    r"""Write a share in per cent; the space before the sign does not break.

    >>> percent(0.05), percent(0.001), percent(0.05731), percent(1 / 3, 2)
    ('5\xa0%', '0.1\xa0%', '5.73\xa0%', '33\xa0%')
    """
    return f"{_number(100 * share, digits)}\xa0%"


def probability(p: float, other_than: float | None = None) -> str:
    """Write a p-value with two digits that count, or with more, to tell it from another number.

    >>> probability(0.00049751), probability(0.25), probability(1.0)
    ('0.0005', '0.25', '1')
    >>> probability(0.01049, 0.01), probability(0.05, 0.05)
    ('0.0105', '0.05')
    """
    if other_than is None or p == other_than:
        return _number(p, 2)
    return next(
        text for digits in range(2, 18) if (text := _number(p, digits)) != _number(other_than, digits)
    )


def ratio(observed: int, expected: float) -> str:
    """Write how many times as many there are as expected."""
    if not expected > 0:
        return "–"
    times = observed / expected
    return f"{times:.1f}\xa0×" if times < 100 else f"{count(round(times))}\xa0×"


def isolated(text: str) -> str:
    r"""Write text of the table so that what stands beside it stays in its place.

    Characters that change the direction of text are shown as a replacement character. Text that runs from
    right to left is isolated, by characters and not by an element, so that it is in charts and labels too.

    >>> isolated("blue"), isolated("gnp\u202eexe"), isolated("\u05d0 1")
    ('blue', 'gnp\ufffdexe', '\u2068\u05d0 1\u2069')
    """
    if text.isascii():
        return text
    text = _DIRECTIONS.sub("\N{REPLACEMENT CHARACTER}", text)
    turned = any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text)
    return f"{_ISOLATE}{text}{_END}" if turned else text


def shown(value: Any, digits: int = 4) -> str:
    """Write a cell for a page: as `plain` does, and `isolated`."""
    return isolated(plain(value, digits))


def plain(value: Any, digits: int = 4) -> str:
    """Write a cell: numbers with a few digits, nothing as "missing", long texts cut short.

    >>> plain(3.14159), plain(12345.678), plain(2019), plain(None), plain(float("nan")), plain(True)
    ('3.142', '12346', '2019', 'missing', 'missing', 'true')
    >>> plain(1.5e-9), plain(-1e300), plain("blue"), plain(""), plain([1.5, None])
    ('1.5e-9', '−1e300', 'blue', '(empty)', '1.5, missing')
    """
    # Scalars and arrays of NumPy, which is not imported here: the command must start fast.
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Integral):
        whole = int(value)
        return str(whole).replace("-", "−") if abs(whole) < 10**15 else _number(float(whole), digits)
    if isinstance(value, Real):
        return _number(float(value), digits)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {plain(part, digits)}" for key, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return ", ".join(plain(part, digits) for part in value)
    text = str(value)
    return (text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…") or "(empty)"


def difference(before: Any, after: Any) -> tuple[str, str]:
    """Write two values with as many digits as it takes to tell them apart.

    >>> difference(9.1, 3.21987), difference(1000.01, 1000.02)
    (('9.1', '3.22'), ('1000.01', '1000.02'))
    """
    for digits in range(4, 18):
        texts = plain(before, digits), plain(after, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _number(value: float, digits: int) -> str:
    if math.isnan(value):
        return "missing"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    power = int(exponent)
    if -5 <= power < 7:
        text = f"{value:.{max(digits - 1 - power, 0)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{power}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def printable(text: str) -> str:
    r"""Return a text without characters that a terminal would obey, changes of direction among them.

    >>> printable("blue\x1b[31m\n"), printable("gnp\u202eexe")
    ('blue [31m ', 'gnp exe')
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def cell(value: Any, digits: int = 4) -> str:
    """Write a cell, or the name of a row or column: long texts cut short, numbers so that they can be copied.

    >>> cell(-3.14159), cell(None), cell("blue")
    ('-3.142', 'missing', 'blue')
    """
    return as_typed(value, plain(value, digits))


def as_typed(value: Any, text: str) -> str:
    """Return the text of a value for the screen; numbers have the minus sign of keyboards."""
    return text.replace("\N{MINUS SIGN}", "-") if isinstance(value, Real) else printable(text)
