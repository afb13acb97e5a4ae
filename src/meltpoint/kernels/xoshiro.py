"""Uniform numbers inside the kernels: 32 interleaved xoshiro128++ generators per chain.

One step of all 32 generators is written as one LLVM vector operation each, because Numba widens uint32
arithmetic to 64 bits and then does not vectorise it. `meltpoint.kernels.streams` has the same generator in
NumPy, to read and to test against.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.kernels.compiling import compiled, intrinsic
from meltpoint.kernels.streams import LANES

_I32 = ir.IntType(32)
_WORDS = ir.VectorType(_I32, LANES)

UNIFORM = 2.0**-31
"""The unit of the kernels' uniforms; a power of two, so that it can be left to the comparison they are used in."""


class Generators:
    """Emits the generators of one chain, which stay in registers between steps.

    `states` points to the states (chain, 4, LANES) of all chains.
    """

    def __init__(self, builder: Any, states: Any, chain: Any) -> None:
        self.builder = builder
        i64 = ir.IntType(64)
        words = builder.bitcast(states, _WORDS.as_pointer())
        first = builder.mul(chain, ir.Constant(i64, 4))
        self._kept = [builder.gep(words, [builder.add(first, ir.Constant(i64, k))]) for k in range(4)]
        self._words = [cgutils.alloca_once(builder, _WORDS) for _ in range(4)]
        for kept, word in zip(self._kept, self._words, strict=True):
            value = builder.load(kept)
            value.align = 4
            builder.store(value, word)

    def step(self, reals: ir.VectorType) -> Any:
        """Advance, and give LANES uniforms in (0, 1], in units of UNIFORM."""
        builder = self.builder

        def splat(value: int) -> ir.Constant:
            return ir.Constant(_WORDS, [value] * LANES)

        def rotate(word: Any, by: int) -> Any:
            return builder.or_(builder.shl(word, splat(by)), builder.lshr(word, splat(32 - by)))

        s0, s1, s2, s3 = (builder.load(word) for word in self._words)
        drawn = builder.add(rotate(builder.add(s0, s3), 7), s0)
        shifted = builder.shl(s1, splat(9))
        s2 = builder.xor(s2, s0)
        s3 = builder.xor(s3, s1)
        s1 = builder.xor(s1, s2)
        s0 = builder.xor(s0, s3)
        for value, word in zip((s0, s1, builder.xor(s2, shifted), rotate(s3, 11)), self._words, strict=True):
            builder.store(value, word)
        # 31 bits: a signed conversion is one instruction, and probabilities down to 2**-31 are kept.
        value = builder.sitofp(builder.lshr(drawn, splat(1)), reals)
        return builder.fadd(value, ir.Constant(reals, [0.5] * LANES))

    def keep(self) -> None:
        """Write the states back."""
        for kept, word in zip(self._kept, self._words, strict=True):
            self.builder.store(self.builder.load(word), kept).align = 4


@compiled
def fill_uniforms(state: np.ndarray, chain: int, out: np.ndarray, count: int) -> None:
    """Fill out[:count] (count a multiple of LANES) with uniforms in (0, 1] from one chain's generators."""
    _fill(state, chain, out, count)


@intrinsic
def _fill(_context: Any, state: Any, chain: Any, out: Any, count: Any) -> Any:
    """The same; both arrays are C-contiguous, and state (chain, 4, LANES) advances in place."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def data(k: int) -> Any:
            return context.make_array(signature.args[k])(context, builder, args[k]).data

        i64 = ir.IntType(64)
        reals = ir.VectorType(context.get_value_type(signature.args[2].dtype), LANES)
        generators = Generators(builder, data(0), args[1])
        steps = (ir.Constant(i64, 0), args[3], ir.Constant(i64, LANES))
        with cgutils.for_range_slice(builder, *steps, i64) as (at, _):
            value = builder.fmul(generators.step(reals), ir.Constant(reals, [UNIFORM] * LANES))
            target = builder.bitcast(builder.gep(data(2), [at]), reals.as_pointer())
            builder.store(value, target).align = 4
        generators.keep()
        return context.get_dummy_value()

    return types.void(state, types.int64, out, types.int64), codegen
