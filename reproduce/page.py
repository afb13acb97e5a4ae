"""The page of the documentation: text from a template, every number from the results."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from string import Template

from reproduce.cells import CURVES, TABLES, Cell, Plan, unique
from reproduce.figures import draw, image
from reproduce.findings import SIGMAS, findings
from reproduce.models import PAPER_STEPS
from reproduce.results import Record, Results, write_file
from reproduce.tables import all_rows, markdown, pipes, table_rows

_LISTED = 30


def write_page(plan: Plan, results: Results, docs: Path) -> list[Path]:
    """Write paper.md and its figures into the folder of the documentation; gives the paths."""
    figures = {name: docs / "figures" / f"{name}.png" for name in CURVES if _computed(name, plan, results)}
    return [
        write_file(docs / "paper.md", page(plan, results)),
        *(write_file(path, image(draw(name, plan, results))) for name, path in figures.items()),
    ]


def page(plan: Plan, results: Results) -> str:
    p = plan.profile
    records = _records(unique(plan.all()), results)
    shown = {
        name.replace("-", "_"): f"![{name}](figures/{name}.png)"
        if _computed(name, plan, results)
        else "*Not computed yet.*"
        for name in CURVES
    }
    numbers = asdict(p) | {
        "paper_steps": PAPER_STEPS,
        "long_chains": p.long_chains or p.chains,
        "long_ais_chains": p.long_ais_chains or p.ais_chains,
        "forward": p.forward,
        "n_particles": p.forward + 1,
    }
    shown |= {name: f"{number:,}" for name, number in numbers.items() if isinstance(number, int)}
    of_test = "the whole test set" if p.test_examples is None else f"{p.test_examples:,} test examples"
    return Template(Path(__file__).with_name("page.md").read_text(encoding="utf-8")).substitute(
        shown | {"test_examples": of_test},
        missing=_missing(plan, results),
        **{table: markdown(table_rows(table, plan, results)).strip() for table in TABLES},
        particles=_particles(plan, results),
        findings=_findings(plan, results),
        commands=_commands(plan, results),
        threads=_span(str(record["threads"]) for record in records),
        versions=_span(
            ", ".join(f"{name} {version}" for name, version in record["versions"].items())
            for record in records
        ),
    )


def _records(cells: Iterable[Cell], results: Results) -> list[Record]:
    return [record for cell in cells if (record := results.read(cell))]


def _computed(figure: str, plan: Plan, results: Results) -> bool:
    """Whether there is anything of a figure's curves to show."""
    return bool(_records((cell for cell in plan.figure(figure) if cell.method in ("ais", "raise")), results))


def _findings(plan: Plan, results: Results) -> str:
    words = {True: "yes", False: "**no**", None: "not computed yet"}
    lines = ["| finding | ours | numbers |", "|---|---|---|"]
    return "\n".join(lines + [pipes([f.claim, words[f.holds], f.evidence]) for f in findings(plan, results)])


def _particles(plan: Plan, results: Results) -> str:
    """The gaps with one and with N particles side by side, where both are computed, and what they come to."""
    n = f"N = {plan.profile.forward + 1:,}"
    lines = [pipes(["model", "base", "gap, N = 1", f"gap, {n}"]), "|---|---|---:|---:|"]
    pairs = []
    for row in all_rows(plan, results):
        for base in row.model.bases:
            one, many = row.columns[f"{base} gap"], row.particles_gap(base)
            if one.estimate and many.estimate:
                pairs.append((one.estimate, many.estimate))
                lines.append(pipes([str(row), base, str(one), str(many)]))
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


def _commands(plan: Plan, results: Results) -> str:
    commands: dict[str, Sequence[Cell]] = {table: plan.table(table) for table in TABLES}
    commands |= {f"figure {name}": plan.figure(name) for name in CURVES}
    commands["all"] = unique(plan.all())
    lines = ["| command | cells | computing time |", "|---|---:|---:|"]
    for command, cells in commands.items():
        asked = unique([cells])
        done = _records(asked, results)
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


def _span(values: Iterable[str]) -> str:
    """The values that occur, each once."""
    return " or ".join(dict.fromkeys(values)) or "nothing yet"


def duration(seconds: float) -> str:
    """Seconds in the two largest units that matter.

    >>> duration(3.14), duration(75), duration(200), duration(7500)
    ('3.1 s', '75 s', '3 min 20 s', '2 h 5 min')
    """
    if seconds < 119.5:
        return f"{seconds:.{int(seconds < 9.95)}f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
