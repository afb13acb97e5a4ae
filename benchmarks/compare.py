"""How often the interval of a comparison misses the known difference of two small models, and how wide it is.

    python benchmarks/compare.py --pairs 500
    python benchmarks/compare.py --pairs 100 --steps 30 --chains 1 --ais-chains 50

A pair is two random RBMs of 12 to 16 visible and 4 to 8 hidden units, whose exact values compare() is not told: near
ones (the second is the first with small changes, as two checkpoints of one training are), ones that share nothing, and
deep ones (DBM 8-4-3, whose log f is estimated). Per kind: how often the exact difference is outside the interval on the
test set, with 95 % limits (Clopper and Pearson); how often the interval is wider than that of two separate reports (as
they print it, and at the same confidence); its width over that of separate reports, and over that of the difference of
two conservative values with errors in quadrature, as one would do it by hand; how often the order is known, and wrong.
Examples are drawn from a third model, whose states are enumerated, so that the difference on the population is known
too. The exit code is 1 if an interval is wider, or misses surely more often than it may.
"""

import argparse
import json
import math
import os
import sys
from dataclasses import asdict, dataclass
from multiprocessing import Pool
from pathlib import Path
from statistics import NormalDist

import numpy as np
from scipy.stats import binomtest

import meltpoint as mp

KINDS = ("near", "apart", "deep")


@dataclass(frozen=True)
class Task:
    """One pair of models, and how they are compared."""

    kind: str
    seed: int
    steps: int
    chains: int
    ais_chains: int
    confidence: float


@dataclass(frozen=True)
class Outcome:
    """What a comparison said of a pair, and what is so."""

    kind: str
    exact: float
    population: float
    between: tuple[float, float]
    about_population: tuple[float, float]
    separate: tuple[float, float]
    printed: tuple[float, float]
    by_hand: tuple[float, float]
    better: str | None
    trusted: bool
    correlation: float

    @property
    def outside(self) -> bool:
        """Whether the difference on the test set is not in the interval; rounding is forgiven."""
        return not self.between[0] - 1e-9 <= self.exact <= self.between[1] + 1e-9

    @property
    def population_outside(self) -> bool:
        """Whether the difference on the population is not in its interval."""
        return not self.about_population[0] <= self.population <= self.about_population[1]

    @property
    def wrong_order(self) -> bool:
        """Whether the wrong model is said to be better."""
        return self.better is not None and (self.better == "first") != (self.exact > 0)

    @property
    def width(self) -> float:
        """Of the interval."""
        return self.between[1] - self.between[0]


@dataclass(frozen=True)
class Subject:
    """Two models, training and test examples drawn from a third, all states and their probabilities under it."""

    models: tuple[mp.RBM, mp.RBM] | tuple[mp.DBM, mp.DBM]
    train: np.ndarray
    test: np.ndarray
    states: np.ndarray
    probabilities: np.ndarray


def subject_of(kind: str, seed: int) -> Subject:
    """The pair of a kind with this seed."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    visible, hidden = (8, 4) if kind == "deep" else (int(rng.integers(12, 17)), int(rng.integers(4, 9)))
    scale = rng.uniform(0.5, 2.0)
    shapes = [(visible, hidden), (visible,), (hidden,)]
    if kind == "deep":
        shapes = [(visible, hidden), (hidden, 3), (visible,), (hidden,), (3,)]
    first = [rng.normal(0, scale, shape) for shape in shapes]
    noise = scale * (rng.uniform(0.02, 0.2) if kind == "near" else 1.0)
    second = [(array if kind == "near" else 0.0) + rng.normal(0, noise, array.shape) for array in first]
    third = [a + rng.normal(0, 0.3 * scale, a.shape) for a in first]
    made = [
        mp.DBM(arrays[:2], arrays[2:]) if kind == "deep" else mp.RBM(*arrays)
        for arrays in (first, second, third)
    ]
    states = ((np.arange(2**visible)[:, None] >> np.arange(visible)) & 1).astype(np.uint8)
    log_f = exact_log_f(made[2], states)
    probabilities = np.exp(log_f - np.logaddexp.reduce(log_f))
    drawn = states[rng.choice(len(states), 400, p=probabilities / probabilities.sum())]
    return Subject((made[0], made[1]), drawn[:200], drawn[200:], states, probabilities)


def run(task: Task) -> Outcome:
    """Compare one pair of models."""
    subject = subject_of(task.kind, task.seed)
    models = subject.models
    found = mp.compare(
        models,
        subject.test,
        subject.train,
        names=["first", "second"],
        steps=task.steps,
        chains=task.chains,
        examples=50,
        ais_chains=task.ais_chains,
        seed=task.seed,
        confidence=task.confidence,
        exact=False,
        schedule="linear",
        threads=1,
    )
    (pair,) = found.pairs
    one, other = found.reports["first"], found.reports["second"]
    middle = one.conservative.value - other.conservative.value
    hand = NormalDist().inv_cdf(0.5 + task.confidence / 2) * math.hypot(
        one.conservative.stderr, other.conservative.stderr
    )
    log_z = [mp.exact_log_z(model) for model in models]

    def difference(examples: np.ndarray, weights: np.ndarray | None = None) -> float:
        means = [float(np.average(exact_log_f(model, examples), weights=weights)) for model in models]
        return means[0] - means[1] - (log_z[0] - log_z[1])

    return Outcome(
        kind=task.kind,
        exact=difference(subject.test),
        population=difference(subject.states, subject.probabilities),
        between=pair.between,
        about_population=pair.population,
        separate=pair.separate,
        printed=(one.between[0] - other.between[1], one.between[1] - other.between[0]),
        by_hand=(middle - hand, middle + hand),
        better=pair.better("test set"),
        trusted=found.trusted,
        correlation=pair.correlation,
    )


def exact_log_f(model: mp.RBM | mp.DBM, examples: np.ndarray) -> np.ndarray:
    """Log f (example,), hidden units summed out one by one where the model only estimates it."""
    if isinstance(model, mp.RBM):
        return model.log_f(examples)
    (low, high), (visible, hidden, top) = model.weights, model.biases
    states = ((np.arange(2 ** len(top))[:, None] >> np.arange(len(top))) & 1).astype(float)
    below = examples @ low + hidden
    inputs = below[:, None, :] + (states @ high.T)[None]
    terms = np.logaddexp(0, inputs).sum(axis=2) + states @ top
    return examples @ visible + np.logaddexp.reduce(terms, axis=1)


def table(outcomes: list[Outcome]) -> list[str]:
    """Lines of the table, one per kind and one for all."""
    head = (
        "| kind | pairs | outside (95 % limits) | population outside | order known | wrong | wider than separate, "
        "printed | width / separate | width / by hand | by hand outside |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    for kind in (*KINDS, "all"):
        own = [o for o in outcomes if kind in (o.kind, "all")]
        if not own:
            continue
        missed = sum(o.outside for o in own)
        limits = binomtest(missed, len(own)).proportion_ci(0.95, "exact")
        wider = sum(o.width > o.separate[1] - o.separate[0] + 1e-9 for o in own)
        printed = sum(o.width > o.printed[1] - o.printed[0] + 1e-9 for o in own)
        ratio = np.median([o.width / (o.separate[1] - o.separate[0]) for o in own])
        hand = np.median([o.width / (o.by_hand[1] - o.by_hand[0]) for o in own])
        hand_missed = sum(not o.by_hand[0] <= o.exact <= o.by_hand[1] for o in own)
        lines.append(
            f"| {kind} | {len(own)} | {missed} ({limits.low:.1%} to {limits.high:.1%}) | "
            f"{sum(o.population_outside for o in own)} | {sum(o.better is not None for o in own)} | "
            f"{sum(o.wrong_order for o in own)} | {wider}, {printed} | {ratio:.2f} | {hand:.2f} | {hand_missed} |"
        )
    return lines


def main() -> int:
    """Run the pairs, print the table, and say whether it is as promised."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", nargs="+", default=["near", "apart"], choices=KINDS)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--ais-chains", type=int, default=100)
    parser.add_argument("--confidence", type=float, default=0.99)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--json", help="write every outcome to this file, a line each")
    asked = parser.parse_args()
    tasks = [
        Task(
            asked.kinds[k % len(asked.kinds)],
            asked.first + k,
            asked.steps,
            asked.chains,
            asked.ais_chains,
            asked.confidence,
        )
        for k in range(asked.pairs)
    ]
    outcomes = []
    with Pool(asked.processes) as pool, Path(asked.json or os.devnull).open("w") as file:
        for outcome in pool.imap_unordered(run, tasks):
            outcomes.append(outcome)
            print(json.dumps(asdict(outcome)), file=file, flush=True)
    print("\n".join(table(outcomes)))
    missed = sum(outcome.outside for outcome in outcomes)
    low = binomtest(missed, len(outcomes)).proportion_ci(0.95, "exact").low
    wider = any(o.width > o.separate[1] - o.separate[0] + 1e-9 for o in outcomes)
    return int(wider or low > 1 - asked.confidence)


if __name__ == "__main__":
    sys.exit(main())
