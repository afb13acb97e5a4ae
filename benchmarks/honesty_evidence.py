"""How well the evidence finds missed mass, and how often its interval for log Z holds the exact value.

    python benchmarks/honesty_evidence.py --models 100 --steps 300 --base data

AIS is run on every model of honesty_models from one base, the evidence is gathered, and both are compared with log Z.
An estimate is blind where log Z lies above it by more than 0.1 nats and three standard errors; a finding is a false
alarm where it is not above by 0.1 nats at all.
"""

import argparse
import os
from dataclasses import dataclass
from multiprocessing import Pool

import numpy as np
from honesty_models import FAMILIES
from scipy.stats import binomtest

import meltpoint as mp
from meltpoint.annealing.schedule import as_betas
from meltpoint.estimators.limits import log_z_limits
from meltpoint.estimators.starts import Computation, ask_starts
from meltpoint.runs.run import Run

ALPHA = 0.01


@dataclass(frozen=True)
class Outcome:
    """What AIS and the evidence said of one model, as differences from the estimate of log Z, in nats."""

    family: str
    seed: int
    deficit: float
    stderr: float
    ess: float
    estimated: float
    missed: bool
    lower: float
    upper: float
    plain_upper: float
    cost: float

    @property
    def blind(self) -> bool:
        """Whether AIS is wrong beyond its own error."""
        return self.deficit > 0.1 + 3 * self.stderr

    @property
    def outside(self) -> bool:
        """Whether log Z lies outside the interval."""
        return not self.lower <= self.deficit <= self.upper


def examine(task: tuple[str, int, int, int, str]) -> Outcome:
    """Run AIS and the evidence on one model."""
    family, seed, steps, chains, base_name = task
    subject = FAMILIES[family](seed)
    model = subject.model
    bases = {"data": mp.data_rates(subject.train, model), "uniform": mp.uniform()}
    if base_name == "model":
        bases["model"] = mp.model_rates(model, seed=seed, threads=1)
    base = bases.pop(base_name)
    betas = as_betas(steps)
    log_z = mp.ais_log_z(model, base=base, steps=steps, chains=chains, seed=seed, threads=1)
    others = [(other, betas) for other in bases.values()]
    starts = ask_starts(model, base, betas, log_z.log_weights, others, Computation(seed, run=Run(1)))
    evidence = starts.evidence(log_z.log_weights)
    lower, upper = log_z_limits(log_z.log_weights, evidence, ALPHA)
    missed = evidence.missed(log_z.log_weights)
    told = missed or evidence.strongest
    return Outcome(
        family=family,
        seed=seed,
        deficit=subject.log_z - log_z.value,
        stderr=log_z.stderr,
        ess=log_z.ess,
        estimated=told.nats if told else 0.0,
        missed=missed is not None,
        lower=lower - log_z.value,
        upper=upper - log_z.value,
        plain_upper=2.576 * log_z.stderr,
        cost=evidence.chain_steps / (2 * chains * steps),
    )


def describe(name: str, outcomes: list[Outcome]) -> str:
    """One line of the table."""
    blind = [o for o in outcomes if o.blind]
    false = sum(o.missed and o.deficit < 0.1 for o in outcomes)
    outside = sum(o.outside for o in outcomes)
    plain = sum(o.deficit > o.plain_upper or o.deficit < -o.plain_upper for o in outcomes)
    limits = binomtest(outside, len(outcomes)).proportion_ci(0.95, "exact")
    width = np.median([o.upper - o.lower for o in outcomes])
    wrong = [abs(o.estimated - o.deficit) for o in blind if o.missed]
    return (
        f"{name:10s} {len(outcomes):5d} | {sum(o.missed for o in blind):4d} of {len(blind):4d} | {false:3d} | "
        f"{np.median(wrong) if wrong else np.nan:5.3f} | {outside:3d} "
        f"({100 * limits.low:4.1f} to {100 * limits.high:4.1f} %) | "
        f"{plain:4d} | {width:6.3f} | {100 * np.mean([o.cost for o in outcomes]):3.0f} %"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--chains", type=int, default=400)
    parser.add_argument("--base", default="data", choices=["data", "model", "uniform"])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("families", nargs="*", default=[])
    asked = parser.parse_args()
    os.nice(5)
    print(
        "family     models | blind found  | false | error | outside at 99 % | without evidence | width | cost"
    )
    with Pool(asked.processes) as pool:
        everything = []
        for family in asked.families or FAMILIES:
            tasks = [
                (family, seed, asked.steps, asked.chains, asked.base)
                for seed in range(asked.first, asked.first + asked.models)
            ]
            outcomes = pool.map(examine, tasks, chunksize=2)
            everything += outcomes
            print(describe(family, outcomes), flush=True)
            failed = [
                o
                for o in outcomes
                if o.outside or (o.blind and not o.missed) or (o.missed and o.deficit < 0.1)
            ]
            for o in failed[: asked.worst]:
                print(
                    f"    {o.seed}: deficit {o.deficit:.3f} ± {o.stderr:.3f}, ess {o.ess:.1f}, lacking "
                    f"{o.estimated:.3f}{' missed' if o.missed else ''}, {o.lower:.3f} to {o.upper:.3f}"
                )
        print(describe("all", everything))


if __name__ == "__main__":
    main()
