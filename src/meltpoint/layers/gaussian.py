"""Gaussian units: real numbers."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.layers.bernoulli import check_real
from meltpoint.layers.unit import Bits, Floats, Unit
from meltpoint.statistics.elementary import log
from meltpoint.statistics.special import ndtri

_LARGEST_UNIFORM = 1 - 2.0**-32


class Gaussian(Unit):
    """A real number v with log weight t v - ½ τ v²: an input is (t, τ), so inputs are (…, unit, 2).

    The precision τ is positive; mean and variance are t / τ and 1 / τ. Sums over states are integrals, and
    probabilities are densities relative to Lebesgue measure.
    """

    name: ClassVar[str] = "gaussian"
    values_in_words: ClassVar[str] = "real numbers"
    has_scale: ClassVar[bool] = True

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    @property
    def n_states(self) -> None:
        """States are real numbers."""
        return

    @property
    def dtype(self) -> np.dtype[Any]:
        """Float64."""
        return np.dtype(np.float64)

    @property
    def input_shape(self) -> tuple[int]:
        """t and τ."""
        return (2,)

    def encode(self, values: NDArray[Any], name: str) -> Floats:
        """The same as float64."""
        check_real(values, name, "real numbers")
        if not np.isfinite(values).all():
            raise InputError(
                found=f"infinite values in {name}",
                expected="finite numbers",
                remedy="drop or clip them first",
            )
        return values.astype(np.float64)

    def decode(self, states: Bits) -> Floats:
        """The states themselves."""
        return states

    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        """½ t² / τ + ½ log(2π / τ), the log of the integral."""
        t, precision = inputs[..., 0], inputs[..., 1]
        return t**2 / precision / 2 + log(2 * np.pi / precision) / 2

    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        """t / τ."""
        return inputs[..., 0] / inputs[..., 1]

    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> Floats:
        """The quantile of the uniform."""
        normal = ndtri(np.minimum(uniforms, _LARGEST_UNIFORM))
        return self.mean(inputs) + normal / np.sqrt(inputs[..., 1])

    def sufficient(self, states: Bits) -> Floats:
        return np.stack([states, -(states**2) / 2], axis=-1)

    def log_weight(self, states: Bits, inputs: NDArray[np.floating]) -> Floats:
        """T v - ½ τ v²."""
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
