"""Random streams of chains: a chain's stream depends only on the seed, the purpose and the chain's number.

Above the backends, streams are only named. Inside them each chain has 32 xoshiro128++ generators (Blackman and Vigna)
whose outputs are interleaved, so that one vector instruction serves many units. They are seeded as NumPy's SeedSequence
does it, which makes streams of different chains, purposes and seeds independent for all practical purposes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.randomness import Purpose, check_seed, sequence

LANES = 32

_WORDS = 4  # of a SeedSequence's pool
_INIT_A, _MULT_A = 0x43B0D7E5, 0x931E8875
_INIT_B, _MULT_B = 0x8B51F9DD, 0x58F38DED
_MIX_L, _MIX_R = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_SHIFT = np.uint32(16)
_MASK = 0xFFFFFFFF


@dataclass(frozen=True, eq=False)
class Streams:
    """The streams of chains by name: a seed, a purpose, and each chain's number (chain,) or key (chain, number)."""

    seed: int
    purpose: Purpose
    keys: NDArray[np.integer]

    def __post_init__(self) -> None:
        check_seed(self.seed)

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, chains: slice) -> "Streams":
        """The streams of some of the chains."""
        return Streams(self.seed, self.purpose, self.keys[chains])

    def generators(self) -> NDArray[np.uint32]:
        """Generator states (chain, 4, LANES)."""
        return chain_generators(self.seed, self.purpose, self.keys)


def chain_generators(seed: int, purpose: Purpose, chains: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Generator states (chain, 4, LANES) of the chains with the given numbers (chain,) or keys (chain, number)."""
    keys = np.asarray(chains)
    keys = keys[:, np.newaxis] if keys.ndim == 1 else keys
    if keys.size and (
        keys.min() < 0 or keys.max() > _MASK
    ):  # a larger number is more than one word of entropy
        states = [sequence(seed, purpose, *key).generate_state(4 * LANES) for key in keys.tolist()]
        return np.array(states, np.uint32).reshape(-1, 4, LANES)
    return _seed_states(check_seed(seed), int(purpose), keys.astype(np.uint32), 4 * LANES).reshape(
        -1, 4, LANES
    )


def _seed_states(seed: int, purpose: int, keys: NDArray[np.uint32], n_words: int) -> NDArray[np.uint32]:
    """What SeedSequence(seed, spawn_key=(purpose, *key)).generate_state(n_words) gives, for all keys at once."""
    own = [seed >> shift & _MASK for shift in range(0, max(1, seed.bit_length()), 32)]
    own += [0] * (_WORDS - len(own)) + [purpose]
    entropy = [np.full(len(keys), word, np.uint32) for word in own] + list(keys.T)
    constant = _INIT_A

    def mixed_in(word: NDArray[np.uint32]) -> NDArray[np.uint32]:
        nonlocal constant
        word = word ^ np.uint32(constant)
        constant = constant * _MULT_A & _MASK
        word = word * np.uint32(constant)
        return word ^ (word >> _SHIFT)

    def mix(x: NDArray[np.uint32], y: NDArray[np.uint32]) -> NDArray[np.uint32]:
        mixed = _MIX_L * x - _MIX_R * y
        return mixed ^ (mixed >> _SHIFT)

    pool = [mixed_in(word) for word in entropy[:_WORDS]]
    for source in range(_WORDS):
        for k in range(_WORDS):
            if k != source:
                pool[k] = mix(pool[k], mixed_in(pool[source]))
    for word in entropy[_WORDS:]:
        for k in range(_WORDS):
            pool[k] = mix(pool[k], mixed_in(word))

    constants = [_INIT_B]
    for _ in range(n_words):
        constants.append(constants[-1] * _MULT_B & _MASK)
    factors = np.array(constants, np.uint32)
    words = np.stack([pool[i % _WORDS] for i in range(n_words)], axis=1)
    words = (words ^ factors[:-1]) * factors[1:]
    return words ^ (words >> _SHIFT)


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
