"""Friction against linear steps: both estimates with either schedule, on the same examples and chains.

python benchmarks/schedules.py --quick
python benchmarks/schedules.py --zoo FOLDER      # with mnistDBM-500-1000.npz, mnistDBN-500-2000.npz, mnistPCD-20.npz
"""

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import meltpoint as mp
from meltpoint.models import Model

SHARED = Path(__file__).resolve().parents[2] / "shared"
PAPER_MODEL = SHARED / "models" / "mnistvh_CD25.mat"


@dataclass(frozen=True)
class Comparison:
    """A model and a base, steps for friction and for linear, examples, chains per example."""

    name: str
    path: Path
    base: str
    friction_steps: int
    linear_steps: int
    examples: int = 100
    chains: int = 10


def comparisons(zoo: Path | None, quick: bool) -> list[Comparison]:
    """What is compared; the quick version has few steps, examples and chains."""
    small = {"examples": 30, "chains": 3} if quick else {}
    few = 300 if quick else 3000
    paper = [
        Comparison("mnistCD25-500", PAPER_MODEL, "data", few, few * 10 // 3, **small),
        Comparison("mnistCD25-500", PAPER_MODEL, "data", few, few, **small),
        Comparison("mnistCD25-500", PAPER_MODEL, "uniform", few, few, **small),
    ]
    if zoo is None:
        return paper
    deep = {"examples": 50, "chains": 4} | small  # a step costs them several times as much
    others = {"mnistPCD-20": small, "mnistDBM-500-1000": deep, "mnistDBN-500-2000": deep}
    return [
        *paper,
        *(Comparison(name, zoo / f"{name}.npz", "data", few, few, **size) for name, size in others.items()),
    ]


def run(comparison: Comparison, seeds: int) -> str:
    """A row of a Markdown table: means over seeds, with standard errors of the difference."""
    model = mp.load(comparison.path)
    mnist = mp.datasets.load("mnist")
    base = mp.uniform() if comparison.base == "uniform" else mp.data_rates(mnist.train, model)
    chosen = np.random.default_rng(0).choice(len(mnist.test), comparison.examples, replace=False)
    linear, friction, names = [], [], set()
    for seed in range(seeds):
        schedule = mp.friction_schedule(model, mnist.train, base=base, seed=seed)
        names.add(schedule.name)
        for found, steps in (
            (friction, schedule.betas(comparison.friction_steps)),
            (linear, comparison.linear_steps),
        ):
            found.append(_both(model, mnist.test[chosen], base, steps, comparison, seed))
    cells = [
        f"{comparison.name}, {comparison.base}",
        f"{comparison.friction_steps:,}",
        f"{comparison.linear_steps:,}",
    ]
    for side in range(2):
        ours, theirs = (np.array(found)[:, side] for found in (friction, linear))
        error = np.std(ours - theirs, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
        cells += [
            f"{ours.mean():.2f}",
            f"{theirs.mean():.2f}",
            f"{(ours - theirs).mean():+.2f} ± {error:.2f}",
        ]
    return f"| {' | '.join([*cells, ', '.join(sorted(names))])} |"


def _both(
    model: Model, test: np.ndarray, base: mp.Base, steps: object, c: Comparison, seed: int
) -> tuple[float, float]:
    """Mean RAISE estimate, and AIS's log Z."""
    options = {"base": base, "steps": steps, "seed": seed}
    prob = mp.raise_log_prob(model, test, chains=c.chains, **options)
    return float(prob.values.mean()), mp.ais_log_z(model, chains=c.examples * c.chains, **options).value


def main() -> None:
    """Print the table, row by row as they come."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--zoo", type=Path, help="folder with trained models of other kinds")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few steps, examples and chains")
    arguments = parser.parse_args()
    os.environ.setdefault("MELTPOINT_DATA", str(SHARED / "data"))
    print("| model, base | friction steps | linear steps | RAISE friction | linear | difference ", end="")
    print("| log Z friction | linear | difference | schedule |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for comparison in comparisons(arguments.zoo, arguments.quick):
        start = time.perf_counter()
        print(run(comparison, arguments.seeds), f"<!-- {time.perf_counter() - start:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
