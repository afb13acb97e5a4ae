"""Randomness owned by chains: a chain's stream depends on the seed, the purpose and the chain's own number.

Each chain has 32 xoshiro128++ generators (Blackman and Vigna) whose outputs are interleaved, so that one
vector instruction serves many units. They are seeded by NumPy's SeedSequence, which makes streams of different
chains, purposes and seeds independent for all practical purposes.
"""

import numpy as np
from numpy.typing import NDArray

from meltpoint.randomness import Purpose, sequence

LANES = 32


def chain_generators(seed: int, purpose: Purpose, chains: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Generator states (chain, 4, LANES) of the chains with the given numbers (chain,) or keys (chain, key)."""
    keys = np.asarray(chains).reshape(len(chains), -1).tolist()
    states = np.empty((len(keys), 4, LANES), np.uint32)
    for state, key in zip(states, keys, strict=True):
        state[:] = sequence(seed, purpose, *key).generate_state(4 * LANES).reshape(4, LANES)
    return states


def next_uniforms(
    states: NDArray[np.uint32], count: int, dtype: type[np.floating] = np.float64
) -> NDArray[np.floating]:
    """The next uniforms (chain, count) in (0, 1]; advances `states` in place, in whole rows of LANES."""
    rows = -(-count // LANES)
    out = np.empty((len(states), rows, LANES), dtype)
    s0, s1, s2, s3 = (states[:, k] for k in range(4))
    for row in range(rows):
        drawn = _rotate(s0 + s3, 7) + s0
        shifted = s1 << np.uint32(9)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3[:] = _rotate(s3, 11)
        out[:, row] = ((drawn >> np.uint32(1)).astype(dtype) + dtype(0.5)) * dtype(2.0**-31)
    return out.reshape(len(states), -1)[:, :count]


def _rotate(word: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
    return (word << np.uint32(by)) | (word >> np.uint32(32 - by))
