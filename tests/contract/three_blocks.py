"""Models of three coupled units with a factor of order three: three blocks, which only the reference backend runs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from meltpoint.annealing.base import Base
from meltpoint.annealing.blocks import UnitBlock
from meltpoint.annealing.field import MarkovRandomField
from meltpoint.layers import Unit, unit_named
from meltpoint.layers.unit import Floats, States
from meltpoint.models.model import Model
from oracle import chains
from oracle.tables import all_states


@dataclass(frozen=True, eq=False)
class Triangle(MarkovRandomField):
    """log f = bias·x + ½ x·couplings·x + cubic x_0 x_1 x_2, over three units and perhaps a fourth, summed out."""

    unit: Unit
    bias: Floats  # (unit,)
    couplings: Floats  # (unit, unit), symmetric, with a zero diagonal
    cubic: float

    @property
    def state_blocks(self) -> tuple[UnitBlock, ...]:
        return tuple(self._block(i) for i in range(3))

    @property
    def summed_out(self) -> UnitBlock | None:
        return self._block(3) if self.bias.size > 3 else None

    def _block(self, i: int) -> UnitBlock:
        return UnitBlock(self.unit, np.array([i]), (1,))

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        (i,) = np.arange(self.bias.size)[block.columns]
        x = self.unit.decode(units).astype(float)
        others = [j for j in range(3) if j != i]
        cubic = self.cubic * x[:, others].prod(axis=1) if i < 3 else 0.0
        return (self.bias[i] + x @ self.couplings[i] + cubic)[:, np.newaxis]

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        x = self.unit.decode(units[:, :3]).astype(float)
        pairs = np.einsum("ci,ij,cj->c", x, self.couplings[:3, :3], x) / 2
        return x @ self.bias[:3] + pairs + self.cubic * x.prod(axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class ThreeBlocks(Model):
    """A triangle with some visible units; what is hidden is kept in the state, but for a fourth unit."""

    kind = "triangle"

    triangle: Triangle
    visible: int

    @property
    def n_visible(self) -> int:
        return self.visible

    @property
    def support(self) -> Unit:
        return self.triangle.unit

    def fingerprint(self) -> str:
        triangle = self.triangle
        return repr(
            [triangle.unit, triangle.bias.tolist(), triangle.couplings.tolist(), triangle.cubic, self.visible]
        )

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        hidden = self.triangle.bias.size - self.visible
        return (self.visible, hidden) if hidden else (self.visible,)

    @property
    def units(self) -> tuple[Unit, ...]:
        return (self.triangle.unit,) * len(self.layer_sizes)

    @property
    def mrf(self) -> Triangle:
        return self.triangle

    def log_f(self, x: ArrayLike) -> Floats:
        """Hidden units of the state are added up by hand."""
        visible, hidden = self.encode(x), all_states(3 - self.visible)
        states = np.concatenate(
            [np.repeat(visible, len(hidden), axis=0), np.tile(hidden, (len(visible), 1))], axis=1
        )
        return np.asarray(logsumexp(self.mrf.log_f(states).reshape(len(visible), -1), axis=1))

    def oracle_path(self, base: Base) -> chains.Path:
        """The oracle's path, from its own table of log f over all units."""
        n = self.triangle.bias.size
        values = np.array(self.triangle.unit.values)
        x = values[all_states(n)]
        log_f = x @ self.triangle.bias + self.triangle.cubic * x[:, 0] * x[:, 1] * x[:, 2]
        for i in range(n):
            for j in range(i):
                log_f = log_f + self.triangle.couplings[i, j] * x[:, i] * x[:, j]
        biases = np.zeros(n)
        given = np.concatenate([*base.biases, np.zeros(0)])
        biases[: given.size] = given
        order = [3, 0, 1, 2] if n > 3 else [0, 1, 2]  # what is summed out is drawn first
        layer = (np.arange(n) >= self.visible).astype(np.int64)
        return chains.BlockPath(x @ biases, log_f, layer, tuple(np.arange(n) == i for i in order))


def three_blocks(kind: str, unit: str, seed: int = 0, scale: float = 1.2) -> ThreeBlocks:
    """A random model: "visible" has no hidden unit, "hidden" keeps one in the state, "summed out" has a fourth."""
    n = 4 if kind == "summed out" else 3
    rng = np.random.default_rng([seed, n])
    couplings = np.triu(rng.normal(0, scale, (n, n)), 1)
    triangle = Triangle(unit_named(unit), rng.normal(0, scale, n), couplings + couplings.T, 1.5 * scale)
    return ThreeBlocks(triangle, 2 if kind == "hidden" else 3)


def states_of(model: Model) -> States:
    """Every visible state."""
    return all_states(model.n_visible)
