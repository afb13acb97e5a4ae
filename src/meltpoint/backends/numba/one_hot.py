"""Potts units as bits of which exactly one is on in each group: the form in which the two-sided kernels run them.

A site is a group of q even units. Sites lie in blocks of LANES, and a block has one word for each state: its bits say
which of the block's sites are in that state. So a block's sites are drawn together, lane by lane.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.field import BlockPath
from meltpoint.kernels.streams import LANES
from meltpoint.layers import Potts
from meltpoint.layers.unit import Bits
from meltpoint.models.bipartite import Bipartite, TwoSidedPath, WeightBlock
from meltpoint.models.two_layer import TwoLayer


@dataclass(frozen=True)
class OneHot:
    """Where the states of sites lie among the bits (block, state, lane)."""

    sites: int
    q: int

    @property
    def n_blocks(self) -> int:
        """Blocks of sites, the last one padded."""
        return -(-self.sites // LANES)

    def rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (site, state, …) at their places (bit, …); those of padding are zero."""
        padded = np.zeros((self.n_blocks * LANES, *values.shape[1:]), values.dtype)
        padded[: self.sites] = values
        blocks = padded.reshape(self.n_blocks, LANES, *values.shape[1:])
        return np.ascontiguousarray(np.moveaxis(blocks, 2, 1)).reshape(
            len(padded) * self.q, *values.shape[2:]
        )

    def bits(self, states: Bits) -> NDArray[np.uint8]:
        """Bits (chain, bit) of states (chain, site)."""
        one_hot = states[..., np.newaxis] == np.arange(self.q, dtype=states.dtype)
        return self._each_chain(one_hot.astype(np.uint8))

    def states(self, bits: NDArray[np.uint8]) -> Bits:
        """States (chain, site) of bits (chain, bit)."""
        blocks = bits.reshape(len(bits), self.n_blocks, self.q, LANES)
        return (
            blocks.argmax(axis=2)
            .reshape(len(bits), self.n_blocks * LANES)[:, : self.sites]
            .astype(Potts(self.q).dtype)
        )

    def all_states(self, sites: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Bits (bit,) that are on for every state of some sites (site,)."""
        return self.rows(np.repeat(sites[:, np.newaxis], self.q, axis=1))

    def _each_chain(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (chain, site, state) at their places (chain, bit)."""
        return np.ascontiguousarray(self.rows(np.moveaxis(values, 0, 2)).T)


def has_potts_sites(path: BlockPath) -> bool:
    """Whether a path leads to Potts units with hidden bits that are summed out."""
    target = path.target.form(TwoLayer)
    if target is None or target.hidden.bit is None:
        return False
    return target.unit.input_shape == (target.unit.n_states,)


def one_hot_path(path: BlockPath) -> tuple[OneHot, TwoSidedPath]:
    """The same path for the bits of its Potts sites."""
    target = path.target.form(TwoLayer)
    assert target is not None, "has_potts_sites says so"
    places = OneHot(target.n_visible, target.bias.shape[1])
    bits = Bipartite(
        (places.rows(target.bias),),
        (target.hidden_bias,),
        (WeightBlock(0, 0, places.rows(target.weights)),),
    )
    even, odd = path.base
    return places, TwoSidedPath(bits, (places.rows(even), odd))


def largest_slope(path: BlockPath) -> float:
    """The largest |d t / d beta| that a hidden unit's input t can have: one state of each site counts."""
    target = path.target
    assert isinstance(target, TwoLayer)
    slopes = np.abs(target.hidden_bias - path.base[1]) + np.abs(target.weights).max(axis=1).sum(axis=0)
    return float(slopes.max())
