"""Importance sampling of log f: log weights of independent draws of hidden units.

A draw differs from the most probable state of its proposal in a few units. The inputs of all summed-out units are
computed once for that state; for each draw only the rows of the units that differ are added or subtracted, strip after
strip of columns: all draws of an example use a strip while it is in the cache.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from meltpoint.kernels.bits import SLACK, WORD, list_on
from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.emitting import Arguments, emitted, load, loop
from meltpoint.kernels.numerics import LIMIT, exp, log
from meltpoint.kernels.rows import BLOCK, PAIR, STRIP_BYTES, Strips, add_float_pairs, strips_of
from meltpoint.kernels.streams import LANES, UNIFORM, Generators

Floats: TypeAlias = NDArray[np.float64]

WIDTH = PAIR * STRIP_BYTES // 4
"""Columns of a strip of float32."""

_FACTORS = (
    30  # strips whose factors, between 1 and 2, are multiplied: 32 x 30 of them are below the largest float64
)
_FAR_BELOW = -80.0  # input of the columns that fill up a strip: their softplus is 0


@dataclass(frozen=True, eq=False)
class SummedOut:
    """Weights (drawn unit, column) to units that are summed out, in parts that enter log f with a sign each."""

    strips: Strips
    ends: NDArray[np.int64]  # strips up to the end of each part
    signs: Floats

    @property
    def arrays(self) -> tuple[Strips, NDArray[np.int64], Floats]:
        """What the kernel takes."""
        return self.strips, self.ends, self.signs

    @classmethod
    def of(cls, parts: Sequence[tuple[float, Floats]]) -> "SummedOut":
        """The summed-out units from the sign and the weights (drawn unit, column) of each part."""
        # The row of zeros at the end is to fill up lists.
        padded = [np.pad(weights, ((0, 1), (0, -weights.shape[1] % WIDTH))) for _, weights in parts]
        ends = np.cumsum([part.shape[1] // WIDTH for part in padded])
        strips = strips_of(np.concatenate(padded, axis=1).astype(np.float32), PAIR)
        return cls(strips, ends.astype(np.int64), np.array([sign for sign, _ in parts]))

    def inputs(self, parts: Sequence[Floats]) -> Floats:
        """Inputs (example, column of the strips) from those of each part (example, column)."""
        padded = [
            np.pad(part, ((0, 0), (0, -part.shape[1] % WIDTH)), constant_values=_FAR_BELOW) for part in parts
        ]
        return np.concatenate(padded, axis=1)


def drawable(rates: Floats) -> Floats:
    """The nearest rates that draws can have exactly, none of them 0 or 1: multiples of the uniforms' unit."""
    return np.clip(np.rint(rates / UNIFORM), 1, 1 / UNIFORM - 1) * UNIFORM


def weigh_draws(
    summed_out: SummedOut,
    inputs: Floats,
    rates: Floats,
    proposals: NDArray[np.int64],
    linear: Floats,
    generators: NDArray[np.uint32],
    threads: int,
) -> tuple[Floats, Floats]:
    """Draw units, and give sums (example, draw, term) and the softplus of all summed-out units (example, draw).

    Parameters
    ----------
    summed_out
        Weights to the units that are summed out.
    inputs
        Their inputs (example, column of the strips) where no drawn unit is on.
    rates
        Rates (proposal, example, unit) of being on, all of them `drawable`.
    proposals
        The proposal of each draw (draw,).
    linear
        What a unit that is on adds to the sums (example, unit, term).
    generators
        One stream for each example (example, 4, LANES), which advance.
    threads
        How many threads share the examples.
    """
    examples, units, terms = linear.shape
    draws = len(proposals)
    sums, softplus = np.empty((examples, draws, terms)), np.empty((examples, draws))
    padded = np.full((len(rates), examples, -(-units // LANES) * LANES), -1.0)  # never on
    padded[:, :, :units] = rates
    # The last proposal is the best one: what differs from its most probable state is listed.
    mode = np.packbits(padded[-1] > 0.5, axis=-1, bitorder="little").view("<u4").astype(np.uint32)
    edges = np.linspace(0, examples, min(threads, examples) + 1).astype(int)

    def work(low: int, high: int) -> None:
        part = slice(low, high)
        drawing = padded[:, part], proposals, mode[part], linear[part], generators[part]
        _weigh(*summed_out.arrays, inputs[part], *drawing, sums[part], softplus[part])

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, edges[:-1], edges[1:]):
            pass
    return sums, softplus


@compiled
def _weigh(strips, ends, signs, inputs, rates, proposals, mode, linear, generators, sums, softplus):
    """The same for the examples of one thread."""
    n_words, n_draws = mode.shape[1], len(proposals)
    zeros = np.zeros(n_words, np.uint32)
    # Lists of the units that are switched on and, after them, off.
    lines = np.empty(n_draws * (n_words * WORD + 2 * BLOCK) + SLACK, np.uint32)
    places = np.empty((n_draws, 4), np.int64)
    on_in_mode = np.empty(n_words * WORD + BLOCK + SLACK, np.uint32)
    for example in range(len(mode)):
        n_on = list_on(mode, example * n_words, zeros, 0, n_words, 0, STRIP_BYTES, on_in_mode, 0)
        _fill_up(on_in_mode, 0, n_on, strips.n_rows)
        _draw(rates[:, example], proposals, mode[example], generators, example, strips.n_rows, lines, places)
        _add_terms(on_in_mode[:n_on], linear[example], lines, places, sums[example])
        _add_softplus(
            strips, ends, signs, inputs[example], on_in_mode, n_on, lines, places, softplus[example]
        )


@compiled
def _draw(rates, proposals, mode, generators, example, n_rows, lines, places):
    """List, draw by draw, the units that are not as in the mode, as byte offsets of their rows in a strip."""
    words = np.empty(mode.size, np.uint32)
    end = 0
    for draw in range(len(proposals)):
        draw_words(generators, example, rates[proposals[draw]], words, mode.size)
        for k in range(2):
            begin = end
            if k == 0:
                end = list_on(words, 0, mode, 0, mode.size, 0, STRIP_BYTES, lines, begin)
            else:
                end = list_on(mode, 0, words, 0, mode.size, 0, STRIP_BYTES, lines, begin)
            places[draw, 2 * k], places[draw, 2 * k + 1] = begin, end - begin
            end = _fill_up(lines, begin, end, n_rows)


@compiled
def _fill_up(lines, begin, end, n_rows):
    """Fill a list up to whole blocks with the last row, which is zero; gives where the next one begins."""
    for k in range(BLOCK - 1):
        lines[end + k] = STRIP_BYTES * (n_rows - 1)
    return begin + (end - begin + BLOCK - 1) // BLOCK * BLOCK


@emitted("generators example rates words n_words")
def draw_words(given: Arguments) -> None:
    """Units as the bits of words (block,): those whose uniforms, in float64, are below their rates (padded unit,)."""
    builder, reals = given.builder, ir.VectorType(ir.DoubleType(), LANES)
    streams = Generators(builder, given["generators"], given["example"])
    own = builder.bitcast(given["rates"], reals.as_pointer())
    with loop(builder, 0, given["n_words"]) as (k, _):
        uniforms = builder.fmul(streams.step(reals), ir.Constant(reals, [UNIFORM] * LANES))
        is_on = builder.fcmp_ordered("<", uniforms, load(builder, builder.gep(own, [k]), 8))
        builder.store(builder.bitcast(is_on, ir.IntType(LANES)), given.place("words", k))
    streams.keep()


@compiled
def _add_terms(on_in_mode, linear, lines, places, sums):
    """Sums (draw, term) over the units that are on."""
    for term in range(linear.shape[1]):
        in_mode = 0.0
        for k in range(on_in_mode.size):
            in_mode += linear[on_in_mode[k] // STRIP_BYTES, term]
        for draw in range(len(sums)):
            added, n_added, removed, n_removed = places[draw]
            total = in_mode
            for k in range(added, added + n_added):
                total += linear[lines[k] // STRIP_BYTES, term]
            for k in range(removed, removed + n_removed):
                total -= linear[lines[k] // STRIP_BYTES, term]
            sums[draw, term] = total


@compiled
def _add_softplus(strips, ends, signs, inputs, on_in_mode, n_on, lines, places, softplus):
    """Softplus of all inputs (draw,), each part with its sign: max(x, 0) + log(1 + exp(-|x|)), and few logarithms."""
    n_draws = len(softplus)
    factors, positive = np.ones((n_draws, WIDTH), np.float32), np.zeros((n_draws, WIDTH))
    centre, field = np.empty(WIDTH, np.float32), np.empty(WIDTH, np.float32)
    softplus[:] = 0.0
    strip = pending = 0
    for part in range(len(ends)):
        while strip < ends[part]:
            offset = strip * strips.n_rows * WIDTH
            for j in range(WIDTH):
                centre[j] = inputs[strip * WIDTH + j]
            add_float_pairs(strips.flat, offset, on_in_mode, 0, n_on, 0, 0, BLOCK, centre, 0, centre, 0)
            for draw in range(n_draws):
                added, n_added, removed, n_removed = places[draw]
                add_float_pairs(
                    strips.flat, offset, lines, added, n_added, removed, n_removed, BLOCK, centre, 0, field, 0
                )
                for j in range(WIDTH):
                    x = field[j]
                    decay = exp(-min(abs(x), np.float32(LIMIT)))
                    factors[draw, j] *= np.float32(1.0) + decay
                    positive[draw, j] += max(x, np.float32(0.0))
            strip += 1
            pending += 1
            if pending == _FACTORS or strip == ends[part]:
                pending = 0
                for draw in range(n_draws):
                    total, product = 0.0, 1.0
                    for j in range(WIDTH):
                        total += positive[draw, j]
                        product *= np.float64(factors[draw, j])
                        factors[draw, j] = 1.0
                        positive[draw, j] = 0.0
                    softplus[draw] += signs[part] * (total + log(product))
