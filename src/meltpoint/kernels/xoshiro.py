"""Uniform numbers inside the kernels: 32 interleaved xoshiro128++ generators per chain.

One step of all 32 generators is written as one LLVM vector operation each, because Numba widens uint32
arithmetic to 64 bits and then does not vectorise it. `meltpoint.kernels.streams` has the same generator in
NumPy, to read and to test against.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.emitting import I32, I64, Arguments, emitted, load, loop
from meltpoint.kernels.streams import LANES

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
