"""What the service writes to its log: lines for people, or an object of JSON for each."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import msgspec


class JsonLines(logging.Formatter):
    """A line of JSON for each record: time, level, logger, message, and the fields of a request."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(told, enc_hook=str).decode()


def log_config(*, as_json: bool, requests: bool) -> dict[str, Any]:
    """Return the configuration of logging for uvicorn and the service, all on standard error.

    Parameters
    ----------
    as_json : bool
        Whether lines are JSON.
    requests : bool
        Whether each request is logged.
    """
    formatter: dict[str, Any] = {
        "()": "uvicorn.logging.DefaultFormatter",
        "fmt": "%(levelprefix)s %(message)s",
    }
    if as_json:
        formatter = {"()": JsonLines}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "loggers": {
            "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
            "rankad.service": {
                "handlers": ["stderr"],
                "level": "DEBUG" if requests else "INFO",
                "propagate": False,
            },
        },
    }
