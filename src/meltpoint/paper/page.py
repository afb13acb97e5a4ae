"""The page of the documentation: text from a template, every number from the results."""

import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from meltpoint.estimators.csl import EVERY
from meltpoint.paper.cells import CURVES, TABLES, Cell, Plan, unique
from meltpoint.paper.figures import draw
from meltpoint.paper.findings import SIGMAS, findings, row_label
from meltpoint.paper.models import PAPER_STEPS
from meltpoint.paper.results import Record, Results, write_text
from meltpoint.paper.tables import all_rows, markdown, pipes, shown_estimate, table_rows
from meltpoint.results.duration import duration
from meltpoint.results.figures import save_figure

_LISTED = 30

_CAPTIONS = {
    "log-likelihood-rbms": "RAISE of all RBMs over the number of steps, from the uniform base.",
    "cd1-500": "AIS and RAISE of mnistCD1-500, from both base distributions.",
    "cd1-20-dbr": "mnistCD1-20 from data base rates, with its exact value. Right: independent samples of the RBM, and "
    "of the annealing model with 10 steps.",
    "omni-pcd-1000": "omniPCD-1000 from the uniform base. Right: training examples, and independent samples of the "
    "annealing model.",
    "dbn": "The MNIST DBM and DBN from the uniform base; points below 100 steps, if any, are in the CSV file alone.",
}


def write_page(plan: Plan, results: Results, docs: Path) -> list[Path]:
    """Write paper.md and its figures into the folder of the documentation; gives the paths."""
    paths = [docs / "figures" / f"{name}.png" for name in CURVES if _computed(plan.figure(name), results)]
    write_text(docs / "paper.md", page(plan, results))
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        save_figure(draw(path.stem, plan, results), path)
    return [docs / "paper.md", *paths]


def page(plan: Plan, results: Results) -> str:
    """The page as Markdown."""
    profile = plan.profile
    records = [record for cell in unique(plan.all()) if (record := results.read(cell))]
    template = Template((files("meltpoint.paper") / "page.md").read_text(encoding="utf-8"))
    return template.substitute(
        steps=f"{profile.steps:,}",
        paper_steps=f"{PAPER_STEPS:,}",
        long_steps=f"{profile.long_steps:,}",
        examples=profile.examples,
        chains=profile.chains,
        ais_chains=f"{profile.ais_chains:,}",
        csl_chains=f"{profile.ais_chains:,}",
        csl_every=EVERY,
        long_chains=profile.long_chains or profile.chains,
        long_ais_chains=f"{profile.long_ais_chains or profile.ais_chains:,}",
        seed=profile.seed,
        test_examples="the whole test set"
        if profile.test_examples is None
        else f"{profile.test_examples:,} test examples",
        missing=_missing(plan, results),
        forward=f"{profile.forward:,}",
        n_particles=f"{profile.forward + 1:,}",
        **{table: markdown(table_rows(table, plan, results)).strip() for table in TABLES},
        particles=_particles(plan, results),
        findings=_findings(plan, results),
        figures=_figures(plan, results),
        commands=_commands(plan, results),
        threads=_span(str(record["threads"]) for record in records),
        versions=_span(_versions(record) for record in records),
    )


def _findings(plan: Plan, results: Results) -> str:
    words = {True: "yes", False: "**no**", None: "not computed yet"}
    lines = ["| finding | ours | numbers |", "|---|---|---|"]
    lines += [f"| {f.claim} | {words[f.holds]} | {f.evidence} |" for f in findings(plan, results)]
    return "\n".join(lines)


def _particles(plan: Plan, results: Results) -> str:
    """The gaps with one and with N particles side by side, where both are computed, and what they come to."""
    n = f"N = {plan.profile.forward + 1:,}"
    lines = [pipes(["model", "base", "gap, N = 1", f"gap, {n}"]), "|---|---|---:|---:|"]
    pairs = []
    for row in all_rows(plan, results):
        for base, found in row.bases.items():
            one, many = found.gap, found.particles_gap
            if one is None or many is None:
                continue
            pairs.append((one, many))
            shown = [
                shown_estimate(gap, few) for gap, few in ((one, found.degenerate), (many, found.few_forward))
            ]
            lines.append(pipes([row_label(row), base, *shown]))
    if not pairs:
        return "*Not computed yet.*"
    closer = sum(abs(many.value) < abs(one.value) for one, many in pairs)
    above = sum(one.value < -SIGMAS * one.stderr for one, _ in pairs)
    text = (
        f"With {n} the gap is the smaller one in {closer} of {len(pairs)} cases. With N = 1 RAISE lies above AIS by "
        f"more than {SIGMAS:.0f} standard errors in {above} of them. With N particles it cannot lie above the AIS "
        f"estimate of its own forward chains by more than log N/(N - 1) = {math.log1p(1 / plan.profile.forward):.4f} "
        "nats and, for deep models, the noise of estimating log f."
    )
    return f"{text}\n\n" + "\n".join(lines)


def _figures(plan: Plan, results: Results) -> str:
    parts = []
    for name in CURVES:
        shown = (
            f"![{name}](figures/{name}.png)"
            if _computed(plan.figure(name), results)
            else "*Not computed yet.*"
        )
        parts.append(f"### {name}\n\n{_CAPTIONS[name]}\n\n{shown}")
    return "\n\n".join(parts)


def _commands(plan: Plan, results: Results) -> str:
    commands: dict[str, list[Cell]] = {table: plan.table(table) for table in TABLES}
    commands |= {f"figure {name}": plan.figure(name) for name in CURVES}
    commands["all"] = unique(plan.all())
    lines = ["| command | cells | computing time |", "|---|---:|---:|"]
    for command, cells in commands.items():
        asked = unique([cells])
        done = [record for cell in asked if (record := results.read(cell))]
        count = f"{len(asked)}" if len(done) == len(asked) else f"{len(done)} of {len(asked)}"
        seconds = sum(record["seconds"]["total"] for record in done)
        lines.append(f"| `meltpoint paper {command}` | {count} | {duration(seconds)} |")
    return "\n".join(lines)


def _missing(plan: Plan, results: Results) -> str:
    cells = unique(plan.all())
    absent = [cell for cell in cells if results.read(cell) is None]
    if not absent:
        return "All cells of both tables and of all figures are computed."
    text = f"**{len(absent)} of {len(cells)} cells are not computed yet**, and shown as — below"
    if len(absent) > _LISTED:
        return f"{text}; `meltpoint paper all --dry-run` lists them."
    return f"{text}:\n\n" + "\n".join(f"- `{cell.name}`" for cell in absent)


def _computed(cells: Sequence[Cell], results: Results) -> bool:
    """Whether there is anything of a figure's curves to show."""
    return any(results.read(cell) for cell in cells if cell.method in ("ais", "raise"))


def _span(values: Iterable[str]) -> str:
    """The values that occur, each once."""
    return " or ".join(dict.fromkeys(values)) or "nothing yet"


def _versions(record: Record) -> str:
    return ", ".join(f"{name} {version}" for name, version in record["versions"].items())
