"""The Open Inference Protocol, version 2: tensors in JSON, one for each column."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from rankad.service.errors import RequestError
from rankad.service.formats import Batch
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


class Asked(NamedTuple):
    """An inference request: its rows, and what it wants back."""

    batch: Batch
    alpha: float | None
    id: str | None
    outputs: tuple[str, ...]


class _Tensor(msgspec.Struct):
    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class _Output(msgspec.Struct):
    name: str


class _Request(msgspec.Struct):
    inputs: list[_Tensor]
    id: str | None = None
    parameters: dict[str, Any] = {}
    outputs: list[_Output] = []


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
        "versions": [model.card.sha256[:12]],
        "platform": "rankad",
        "inputs": inputs,
        "outputs": outputs,
    }


def read(body: bytes, model: ServedModel, most_rows: int) -> Asked:
    """Return what is asked for: one tensor of numbers with all columns, or one tensor for each column.

    A column of text is BYTES; numbers may also come as BYTES, as text.
    """
    try:
        request = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(400, "not_inference", f"the body is no inference request: {error}") from None
    unknown = [output.name for output in request.outputs if output.name not in _OUTPUTS]
    if unknown:
        raise RequestError(
            422, "outputs", f"there is no output {unknown[0][:100]!r}; there are: {', '.join(_OUTPUTS)}"
        )
    alpha = request.parameters.get("alpha")
    if not request.inputs:
        raise RequestError(
            422, "inputs", "inputs must hold a tensor for each column, or one with all of them"
        )
    tensors = {tensor.name: _values(tensor) for tensor in request.inputs}
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
    rate = None if alpha is None else rate_of(str(alpha), "alpha")
    parts = parts_of(columns) if isinstance(columns, dict) else None
    return Asked(
        Batch(columns, n_rows, parts), rate, request.id, tuple(each.name for each in request.outputs)
    )


def _named(rows: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if rows.shape[1] != len(names):
        raise RequestError(422, "shape", f"the model has {len(names)} columns, the input {rows.shape[1]}")
    return {name: rows[:, at].tolist() for at, name in enumerate(names)}


def _values(tensor: _Tensor) -> Any:
    if tensor.datatype not in DATATYPES:
        raise RequestError(
            422,
            "datatype",
            f"input {tensor.name[:100]!r} is of type {tensor.datatype[:50]!r}, which is not known",
        )
    try:
        flat = np.array(tensor.data, dtype=object if tensor.datatype == "BYTES" else np.float64)
        if tensor.datatype == "BYTES" and any(isinstance(cell, (list, dict)) for cell in flat.ravel()):
            raise ValueError
        if any(size < 0 for size in tensor.shape) or len(tensor.shape) not in (1, 2):
            raise ValueError
        values = flat.reshape(tensor.shape)
    except (ValueError, TypeError, OverflowError):
        raise RequestError(
            422,
            "shape",
            f"input {tensor.name[:100]!r} does not hold {tensor.datatype} in the shape {tensor.shape[:4]}",
        ) from None
    return (
        values[:, 0] if values.ndim == 2 and tensor.datatype == "BYTES" and values.shape[1] == 1 else values
    )


def write(model: ServedModel, asked: Asked, answers: Answers) -> dict[str, Any]:
    """Return the response to an inference request."""
    names = asked.outputs or tuple(_OUTPUTS)
    outputs = [
        {
            "name": name,
            "datatype": _OUTPUTS[name],
            "shape": [asked.batch.n_rows],
            "data": answers.columns[name].tolist(),
        }
        for name in names
    ]
    response = {"model_name": model.name, "model_version": model.card.sha256[:12], "outputs": outputs}
    return response if asked.id is None else response | {"id": asked.id}
