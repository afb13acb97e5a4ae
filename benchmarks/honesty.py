"""How often reports claim what is not so: many small models with exact values, through evaluate().

    python benchmarks/honesty.py --models 50 --steps 300 1000 --base default uniform
    python benchmarks/honesty.py --models 20 --gap 0.5 far-unit mixture
    python benchmarks/honesty.py --models 100 --steps 300 --gap 0.5 --minutes 40 --json found.json
    python benchmarks/honesty.py --models 25 --steps 300 --call evaluate log_z compare -- graphs far

`graphs` stands for all families of honesty_graphs, `attacks` for those of honesty_attacks, `far` for those
of honesty_far, and `layered` for those of honesty_models. For every family: reports that are trusted, and
among them those with the exact value outside `between`; reports with it outside in all; refused ones with
it inside although the interval is at most 0.5 wide; intervals that are reversed or have no ends. The exact
value is the mean log-probability, with `--call log_z` log Z, with `--call compare` the difference to
independent units that are about as good (trusted: the order is known). Nothing is told it. What is promised
besides is counted below: certificates of log Z, `at most`, RAISE's certificate of p_N (of no distribution
is the mean log-probability of examples above minus their entropy), `certified_upper`, and CSL, which should
not be three standard errors too high. Rates come with 95 % limits (Clopper and Pearson). With `--most` the
exit code is 1 if the lower limit of trusted and outside is above it in any family, or if anything is
reversed. With `--minutes` it stops in time, at the same seed for all families or one before.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from honesty_attacks import FAMILIES as ATTACKS
from honesty_far import FAMILIES as FAR
from honesty_graphs import FAMILIES as GRAPHS
from honesty_models import FAMILIES as LAYERED
from honesty_models import Subject
from scipy.optimize import brentq
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import meltpoint as mp

FAMILIES = LAYERED | GRAPHS | ATTACKS | FAR
GROUPS = {"layered": LAYERED, "graphs": GRAPHS, "attacks": ATTACKS, "far": FAR}
PROMISED = dict.fromkeys(("log Z >", "log Z <", "at most", "log p_N >"), "1 % promised")
PROMISED["CSL"] = "0.3 % where its chains are samples of the model"
"""How often each may fail."""

_NARROW = 0.5  # nats: an interval that need not be refused
_ROUNDING = 1e-9
_CSL_STEPS, _CSL_CHAINS = 200, 20


@dataclass(frozen=True)
class Task:
    """One call of evaluate, log_z or compare."""

    family: str
    seed: int
    base: str
    steps: int | None
    gap: float | None
    budget: float
    few: bool
    call: str = "evaluate"


@dataclass(frozen=True)
class Outcome:
    """What was said of a model, and what is so; `held` says which promises beside the interval were kept."""

    task: Task
    trusted: bool
    reason: str
    exact: float
    low: float
    high: float
    held: dict[str, bool] = field(default_factory=dict)

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
        return not self.low - _ROUNDING <= self.exact <= self.high + _ROUNDING

    @property
    def is_too_cautious(self) -> bool:
        """Whether it was refused although the exact value is in a narrow interval."""
        return not self.trusted and not self.outside and self.high - self.low <= _NARROW


def run(task: Task) -> Outcome | None:
    """Call, and compare with the exact value; None if the model has nothing to be compared with."""
    subject = FAMILIES[task.family](task.seed)
    options: dict[str, Any] = {"seed": task.seed, "exact": False, "threads": 1}
    if task.base != "default":
        options["base"] = task.base
    if task.gap is None:
        options["steps"] = task.steps
    else:
        options |= {"gap": task.gap, "budget": task.budget}
    if task.few:
        own = {"chains": 2} if task.call == "log_z" else {"chains": 2, "examples": 2, "ais_chains": 2}
        options |= own
    return CALLS[task.call](task, subject, options)


def _evaluate(task: Task, subject: Subject, options: dict[str, Any]) -> Outcome:
    report = mp.evaluate(subject.model, subject.test, subject.train, **options)
    held = {"log Z >": report.log_z_certificate.bound <= subject.log_z + _ROUNDING}
    if report.upper_bound is not None:
        held["at most"] = subject.mean_log_prob <= report.upper_bound + _ROUNDING
    if not report.densities:
        asked = subject.test[report.per_example.positions]
        _, which, copies = np.unique(asked, axis=0, return_inverse=True, return_counts=True)
        entropy = -float(np.log(copies[which.reshape(-1)] / len(asked)).mean())
        held["log p_N >"] = report.certificate.bound <= -entropy + _ROUNDING
    if _is_of_bits(subject):
        held["CSL"] = _csl_holds(subject, task.seed)
    low, high = report.between
    trusted, reason = bool(report.verdict.trusted), str(report.verdict.reason)
    return Outcome(task, trusted, reason, subject.mean_log_prob, low, high, held)


def _log_z(task: Task, subject: Subject, options: dict[str, Any]) -> Outcome:
    found = mp.log_z(subject.model, train=subject.train, **options)
    held = {"log Z >": found.lower_certificate.bound <= subject.log_z + _ROUNDING}
    sampled = mp.log_z(subject.model, train=subject.train, **options | {"exact": None})  # exactly, if cheap
    if sampled.certified_upper is not None:
        held["log Z <"] = subject.log_z <= sampled.certified_upper + _ROUNDING
    low, high = found.between
    return Outcome(
        task, bool(found.verdict.trusted), str(found.verdict.reason), subject.log_z, low, high, held
    )


def _compare(task: Task, subject: Subject, options: dict[str, Any]) -> Outcome | None:
    if not _is_of_bits(subject):
        return None
    other, value = _independent(subject, np.random.default_rng([99, task.seed]).uniform(-1.5, 1.5))
    compared = mp.compare({"model": subject.model, "other": other}, subject.test, subject.train, **options)
    (pair,) = compared.pairs
    exact = subject.mean_log_prob - value
    low, high = pair.between if pair.first == "model" else (-pair.between[1], -pair.between[0])
    reason = "agree" if compared.trusted else "unordered" if not compared.order_known else "untrusted"
    return Outcome(task, compared.trusted, reason, exact, low, high)


CALLS: dict[str, Callable[[Task, Subject, dict[str, Any]], Outcome | None]] = {
    "evaluate": _evaluate,
    "log_z": _log_z,
    "compare": _compare,
}


def _is_of_bits(subject: Subject) -> bool:
    """Whether visible units are bits that are independent given the hidden ones."""
    layered = isinstance(subject.model, mp.RBM | mp.DBM | mp.DBN)
    return layered and bool(np.isin(subject.train, (0, 1)).all())


def _independent(subject: Subject, difference: float) -> tuple[mp.RBM, float]:
    """Independent bits that are so much better, or as good as they can be, and their mean log-probability."""
    rates = (subject.train.mean(axis=0) + 0.02) / 1.04
    fields = np.log(rates / (1 - rates))

    def value(scale: float) -> float:
        inputs = scale * fields
        return float((subject.test @ inputs - np.logaddexp(0, inputs).sum()).mean())

    wanted, scale = subject.mean_log_prob + difference, 1.0
    if value(1.0) > wanted > value(40.0):
        scale = float(brentq(lambda each: value(each) - wanted, 1.0, 40.0))
    return mp.RBM(np.zeros((len(fields), 1)), scale * fields, [0.0]), value(scale)


def _csl_holds(subject: Subject, seed: int) -> bool:
    found = mp.csl_log_prob(
        subject.model, subject.test, steps=_CSL_STEPS, chains=_CSL_CHAINS, seed=seed, threads=1
    )
    parts = np.exp(found.log_weights - found.values[:, np.newaxis]).mean(axis=0)
    error = float(np.std(parts, ddof=1)) / math.sqrt(len(parts))
    return float(found.values.mean()) <= subject.mean_log_prob + 3 * error + _ROUNDING


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Lines of the table, one per family and one for all."""
    families = list(dict.fromkeys(outcome.task.family for outcome in outcomes))
    head = f"{'family':16s} reports trusted |  trusted and outside | outside | cautious | reversed | no ends"
    groups = [(family, [o for o in outcomes if o.task.family == family]) for family in families]
    lines = [_line(name, group) for name, group in [*groups, ("all", list(outcomes))]]
    return [head, *lines, *(_promise(name, outcomes) for name in PROMISED)]


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
    parser.add_argument("--call", nargs="+", default=["evaluate"], choices=CALLS)
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
        Task(family, seed, base, *way, asked.budget, asked.few, call)
        for seed in range(asked.first, asked.first + asked.models)
        for family in asked.families or FAMILIES
        for base in asked.base
        for call in asked.call
        for way in ways
    ]
    os.nice(10)
    deadline = time.monotonic() + 60 * asked.minutes
    outcomes = []
    with Pool(asked.processes, threadpool_limits, (1,)) as pool:
        for outcome in pool.imap(run, tasks):
            outcomes += [] if outcome is None else [outcome]
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
    share, low, high = (100 * each for each in rate(wrong, len(trusted)))
    return (
        f"{name:16s} {len(outcomes):7d} {len(trusted):7d} | "
        f"{wrong:3d} {share:4.1f} % ({low:.1f} to {high:.1f}) | {sum(o.outside for o in outcomes):7d} | "
        f"{sum(o.is_too_cautious for o in outcomes):8d} | "
        f"{sum(o.is_reversed for o in outcomes):8d} | {sum(o.without_ends for o in outcomes):7d}"
    )


def _promise(name: str, outcomes: Sequence[Outcome]) -> str:
    """How often a promise was checked and broken, and in which families."""
    checked = [o for o in outcomes if name in o.held]
    broken = [o.task.family for o in checked if not o.held[name]]
    _, low, high = rate(len(broken), len(checked))
    where = ", ".join(f"{family} {broken.count(family)}" for family in dict.fromkeys(broken))
    return (
        f"{name:10s} broken {len(broken)} of {len(checked)} ({100 * low:.1f} to {100 * high:.1f} %; "
        f"{PROMISED[name]}) {where}"
    ).rstrip()


if __name__ == "__main__":
    raise SystemExit(main())
