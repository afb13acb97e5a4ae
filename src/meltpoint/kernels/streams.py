"""Random streams of chains: a chain's stream depends only on the seed, the purpose and the chain's number.

Above the backends, streams are only named. Inside them each chain has 32 xoshiro128++ generators (Blackman and Vigna)
whose outputs are interleaved, so that one vector instruction serves many units. They are seeded as NumPy's SeedSequence
does it, which makes streams of different chains, purposes and seeds independent for all practical purposes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.emitting import I32, I64, Arguments, emitted, load, loop
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


WORDS = ir.VectorType(I32, LANES)

UNIFORM = 2.0**-31
"""The unit of the kernels' uniforms; a power of two, so that it can be left to the comparison they are used in."""


class Generators:
    """Emits the generators of one chain, which stay in registers between steps.

    `states` points to the states (chain, 4, LANES) of all chains.
    """

    def __init__(self, builder: Any, states: Any, chain: Any) -> None:
        self.builder = builder
        self._kept = places_of(builder, states, chain)
        self._words = [cgutils.alloca_once_value(builder, load(builder, kept)) for kept in self._kept]

    def step(self, reals: ir.VectorType) -> Any:
        """Advance, and give LANES uniforms in (0, 1], in units of UNIFORM."""
        words, uniforms = advance(self.builder, [self.builder.load(word) for word in self._words], reals)
        for value, word in zip(words, self._words, strict=True):
            self.builder.store(value, word)
        return uniforms

    def keep(self) -> None:
        """Write the states back."""
        for kept, word in zip(self._kept, self._words, strict=True):
            self.builder.store(self.builder.load(word), kept).align = 4


def places_of(builder: Any, states: Any, row: Any) -> list[Any]:
    """Emit: where the four words of a row of generators are, in an array (row, 4, LANES)."""
    words = builder.bitcast(states, WORDS.as_pointer())
    first = builder.mul(row, ir.Constant(I64, 4))
    return [builder.gep(words, [builder.add(first, ir.Constant(I64, k))]) for k in range(4)]


def advance(builder: Any, words: list[Any], reals: ir.VectorType) -> tuple[list[Any], Any]:
    """Emit: the next words of a row of generators, and their uniforms in (0, 1], in units of UNIFORM."""

    def splat(value: int) -> ir.Constant:
        return ir.Constant(WORDS, [value] * LANES)

    def rotate(word: Any, by: int) -> Any:
        return builder.or_(builder.shl(word, splat(by)), builder.lshr(word, splat(32 - by)))

    s0, s1, s2, s3 = words
    drawn = builder.add(rotate(builder.add(s0, s3), 7), s0)
    shifted = builder.shl(s1, splat(9))
    s2 = builder.xor(s2, s0)
    s3 = builder.xor(s3, s1)
    s1 = builder.xor(s1, s2)
    s0 = builder.xor(s0, s3)
    # 31 bits: a signed conversion is one instruction, and probabilities down to 2**-31 are kept.
    value = builder.sitofp(builder.lshr(drawn, splat(1)), reals)
    uniforms = builder.fadd(value, ir.Constant(reals, [0.5] * LANES))
    return [s0, s1, builder.xor(s2, shifted), rotate(s3, 11)], uniforms


@compiled
def fill_uniforms(state: np.ndarray, chain: int, out: np.ndarray, count: int) -> None:
    """Fill out[:count] (count a multiple of LANES) with uniforms in (0, 1] from one chain's generators."""
    _fill(state, chain, out, count)


@emitted("state chain out count")
def _fill(given: Arguments) -> None:
    """The same; both arrays are C-contiguous, and state (chain, 4, LANES) advances in place."""
    builder = given.builder
    reals = ir.VectorType(given["out"].type.pointee, LANES)
    generators = Generators(builder, given["state"], given["chain"])
    with loop(builder, 0, given["count"], LANES) as (at, _):
        value = builder.fmul(generators.step(reals), ir.Constant(reals, [UNIFORM] * LANES))
        target = builder.bitcast(given.place("out", at), reals.as_pointer())
        builder.store(value, target).align = 4
    generators.keep()
