"""Visible units in training: what their layer holds, how it is drawn, and the RBM that has learned them.

The layer is what the products see: bits of Bernoulli units and of spins, one-hot states of Potts units, standardised
Gaussian values. In these terms log f is linear in the layer with weights and biases for all kinds (but for the square
of Gaussian values, whose precision is a further parameter), so gradients and the optimiser are shared.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.kernels.bit_products import State
from meltpoint.kernels.draws import draw_bits, draw_states
from meltpoint.kernels.sigmoid import sigmoid_, softmax_
from meltpoint.kernels.xoshiro import LANES, fill_uniforms
from meltpoint.layers import BERNOULLI, GAUSSIAN, SPIN, Potts, Unit, unit_named
from meltpoint.models.rbm import RBM
from meltpoint.statistics.special import ndtri

Array: TypeAlias = NDArray[np.floating]
Extras: TypeAlias = tuple[Array, ...]
"""Further parameters (number of the layer,) of visible units."""
Rows: TypeAlias = NDArray[np.uint8] | NDArray[np.float32]
"""Examples (example, unit) as they are kept."""

_MOST_STATES = 256  # that a byte holds


class VisibleUnits(ABC):
    """One kind of visible unit."""

    largest: ClassVar[float] = 1.0
    """The largest number that its layer may hold."""

    n_extras: ClassVar[int] = 0
    """Further parameters of each number of the layer, besides its bias."""

    @property
    def initial_weight(self) -> float:
        """Standard deviation of the first weights."""
        return 0.01

    def width(self, n_units: int) -> int:
        """Numbers in the layer of so many units."""
        return n_units

    @abstractmethod
    def encode(self, data: NDArray[Any], name: str) -> Rows:
        """Examples (example, unit) as they are kept, or an error."""

    @abstractmethod
    def initial_bias(self, rows: Rows) -> NDArray[np.float64]:
        """Biases (number of the layer,) that give every unit its own distribution in the data."""

    @abstractmethod
    def layer(self, rows: Rows, stream: NDArray[np.uint32]) -> State:
        """The layer (example, number) of examples."""

    def values(self, rows: Rows, stream: NDArray[np.uint32]) -> NDArray[Any]:
        """Examples (example, unit) as the model takes them."""
        return self.layer(rows, stream)

    @abstractmethod
    def activate_(self, inputs: Array, bias: Array, extras: Extras) -> None:
        """Replace inputs (example, number) by the means of the layer."""

    @abstractmethod
    def draw(self, means: Array, extras: Extras, stream: NDArray[np.uint32]) -> State:
        """A layer (example, number) drawn with these means."""

    def extra_slopes(self, data: State, model: State, extras: Extras) -> Extras:
        """Gradient of the further parameters, which are zero at first, from the layer in both phases."""
        return ()

    def log_weight(self, layer: State, bias: Array, extras: Extras) -> Array:
        """The part (example,) of log f that the biases make."""
        return np.matmul(layer, bias)

    def rbm(self, parameters: Sequence[Array]) -> RBM:
        """The RBM with weights, visible and hidden biases of the layer."""
        return RBM(*parameters)


@dataclass(frozen=True)
class BernoulliVisible(VisibleUnits):
    """Zeros and ones, or float32 probabilities from which they are drawn when asked for."""

    def encode(self, data: NDArray[Any], name: str) -> Rows:
        """uint8 zeros and ones, or grey values in [0, 1]."""
        if np.issubdtype(data.dtype, np.floating) and data.min() >= 0 and data.max() <= 1:
            grey = ((data != 0) & (data != 1)).any()
            return data.astype(np.float32, copy=False) if grey else data.astype(np.uint8)
        return BERNOULLI.encode(data, name)

    def initial_bias(self, rows: Rows) -> NDArray[np.float64]:
        """Log odds of the rates, smoothed by one example on and one off."""
        rates = (rows.sum(axis=0, dtype=np.float64) + 1.0) / (len(rows) + 2.0)
        return np.log(rates / (1.0 - rates))

    def layer(self, rows: Rows, stream: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """The bits."""
        bits = rows.astype(np.uint8)
        if rows.dtype != np.uint8:
            draw_bits(rows, stream, bits)
        return bits

    def activate_(self, inputs: Array, bias: Array, extras: Extras) -> None:
        """Probabilities of being on."""
        sigmoid_(inputs, bias)

    def draw(self, means: Array, extras: Extras, stream: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """The bits."""
        state = np.empty(means.shape, np.uint8)
        draw_bits(means, stream, state)
        return state


@dataclass(frozen=True)
class SpinVisible(BernoulliVisible):
    """Spins as the bits (spin + 1) / 2, which are what rows hold."""

    def encode(self, data: NDArray[Any], name: str) -> Rows:
        """The bits."""
        return SPIN.encode(data, name)

    def values(self, rows: Rows, stream: NDArray[np.uint32]) -> NDArray[Any]:
        """The spins."""
        return SPIN.decode(self.layer(rows, stream))

    def rbm(self, parameters: Sequence[Array]) -> RBM:
        """The same distribution written for spins."""
        weights, visible_bias, hidden_bias = (np.asarray(each, np.float64) for each in parameters)
        return RBM(
            weights / 2,
            visible_bias / 2,
            hidden_bias + weights.sum(axis=0) / 2,
            visible="spin",
        )


@dataclass(frozen=True)
class PottsVisible(VisibleUnits):
    """States 0 … q - 1; the layer is one-hot, site after site."""

    q: int

    def encode(self, data: NDArray[Any], name: str) -> Rows:
        """The states."""
        return Potts(self.q).encode(data, name)

    def width(self, n_units: int) -> int:
        """One number for each state of each site."""
        return n_units * self.q

    def initial_bias(self, rows: Rows) -> NDArray[np.float64]:
        """Log rates of the states, each smoothed by one example."""
        return Potts(self.q).bias_from_sample(rows, 1.0).ravel()

    def layer(self, rows: Rows, stream: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """One-hot states."""
        one_hot = rows[:, :, np.newaxis] == np.arange(self.q, dtype=np.uint8)
        return one_hot.reshape(len(rows), -1).astype(np.uint8)

    def values(self, rows: Rows, stream: NDArray[np.uint32]) -> NDArray[Any]:
        """The states."""
        return rows

    def activate_(self, inputs: Array, bias: Array, extras: Extras) -> None:
        """Probabilities of the states."""
        softmax_(inputs, bias, self.q)

    def draw(self, means: Array, extras: Extras, stream: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """One-hot states."""
        layer = np.zeros(means.shape, np.uint8)
        draw_states(means, stream, layer, self.q)
        return layer

    def rbm(self, parameters: Sequence[Array]) -> RBM:
        """The RBM with weights (site, state, hidden) and biases (site, state)."""
        weights, visible_bias, hidden_bias = parameters
        return RBM(
            weights.reshape(-1, self.q, weights.shape[1]),
            visible_bias.reshape(-1, self.q),
            hidden_bias,
            visible="potts",
        )


@dataclass(frozen=True, eq=False)
class GaussianVisible(VisibleUnits):
    """Real numbers; the layer holds them with mean 0 and variance 1 in the data, as x with log weight t x - ½ τ x².

    The biases are t, and one further parameter of each unit is log τ, which is learned too: what hidden units explain
    is not noise.
    """

    largest = np.inf
    n_extras = 1  # log τ

    mean: NDArray[np.float64] = field(repr=False)
    deviation: NDArray[np.float64] = field(repr=False)

    def encode(self, data: NDArray[Any], name: str) -> Rows:
        """The values."""
        return GAUSSIAN.encode(data, name).astype(np.float32)

    @property
    def initial_weight(self) -> float:
        """Large, for inputs near 2: where units are not correlated, small weights have no gradient."""
        return 2 / math.sqrt(len(self.mean))

    def initial_bias(self, rows: Rows) -> NDArray[np.float64]:
        """Biases of mean 0."""
        return np.zeros(rows.shape[1])

    def layer(self, rows: Rows, stream: NDArray[np.uint32]) -> NDArray[np.float32]:
        """The standardised values."""
        return ((rows - self.mean) / self.deviation).astype(np.float32)

    def values(self, rows: Rows, stream: NDArray[np.uint32]) -> NDArray[Any]:
        """The values."""
        return rows

    def activate_(self, inputs: Array, bias: Array, extras: Extras) -> None:
        """The means."""
        inputs += bias
        inputs *= np.exp(-extras[0])

    def draw(self, means: Array, extras: Extras, stream: NDArray[np.uint32]) -> Array:
        """Means plus normal noise."""
        uniforms = np.empty(-(-means.size // LANES) * LANES)
        fill_uniforms(stream, 0, uniforms, uniforms.size)
        noise = ndtri(uniforms[: means.size]).reshape(means.shape).astype(means.dtype)
        return means + noise * np.exp(-extras[0] / 2)

    def extra_slopes(self, data: State, model: State, extras: Extras) -> Extras:
        """Gradient of log τ: -½ τ times the difference of the mean squares."""
        squares = [np.square(each, dtype=np.float32).mean(axis=0) for each in (data, model)]
        return (np.exp(extras[0]) * (squares[1] - squares[0]) / 2,)

    def log_weight(self, layer: State, bias: Array, extras: Extras) -> Array:
        """Σ t x - ½ τ x²."""
        return np.matmul(layer, bias) - np.matmul(np.square(layer, dtype=np.float32), np.exp(extras[0])) / 2

    def rbm(self, parameters: Sequence[Array]) -> RBM:
        """The RBM in the units of the data, where x = (v - mean) / deviation."""
        weights, bias, hidden_bias, log_precision = (np.asarray(each, np.float64) for each in parameters)
        precision = np.exp(log_precision)
        return RBM(
            weights / np.sqrt(precision)[:, np.newaxis],
            self.mean + self.deviation * bias / precision,
            hidden_bias - (self.mean / self.deviation) @ weights,
            visible="gaussian",
            visible_scale=self.deviation / np.sqrt(precision),
        )


BERNOULLI_VISIBLE = BernoulliVisible()


def visible_units(kind: str | Unit, data: NDArray[Any], name: str) -> VisibleUnits:
    """Visible units of a kind, for training data (example, unit).

    Potts units have as many states as the data shows, unless `kind` is a unit that says how many.
    """
    if kind == "gaussian" or kind == GAUSSIAN:
        values = GAUSSIAN.encode(data, name)
        deviation = values.std(axis=0)
        return GaussianVisible(values.mean(axis=0), np.where(deviation > 0, deviation, 1.0))
    if kind == "potts" or isinstance(kind, Potts):
        shown = int(data.max()) if data.dtype.kind in "iufb" and np.isfinite(data).all() else 0
        q = kind.q if isinstance(kind, Potts) else max(1, shown) + 1
        if q > _MOST_STATES:
            raise InputError(
                found=f"states up to {q - 1} in {name}",
                expected=f"at most {_MOST_STATES} states",
                remedy="Potts units have no order: for numbers say visible='gaussian'",
            )
        return PottsVisible(q)
    return SpinVisible() if unit_named(kind) == SPIN else BERNOULLI_VISIBLE
