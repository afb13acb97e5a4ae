"""What a notebook shows of a report: a few lines and a picture, never a list of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meltpoint.records import fields_html
from meltpoint.results.html.charts import interval_chart
from meltpoint.results.html.elements import Html, element
from meltpoint.results.html.words import answer_text, estimate_text, subject, with_short_texts

if TYPE_CHECKING:
    from meltpoint.results.report import Report

# Middle tones: a notebook may be light or dark, and does not say which.
_STYLE = """
.meltpoint { max-width: 44rem; }
.meltpoint p { margin: .2rem 0; }
.meltpoint .answer { font-size: 1.2rem; font-weight: 600; }
.meltpoint .chart { width: 100%; max-width: 36rem; height: auto; display: block; }
.meltpoint .chart text { font: 12px sans-serif; fill: currentColor; }
.meltpoint .chart .grid { stroke: currentColor; opacity: .15; }
.meltpoint .chart .axis { stroke: currentColor; opacity: .6; }
.meltpoint .chart .thick { stroke-width: 7; opacity: .35; }
.meltpoint .chart .error { stroke-width: 1.5; }
.meltpoint .chart .dashed { stroke-dasharray: 5 4; }
.meltpoint .conservative { stroke: #2b8cc4; fill: #2b8cc4; }
.meltpoint .optimistic { stroke: #e0701f; fill: #e0701f; }
.meltpoint .exact { stroke: currentColor; fill: currentColor; }
"""


def report_html(report: Report) -> str:
    """The verdict, the interval as a picture, and where to find more."""
    report = with_short_texts(report)
    rows = {f"conservative (RAISE, N = {report.particles:,})": estimate_text(report.conservative)}
    if report.exact:
        rows["exact"] = estimate_text(report.exact)
    rows |= {"optimistic (AIS)": estimate_text(report.optimistic), "gap": estimate_text(report.gap)}
    return _box(
        element("p", subject(report)),
        element("p", answer_text(report), class_="answer"),
        element("p", str(report.verdict)),
        interval_chart(report, f"interval-{id(report)}"),
        Html(fields_html(rows)),
        element("p", "More: print(report), report.plot(kind), report.to_html(path)."),
    )


def _box(*children: object) -> str:
    return element("div", element("style", Html(_STYLE)), *children, class_="meltpoint")
