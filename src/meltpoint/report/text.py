"""A report as text: at most 79 columns, fit for a terminal and for an appendix."""

import math
import textwrap

from meltpoint.report.report import Report
from meltpoint.statistics.estimate import Estimate

_WIDTH = 79
_LABEL = 22


def render(report: Report) -> str:
    """The report as lines of text."""
    s = report.settings
    bracket = [("conservative (RAISE)", report.conservative), ("optimistic (AIS)", report.optimistic)]
    if report.exact:
        bracket.insert(1, ("exact", report.exact))
    digits = report.gap.digits
    lines = [
        f"{report.model} on {_count(report.test_examples, 'test example')}, nats per example",
        "─" * _WIDTH,
        *(_estimate(label, estimate, digits) for label, estimate in bracket),
        _estimate("gap", report.gap, digits),
        "",
        *textwrap.wrap(str(report.verdict), _WIDTH),
        "",
        *_row(
            "certificate", f"{report.certificate}; no assumption, p_ann: the annealing model of these steps"
        ),
        *_row("log Z", f"{report.log_z}; effective sample size {report.ess:,.0f} of {s.ais_chains:,} chains"),
        *_row("path", f"base {s.base}, {s.steps:,} {s.schedule} steps, {s.precision} precision"),
        *_row("RAISE", f"{_count(s.examples, 'example')} × {_count(s.chains, 'chain')}{_gain(report)}"),
    ]
    if report.log_f_error > 0:
        lines += _row("log f", f"estimated too, ± {report.log_f_error:.3f}: AIS rests on two estimates")
    if report.interrupted:
        lines += _row("interrupted", "from the chains that were finished by then; run again for the rest")
    spent = ", ".join(f"{name} {_time(t)}" for name, t in report.seconds.items() if name != "total")
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    lines += _row(
        "run", f"seed {s.seed}, {_time(report.seconds['total'])}" + (f" ({spent})" if spent else "")
    )
    lines += _row("with", versions)
    return "\n".join(lines)


def _row(label: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=f"{label:<{_LABEL}}", subsequent_indent=" " * _LABEL)


def _estimate(label: str, estimate: Estimate, digits: int) -> str:
    return f"{label:<{_LABEL}}{estimate.value_text(digits):>10} {estimate.error_text(digits)}"


def _gain(report: Report) -> str:
    gain = report.control_variate_gain
    shown = math.isfinite(gain) and report.settings.examples < report.test_examples
    return f"; control variate: error {gain:.1f} × smaller" if shown else ""


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _time(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
