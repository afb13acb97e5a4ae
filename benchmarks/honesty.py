"""How often reports claim what is not so: many small models with exact values, through evaluate().

    python benchmarks/honesty.py --models 50 --steps 300 1000 --base default uniform
    python benchmarks/honesty.py --models 20 --gap 0.5 far-unit mixture
    python benchmarks/honesty.py --models 100 --steps 300 --gap 0.5 --minutes 40 --json found.json
    python benchmarks/honesty.py --models 25 --steps 300 graphs

`graphs` stands for all families of honesty_graphs, `attacks` for those of honesty_attacks, and `layered` for those of
honesty_models. For every family: reports
that are trusted, and among them those with the exact mean log-probability outside `between`; reports with it outside in
all; intervals that are reversed or have no ends; certificates of log Z that do not hold. evaluate() is not told the
exact value. Rates come with 95 % limits (Clopper and Pearson). With `--most` the exit code is 1 if the lower limit of
trusted and outside is above it in any family, or if anything is reversed. With `--minutes` it stops in
time, at the same seed for all families or one before.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from honesty_attacks import FAMILIES as ATTACKS
from honesty_graphs import FAMILIES as GRAPHS
from honesty_models import FAMILIES as LAYERED
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import meltpoint as mp

FAMILIES = LAYERED | GRAPHS | ATTACKS
GROUPS = {"layered": LAYERED, "graphs": GRAPHS, "attacks": ATTACKS}


@dataclass(frozen=True)
class Task:
    """One evaluation."""

    family: str
    seed: int
    base: str
    steps: int | None
    gap: float | None
    budget: float
    few: bool


@dataclass(frozen=True)
class Outcome:
    """What a report said of a model, and what is so. The exact value and the ends are mean log-probabilities."""

    task: Task
    trusted: bool
    reason: str
    exact: float
    low: float
    high: float
    conservative: float
    optimistic: float
    certificate_holds: bool

    @property
    def without_ends(self) -> bool:
        """Whether an end is missing or not a number."""
        return math.isnan(self.low) or math.isnan(self.high)

    @property
    def is_reversed(self) -> bool:
        """Whether the lower end lies above the upper one."""
        return self.low > self.high

    @property
    def outside(self) -> bool:
        """Whether the exact value is not in the interval; rounding is forgiven."""
        return not self.low - 1e-9 <= self.exact <= self.high + 1e-9


def run(task: Task) -> Outcome:
    """Evaluate one model and compare with its exact value."""
    subject = FAMILIES[task.family](task.seed)
    options: dict[str, Any] = {"seed": task.seed, "exact": False, "threads": 1}
    if task.base != "default":
        options["base"] = task.base
    if task.gap is None:
        options["steps"] = task.steps
    else:
        options |= {"gap": task.gap, "budget": task.budget}
    if task.few:
        options |= {"chains": 2, "examples": 2, "ais_chains": 2}
    report = mp.evaluate(subject.model, subject.test, subject.train, **options)
    low, high = report.between if report.between is not None else (math.nan, math.nan)
    return Outcome(
        task=task,
        trusted=bool(report.verdict.trusted),
        reason=str(report.verdict.reason),
        exact=subject.mean_log_prob,
        low=_number(low),
        high=_number(high),
        conservative=report.conservative.value,
        optimistic=report.optimistic.value,
        certificate_holds=not report.log_z_certificate.bound > subject.log_z + 1e-9,
    )


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Lines of the table, one per family and one for all."""
    families = list(dict.fromkeys(outcome.task.family for outcome in outcomes))
    head = f"{'family':14s} reports trusted | trusted and outside | outside | reversed | no ends | certificate false"
    groups = [(family, [o for o in outcomes if o.task.family == family]) for family in families]
    return [head, *(_line(name, group) for name, group in [*groups, ("all", list(outcomes))])]


def rate(count: int, total: int) -> tuple[float, float, float]:
    """A share and its 95 % limits; NaN without cases."""
    if total == 0:
        return math.nan, 0.0, 1.0
    limits = binomtest(count, total).proportion_ci(0.95, "exact")
    return count / total, float(limits.low), float(limits.high)


def too_many(outcomes: Sequence[Outcome], most: float) -> list[str]:
    """Families in which surely more than `most` of the trusted reports are wrong, or anything is reversed."""
    bad = []
    for family in dict.fromkeys(outcome.task.family for outcome in outcomes):
        own = [o for o in outcomes if o.task.family == family]
        trusted = [o for o in own if o.trusted]
        wrong = sum(o.outside for o in trusted)
        if rate(wrong, len(trusted))[1] > most or any(o.is_reversed for o in own):
            bad.append(family)
    return bad


def main() -> int:
    """Run the models, print the table, and say whether it is as promised."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", help=f"of {', '.join(FAMILIES)}; all by themselves")
    parser.add_argument("--models", type=int, default=20, help="seeds for each family")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, nargs="+", help="300 by themselves, if there is no gap")
    parser.add_argument("--base", nargs="+", default=["default"], help="default, auto, data, model, uniform")
    parser.add_argument("--gap", type=float, help="close a gap; with --steps as well as running steps")
    parser.add_argument("--budget", type=float, default=5.0, help="seconds for a gap")
    parser.add_argument("--few", action="store_true", help="2 chains, 2 examples, 2 AIS chains")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most", type=float, help="the share of wrong trusted reports that is promised")
    parser.add_argument("--json", type=Path, help="keep every outcome in this file")
    parser.add_argument("--minutes", type=float, default=math.inf, help="the most it may take")
    asked = parser.parse_args()
    asked.families = [name for given in asked.families for name in GROUPS.get(given, (given,))]
    if unknown := set(asked.families) - set(FAMILIES):
        parser.error(f"no family {', '.join(sorted(unknown))}: there are {', '.join(FAMILIES)}")
    ways = [(steps, None) for steps in asked.steps or ([300] if asked.gap is None else [])]
    ways += [] if asked.gap is None else [(None, asked.gap)]
    tasks = [
        Task(family, seed, base, *way, asked.budget, asked.few)
        for seed in range(asked.first, asked.first + asked.models)
        for family in asked.families or FAMILIES
        for base in asked.base
        for way in ways
    ]
    os.nice(10)
    deadline = time.monotonic() + 60 * asked.minutes
    outcomes = []
    with Pool(asked.processes, threadpool_limits, (1,)) as pool:
        for outcome in pool.imap(run, tasks):
            outcomes.append(outcome)
            if time.monotonic() > deadline:
                break
    print("\n".join(table(outcomes)))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes]))
    bad = too_many(outcomes, asked.most) if asked.most is not None else []
    if bad:
        print(f"more than promised: {', '.join(bad)}")
    return 1 if bad else 0


def _line(name: str, outcomes: Sequence[Outcome]) -> str:
    trusted = [o for o in outcomes if o.trusted]
    wrong = sum(o.outside for o in trusted)
    share, low, high = rate(wrong, len(trusted))
    return (
        f"{name:14s} {len(outcomes):7d} {len(trusted):7d} | {wrong:4d} {100 * share:5.1f} % ({100 * low:4.1f} to "
        f"{100 * high:5.1f}) | {sum(o.outside for o in outcomes):7d} | {sum(o.is_reversed for o in outcomes):8d} | "
        f"{sum(o.without_ends for o in outcomes):7d} | {sum(not o.certificate_holds for o in outcomes):4d}"
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


if __name__ == "__main__":
    raise SystemExit(main())
