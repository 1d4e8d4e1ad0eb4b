"""The Open Inference Protocol, version 2: tensors, one for each column, in JSON or in binary after it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from rankad.service.errors import RequestError
from rankad.service.formats import Batch, check_json_size
from rankad.service.mixed import parts_of
from rankad.service.models import ServedModel
from rankad.service.scoring import Answers, rate_of

_OUTPUTS = {"p_value": "FP64", "score": "FP64", "alarm": "BOOL"}
DATATYPES = (
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BYTES",
)


# What clients of the protocol say beside alpha and fdr, and what changes nothing here.
IGNORED = frozenset(
    ("content_type", "headers", "priority", "sequence_end", "sequence_id", "sequence_start", "timeout")
)
_BINARY, _SIZE = "binary_data_output", "binary_data_size"
_CODES = {
    **{"BOOL": "<u1", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8"},
    **{
        f"{sign}INT{bits}": f"<{kind}{bits // 8}"
        for sign, kind in (("", "i"), ("U", "u"))
        for bits in (8, 16, 32, 64)
    },
}


class Output(msgspec.Struct):
    """An output that is asked for."""

    name: str
    parameters: dict[str, Any] = {}


class Asked(NamedTuple):
    """An inference request: its rows, and what it wants back."""

    batch: Batch
    alpha: float | None
    fdr: float | None
    id: str | None
    outputs: tuple[Output, ...]
    binary: bool


class _Tensor(msgspec.Struct):
    name: str
    shape: list[int]
    datatype: str
    data: list[Any] | msgspec.UnsetType = msgspec.UNSET
    parameters: dict[str, Any] = {}


class _Request(msgspec.Struct, forbid_unknown_fields=True):
    inputs: list[_Tensor]
    id: str | None = None
    parameters: dict[str, Any] = {}
    outputs: list[Output] = []


_decoder = msgspec.json.Decoder(_Request)


def metadata(model: ServedModel) -> dict[str, Any]:
    """Return the metadata of a model: a tensor for each column, or one for all where they have no names."""
    names = model.card.columns
    inputs = [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in names]
    if not names:
        inputs = [{"name": "rows", "datatype": "FP64", "shape": [-1, model.card.n_columns]}]
    outputs = [{"name": name, "datatype": kind, "shape": [-1]} for name, kind in _OUTPUTS.items()]
    return {
        "name": model.name,
        "versions": [version_of(model)],
        "platform": "rankad",
        "inputs": inputs,
        "outputs": outputs,
    }


def read(body: bytes, model: ServedModel, most_rows: int, n_json: int | None = None) -> Asked:
    """Return what is asked for: one tensor of numbers with all columns, or one tensor for each column.

    A column of text is BYTES; numbers may also come as BYTES, as text. Of the body, `n_json` bytes are JSON,
    and binary tensors follow.
    """
    if n_json is not None and n_json > len(body):
        raise RequestError(400, "not_inference", f"the JSON has {n_json:,} bytes, and the body {len(body):,}")
    text, binary = (body, b"") if n_json is None else (body[:n_json], body[n_json:])
    check_json_size(text, most_rows)
    try:
        request = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(400, "not_inference", f"the body is no inference request: {error}") from None
    unknown = [output.name for output in request.outputs if output.name not in _OUTPUTS]
    if unknown:
        raise RequestError(
            422, "outputs", f"there is no output {unknown[0][:100]!r}; there are: {', '.join(_OUTPUTS)}"
        )
    alpha, fdr = _rates(request.parameters)
    if not request.inputs:
        raise RequestError(
            422, "inputs", "inputs must hold a tensor for each column, or one with all of them"
        )
    taken = _taken(request.inputs, binary)
    tensors = {tensor.name: _values(tensor, part) for tensor, part in zip(request.inputs, taken, strict=True)}
    if len(tensors) < len(request.inputs):
        raise RequestError(422, "inputs", "two inputs have the same name")
    first = next(iter(tensors.values()))
    n_rows = len(first)
    if n_rows > most_rows:
        raise RequestError(
            413, "too_many_rows", f"{n_rows:,} rows in one request; send at most {most_rows:,}"
        )
    if any(len(values) != n_rows for values in tensors.values()):
        raise RequestError(422, "ragged", "inputs have different numbers of rows")
    if len(tensors) == 1 and first.ndim == 2:
        columns: Any = first
        if model.card.columns:
            columns = _named(first, model.card.columns)
    elif any(values.ndim != 1 for values in tensors.values()):
        raise RequestError(422, "shape", "where there are several inputs, each is one column: shape [n]")
    else:
        columns = {name: values.tolist() for name, values in tensors.items()}
    parts = parts_of(columns) if isinstance(columns, dict) else None
    all_binary = request.parameters.get(_BINARY, False)
    return Asked(Batch(columns, n_rows, parts), alpha, fdr, request.id, tuple(request.outputs), all_binary)


def _rates(parameters: dict[str, Any]) -> tuple[float | None, float | None]:
    """Return alpha and fdr of a request; a parameter that is not known may be one of them mistyped."""
    unknown = sorted(parameters.keys() - {"alpha", "fdr", _BINARY} - IGNORED)
    if unknown:
        raise RequestError(
            422, "unknown_parameter", f"there is no parameter {unknown[0][:100]!r}; there are: alpha, fdr"
        )
    for name, kind in (("alpha", float), ("fdr", float), (_BINARY, bool)):
        value = parameters.get(name, kind())
        if isinstance(value, bool) != (kind is bool) or not isinstance(value, (bool, int, float)):
            wanted = "true or false" if kind is bool else "a number"
            raise RequestError(422, name, f"{name} must be {wanted}, got {str(value)[:50]!r}")
    alpha, fdr = (
        rate_of(str(parameters[name]), name) if name in parameters else None for name in ("alpha", "fdr")
    )
    if alpha is not None and fdr is not None:
        raise RequestError(422, "fdr", "give alpha or fdr, not both")
    return alpha, fdr


def _taken(tensors: list[_Tensor], binary: bytes) -> list[bytes | None]:
    """Return the part of the binary data that belongs to each tensor, in their order."""
    parts, at = list[bytes | None](), 0
    for tensor in tensors:
        size = tensor.parameters.get(_SIZE)
        if (size is None) == (tensor.data is msgspec.UNSET):
            raise RequestError(
                422, "data", f"input {tensor.name[:100]!r} needs data, or {_SIZE} and data after the JSON"
            )
        if size is None:
            parts.append(None)
            continue
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= len(binary) - at:
            raise RequestError(
                422, "data", f"input {tensor.name[:100]!r}: {_SIZE} is not the number of bytes that follow"
            )
        parts.append(binary[at : at + size])
        at += size
    if at < len(binary):
        raise RequestError(422, "data", f"{len(binary) - at:,} bytes after the JSON belong to no input")
    return parts


def _named(rows: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if rows.shape[1] != len(names):
        raise RequestError(422, "shape", f"the model has {len(names)} columns, the input {rows.shape[1]}")
    return {name: rows[:, at].tolist() for at, name in enumerate(names)}


def _values(tensor: _Tensor, binary: bytes | None) -> Any:
    kind = tensor.datatype
    if kind not in DATATYPES:
        raise RequestError(
            422, "datatype", f"input {tensor.name[:100]!r} is of type {kind[:50]!r}, which is not known"
        )
    try:
        if binary is not None:
            flat = _texts(binary) if kind == "BYTES" else np.frombuffer(binary, _CODES[kind]).astype(float)
        else:
            flat = np.array(tensor.data, dtype=object if kind == "BYTES" else np.float64)
        if kind == "BYTES" and any(isinstance(cell, (list, dict)) for cell in flat.ravel()):
            raise ValueError
        if any(size < 0 for size in tensor.shape) or len(tensor.shape) not in (1, 2):
            raise ValueError
        if not kind.startswith(("FP", "BYTES")) and not _is_whole(flat, kind):
            raise ValueError
        values = flat.reshape(tensor.shape)
    except (ValueError, TypeError, OverflowError):
        raise RequestError(
            422,
            "shape",
            f"input {tensor.name[:100]!r} does not hold {kind} in the shape {tensor.shape[:4]}",
        ) from None
    return values[:, 0] if values.ndim == 2 and kind == "BYTES" and values.shape[1] == 1 else values


def _is_whole(values: Any, kind: str) -> bool:
    """Tell whether numbers are of an integer type or, as BOOL, 0 and 1; missing ones are of every type."""
    least, most = (0, 1) if kind == "BOOL" else (np.iinfo(_CODES[kind]).min, np.iinfo(_CODES[kind]).max)
    there = values[~np.isnan(values)]
    return bool(((there == np.floor(there)) & (there >= least) & (there <= most)).all())


def _texts(binary: bytes) -> Any:
    """Return texts, each of which comes after its length in four bytes."""
    texts, at = list[str](), 0
    while at < len(binary):
        size = int.from_bytes(binary[at : at + 4], "little")
        if len(binary) < at + 4 + size:
            raise ValueError
        texts.append(binary[at + 4 : at + 4 + size].decode())
        at += 4 + size
    return np.array(texts, dtype=object)


def write(model: ServedModel, asked: Asked, answers: Answers) -> tuple[dict[str, Any], bytes]:
    """Return the response to an inference request: what is JSON, and the binary data that follows it."""
    wanted = asked.outputs or tuple(Output(name) for name in _OUTPUTS)
    outputs, binary = [], b""
    for each in wanted:
        told = {"name": each.name, "datatype": _OUTPUTS[each.name], "shape": [asked.batch.n_rows]}
        values = np.asarray(answers.columns[each.name])
        if each.parameters.get("binary_data", asked.binary) is True:
            data = values.astype(_CODES[_OUTPUTS[each.name]]).tobytes()
            binary += data
            outputs.append(told | {"parameters": {_SIZE: len(data)}})
        else:
            outputs.append(told | {"data": values.tolist()})
    response = {"model_name": model.name, "model_version": version_of(model), "outputs": outputs}
    return response if asked.id is None else response | {"id": asked.id}, binary


def version_of(model: ServedModel) -> str:
    """Return what the protocol calls the version: the beginning of the file's digest."""
    return model.card.sha256[:12]
