"""What the service takes and answers, as an OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankad import __version__
from rankad.service.formats import ARROW, CSV, JSON, NDJSON
from rankad.service.inference import DATATYPES, IGNORED


def _object(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with just these properties."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TEXT = {"schema": {"type": "string"}}
_CELL = {"type": ["number", "string", "boolean", "null"]}
_RATE = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_NUMBERS = {"type": "array", "items": {"type": "number"}}
_COUNT = {"type": "integer", "minimum": 0}
_ROW = {"type": "object", "additionalProperties": _CELL}
_ROW_LIST = {
    "oneOf": [
        {"type": "array", "items": _ROW},
        {"type": "array", "minItems": 1, "items": {"type": "array", "items": {"type": ["number", "null"]}}},
    ]
}
_ROWS = {
    "oneOf": [
        *_ROW_LIST["oneOf"],
        _object(rows=_ROW_LIST),
        _object(
            columns={
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"type": "array", "items": _CELL},
            }
        ),
    ]
}
_EXAMPLE = {"rows": [{"flow": 4.9, "mode": "eco"}, {"flow": 60.0, "mode": "eco"}]}
_ANSWER = _object(
    model={"type": "string"},
    alpha={"type": ["number", "null"]},
    fdr={"type": ["number", "null"]},
    rows=_COUNT,
    alarms=_COUNT,
    p_value=_NUMBERS,
    score=_NUMBERS,
    alarm={"type": "array", "items": {"type": "boolean"}},
)
_ANSWER_EXAMPLE = {
    "model": "pump",
    "alpha": 0.01,
    "fdr": None,
    "rows": 2,
    "alarms": 1,
    "p_value": [0.62, 0.0005],
    "score": [0.8, -31.4],
    "alarm": [False, True],
}
_REASON = _object(
    column={"type": "string"},
    value=_CELL,
    typical=_CELL,
    low={"type": ["number", "null"]},
    high={"type": ["number", "null"]},
    p_value_if_typical={"type": "number"},
)
_CHANGE = {
    "type": ["array", "null"],
    "items": _object(column={"type": "string"}, **{"from": _CELL, "to": _CELL}),
}
_EXPLAINED = _object(
    p_value={"type": "number"},
    alarm={"type": "boolean"},
    reasons={"type": "array", "items": _REASON},
    change=_CHANGE,
)
_MODEL = _object(
    name={"type": "string"},
    kind={"type": "string"},
    alpha=_RATE,
    columns=_TEXTS,
    n_columns=_COUNT,
    encoding=_TEXTS,
    normal_rows=_COUNT,
    calibrating_rows=_COUNT,
    calibration={"type": "string"},
    explains={"type": "boolean"},
    saved={"type": "string", "format": "date-time"},
    sha256={"type": "string"},
    versions={"type": "object", "additionalProperties": {"type": "string"}},
)
_PROMISE = _object(
    alpha=_RATE,
    rows=_COUNT,
    alarms=_COUNT,
    rate={"type": ["number", "null"]},
    usual_low=_COUNT,
    usual_high=_COUNT,
)
_DRIFT_ALARM = _object(time={"type": "number"}, row=_COUNT, since=_COUNT, kind={"type": "string"})
_DRIFT = {
    **_object(
        rows=_COUNT,
        evidence={"type": "number"},
        run_evidence={"type": "number"},
        drifted={"type": "boolean"},
        alarms={"type": "array", "items": _DRIFT_ALARM},
    ),
    "type": ["object", "null"],
}
_STRETCH = _object(
    begin={"type": "number"},
    end={"type": "number"},
    rows=_COUNT,
    alarms=_COUNT,
    alarms_if_all_rows_were_normal={"type": "number"},
)
_ALARM = _object(
    time={"type": "number"},
    request={"type": "string"},
    row=_COUNT,
    p_value={"type": "number"},
    score={"type": "number"},
)
_HISTORY = _object(
    requests=_COUNT,
    rows=_COUNT,
    alarms=_COUNT,
    alarms_if_all_rows_were_normal={"type": "number"},
    alarm_rate={"type": ["number", "null"]},
    rate_asked_for={"type": ["number", "null"]},
    promise={"type": "array", "items": _PROMISE},
    drift=_DRIFT,
    over_time={"type": "array", "items": _STRETCH},
    latest_alarms={"type": "array", "items": _ALARM},
)
_TENSOR = _object(
    name={"type": "string"},
    shape={"type": "array", "items": {"type": "integer"}},
    datatype={"type": "string"},
)
_INFER = {
    "type": "object",
    "required": ["inputs"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": ["string", "null"]},
        "parameters": {
            "type": "object",
            "properties": {
                "alpha": _RATE,
                "fdr": _RATE,
                "binary_data_output": {"type": "boolean"},
                **{name: {} for name in sorted(IGNORED)},
            },
            "additionalProperties": False,
        },
        "inputs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "shape", "datatype", "data"],
                "properties": {
                    "name": {"type": "string"},
                    "shape": {"type": "array", "items": _COUNT, "minItems": 1, "maxItems": 2},
                    "datatype": {"enum": list(DATATYPES)},
                    "data": {"type": "array"},
                },
            },
        },
        "outputs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"enum": ["p_value", "score", "alarm"]}},
            },
        },
    },
}
_INFERRED = {
    "type": "object",
    "required": ["model_name", "model_version", "outputs"],
    "properties": {
        "model_name": {"type": "string"},
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "outputs": {
            "type": "array",
            "items": _object(**_TENSOR["properties"], data={"type": "array", "items": _CELL}),
        },
    },
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
# The Open Inference Protocol has errors that are a text.
_ERROR_TEXT = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
_REFUSALS = {
    400: "The body cannot be read.",
    401: "A key is missing or unknown.",
    403: "The key may not do this.",
    404: "There is no such model.",
    405: "This address knows other methods; the header Allow names them.",
    408: "The body took too long to arrive.",
    409: "The service or the model cannot do this.",
    413: "Too many bytes or rows.",
    415: "A media type that is not known.",
    422: "Rows, columns or parameters are wrong; the message names them.",
    503: "Busy, too slow, or the history cannot be written; try again.",
}
_WITHOUT_KEY = ("/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready")
_OF_BODY = (400, 408, 413, 415, 422)


_VERSION_2 = "Open Inference Protocol: "
_INFER_EXAMPLE = {
    "parameters": {"alpha": 0.01},
    "inputs": [
        {"name": "flow", "shape": [2], "datatype": "FP64", "data": [4.9, 60.0]},
        {"name": "mode", "shape": [2], "datatype": "BYTES", "data": ["eco", "eco"]},
    ],
}


def document(models: Sequence[str] = (), *, keys: bool = False) -> dict[str, Any]:
    """Return the OpenAPI document of the service.

    Parameters
    ----------
    models : sequence of str
        The names of the models served.
    keys : bool
        Whether the service asks for keys.
    """
    one_of_models = {"type": "string"} | ({"enum": list(models)} if models else {})
    name = {"name": "name", "in": "path", "required": True, "schema": one_of_models}
    alpha = _query(
        "alpha", _RATE, "Rows with a p-value of at most this are alarms; by default the model's own."
    )
    fdr = _query("fdr", _RATE, "Alarms of which at most this share is expected to be false.")
    alarms = _query("alarms", {"type": "integer", "minimum": 0, "maximum": 1000}, "How many alarms to list.")
    rows = {
        JSON: {"schema": _ROWS, "example": _EXAMPLE},
        NDJSON: _TEXT | {"example": '{"flow": 4.9, "mode": "eco"}\n{"flow": 60.0, "mode": "eco"}\n'},
        CSV: _TEXT | {"example": "flow,mode\n4.9,eco\n60.0,eco\n"},
        ARROW: _BINARY,
    }
    scored = {
        JSON: {"schema": _ANSWER, "example": _ANSWER_EXAMPLE},
        NDJSON: _TEXT,
        CSV: _TEXT,
        ARROW: _BINARY,
    }
    healthy = _object(status={"type": "string"})
    version = {"name": "version", "in": "path", "required": True, "schema": {"type": "string"}}
    paths: dict[str, dict[str, Any]] = {
        "/health/live": _get("The process runs.", healthy, refusals=()),
        "/health/ready": _get("Models are loaded.", healthy, refusals=()),
        "/metrics": {"get": _does("Metrics for Prometheus.", [], {"text/plain": _TEXT})},
        "/models": _get(
            "All models.", _object(models={"type": "array", "items": _MODEL}, version={"type": "string"})
        ),
        "/models/{name}": _get("One model: its columns and what it promises.", _MODEL, [name]),
        "/models/{name}/score": {
            "post": _does("Score rows.", [name, alpha, fdr], scored, refusals=(404, *_OF_BODY), body=rows)
        },
        "/models/{name}/explain": {
            "post": _does(
                "Say why rows are abnormal.",
                [name, alpha],
                _as_json(_object(model={"type": "string"}, rows={"type": "array", "items": _EXPLAINED})),
                refusals=(404, 409, *_OF_BODY),
                body=rows,
            )
        },
        "/models/{name}/history": _get(
            "Alarms raised, beside the rate asked for.", _HISTORY, [name, alarms], refusals=(404, 409, 422)
        ),
        "/models/{name}/reload": {
            "post": _does(
                "Load the file again if it changed.",
                [name],
                _as_json(
                    _object(model={"type": "string"}, changed={"type": "boolean"}, sha256={"type": "string"})
                ),
                refusals=(403, 404, 409),
            )
        },
        "/v2": _get(
            _VERSION_2 + "server metadata.",
            _object(name={"type": "string"}, version={"type": "string"}, extensions=_TEXTS),
        ),
        "/v2/health/live": _get(_VERSION_2 + "live.", _object(live={"type": "boolean"}), refusals=()),
        "/v2/health/ready": _get(_VERSION_2 + "ready.", _object(ready={"type": "boolean"}), refusals=()),
        **_version_2_of_a_model([name], "/v2/models/{name}"),
        **_version_2_of_a_model([name, version], "/v2/models/{name}/versions/{version}"),
    }
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "rankad",
            "version": __version__,
            "description": "p-values for rows; normal rows are alarms at the rate you choose.",
        },
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR, "ErrorText": _ERROR_TEXT},
        },
        "paths": paths,
    }
    for path, operations in paths.items():
        if keys and path not in _WITHOUT_KEY:
            for operation in operations.values():
                operation["security"] = [{"key": []}]
    return whole


def _version_2_of_a_model(names: Sequence[Any], path: str) -> dict[str, Any]:
    """Return the addresses of a model in the Open Inference Protocol."""
    tensors = {"type": "array", "items": _TENSOR}
    about = _object(
        name={"type": "string"}, versions=_TEXTS, platform={"type": "string"}, inputs=tensors, outputs=tensors
    )
    ready = _object(name={"type": "string"}, ready={"type": "boolean"})
    infer = _does(
        _VERSION_2 + "score. Tensors may also be binary, after the JSON (extension binary_tensor_data).",
        names,
        {**_as_json(_INFERRED), "application/octet-stream": _BINARY},
        refusals=(404, *_OF_BODY),
        body={JSON: {"schema": _INFER, "example": _INFER_EXAMPLE}},
    )
    return {
        path: _get(_VERSION_2 + "model metadata.", about, names),
        f"{path}/ready": _get(_VERSION_2 + "model ready.", ready, names),
        f"{path}/infer": {"post": infer},
    }


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


def _as_json(schema: dict[str, Any]) -> dict[str, Any]:
    return {JSON: {"schema": schema}}


def _get(
    summary: str,
    schema: dict[str, Any],
    parameters: Sequence[Any] = (),
    *,
    refusals: Sequence[int] | None = None,
) -> dict[str, Any]:
    if refusals is None:
        refusals = (404,) if parameters else ()
    return {"get": _does(summary, parameters, _as_json(schema), refusals=refusals)}


def _does(
    summary: str,
    parameters: Sequence[Any],
    content: dict[str, Any],
    *,
    refusals: Sequence[int] = (),
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    schema = "ErrorText" if summary.startswith(_VERSION_2) else "Error"
    error = _as_json({"$ref": f"#/components/schemas/{schema}"})
    answers: dict[str, Any] = {"200": {"description": "OK", "content": content}}
    for status in sorted({401, 405, 503, *refusals}):
        answers[str(status)] = {"description": _REFUSALS[status], "content": error}
    operation = {"summary": summary, "parameters": list(parameters), "responses": answers}
    return operation if body is None else operation | {"requestBody": {"required": True, "content": body}}
