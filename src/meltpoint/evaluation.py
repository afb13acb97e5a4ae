"""evaluate(): from a model and a test set to a report. Orchestration, no mathematics."""

import platform
import time
from importlib.metadata import version
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base, data_rates, model_rates, uniform
from meltpoint.annealing.precision import Precision
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.ais import ais_log_z
from meltpoint.estimators.checks import check_count
from meltpoint.estimators.exact import exact_log_z
from meltpoint.estimators.reverse import raise_log_prob
from meltpoint.models import Model, mrf_of
from meltpoint.models.checks import Bits, binary
from meltpoint.models.log_f import LogF
from meltpoint.models.rbm import RBM
from meltpoint.randomness import Purpose, generator
from meltpoint.report.report import PerExample, Report, Settings
from meltpoint.report.verdict import judge
from meltpoint.statistics.certificate import certify_log_z, certify_mean_log_prob, check_confidence
from meltpoint.statistics.control_variate import control_variate_mean, subset_error
from meltpoint.statistics.estimate import Estimate

BaseName: TypeAlias = Literal["data", "model", "uniform"]

_EXACT_UNITS = 20
_ROWS = 4096


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

    `train` gives the data base rates to anneal from (base "data", the default when it is given; "model" takes the
    rates from the model's own chains). RAISE is run for `examples` random test examples (100, or all if there are
    fewer) with `chains` chains each, and a control variate extends it to the whole test set; AIS is run with
    `ais_chains` chains (as many as RAISE has in all). A gap up to `tolerance` nats counts as agreement. `exact`
    adds the exact value by enumeration (by itself where the smaller side has at most 20 units). Ctrl-C gives a
    report of what is done.

    >>> rbm = RBM(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> report = evaluate(rbm, [[0, 1, 0], [1, 1, 1]], base="uniform", steps=10, chains=2, ais_chains=2)
    >>> print(f"{report.conservative.value:.4f}")  # log 1/8
    -2.0794
    """
    bits = binary(test, "test", model.n_visible)
    chains = check_count(
        chains, "chains", "chains per example: 1 is enough with many steps, the paper uses 50"
    )
    n = _examples(examples, len(bits))
    ais_chains = check_count(
        n * chains if ais_chains is None else ais_chains, "ais_chains", "1,000 are usual"
    )
    betas = as_betas(steps)
    if not tolerance > 0:
        raise InputError(
            found=f"tolerance={tolerance!r}", expected="a number of nats above 0", remedy="1 is usual"
        )
    check_confidence(confidence)
    clock = _Clock()

    origin = _base(base, model, train, seed, threads, progress)
    clock.lap("base")
    log_f = _log_f(model, bits, seed, progress)
    clock.lap("log f")
    chosen = generator(seed, Purpose.EXAMPLES).choice(len(bits), size=n, replace=False)
    log_z = ais_log_z(
        model,
        base=origin,
        steps=betas,
        chains=ais_chains,
        seed=seed,
        precision=precision,
        threads=threads,
        progress=progress,
    )
    clock.lap("AIS")
    prob = raise_log_prob(
        model,
        bits[chosen],
        base=origin,
        steps=betas,
        chains=chains,
        seed=seed,
        precision=precision,
        threads=threads,
        progress=progress,
    )
    clock.lap("RAISE")
    done = chosen[: len(prob.values)]
    interrupted = len(done) < n or len(log_z.log_weights) < ais_chains
    truth = None if interrupted else _exact(model, exact, log_f, threads, progress)
    clock.lap("exact")

    mean, error = control_variate_mean(prob.values, log_f.values[done], log_f.values, prob.stderrs)
    conservative = Estimate(
        mean,
        error,
        "conservative",
        "the choice of examples and the noise of their chains, not the bias of few steps",
    )
    log_f_error = float(np.sqrt(np.mean(np.square(log_f.stderrs)) / len(bits)))
    optimistic = Estimate(
        float(np.mean(log_f.values)) - log_z.value,
        float(np.hypot(log_z.stderr, log_f_error)),
        "optimistic",
        log_z.covers,
    )
    gap = Estimate(
        optimistic.value - conservative.value,
        float(np.hypot(optimistic.stderr, conservative.stderr)),
        "difference",
        "both errors",
    )
    return Report(
        model=repr(model),
        test_examples=len(bits),
        settings=Settings(
            base=origin.name,
            schedule="linear" if np.ndim(steps) == 0 else "given",
            steps=betas.size - 1,
            examples=len(done),
            chains=chains,
            ais_chains=len(log_z.log_weights),
            seed=seed,
            precision=precision,
            tolerance=tolerance,
            confidence=confidence,
        ),
        conservative=conservative,
        optimistic=optimistic,
        gap=gap,
        exact=truth,
        log_z=log_z,
        ess=log_z.ess,
        log_f_error=log_f_error,
        control_variate_gain=subset_error(prob.values, prob.stderrs, len(bits)) / error
        if error > 0
        else np.nan,
        certificate=certify_mean_log_prob(float(np.mean(prob.values)), len(done), confidence),
        log_z_certificate=certify_log_z(log_z.value, confidence),
        verdict=judge(gap, log_z.ess, len(log_z.log_weights), tolerance),
        per_example=PerExample(done, prob.values, prob.stderrs, log_f.values[done], prob.log_weights),
        ais_log_weights=log_z.log_weights,
        seconds=clock.seconds(),
        versions=versions(),
        interrupted=interrupted,
    )


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    packages = {name: version(name) for name in ("meltpoint", "numpy", "numba")}
    return {**packages, "Python": platform.python_version()}


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


def _base(
    base: BaseName | Base | None,
    model: Model,
    train: ArrayLike | None,
    seed: int,
    threads: int | None,
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
            remedy="pass train=… (never the test set: that would leak it), or use base='model'",
        )
    return data_rates(train, model)


def _log_f(model: Model, bits: Bits, seed: int, progress: Progress | None) -> LogF:
    if isinstance(model, RBM):
        values = np.concatenate([model.log_f(bits[low : low + _ROWS]) for low in range(0, len(bits), _ROWS)])
        return LogF(values, np.zeros(len(bits)), values)
    return model.log_f_estimate(bits, seed=seed, progress=progress)


def _exact(
    model: Model, exact: bool | None, log_f: LogF, threads: int | None, progress: Progress | None
) -> Estimate | None:
    two = mrf_of(model).bipartite
    wanted = min(two.n_even, two.n_odd) <= _EXACT_UNITS if exact is None else exact
    if not wanted:
        return None
    value = float(np.mean(log_f.values)) - exact_log_z(model, threads=threads, progress=progress)
    error = float(np.sqrt(np.mean(np.square(log_f.stderrs)) / len(log_f.values)))
    return Estimate(
        value, error, "exact", "nothing to cover: log Z by enumeration" if error == 0 else "log f"
    )


class _Clock:
    """Seconds of each stage, and in all."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        if now - self._last > 0.05:
            self._laps[name] = now - self._last
        self._last = now

    def seconds(self) -> dict[str, float]:
        return {**self._laps, "total": time.perf_counter() - self._start}
