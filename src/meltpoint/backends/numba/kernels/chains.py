"""Vectors across chains: CHAINS chains advance together, one lane of a vector each, at the same site.

Every chain keeps the generators of `meltpoint.kernels.streams` to itself: LANES of them, whose outputs are taken
in turn. In a group's array (lane, 4, chain) one step of the same generator of every chain is one vector operation, so
that uniforms come out in the order of sites without being transposed.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.emitting import I64, load
from meltpoint.kernels.streams import LANES, advance, places_of

CHAINS = 32
"""Chains of a group: the bits of a word."""


def n_groups(n_chains: int) -> int:
    """Groups that hold so many chains."""
    return -(-n_chains // CHAINS)


def group_generators(generators: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Generator states (group, lane, 4, chain of the group) of those of chains (chain, 4, LANES)."""
    full = np.ones((n_groups(len(generators)) * CHAINS, *generators.shape[1:]), np.uint32)
    full[: len(generators)] = generators
    return np.ascontiguousarray(full.reshape(-1, CHAINS, 4, LANES).transpose(0, 3, 2, 1))


@compiled
def pack_bits(bits: np.ndarray, n_words: int) -> np.ndarray:
    """Words (group, site) whose bit k is the site's state in the group's chain k, of bits (chain, site of the state).

    Sites from those of the state up to `n_words` are zero.
    """
    n_chains, n_sites = bits.shape
    words = np.zeros(((n_chains + CHAINS - 1) // CHAINS, n_words), np.uint32)
    for chain in range(n_chains):
        row = words[chain // CHAINS]
        for site in range(n_sites):
            row[site] |= np.uint32(np.uint32(bits[chain, site] != 0) << np.uint32(chain % CHAINS))
    return words


@compiled
def unpack_bits(words: np.ndarray, out: np.ndarray) -> None:
    """The bits (chain, site) that `pack_bits` was given; sites of the words that `out` has no column for are left."""
    for chain in range(out.shape[0]):
        row = words[chain // CHAINS]
        for site in range(out.shape[1]):
            out[chain, site] = (row[site] >> np.uint32(chain % CHAINS)) & np.uint32(1)


def step_generators(builder: Any, states: Any, group: Any, lane: Any, reals: ir.VectorType) -> Any:
    """Emit: advance one generator of every chain of a group; gives their uniforms in (0, 1], in units of UNIFORM.

    `states` points to (group, LANES, 4, CHAINS).
    """
    row = builder.add(builder.mul(group, ir.Constant(I64, LANES)), lane)
    places = places_of(builder, states, row)
    words, uniforms = advance(builder, [load(builder, place) for place in places], reals)
    for value, place in zip(words, places, strict=True):
        builder.store(value, place).align = 4
    return uniforms
