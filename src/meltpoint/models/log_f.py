"""Unnormalised probabilities that must themselves be estimated, by importance sampling (paper, section 5)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import Progress
from meltpoint.kernels.sigmoid import sum_softplus
from meltpoint.layers.unit import Floats, States
from meltpoint.records import short_repr
from meltpoint.statistics.control_variate import control_variate_mean
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp
from meltpoint.statistics.special import stdtrit

SAMPLES = 500
BLOCK = 256
"""Number of examples whose weights are computed at once."""
_KEPT_UNITS = 8_000_000  # most units of all draws of a block that are kept in memory
_LEAST_SAMPLES = 8  # fewest samples whose halves and quarters can be compared
_QUARTERED = 4
_FASTEST, _SLOWEST = 0.5, 0.85  # ratios of successive rises that are believed
_USUAL_ALPHA = 0.01  # by which two estimates are compared: which one counts must not depend on the confidence
_NORMAL = 1e9  # degrees of freedom that are as good as infinitely many
_NO_SPREAD = 1e-6  # nats between log weights that may be rounding
_UNKNOWN = 0.45  # standard error of an example's log f: fewer than five effective samples
ENUMERATED = 1024
"""Most states of hidden units for which log f of a deep model is summed exactly: it costs no more than sampling."""


@dataclass(frozen=True)
class MeanLogF:
    """An estimate of the mean of log f over the examples: its value, its standard error, and how much it may rise.

    `df` are the degrees of freedom that the error was estimated with, `rise` is what more samples may still add.
    """

    value: float
    error: float
    df: float
    rise: float

    def limits(self, alpha: float) -> tuple[float, float]:
        """An interval for the mean of the true values: twice the rise that is left is added above."""
        if not math.isfinite(self.error):
            return -math.inf, math.inf
        margin = -float(stdtrit(min(self.df, _NORMAL), alpha / 4)) * self.error
        return self.value - margin, self.value + margin + 2 * self.rise

    @property
    def width(self) -> float:
        low, high = self.limits(_USUAL_ALPHA)
        return high - low


@dataclass(frozen=True, eq=False, repr=False)
class LogF:
    """Estimates of log f (example,), their standard errors, and a lower bound (example,) by Jensen's inequality.

    An estimate that is the logarithm of a mean errs low, and rises with the number of samples: `rises` (example, 2) say
    by how much from half of them to all, and from a quarter to half; without rows nothing is known of it.
    `annealed` (control example, chain) are log weights of another kind, each unbiased for f of the example at
    `positions` (control example,): a random part of the examples, by which the mean is checked and corrected.
    `is_exact` says that nothing was estimated. It is set by what computed the values: no spread between samples is no
    proof, since all of them may have missed the same states. The standard error is then NaN.
    """

    values: Annotated[Floats, "example"]
    stderrs: Annotated[Floats, "example"]
    bound: Annotated[Floats, "example"]
    rises: Annotated[Floats, None, 2] = field(default_factory=lambda: np.zeros((0, 2)))
    annealed: Annotated[Floats, "control", None] = field(default_factory=lambda: np.zeros((0, 0)))
    positions: Annotated[NDArray[np.integer], "control"] = field(
        default_factory=lambda: np.zeros(0, np.int64)
    )
    is_exact: bool = False

    __repr__ = short_repr

    @classmethod
    def exact(cls, values: Floats) -> "LogF":
        """Values that are not estimates."""
        return cls(values, np.zeros(len(values)), values, np.zeros((len(values), 2)), is_exact=True)

    def controlled_by(self, positions: NDArray[np.integer], log_weights: Floats) -> "LogF":
        """The same with annealed log weights (control example, chain), unless it is exact or has some."""
        if self.is_exact or self.annealed.size or not np.isfinite(log_weights).all():
            return self
        return replace(self, annealed=log_weights, positions=positions)

    @property
    def values_error(self) -> float:
        """Standard error of the mean of the values: 0 where log f is exact, NaN where one of them has none."""
        return float(np.sqrt(np.mean(np.square(self.stderrs)) / len(self.values)))

    @cached_property
    def mean(self) -> MeanLogF:
        """The mean over the examples: of two estimates the one whose interval is narrower.

        Unless the other lies above it by more than two of its own errors and twice what this one may rise: both err low
        on average.
        """
        own, annealed = self.mean_of_values, self.mean_of_annealed
        if annealed is None:
            return own
        better, other = sorted((own, annealed), key=lambda mean: mean.width)
        return other if other.value - 2 * other.error > better.value + 2 * better.rise else better

    @property
    def mean_of_values(self) -> MeanLogF:
        value = float(np.mean(self.values))
        if self.is_exact:
            return MeanLogF(value, 0.0, math.inf, 0.0)
        rise = _rise_left(self.rises) if len(self.rises) else math.inf
        return MeanLogF(value, self.values_error, math.inf, rise)

    @cached_property
    def mean_of_annealed(self) -> MeanLogF | None:
        """The mean of the values and what annealing adds to it, on average over its examples; None with fewer than two.

        Given the values, only the choice of these examples and the noise of their chains are uncertain.
        """
        n, chains = self.annealed.shape
        if n < 2 or chains < 2:
            return None
        value, error = control_variate_mean(
            log_mean_exp(self.annealed),
            self.values[self.positions],
            self.values,
            standard_errors(self.annealed),
        )
        return MeanLogF(value, error, n - 1.0, _rise_left(_rises(self.annealed, least=2)))

    @property
    def is_corrected(self) -> bool:
        """Whether the mean is that of the annealed weights."""
        return self.mean is self.mean_of_annealed

    @property
    def unknown(self) -> float:
        """Share of the examples that the mean rests on for which fewer than five samples carry log f."""
        stderrs = standard_errors(self.annealed) if self.is_corrected else self.stderrs
        return float(np.mean(~(stderrs <= _UNKNOWN)))

    @property
    def rise(self) -> float:
        """How much the mean may still rise; infinite where that of an estimate that limits it is unknown."""
        return self.mean.rise if all(math.isfinite(mean.rise) for mean in self._limiting) else math.inf

    def mean_limits(self, alpha: float) -> tuple[float, float]:
        """An interval for the mean of the true values over the examples.

        Both estimates err low, so neither may lie above it, with its own error and twice what it may rise.

        >>> LogF.exact(np.array([-3.0, -4.0])).mean_limits(0.01)
        (-3.5, -3.5)
        """
        low, high = self.mean.limits(alpha)
        return low, max([high, *(mean.value + mean.error + 2 * mean.rise for mean in self._limiting)])

    @property
    def _limiting(self) -> list[MeanLogF]:
        """The chosen mean, and each that has an error."""
        means = self.mean_of_values, self.mean_of_annealed
        return [self.mean, *(mean for mean in means if mean is not None and mean.error >= 0)]


def _rise_left(rises: Floats) -> float:
    """How much a mean over examples may rise with more samples, from rises (example, 2); infinite if unknown.

    If each doubling of the samples makes the rise `ratio` times smaller, ratio / (1 - ratio) of the last one is still
    to come: all of it for a bias of 1 / samples, where the ratio is 1/2. One standard error of the last rise is added.
    """
    if not np.isfinite(rises).all():
        return math.inf
    last, before = rises.mean(axis=0).tolist()
    n = len(rises)
    noise = float(np.std(rises[:, 0], ddof=1)) / math.sqrt(n) if n > 1 else abs(last)
    ratio = min(_SLOWEST, max(_FASTEST, last / before)) if before > 0 else _FASTEST
    return max(0.0, last) * ratio / (1 - ratio) + noise


class LogFMethod(Protocol):
    """Computes log f of the examples with these numbers (example,), which name their random numbers."""

    def __call__(
        self, x: States, numbers: NDArray[np.integer], *, progress: Progress | None = None
    ) -> LogF: ...


def estimate_log_f(
    x: States,
    numbers: NDArray[np.integer],
    weigh: Callable[[States, NDArray[np.integer]], tuple[Floats, Floats]],
    *,
    block: int = BLOCK,
    progress: Progress | None = None,
) -> LogF:
    """Log f by importance weights: the log weights (example, sample) and the lower bound (example,) of a block.

    An example's number names its stream of random numbers, so that blocks can be cut in any way.
    """

    def compute(part: slice) -> LogF:
        weights, bound = weigh(x[part], numbers[part])
        return LogF(log_mean_exp(weights), standard_errors(weights), bound, _rises(weights))

    return _in_blocks(compute, len(x), block, progress)


def exact_log_f(
    x: States,
    numbers: NDArray[np.integer],
    log_f: Callable[[States], Floats],
    *,
    progress: Progress | None = None,
) -> LogF:
    """Log f of every example by a function that gives it exactly."""
    return _in_blocks(lambda part: LogF.exact(log_f(x[part])), len(x), BLOCK, progress)


def _in_blocks(compute: Callable[[slice], LogF], count: int, block: int, progress: Progress | None) -> LogF:
    parts = []
    for low in range(0, max(1, count), block):
        parts.append(compute(slice(low, min(low + block, count))))
        if progress:
            progress("unnormalised probabilities", min(low + block, count), count)
    joined = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("values", "stderrs", "bound", "rises")
    )
    return LogF(*joined, is_exact=parts[0].is_exact)


def standard_errors(log_weights: Floats) -> Floats:
    """Standard errors (example,) of log mean weights (example, sample); NaN where all weights are the same.

    A proposal that sits on one state draws nothing else, whatever other states weigh: that shows no error of 0.
    """
    errors = log_mean_error(log_weights)
    return np.where(np.ptp(log_weights, axis=1) > _NO_SPREAD, errors, np.nan)


def block_that_fits(units: int, samples: int) -> int:
    """Examples whose draws of this number of units can be kept at once."""
    return max(1, _KEPT_UNITS // (units * samples))


def _rises(log_weights: Floats, least: int = _LEAST_SAMPLES) -> Floats:
    """How much log mean weights rise (example, 2) from half the samples to all, and from a quarter to half.

    They are NaN with fewer than `least` samples, and where all weights are equal. With fewer than four samples the
    second is derived from the first by the slowest plausible decrease.
    """
    samples = log_weights.shape[1]
    if samples < least:
        return np.full((len(log_weights), 2), np.nan)
    whole, half = (_in_parts(log_weights, parts) for parts in (1, 2))
    last = whole - half
    before = last / _SLOWEST if samples < _QUARTERED else half - _in_parts(log_weights, 4)
    return np.where(
        np.isnan(standard_errors(log_weights))[:, np.newaxis], np.nan, np.stack([last, before], axis=1)
    )


def _in_parts(log_weights: Floats, parts: int) -> Floats:
    """Log mean weights (example,) of this number of parts of the samples, on average over the parts."""
    size = log_weights.shape[1] // parts
    cut = log_weights[:, : parts * size].reshape(len(log_weights), parts, size)
    return log_mean_exp(cut, axis=2).mean(axis=1)


def corners(units: int) -> States:
    """All states (state, unit) of this number of bits."""
    return (np.arange(2**units)[:, np.newaxis] >> np.arange(units) & 1).astype(np.uint8)


def draw_given(generators: list[np.random.Generator], rates: Floats) -> NDArray[np.bool_]:
    """Units (example, sample, unit) that are on with rates of the same shape."""
    # In float64: 24 bits would draw a unit of rate 1e-15 with probability 6e-8, and its weight is huge.
    uniforms = np.stack([g.random(rates.shape[1:]) for g in generators])
    return uniforms < rates


def log_bernoulli(bits: NDArray[np.generic], inputs: NDArray[np.floating]) -> Floats:
    """Log probability, summed over the last axis, of bits whose units are on with probability sigmoid(inputs)."""
    return np.where(bits, inputs, 0).sum(axis=-1, dtype=np.float64) - sum_softplus(inputs)
