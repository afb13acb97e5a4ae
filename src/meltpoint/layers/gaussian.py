"""Gaussian units: real numbers."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.kernels.bit_products import State
from meltpoint.kernels.streams import LANES, fill_uniforms
from meltpoint.layers.unit import Floats, Further, Means, States, Unit, check_real
from meltpoint.statistics.elementary import log
from meltpoint.statistics.special import ndtri

_LARGEST_UNIFORM = 1 - 2.0**-32


class Gaussian(Unit):
    """A real number v with log weight t v - ½ τ v²: an input is (t, τ), so inputs are (…, unit, 2).

    The precision τ is positive; mean and variance are t / τ and 1 / τ. Sums over states are integrals, and
    probabilities are densities relative to Lebesgue measure.
    """

    name, values_in_words = "gaussian", "real numbers"
    has_scale = True
    n_states, dtype, input_shape = None, np.dtype(np.float64), (2,)

    def flat_bias(self, size: int) -> Floats:
        """Standard normal numbers: there is no uniform distribution of all real ones."""
        return np.tile([0.0, 1.0], (size, 1))

    def encode(self, values: NDArray[Any], name: str) -> Floats:
        check_real(values, name, "real numbers")
        if not np.isfinite(values).all():
            raise InputError(
                found=f"infinite values in {name}",
                expected="finite numbers",
                remedy="drop or clip them first",
            )
        return values.astype(np.float64)

    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        """½ t² / τ + ½ log(2π / τ), the log of the integral."""
        t, precision = inputs[..., 0], inputs[..., 1]
        return t**2 / precision / 2 + log(2 * np.pi / precision) / 2

    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        return inputs[..., 0] / inputs[..., 1]

    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> Floats:
        normal = ndtri(np.minimum(uniforms, _LARGEST_UNIFORM))
        return self.mean(inputs) + normal / np.sqrt(inputs[..., 1])

    def log_weight(self, states: States, inputs: NDArray[np.floating]) -> Floats:
        return (inputs[..., 0] - inputs[..., 1] * states / 2) * states

    def bias_from_moments(self, mean: Floats, variance: Floats) -> Floats:
        """Inputs (unit, 2) of units with these means and variances."""
        return np.stack([mean / variance, 1 / variance], axis=-1)

    def bias_from_sample(self, sample: NDArray[Any], smoothing: float) -> Floats:
        """Biases from mean and variance; the mean variance of all units counts as `smoothing` more examples."""
        variance, n = sample.var(axis=0), len(sample)
        typical = float(variance.mean()) or 1.0
        return self.bias_from_moments(
            sample.mean(axis=0), (n * variance + smoothing * typical) / (n + smoothing)
        )

    def fitted(self, data: NDArray[Any], name: str) -> "Standardised":
        values = self.encode(data, name)
        deviation = values.std(axis=0)
        return Standardised(values.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    @classmethod
    def refitted(cls, *kept: NDArray[Any]) -> "Standardised":
        return Standardised(*kept)


@dataclass(frozen=True, eq=False, repr=False)
class Standardised(Gaussian):
    """Units in training, whose statistics x = (v - mean) / deviation have mean 0 and variance 1 in the data.

    The log weight of x is t x - ½ τ x². The biases are t, and log τ is learned too: what hidden units explain is not
    noise.
    """

    largest = np.inf
    n_further = 1  # log τ
    rate_share = 0.5

    centre: Floats
    deviation: Floats

    def encode(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        return super().encode(values, name).astype(np.float32)

    @property
    def kept(self) -> tuple[NDArray[Any], ...]:
        return self.centre, self.deviation

    @property
    def initial_weight(self) -> float:
        """Large, for inputs near 2: where units are not correlated, small weights have no gradient."""
        return 2 / math.sqrt(len(self.centre))

    def statistics(self, states: States) -> NDArray[np.float32]:
        return ((states - self.centre) / self.deviation).astype(np.float32)

    def initial_bias(self, states: States) -> Floats:
        return np.zeros(states.shape[1])

    def activate_(self, inputs: Means, bias: Means, further: Further) -> None:
        inputs += bias
        inputs *= np.exp(-further[0])

    def draw_statistics(self, means: Means, further: Further, stream: NDArray[np.uint32]) -> Means:
        uniforms = np.empty(-(-means.size // LANES) * LANES)
        fill_uniforms(stream, 0, uniforms, uniforms.size)
        noise = ndtri(uniforms[: means.size]).reshape(means.shape).astype(means.dtype)
        return means + noise * np.exp(-further[0] / 2)

    def further_slopes(self, data: State, model: State, further: Further) -> Further:
        """Of log τ: -½ τ times the difference of the mean squares."""
        squares = [np.square(each, dtype=np.float32).mean(axis=0) for each in (data, model)]
        return (np.exp(further[0]) * (squares[1] - squares[0]) / 2,)

    def log_weight_of_statistics(self, statistics: State, bias: Means, further: Further) -> Means:
        """Σ t x - ½ τ x²."""
        squares = np.square(statistics, dtype=np.float32)
        return np.matmul(statistics, bias) - np.matmul(squares, np.exp(further[0])) / 2

    def rbm_arguments(
        self, weights: Means, bias: Means, hidden_bias: Means, *further: Means
    ) -> dict[str, Any]:
        """The same distribution written for the values of the data."""
        weights, bias, hidden_bias = (np.asarray(each, np.float64) for each in (weights, bias, hidden_bias))
        precision = np.exp(np.asarray(further[0], np.float64))
        return super().rbm_arguments(
            weights / np.sqrt(precision)[:, np.newaxis],
            self.centre + self.deviation * bias / precision,
            hidden_bias - (self.centre / self.deviation) @ weights,
        ) | {"visible_scale": self.deviation / np.sqrt(precision)}
