"""A header and named arrays in one file: safetensors, with SHA-256 digests of all of it.

The header is JSON in the metadata of the file. It tells kind, shape and digest of every array, and beside it
stands its own digest, which so vouches for everything, and can be checked without reading the arrays.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankad.modelfile.fields import Fields, Flaw, header_from_text, header_to_text

_HEADER, _DIGEST = "rankad", "rankad_sha256"
_KINDS = {"float64": "F64", "int64": "I64"}


class Contents(NamedTuple):
    """What a model file holds: its header, the arrays asked for, the header's digest and the file's size.

    Two files with the same digest are the same model.
    """

    header: Fields
    arrays: dict[str, NDArray[Any]]
    sha256: str
    n_bytes: int


def digest(array: NDArray[Any]) -> str:
    """Return the SHA-256 of an array's numbers, row by row, least significant byte first."""
    ordered = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return hashlib.sha256(ordered.data).hexdigest()


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a model file."""
    from safetensors.numpy import save

    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    told = {
        name: {"dtype": array.dtype.name, "shape": list(array.shape), "sha256": digest(array)}
        for name, array in whole.items()
    }
    text = header_to_text({**header, "arrays": told})
    return save(whole, {_HEADER: text, _DIGEST: hashlib.sha256(text.encode()).hexdigest()})


def unpack(path: str, wanted: Callable[[str], bool]) -> Contents:
    """Read a model file, and the arrays whose names are wanted.

    Nothing larger than the file is allocated: safetensors checks first that sizes and places of the arrays
    fit the file and fill it.
    """
    from safetensors import SafetensorError, safe_open

    held = os.stat(path)
    if not stat.S_ISREG(held.st_mode):
        raise Flaw("it is not a regular file")
    try:
        with safe_open(path, framework="np") as file:
            header, sha256 = _header(file.metadata())
            told, arrays = header.fields("arrays"), {}
            if set(told.values) != set(file.keys()):
                raise Flaw("its arrays are not those that its header lists")
            for name in sorted(told.values):
                # Of damage to kinds and shapes a digest of the numbers would know nothing.
                each, here = told.fields(name), file.get_slice(name)
                kind = each.text("dtype", tuple(_KINDS))
                shape = each.listed("shape", int, "a list of integers")
                if here.get_dtype() != _KINDS[kind] or tuple(here.get_shape()) != shape:
                    raise Flaw(f"its array {name!r} is not of the kind and shape that its header states")
                expected = each.digest("sha256")
                if wanted(name):
                    # A copy: what safetensors returns may still be the file.
                    arrays[name] = np.array(file.get_tensor(name))
                    if digest(arrays[name]) != expected:
                        raise Flaw(f"its array {name!r} was altered after it was saved")
    except SafetensorError as error:
        said = str(error).removeprefix("Error while deserializing header: ")
        said = said if len(said) <= 120 else said[:120] + "..."
        # safetensors' own words, such as "header too large", come last.
        raise Flaw(
            f"it is cut short, damaged, or something else than detector.save and rankad fit write "
            f"(safetensors: {said})"
        ) from error
    except MemoryError as error:
        raise Flaw(f"its {held.st_size:,} bytes do not fit the memory") from error
    return Contents(header, arrays, sha256, held.st_size)


def _header(metadata: dict[str, str] | None) -> tuple[Fields, str]:
    text, expected = (metadata or {}).get(_HEADER), (metadata or {}).get(_DIGEST)
    if text is None or expected is None:
        raise Flaw("it is a safetensors file, but rankad did not write it")
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    if sha256 != expected:
        raise Flaw("its header was altered after it was saved")
    return header_from_text(text), sha256
