"""The document of a report: its sections of facts, tables, charts and pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from meltpoint.estimators.evidence import MODES
from meltpoint.progress import duration
from meltpoint.results import citation, words
from meltpoint.results import report_charts as charts
from meltpoint.results.document import (
    Block,
    Code,
    Document,
    Estimates,
    Fact,
    Gallery,
    Note,
    Picture,
    Section,
    Table,
)
from meltpoint.results.report import Report
from meltpoint.results.shown import worst
from meltpoint.results.words import count, number, percent, with_error

_WORST = 8  # examples that are listed
_SHOWN = 0.005  # nats, below which a difference would be printed as 0.00


def report_document(report: Report) -> Document:
    """The report to read. What it lacks, such as stages, is left out."""
    # Weights may be infinite: what follows from them is shown as unknown, or not drawn.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sections = [Section.of(name, title, *make(report)) for name, title, make in _SECTIONS]
    return Document(
        title=f"{citation.subject(report)}, {report.unit}",
        trusted=report.trusted,
        verdict=report.conclusion,
        sections=[section for section in sections if section.blocks],
        answer=citation.answer_text(report),
        interrupted=report.interrupted,
    )


def _answer(report: Report) -> Sequence[Block | None]:
    s, sure, finished = report.settings, percent(report.settings.confidence), len(report.ais_log_weights)
    particles = f", N = {report.particles:,}" if report.particles > 1 else ""
    rows = [(f"conservative (RAISE{particles})", report.conservative)]
    rows += [(report.exact_name, report.exact)] if report.exact else []
    rows += [("optimistic (AIS)", report.optimistic), ("gap", report.gap)]
    digits = max(each.digits for each in (report.gap, report.known) if each)
    condition = "provided that the chains missed no mode"
    if report.evidence:
        condition = f"if no start missed a mode: {words.starts_text(report.evidence)}"
    between = words.between_text(
        citation.known_ends(report),
        report.gap.digits,
        f"with {sure} confidence, {condition}",
        "no interval: two chains and two examples are the least that has an error",
    )
    at_most = ""
    if report.upper_bound is not None and math.isfinite(report.upper_bound):
        most = words.bound(report.upper_bound, up=True)
        at_most = f"mean log p <= {most} with {sure} confidence, whatever was missed"
    annealing = "p_N is the annealing model with N particles"
    if "p_N" not in report.certificate.quantity:
        annealing = "p_ann is the annealing model"
    error = f"± {report.log_f_error:.3f}" if math.isfinite(report.log_f_error) else "error unknown"
    done = f"{len(report.per_example.log_prob):,} of {count(s.examples, 'example')}"
    if finished < s.ais_chains:
        done = f"{finished:,} of {count(s.ais_chains, 'AIS chain')} and {done}"
    return [
        charts.interval_chart(report),
        Estimates(rows, digits, "Nats per example; ± one standard error"),
        Fact("between", between),
        Fact("at most", at_most),
        Fact(
            "certificate",
            f"{report.certificate} (estimated: {number(report.certified_estimate)}), whatever the number of steps and "
            f"chains; {annealing}",
        ),
        Fact("log f", "" if report.log_f_exact else f"estimated too, {error}: AIS rests on two estimates"),
        Fact("interrupted", f"after {done}" if report.interrupted else ""),
    ]


def _stages(report: Report) -> Sequence[Block | None]:
    if not report.stages:
        return []
    s, spent, stages = report.settings, report.seconds.get("total", 0.0), report.stages
    asked = words.asked_text(s.budget, s.gap)
    if not report.interrupted and len(stages) == 1 and spent > (s.budget or math.inf):
        took = duration(spent)
        asked += f"; that is too little: one small stage and what comes before it took {took}"
    sizes = "; ".join(
        f"{count(stage.steps, 'step')} of {stage.examples:,} × {stage.chains:,} and {stage.ais_chains:,} chains: "
        f"gap {stage.optimistic - stage.conservative:.2f}, {stage.within}"
        for stage in stages
    )
    head = ["stage", "steps", "examples × chains", "AIS chains", "RAISE", "AIS", "within", "effective chains"]
    rows = [
        [
            f"{k}",
            f"{stage.steps:,}",
            f"{stage.examples:,} × {stage.chains:,}",
            f"{stage.ais_chains:,}",
            number(stage.conservative),
            number(stage.optimistic),
            stage.within.removeprefix("within "),
            number(stage.ess, 0),
        ]
        for k, stage in enumerate(stages, 1)
    ]
    return [
        charts.stages_chart(report) if len(stages) > 1 else None,
        Fact("asked", asked),
        Fact("stages", sizes),
        Note("The stage with the smallest interval is reported."),
        Table(head, rows, "Stages, in nats per example"),
    ]


def _evidence(report: Report) -> Sequence[Block | None]:
    evidence, other = report.evidence, report.other_base
    found_less = Fact("other base", "")
    if other is not None:
        missing = f"; {with_error(other.missing, other.missing_stderr)} nats are out of its reach"
        log_z = with_error(other.log_z, other.log_z_stderr)
        found_less = Fact(
            "other base",
            f"evaluated from base {other.base} too, which found less: log Z {log_z}, RAISE "
            f"{number(other.conservative)}, AIS {number(other.optimistic)}{missing if other.missing > 0 else ''}",
        )
    if evidence is None:
        untried = "Other starts were not tried: nothing is known about modes that all chains have missed."
        return [Note(untried), found_less]
    names = {MODES: words.modes_text(evidence)}
    rows = [[f"{report.settings.base} (chosen)", str(report.log_z), "", ""]]
    rows += [
        [
            names.get(finding.name, f"base {finding.name}"),
            with_error(finding.log_z, finding.log_z_stderr),
            f"{finding.reach:.1%}" if math.isfinite(finding.reach) else "–",
            with_error(max(0.0, finding.nats), finding.nats_error, 3),
        ]
        for finding in evidence.findings
    ]
    tried = [
        f"base {finding.name} (log Z {with_error(finding.log_z, finding.log_z_stderr)}, a lower bound)"
        for finding in evidence.findings
        if finding.name != MODES
    ]
    tried.append(names[MODES])
    missed, most = evidence.missed(report.ais_log_weights), evidence.strongest
    lacking = number(max(0.01, most.nats if most else 0.0))
    said = f"the states found from there, melted back, show no more than {lacking} nats of log Z missing"
    if missed is not None:
        said = f"{with_error(missed.nats, missed.nats_error)} nats of log Z are missing ({missed.name})"
    return [
        Note(
            "log Z from each start is a lower bound on average, so that the largest is nearest to the truth. The "
            "states that other starts found were melted back along the chosen path: what it does not reach is a "
            "missed mode."
        ),
        charts.evidence_chart(report),
        Fact("evidence", f"{' and '.join(tried)}: {said}; {evidence.chain_steps:,} chain-steps"),
        found_less,
        Table(["start", "log Z", "reached", "missing, nats"], rows, "Starts"),
    ]


def _weights(report: Report) -> Sequence[Block | None]:
    ais_chains = min(report.settings.ais_chains, len(report.ais_log_weights))
    certain = str(report.log_z_certificate).removeprefix("log Z ")
    weights = words.weights_text(report.ess, ais_chains, report.pareto_k)
    return [
        Fact("log Z", f"{report.log_z} ({certain}); {weights}"),
        Note(
            f"The error of log Z covers {report.log_z.covers}. With a Pareto k below 0.7 it can be believed."
        ),
        charts.weights_chart(report),
        charts.tail_chart(report),
    ]


def _examples(report: Report) -> Sequence[Block | None]:
    per, found, shown = report.per_example, report.per_example_differences, report.shown
    gain, said = report.control_variate_gain, ""
    if 0 < gain < math.inf and len(per.log_prob) < report.test_examples:
        times, what = (gain, "smaller") if gain >= 1 else (1 / gain, "larger")
        said = f"; with the control variate the error is {times:.1f} × {what}"
    rows, pictures = [], []
    for k in [k for k in worst(found)[:_WORST] if abs(found[k]) >= _SHOWN]:
        position = int(per.positions[k])
        ais = number(per.log_f[k] - report.log_z.value)
        rows.append([str(position), with_error(per.log_prob[k], per.stderr[k]), ais, number(found[k])])
        state = shown.state_of(position) if shown else None
        if state is not None:
            name = f"Test example {position}"
            pictures.append(Picture(state[np.newaxis], name, f"{name}: {number(found[k])} nats apart"))
    head = ["position in the test set", "RAISE log p(v)", "AIS log p(v)", "AIS minus RAISE"]
    sizes = f"{count(len(per.log_prob), 'example')} × {count(report.settings.chains, 'chain')}"
    return [
        Fact("RAISE", f"{sizes}{said}"),
        charts.examples_chart(report),
        charts.differences_chart(report),
        Gallery("The examples with the largest differences", pictures),
        Table(head, rows, "Largest differences between AIS and RAISE, nats") if rows else None,
    ]


def _path(report: Report) -> Sequence[Block | None]:
    s, pilot = report.settings, report.pilot
    kind, said = s.schedule, ""
    if pilot is not None:
        kind, worse = (s.schedule, "") if pilot.helps else ("linear", ", in which linear steps lost less")
        said = f"; pilot of {pilot.chain_steps:,} chain-steps{worse}"
    return [
        Fact("path", f"base {s.base}, {count(s.steps, f'{kind} step')}, {s.precision} precision{said}"),
        charts.friction_chart(report),
        charts.schedule_chart(report),
    ]


def _paper(report: Report) -> Sequence[Block | None]:
    return [
        Code("A sentence", citation.paper_sentence(report)),
        Code("A row of a table in LaTeX: model, RAISE, AIS, interval", citation.latex_line(report)),
        Code("References in BibTeX", citation.bibtex(report)),
    ]


def _repeat(report: Report) -> Sequence[Block | None]:
    names = {"model": "model", "test": "test set", "train": "training set"}
    given = {name: value for name, value in vars(report.settings).items() if value is not None}
    rows = [
        ["model", report.model],
        *([f"name of the {names.get(key, key)}", name] for key, name in report.names.items()),
        *([f"fingerprint of the {key}", text] for key, text in report.fingerprints.items()),
        ["settings", ", ".join(f"{name} {value}" for name, value in given.items())],
    ]
    own = "base" in report.fingerprints or report.settings.schedule == "given"
    return [
        *words.run_facts(report.settings.seed, report.seconds, report.versions),
        Note(
            "The same model, data, settings and seed give the same log weights, whatever the number of threads."
        ),
        Code("In Python", citation.python_call(report)),
        # A base or betas of the reader's own are objects, which no option takes.
        None if own else Code("In a terminal", citation.command_line(report)),
        Table(["", ""], rows, "What was evaluated, and how", words=(0, 1)),
    ]


_SECTIONS = (  # anchor, title, blocks
    ("answer", "The answer", _answer),
    ("stages", "The two sides over the stages", _stages),
    ("evidence", "Evidence of every start", _evidence),
    ("weights", "Weights and their tail", _weights),
    ("examples", "Example by example", _examples),
    ("path", "Friction and schedule", _path),
    ("samples", "Samples of the model beside data", charts.sample_pictures),
    ("paper", "In a paper", _paper),
    ("repeat", "To repeat it", _repeat),
)
