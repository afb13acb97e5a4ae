"""Log weights of independent draws of units, for log f that is estimated by importance sampling.

A draw differs from the most probable state of its proposal in a few units. The inputs of all summed-out units are
computed once for that state; for each draw only the rows of the units that differ are added or subtracted, strip after
strip of columns, while all draws of an example walk over a strip that stays in the cache.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.numerics import LIMIT, exp
from meltpoint.kernels.rows import STRIP_BYTES, add_rows_at_once
from meltpoint.kernels.streams import LANES
from meltpoint.kernels.strips import Strips, strips_of
from meltpoint.kernels.xoshiro import UNIFORM, fill_uniforms
from meltpoint.units.unit import Floats

WIDTH = STRIP_BYTES // 4
"""Columns of a strip of float32."""

_FACTORS = (
    60  # strips whose factors, between 1 and 2, are multiplied: 16 x 60 of them are below the largest float64
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
        """From the sign and the weights (drawn unit, column) of each part."""
        padded = [np.pad(weights, ((0, 0), (0, -weights.shape[1] % WIDTH))) for _, weights in parts]
        ends = np.cumsum([part.shape[1] // WIDTH for part in padded])
        strips = strips_of(np.concatenate(padded, axis=1).astype(np.float32))
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
    mode = np.ascontiguousarray(rates[-1] > 0.5, np.uint8)
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
    n_units, n_draws = mode.shape[1], len(proposals)
    stride = n_units + 1  # of the lists: units that are switched on from the left, off from the right
    lines = np.empty(n_draws * stride, np.uint32)
    switched_on, switched_off = np.empty(n_draws, np.int64), np.empty(n_draws, np.int64)
    on_in_mode = np.empty(n_units, np.uint32)
    for example in range(len(mode)):
        n_on = 0
        for unit in range(n_units):
            on_in_mode[n_on] = STRIP_BYTES * unit
            n_on += mode[example, unit]
        _draw(
            rates[:, example], proposals, mode[example], generators, example, lines, switched_on, switched_off
        )
        _add_terms(mode[example], linear[example], lines, stride, switched_on, switched_off, sums[example])
        lists = on_in_mode[:n_on], lines, stride, switched_on, switched_off
        _add_softplus(strips, ends, signs, inputs[example], lists, softplus[example])


@compiled
def _draw(rates, proposals, mode, generators, example, lines, switched_on, switched_off):
    """List, draw by draw, the units that are not as in the mode, as byte offsets of their rows in a strip."""
    n_units, stride = mode.size, mode.size + 1
    uniforms = np.empty(rates.shape[1])
    for draw in range(len(proposals)):
        own = rates[proposals[draw]]
        fill_uniforms(generators, example, uniforms, uniforms.size)
        left, right = draw * stride, draw * stride + n_units
        for unit in range(n_units):
            # Without a branch: both places are written, and kept as far as the counts go.
            is_on, was_on = uniforms[unit] < own[unit], mode[unit] == 1
            lines[left] = STRIP_BYTES * unit
            left += np.int64(is_on & (not was_on))
            lines[right] = STRIP_BYTES * unit
            right -= np.int64((not is_on) & was_on)
        switched_on[draw] = left - draw * stride
        switched_off[draw] = draw * stride + n_units - right


@compiled
def _add_terms(mode, linear, lines, stride, switched_on, switched_off, sums):
    """Sums (draw, term) over the units that are on."""
    for term in range(linear.shape[1]):
        in_mode = 0.0
        for unit in range(mode.size):
            in_mode += mode[unit] * linear[unit, term]
        for draw in range(len(sums)):
            first, end = draw * stride, (draw + 1) * stride
            total = in_mode
            for k in range(first, first + switched_on[draw]):
                total += linear[lines[k] // STRIP_BYTES, term]
            for k in range(end - switched_off[draw], end):
                total -= linear[lines[k] // STRIP_BYTES, term]
            sums[draw, term] = total


@compiled
def _add_softplus(strips, ends, signs, inputs, lists, softplus):
    """Softplus of all inputs (draw,), each part with its sign: max(x, 0) + log(1 + exp(-|x|)), and few logarithms."""
    on_in_mode, lines, stride, switched_on, switched_off = lists
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
            add_rows_at_once(strips.flat, offset, on_in_mode, 0, on_in_mode.size, 1, False, centre, 0)
            for draw in range(n_draws):
                for j in range(WIDTH):
                    field[j] = centre[j]
                first, on, off = draw * stride, switched_on[draw], switched_off[draw]
                add_rows_at_once(strips.flat, offset, lines, first, on, 1, False, field, 0)
                add_rows_at_once(strips.flat, offset, lines, first + stride - off, off, -1, False, field, 0)
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
                    softplus[draw] += signs[part] * (total + np.log(product))
