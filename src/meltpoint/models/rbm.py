"""Restricted Boltzmann machines (paper, section 2.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike, NDArray

from meltpoint.models import checks
from meltpoint.models.bipartite import Bipartite, as_bernoulli
from meltpoint.models.factors import Factors, layered_factors
from meltpoint.models.model import Arrays, Model, Uniforms, two_sided_base
from meltpoint.units import Unit, unit_named
from meltpoint.units.unit import Bits, Floats


@dataclass(frozen=True, init=False, repr=False, eq=False)
class RBM(Model):
    """An RBM: log f(v, h) = visible_bias·v + hidden_bias·h + v·weights·h.

    Parameters
    ----------
    weights
        (visible, hidden).
    visible_bias
        (visible,).
    hidden_bias
        (hidden,).
    visible
        "bernoulli" for units in {0, 1}, "spin" for units in {-1, +1}.
    hidden
        The same for the hidden units.

    >>> RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], visible_bias=[0, 0, 0], hidden_bias=[0, 0])
    RBM 3-2
    >>> RBM([[1.0], [0.5]], [0, 0], [0], visible="spin", hidden="spin").log_f([[-1, 1]]).round(4)
    array([0.8133])
    """

    kind = "RBM"

    weights: Floats
    visible_bias: Floats
    hidden_bias: Floats
    visible: Unit
    hidden: Unit

    def __init__(
        self,
        weights: ArrayLike,
        visible_bias: ArrayLike,
        hidden_bias: ArrayLike,
        *,
        visible: str | Unit = "bernoulli",
        hidden: str | Unit = "bernoulli",
    ) -> None:
        w = checks.parameter(weights, "weights", 2)
        object.__setattr__(self, "weights", w)
        object.__setattr__(
            self, "visible_bias", checks.bias(visible_bias, "visible_bias", w.shape[0], "row of the weights")
        )
        object.__setattr__(
            self, "hidden_bias", checks.bias(hidden_bias, "hidden_bias", w.shape[1], "column of the weights")
        )
        object.__setattr__(self, "visible", unit_named(visible))
        object.__setattr__(self, "hidden", unit_named(hidden))

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return self.weights.shape[1]

    @property
    def layer_sizes(self) -> tuple[int, int]:
        """Units of each layer, visible first."""
        return self.weights.shape[0], self.weights.shape[1]

    @property
    def units(self) -> tuple[Unit, Unit]:
        """The kinds of visible and of hidden units."""
        return self.visible, self.hidden

    @cached_property
    def bipartite(self) -> Bipartite:
        """Visible units are the even side, hidden units the odd side."""
        return as_bernoulli([self.weights], [self.visible_bias, self.hidden_bias], self.units).bipartite

    @property
    def mrf(self) -> Bipartite:
        """The two-sided form."""
        return self.bipartite

    def log_f(self, x: ArrayLike) -> Floats:
        """Log unnormalised probability (example,) of visible states, hidden units summed out: exact.

        >>> RBM([[0.0]], [1.0], [0.0]).log_f([[0], [1]]).round(4)
        array([0.6931, 1.6931])
        """
        return self.bipartite.log_f(self.encode(x))

    def hidden_given_visible(self, visible: ArrayLike) -> Floats:
        """Probability (example, hidden unit) of being on, or +1."""
        return self.bipartite.odd_given_even(self.encode(visible, "visible"))

    def visible_given_hidden(self, hidden: ArrayLike) -> Floats:
        """Probability (example, visible unit) of being on, or +1."""
        return self.bipartite.even_given_odd(checks.examples(hidden, "hidden", self.n_hidden, self.hidden))

    def visible_log_odds(self, state: Bits, uniforms: Uniforms) -> Floats:
        """Log odds (chain, visible unit) of state 1, given a draw of the hidden units."""
        return self.bipartite.lowest_even_log_odds(state, uniforms)

    def as_factors(self) -> Factors:
        """Cardinalities of visible, then hidden units, factors (scope, log values), and a constant."""
        return layered_factors([self.weights], [self.visible_bias, self.hidden_bias], self.units)

    def base_inputs(self, layers: Sequence[Floats]) -> tuple[Floats, ...]:
        """Inputs of the bits of independent units on the two sides."""
        return two_sided_base(layers, self.units)

    def arrays(self) -> Arrays:
        """Parameters by the names they have in a file."""
        return {"weights": self.weights, "visible_bias": self.visible_bias, "hidden_bias": self.hidden_bias}

    @classmethod
    def array_names(cls, present: set[str]) -> list[str]:
        """Names that a file must have."""
        del present
        return ["weights", "visible_bias", "hidden_bias"]

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "RBM":
        """The RBM with these parameters, in the order of `array_names`."""
        visible, hidden = checks.unit_names(units, 2)
        return cls(*arrays, visible=visible, hidden=hidden)
