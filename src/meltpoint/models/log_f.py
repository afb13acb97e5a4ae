"""Unnormalised probabilities that must themselves be estimated, by importance sampling (paper, section 5)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, Progress
from meltpoint.randomness import Purpose, generator
from meltpoint.records import short_repr
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp
from meltpoint.units.bernoulli import sum_softplus
from meltpoint.units.unit import Bits, Floats

SAMPLES = 500
_BLOCK_BYTES = 64_000_000


@dataclass(frozen=True, eq=False, repr=False)
class LogF:
    """Estimates of log f (example,), their standard errors, and a lower bound (example,) by Jensen's inequality."""

    values: Floats
    stderrs: Floats
    bound: Floats

    __repr__ = short_repr

    @classmethod
    def exact(cls, values: Floats) -> "LogF":
        """Values that are not estimates."""
        return cls(values, np.zeros(len(values)), values)


def estimate_log_f(
    x: Bits,
    weigh: Callable[[Bits, list[np.random.Generator], int], tuple[Floats, Floats]],
    units: int,
    *,
    samples: int,
    seed: int,
    progress: Progress | None,
) -> LogF:
    """Estimate log f of every example from `samples` importance weights each.

    `weigh` gives the log weights (example, sample) and the lower bound (example,) for a block of examples and their
    generators: one generator per example, so that blocks can be cut in any way.
    """
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise InputError(
            found=f"samples={samples!r}", expected="a whole number from 1 on", remedy="the paper uses 500"
        )
    block = max(1, _BLOCK_BYTES // (8 * units * int(samples)))
    values, errors, bounds = np.empty(len(x)), np.empty(len(x)), np.empty(len(x))
    for low in range(0, len(x), block):
        part = slice(low, min(low + block, len(x)))
        generators = [generator(seed, Purpose.LOG_F, i) for i in range(part.start, part.stop)]
        weights, bounds[part] = weigh(x[part], generators, int(samples))
        values[part] = log_mean_exp(weights)
        errors[part] = log_mean_error(weights)
        if progress:
            progress("unnormalised probabilities", part.stop, len(x))
    return LogF(values, errors, bounds)


def draw(generators: list[np.random.Generator], rates: Floats, samples: int) -> NDArray[np.bool_]:
    """Independent units (example, sample, unit) that are on with the given rates (example, unit)."""
    uniforms = np.stack([g.random((samples, rates.shape[1])) for g in generators])
    return uniforms < rates[:, np.newaxis]


def draw_given(generators: list[np.random.Generator], rates: Floats) -> NDArray[np.bool_]:
    """Units (example, sample, unit) that are on with rates of the same shape."""
    # In float64: 24 bits would draw a unit of rate 1e-15 with probability 6e-8, and its weight is huge.
    uniforms = np.stack([g.random(rates.shape[1:]) for g in generators])
    return uniforms < rates


def log_bernoulli(bits: NDArray[np.generic], inputs: NDArray[np.floating]) -> Floats:
    """Log probability, summed over the last axis, of bits whose units are on with probability sigmoid(inputs)."""
    return np.where(bits, inputs, 0).sum(axis=-1, dtype=np.float64) - sum_softplus(inputs)
