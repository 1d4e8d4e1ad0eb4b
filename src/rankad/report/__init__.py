"""A self-contained HTML page for a scored table: how many alarms, which, why, and what was promised."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankad.alarms.chance import PValueSummary
    from rankad.report.contents import Alarm, ModelFacts, ReportData
    from rankad.report.page import render
    from rankad.report.views import CategoryView, NumericView

__all__ = ["Alarm", "CategoryView", "ModelFacts", "NumericView", "PValueSummary", "ReportData", "render"]

_HOMES = {
    "Alarm": "rankad.report.contents",
    "CategoryView": "rankad.report.views",
    "ModelFacts": "rankad.report.contents",
    "NumericView": "rankad.report.views",
    "PValueSummary": "rankad.alarms.chance",
    "ReportData": "rankad.report.contents",
    "render": "rankad.report.page",
}


def __getattr__(name: str) -> Any:
    # When they are asked for: pages need Jinja, which is an extra, and the words that others use do not.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
