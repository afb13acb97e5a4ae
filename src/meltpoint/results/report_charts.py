"""The charts of a report, for its page and for `plot(kind)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from meltpoint.errors import InputError
from meltpoint.estimators.evidence import MODES
from meltpoint.results import charts
from meltpoint.results.charts import Axis, Chart, Mark, Row
from meltpoint.results.document import Picture
from meltpoint.results.report import Report
from meltpoint.results.words import count, number, percent
from meltpoint.statistics.estimate import Estimate

_RAISE, _AIS = "RAISE, conservative", "AIS, optimistic"
_LABEL = "mean test log-probability, nats"


def interval_chart(report: Report) -> Chart:
    """Conservative, exact and optimistic value, above the interval and the bound that holds whatever was missed."""
    most = report.upper_bound
    rows = [
        Row("RAISE", {"conservative": report.conservative}),
        Row(report.exact_name, {"exact": report.exact}) if report.exact else None,
        Row("AIS", {"optimistic": report.optimistic}),
        Row(f"between ({percent(report.settings.confidence)})", intervals={"thick": report.between}),
    ]
    caption = "Marks: estimates with two standard errors. Band: interval for the model's own value."
    if most is not None and charts.can_be_drawn(most):
        rows.append(Row("at most", intervals={"dashed": (-np.inf, most)}))
        caption += " Dashed: upper bound that holds whatever was missed."
    return charts.rows_chart(
        "interval", f"{report.model}: both sides", _LABEL, [*filter(None, rows)], caption
    )


def stages_chart(report: Report) -> Chart:
    """Both sides, stage by stage."""
    stages = report.stages
    numbers = [float(k) for k in range(1, len(stages) + 1)]
    unknown = [np.nan] * len(stages)
    places = [(k, f"{k:.0f}: {stage.steps:,} steps") for k, stage in zip(numbers, stages, strict=True)]
    return charts.sides_chart(
        f"{report.model}: the two sides, stage by stage",
        Axis("stage", 0.6, len(stages) + 0.4, places),
        _LABEL,
        numbers,
        [
            (_AIS, "optimistic", [stage.optimistic for stage in stages], unknown),
            (_RAISE, "conservative", [stage.conservative for stage in stages], unknown),
        ],
        report.exact.value if report.exact else None,
        caption="The sides close in as the stages grow.",
    )


def closing_in_chart(reports: Sequence[Report]) -> Chart:
    """Both sides over the numbers of steps of a sweep."""
    reports = sorted(reports, key=lambda report: report.settings.steps)
    steps = [report.settings.steps for report in reports]
    ais, raised = [report.optimistic for report in reports], [report.conservative for report in reports]
    return charts.sides_chart(
        f"{reports[0].model}, base {reports[0].settings.base}; bars: ± 2 standard errors",
        charts.steps_axis(steps),
        _LABEL,
        steps,
        [
            (_AIS, "optimistic", [side.value for side in ais], [side.stderr for side in ais]),
            (_RAISE, "conservative", [side.value for side in raised], [side.stderr for side in raised]),
        ],
        next((report.exact.value for report in reports if report.exact), None),
    )


def evidence_chart(report: Report) -> Chart:
    """log Z from every start: each is a lower bound on average, so the largest is nearest to the truth."""
    evidence = report.evidence
    rows = [Row(f"{report.settings.base} (chosen)", {"optimistic": report.log_z})]
    for finding in evidence.findings if evidence else ():
        if charts.can_be_drawn(finding.log_z):
            name = count(evidence.weighed, "mode") if evidence and finding.name == MODES else finding.name
            found = Estimate(finding.log_z, finding.log_z_stderr, "lower bound", "")
            rows.append(Row(name, {"conservative": found}))
    title = "log Z from every start" if evidence else "log Z; other starts were not tried"
    caption = "log Z from every start, with two standard errors."
    return charts.rows_chart("evidence", title, "log Z, nats", rows, caption)


def weights_chart(report: Report) -> Chart:
    """Spread of the log weights of AIS, and of RAISE within examples."""
    ais, per = report.ais_log_weights, report.per_example.log_weights
    return charts.spread_chart(
        "weights",
        "Spread of the log weights",
        "log weight minus its mean, nats",
        [
            ("AIS", "optimistic", ais - ais.mean() if ais.size else ais),
            ("RAISE, within examples", "conservative", (per - per.mean(axis=1, keepdims=True)).ravel())
            if per.size
            else ("RAISE", "conservative", np.zeros(0)),
        ],
        "Narrow is good: if weights spread over many nats, few chains carry the estimate.",
    )


def tail_chart(report: Report) -> Chart | None:
    """The share of Z that the heaviest chains carry."""
    log_weights = report.ais_log_weights
    if len(log_weights) < 2 or not charts.can_be_drawn(log_weights.max()):
        return None
    ordered = np.sort(np.exp(log_weights - log_weights.max()))[::-1]
    shares = np.concatenate([[0.0], np.cumsum(ordered) / ordered.sum()])
    tenth = np.interp(0.1, np.linspace(0, 1, len(shares)), shares)
    return Chart(
        "tail",
        f"ESS {number(report.ess, 0)} of {count(len(log_weights), 'AIS chain')}",
        Axis("share of the AIS chains, heaviest first", 0.0, 1.0),
        Axis("share of Z they carry", 0.0, 1.02),
        [
            Mark("dashed", [0, 1], [0, 1], "exact", "equal weights"),
            charts.curve(shares, 1.0, "optimistic", "these chains"),
        ],
        f"The heaviest tenth of the chains carries {tenth:.0%} of Z.",
        "The nearer to the dashed line, the more evenly the chains carry the estimate.",
    )


def examples_chart(report: Report) -> Chart | None:
    """RAISE against AIS, example by example."""
    per = report.per_example
    label = count(len(per.log_prob), "test example")
    points = Mark("points", per.log_f - report.log_z.value, per.log_prob, "conservative", label, per.stderr)
    ais, raised, _ = points.places
    if not len(ais):
        return None
    x = Axis("AIS log p(v), nats").around(ais, raised)
    ends = [x.low, x.high]
    return Chart(
        "examples",
        "RAISE against AIS",
        x,
        Axis("RAISE log p(v), nats", x.low, x.high),
        [Mark("dashed", ends, ends, "exact", "equal"), points],
        f"{count(len(ais), 'example')}; AIS is above RAISE by {number(float(np.mean(ais - raised)))} nats on average.",
        "Below the line: RAISE is lower, as it should be on average. Bars: two standard errors.",
    )


def differences_chart(report: Report) -> Chart | None:
    """Histogram of the differences between AIS and RAISE."""
    found = report.per_example_differences
    bins = charts.histogram(found)
    if bins is None:
        return None
    found = found[charts.can_be_drawn(found)]
    mean = float(found.mean())
    return Chart(
        "differences",
        "Differences between AIS and RAISE",
        Axis("AIS minus RAISE, nats"),
        Axis("examples", 0.0),
        [bins, charts.upright(mean, f"mean {number(mean)}")],
        f"From {number(found.min())} to {number(found.max())} nats, mean {number(mean)}.",
        "Dashed: the mean. One example far out may carry the gap.",
    )


def ordered_chart(report: Report) -> Chart:
    """Differences per example in order of size."""
    order = np.argsort(report.per_example_differences, kind="stable")
    found, errors = report.per_example_differences[order], report.per_example.stderr[order]
    return Chart(
        "ordered",
        count(len(found), "test example"),
        Axis("example, in order of the difference"),
        Axis("AIS minus RAISE, nats"),
        [charts.across(0.0), Mark("points", np.arange(len(found)), found, "conservative", stderr=errors)],
        "Differences between AIS and RAISE in order of size.",
    )


def friction_chart(report: Report) -> Chart | None:
    """Friction along the path."""
    friction = report.friction
    if friction is None or not charts.can_be_drawn(friction.friction).all():
        return None
    root = np.sqrt(np.maximum(friction.friction, 0.0))
    return Chart(
        "friction",
        "Friction along the path",
        Axis("inverse temperature β", 0.0, 1.0),
        Axis("√friction", 0.0),
        [charts.bars(friction.edges, root, "conservative")],
        f"Largest near β = {friction.edges[:-1][np.argmax(root)]:.3f}.",
        "Steps are needed where this is high: the chains fall behind there.",
    )


def schedule_chart(report: Report) -> Chart | None:
    """How the steps are spaced."""
    friction, steps = report.friction, report.settings.steps
    if friction is None or steps < 2 or report.settings.schedule != "friction":
        return None
    betas = friction.betas(steps)
    half = float(np.interp(0.5, betas, np.linspace(0, 1, steps + 1)))
    return Chart(
        "schedule",
        "The schedule",
        Axis("step", 0.0, float(steps)),
        Axis("inverse temperature β", 0.0, 1.02),
        [
            Mark("dashed", [0, steps], [0, 1], "exact", "equal steps"),
            charts.curve(betas, steps, "conservative", "this schedule"),
        ],
        f"β = 0.5 is reached after {half:.0%} of the steps.",
        "Flat parts get many steps.",
    )


def panels(report: Report, kind: str, sweep: Sequence[Report]) -> list[Chart | Picture]:
    """What the figure of this kind shows; `sweep` are reports with other numbers of steps, for the bracket."""
    if kind not in _PANELS:
        kinds = " or ".join(map(repr, _PANELS))
        raise InputError(found=f"kind={kind!r} of a figure", expected=kinds, remedy="choose one of them")
    if sweep and kind != "bracket":
        found, expected = f"a sweep with kind={kind!r}", "one with kind='bracket'"
        raise InputError(found=found, expected=expected, remedy="leave it out")
    shown = [closing_in_chart([*sweep, report])] if sweep else _PANELS[kind](report)
    found = [panel for panel in shown if panel is not None]
    if not found:
        expected, remedy = _NEEDED.get(kind, ("a finished report", "print it"))
        raise InputError(found=f"a report without {kind} to draw", expected=expected, remedy=remedy)
    return found


def sample_pictures(report: Report) -> list[Picture]:
    """As many samples of the model as test examples, none where either is missing."""
    shown = report.shown
    n = min(len(shown.samples), len(shown.states)) if shown else 0
    if shown is None or n == 0:
        return []
    samples, data = f"{n} samples of the model", f"{n} test examples"
    return [
        Picture(shown.samples[:n], samples, f"{samples} (seed {report.settings.seed})."),
        Picture(shown.states[:n], data, f"{data}."),
    ]


_PANELS: dict[str, Callable[[Report], Sequence[Chart | Picture | None]]] = {
    "overview": lambda report: [examples_chart(report), weights_chart(report)],
    "bracket": lambda report: [stages_chart(report) if len(report.stages) > 1 else interval_chart(report)],
    "differences": lambda report: [ordered_chart(report), differences_chart(report)],
    "weights": lambda report: [weights_chart(report), tail_chart(report)],
    "evidence": lambda report: [evidence_chart(report)],
    "friction": lambda report: [friction_chart(report), schedule_chart(report)],
    "samples": sample_pictures,
}
_NEEDED = {
    "friction": ("an evaluation with schedule='friction'", "leave schedule and steps to their defaults"),
    "samples": (
        "a finished evaluation of a model with at most 4,000 visible units",
        "use mp.sample(model, n)",
    ),
}
