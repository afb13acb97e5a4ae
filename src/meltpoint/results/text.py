"""A report as text: at most 79 columns, fewer on a narrow terminal, fit for an appendix."""

import math
import textwrap
from collections.abc import Collection, Mapping, Sequence
from html import escape

from meltpoint.estimators.evidence import MODES
from meltpoint.results.duration import duration
from meltpoint.results.report import Report
from meltpoint.results.stages import OtherBase, StageSummary
from meltpoint.statistics.estimate import Estimate, decimals

_WIDTH = 79
_LABEL = 22
_WIDE_LABEL = 32  # of the bracket
_WORTH_A_WORD = 0.05  # seconds
GLUE = "\N{NO-BREAK SPACE}"  # where a line must not end; printed as a space


def render(report: Report, width: int = _WIDTH) -> str:
    """The report as lines of text of at most this width, 60 or more."""
    particles = f", N = {report.particles:,}" if report.particles > 1 else ""
    bracket = [
        (f"conservative (RAISE{particles})", report.conservative),
        ("optimistic (AIS)", report.optimistic),
    ]
    if report.exact:
        bracket.insert(1, ("exact" if report.log_f_exact else "exact log Z", report.exact))
    digits = report.gap.digits
    lines = [
        *wrapped(f"{report.model} on {count(report.test_examples, 'test example')}, {report.unit}", width),
        "─" * width,
        *(_estimate(label, estimate, digits) for label, estimate in [*bracket, ("gap", report.gap)]),
        "",
        *wrapped(str(report.verdict), width),
        *_convention(report, width),
        "",
    ]
    for label, text in _details(report).items():
        lines += wrapped(text, width, label)
    return "\n".join(lines)


def _details(report: Report) -> dict[str, str]:
    """What is needed to judge and to repeat the run, by label."""
    s, per = report.settings, report.per_example
    ais_chains = min(s.ais_chains, len(report.ais_log_weights))
    estimate = decimals(report.certified_estimate, 2)
    details = {
        "between": _between(report),
        **_upper_bound(report),
        **_evidence(report),
        "certificate": f"{report.certificate} (estimated: {estimate}), whatever the number of steps and "
        f"chains; {_annealing_model(report)}",
        "log Z": f"{report.log_z} ({str(report.log_z_certificate).removeprefix('log Z ')}); "
        f"effective sample size {report.ess:,.0f} of "
        f"{count(ais_chains, 'chain')}{_tail(report)}",
        "path": f"base {s.base}, {count(s.steps, f'{_schedule(report)} step')}, {s.precision} precision"
        f"{_pilot(report)}",
        "RAISE": f"{count(len(per.log_prob), 'example')} × {count(s.chains, 'chain')}{_gain(report)}",
    }
    if report.other_base:
        details["other base"] = other_base_text(report.other_base)
    if report.stages:
        asked = "" if s.gap is None else f", to ± {s.gap:g} nats"
        details["asked"] = f"within {duration(s.budget or 0.0)}{asked}{_overspent(report)}"
        details["stages"] = "; ".join(_stage(stage) for stage in report.stages)
    if not report.log_f_exact:
        error = f"± {report.log_f_error:.3f}" if math.isfinite(report.log_f_error) else "error unknown"
        details["log f"] = f"estimated too, {error}: AIS rests on two estimates"
    if report.interrupted:
        done = f"{len(per.log_prob):,} of {count(s.examples, 'example')}"
        if ais_chains < s.ais_chains:
            done = f"{ais_chains:,} of {count(s.ais_chains, 'AIS chain')} and {done}"
        details["interrupted"] = f"after {done}"
    return details | run_details(s.seed, report.seconds, report.versions)


def run_details(seed: int, seconds: Mapping[str, float], versions: Mapping[str, str]) -> dict[str, str]:
    """Seed, times and versions of a run, by label."""
    parts = {name: t for name, t in seconds.items() if name != "total" and t >= _WORTH_A_WORD}
    spent = ", ".join(f"{name} {duration(t)}" for name, t in parts.items())
    details = {
        "run": f"seed {seed}, {duration(seconds['total'])}" + (f" ({spent})" if spent else ""),
        "with": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    # "15 s" and "Python 3.11" stay together at the end of a line.
    return {
        label: text.replace(" ", GLUE).replace(f",{GLUE}", ", ").replace(f"{GLUE}(", " (")
        for label, text in details.items()
    }


def misreading(report: Report) -> str | None:
    """A warning if the data fit another reading of the parameters much better."""
    check = report.conventions
    if check is None or check.suspected is None:
        return None
    return f"Is the model read as it was meant? {str(check)[0].upper()}{str(check)[1:]}."


def _convention(report: Report, width: int) -> list[str]:
    """A warning if the data fit another reading of the parameters better."""
    warning = misreading(report)
    return [] if warning is None else ["", *wrapped(warning, width)]


def _between(report: Report) -> str:
    low, high = report.between
    condition = (
        f"if no start missed a mode: {count(report.evidence.starts, 'start')} were tried"
        if report.evidence
        else "provided that the chains missed no mode"
    )
    sure = f"with {100 * report.settings.confidence:.12g}% confidence, {condition}"
    shown = [decimals(end, report.gap.digits) for end in (low, high)]
    if math.isfinite(low) and math.isfinite(high):
        return f"{shown[0]} and {shown[1]} {sure}"
    if math.isfinite(high):
        return f"below {shown[1]} {sure}; no lower end is known"
    return "no interval: two chains and two examples are the least that has an error"


def _upper_bound(report: Report) -> dict[str, str]:
    """The side that is guaranteed, where log f is exact."""
    if report.upper_bound is None or not math.isfinite(report.upper_bound):
        return {}
    certain = math.ceil(100 * report.upper_bound) / 100  # rounded up: what is printed is certified too
    return {
        "at most": f"mean log p <= {decimals(certain, 2)} with {100 * report.settings.confidence:.12g}% confidence, "
        "whatever was missed"
    }


def _evidence(report: Report) -> dict[str, str]:
    """What other starts were asked, and what they said."""
    evidence = report.evidence
    if evidence is None:
        return {}
    tried = [f"base {finding.name}" for finding in evidence.findings if finding.name != MODES]
    tried += [count(evidence.modes, "mode")] if evidence.modes else []
    most = evidence.strongest
    missed = evidence.missed(report.ais_log_weights)
    if missed is not None:
        said = f"{missed.nats:.2f} ± {max(missed.nats_error, 0.01):.2f} nats of log Z are missing ({missed.name})"
    else:
        said = f"they agree within {max(0.01, most.nats if most else 0.0):.2f} nats of log Z"
    cost = f"{evidence.chain_steps:,} chain-steps"
    return {"evidence": f"{' and '.join(tried)}: {said}; {cost}"}


def _annealing_model(report: Report) -> str:
    if "p_N" in report.certificate.quantity:
        return "p_N is the annealing model with N particles"
    return "p_ann is the annealing model"


def wrapped(text: str, width: int, label: str = "", label_width: int = _LABEL) -> list[str]:
    """Text in lines of at most `width` characters, with a label before the first and blanks before the others."""
    begin = f"{label:<{label_width}}" if label else ""
    lines = textwrap.wrap(text, width, initial_indent=begin, subsequent_indent=" " * len(begin))
    return [line.replace(GLUE, " ") for line in lines]


def _estimate(label: str, estimate: Estimate, digits: int) -> str:
    return f"{label:<{_WIDE_LABEL}}{estimate.value_text(digits):>10} {estimate.error_text(digits)}"


def _gain(report: Report) -> str:
    gain = report.control_variate_gain
    if not 0 < gain < math.inf or len(report.per_example.log_prob) == report.test_examples:
        return ""
    times, what = (gain, "smaller") if gain >= 1 else (1 / gain, "larger")
    return f"; with the control variate the error is {times:.1f} × {what}"


def _stage(stage: StageSummary) -> str:
    return (
        f"{count(stage.steps, 'step')} of {stage.examples:,} × {stage.chains:,} and {stage.ais_chains:,} chains: "
        f"gap {stage.optimistic - stage.conservative:.2f}, {stage.within}"
    )


def _overspent(report: Report) -> str:
    """A word if the budget was too small for anything but the least stage."""
    budget, spent = report.settings.budget or math.inf, report.seconds["total"]
    if report.interrupted or len(report.stages) > 1 or spent <= budget:
        return ""
    return f"; that is too little: one small stage and what comes before it took {duration(spent)}"


def other_base_text(other: OtherBase) -> str:
    """What an evaluation from another base found, in one line."""
    missing = (
        f"; {decimals(other.missing, 2)} ± {decimals(max(other.missing_stderr, 0.01), 2)} nats are out of its reach"
        if other.missing > 0
        else ""
    )
    return (
        f"evaluated from base {other.base} too, which found less: log Z {decimals(other.log_z, 2)} ± "
        f"{decimals(other.log_z_stderr, 2)}, RAISE {decimals(other.conservative, 2)}, AIS "
        f"{decimals(other.optimistic, 2)}{missing}"
    )


def _tail(report: Report) -> str:
    return f", Pareto k {report.pareto_k:.2f}" if math.isfinite(report.pareto_k) else ""


def _pilot(report: Report) -> str:
    pilot = report.pilot
    if pilot is None:
        return ""
    worse = "" if pilot.helps else ", in which linear steps lost less"
    return f"; pilot of {pilot.chain_steps:,} chain-steps{worse}"


def _schedule(report: Report) -> str:
    return "linear" if report.pilot and not report.pilot.helps else report.settings.schedule


def count(n: int, what: str) -> str:
    """A number of things.

    >>> count(1, "model"), count(2000, "chain")
    ('1 model', '2,000 chains')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def interval_text(ends: tuple[float, float] | None, digits: int = 2) -> str:
    """An interval, its ends rounded outwards: what is printed holds too. Without an interval nothing.

    >>> interval_text((-86.413, -86.351)), interval_text((-math.inf, 1.0))
    ('-86.42 to -86.35', 'below 1.00')
    """
    if ends is None:
        return ""
    scale = 10**digits
    low, high = (
        decimals(op(end * scale) / scale + 0.0, digits) if math.isfinite(end) else None
        for op, end in zip((math.floor, math.ceil), ends, strict=True)
    )
    if low is None or high is None:
        return "not known" if low is high is None else f"below {high}" if low is None else f"above {low}"
    return f"{low} to {high}"


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str]) -> list[str]:
    """Lines of a table, its columns two spaces apart if they fit; those whose heads are in `left` are left-aligned."""
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    between = "  " if sum(widths) + 2 * (len(widths) - 1) <= _WIDTH else " "
    return [
        between.join(
            f"{cell:<{width}}" if name in left else f"{cell:>{width}}"
            for cell, width, name in zip(row, widths, head, strict=True)
        ).rstrip()
        for row in [head, *rows]
    ]


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as HTML; texts that come from files are escaped."""

    def line(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>"
