"""Potts units, thirty-two at a time: their q inputs, their exponentials, and the one state that is drawn.

A block's words, one for each state, follow each other, and so do the inputs of its states (`annealing.one_hot`). The
state is the first one up to which the weights exp(t - largest t) add up to the uniform's part of their sum.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.backends.numba.kernels.blocks import Blocks, fold, zeros
from meltpoint.kernels.emitting import I32, I64, Arguments, emitted, load, loop
from meltpoint.kernels.polynomials import LIMIT
from meltpoint.kernels.streams import LANES
from meltpoint.kernels.xoshiro import UNIFORM

_MASK = ir.VectorType(ir.IntType(1), LANES)


@emitted(
    "generators chain field at bias slope factor real frozen state sums q n_blocks",
    returns=types.float64,
    reals="bias",
)
def draw_groups(given: Arguments) -> Any:
    """Draw a chain's sites, whose states have inputs factor * field[at:] + bias; give the sum of their states' slopes.

    `state` (chain, block of sites and state) is changed in place, but for sites that are frozen or not real. `sums` is
    room for q * LANES numbers; `n_blocks` is that of words, q for each block of sites.
    """
    builder, blocks = given.builder, Blocks(given)
    reals, streams = blocks.reals(), blocks.generators()
    slopes = zeros(builder, reals.vector)
    largest, total = (cgutils.alloca_once(builder, reals.vector) for _ in range(2))
    below = cgutils.alloca_once(builder, _MASK)

    def kept(s: Any) -> Any:
        """Where the numbers of state s are kept."""
        place = given.place("sums", builder.mul(s, ir.Constant(I64, LANES)))
        return builder.bitcast(place, reals.vector.as_pointer())

    with loop(builder, 0, given["n_blocks"], given["q"]) as (first, _):
        builder.store(reals.constant(-3.0e38), largest)
        with loop(builder, 0, given["q"]) as (s, _):
            k = builder.add(first, s)
            inputs = reals.convert(blocks.fields(k))
            inputs = reals.fma(inputs, reals.splat(given["factor"]), blocks.units("bias", k))
            builder.store(inputs, kept(s)).align = 4
            before = builder.load(largest)
            larger = builder.fcmp_ordered(">", inputs, before)
            builder.store(builder.select(larger, inputs, before), largest)
        builder.store(reals.constant(0.0), total)
        with loop(builder, 0, given["q"]) as (s, _):
            lag = builder.fsub(load(builder, kept(s)), builder.load(largest))
            edge = reals.constant(-LIMIT)
            lag = builder.select(builder.fcmp_ordered("<", lag, edge), edge, lag)
            sum_so_far = builder.fadd(builder.load(total), reals.exp(lag))
            builder.store(sum_so_far, total)
            builder.store(sum_so_far, kept(s)).align = 4
        uniforms = builder.fmul(streams.step(reals.vector), reals.constant(UNIFORM))
        threshold = builder.fmul(uniforms, builder.load(total))
        builder.store(ir.Constant(_MASK, [1] * LANES), below)
        with loop(builder, 0, given["q"]) as (s, _):
            still = builder.fcmp_ordered("<", load(builder, kept(s)), threshold)
            drawn = builder.bitcast(builder.and_(builder.load(below), builder.not_(still)), I32)
            builder.store(builder.and_(builder.load(below), still), below)
            blocks.keep(drawn, builder.add(first, s), slopes)
    streams.keep()
    return fold(builder, builder.load(slopes), builder.fadd)
