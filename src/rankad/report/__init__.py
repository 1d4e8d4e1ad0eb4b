"""A self-contained HTML page for a scored table: how many alarms, which, why, and what was promised."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankad.report.contents import Alarm, ModelFacts, ReportData
    from rankad.report.page import render
    from rankad.report.views import CategoryView, NumericView
    from rankad.report.volumes import PValueSummary

__all__ = ["Alarm", "CategoryView", "ModelFacts", "NumericView", "PValueSummary", "ReportData", "render"]

_HOMES = {
    "Alarm": "contents",
    "CategoryView": "views",
    "ModelFacts": "contents",
    "NumericView": "views",
    "PValueSummary": "volumes",
    "ReportData": "contents",
    "render": "page",
}


def __getattr__(name: str) -> Any:
    # When they are asked for: pages need Jinja, which is an extra, and the words that others use do not.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
