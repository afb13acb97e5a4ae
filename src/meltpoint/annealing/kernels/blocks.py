"""Thirty-two units at a time: their inputs, their exponentials, their draws, their share of the weight.

The loop spends as long here as on the row sums, so a block is emitted as LLVM vectors: constants are loaded once
for four registers, the generators' outputs never touch memory, and the drawn units come out as the bits of one
word. A unit with input t is on when u (1 + exp(-t)) <= 1 for its uniform u.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.kernels.compiling import intrinsic
from meltpoint.kernels.polynomials import Reals
from meltpoint.kernels.streams import LANES
from meltpoint.kernels.xoshiro import Generators

_I32, _I64 = ir.IntType(32), ir.IntType(64)
PRODUCTS = 16
_DOUBLES = ir.VectorType(ir.DoubleType(), PRODUCTS)


class Blocks:
    """Emits a loop over the blocks of one chain's units. Arguments are named; arrays among them are pointers."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, names: str) -> None:
        self.builder = builder
        self.arguments = dict(zip(names.split(), args, strict=True))
        for name, kind in zip(names.split(), signature.args, strict=True):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, self.arguments[name])
                self.arguments[name] = array.data

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def loop(self) -> Any:
        """From block 0 to the argument `n_blocks`."""
        zero, one = ir.Constant(_I64, 0), ir.Constant(_I64, 1)
        return cgutils.for_range_slice(self.builder, zero, self["n_blocks"], one, _I64)

    def place(self, name: str, block: Any) -> Any:
        """Of a chain's word in an array (chain, block)."""
        row = self.builder.mul(self["chain"], self["n_blocks"])
        return self.builder.gep(self[name], [self.builder.add(row, block)])

    def units(self, name: str, block: Any, at: Any = None) -> Any:
        """The LANES elements of a block, in an array (unit,) or from `at` on."""
        first = self.builder.mul(block, ir.Constant(_I64, LANES))
        pointer = self.builder.gep(self[name], [first if at is None else self.builder.add(at, first)])
        vector = ir.VectorType(pointer.type.pointee, LANES)
        value = self.builder.load(self.builder.bitcast(pointer, vector.as_pointer()))
        value.align = 4
        return value

    def word(self, name: str, block: Any) -> Any:
        """The word of a block, in an array (block,)."""
        return self.builder.load(self.builder.gep(self[name], [block]))

    def reals(self) -> Reals:
        """Arithmetic in the type of the biases."""
        return Reals(self.builder, self["bias"].type.pointee, LANES)


@intrinsic
def draw_even(
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
    n_blocks: Any,
) -> Any:
    """Draw a chain's even units with inputs factor * field[at:] + bias, and give the sum of the slopes of those on.

    `state` (chain, block) is changed in place, but for units that are frozen (block,) or not real (block,).
    """
    names = "generators chain field at bias slope factor real frozen state n_blocks"

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        blocks = Blocks(context, builder, signature, args, names)
        reals = blocks.reals()
        streams = Generators(builder, blocks["generators"], blocks["chain"])
        sums = zeros(builder, reals.vector)
        with blocks.loop() as (k, _):
            decay = reals.decay(
                blocks.units("field", k, blocks["at"]), blocks.units("bias", k), blocks["factor"]
            )
            drawn = builder.bitcast(reals.is_on(streams.step(reals.vector), decay), _I32)
            frozen, place = blocks.word("frozen", k), blocks.place("state", k)
            drawn = builder.and_(builder.and_(drawn, blocks.word("real", k)), builder.not_(frozen))
            word = builder.or_(builder.and_(builder.load(place), frozen), drawn)
            builder.store(word, place)
            add_where_on(builder, word, blocks.units("slope", k), sums)
        streams.keep()
        return fold(builder, builder.load(sums), builder.fadd)

    i64, value = types.int64, bias.dtype
    signature = types.float64(generators, i64, field, i64, bias, slope, value, real, frozen, state, i64)
    return signature, codegen


@intrinsic
def sum_slopes(_context: Any, slope: Any, chain: Any, state: Any, n_blocks: Any) -> Any:
    """Sum of the slopes (unit,) of the units of a chain that are on in the state (chain, block)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        blocks = Blocks(context, builder, signature, args, "slope chain state n_blocks")
        sums = zeros(builder, ir.VectorType(blocks["slope"].type.pointee, LANES))
        with blocks.loop() as (k, _):
            add_where_on(builder, builder.load(blocks.place("state", k)), blocks.units("slope", k), sums)
        return fold(builder, builder.load(sums), builder.fadd)

    return types.float64(slope, types.int64, state, types.int64), codegen


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
        factor: Any,
        minus_change: Any,
        minus_delta: Any,
        real: Any,
        state: Any,
        products: Any,
        n_blocks: Any,
    ) -> Any:
        """Give a chain's 1 + sigmoid(t) * expm1(-d), multiplied over units; the factors are in products (PRODUCTS,).

        t = factor * x + bias at the new beta and -d = minus_change * x + minus_delta * slope, where x is field[at:].
        Units drawn at the new beta go to `state` (chain, block).
        """
        names = "generators chain field at bias slope factor minus_change minus_delta real state products n_blocks"

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            blocks = Blocks(context, builder, signature, args, names)
            reals = blocks.reals()
            streams = Generators(builder, blocks["generators"], blocks["chain"]) if draws else None
            ones = ir.Constant(_DOUBLES, [1.0] * PRODUCTS)
            products = cgutils.alloca_once(builder, _DOUBLES)
            builder.store(ones, products)
            with blocks.loop() as (k, _):
                decay = _weigh(blocks, reals, k, products)
                if streams is not None:
                    drawn = builder.bitcast(reals.is_on(streams.step(reals.vector), decay), _I32)
                    word = builder.and_(drawn, blocks.word("real", k))
                    builder.store(word, blocks.place("state", k))
            if streams is not None:
                streams.keep()
            found = builder.load(products)
            builder.store(found, builder.bitcast(blocks["products"], _DOUBLES.as_pointer())).align = 8
            return fold(builder, found, builder.fmul)

        i64, value = types.int64, bias.dtype
        signature = types.float64(
            generators, i64, field, i64, bias, slope, value, value, value, real, state, products, i64
        )
        return signature, codegen

    return intrinsic(weigh)


weigh_and_draw_odd = _odd_weigher(draws=True)
weigh_odd = _odd_weigher(draws=False)


def _weigh(blocks: Blocks, reals: Reals, block: Any, products: Any) -> Any:
    """Multiply a block's factors 1 + z into the products; gives exp(-t) at the new beta."""
    builder = blocks.builder
    field = reals.convert(blocks.units("field", block, blocks["at"]))
    decay = reals.decay(field, blocks.units("bias", block), blocks["factor"])
    minus_delta = reals.splat(blocks["minus_delta"])
    d = reals.fma(
        field, reals.splat(blocks["minus_change"]), builder.fmul(blocks.units("slope", block), minus_delta)
    )
    ratio = builder.fdiv(reals.expm1(d), builder.fadd(decay, reals.constant(1.0)))
    double = ir.VectorType(ir.DoubleType(), LANES)
    wide = ratio if ratio.type == double else builder.fpext(ratio, double)
    factors = builder.fadd(wide, ir.Constant(double, [1.0] * LANES))
    halves = [_part(builder, factors, first, PRODUCTS) for first in (0, PRODUCTS)]
    builder.store(builder.fmul(builder.fmul(builder.load(products), halves[0]), halves[1]), products)
    return decay


def add_where_on(builder: Any, word: Any, values: Any, sums: Any) -> None:
    """sums += values in the lanes that are on in the word."""
    on = builder.bitcast(word, ir.VectorType(ir.IntType(1), LANES))
    kept = builder.select(on, values, ir.Constant(values.type, None))
    builder.store(builder.fadd(builder.load(sums), kept), sums)


def zeros(builder: Any, vector: ir.VectorType) -> Any:
    """Room for a vector that is zero at first."""
    place = cgutils.alloca_once(builder, vector)
    builder.store(ir.Constant(vector, None), place)
    return place


def _part(builder: Any, vector: Any, first: int, size: int) -> Any:
    """Lanes first … first + size - 1 of a vector."""
    lanes = ir.Constant(ir.VectorType(_I32, size), list(range(first, first + size)))
    return builder.shuffle_vector(vector, vector, lanes)


def fold(builder: Any, vector: Any, operation: Any) -> Any:
    """A vector folded into one float64, halving it each time."""
    size = vector.type.count
    if vector.type.element != ir.DoubleType():
        vector = builder.fpext(vector, ir.VectorType(ir.DoubleType(), size))
    while size > 1:
        size //= 2
        vector = operation(*(_part(builder, vector, first, size) for first in (0, size)))
    return builder.extract_element(vector, ir.Constant(_I32, 0))


def to_words(bits: np.ndarray) -> np.ndarray:
    """Zeros and ones (…, padded unit) as words (…, block)."""
    return np.packbits(bits, axis=-1, bitorder="little").view("<u4").astype(np.uint32, copy=False)


def to_bits(words: np.ndarray) -> np.ndarray:
    """Words (…, block) as zeros and ones (…, padded unit)."""
    return np.unpackbits(words.astype("<u4", copy=False).view(np.uint8), axis=-1, bitorder="little")
