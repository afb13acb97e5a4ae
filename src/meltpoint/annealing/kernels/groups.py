"""Potts units, thirty-two at a time: their q inputs, their exponentials, and the one state that is drawn.

A block's words, one for each state, follow each other, and so do the inputs of its states (`annealing.one_hot`). The
state is the first one up to which the weights exp(t - largest t) add up to the uniform's part of their sum.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.annealing.kernels.blocks import Blocks, add_where_on, fold, zeros
from meltpoint.kernels.compiling import intrinsic
from meltpoint.kernels.polynomials import LIMIT
from meltpoint.kernels.streams import LANES
from meltpoint.kernels.xoshiro import UNIFORM, Generators

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_MASK = ir.VectorType(ir.IntType(1), LANES)


@intrinsic
def draw_groups(
    _context: Any,
    generators: Any,
    chain: Any,
    field: Any,
    at: Any,
    bias: Any,
    slope: Any,
    factor: Any,
    real: Any,
    frozen: Any,
    state: Any,
    sums: Any,
    q: Any,
    n_blocks: Any,
) -> Any:
    """Draw a chain's sites, whose states have inputs factor * field[at:] + bias; give the sum of their states' slopes.

    `state` (chain, block of sites and state) is changed in place, but for sites that are frozen or not real. `sums` is
    room for q * LANES numbers; `n_blocks` is that of words, q for each block of sites.
    """
    names = "generators chain field at bias slope factor real frozen state sums q n_blocks"

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        blocks = Blocks(context, builder, signature, args, names)
        reals = blocks.reals()
        streams = Generators(builder, blocks["generators"], blocks["chain"])
        slopes = zeros(builder, reals.vector)
        largest, total = (cgutils.alloca_once(builder, reals.vector) for _ in range(2))
        below = cgutils.alloca_once(builder, _MASK)
        zero, one = ir.Constant(_I64, 0), ir.Constant(_I64, 1)

        def states() -> Any:
            return cgutils.for_range_slice(builder, zero, blocks["q"], one, _I64)

        def kept(s: Any) -> Any:
            """Where the numbers of state s are kept."""
            first = builder.mul(s, ir.Constant(_I64, LANES))
            return builder.bitcast(builder.gep(blocks["sums"], [first]), reals.vector.as_pointer())

        def load(s: Any) -> Any:
            value = builder.load(kept(s))
            value.align = 4
            return value

        def store(value: Any, s: Any) -> None:
            builder.store(value, kept(s)).align = 4

        with cgutils.for_range_slice(builder, zero, blocks["n_blocks"], blocks["q"], _I64) as (first, _):
            builder.store(reals.constant(-3.0e38), largest)
            with states() as (s, _):
                k = builder.add(first, s)
                inputs = reals.convert(blocks.units("field", k, blocks["at"]))
                inputs = reals.fma(inputs, reals.splat(blocks["factor"]), blocks.units("bias", k))
                store(inputs, s)
                before = builder.load(largest)
                larger = builder.fcmp_ordered(">", inputs, before)
                builder.store(builder.select(larger, inputs, before), largest)
            builder.store(reals.constant(0.0), total)
            with states() as (s, _):
                lag = builder.fsub(load(s), builder.load(largest))
                edge = reals.constant(-LIMIT)
                lag = builder.select(builder.fcmp_ordered("<", lag, edge), edge, lag)
                sum_so_far = builder.fadd(builder.load(total), reals.exp(lag))
                builder.store(sum_so_far, total)
                store(sum_so_far, s)
            uniforms = builder.fmul(streams.step(reals.vector), reals.constant(UNIFORM))
            threshold = builder.fmul(uniforms, builder.load(total))
            builder.store(ir.Constant(_MASK, [1] * LANES), below)
            with states() as (s, _):
                k = builder.add(first, s)
                still = builder.fcmp_ordered("<", load(s), threshold)
                drawn = builder.bitcast(builder.and_(builder.load(below), builder.not_(still)), _I32)
                builder.store(builder.and_(builder.load(below), still), below)
                frozen, place = blocks.word("frozen", k), blocks.place("state", k)
                drawn = builder.and_(builder.and_(drawn, blocks.word("real", k)), builder.not_(frozen))
                word = builder.or_(builder.and_(builder.load(place), frozen), drawn)
                builder.store(word, place)
                add_where_on(builder, word, blocks.units("slope", k), slopes)
        streams.keep()
        return fold(builder, builder.load(slopes), builder.fadd)

    i64, value = types.int64, bias.dtype
    signature = types.float64(
        generators, i64, field, i64, bias, slope, value, real, frozen, state, sums, i64, i64
    )
    return signature, codegen
