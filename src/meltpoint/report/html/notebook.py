"""What a notebook shows of a report, of log Z and of log-probabilities: a few lines, never a list of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meltpoint.report.html.charts import interval_chart, number
from meltpoint.report.html.elements import Html, element
from meltpoint.report.html.words import answer_text, estimate_text, subject

if TYPE_CHECKING:
    from meltpoint.estimators.ais import LogZ
    from meltpoint.estimators.particles import LogProb
    from meltpoint.report.report import Report

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
    return _box(
        element("p", subject(report)),
        element("p", answer_text(report), class_="answer"),
        element("p", str(report.verdict)),
        interval_chart(report, f"interval-{id(report)}"),
        _rows(
            [
                (f"conservative (RAISE, N = {report.particles:,})", estimate_text(report.conservative)),
                *([("exact", estimate_text(report.exact))] if report.exact else []),
                ("optimistic (AIS)", estimate_text(report.optimistic)),
                ("gap", estimate_text(report.gap)),
            ]
        ),
        element("p", "More: print(report), report.plot(kind), report.to_html(path)."),
    )


def log_z_html(log_z: LogZ) -> str:
    """log Z with its error, its direction and the effective sample size."""
    return _box(
        _rows(
            [
                ("log Z", estimate_text(log_z)),
                ("direction", f"{log_z.direction}, on average over runs"),
                ("effective chains", f"{log_z.ess:,.1f} of {len(log_z.log_weights):,}"),
                ("the error covers", log_z.covers),
            ]
        )
    )


def log_prob_html(prob: LogProb) -> str:
    """The mean over the examples, their range, and what they were made of."""
    examples, chains = prob.log_weights.shape
    values = prob.values
    return _box(
        _rows(
            [
                ("mean log p_N(v)", f"{number(float(np.mean(values)), 4)} nats"),
                ("from … to", f"{number(float(np.min(values)))} … {number(float(np.max(values)))}"),
                ("examples × chains", f"{examples:,} × {chains:,}"),
                ("particles N", f"{prob.particles:,}"),
            ]
        )
    )


def _rows(rows: list[tuple[str, str]]) -> Html:
    made = [
        element("tr", element("th", head, scope="row", style="text-align: left"), element("td", cell))
        for head, cell in rows
    ]
    return element("table", element("tbody", *made))


def _box(*children: object) -> str:
    return element("div", element("style", Html(_STYLE)), *children, class_="meltpoint")
