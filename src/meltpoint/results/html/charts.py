"""The charts of a report: the interval, stages, evidence, weights, examples, friction."""

import math

import numpy as np

from meltpoint.estimators.evidence import MODES
from meltpoint.layers.unit import Floats
from meltpoint.results.html.elements import Html
from meltpoint.results.html.svg import Axis, Chart, can_be_drawn, differ
from meltpoint.results.report import Report
from meltpoint.statistics.estimate import Estimate, decimals

_ROW = 30
_SIGMAS = 2.0


def number(value: float, digits: int = 2) -> str:
    """A number with a proper minus sign; what is not known is a dash."""
    if not math.isfinite(value):
        return "–"
    return decimals(round(float(value), digits) + 0.0, digits).replace("-", "\N{MINUS SIGN}")


def _margin(stderr: float) -> float:
    """Two standard errors, nothing where they are not known."""
    return _SIGMAS * stderr if can_be_drawn(stderr) else 0.0


def interval_chart(report: Report, name: str = "interval") -> Html:
    """Conservative, optimistic and exact value with errors, above the interval for the model's own value."""
    rows: list[tuple[str, str, Estimate]] = [("RAISE", "conservative", report.conservative)]
    if report.exact:
        rows.append(("exact", "exact", report.exact))
    rows.append(("AIS", "optimistic", report.optimistic))
    low, high = report.between
    ends = [end for end in report.between if can_be_drawn(end)]
    upper = (
        report.upper_bound if report.upper_bound is not None and can_be_drawn(report.upper_bound) else None
    )
    values = [*ends, *([] if upper is None else [upper])]
    for _, _, estimate in rows:
        margin = _margin(estimate.stderr)
        values += [estimate.value - margin, estimate.value + margin]
    x = Axis.around(values, "mean log-probability, nats per example")
    count = len(rows) + 1 + (upper is not None)
    chart = Chart(x, Axis(0, count, ""), height=54 + _ROW * count, y_ticks=False, left=92)
    level = count - 0.5
    for label, class_, estimate in rows:
        error = _margin(estimate.stderr)
        chart.segment((estimate.value - error, level), (estimate.value + error, level), f"error {class_}")
        shape = "triangle" if class_ == "optimistic" else "circle"
        chart.point(estimate.value, level, class_, shape, 5)
        chart.text(chart.left - 8, chart.py(level) + 4, label, "end")
        level -= 1
    left, right = (low if can_be_drawn(low) else x.low), (high if can_be_drawn(high) else x.high)
    if math.isfinite(high):
        chart.segment((left, level), (right, level), "thick exact")
    for end in ends:
        chart.segment((end, level - 0.28), (end, level + 0.28), "error exact")
    chart.text(chart.left - 8, chart.py(level) + 4, "between", "end")
    if upper is not None:
        level -= 1
        chart.segment((x.low, level), (upper, level), "error dashed exact")
        chart.segment((upper, level - 0.28), (upper, level + 0.28), "error exact")
        chart.text(chart.left - 8, chart.py(level) + 4, "at most", "end")
    described = "; ".join(f"{label} {number(e.value)} {e.error_text(e.digits)}" for label, _, e in rows)
    text = f"{described}; interval from {number(low)} to {number(high)}" + (
        "" if upper is None else f"; certified to be at most {number(upper)}"
    )
    return chart.render(
        name, "The interval for the model's mean log-probability, and the two estimates", text
    )


def stages_chart(report: Report) -> Html:
    """Both sides, stage by stage."""
    stages = report.stages
    numbers = [float(k + 1) for k in range(len(stages))]
    low, high = [s.conservative for s in stages], [s.optimistic for s in stages]
    exact = [report.exact.value] if report.exact else []
    chart = Chart(
        Axis(0.6, len(stages) + 0.4, "stage", whole=True),
        Axis.around([*low, *high, *exact], "nats per example"),
    )
    for value in exact:
        chart.segment((chart.x.low, value), (chart.x.high, value), "line dashed exact")
    for values, class_, shape in ((high, "optimistic", "triangle"), (low, "conservative", "circle")):
        chart.line(numbers, values, class_ + (" dashed" if class_ == "optimistic" else ""))
        for x, y in zip(numbers, values, strict=True):
            chart.point(x, y, class_, shape)
    chart.legend = [("optimistic", "AIS (triangles)"), ("conservative", "RAISE (circles)")]
    if exact:
        chart.legend.append(("exact", "exact"))
    text = "; ".join(
        f"{s.steps:,} steps: RAISE {number(s.conservative)}, AIS {number(s.optimistic)}" for s in stages
    )
    return chart.render("stages", "The two estimates, stage by stage", text)


def evidence_chart(report: Report) -> Html | None:
    """log Z from every base, with errors: each is a lower bound, so the largest is nearest to the truth."""
    if report.evidence is None:
        return None
    rows = [(f"{report.settings.base} (chosen)", report.log_z.value, report.log_z.stderr, "optimistic")]
    rows += [
        (
            MODES if finding.name == MODES else finding.name,
            finding.log_z,
            finding.log_z_stderr,
            "conservative",
        )
        for finding in report.evidence.findings
        if can_be_drawn(finding.log_z)
    ]
    errors = [_margin(error) for _, _, error, _ in rows]
    ends = [
        value + sign * error for (_, value, _, _), error in zip(rows, errors, strict=True) for sign in (-1, 1)
    ]
    chart = Chart(
        Axis.around(ends, "log Z, nats"),
        Axis(0, len(rows), ""),
        height=54 + _ROW * len(rows),
        y_ticks=False,
        left=120,
    )
    for k, ((label, value, _, class_), error) in enumerate(zip(rows, errors, strict=True)):
        level = len(rows) - k - 0.5
        chart.segment((value - error, level), (value + error, level), f"error {class_}")
        chart.point(value, level, class_, "triangle" if k == 0 else "circle", 5)
        chart.text(chart.left - 8, chart.py(level) + 4, label, "end")
    text = "; ".join(f"{label}: {number(value)}" for label, value, _, _ in rows)
    return chart.render("evidence", "log Z from every start", text)


def weights_chart(report: Report) -> Html | None:
    """Spread of the log weights of AIS, and of RAISE within examples."""
    ais, per = report.ais_log_weights, report.per_example.log_weights
    spreads: list[tuple[str, str, Floats]] = []
    if len(ais) > 1 and can_be_drawn(ais).all():
        spreads.append(("optimistic", "AIS", ais - ais.mean()))
    if per.size and per.shape[1] > 1 and can_be_drawn(per).all():
        within = (per - per.mean(axis=1, keepdims=True)).ravel()
        spreads.append(("conservative", "RAISE, within examples", within))
    spreads = [s for s in spreads if differ(float(s[2].min()), float(s[2].max()))]
    if not spreads:
        return None
    edges = np.histogram_bin_edges(np.concatenate([values for _, _, values in spreads]), bins=36)
    heights = [np.histogram(values, edges, density=True)[0] for _, _, values in spreads]
    top = max(float(h.max()) for h in heights)
    chart = Chart(
        Axis(float(edges[0]), float(edges[-1]), "log weight minus its mean, nats"),
        Axis(0.0, 1.08 * top, "density"),
    )
    for (class_, _, _), height in zip(spreads, heights, strict=True):
        for left, right, value in zip(edges[:-1], edges[1:], height, strict=True):
            if value > 0:
                chart.bar(float(left), float(right), float(value), class_)
    chart.legend = [(class_, label) for class_, label, _ in spreads]
    text = "; ".join(f"{label}: standard deviation {values.std():.2f}" for _, label, values in spreads)
    return chart.render("weights", "Histogram of log weights", text)


def tail_chart(report: Report) -> Html | None:
    """Which share of the estimate of Z the heaviest AIS chains carry."""
    ais = report.ais_log_weights
    if len(ais) < 2 or not can_be_drawn(ais.max()):
        return None
    ordered = np.sort(np.exp(ais - ais.max()))[::-1]
    shares = np.concatenate([[0.0], np.cumsum(ordered) / ordered.sum()])
    chains = np.arange(len(shares)) / (len(shares) - 1)
    keep = np.unique(np.linspace(0, len(shares) - 1, 120).astype(int))
    chart = Chart(
        Axis(0.0, 1.0, "share of the AIS chains, heaviest first"), Axis(0.0, 1.02, "share of Z they carry")
    )
    chart.segment((0, 0), (1, 1), "line dashed exact")
    chart.line(chains[keep].tolist(), shares[keep].tolist(), "optimistic")
    chart.legend = [("optimistic", "these chains"), ("exact", "equal weights (dashed)")]
    tenth = float(np.interp(0.1, chains, shares))
    return chart.render(
        "tail", "The tail of the AIS weights", f"The heaviest tenth of the chains carries {tenth:.0%} of Z."
    )


def examples_chart(report: Report) -> Html | None:
    """RAISE against AIS, example by example."""
    per = report.per_example
    optimistic = per.log_f - report.log_z.value
    finite = can_be_drawn(optimistic) & can_be_drawn(per.log_prob)
    if not finite.any():
        return None
    both = np.concatenate([optimistic[finite], per.log_prob[finite]])
    chart = Chart(
        Axis.around(both, "AIS log p(v), nats"), Axis.around(both, "RAISE log p(v), nats"), height=300
    )
    chart.segment((chart.x.low, chart.x.low), (chart.x.high, chart.x.high), "line dashed exact")
    for k in np.flatnonzero(finite)[:600]:
        x, y, error = float(optimistic[k]), float(per.log_prob[k]), float(np.nan_to_num(per.stderr[k]))
        if chart.py(y - error) - chart.py(y + error) > 7:  # hidden by the mark otherwise
            chart.segment((x, y - error), (x, y + error), "error conservative")
        chart.point(x, y, "conservative", size=2.5)
    chart.legend = [("conservative", "a test example"), ("exact", "equal (dashed)")]
    return chart.render(
        "examples",
        "RAISE against AIS, example by example",
        f"{int(finite.sum()):,} examples; AIS is above RAISE by {number(float(differences(report).mean()))} "
        "nats on average.",
    )


def differences(report: Report) -> Floats:
    """Differences (example,) between AIS and RAISE that can be drawn."""
    found = report.per_example_differences
    return found[can_be_drawn(found)]


def differences_chart(report: Report) -> Html | None:
    """Histogram of the differences between AIS and RAISE."""
    found = differences(report)
    if len(found) < 3 or not differ(float(found.min()), float(found.max())):
        return None
    counts, edges = np.histogram(found, bins=min(30, max(5, math.isqrt(len(found)) * 2)))
    chart = Chart(
        Axis(float(edges[0]), float(edges[-1]), "AIS minus RAISE, nats"),
        Axis(0.0, 1.08 * float(counts.max()), "examples"),
    )
    for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True):
        if count:
            chart.bar(float(left), float(right), float(count), "conservative")
    mean = float(found.mean())
    chart.segment((mean, 0), (mean, chart.y.high), "line dashed exact")
    return chart.render(
        "differences",
        "Differences between AIS and RAISE",
        f"From {number(float(found.min()))} to {number(float(found.max()))} nats, mean {number(mean)}.",
    )


def friction_chart(report: Report) -> Html | None:
    """Friction along the path."""
    friction = report.friction
    if friction is None or not can_be_drawn(friction.friction).all():
        return None
    root = np.sqrt(np.maximum(friction.friction, 0.0))
    chart = Chart(
        Axis(0.0, 1.0, "inverse temperature β"), Axis(0.0, 1.05 * max(float(root.max()), 1e-9), "√friction")
    )
    for left, right, value in zip(friction.edges[:-1], friction.edges[1:], root, strict=True):
        if value > 0:
            chart.bar(float(left), float(right), float(value), "conservative")
    where = float(friction.edges[:-1][np.argmax(root)])
    return chart.render("friction", "Friction along the path", f"Largest near β = {where:.3f}.")


def schedule_chart(report: Report) -> Html | None:
    """How the steps are spaced."""
    friction, steps = report.friction, report.settings.steps
    if friction is None or steps < 2 or report.settings.schedule != "friction":
        return None
    betas = friction.betas(steps)
    keep = np.unique(np.linspace(0, steps, 160).astype(int))
    chart = Chart(Axis(0.0, float(steps), "step"), Axis(0.0, 1.02, "inverse temperature β"))
    chart.segment((0, 0), (steps, 1), "line dashed exact")
    chart.line([float(k) for k in keep], betas[keep].tolist(), "conservative")
    chart.legend = [("conservative", "this schedule"), ("exact", "equal steps (dashed)")]
    half = float(np.interp(0.5, betas, np.linspace(0, 1, steps + 1)))
    return chart.render("schedule", "The schedule", f"β = 0.5 is reached after {half:.0%} of the steps.")
