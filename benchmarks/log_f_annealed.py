"""log f of deep models by importance sampling and by annealed weights: against exact values, and on the zoo.

    python benchmarks/log_f_annealed.py --models 14 --steps 100 300
    python benchmarks/log_f_annealed.py --zoo --steps 1000 3000

Small models are the deep families of honesty_attacks, whose log f is not added up. For each: the exact mean of log f
less the estimates by sampling and by annealing, and whether the upper limits at 99 % hold. On the zoo (32 test
examples, needs the data sets, MELTPOINT_DATA) the mean by annealing and by 10,000 samples, less that by 500 samples. A
DBM is annealed as RAISE heats it, in so many steps with four chains for each example; a DBN as log_f_estimate does.
"""

import argparse
from pathlib import Path

import numpy as np
from honesty_attacks import FAMILIES

import meltpoint as mp
from meltpoint.annealing.loop import prepare_path
from meltpoint.annealing.schedule import as_betas
from meltpoint.estimators.raise_ import run_raise
from meltpoint.models.log_f import LogF, MeanLogF

ZOO = Path(__file__).parents[1] / "zoo"
DEEP = "dbm-wide", "dbm-bimodal", "dbn-wide"
CHAINS = 4


def controlled(model, x, train, steps: int, seed: int) -> LogF:
    """Log f with annealed weights."""
    found = model.log_f_estimate(x, seed=seed, threads=1)
    if len(found.annealed):
        return found
    path = prepare_path(model.path(mp.data_rates(train, model)))
    numbers = np.arange(len(x))
    heated = run_raise(
        model, path, as_betas(steps), model.encode(x), numbers, np.arange(CHAINS), seed, threads=1
    )
    return found.controlled_by(numbers, heated.log_weights + heated.log_reverse_weights)


def small(models: int, first: int, steps: list[int]) -> None:
    """Print how far both are from exact values."""
    print(
        f"{'family':12} steps | sampling: mean, most | annealing: mean, most | above limits: sampling, report"
    )
    for family in DEEP:
        for count in steps if family.startswith("dbm") else steps[:1]:
            rows = []
            for seed in range(first, first + models):
                subject = FAMILIES[family](seed)
                log_f = controlled(subject.model, subject.test, subject.train, count, seed)
                exact, annealed = float(subject.log_f.mean()), log_f.mean_of_annealed
                assert annealed is not None, "it has just been made"
                sampled = log_f.mean_of_values
                rows.append(
                    (
                        exact - sampled.value,
                        exact - annealed.value,
                        sampled.limits(0.01)[1] < exact,
                        log_f.mean_limits(0.01)[1] < exact,
                    )
                )
            lacks = np.array(rows)
            means, most = lacks.mean(axis=0), np.abs(lacks).max(axis=0)
            above = lacks.sum(axis=0)[2:].astype(int)
            print(
                f"{family:12} {count:5} | {means[0]:+.3f} {most[0]:.3f} | {means[1]:+.3f} {most[1]:.3f} | "
                f"{above[0]} {above[1]} of {models}",
                flush=True,
            )


def zoo(steps: list[int]) -> None:
    """Print the same of large models, as differences from 500 samples."""
    for name, data in (
        ("omniDBM", "omniglot"),
        ("mnistDBM", "mnist"),
        ("omniDBN", "omniglot"),
        ("mnistDBN", "mnist"),
    ):
        model, loaded = mp.load(next(ZOO.glob(f"{name}*.npz"))), mp.datasets.load(data)
        x = loaded.test[np.random.default_rng(0).permutation(len(loaded.test))[:32]]
        few, many = (model.log_f_estimate(x, samples=n, threads=1) for n in (500, 10_000))
        print(f"{name}: 10,000 samples {_told(many.mean_of_values, few.mean_of_values)}", flush=True)
        for count in steps if name.endswith("DBM") else steps[:1]:
            log_f = controlled(model, x, loaded.train, count, 0)
            assert log_f.mean_of_annealed is not None, "it has just been made"
            told = _told(log_f.mean_of_annealed, few.mean_of_values)
            print(
                f"{name}: annealed{f' in {count} steps' if name.endswith('DBM') else ''} {told}", flush=True
            )


def _told(mean: MeanLogF, other: MeanLogF) -> str:
    return f"{mean.value - other.value:+.3f} ± {mean.error:.3f}, may rise by {mean.rise:.3f}"


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=14)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--zoo", action="store_true")
    asked = parser.parse_args()
    if asked.zoo:
        zoo(asked.steps)
    else:
        small(asked.models, asked.first, asked.steps)


if __name__ == "__main__":
    main()
