"""The figures that `report.plot(kind)` offers, one function for each kind; `figures` has the style."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from meltpoint.datasets.picture import side_by_side
from meltpoint.errors import InputError
from meltpoint.estimators.evidence import MODES
from meltpoint.results.figures import (
    CONSERVATIVE,
    EXACT,
    OPTIMISTIC,
    panels,
    plot_closing_in,
    plot_report,
    plot_spread,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from meltpoint.results.report import Report

PlotKind: TypeAlias = Literal[
    "overview", "bracket", "differences", "weights", "evidence", "friction", "samples"
]

_SIGMAS = 2.0
_LEAST_SIDE = 5


def plot(report: Report, kind: PlotKind, sweep: Sequence[Report]) -> Figure:
    """The figure of this kind; `sweep` are further reports with other numbers of steps, for the bracket."""
    if kind not in get_args(PlotKind):
        raise InputError(
            found=f"kind={kind!r} of a figure",
            expected=" or ".join(map(repr, get_args(PlotKind))),
            remedy="choose one of them",
        )
    if kind == "bracket":
        return plot_bracket(report, sweep)
    if sweep:
        raise InputError(
            found=f"a sweep with kind={kind!r}", expected="one with kind='bracket'", remedy="leave it out"
        )
    return _PLOTS[kind](report)


def plot_bracket(report: Report, sweep: Sequence[Report] = ()) -> Figure:
    """Both sides over the steps of a sweep or over the stages, or, of a single stage, the interval."""
    if sweep:
        return plot_closing_in([*sweep, report])
    if len(report.stages) > 1:
        return _plot_stages(report)
    return _plot_interval(report)


def _plot_stages(report: Report) -> Figure:
    stages = report.stages
    numbers = list(range(1, len(stages) + 1))
    with panels(1, width=5.0, height=3.2) as (figure, (axes,)):
        axes.plot(numbers, [s.optimistic for s in stages], **OPTIMISTIC, lw=1.4, label="AIS, optimistic")
        axes.plot(
            numbers, [s.conservative for s in stages], **CONSERVATIVE, lw=1.4, label="RAISE, conservative"
        )
        if report.exact:
            axes.axhline(report.exact.value, **EXACT, lw=1.4, label="exact")
        axes.set_xticks(numbers, [f"{k}\n{s.steps:,} steps" for k, s in enumerate(stages, 1)])
        axes.set_xlabel("stage")
        axes.set_ylabel("mean test log-probability, nats")
        axes.set_title(f"{report.model}: the two sides, stage by stage")
        axes.legend(loc="best")
    return figure


def _plot_interval(report: Report) -> Figure:
    rows = [("RAISE", CONSERVATIVE, report.conservative)]
    rows += [("exact", {"color": EXACT["color"], "marker": "D"}, report.exact)] if report.exact else []
    rows += [("AIS", OPTIMISTIC, report.optimistic)]
    low, high = report.between
    with panels(1, width=5.0, height=2.2) as (figure, (axes,)):
        for k, (_, style, estimate) in enumerate(rows):
            error = _SIGMAS * float(np.nan_to_num(estimate.stderr))
            marks = {"color": style["color"], "marker": style["marker"]}
            axes.errorbar(estimate.value, -k, xerr=error, capsize=2.5, lw=1.4, linestyle="", **marks)
        names = [name for name, _, _ in rows]
        if math.isfinite(low) and math.isfinite(high):
            axes.plot([low, high], [-len(rows)] * 2, color="0.45", lw=5, solid_capstyle="butt")
            names.append(f"between ({100 * report.settings.confidence:.12g}%)")
        axes.set_yticks([-k for k in range(len(names))], names)
        axes.set_ylim(-len(names) + 0.4, 0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
        axes.set_xlabel("mean test log-probability, nats (bars: ± 2 standard errors)")
        axes.set_title(report.model)
        _plain_numbers(axes)
    return figure


def plot_differences(report: Report) -> Figure:
    """By how much AIS lies above RAISE, example by example: in order of size, and as a histogram."""
    found = report.per_example_differences
    order = np.argsort(found)
    errors = np.nan_to_num(report.per_example.stderr)[order]
    with panels(2) as (figure, (left, right)):
        style = {"color": CONSERVATIVE["color"], "fmt": "o", "ms": 3, "lw": 0.7}
        left.errorbar(np.arange(len(found)), found[order], yerr=errors, **style)
        left.axhline(0, **EXACT, lw=1)
        left.set_xlabel("example, in order of the difference")
        left.set_ylabel("AIS − RAISE, nats")
        left.set_title(f"{len(found):,} test example{'' if len(found) == 1 else 's'}")
        finite = found[np.isfinite(found)]
        if len(finite):
            right.hist(finite, bins="auto", color=CONSERVATIVE["color"], alpha=0.6, edgecolor="white", lw=0.4)
            right.axvline(float(finite.mean()), **EXACT, lw=1.4, label=f"mean {finite.mean():.3g}")
            right.legend(loc="best")
        right.set_xlabel("AIS − RAISE, nats")
        right.set_ylabel("examples")
    return figure


def plot_weights(report: Report) -> Figure:
    """Spread of the log weights, and the share of Z that the heaviest AIS chains carry."""
    ais = report.ais_log_weights
    with panels(2) as (figure, (left, right)):
        plot_spread(report, left)
        if len(ais) > 1 and np.isfinite(ais.max()):
            ordered = np.sort(np.exp(ais - ais.max()))[::-1]
            shares = np.concatenate([[0.0], np.cumsum(ordered) / ordered.sum()])
            right.plot(
                np.linspace(0, 1, len(shares)), shares, color=OPTIMISTIC["color"], lw=1.6, label="AIS chains"
            )
            right.plot([0, 1], [0, 1], **EXACT, lw=1, label="equal weights")
            right.legend(loc="lower right")
        right.set_xlabel("share of the AIS chains, heaviest first")
        right.set_ylabel("share of Z they carry")
        k = f", Pareto k {report.pareto_k:.2f}" if math.isfinite(report.pareto_k) else ""
        right.set_title(f"ESS {report.ess:,.0f} of {len(ais):,}{k}")
    return figure


def plot_evidence(report: Report) -> Figure:
    """log Z from every start, with errors: each is a lower bound on average, the largest is nearest to the truth."""
    findings = report.evidence.findings if report.evidence else ()
    rows = [(f"{report.settings.base} (chosen)", report.log_z.value, report.log_z.stderr)]
    modes = report.evidence.modes if report.evidence else 0
    rows += [
        (f"{modes:,} modes" if f.name == MODES else f.name, f.log_z, f.log_z_stderr)
        for f in findings
        if math.isfinite(f.log_z)
    ]
    with panels(1, width=5.0, height=1.4 + 0.32 * len(rows)) as (figure, (axes,)):
        for k, (_, value, error) in enumerate(rows):
            style = OPTIMISTIC if k == 0 else CONSERVATIVE
            marks = {"color": style["color"], "marker": style["marker"], "linestyle": ""}
            axes.errorbar(value, -k, xerr=_SIGMAS * float(np.nan_to_num(error)), capsize=2.5, lw=1.4, **marks)
        axes.set_yticks([-k for k in range(len(rows))], [name for name, _, _ in rows])
        axes.set_ylim(-len(rows) + 0.4, 0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
        axes.set_xlabel("log Z, nats (bars: ± 2 standard errors)")
        axes.set_title("log Z from every start" if findings else "log Z; other starts were not asked")
        _plain_numbers(axes)
    return figure


def plot_friction(report: Report) -> Figure:
    """Friction along the path that the pilot measured, and the schedule that follows from it."""
    friction, steps = report.friction, report.settings.steps
    if friction is None:
        raise InputError(
            found="a report without friction",
            expected="one of an evaluation with schedule='friction'",
            remedy="leave schedule and steps to their defaults",
        )
    with panels(2) as (figure, (left, right)):
        root = np.sqrt(np.maximum(friction.friction, 0.0))
        left.stairs(root, friction.edges, fill=True, color=CONSERVATIVE["color"], alpha=0.6)
        left.set_xlabel("inverse temperature β")
        left.set_ylabel("√friction")
        left.set_xlim(0, 1)
        left.set_title("Friction along the path")
        right.plot(friction.betas(steps), color=CONSERVATIVE["color"], lw=1.6, label=friction.name)
        right.plot([0, steps], [0, 1], **EXACT, lw=1, label="equal steps")
        right.set_xlabel("step")
        right.xaxis.set_major_formatter("{x:,.0f}")
        right.set_ylabel("inverse temperature β")
        right.set_title("Schedule")
        right.legend(loc="best")
    return figure


def plot_samples(report: Report) -> Figure:
    """Samples of the model beside test examples: pictures of squares of units, otherwise rows of states."""
    shown = report.shown
    if shown is None or not len(shown.samples):
        raise InputError(
            found="a report without samples",
            expected="one of a finished evaluation, of a model with at most 4,000 visible units",
            remedy="use mp.sample(model, n)",
        )
    count = min(len(shown.samples), len(shown.states))
    low, high = float(shown.states.min()), float(shown.states.max())
    side = math.isqrt(shown.samples.shape[1])
    square = side * side == shown.samples.shape[1] and side >= _LEAST_SIDE
    with panels(2, height=3.3) as (figure, (left, right)):
        for axes, title, states in (
            (left, "samples of the model", shown.samples[:count]),
            (right, "test examples", shown.states[:count]),
        ):
            picture = states
            if square:
                picture = side_by_side(states.astype(np.float64).reshape(-1, side, side), 0.35 * high)
            axes.imshow(
                picture,
                cmap="gray_r",
                vmin=low,
                vmax=high,
                interpolation="nearest",
                aspect="equal" if square else "auto",
            )
            axes.set_title(title)
            axes.set_yticks([])
            if square:
                axes.set_xticks([])
                axes.axis("off")
            else:
                axes.set_xlabel("visible unit")
    return figure


def _plain_numbers(axes: Axes) -> None:
    """Whole numbers on the axis, without an offset that readers overlook."""
    axes.ticklabel_format(axis="x", useOffset=False, style="plain")


_PLOTS: dict[str, Callable[[Report], Figure]] = {
    "overview": plot_report,
    "differences": plot_differences,
    "weights": plot_weights,
    "evidence": plot_evidence,
    "friction": plot_friction,
    "samples": plot_samples,
}
