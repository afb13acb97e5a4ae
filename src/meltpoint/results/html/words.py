"""Short texts that several sections of the page share."""

import math
from dataclasses import replace

from meltpoint.errors import shortened
from meltpoint.results.citation import interval_digits
from meltpoint.results.html.charts import number
from meltpoint.results.report import Report
from meltpoint.statistics.estimate import Estimate

_LONGEST, _MOST = 300, 20


def with_short_texts(report: Report) -> Report:
    """The report with texts from outside cut to a length that a page has room for."""

    def short(texts: dict[str, str]) -> dict[str, str]:
        items = list(texts.items())[:_MOST]
        return {shortened(name, _LONGEST): shortened(text, _LONGEST) for name, text in items}

    return replace(
        report,
        model=shortened(report.model, _LONGEST),
        names=short(report.names),
        versions=short(report.versions),
        fingerprints=short(report.fingerprints),
    )


def subject(report: Report) -> str:
    """What was evaluated on what."""
    model = report.names.get("model")
    named = f"{model} ({report.model})" if model else report.model
    data = report.names.get("test")
    examples = f"{report.test_examples:,} test example{'' if report.test_examples == 1 else 's'}"
    return f"{named} on {examples}" + (f" of {data}" if data else "")


def answer_text(report: Report) -> str:
    """The interval in one line."""
    low, high = report.between
    digits = interval_digits(report)
    sure = f"{100 * report.settings.confidence:.12g}% confidence"
    if math.isfinite(low) and math.isfinite(high):
        return f"{number(low, digits)} to {number(high, digits)} nats per example, {sure}"
    if math.isfinite(high):
        return f"below {number(high, digits)} nats per example, {sure}; no lower end is known"
    return "no interval is known"


def with_error(value: float, stderr: float) -> str:
    """A value with its error, if that is known."""
    return f"{number(value)} ± {number(stderr)}" if math.isfinite(stderr) else number(value)


def estimate_text(estimate: Estimate) -> str:
    """A value with its error."""
    return f"{number(estimate.value, estimate.digits)} {estimate.error_text(estimate.digits)}"
