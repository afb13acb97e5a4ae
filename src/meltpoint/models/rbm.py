"""Restricted Boltzmann machines (paper, section 2.1)."""

from dataclasses import dataclass
from functools import cached_property

from numpy.typing import ArrayLike
from scipy.special import expit

from meltpoint.models import checks
from meltpoint.models.bipartite import Bipartite, Block
from meltpoint.models.checks import Floats


@dataclass(frozen=True, init=False, repr=False, eq=False)
class RBM:
    """A binary RBM: log f(v, h) = visible_bias·v + hidden_bias·h + v·weights·h, units in {0, 1}.

    >>> RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], visible_bias=[0, 0, 0], hidden_bias=[0, 0])
    RBM 3-2
    """

    weights: Floats
    visible_bias: Floats
    hidden_bias: Floats

    def __init__(self, weights: ArrayLike, visible_bias: ArrayLike, hidden_bias: ArrayLike) -> None:
        w = checks.parameter(weights, "weights", 2)
        object.__setattr__(self, "weights", w)
        object.__setattr__(
            self, "visible_bias", checks.bias(visible_bias, "visible_bias", w.shape[0], "row of the weights")
        )
        object.__setattr__(
            self, "hidden_bias", checks.bias(hidden_bias, "hidden_bias", w.shape[1], "column of the weights")
        )

    def __repr__(self) -> str:
        return f"RBM {self.n_visible}-{self.n_hidden}"

    @property
    def n_visible(self) -> int:
        """Number of visible units."""
        return self.weights.shape[0]

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return self.weights.shape[1]

    @property
    def layer_sizes(self) -> tuple[int, int]:
        """Units of each layer, visible first."""
        return self.n_visible, self.n_hidden

    @cached_property
    def bipartite(self) -> Bipartite:
        """Visible units are the even side, hidden units the odd side."""
        return Bipartite((self.visible_bias,), (self.hidden_bias,), (Block(0, 0, self.weights),))

    def log_f(self, x: ArrayLike) -> Floats:
        """Log unnormalised probability (example,) of visible states, hidden units summed out: exact.

        >>> RBM([[0.0]], [1.0], [0.0]).log_f([[0], [1]]).round(4)
        array([0.6931, 1.6931])
        """
        return self.bipartite.log_f(checks.binary(x, "x", self.n_visible))

    def hidden_given_visible(self, visible: ArrayLike) -> Floats:
        """Probability (example, hidden unit) of being on."""
        return expit(checks.binary(visible, "visible", self.n_visible) @ self.weights + self.hidden_bias)

    def visible_given_hidden(self, hidden: ArrayLike) -> Floats:
        """Probability (example, visible unit) of being on."""
        return expit(checks.binary(hidden, "hidden", self.n_hidden) @ self.weights.T + self.visible_bias)
