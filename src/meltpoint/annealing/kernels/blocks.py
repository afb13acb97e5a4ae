"""Thirty-two units at a time: their inputs, their exponentials, their draws, their share of the weight.

The loop spends as long here as on the row sums, so a block is emitted as LLVM vectors: constants are loaded once
for four registers, the generators' outputs never touch memory, and the drawn units come out as the bits of one
word. A unit with input t is on when u (1 + exp(-t)) <= 1 for its uniform u.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from meltpoint.annealing.kernels.compiling import intrinsic
from meltpoint.annealing.kernels.polynomials import Reals
from meltpoint.annealing.kernels.rows import QUAD, STRIP_BYTES
from meltpoint.annealing.kernels.xoshiro import emit_uniforms
from meltpoint.annealing.streams import LANES

_I32, _I64 = ir.IntType(32), ir.IntType(64)
PRODUCTS = 16


class _Block:
    """Emits the instructions for one block of units."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.signature, self.args = context, builder, signature, args

    def data(self, k: int) -> Any:
        """Pointer to argument k's elements."""
        return self.context.make_array(self.signature.args[k])(self.context, self.builder, self.args[k]).data

    def load(self, k: int, at: Any) -> Any:
        """LANES elements of argument k."""
        vector = ir.VectorType(self.context.get_value_type(self.signature.args[k].dtype), LANES)
        place = self.builder.bitcast(self.builder.gep(self.data(k), [at]), vector.as_pointer())
        value = self.builder.load(place)
        value.align = 4
        return value

    def reals(self, k: int) -> Reals:
        """Arithmetic in the type of argument k's elements."""
        return Reals(self.builder, self.context.get_value_type(self.signature.args[k].dtype), LANES)

    def word(self, on: Any) -> Any:
        """The comparisons' outcomes as the bits of a uint32."""
        return self.builder.bitcast(on, _I32)


@intrinsic
def draw_even(
    _context: Any,
    generators: Any,
    chain: Any,
    field: Any,
    at: Any,
    bias: Any,
    unit: Any,
    factor: Any,
) -> Any:
    """Draw the units `unit` … `unit + 31` with input factor * field[at + k] + bias[unit + k]: bits of a uint32."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _Block(context, builder, signature, args)
        reals = block.reals(4)
        decay = reals.decay(block.load(2, args[3]), block.load(4, args[5]), args[6])
        return block.word(reals.is_on(emit_uniforms(builder, block.data(0), args[1], reals.vector), decay))

    real = bias.dtype
    return types.uint32(generators, types.int64, field, types.int64, bias, types.int64, real), codegen


def _weigh(block: _Block, reals: Reals) -> Any:
    """Multiply the block's factors 1 + z into the products; gives exp(-t) at the new beta."""
    builder, args = block.builder, block.args
    field = reals.convert(block.load(2, args[3]))
    decay = reals.decay(field, block.load(4, args[6]), args[7])
    d = reals.fma(field, reals.splat(args[8]), builder.fmul(block.load(5, args[6]), reals.splat(args[9])))
    ratio = builder.fdiv(reals.expm1(d), builder.fadd(decay, reals.constant(1.0)))
    double = ir.VectorType(ir.DoubleType(), LANES)
    wide = ratio if ratio.type == double else builder.fpext(ratio, double)
    factors = builder.fadd(wide, ir.Constant(double, [1.0] * LANES))
    halves = [
        builder.shuffle_vector(factors, factors, ir.Constant(ir.VectorType(_I32, PRODUCTS), list(half)))
        for half in (range(PRODUCTS), range(PRODUCTS, LANES))
    ]
    place = builder.bitcast(block.data(10), halves[0].type.as_pointer())
    old = builder.load(place)
    old.align = 8
    builder.store(builder.fmul(builder.fmul(old, halves[0]), halves[1]), place).align = 8
    return decay


def _odd_weigher(draws: bool) -> Any:
    """An intrinsic that weighs the odd units' step to a new beta and, if told to, draws them there."""

    def weigh(
        _context: Any,
        generators: Any,
        chain: Any,
        field: Any,
        at: Any,
        bias: Any,
        slope: Any,
        unit: Any,
        factor: Any,
        minus_change: Any,
        minus_delta: Any,
        products: Any,
    ) -> Any:
        """Multiply the products (PRODUCTS,) by 1 + sigmoid(t) * expm1(-d) of the units `unit` … `unit + 31`.

        t = factor * x + bias at the new beta and -d = minus_change * x + minus_delta * slope, where x is
        field[at:at+32]. Gives the units drawn at the new beta as the bits of a uint32, or zero.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            block = _Block(context, builder, signature, args)
            reals = block.reals(4)
            decay = _weigh(block, reals)
            if not draws:
                return ir.Constant(_I32, 0)
            return block.word(
                reals.is_on(emit_uniforms(builder, block.data(0), args[1], reals.vector), decay)
            )

        i64, real = types.int64, bias.dtype
        signature = types.uint32(generators, i64, field, i64, bias, slope, i64, real, real, real, products)
        return signature, codegen

    return intrinsic(weigh)


weigh_and_draw_odd = _odd_weigher(draws=True)
weigh_odd = _odd_weigher(draws=False)


@intrinsic
def add_where_on(_context: Any, values: Any, unit: Any, word: Any, sums: Any) -> Any:
    """sums[k] += values[unit + k] for the LANES units k that are on in the word."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _Block(context, builder, signature, args)
        words = ir.VectorType(_I32, LANES)
        undefined = ir.Constant(words, ir.Undefined)
        first = builder.insert_element(undefined, args[2], ir.Constant(_I32, 0))
        copies = builder.shuffle_vector(first, undefined, ir.Constant(words, None))
        bits = ir.Constant(words, [1 << k for k in range(LANES)])
        on = builder.icmp_unsigned("!=", builder.and_(copies, bits), ir.Constant(words, None))
        values = block.load(0, args[1])
        kept = builder.select(on, values, ir.Constant(values.type, None))
        place = builder.bitcast(block.data(3), values.type.as_pointer())
        old = builder.load(place)
        old.align = 4
        builder.store(builder.fadd(old, kept), place).align = 4
        return context.get_dummy_value()

    return types.void(values, types.int64, types.uint32, sums), codegen


def _folder(lanes: int, operation: str) -> Any:
    """An intrinsic that folds the first `lanes` elements of an array into one float64, halving the vector each time."""

    def fold(_context: Any, values: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            element = context.get_value_type(signature.args[0].dtype)
            vector = builder.load(builder.bitcast(data, ir.VectorType(element, lanes).as_pointer()))
            vector.align = 4
            if element != ir.DoubleType():
                vector = builder.fpext(vector, ir.VectorType(ir.DoubleType(), lanes))
            size = lanes
            while size > 1:
                size //= 2
                low, high = (
                    builder.shuffle_vector(
                        vector,
                        vector,
                        ir.Constant(ir.VectorType(_I32, size), list(range(first, first + size))),
                    )
                    for first in (0, size)
                )
                vector = getattr(builder, operation)(low, high)
            return builder.extract_element(vector, ir.Constant(_I32, 0))

        return types.float64(values), codegen

    return intrinsic(fold)


total = _folder(LANES, "fadd")
product = _folder(PRODUCTS, "fmul")


@intrinsic
def list_quads(_context: Any, word: Any, quad: Any, lines: Any, at: Any) -> Any:
    """lines[at:at+8] = the table rows of a word's eight quads, the first of which is number `quad`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _Block(context, builder, signature, args)
        count = LANES // QUAD
        words = ir.VectorType(_I32, count)
        undefined = ir.Constant(words, ir.Undefined)

        def splat(scalar: Any) -> Any:
            first = builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
            return builder.shuffle_vector(first, undefined, ir.Constant(words, None))

        shifts = ir.Constant(words, [QUAD * k for k in range(count)])
        states = builder.and_(builder.lshr(splat(args[0]), shifts), ir.Constant(words, [2**QUAD - 1] * count))
        quads = builder.add(splat(builder.trunc(args[1], _I32)), ir.Constant(words, list(range(count))))
        rows = builder.add(builder.mul(quads, ir.Constant(words, [2**QUAD] * count)), states)
        offsets = builder.mul(rows, ir.Constant(words, [STRIP_BYTES] * count))
        place = builder.bitcast(builder.gep(block.data(2), [args[3]]), words.as_pointer())
        builder.store(offsets, place).align = 4
        return context.get_dummy_value()

    return types.void(types.uint32, types.int64, lines, types.int64), codegen


def to_words(bits: np.ndarray) -> np.ndarray:
    """Zeros and ones (…, padded unit) as words (…, block)."""
    return np.packbits(bits, axis=-1, bitorder="little").view("<u4").astype(np.uint32, copy=False)


def to_bits(words: np.ndarray) -> np.ndarray:
    """Words (…, block) as zeros and ones (…, padded unit)."""
    return np.unpackbits(words.astype("<u4", copy=False).view(np.uint8), axis=-1, bitorder="little")
