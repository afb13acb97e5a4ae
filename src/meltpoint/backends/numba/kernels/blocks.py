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

from meltpoint.kernels.emitting import I32, I64, Arguments, emitted, load, loop
from meltpoint.kernels.numerics import LIMIT, Reals
from meltpoint.kernels.streams import LANES, UNIFORM, Generators

PRODUCTS = 16
_DOUBLES = ir.VectorType(ir.DoubleType(), PRODUCTS)


class Blocks:
    """Emits what loops over the blocks of one chain's units share."""

    def __init__(self, given: Arguments) -> None:
        self.builder, self.given = given.builder, given

    def place(self, name: str, block: Any) -> Any:
        """Pointer to a chain's word in an array (chain, block)."""
        row = self.builder.mul(self.given["chain"], self.given["n_blocks"])
        return self.given.place(name, self.builder.add(row, block))

    def units(self, name: str, block: Any, at: Any = None) -> Any:
        """The LANES elements of a block, in an array (unit,) or from `at` on."""
        first = self.builder.mul(block, ir.Constant(I64, LANES))
        pointer = self.given.place(name, first if at is None else self.builder.add(at, first))
        vector = ir.VectorType(pointer.type.pointee, LANES)
        return load(self.builder, self.builder.bitcast(pointer, vector.as_pointer()))

    def fields(self, block: Any) -> Any:
        """The block's elements of the argument `sums` from the argument `at` on: integers, or reals in their memory."""
        sums, real = self.units("sums", block, self.given["at"]), self.given["bias"].type.pointee
        reals, builder = ir.VectorType(real, LANES), self.builder
        return builder.select(
            self.given["integer"], builder.sitofp(sums, reals), builder.bitcast(sums, reals)
        )

    def reals(self) -> Reals:
        """Arithmetic in the type of the biases."""
        return Reals(self.builder, self.given["bias"].type.pointee, LANES)

    def generators(self) -> Generators:
        """The chain's generators."""
        return Generators(self.builder, self.given["generators"], self.given["chain"])

    def keep(self, drawn: Any, block: Any, sums: Any) -> None:
        """Store drawn bits in the state, but for units that are frozen or not real, and add the slopes of those on."""
        builder = self.builder
        frozen, place = self.given.at("frozen", block), self.place("words", block)
        drawn = builder.and_(builder.and_(drawn, self.given.at("real", block)), builder.not_(frozen))
        word = builder.or_(builder.and_(builder.load(place), frozen), drawn)
        builder.store(word, place)
        add_where_on(builder, word, self.units("slope", block), sums)


@emitted(
    "chains chain work integer at factor real frozen n_blocks",
    returns=types.float64,
    reals="bias",
)
def draw_even(given: Arguments) -> Any:
    """Draw a chain's even units with inputs factor * sums[at:] + bias, and give the sum of the slopes of those on.

    `chains.words` (chain, block) are changed in place, but for units that are frozen (block,) or not real (block,).
    """
    builder, blocks = given.builder, Blocks(given)
    reals, streams = blocks.reals(), blocks.generators()
    sums = zeros(builder, reals.vector)
    with loop(builder, 0, given["n_blocks"]) as (k, _):
        decay = reals.decay(blocks.fields(k), blocks.units("bias", k), given["factor"])
        drawn = reals.is_on(streams.step(reals.vector), decay)
        blocks.keep(builder.bitcast(drawn, I32), k, sums)
    streams.keep()
    return fold(builder, builder.load(sums), builder.fadd)


@emitted("work chain state n_blocks", returns=types.float64)
def sum_slopes(given: Arguments) -> Any:
    """Sum of the slopes (unit,) in `work` of the units of a chain that are on in the state (chain, block)."""
    builder, blocks = given.builder, Blocks(given)
    sums = zeros(builder, ir.VectorType(given["slope"].type.pointee, LANES))
    with loop(builder, 0, given["n_blocks"]) as (k, _):
        add_where_on(builder, builder.load(blocks.place("state", k)), blocks.units("slope", k), sums)
    return fold(builder, builder.load(sums), builder.fadd)


def _odd_weigher(draws: bool) -> Any:
    """A function that weighs the odd units' step to a new beta and, if it `draws`, draws them there."""

    @emitted(
        "chains chain work integer at factor minus_change minus_delta real state products n_blocks",
        returns=types.float64,
        reals="bias",
    )
    def weigh(given: Arguments) -> Any:
        """Give a chain's 1 + sigmoid(t) * expm1(-d), multiplied over units; the factors are in products (PRODUCTS,).

        t = factor * x + bias at the new beta and -d = minus_change * x + minus_delta * slope, where x is sums[at:].
        Units drawn at the new beta go to `state` (chain, block).
        """
        builder, blocks = given.builder, Blocks(given)
        reals = blocks.reals()
        streams = blocks.generators() if draws else None
        products = cgutils.alloca_once_value(builder, ir.Constant(_DOUBLES, [1.0] * PRODUCTS))
        with loop(builder, 0, given["n_blocks"]) as (k, _):
            field = blocks.fields(k)
            decay = reals.decay(field, blocks.units("bias", k), given["factor"])
            of_slope = builder.fmul(blocks.units("slope", k), reals.splat(given["minus_delta"]))
            minus_d = reals.fma(field, reals.splat(given["minus_change"]), of_slope)
            factors = reals.inverse_weights(minus_d, decay)
            halves = [_part(builder, factors, first, PRODUCTS) for first in (0, PRODUCTS)]
            builder.store(builder.fmul(builder.fmul(builder.load(products), halves[0]), halves[1]), products)
            if streams is not None:
                drawn = builder.bitcast(reals.is_on(streams.step(reals.vector), decay), I32)
                builder.store(builder.and_(drawn, given.at("real", k)), blocks.place("state", k))
        if streams is not None:
            streams.keep()
        found = builder.load(products)
        builder.store(found, builder.bitcast(given["products"], _DOUBLES.as_pointer())).align = 8
        return fold(builder, found, builder.fmul)

    return weigh


weigh_and_draw_odd = _odd_weigher(draws=True)
weigh_odd = _odd_weigher(draws=False)


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
    lanes = ir.Constant(ir.VectorType(I32, size), list(range(first, first + size)))
    return builder.shuffle_vector(vector, vector, lanes)


def fold(builder: Any, vector: Any, operation: Any) -> Any:
    """A vector folded into one float64, halving it each time."""
    size = vector.type.count
    if vector.type.element != ir.DoubleType():
        vector = builder.fpext(vector, ir.VectorType(ir.DoubleType(), size))
    while size > 1:
        size //= 2
        vector = operation(*(_part(builder, vector, first, size) for first in (0, size)))
    return builder.extract_element(vector, ir.Constant(I32, 0))


def to_words(bits: np.ndarray) -> np.ndarray:
    """Zeros and ones (…, padded unit) as words (…, block)."""
    return np.packbits(bits, axis=-1, bitorder="little").view("<u4").astype(np.uint32, copy=False)


def to_bits(words: np.ndarray) -> np.ndarray:
    """Words (…, block) as zeros and ones (…, padded unit)."""
    return np.unpackbits(words.astype("<u4", copy=False).view(np.uint8), axis=-1, bitorder="little")


_MASK = ir.VectorType(ir.IntType(1), LANES)


@emitted(
    "chains chain work integer at factor real frozen room q n_blocks",
    returns=types.float64,
    reals="bias",
)
def draw_groups(given: Arguments) -> Any:
    """Draw a chain's sites, whose states have inputs factor * sums[at:] + bias; give the sum of their states' slopes.

    `chains.words` (chain, block of sites and state) are changed in place, but for sites that are frozen or not real.
    `room` is for q * LANES numbers; `n_blocks` is that of words, q for each block of sites.
    """
    builder, blocks = given.builder, Blocks(given)
    reals, streams = blocks.reals(), blocks.generators()
    slopes = zeros(builder, reals.vector)
    largest, total = (cgutils.alloca_once(builder, reals.vector) for _ in range(2))
    below = cgutils.alloca_once(builder, _MASK)

    def kept(s: Any) -> Any:
        """Where the numbers of state s are kept."""
        place = given.place("room", builder.mul(s, ir.Constant(I64, LANES)))
        return builder.bitcast(place, reals.vector.as_pointer())

    with loop(builder, 0, given["n_blocks"], given["q"]) as (first, _):
        builder.store(reals.constant(-3.0e38), largest)
        with loop(builder, 0, given["q"]) as (s, _):
            k = builder.add(first, s)
            inputs = reals.fma(blocks.fields(k), reals.splat(given["factor"]), blocks.units("bias", k))
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
