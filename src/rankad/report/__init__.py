"""A self-contained HTML page for a scored table: how many alarms, which, why, and what was promised."""

from rankad.report.contents import Alarm, ModelFacts, ReportData
from rankad.report.page import render
from rankad.report.views import CategoryView, NumericView
from rankad.volumes import PValueSummary

__all__ = ["Alarm", "CategoryView", "ModelFacts", "NumericView", "PValueSummary", "ReportData", "render"]
