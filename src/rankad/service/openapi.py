"""What the service takes and answers, as an OpenAPI document."""

from __future__ import annotations

from typing import Any

from rankad import __version__
from rankad.service.formats import ARROW, CSV, JSON, NDJSON

__all__ = ["document"]

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TEXT = {"schema": {"type": "string"}}
_CELL = {"type": ["number", "string", "boolean", "null"]}
_RATE = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_ROW_OBJECT = {"type": "object", "additionalProperties": _CELL}
_ROWS = {
    "oneOf": [
        {"type": "array", "items": _ROW_OBJECT},
        {
            "type": "object",
            "required": ["rows"],
            "properties": {"rows": {"type": "array", "items": _ROW_OBJECT}},
        },
        {
            "type": "object",
            "required": ["columns"],
            "properties": {
                "columns": {"type": "object", "additionalProperties": {"type": "array", "items": _CELL}}
            },
        },
    ]
}
_EXAMPLE = {"rows": [{"flow": 4.9, "mode": "eco"}, {"flow": 60.0, "mode": "eco"}]}
_ANSWER = {
    "type": "object",
    "required": ["model", "rows", "alarms", "p_value", "score", "alarm"],
    "properties": {
        "model": {"type": "string"},
        "alpha": {"type": ["number", "null"]},
        "fdr": {"type": ["number", "null"]},
        "rows": {"type": "integer"},
        "alarms": {"type": "integer"},
        "p_value": {"type": "array", "items": {"type": "number"}},
        "score": {"type": "array", "items": {"type": "number"}},
        "alarm": {"type": "array", "items": {"type": "boolean"}},
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
_REFUSALS = {
    "400": "The body cannot be read.",
    "401": "A key is missing or unknown.",
    "403": "The key may not do this.",
    "404": "There is no such model.",
    "408": "The body took too long to arrive.",
    "409": "The service or the model cannot do this.",
    "413": "Too many bytes or rows.",
    "415": "A media type that is not known.",
    "422": "Rows, columns or parameters are wrong; the message names them.",
    "503": "Busy, or too slow; try again.",
}


def document() -> dict[str, Any]:
    """Return the OpenAPI document of the service."""
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    alpha = _query(
        "alpha", _RATE, "Rows with a p-value of at most this are alarms; by default the model's own."
    )
    fdr = _query("fdr", _RATE, "Alarms of which at most this share is expected to be false.")
    alarms = _query("alarms", {"type": "integer", "minimum": 0, "maximum": 1000}, "How many alarms to list.")
    body = {
        "required": True,
        "content": {
            JSON: {"schema": _ROWS, "example": _EXAMPLE},
            NDJSON: _TEXT,
            CSV: _TEXT,
            ARROW: _BINARY,
        },
    }
    tensors = {"required": True, "content": {JSON: {"schema": {"type": "object"}}}}
    scored = {JSON: {"schema": _ANSWER}, NDJSON: _TEXT, CSV: _TEXT, ARROW: _BINARY}
    anything = {JSON: {"schema": {"type": "object"}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rankad",
            "version": __version__,
            "description": "p-values for rows; normal rows are alarms at the rate you choose.",
        },
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
        "security": [{"key": []}, {}],
        "paths": {
            "/health/live": {"get": _does("The process runs.", [], anything)},
            "/health/ready": {"get": _does("Models are loaded.", [], anything)},
            "/metrics": {"get": _does("Metrics for Prometheus.", [], {"text/plain": _TEXT})},
            "/models": {"get": _does("All models.", [], anything)},
            "/models/{name}": {
                "get": _does("One model: its columns and what it promises.", [name], anything)
            },
            "/models/{name}/score": {"post": _does("Score rows.", [name, alpha, fdr], scored, body)},
            "/models/{name}/explain": {
                "post": _does("Say why rows are abnormal.", [name, alpha], anything, body)
            },
            "/models/{name}/history": {
                "get": _does("Alarms raised, beside the rate asked for.", [name, alarms], anything)
            },
            "/models/{name}/reload": {"post": _does("Load the file again if it changed.", [name], anything)},
            "/v2": {"get": _does("Open Inference Protocol: server metadata.", [], anything)},
            "/v2/health/live": {"get": _does("Open Inference Protocol: live.", [], anything)},
            "/v2/health/ready": {"get": _does("Open Inference Protocol: ready.", [], anything)},
            "/v2/models/{name}": {"get": _does("Open Inference Protocol: model metadata.", [name], anything)},
            "/v2/models/{name}/ready": {
                "get": _does("Open Inference Protocol: model ready.", [name], anything)
            },
            "/v2/models/{name}/infer": {
                "post": _does("Open Inference Protocol: score.", [name], anything, tensors)
            },
        },
    }


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


def _does(
    summary: str, parameters: list[Any], content: dict[str, Any], body: dict[str, Any] | None = None
) -> dict[str, Any]:
    error = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    refusals = {status: {"description": text, "content": error} for status, text in _REFUSALS.items()}
    answers = {"200": {"description": "OK", "content": content}, **refusals}
    operation = {"summary": summary, "parameters": parameters, "responses": answers}
    return operation if body is None else operation | {"requestBody": body}
