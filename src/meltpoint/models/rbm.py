"""Restricted Boltzmann machines (paper, section 2.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.field import MarkovRandomField
from meltpoint.errors import InputError
from meltpoint.layers import GAUSSIAN, TWO_STATE, Gaussian, Potts, TwoState, Unit, two_state, unit_named
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models import checks
from meltpoint.models.bipartite import Bipartite, as_bernoulli
from meltpoint.models.factors import Factors, layered_factors, potts_layer_factors
from meltpoint.models.model import Model, ParameterArrays, Uniforms, two_sided_base
from meltpoint.models.readings import Reading, potts_readings, rbm_readings
from meltpoint.models.two_layer import TwoLayer, with_hidden_bits


@dataclass(frozen=True, init=False, repr=False, eq=False)
class RBM(Model):
    """An RBM: log f(v, h) = visible_bias·v + hidden_bias·h + v·weights·h.

    Potts visible units have a bias and a row of weights for each state, and log f has those of the states they are in:
    log f(v, h) = Σ_i visible_bias[i, v_i] + hidden_bias·h + Σ_i weights[i, v_i]·h. Gaussian visible units have
    log f(v, h) = -½ Σ ((v - visible_bias) / visible_scale)² + hidden_bias·h + (v / visible_scale)·weights·h; their
    likelihoods are densities relative to Lebesgue measure.

    Parameters
    ----------
    weights
        (visible, hidden); (sites, states, hidden) for Potts visible units.
    visible_bias
        (visible,); (sites, states) for Potts visible units.
    hidden_bias
        (hidden,).
    visible
        "bernoulli" for units in {0, 1}, "spin" for units in {-1, +1}, "potts" for states 0 … q - 1, "gaussian" for real
        numbers.
    hidden
        "bernoulli" or "spin".
    visible_scale
        Standard deviations (visible,) of Gaussian visible units given the hidden ones, or one for all; 1 by default.

    >>> RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], visible_bias=[0, 0, 0], hidden_bias=[0, 0])
    RBM 3-2
    >>> RBM([[1.0], [0.5]], [0, 0], [0], visible="spin", hidden="spin").log_f([[-1, 1]]).round(4)
    array([0.8133])
    >>> RBM([[[0.0], [1.0], [2.0]]], [[0, 0, 0]], [0], visible="potts").log_f([[2], [0]]).round(4)
    array([2.1269, 0.6931])
    >>> RBM([[1.0]], [0.5], [0], visible="gaussian", visible_scale=2.0).log_f([[0.5], [2.5]]).round(4)
    array([0.8259, 1.0019])
    """

    kind = "RBM"

    weights: Floats
    visible_bias: Floats
    hidden_bias: Floats
    visible: Unit
    hidden: TwoState
    visible_scale: Floats | None

    def __init__(
        self,
        weights: ArrayLike,
        visible_bias: ArrayLike,
        hidden_bias: ArrayLike,
        *,
        visible: str | Unit = "bernoulli",
        hidden: str | Unit = "bernoulli",
        visible_scale: ArrayLike | None = None,
    ) -> None:
        potts = visible == "potts" or isinstance(visible, Potts)
        w = _potts_weights(weights) if potts else checks.parameter(weights, "weights", 2)
        unit = _visible_unit(visible, w)
        bias = (
            _potts_bias(visible_bias, w.shape[:2])
            if potts
            else checks.bias(visible_bias, "visible_bias", w.shape[0], "row of the weights")
        )
        self._set(
            weights=w,
            visible_bias=bias,
            hidden_bias=checks.bias(hidden_bias, "hidden_bias", w.shape[-1], "column of the weights"),
            visible=unit,
            hidden=two_state([unit_named(hidden)])[0],
            visible_scale=_scale(visible_scale, unit, w.shape[0]),
        )

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return self.weights.shape[-1]

    @property
    def n_visible(self) -> int:
        return self.weights.shape[0]

    @property
    def support(self) -> Unit:
        return self.visible

    @property
    def layer_sizes(self) -> tuple[int, int]:
        """Units of each layer, visible first."""
        return self.weights.shape[0], self.weights.shape[-1]

    @property
    def units(self) -> tuple[Unit, TwoState]:
        """The kinds of visible and of hidden units."""
        return self.visible, self.hidden

    @cached_property
    def bipartite(self) -> Bipartite:
        """Visible units are the even side, hidden units the odd side; all have two states."""
        return as_bernoulli([self.weights], [self.visible_bias, self.hidden_bias], self.units).bipartite

    @property
    def mrf(self) -> MarkovRandomField:
        """The two-sided form where all units have two states; else the visible units, the hidden ones summed out."""
        return self.bipartite if isinstance(self.visible, TwoState) else self.two_layer

    @cached_property
    def two_layer(self) -> TwoLayer:
        """Potts or Gaussian visible units, and the bits of the hidden ones."""
        weights, bias, constant = self.weights, self.visible_bias, 0.0
        if self.visible_scale is not None:
            variance = self.visible_scale**2
            weights = (weights / self.visible_scale[:, np.newaxis])[:, np.newaxis]
            constant = -float((bias**2 / variance).sum()) / 2
            bias = GAUSSIAN.bias_from_moments(bias, variance)
        return with_hidden_bits(self.visible, bias, weights, self.hidden_bias, self.hidden, constant)

    def log_f(self, x: ArrayLike) -> Floats:
        """Log unnormalised probability (example,) of visible states, hidden units summed out: exact.

        >>> RBM([[0.0]], [1.0], [0.0]).log_f([[0], [1]]).round(4)
        array([0.6931, 1.6931])
        """
        return self.mrf.log_f(self.encode(x))

    def hidden_given_visible(self, visible: ArrayLike) -> Floats:
        """Probability (example, hidden unit) of being on, or +1."""
        states = self.encode(visible, "visible")
        if isinstance(self.visible, TwoState):
            return self.bipartite.odd_given_even(states)
        return self.two_layer.summed_out.unit.mean(self.two_layer.hidden_inputs(states))

    def visible_given_hidden(self, hidden: ArrayLike) -> Floats:
        """Probability (example, visible unit) of being on, or +1.

        For Potts units the probabilities (example, site, state) of all states, for Gaussian units the means.
        """
        states = checks.examples(hidden, "hidden", self.n_hidden, self.hidden)
        if isinstance(self.visible, TwoState):
            return self.bipartite.even_given_odd(states)
        return self.visible.mean(self.two_layer.visible_inputs(states))

    def visible_log_odds(self, state: Bits, uniforms: Uniforms) -> Floats:
        """Log odds (chain, visible unit) of state 1, given a draw of the hidden units."""
        if not isinstance(self.visible, TwoState):
            raise InputError(
                found=f"{self!r}, whose visible units do not have two states",
                expected="bernoulli or spin units",
                remedy="use raise_log_prob for a conservative estimate",
            )
        return self.bipartite.lowest_even_log_odds(state, uniforms)

    def as_factors(self) -> Factors:
        """Cardinalities of visible, then hidden units, factors (scope, log values), and a constant."""
        if isinstance(self.visible, TwoState):
            return layered_factors([self.weights], [self.visible_bias, self.hidden_bias], self.units)
        if self.visible.n_states is None:
            return super().as_factors()
        return potts_layer_factors(
            self.weights, self.visible_bias, self.hidden_bias, np.array(self.hidden.values)
        )

    def base_inputs(self, layers: Sequence[Floats]) -> tuple[Floats, ...]:
        """Inputs of independent units on the two sides, written for the bits of two-state units."""
        if isinstance(self.visible, TwoState):
            return two_sided_base(layers, self.units)
        return layers[0], self.hidden.scale * layers[1]

    def uniform_layers(self) -> list[Floats]:
        """Inputs of every layer under which all states are equally probable.

        There is no such distribution of real numbers: Gaussian units have their own mean and scale, without weights.
        """
        layers = super().uniform_layers()
        if self.visible_scale is not None:
            layers[0] = GAUSSIAN.bias_from_moments(self.visible_bias, self.visible_scale**2)
        return layers

    def other_readings(self) -> Sequence[Reading]:
        """The sign of an energy, other units or numbers of states; of square weights the axes and biases exchanged."""
        if isinstance(self.visible, Potts):
            w, a, b = -self.weights, -self.visible_bias, -self.hidden_bias
            return potts_readings(
                self.visible.q, partial(RBM, w, a, b, visible=self.visible, hidden=self.hidden)
            )
        return rbm_readings(RBM, self.weights, self.visible_bias, self.hidden_bias, self.units)

    def arrays(self) -> ParameterArrays:
        """Parameters by the names they have in a file."""
        arrays: ParameterArrays = {
            "weights": self.weights,
            "visible_bias": self.visible_bias,
            "hidden_bias": self.hidden_bias,
        }
        return arrays if self.visible_scale is None else {**arrays, "visible_scale": self.visible_scale}

    @classmethod
    def array_names(cls, present: set[str]) -> list[str]:
        """Names that a file must have; Gaussian units have scales too."""
        scale = ["visible_scale"] if "visible_scale" in present else []
        return ["weights", "visible_bias", "hidden_bias", *scale]

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "RBM":
        """The RBM with these parameters, in the order of `array_names`."""
        visible, hidden = checks.unit_names(units, 2)
        weights, visible_bias, hidden_bias, *scale = arrays
        return cls(
            weights,
            visible_bias,
            hidden_bias,
            visible=visible,
            hidden=hidden,
            visible_scale=scale[0] if scale else None,
        )


def _visible_unit(visible: str | Unit, weights: Floats) -> Unit:
    """The kind of visible units; the number of states of Potts units is that of the weights."""
    if weights.ndim == 3:
        if isinstance(visible, Potts) and visible.q != weights.shape[1]:
            raise InputError(
                found=f"weights of {weights.shape[1]} states",
                expected=f"{visible.q}, as the visible units have",
                remedy="weights of Potts units are (sites, states, hidden)",
            )
        return Potts(weights.shape[1])
    if visible == "gaussian":
        return GAUSSIAN
    if isinstance(visible, str) and visible not in TWO_STATE:
        raise InputError(
            found=f"units {visible!r}",
            expected="'bernoulli', 'spin', 'potts' or 'gaussian'",
            remedy="'bernoulli' units are 0 and 1, 'spin' units -1 and +1, 'potts' units numbers from 0 on, "
            "'gaussian' units real numbers",
        )
    return unit_named(visible)


def _potts_weights(weights: ArrayLike) -> Floats:
    weights = checks.as_array(weights, "weights")
    if weights.ndim != 3:
        raise InputError(
            found=f"weights of shape {weights.shape} for Potts visible units",
            expected="three axes: (sites, states, hidden)",
            remedy="weights of one-hot units (sites · states, hidden) become weights.reshape(sites, states, -1)",
        )
    return checks.parameter(weights, "weights", 3)


def _potts_bias(bias: ArrayLike, shape: tuple[int, ...]) -> Floats:
    held = checks.as_array(bias, "visible_bias")
    array = checks.parameter(held, "visible_bias", held.ndim or 1)
    if array.shape != shape:
        raise InputError(
            found=f"visible_bias of shape {array.shape}",
            expected=f"{shape}, (sites, states) as in the weights",
            remedy="reshape it: visible_bias.reshape(sites, states)"
            if array.size == np.prod(shape)
            else "do weights and biases belong together?",
        )
    return array


def _scale(scale: ArrayLike | None, unit: Unit, n_visible: int) -> Floats | None:
    """Standard deviations (visible,) of Gaussian units; other units have none."""
    if not isinstance(unit, Gaussian):
        if scale is not None:
            raise InputError(
                found=f"visible_scale with {unit.name} visible units",
                expected="it with gaussian units only",
                remedy="leave it out, or say visible='gaussian'",
            )
        return None
    given = np.ones(n_visible) if scale is None else scale
    array = np.full(n_visible, given) if np.ndim(given) == 0 else given
    scales = checks.bias(array, "visible_scale", n_visible, "row of the weights")
    if not (scales > 0).all():
        raise InputError(
            found=f"visible_scale down to {scales.min():g}",
            expected="positive standard deviations",
            remedy="are they log variances? take exp(½ of them)",
        )
    return scales
