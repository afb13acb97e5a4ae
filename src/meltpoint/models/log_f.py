"""Unnormalised probabilities that must themselves be estimated, by importance sampling (paper, section 5)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from meltpoint.errors import InputError, Progress
from meltpoint.records import short_repr
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp
from meltpoint.units.bernoulli import sum_softplus
from meltpoint.units.unit import Bits, Floats

SAMPLES = 500
BLOCK = 256
"""Examples whose weights are computed at once."""
_KEPT_UNITS = 8_000_000  # of all draws of a block, where they are kept
_LEAST_SAMPLES = 8  # of which halves and quarters say something
_FASTEST, _SLOWEST = 0.5, 0.85  # ratios of successive rises that are believed


@dataclass(frozen=True, eq=False, repr=False)
class LogF:
    """Estimates of log f (example,), their standard errors, and a lower bound (example,) by Jensen's inequality.

    An estimate that is the logarithm of a mean errs low, and rises with the number of samples: `rises` (example, 2) say
    by how much from half of them to all, and from a quarter to half. Without rows that is not known.
    """

    values: Floats
    stderrs: Floats
    bound: Floats
    rises: Floats = field(default_factory=lambda: np.zeros((0, 2)))

    __repr__ = short_repr

    @classmethod
    def exact(cls, values: Floats) -> "LogF":
        """Values that are not estimates."""
        return cls(values, np.zeros(len(values)), values, np.zeros((len(values), 2)))

    @property
    def is_exact(self) -> bool:
        """Whether nothing was estimated."""
        return not self.stderrs.any()

    @property
    def mean_error(self) -> float:
        """Standard error of the mean over the examples: 0 where log f is exact."""
        return float(np.sqrt(np.mean(np.square(self.stderrs)) / len(self.values)))

    @property
    def mean_rise(self) -> float:
        """How much the mean over the examples may still rise with ever more samples; infinite if that is not known.

        If each doubling of the samples makes the rise `ratio` times smaller, ratio / (1 - ratio) of the last one is
        still to come: all of it for a bias of 1 / samples, where the ratio is 1/2. One standard error of the
        last rise is added.
        """
        if self.is_exact:
            return 0.0
        if len(self.rises) == 0 or not np.isfinite(self.rises).all():
            return math.inf
        last, before = self.rises.mean(axis=0).tolist()
        n = len(self.rises)
        noise = float(np.std(self.rises[:, 0], ddof=1)) / math.sqrt(n) if n > 1 else abs(last)
        ratio = min(_SLOWEST, max(_FASTEST, last / before)) if before > 0 else _FASTEST
        return max(0.0, last) * ratio / (1 - ratio) + noise

    def mean_limits(self, alpha: float) -> tuple[float, float]:
        """An interval for the mean of the true values over the examples: twice the rise that is left is added above.

        >>> LogF.exact(np.array([-3.0, -4.0])).mean_limits(0.01)
        (-3.5, -3.5)
        """
        value, margin = float(np.mean(self.values)), -float(ndtri(alpha / 4)) * self.mean_error
        return value - margin, value + margin + 2 * self.mean_rise


def estimate_log_f(
    x: Bits,
    weigh: Callable[[Bits, NDArray[np.int64]], tuple[Floats, Floats]],
    *,
    block: int = BLOCK,
    progress: Progress | None,
) -> LogF:
    """Estimate log f of every example from importance weights.

    `weigh` gives the log weights (example, sample) and the lower bound (example,) for a block of examples and their
    numbers: an example's number names its stream of random numbers, so that blocks can be cut in any way.
    """
    values, errors, bounds = np.empty(len(x)), np.empty(len(x)), np.empty(len(x))
    rises = np.empty((len(x), 2))
    for low in range(0, len(x), block):
        part = slice(low, min(low + block, len(x)))
        weights, bounds[part] = weigh(x[part], np.arange(part.start, part.stop))
        values[part] = log_mean_exp(weights)
        errors[part] = log_mean_error(weights)
        rises[part] = _rises(weights)
        if progress:
            progress("unnormalised probabilities", part.stop, len(x))
    return LogF(values, errors, bounds, rises)


def block_that_fits(units: int, samples: int) -> int:
    """Examples whose draws of so many units can be kept at once."""
    return max(1, _KEPT_UNITS // (units * samples))


def check_samples(samples: int) -> int:
    """The number of importance samples of each example, or an error."""
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise InputError(
            found=f"samples={samples!r}", expected="a whole number from 1 on", remedy="the paper uses 500"
        )
    return int(samples)


def _rises(log_weights: Floats) -> Floats:
    """How much log mean weights rise (example, 2) from half the samples to all, and from a quarter to half."""
    samples = log_weights.shape[1]
    if samples < _LEAST_SAMPLES:
        return np.full((len(log_weights), 2), np.nan)
    whole, half, quarter = (_in_parts(log_weights, parts) for parts in (1, 2, 4))
    return np.stack([whole - half, half - quarter], axis=1)


def _in_parts(log_weights: Floats, parts: int) -> Floats:
    """Log mean weights (example,) of so many parts of the samples, on average over the parts."""
    size = log_weights.shape[1] // parts
    cut = log_weights[:, : parts * size].reshape(len(log_weights), parts, size)
    return log_mean_exp(cut, axis=2).mean(axis=1)


def draw_given(generators: list[np.random.Generator], rates: Floats) -> NDArray[np.bool_]:
    """Units (example, sample, unit) that are on with rates of the same shape."""
    # In float64: 24 bits would draw a unit of rate 1e-15 with probability 6e-8, and its weight is huge.
    uniforms = np.stack([g.random(rates.shape[1:]) for g in generators])
    return uniforms < rates


def log_bernoulli(bits: NDArray[np.generic], inputs: NDArray[np.floating]) -> Floats:
    """Log probability, summed over the last axis, of bits whose units are on with probability sigmoid(inputs)."""
    return np.where(bits, inputs, 0).sum(axis=-1, dtype=np.float64) - sum_softplus(inputs)
