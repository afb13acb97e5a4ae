"""Evaluate models of the zoo and write their cards and the table in README.md.

    python benchmarks/zoo.py --steps 10000 mnistPCD-500 omniPCD-1000
    python benchmarks/zoo.py                              (only writes the cards anew)

What was measured is kept in figures.json, from which the cards are written.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import meltpoint as mp
from meltpoint.formats.models import read_note

ZOO = Path(__file__).parents[1] / "zoo"
FIGURES = ZOO / "figures.json"
PAPER = {
    "mnistCD1-20": (-164.11, -164.50),
    "mnistPCD-20": (-150.17, -150.10),
    "mnistCD1-500": (-124.77, -124.09),
    "mnistPCD-500": (-101.26, -101.28),
    "mnistCD25-500": (-86.39, -86.35),
    "omniPCD-1000": (-100.46, -100.46),
    "mnistDBM-500-1000": (-85.74, -85.67),
    "omniDBM-1000-1000": (-102.64, -103.27),
    "mnistDBN-500-2000": (-84.67, -84.49),
    "omniDBN-1000-1000": (-100.78, -100.45),
}
"""RAISE and AIS of the paper's models, from data base rates (DBNs: from the uniform distribution)."""


def evaluate(name: str, steps: int, chains: int, test_examples: int) -> dict[str, object]:
    """Both estimates of one model, on the first so many test examples in random order."""
    model = mp.load(ZOO / f"{name}.npz")
    data = mp.datasets.load("mnist" if name.startswith("mnist") else "omniglot")
    chosen = np.random.default_rng(0).permutation(len(data.test))[:test_examples]
    report = mp.evaluate(model, data.test[chosen], data.train, schedule="linear", steps=steps, chains=chains)
    return {
        "base": report.settings.base,
        "conservative": [report.conservative.value, report.conservative.stderr],
        "optimistic": [report.optimistic.value, report.optimistic.stderr],
        "exact": report.exact.value if report.exact else None,
        "steps": steps,
        "examples": report.settings.examples,
        "chains": chains,
        "ais_chains": report.settings.ais_chains,
        "test_examples": len(chosen),
    }


def card(name: str, figures: dict) -> str:
    """The card of one model, in Markdown."""
    model = mp.load(ZOO / f"{name}.npz")
    lines = [f"# {name}", "", f"{model!r}, stored in half precision. The paper's model of this name has "]
    paper = PAPER[name]
    lines[-1] += f"{paper[0]:g} (RAISE) and {paper[1]:g} (AIS) nats."
    lines += ["", "| mean test log-probability | nats |", "|---|---|"]
    lines.append("| conservative (RAISE) | {:.2f} ± {:.2f} |".format(*figures["conservative"]))
    lines.append("| optimistic (AIS) | {:.2f} ± {:.2f} |".format(*figures["optimistic"]))
    if figures["exact"] is not None:
        lines.append(f"| exact | {figures['exact']:.2f} |")
    lines += [
        "",
        "{steps:,} linear steps from base {base}; RAISE with {chains} chains for each of {examples} examples, AIS "
        "with {ais_chains:,} chains; {test_examples:,} test examples.".format(**figures),
        "",
        f"Trained in about {max(1, round(figures['training_minutes']))} minutes of one core by this recipe:",
        "",
        *("    " + line for line in (read_note(ZOO / f"{name}.npz") or "").splitlines()),
    ]
    return "\n".join(lines) + "\n"


def table(figures: dict) -> str:
    """All models beside the paper's."""
    lines = [
        "| model | RAISE | AIS | exact | paper's RAISE | paper's AIS | minutes |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (paper_raise, paper_ais) in PAPER.items():
        if name in figures:
            f = figures[name]
            exact = "" if f["exact"] is None else f"{f['exact']:.2f}"
            lines.append(
                f"| [{name}]({name}.md) | {f['conservative'][0]:.2f} | {f['optimistic'][0]:.2f} | {exact} "
                f"| {paper_raise:g} | {paper_ais:g} | {f['training_minutes']:.0f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--chains", type=int, default=3)
    parser.add_argument("--test-examples", type=int, default=10_000)
    parser.add_argument("--training-minutes", type=float)
    choices = parser.parse_args()
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    for name in choices.names:
        found = evaluate(name, choices.steps, choices.chains, choices.test_examples)
        figures[name] = figures.get(name, {"training_minutes": choices.training_minutes}) | found
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
        print(name, found)
    for name, found in figures.items():
        (ZOO / f"{name}.md").write_text(card(name, found))
    head, _, tail = (ZOO / "README.md").read_text().partition("<!-- table -->\n")
    (ZOO / "README.md").write_text(
        head + "<!-- table -->\n" + table(figures) + tail[tail.index("<!-- end -->") :]
    )


if __name__ == "__main__":
    main()
