"""The sections of the page. Each is None where the report has nothing for it."""

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from meltpoint.estimators.evidence import MODES
from meltpoint.results.citation import bibtex, command_line, latex_line, paper_sentence, python_call
from meltpoint.results.duration import duration
from meltpoint.results.html import charts, pictures
from meltpoint.results.html.charts import number
from meltpoint.results.html.elements import Html, element, table
from meltpoint.results.html.svg import can_be_drawn
from meltpoint.results.html.words import estimate_text, with_error
from meltpoint.results.report import Report
from meltpoint.results.shown import worst
from meltpoint.results.text import count, other_base_text

_WORST = 8

Row: TypeAlias = Sequence[object]


class Section(NamedTuple):
    """A section with its anchor, its title, and its HTML."""

    name: str
    title: str
    html: Html


def _section(name: str, title: str, *children: object) -> Section:
    heading = element("h2", title, id=f"{name}-heading")
    return Section(
        name,
        title,
        element("section", heading, *children, id=name, aria_labelledby=f"{name}-heading"),
    )


def _figure(drawn: Html | None, caption: str) -> Html | None:
    return None if drawn is None else element("figure", drawn, element("figcaption", caption))


def _columns(*children: Html | None) -> Html:
    return element("div", *children, class_="columns")


def answer_section(report: Report) -> Section:
    """The interval as a picture, and the numbers behind it."""
    s = report.settings
    rows: list[Row] = [
        [
            f"conservative: RAISE, N = {report.particles:,}",
            estimate_text(report.conservative),
            report.conservative.covers,
        ]
    ]
    if report.exact:
        rows.append(["exact", estimate_text(report.exact), report.exact.covers])
    rows += [
        ["optimistic: AIS", estimate_text(report.optimistic), report.optimistic.covers],
        ["gap", estimate_text(report.gap), report.gap.covers],
        ["log Z", estimate_text(report.log_z), report.log_z.covers],
    ]
    condition = (
        f"if no start missed a mode: {count(report.evidence.starts, 'start')} were tried"
        if report.evidence
        else "provided that the chains missed no mode: other starts were not asked"
    )
    sure = f"{100 * s.confidence:.12g}%"
    claims: list[str] = []
    if any(map(math.isfinite, report.between)):
        claims.append(
            f"The interval holds the model's mean log-probability with {sure} confidence, {condition}."
        )
    if report.upper_bound is not None and can_be_drawn(report.upper_bound):
        bound = math.ceil(100 * report.upper_bound) / 100
        claims.append(
            f"At most {number(bound)} with {sure} confidence, whatever was missed: a certificate without conditions."
        )
    certificate = str(report.certificate).replace("-", "\N{MINUS SIGN}")
    claims.append(f"Certificate: {certificate} (p_N is the annealing model with N particles).")
    return _section(
        "answer",
        "The answer",
        _columns(
            _figure(
                charts.interval_chart(report),
                "Marks: estimates with two standard errors. Band: interval for the model's own value. Dashed: "
                "upper bound that holds whatever was missed."
                if report.upper_bound is not None
                else "Marks: estimates with two standard errors. Band: interval for the model's own value.",
            ),
            element("div", *(element("p", claim) for claim in claims)),
        ),
        table("Nats per example; ± one standard error", ["", "value", "the error covers"], rows, texts={2}),
    )


def stages_section(report: Report) -> Section | None:
    """The two sides over the stages of a run with a gap or a budget."""
    if not report.stages:
        return None
    rows: list[Row] = [
        [
            k + 1,
            f"{stage.steps:,}",
            f"{stage.examples:,} × {stage.chains:,}",
            f"{stage.ais_chains:,}",
            number(stage.conservative),
            number(stage.optimistic),
            stage.within.removeprefix("within "),
            f"{stage.ess:,.0f}",
        ]
        for k, stage in enumerate(report.stages)
    ]
    head = ["stage", "steps", "examples × chains", "AIS chains", "RAISE", "AIS", "within", "effective chains"]
    s = report.settings
    asked = "" if s.gap is None else f" to ± {s.gap:g} nats"
    chart = (
        _figure(
            charts.stages_chart(report),
            "The sides close in as the stages grow.",
        )
        if len(report.stages) > 1
        else None
    )
    return _section(
        "stages",
        "The two sides over the stages",
        element(
            "p",
            f"Asked for: at most {duration(s.budget or 0.0)}{asked}. The stage with the smallest interval is reported.",
        ),
        chart,
        table("Stages, in nats per example", head, rows),
    )


def evidence_section(report: Report) -> Section:
    """What other starts said of missed modes."""
    evidence = report.evidence
    if evidence is None:
        text = (
            "Other starts were not asked, so that nothing is known about modes that all chains have missed."
        )
        return _section("evidence", "Evidence of every start", element("p", text))
    rows: list[Row] = [[f"{report.settings.base} (chosen)", estimate_text(report.log_z), "", ""]]
    for finding in evidence.findings:
        name = f"{count(evidence.modes, 'mode')}" if finding.name == MODES else f"base {finding.name}"
        rows.append(
            [
                name,
                with_error(finding.log_z, finding.log_z_stderr),
                f"{finding.reach:.1%}" if math.isfinite(finding.reach) else "–",
                f"{number(max(0.0, finding.nats), 3)} ± {number(max(finding.nats_error, 0.001), 3)}",
            ]
        )
    return _section(
        "evidence",
        "Evidence of every start",
        element(
            "p",
            "log Z from each start is a lower bound on average, so that the largest is nearest to the truth. The "
            "states that other starts found were melted back along the chosen path: what it does not reach is a "
            "missed mode.",
        ),
        element("p", f"It was {other_base_text(report.other_base)}.") if report.other_base else None,
        _columns(
            _figure(charts.evidence_chart(report), "log Z from every start, with two standard errors."),
            table(
                f"Starts, {evidence.chain_steps:,} chain-steps in all",
                ["start", "log Z", "reached", "missing, nats"],
                rows,
            ),
        ),
    )


def weights_section(report: Report) -> Section | None:
    """The spread of the weights and their tail."""
    histogram, tail = charts.weights_chart(report), charts.tail_chart(report)
    chains = len(report.ais_log_weights)
    ess = f"{report.ess:,.0f}" if math.isfinite(report.ess) else "not known"
    k = (
        f"{report.pareto_k:.2f} (below 0.7 the standard error can be believed)"
        if math.isfinite(report.pareto_k)
        else "not known"
    )
    return _section(
        "weights",
        "Weights and their tail",
        element(
            "p",
            f"Effective sample size: {ess}{f' of {chains:,} AIS chains' if chains else ''}. Pareto k of the tail: {k}.",
        ),
        _columns(
            _figure(
                histogram, "Narrow is good: if weights spread over many nats, few chains carry the estimate."
            ),
            _figure(tail, "The nearer to the dashed line, the more evenly the chains carry the estimate."),
        )
        if histogram or tail
        else None,
    )


def examples_section(report: Report) -> Section:
    """Differences per example, and the examples on which the two sides are farthest apart."""
    per, found = report.per_example, report.per_example_differences
    rows: list[Row] = []
    shown: list[Html] = []
    images = report.shown is not None and pictures.image_side(report.shown.states.shape[1]) is not None
    for k in worst(found)[:_WORST]:
        position = int(per.positions[k])
        rows.append(
            [
                str(position),
                with_error(per.log_prob[k], per.stderr[k]),
                number(per.log_f[k] - report.log_z.value),
                number(found[k]),
            ]
        )
        state = report.shown.state_of(position) if report.shown else None
        if state is not None:
            alt = f"Test example {position}"
            drawn = pictures.picture(state, alt) if images else pictures.as_text(state)
            caption = element("figcaption", f"{alt}: {number(found[k])} nats apart")
            shown.append(element("li", element("figure", drawn, caption)))
    gallery = [
        element("h3", "The examples with the largest differences"),
        element("ul", *shown, class_="gallery" if images else "gallery sequences"),
    ]
    return _section(
        "examples",
        "Example by example",
        element(
            "p",
            f"RAISE was run for {len(per.log_prob):,} of {count(report.test_examples, 'test example')}, "
            f"{count(report.settings.chains, 'chain')} each.",
        ),
        _columns(
            _figure(
                charts.examples_chart(report), "Below the line: RAISE is lower, as it should be on average."
            ),
            _figure(
                charts.differences_chart(report), "Dashed: the mean. One example far out may carry the gap."
            ),
        ),
        *(gallery if shown else ()),
        table(
            "Largest differences between AIS and RAISE, nats",
            ["position in the test set", "RAISE log p(v)", "AIS log p(v)", "AIS minus RAISE"],
            rows,
        ),
    )


def path_section(report: Report) -> Section:
    """Friction and schedule."""
    s, pilot = report.settings, report.pilot
    kind = "linear" if pilot and not pilot.helps else s.schedule
    text = f"Base {s.base}, {s.steps:,} {kind} steps, {s.precision} precision."
    if pilot is not None:
        text += f" A pilot of {pilot.chain_steps:,} chain-steps measured the friction."
        text += "" if pilot.helps else " Linear steps lost less in it, so they were used."
    friction, schedule = charts.friction_chart(report), charts.schedule_chart(report)
    return _section(
        "path",
        "Friction and schedule",
        element("p", text),
        _columns(
            _figure(friction, "Steps are needed where this is high: the chains fall behind there."),
            _figure(schedule, "Flat parts get many steps."),
        )
        if friction or schedule
        else None,
    )


def samples_section(report: Report) -> Section | None:
    """Samples of the model beside data."""
    shown = report.shown
    if shown is None or not len(shown.samples) or not len(shown.states):
        return None
    n = min(len(shown.samples), len(shown.states))
    samples, data = shown.samples[:n], shown.states[:n]
    images = pictures.image_side(samples.shape[1]) is not None
    show = pictures.mosaic if images else lambda states, _alt: pictures.texts(states)
    return _section(
        "samples",
        "Samples of the model beside data",
        _columns(
            element(
                "figure",
                show(samples, f"{n} samples of the model"),
                element("figcaption", f"{n} samples of the model (seed {report.settings.seed})."),
            ),
            element("figure", show(data, f"{n} test examples"), element("figcaption", f"{n} test examples.")),
        ),
    )


def paper_section(report: Report) -> Section:
    """A sentence, a line of LaTeX, and references."""
    return _section(
        "paper",
        "In a paper",
        element("h3", "A sentence"),
        element("pre", paper_sentence(report)),
        element("h3", "A row of a table in LaTeX: model, RAISE, AIS, interval"),
        element("pre", latex_line(report)),
        element("h3", "References in BibTeX"),
        element("pre", bibtex(report)),
    )


def repeat_section(report: Report) -> Section:
    """Everything needed to repeat the evaluation."""
    s = report.settings
    stages = {name: t for name, t in report.seconds.items() if name != "total" and t >= 0.05}
    spent = ", ".join(f"{name} {duration(t)}" for name, t in stages.items())
    total = duration(report.seconds.get("total", math.nan)) if "total" in report.seconds else "not known"
    names = {"model": "model", "test": "test set", "train": "training set"}
    about: list[Row] = [["model", report.model]]
    about += [[f"name of the {names.get(key, key)}", name] for key, name in report.names.items()]
    about += [
        [f"fingerprint of the {key}", element("code", text)] for key, text in report.fingerprints.items()
    ]
    about += [
        ["settings", ", ".join(f"{name} {value}" for name, value in vars(s).items() if value is not None)],
        ["time", f"{total}{f' ({spent})' if spent else ''}"],
        ["versions", ", ".join(f"{name} {version}" for name, version in report.versions.items())],
    ]
    return _section(
        "repeat",
        "To repeat it",
        element(
            "p",
            "The same model, data, settings and seed give the same log weights, whatever the number of threads.",
        ),
        element("h3", "In Python"),
        element("pre", python_call(report)),
        element("h3", "In a terminal"),
        element("pre", command_line(report)),
        table("What was evaluated, and how", ["", ""], about, texts={1}, class_="texts"),
    )
