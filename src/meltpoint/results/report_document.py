"""The document of a report: its sections of facts, tables, charts and pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from meltpoint.errors import shortened
from meltpoint.estimators.evidence import MODES
from meltpoint.results.citation import (
    answer_text,
    bibtex,
    command_line,
    known_ends,
    latex_line,
    paper_sentence,
    python_call,
    subject,
)
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
from meltpoint.results.report_charts import (
    differences_chart,
    evidence_chart,
    examples_chart,
    friction_chart,
    interval_chart,
    sample_pictures,
    schedule_chart,
    stages_chart,
    tail_chart,
    weights_chart,
)
from meltpoint.results.shown import worst
from meltpoint.results.words import (
    asked_text,
    between_text,
    bound,
    count,
    duration,
    modes_text,
    number,
    percent,
    run_facts,
    starts_text,
    weights_text,
    with_error,
)

_WORST = 8  # examples that are listed
_LONGEST, _MOST = 300, 20  # of texts from outside


def report_document(report: Report) -> Document:
    """The report to read. What it lacks, such as stages, is left out."""
    report = _with_short_texts(report)
    # Weights may be infinite: what follows from them is shown as unknown, or not drawn.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sections = [Section.of(name, title, *make(report)) for name, title, make in _SECTIONS]
    return Document(
        title=f"{subject(report)}, {report.unit}",
        trusted=report.trusted,
        verdict=str(report.verdict),
        sections=[section for section in sections if section.blocks],
        answer=answer_text(report),
        warnings=[] if report.misreading is None else [report.misreading],
        interrupted=report.interrupted,
    )


def _answer(report: Report) -> Sequence[Block | None]:
    sure, particles = percent(report.settings.confidence), f", N = {report.particles:,}"
    rows = [
        (f"conservative (RAISE{particles if report.particles > 1 else ''})", report.conservative),
        ("optimistic (AIS)", report.optimistic),
        ("gap", report.gap),
    ]
    if report.exact:
        rows.insert(1, (report.exact_name, report.exact))
    annealing = "p_N is the annealing model with N particles"
    if "p_N" not in report.certificate.quantity:
        annealing = "p_ann is the annealing model"
    upper, at_most = report.upper_bound, ""
    if upper is not None and math.isfinite(upper):
        at_most = f"mean log p <= {bound(upper, up=True)} with {sure} confidence, whatever was missed"
    error = f"± {report.log_f_error:.3f}" if math.isfinite(report.log_f_error) else "error unknown"
    s = report.settings
    done = f"{len(report.per_example.log_prob):,} of {count(s.examples, 'example')}"
    if len(report.ais_log_weights) < s.ais_chains:
        done = f"{len(report.ais_log_weights):,} of {count(s.ais_chains, 'AIS chain')} and {done}"
    return [
        interval_chart(report),
        Estimates(rows, report.gap.digits, "Nats per example; ± one standard error"),
        Fact("between", _between(report)),
        Fact("at most", at_most),
        Fact(
            "certificate",
            f"{report.certificate} (estimated: {number(report.certified_estimate)}), whatever the number of steps and "
            f"chains; {annealing}",
        ),
        Fact("log f", "" if report.log_f_exact else f"estimated too, {error}: AIS rests on two estimates"),
        Fact("interrupted", f"after {done}" if report.interrupted else ""),
    ]


def _between(report: Report) -> str:
    condition = (
        f"if no start missed a mode: {starts_text(report.evidence)}"
        if report.evidence
        else "provided that the chains missed no mode"
    )
    sure = f"with {percent(report.settings.confidence)} confidence, {condition}"
    least = "no interval: two chains and two examples are the least that has an error"
    return between_text(known_ends(report), report.gap.digits, sure, least)


def _stages(report: Report) -> Sequence[Block | None]:
    if not report.stages:
        return []
    s, spent = report.settings, report.seconds.get("total", 0.0)
    asked = asked_text(s.budget, s.gap)
    if not report.interrupted and len(report.stages) == 1 and spent > (s.budget or math.inf):
        asked += f"; that is too little: one small stage and what comes before it took {duration(spent)}"
    told = "; ".join(
        f"{count(stage.steps, 'step')} of {stage.examples:,} × {stage.chains:,} and {stage.ais_chains:,} chains: "
        f"gap {stage.optimistic - stage.conservative:.2f}, {stage.within}"
        for stage in report.stages
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
        for k, stage in enumerate(report.stages, 1)
    ]
    return [
        stages_chart(report) if len(report.stages) > 1 else None,
        Fact("asked", asked),
        Fact("stages", told),
        Note("The stage with the smallest interval is reported."),
        Table(head, rows, "Stages, in nats per example"),
    ]


def _evidence(report: Report) -> Sequence[Block | None]:
    evidence, other = report.evidence, report.other_base
    turned = None
    if other is not None:
        missing = f"; {with_error(other.missing, other.missing_stderr)} nats are out of its reach"
        turned = Fact(
            "other base",
            f"evaluated from base {other.base} too, which found less: log Z "
            f"{with_error(other.log_z, other.log_z_stderr)}, RAISE {number(other.conservative)}, AIS "
            f"{number(other.optimistic)}{missing if other.missing > 0 else ''}",
        )
    if evidence is None:
        return [
            Note("Other starts were not tried: nothing is known about modes that all chains have missed."),
            turned,
        ]
    tried = [f"base {finding.name}" for finding in evidence.findings if finding.name != MODES]
    tried += [modes_text(evidence)] if evidence.modes else []
    missed, most = evidence.missed(report.ais_log_weights), evidence.strongest
    if missed is not None:
        said = f"{with_error(missed.nats, missed.nats_error)} nats of log Z are missing ({missed.name})"
    else:
        said = f"they agree within {number(max(0.01, most.nats if most else 0.0))} nats of log Z"
    rows = [[f"{report.settings.base} (chosen)", str(report.log_z), "", ""]]
    rows += [
        [
            modes_text(evidence) if finding.name == MODES else f"base {finding.name}",
            with_error(finding.log_z, finding.log_z_stderr),
            f"{finding.reach:.1%}" if math.isfinite(finding.reach) else "–",
            with_error(max(0.0, finding.nats), finding.nats_error, 3),
        ]
        for finding in evidence.findings
    ]
    return [
        Note(
            "log Z from each start is a lower bound on average, so that the largest is nearest to the truth. The "
            "states that other starts found were melted back along the chosen path: what it does not reach is a "
            "missed mode."
        ),
        evidence_chart(report),
        Fact("evidence", f"{' and '.join(tried)}: {said}; {evidence.chain_steps:,} chain-steps"),
        turned,
        Table(["start", "log Z", "reached", "missing, nats"], rows, "Starts"),
    ]


def _weights(report: Report) -> Sequence[Block | None]:
    ais_chains = min(report.settings.ais_chains, len(report.ais_log_weights))
    certain = str(report.log_z_certificate).removeprefix("log Z ")
    return [
        Fact(
            "log Z",
            f"{report.log_z} ({certain}); {weights_text(report.ess, ais_chains, report.pareto_k)}",
        ),
        Note(
            f"The error of log Z covers {report.log_z.covers}. With a Pareto k below 0.7 it can be believed."
        ),
        weights_chart(report),
        tail_chart(report),
    ]


def _examples(report: Report) -> Sequence[Block | None]:
    per, found, shown = report.per_example, report.per_example_differences, report.shown
    gain, said = report.control_variate_gain, ""
    if 0 < gain < math.inf and len(per.log_prob) < report.test_examples:
        times, what = (gain, "smaller") if gain >= 1 else (1 / gain, "larger")
        said = f"; with the control variate the error is {times:.1f} × {what}"
    rows, pictures = [], []
    for k in worst(found)[:_WORST]:
        position = int(per.positions[k])
        sides = with_error(per.log_prob[k], per.stderr[k]), number(per.log_f[k] - report.log_z.value)
        rows.append([str(position), *sides, number(found[k])])
        state = shown.state_of(position) if shown else None
        if state is not None:
            name = f"Test example {position}"
            pictures.append(Picture(state[np.newaxis], name, f"{name}: {number(found[k])} nats apart"))
    head = ["position in the test set", "RAISE log p(v)", "AIS log p(v)", "AIS minus RAISE"]
    sizes = f"{count(len(per.log_prob), 'example')} × {count(report.settings.chains, 'chain')}"
    return [
        Fact("RAISE", f"{sizes}{said}"),
        examples_chart(report),
        differences_chart(report),
        Gallery("The examples with the largest differences", pictures),
        Table(head, rows, "Largest differences between AIS and RAISE, nats"),
    ]


def _path(report: Report) -> Sequence[Block | None]:
    s, pilot = report.settings, report.pilot
    kind, said = s.schedule, ""
    if pilot is not None:
        kind = s.schedule if pilot.helps else "linear"
        worse = "" if pilot.helps else ", in which linear steps lost less"
        said = f"; pilot of {pilot.chain_steps:,} chain-steps{worse}"
    return [
        Fact("path", f"base {s.base}, {count(s.steps, f'{kind} step')}, {s.precision} precision{said}"),
        friction_chart(report),
        schedule_chart(report),
    ]


def _paper(report: Report) -> Sequence[Block | None]:
    return [
        Code("A sentence", paper_sentence(report)),
        Code("A row of a table in LaTeX: model, RAISE, AIS, interval", latex_line(report)),
        Code("References in BibTeX", bibtex(report)),
    ]


def _repeat(report: Report) -> Sequence[Block | None]:
    names = {"model": "model", "test": "test set", "train": "training set"}
    rows = [["model", report.model]]
    rows += [[f"name of the {names.get(key, key)}", name] for key, name in report.names.items()]
    rows += [[f"fingerprint of the {key}", text] for key, text in report.fingerprints.items()]
    settings = {name: value for name, value in vars(report.settings).items() if value is not None}
    rows.append(["settings", ", ".join(f"{name} {value}" for name, value in settings.items())])
    return [
        *run_facts(report.settings.seed, report.seconds, report.versions),
        Note(
            "The same model, data, settings and seed give the same log weights, whatever the number of threads."
        ),
        Code("In Python", python_call(report)),
        Code("In a terminal", command_line(report)),
        Table(["", ""], rows, "What was evaluated, and how", words=(0, 1)),
    ]


def _with_short_texts(report: Report) -> Report:
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


_SECTIONS = (  # anchor, title, blocks
    ("answer", "The answer", _answer),
    ("stages", "The two sides over the stages", _stages),
    ("evidence", "Evidence of every start", _evidence),
    ("weights", "Weights and their tail", _weights),
    ("examples", "Example by example", _examples),
    ("path", "Friction and schedule", _path),
    ("samples", "Samples of the model beside data", sample_pictures),
    ("paper", "In a paper", _paper),
    ("repeat", "To repeat it", _repeat),
)
