"""A bracket of log Z as text, fit for a terminal of any width, and as a figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from meltpoint.estimators.evidence import MODES
from meltpoint.estimators.log_z_sides import EXACT_SAMPLES
from meltpoint.results.duration import duration
from meltpoint.results.figures import CONSERVATIVE, EXACT, OPTIMISTIC, styled_figure
from meltpoint.results.log_z import LogZBracket, LogZStage, stage_of
from meltpoint.results.text import count, run_details, wrapped
from meltpoint.statistics.estimate import decimals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 79
"""Columns of the text where the terminal is not narrower."""

_LEAST_WIDTH = 40
_HEADROOM = 0.35  # of the height of the axes, for the legend


def render_log_z(bracket: LogZBracket, width: int = WIDTH) -> str:
    """The bracket as lines of text of at most so many columns."""
    width = max(_LEAST_WIDTH, min(WIDTH, width))
    label = 22 if width >= 70 else 13
    clamped = f", {count(bracket.clamped, 'unit')} clamped" if bracket.clamped else ""
    digits = bracket.gap.digits
    rows = [
        ("lower (AIS)", bracket.lower.value_text(digits), bracket.lower.error_text(digits)),
        ("upper (melted back)", _value(bracket.upper.value, digits), bracket.upper.error_text(digits)),
        ("gap", _value(bracket.gap.value, digits), bracket.gap.error_text(digits)),
    ]
    if bracket.exact is not None:
        rows.insert(1, ("exact", decimals(bracket.exact, max(4, digits)), ""))
    places = max(len(value.partition(".")[0]) for _, value, _ in rows)
    lines = [
        *wrapped(f"log Z of {bracket.model}{clamped}, in nats", width),
        "─" * width,
        *(f"{name:<24}{_aligned(value, places)} {error}".rstrip() for name, value, error in rows),
        "",
        *wrapped(str(bracket.verdict), width),
        "",
    ]
    for name, text in log_z_details(bracket).items():
        lines += wrapped(text, width, name, label)
    return "\n".join(lines)


def log_z_details(bracket: LogZBracket) -> dict[str, str]:
    """What is said besides the two sides and the verdict, by name."""
    s = bracket.settings
    sure = f"with {100 * s.confidence:.12g}% confidence"
    details = {
        "between": _between(bracket, sure),
        "rests on": bracket.rests_on,
        "certified": _certified(bracket, sure),
        "other starts": _others(bracket),
        "weights": f"effective sample size {bracket.lower.ess:,.0f} of "
        f"{count(len(bracket.lower.log_weights), 'chain')}"
        + (f", Pareto k {bracket.pareto_k:.2f}" if math.isfinite(bracket.pareto_k) else ""),
        "path": f"base {s.base}, {count(s.steps, 'step')}, {s.precision} precision",
    }
    if s.budget is not None:
        details["asked"] = f"within {duration(s.budget)}" + (
            "" if s.gap is None else f", to ± {s.gap:g} nats"
        )
    if len(bracket.stages) > 1:
        details["stages"] = "; ".join(_stage(stage) for stage in bracket.stages)
    if bracket.interrupted:
        details["interrupted"] = "by Ctrl-C: made of what was finished by then"
    details |= run_details(s.seed, bracket.seconds, bracket.versions)
    return {name: text for name, text in details.items() if text}


def _between(bracket: LogZBracket, sure: str) -> str:
    low, high = bracket.between
    digits = bracket.gap.digits
    if math.isfinite(low) and math.isfinite(high):
        return f"{decimals(low, digits)} and {decimals(high, digits)} {sure}"
    if math.isfinite(low):
        return f"above {decimals(low, digits)} {sure}; no upper end is known"
    return "no interval: two chains are the least that has an error"


def _certified(bracket: LogZBracket, sure: str) -> str:
    low = bracket.lower_certificate.bound
    if not math.isfinite(low):
        return ""
    # Rounded outwards: what is printed is certified too.
    text = f"log Z > {decimals(math.floor(100 * low) / 100, 2)} {sure}"
    if bracket.certified_upper is not None and math.isfinite(bracket.certified_upper):
        text += f", and log Z < {decimals(math.ceil(100 * bracket.certified_upper) / 100, 2)}"
    return f"{text}, whatever was missed"


def _others(bracket: LogZBracket) -> str:
    evidence = bracket.evidence
    named = [finding for finding in evidence.findings if finding.name not in (MODES, EXACT_SAMPLES)]
    texts = [
        f"base {finding.name} {decimals(finding.log_z, 2)} ± {decimals(max(finding.log_z_stderr, 0.01), 2)}"
        for finding in named
        if finding.name != bracket.settings.base and math.isfinite(finding.log_z_stderr)
    ]
    texts += [count(evidence.modes, "mode")] if evidence.modes else []
    return ", ".join(texts)


def _stage(stage: LogZStage) -> str:
    within = stage.within if math.isfinite(stage.half_width) else "no upper end"
    return f"{count(stage.steps, 'step')} of {stage.chains:,} chains from base {stage.base}: {within}"


def _value(value: float, digits: int) -> str:
    return decimals(round(value, digits) + 0.0, digits) if math.isfinite(value) else "unknown"


def _aligned(value: str, places: int) -> str:
    whole = value.partition(".")[0]
    return " " * (places - len(whole)) + value


def plot_log_z(bracket: LogZBracket) -> Figure:
    """Left: both sides over the steps of all stages. Right: log weights of both directions, which should overlap."""
    with styled_figure(7.0, 3.0) as figure:
        left, right = figure.subplots(1, 2)
        _plot_sides(bracket, left)
        _plot_weights(bracket, right)
    return figure


def _plot_sides(bracket: LogZBracket, axes: Axes) -> None:
    stages = sorted(bracket.stages or (stage_of(bracket),), key=lambda stage: stage.steps)
    steps = [stage.steps for stage in stages]
    for name, style, values, errors in (
        ("melted back, upper", CONSERVATIVE, [s.upper for s in stages], [s.upper_stderr for s in stages]),
        ("AIS, lower", OPTIMISTIC, [s.lower for s in stages], [s.lower_stderr for s in stages]),
    ):
        known = [k for k, value in enumerate(values) if math.isfinite(value)]
        axes.errorbar(
            [steps[k] for k in known],
            [values[k] for k in known],
            yerr=2 * np.nan_to_num([errors[k] for k in known]),
            capsize=2.5,
            lw=1.4,
            label=name,
            **style,
        )
    if bracket.exact is not None:
        shown = f"{bracket.exact:.2f}".replace("-", "\N{MINUS SIGN}")
        axes.axhline(bracket.exact, **EXACT, lw=1.4, label=f"exact, {shown}")
    low, high = bracket.between
    if math.isfinite(low) and math.isfinite(high):
        axes.axhspan(low, high, color="#888888", alpha=0.25, lw=0, label="interval")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter("")
    axes.ticklabel_format(axis="y", useOffset=False)
    if len(set(steps)) == 1:
        axes.set_xticks(steps[:1])
        axes.set_xlim(steps[0] / 2, steps[0] * 2)
    axes.set_xlabel("annealing steps")
    axes.set_ylabel("log Z, nats")
    axes.set_title("Two sides; bars: ± 2 standard errors")
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + _HEADROOM * (top - bottom))
    axes.legend(loc="upper left", ncols=2, columnspacing=1.0, handlelength=1.6)


def _plot_weights(bracket: LogZBracket, axes: Axes) -> None:
    axes.set_xlabel("log weight minus the lower side, nats")
    axes.set_ylabel("density")
    axes.set_title("Log weights of both directions")
    spreads = [
        ("AIS, forwards", OPTIMISTIC, "", bracket.lower.log_weights - bracket.lower.value),
        ("melted back", CONSERVATIVE, "////", bracket.log_reverse_weights - bracket.lower.value),
    ]
    spreads = [spread for spread in spreads if len(spread[-1]) > 1 and np.ptp(spread[-1]) > 0]
    if not spreads:
        axes.text(0.5, 0.5, "none: all weights are equal", ha="center", transform=axes.transAxes)
        return
    edges = np.histogram_bin_edges(np.concatenate([values for *_, values in spreads]), bins=40).tolist()
    for name, style, hatch, values in spreads:
        fill = {"alpha": 0.45, "facecolor": style["color"], "edgecolor": style["color"], "hatch": hatch}
        axes.hist(values, bins=edges, density=True, histtype="stepfilled", label=name, **fill)
    axes.set_ylim(top=1.35 * axes.get_ylim()[1])
    axes.legend(loc="upper left")
