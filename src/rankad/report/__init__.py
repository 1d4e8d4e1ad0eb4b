"""A self-contained HTML page for a scored table: how many alarms, which, why, and what was promised."""

from rankad.alarms.chance import PValueSummary
from rankad.report.contents import Alarm, ModelFacts, ReportData
from rankad.report.views import CategoryView, NumericView

__all__ = ["Alarm", "CategoryView", "ModelFacts", "NumericView", "PValueSummary", "ReportData", "render"]


def render(data: ReportData) -> str:
    """Return the page as HTML, with its style, script and charts inside."""
    # Imported here, since pages need Jinja, which is an extra; the sentences of verdicts do not.
    from rankad.report import page

    return page.render(data)
