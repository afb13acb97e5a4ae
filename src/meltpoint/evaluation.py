"""evaluate(): from a model and a test set to a report. Orchestration, no mathematics."""

import math
import time
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.annealing.anneal import check_threads
from meltpoint.annealing.base import Base, data_rates, family_of, model_rates, uniform
from meltpoint.annealing.precision import Precision
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.ais import LogZ, ais_log_z
from meltpoint.estimators.checks import check_count
from meltpoint.estimators.exact import exact_log_z
from meltpoint.estimators.reverse import raise_log_prob
from meltpoint.models import Model, mrf_of
from meltpoint.models.checks import Bits, binary
from meltpoint.models.dbm import DBM
from meltpoint.models.log_f import LogF
from meltpoint.models.rbm import RBM
from meltpoint.randomness import Purpose, generator
from meltpoint.report.compose import compose, mean_error, optimistic_of
from meltpoint.report.report import Report, Settings
from meltpoint.statistics.certificate import check_confidence
from meltpoint.statistics.estimate import Estimate

BaseName: TypeAlias = Literal["data", "model", "uniform"]

_EXACT_UNITS = 20
_ROWS = 4096


class Interrupted(KeyboardInterrupt):
    """Ctrl-C when AIS had an answer and RAISE had none: one side of the bracket, so no report.

    `log_z` is what AIS found with the chains that were finished, `optimistic` the likelihood that follows.
    """

    def __init__(self, optimistic: Estimate, log_z: LogZ, ais_chains: int) -> None:
        done = len(log_z.log_weights)
        stage = (
            f"of {ais_chains:,} AIS chains, {done:,} were finished" if done < ais_chains else "AIS was done"
        )
        super().__init__(
            f"{stage}, RAISE had finished no example: optimistic {optimistic}, conservative unknown "
            f"(log Z {log_z})"
        )
        self.optimistic = optimistic
        self.log_z = log_z


def evaluate(
    model: Model,
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    base: BaseName | Base | None = None,
    steps: Steps = 3000,
    chains: int = 4,
    examples: int | None = None,
    ais_chains: int | None = None,
    seed: int = 0,
    precision: Precision = "mixed",
    tolerance: float = 1.0,
    confidence: float = 0.99,
    exact: bool | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Bracket the mean test log-probability of a model between RAISE and AIS.

    `train` gives the data base rates to anneal from (base "data", the default when it is given; "model" takes
    the rates from the model's own chains). RAISE is run for `examples` random test examples (100, or all if
    there are fewer) with `chains` chains each, and a control variate extends it to the whole test set; AIS is
    run with `ais_chains` chains (as many as RAISE has in all). A gap up to `tolerance` nats counts as
    agreement. `exact` adds the exact value by enumeration (by itself where the smaller side has at most 20
    units).

    `progress(task, done, total)` is called several times a second from the caller's own thread. Ctrl-C (or a
    KeyboardInterrupt raised by `progress`, say at a deadline) gives a report from the examples finished by
    then; before the first is finished it raises `Interrupted` with what AIS has found, or KeyboardInterrupt.

    >>> rbm = RBM(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> report = evaluate(rbm, [[0, 1, 0], [1, 1, 1]], base="uniform", steps=10, chains=2, ais_chains=2)
    >>> print(f"{report.conservative.value:.4f}")  # log 1/8
    -2.0794
    """
    bits = binary(test, "test", _checked(model).n_visible)
    chains = check_count(
        chains, "chains", "chains per example: 1 is enough with many steps, the paper uses 50"
    )
    n = _examples(examples, len(bits))
    ais_chains = check_count(
        n * chains if ais_chains is None else ais_chains, "ais_chains", "1,000 are usual"
    )
    betas = as_betas(steps)
    threads = check_threads(threads)
    tolerance = _tolerance(tolerance)
    confidence = float(check_confidence(confidence))
    chosen = generator(seed, Purpose.EXAMPLES).choice(len(bits), size=n, replace=False)
    clock = _Clock()

    origin = _base(base, model, train, seed, threads, progress)
    family_of(model, origin)  # a base that does not fit is found now, not after log f
    clock.lap("base")
    settings = Settings(
        base=origin.name,
        schedule="linear" if np.ndim(steps) == 0 else "given",
        steps=betas.size - 1,
        examples=n,
        chains=chains,
        ais_chains=ais_chains,
        seed=int(seed),
        precision=precision,
        tolerance=tolerance,
        confidence=confidence,
    )
    log_f = _log_f(model, bits, seed, progress)
    clock.lap("log f")
    truth = _exact(model, exact, log_f, threads, progress)
    clock.lap("exact")
    annealing: dict[str, Any] = {
        "base": origin,
        "steps": betas,
        "seed": seed,
        "precision": precision,
        "threads": threads,
        "progress": progress and _whole(progress, model, settings),
    }
    log_z = ais_log_z(model, chains=ais_chains, **annealing)
    clock.lap("AIS")
    optimistic = optimistic_of(log_z, log_f)
    if len(log_z.log_weights) < ais_chains:
        raise Interrupted(optimistic, log_z, ais_chains)
    try:
        prob = raise_log_prob(model, bits[chosen], chains=chains, **annealing)
    except KeyboardInterrupt:
        raise Interrupted(optimistic, log_z, ais_chains) from None
    clock.lap("RAISE")
    return compose(model, settings, log_f, truth, log_z, prob, chosen[: len(prob.values)], clock.seconds())


def _checked(model: Model) -> Model:
    if not isinstance(model, Model):
        raise InputError(
            found=f"a model of type {type(model).__name__}",
            expected="an RBM, a DBM or a DBN",
            remedy="make one from its parameters, meltpoint.RBM(weights, visible_bias, hidden_bias), or load "
            "it, meltpoint.load(path)",
        )
    return model


def _examples(examples: int | None, available: int) -> int:
    if examples is None:
        return min(100, available)
    n = check_count(examples, "examples", "100 are usual")
    if n > available:
        raise InputError(
            found=f"examples={n:,} with a test set of {available:,}",
            expected=f"at most {available:,}",
            remedy="leave it out for 100, or all if there are fewer",
        )
    return n


def _tolerance(tolerance: float) -> float:
    if not 0 < tolerance < math.inf:
        raise InputError(
            found=f"tolerance={tolerance!r}", expected="a number of nats above 0", remedy="1 is usual"
        )
    return float(tolerance)


def _base(
    base: BaseName | Base | None,
    model: Model,
    train: ArrayLike | None,
    seed: int,
    threads: int,
    progress: Progress | None,
) -> Base:
    if isinstance(base, Base):
        return base
    name = base if base is not None else ("model" if train is None else "data")
    if name == "uniform":
        return uniform()
    if name == "model":
        return model_rates(model, seed=seed, threads=threads, progress=progress)
    if name != "data":
        raise InputError(
            found=f"base={name!r}",
            expected="'data', 'model', 'uniform', or a Base",
            remedy="'data' (with train) usually gives the smallest gap",
        )
    if train is None:
        raise InputError(
            found="base='data' without training data",
            expected="train, to take the base rates from",
            remedy="pass train (never the test set: that would leak it), or use base='model'",
        )
    return data_rates(train, model)


def _log_f(model: Model, bits: Bits, seed: int, progress: Progress | None) -> LogF:
    if isinstance(model, RBM):
        values = np.concatenate([model.log_f(bits[low : low + _ROWS]) for low in range(0, len(bits), _ROWS)])
        return LogF(values, np.zeros(len(bits)), values)
    return model.log_f_estimate(bits, seed=seed, progress=progress)


def _exact(
    model: Model, exact: bool | None, log_f: LogF, threads: int, progress: Progress | None
) -> Estimate | None:
    two = mrf_of(model).bipartite
    wanted = min(two.n_even, two.n_odd) <= _EXACT_UNITS if exact is None else exact
    if not wanted:
        return None
    value = float(np.mean(log_f.values)) - exact_log_z(model, threads=threads, progress=progress)
    error = mean_error(log_f)
    return Estimate(
        value, error, "exact", "nothing to cover: log Z by enumeration" if error == 0 else "log f"
    )


def _whole(progress: Progress, model: Model, settings: Settings) -> Progress:
    """The two annealing stages as one task, in chain-steps, so that the remaining time is that of both."""
    legs = 2 if isinstance(model, DBM) and len(model.weights) > 1 else 1  # RAISE heats before it melts
    ais = settings.ais_chains * settings.steps
    both = ais + settings.examples * settings.chains * settings.steps * legs
    before = {"AIS": 0, "RAISE": ais}

    def pass_on(task: str, done: float, total: float) -> None:
        if task in before:
            progress("AIS and RAISE", before[task] + done, both)
        else:
            progress(task, done, total)

    return pass_on


class _Clock:
    """Seconds of each stage, and in all."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self._laps[name] = now - self._last
        self._last = now

    def seconds(self) -> dict[str, float]:
        return {**self._laps, "total": time.perf_counter() - self._start}
