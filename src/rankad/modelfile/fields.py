"""The header and the arrays of a model file, checked as untrusted input."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Sizes and counts are integers of 64 bits, as everywhere.
_LARGEST_INTEGER = 2**63 - 1
_SHA256 = re.compile("[0-9a-f]{64}")


class Flaw(ValueError):
    """What is wrong with a model file: part of a sentence, to which the file's name is added."""


def require(holds: bool, otherwise: str) -> None:
    """Raise a `Flaw` unless something holds."""
    if not holds:
        raise Flaw(otherwise)


def header_to_text(header: Mapping[str, Any]) -> str:
    """Return a header as JSON; floats come back to the last bit."""
    return json.dumps(header, allow_nan=False, sort_keys=True, separators=(",", ":"))


def header_from_text(text: str) -> Fields:
    """Read JSON whose numbers are finite, whose integers fit 64 bits and whose texts UTF-8 can write."""
    try:
        header = json.loads(text, parse_int=_integer, parse_float=_number, parse_constant=_number)
        json.dumps(header, ensure_ascii=False).encode()
    except Flaw:
        raise
    except UnicodeEncodeError as error:
        raise Flaw("its header holds half of a surrogate pair, which is not a character") from error
    except (ValueError, RecursionError) as error:
        raise Flaw("its header is not JSON") from error
    return Fields("header", header)


def _integer(digits: str) -> int:
    # Python refuses to read some thousand digits, and floats have no numbers so large.
    if len(digits) > 20 or abs(int(digits)) > _LARGEST_INTEGER:
        raise Flaw("its header holds an integer of more than 64 bits")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise Flaw("its header holds a number that is not finite")
    return value


class Fields:
    """A JSON object, whose fields are asked for by name and kind; anything else is a `Flaw`."""

    def __init__(self, name: str, values: Any) -> None:
        if not isinstance(values, dict):
            raise Flaw(f"its {name} should be an object")
        self.name, self.values = name, values

    def _get(self, field: str, kinds: type | tuple[type, ...], wanted: str) -> Any:
        if field not in self.values:
            raise Flaw(f"its {self.name} lacks {field!r}")
        value = self.values[field]
        # To Python, True is an integer.
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise Flaw(f"its {self.name} should have {wanted} in {field!r}")
        return value

    def has(self, field: str) -> bool:
        """Tell whether a field is there and is not null."""
        return self.values.get(field) is not None

    def fields(self, field: str) -> Fields:
        """Return an object in this one."""
        return Fields(f"{field!r}", self._get(field, dict, "an object"))

    def count(self, field: str, least: int = 0) -> int:
        """Return an integer that is not below `least`."""
        value: int = self._get(field, int, "an integer")
        if value < least:
            raise Flaw(f"its {self.name} has {value} in {field!r}, which should be at least {least}")
        return value

    def number(self, field: str, *, above: float = -math.inf, most: float = math.inf) -> float:
        """Return a finite number in a range."""
        value = float(self._get(field, (int, float), "a number"))
        if not above < value <= most:
            raise Flaw(f"its {self.name} has {value:g} in {field!r}, out of range")
        return value

    def flag(self, field: str) -> bool:
        """Return True or False."""
        value: bool = self._get(field, bool, "true or false")
        return value

    def text(self, field: str, allowed: tuple[str, ...] = ()) -> str:
        """Return a string, one of those allowed if there are any."""
        value: str = self._get(field, str, "a text")
        if allowed and value not in allowed:
            raise Flaw(f"its {self.name} has {_shown(value)} in {field!r}, none of {', '.join(allowed)}")
        return value

    def digest(self, field: str) -> str:
        """Return a SHA-256 in hexadecimal."""
        value = self.text(field)
        if not _SHA256.fullmatch(value):
            raise Flaw(f"its {self.name} has no SHA-256 in {field!r}")
        return value

    def listed(self, field: str, kinds: type | tuple[type, ...], wanted: str) -> tuple[Any, ...]:
        """Return a list whose items are all of these kinds."""
        items = self._get(field, list, "a list")
        if not all(isinstance(item, kinds) and not isinstance(item, bool) for item in items):
            raise Flaw(f"its {self.name} should have {wanted} in {field!r}")
        return tuple(items)

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a list of strings."""
        return self.listed(field, str, "a list of texts")


def _shown(value: str) -> str:
    return repr(value if len(value) <= 40 else value[:40] + "...")


class Arrays:
    """The arrays of a model file, asked for by name, kind and shape.

    Sizes have names; the first array that is asked for says what they are, and the others must agree.

    >>> arrays = Arrays({"low": np.zeros(3), "high": np.ones(2)})
    >>> arrays.take("low", np.float64, "d")
    array([0., 0., 0.])
    >>> arrays.take("high", np.float64, "d")
    Traceback (most recent call last):
    rankad.modelfile.fields.Flaw: its array 'high' has shape (2,) where (3,) is needed
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._left = dict(arrays)
        self.sizes: dict[str, int] = {}

    def has(self, name: str) -> bool:
        """Tell whether there is such an array that was not taken yet."""
        return name in self._left

    def take(self, name: str, kind: type, *shape: str | int, finite: bool = True) -> NDArray[Any]:
        """Return an array of this kind and shape, of finite numbers unless told otherwise; never NaN."""
        if name not in self._left:
            raise Flaw(f"it lacks the array {name!r}")
        array = self._left.pop(name)
        if array.dtype != np.dtype(kind):
            raise Flaw(f"its array {name!r} is of {array.dtype} where {np.dtype(kind)} is needed")
        if len(shape) == array.ndim:
            for size, held in zip(shape, array.shape, strict=True):
                if isinstance(size, str):
                    self.sizes.setdefault(size, held)
        wanted = tuple(self.sizes.get(size, "any") if isinstance(size, str) else size for size in shape)
        if array.shape != wanted:
            raise Flaw(f"its array {name!r} has shape {array.shape} where {wanted} is needed")
        if np.isnan(array).any() or (finite and not np.isfinite(array).all()):
            raise Flaw(f"its array {name!r} holds numbers that are not finite")
        return array

    def done(self) -> None:
        """Raise a `Flaw` if arrays are left that nobody asked for."""
        if self._left:
            raise Flaw(f"it holds an unknown array, {_shown(min(self._left))}")
