"""Restricted Boltzmann machines (paper, section 2.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.arguments import public
from meltpoint.errors import InputError
from meltpoint.layers import GAUSSIAN, Unit, kind_of_layer, layer_named
from meltpoint.layers.unit import Floats
from meltpoint.models import checks
from meltpoint.models.bipartite import BipartiteModel, Layers
from meltpoint.models.model import ParameterArrays
from meltpoint.models.readings import Reading, potts_readings, rbm_readings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class RBM(BipartiteModel):
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
    file_arrays = ("weights", "visible_bias", "hidden_bias")

    weights: Floats
    visible_bias: Floats
    hidden_bias: Floats
    visible: Unit
    hidden: Unit
    visible_scale: Floats | None

    @public
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
        many = [kind_of_layer(kind).counts_states for kind in (visible, hidden)]
        w = _weights(weights, *many)
        unit, hidden_unit = layer_named(visible, w.shape[1]), layer_named(hidden, w.shape[-1])
        n_visible, n_hidden = w.shape[0], w.shape[-2 if many[1] else -1]
        # Users give the mean and the scale of Gaussian visible units.
        shape, column = () if unit.has_scale else unit.input_shape, "column of the weights"
        self._set(
            weights=w,
            visible_bias=checks.bias(visible_bias, "visible_bias", n_visible, "row of the weights", shape),
            hidden_bias=checks.bias(hidden_bias, "hidden_bias", n_hidden, column, hidden_unit.input_shape),
            visible=unit,
            hidden=hidden_unit,
            visible_scale=_scale(visible_scale, unit, n_visible),
        )

    @property
    def n_hidden(self) -> int:
        return len(self.hidden_bias)

    @property
    def units(self) -> tuple[Unit, Unit]:
        return self.visible, self.hidden

    @cached_property
    def layers(self) -> Layers:  # pyright: ignore[reportIncompatibleMethodOverride]
        weights = self.weights.reshape(len(self.weights) * self.visible.n_coupled, -1)
        mean, scale = self.visible_bias, self.visible_scale
        if scale is None:
            return Layers((weights,), (mean, self.hidden_bias))
        biases = GAUSSIAN.bias_from_moments(mean, scale**2), self.hidden_bias
        return Layers((weights / scale[:, np.newaxis],), biases, -float((mean**2 / scale**2).sum()) / 2)

    def log_f(self, x: ArrayLike) -> Floats:
        """Log unnormalised probability (example,) of visible states, hidden units summed out: exact.

        >>> RBM([[0.0]], [1.0], [0.0]).log_f([[0], [1]]).round(4)
        array([0.6931, 1.6931])
        """
        return self.mrf.log_f(self.encode(x))

    def hidden_given_visible(self, visible: ArrayLike) -> Floats:
        """Probability (example, hidden unit) of being on, or +1."""
        return self.mrf.odd_given_even(self.encode(visible, "visible"))

    def visible_given_hidden(self, hidden: ArrayLike) -> Floats:
        """Probability (example, visible unit) of being on, or +1.

        For Potts units the probabilities (example, site, state) of all states, for Gaussian units the means.
        """
        return self.mrf.even_given_odd(checks.examples(hidden, "hidden", self.n_hidden, self.hidden))

    def other_readings(self) -> Sequence[Reading]:
        """The sign of an energy, other units or numbers of states; of square weights the axes and biases exchanged."""
        if self.visible.counts_states and self.visible.n_states and self.hidden.bit is not None:
            w, a, b = -self.weights, -self.visible_bias, -self.hidden_bias
            return potts_readings(
                self.visible.n_states, partial(RBM, w, a, b, visible=self.visible, hidden=self.hidden)
            )
        return rbm_readings(RBM, self.weights, self.visible_bias, self.hidden_bias, self.units)

    def arrays(self) -> ParameterArrays:
        names = (*self.file_arrays, *([] if self.visible_scale is None else ["visible_scale"]))
        return {name: getattr(self, name) for name in names}

    @classmethod
    def array_names(cls, present: set[str]) -> list[str]:
        return [*cls.file_arrays, *({"visible_scale"} & present)]

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "RBM":
        visible, hidden = checks.unit_names(units, 2)
        scale = arrays[3] if len(arrays) > 3 else None
        return cls(*arrays[:3], visible=visible, hidden=hidden, visible_scale=scale)


def _weights(weights: ArrayLike, visible_states: bool, hidden_states: bool) -> Floats:
    """Weights (visible, hidden), with an axis of states behind the units that have weights for each state."""
    array = checks.given_parameter(weights, "weights")
    ndim = 2 + visible_states + hidden_states
    if visible_states and not hidden_states and array.ndim != ndim:
        raise InputError(
            found=f"weights of shape {array.shape} for Potts visible units",
            expected="three axes: (sites, states, hidden)",
            remedy="weights of one-hot units (sites · states, hidden) become weights.reshape(sites, states, -1)",
        )
    return checks.parameter(array, "weights", ndim)


def _scale(scale: ArrayLike | None, unit: Unit, n_visible: int) -> Floats | None:
    """Standard deviations (visible,) of Gaussian units; other units have none."""
    if not unit.has_scale:
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
