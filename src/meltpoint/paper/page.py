"""The page of the documentation: words from a template, every number from the results."""

from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path
from string import Template

from meltpoint.estimators.csl import EVERY
from meltpoint.paper.cells import CURVES, Cell, Plan
from meltpoint.paper.figures import draw
from meltpoint.paper.findings import findings
from meltpoint.paper.publish import write_text
from meltpoint.paper.published import STEPS
from meltpoint.paper.rows import table1_rows, table2_rows
from meltpoint.paper.store import Record, Store
from meltpoint.paper.tables import markdown
from meltpoint.report.duration import duration
from meltpoint.report.figures import save_figure

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


def publish_page(plan: Plan, store: Store, docs: Path) -> list[Path]:
    """Write paper.md and its figures into the folder of the documentation; gives the paths."""
    paths = [docs / "figures" / f"{name}.png" for name in CURVES if _computed(plan.figure(name), store)]
    write_text(docs / "paper.md", page(plan, store))
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        save_figure(draw(path.stem, plan, store), path)
    return [docs / "paper.md", *paths]


def page(plan: Plan, store: Store) -> str:
    """The page as Markdown."""
    profile = plan.profile
    records = [record for cell in _unique(plan.all()) if (record := store.read(cell))]
    template = Template((files("meltpoint.paper") / "page.md").read_text(encoding="utf-8"))
    return template.substitute(
        steps=f"{profile.steps:,}",
        paper_steps=f"{STEPS:,}",
        long_steps=f"{profile.long_steps:,}",
        examples=profile.examples,
        chains=profile.chains,
        ais_chains=f"{profile.ais_chains:,}",
        csl_chains=f"{profile.ais_chains:,}",
        csl_every=EVERY,
        seed=profile.seed,
        test_examples="the whole test set"
        if profile.test_examples is None
        else f"{profile.test_examples:,} test examples",
        missing=_missing(plan, store),
        table1=markdown(table1_rows(plan, store)).strip(),
        table2=markdown(table2_rows(plan, store)).strip(),
        findings=_findings(plan, store),
        figures=_figures(plan, store),
        commands=_commands(plan, store),
        threads=_span(str(record["threads"]) for record in records),
        versions=_span(_versions(record) for record in records),
    )


def _findings(plan: Plan, store: Store) -> str:
    words = {True: "yes", False: "**no**", None: "not computed yet"}
    lines = ["| finding | ours | numbers |", "|---|---|---|"]
    lines += [f"| {f.claim} | {words[f.holds]} | {f.evidence} |" for f in findings(plan, store)]
    return "\n".join(lines)


def _figures(plan: Plan, store: Store) -> str:
    parts = []
    for name in CURVES:
        shown = (
            f"![{name}](figures/{name}.png)" if _computed(plan.figure(name), store) else "*Not computed yet.*"
        )
        parts.append(f"### {name}\n\n{_CAPTIONS[name]}\n\n{shown}")
    return "\n\n".join(parts)


def _commands(plan: Plan, store: Store) -> str:
    commands = {"table1": plan.table1(), "table2": plan.table2()}
    commands |= {f"figure {name}": plan.figure(name) for name in CURVES}
    commands["all"] = _unique(plan.all())
    lines = ["| command | cells | computing time |", "|---|---:|---:|"]
    for command, cells in commands.items():
        unique = _unique([cells])
        done = [record for cell in unique if (record := store.read(cell))]
        count = f"{len(unique)}" if len(done) == len(unique) else f"{len(done)} of {len(unique)}"
        seconds = sum(record["seconds"]["total"] for record in done)
        lines.append(f"| `meltpoint paper {command}` | {count} | {duration(seconds)} |")
    return "\n".join(lines)


def _missing(plan: Plan, store: Store) -> str:
    cells = _unique(plan.all())
    absent = [cell for cell in cells if store.read(cell) is None]
    if not absent:
        return "All cells of both tables and of all figures are computed."
    told = f"**{len(absent)} of {len(cells)} cells are not computed yet**, and shown as — below"
    if len(absent) > _LISTED:
        return f"{told}; `meltpoint paper all --dry-run` lists them."
    return f"{told}:\n\n" + "\n".join(f"- `{cell.name}`" for cell in absent)


def _computed(cells: Sequence[Cell], store: Store) -> bool:
    """Whether there is anything of a figure's curves to show."""
    return any(store.read(cell) for cell in cells if cell.method in ("ais", "raise"))


def _unique(groups: Sequence[Sequence[Cell]]) -> list[Cell]:
    return list(dict.fromkeys(chain.from_iterable(groups)))


def _span(values: Iterable[str]) -> str:
    """The values that occur, each once."""
    return " or ".join(dict.fromkeys(values)) or "nothing yet"


def _versions(record: Record) -> str:
    return ", ".join(f"{name} {version}" for name, version in record["versions"].items())
