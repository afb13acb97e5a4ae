"""Uniform numbers inside the kernels: 32 interleaved xoshiro128++ generators per chain.

One step of all 32 generators is written as one LLVM vector operation each, because Numba widens uint32
arithmetic to 64 bits and then does not vectorise it. `meltpoint.annealing.streams` has the same generator in
NumPy, to read and to test against.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from meltpoint.annealing.kernels.compiling import compiled, intrinsic
from meltpoint.annealing.streams import LANES

_I32 = ir.IntType(32)
_WORDS = ir.VectorType(_I32, LANES)

UNIFORM = 2.0**-31
"""The unit of the kernels' uniforms; a power of two, so that it can be left to the comparison they are used in."""


def emit_uniforms(builder: Any, states: Any, chain: Any, reals: ir.VectorType) -> Any:
    """Emit one step of a chain's generators: LANES uniforms in (0, 1], in units of UNIFORM.

    The states (chain, 4, LANES) advance in place.
    """

    def splat(value: int) -> ir.Constant:
        return ir.Constant(_WORDS, [value] * LANES)

    def rotate(word: Any, by: int) -> Any:
        return builder.or_(builder.shl(word, splat(by)), builder.lshr(word, splat(32 - by)))

    i64 = ir.IntType(64)
    words = builder.bitcast(states, _WORDS.as_pointer())
    first = builder.mul(chain, ir.Constant(i64, 4))
    places = [builder.gep(words, [builder.add(first, ir.Constant(i64, k))]) for k in range(4)]
    s0, s1, s2, s3 = loaded = [builder.load(place) for place in places]
    for value in loaded:
        value.align = 4
    drawn = builder.add(rotate(builder.add(s0, s3), 7), s0)
    shifted = builder.shl(s1, splat(9))
    s2 = builder.xor(s2, s0)
    s3 = builder.xor(s3, s1)
    s1 = builder.xor(s1, s2)
    s0 = builder.xor(s0, s3)
    for word, place in zip((s0, s1, builder.xor(s2, shifted), rotate(s3, 11)), places, strict=True):
        builder.store(word, place).align = 4
    # 31 bits: a signed conversion is one instruction, and probabilities down to 2**-31 are kept.
    value = builder.sitofp(builder.lshr(drawn, splat(1)), reals)
    return builder.fadd(value, ir.Constant(reals, [0.5] * LANES))


@intrinsic
def _next_uniforms(_context: Any, state: Any, chain: Any, out: Any, at: Any) -> Any:
    """Write LANES uniforms to out[at:] and advance state (chain, 4, LANES) of one chain; both C-contiguous."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def data(k: int) -> Any:
            return context.make_array(signature.args[k])(context, builder, args[k]).data

        reals = ir.VectorType(context.get_value_type(signature.args[2].dtype), LANES)
        value = emit_uniforms(builder, data(0), args[1], reals)
        value = builder.fmul(value, ir.Constant(reals, [UNIFORM] * LANES))
        target = builder.bitcast(builder.gep(data(2), [args[3]]), reals.as_pointer())
        builder.store(value, target).align = 4
        return context.get_dummy_value()

    return types.void(state, types.int64, out, types.int64), codegen


@compiled
def fill_uniforms(state: np.ndarray, chain: int, out: np.ndarray, count: int) -> None:
    """Fill out[:count] (count a multiple of LANES) with uniforms in (0, 1] from one chain's generators."""
    for at in range(0, count, LANES):
        _next_uniforms(state, chain, out, at)
