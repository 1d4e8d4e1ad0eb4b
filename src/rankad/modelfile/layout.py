"""How objects become values of the header and arrays of a model file, and come back, every value checked.

`rankad.modelfile.schema` lists what is stored: each value once, for writing and for reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankad.modelfile.fields import Arrays, Fields, require

# Gets the attributes of an object, by name.
Rule: TypeAlias = Callable[[Mapping[str, Any]], bool]


class Scalar(NamedTuple):
    """A value in the header: how to read it, and its name there if that is not the attribute's."""

    read: Callable[[Fields, str], Any]
    name: str = ""


class Array(NamedTuple):
    """An array of the file, and what its numbers must be; `make` says what becomes of it.

    In `shape`, names stand for sizes that arrays share (see `Arrays`); "any" is not shared.
    """

    dtype: type
    shape: tuple[str | int, ...]
    finite: bool = True
    positive: bool = False
    filled: bool = False
    optional: bool = False
    make: Callable[[NDArray[Any]], Any] = np.asarray
    name: str = ""

    def take(self, name: str, arrays: Arrays) -> Any:
        """Return the array of that name, checked."""
        if self.optional and not arrays.has(name):
            return None
        shape = [name if size == "any" else size for size in self.shape]
        array = arrays.take(name, self.dtype, *shape, finite=self.finite)
        require(array.size > 0 or not self.filled, f"its array {name!r} is empty")
        above = not self.positive or bool((array > 0).all())
        require(above, f"its array {name!r} holds numbers that are not above 0")
        return self.make(array)


@dataclass(frozen=True)
class Part:
    """An object inside a fitted model, such as "scorer.kernel", or the model itself, with an empty path.

    `make` is its class, `fields` says how each attribute is stored, `prefix` begins its arrays' names, and
    `section` is the object of the header that its values are in, if any. `rules` are what must hold of the
    attributes, each with what is wrong with the file otherwise, formatted with them.
    """

    path: str
    make: str
    fields: Mapping[str, Scalar | Array]
    prefix: str = ""
    section: str = ""
    rules: Sequence[tuple[Rule, str]] = ()
    present: Callable[[Fields, Arrays], bool] = lambda fitted, arrays: True

    def store(self, value: Any, fitted: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Add an object, or its absence, to the header and the arrays."""
        if self.section:
            fitted[self.section] = None if value is None else {}
            if value is None:
                return
            fitted = fitted[self.section]
        for attribute, spec in self.fields.items():
            held = getattr(value, attribute, None)
            if isinstance(spec, Scalar):
                fitted[spec.name or attribute] = as_json(held)
            elif held is not None:
                arrays[self.prefix + (spec.name or attribute)] = np.asarray(held)

    def restore(self, fitted: Fields, arrays: Arrays, inside: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes, with those inside that were restored before, or raise a `Flaw`."""
        header = fitted.fields(self.section) if self.section else fitted
        values = dict(inside)
        for attribute, spec in self.fields.items():
            name = spec.name or attribute
            if isinstance(spec, Scalar):
                values[attribute] = spec.read(header, name)
            else:
                values[attribute] = spec.take(self.prefix + name, arrays)
        for holds, otherwise in self.rules:
            require(bool(np.all(holds(values))), otherwise.format_map(values))
        return values


def as_json(value: Any) -> Any:
    """Return a value, such as a parameter of a detector, as JSON has it; sequences become lists."""
    if value is None or isinstance(value, str | bool | np.bool_):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    return [as_json(item) for item in value]


def store(layout: Sequence[Part], model: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header's values and the arrays of a model."""
    fitted: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for part in layout:
        value = model
        for name in filter(None, part.path.split(".")):
            value = getattr(value, name, None)
        part.store(value, fitted, arrays)
    return fitted, arrays


def restore(layout: Sequence[Part], fitted: Fields, arrays: Arrays) -> dict[str, Any]:
    """Return the attributes of a model, the last part of the layout, or raise a `Flaw`."""
    inside: dict[str, dict[str, Any]] = {part.path: {} for part in layout}
    for part in layout[:-1]:
        parent, _, name = part.path.rpartition(".")
        inside[parent][name] = restore_part(part, fitted, arrays, inside[part.path])
    return layout[-1].restore(fitted, arrays, inside[""])


def restore_part(part: Part, fitted: Fields, arrays: Arrays, inside: Mapping[str, Any] | None = None) -> Any:
    """Return an object, made from its attributes and those inside it; None where the file has none."""
    if not part.present(fitted, arrays):
        return None
    return resolve_name(part.make)(**part.restore(fitted, arrays, inside or {}))
