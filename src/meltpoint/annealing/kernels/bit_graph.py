"""Sweeps over sparse graphs of sites with two states, for groups of chains: the loop of `reference`, fused.

The input of a site at beta is base + beta · scale · d, where d is a whole number: field plus the couplings to the
neighbours whose bit is one, in steps of scale. Whole numbers add up exactly, so log f changes by d at every flip and
never drifts. A site is redrawn in all chains of a group together; the couplings are read once for them.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from meltpoint.annealing.kernels.chains import CHAINS, load, pointers, splat, step_generators
from meltpoint.annealing.kernels.compiling import compiled, intrinsic
from meltpoint.annealing.kernels.polynomials import Reals
from meltpoint.annealing.streams import LANES

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_DOUBLES = ir.VectorType(ir.DoubleType(), CHAINS)
SITES = 128
"""Sites that are redrawn before sums of d, of 23 bits each, are widened."""
_LARGEST_STEP = 4.0  # |change of an input| up to which float32 keeps the digits of a weight's factor
_LARGEST_PRODUCT = 400.0  # |log| of a product that neither overflows nor underflows


class BitGraph(NamedTuple):
    """A graph as the kernel sees it. Positions are sites in the order of a forward sweep, what is summed out first."""

    sites: NDArray[np.int32]  # (position,)
    base: NDArray[Any]  # (position,) inputs at beta 0
    fields: NDArray[Any]  # (position,) field - base, in steps
    starts: NDArray[np.int64]  # (position + 1,) where its entries begin
    middles: NDArray[np.int64]  # (position,) where its neighbours that are summed out begin
    neighbours: NDArray[np.int32]  # (entry,) sites
    couplings: NDArray[Any]  # (entry,) in steps
    blocks: NDArray[
        np.int64
    ]  # (block + 1,) where the state's blocks begin; the first one after what is summed out
    scale: float
    reach: float  # the largest |d| · scale


_NAMES = (
    "words n_sites low high sites base fields starts middles neighbours couplings factor clamped generators group "
    "lane energy"
)


class _Site:
    """Emits what all loops over positions share: d of a position in all chains of the group."""

    def __init__(self, builder: Any, arguments: dict[str, Any]) -> None:
        self.builder, self.arguments = builder, arguments
        self.whole = arguments["fields"].type.pointee
        self.row = builder.mul(arguments["group"], arguments["n_sites"])
        self.sum = cgutils.alloca_once(builder, ir.VectorType(self.whole, CHAINS))

    @contextmanager
    def positions(self) -> Iterator[Any]:
        """A loop over the positions low … high - 1."""
        low, high = self.arguments["low"], self.arguments["high"]
        with cgutils.for_range_slice(self.builder, low, high, ir.Constant(_I64, 1), _I64) as (position, _):
            yield position

    def uniforms(self, position: Any, reals: Reals) -> Any:
        """The uniforms of a position: the generators take turns, beginning with `lane` at `low`."""
        turn = self.builder.add(self.arguments["lane"], self.builder.sub(position, self.arguments["low"]))
        turn = self.builder.and_(turn, ir.Constant(_I64, LANES - 1))
        states, group = self.arguments["generators"], self.arguments["group"]
        return step_generators(self.builder, states, group, turn, reals.vector)

    def place(self, site: Any) -> Any:
        """Where the word of a site is."""
        index = self.builder.add(self.row, self.builder.sext(site, _I64))
        return self.builder.gep(self.arguments["words"], [index])

    def at(self, name: str, k: Any) -> Any:
        """An element of an array."""
        return self.builder.load(self.builder.gep(self.arguments[name], [k]))

    def own(self, position: Any) -> Any:
        """d of a position from its field and from its neighbours in the state."""
        self.builder.store(splat(self.builder, self.at("fields", position)), self.sum)
        self._add(self.at("starts", position), self.at("middles", position))
        return self.builder.load(self.sum)

    def full(self, position: Any) -> Any:
        """After `own`: d with the neighbours that are summed out."""
        following = self.builder.add(position, ir.Constant(_I64, 1))
        self._add(self.at("middles", position), self.at("starts", following))
        return self.builder.load(self.sum)

    def _add(self, first: Any, end: Any) -> None:
        builder = self.builder
        with cgutils.for_range_slice(builder, first, end, ir.Constant(_I64, 1), _I64) as (entry, _):
            word = builder.load(self.place(self.at("neighbours", entry)))
            coupling = splat(builder, self.at("couplings", entry))
            self.add_where(self.sum, word, coupling, builder.add)

    def add_where(self, total: Any, word: Any, value: Any, operation: Any) -> None:
        """Add to or subtract from the lanes whose bit is one."""
        builder = self.builder
        on = builder.bitcast(word, ir.VectorType(ir.IntType(1), CHAINS))
        before = builder.load(total)
        builder.store(builder.select(on, operation(before, value), before), total)


@intrinsic
def _redraw(
    _context: Any,
    words: Any,
    n_sites: Any,
    low: Any,
    high: Any,
    sites: Any,
    base: Any,
    fields: Any,
    starts: Any,
    middles: Any,
    neighbours: Any,
    couplings: Any,
    factor: Any,
    clamped: Any,
    generators: Any,
    group: Any,
    lane: Any,
    energy: Any,
) -> Any:
    """Redraw positions low … high - 1 of a group's chains, none of which are coupled.

    The inputs are factor · d + base. `energy` (group, chain) changes with the state's part of log f, in steps; `lane`
    is the generator of the first position, and the others take the next ones in turn.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arguments = pointers(context, builder, signature, args, _NAMES)
        site = _Site(builder, arguments)
        reals = Reals(builder, arguments["base"].type.pointee, CHAINS)
        change = cgutils.alloca_once_value(builder, ir.Constant(site.sum.type.pointee, None))
        with site.positions() as p:
            number = site.at("sites", p)
            own = site.own(p)
            decay = reals.decay(site.full(p), splat(builder, site.at("base", p)), arguments["factor"])
            drawn = builder.bitcast(reals.is_on(site.uniforms(p, reals), decay), _I32)
            is_clamped = site.at("clamped", builder.sext(number, _I64))
            kept = builder.sext(builder.icmp_unsigned("!=", is_clamped, ir.Constant(_I8, 0)), _I32)
            place = site.place(number)
            old = builder.load(place)
            new = builder.or_(builder.and_(old, kept), builder.and_(drawn, builder.not_(kept)))
            builder.store(new, place)
            site.add_where(change, new, own, builder.add)
            site.add_where(change, old, own, builder.sub)
        wide = ir.VectorType(_I64, CHAINS)
        found = builder.load(change)
        found = found if found.type == wide else builder.sext(found, wide)
        place = builder.gep(builder.bitcast(arguments["energy"], wide.as_pointer()), [arguments["group"]])
        builder.store(builder.add(load(builder, place), found), place).align = 4
        return context.get_dummy_value()

    i64 = types.int64
    signature = types.void(
        words, i64, i64, i64, sites, base, fields, starts, middles, neighbours, couplings, base.dtype, clamped,
        generators, i64, i64, energy,
    )  # fmt: skip
    return signature, codegen


def _weigher(draws: bool) -> Any:
    """An intrinsic that weighs the step of what is summed out to a new beta and, if told to, draws it there."""

    def weigh(
        _context: Any,
        words: Any,
        n_sites: Any,
        low: Any,
        high: Any,
        sites: Any,
        base: Any,
        fields: Any,
        starts: Any,
        middles: Any,
        neighbours: Any,
        couplings: Any,
        factor: Any,
        minus_change: Any,
        generators: Any,
        group: Any,
        lane: Any,
        products: Any,
    ) -> Any:
        """Multiply products (chain,) by the inverse weights of positions low … high - 1, which are summed out.

        A position weighs (1 + exp(t)) / (1 + exp(t - e)) with t = factor · d + base and -e = minus_change · d; its
        inverse is 1 + sigmoid(t) · expm1(-e).
        """
        names = _NAMES.replace("clamped", "minus_change").replace("energy", "products")

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            arguments = pointers(context, builder, signature, args, names)
            site = _Site(builder, arguments)
            reals = Reals(builder, arguments["base"].type.pointee, CHAINS)
            place = builder.bitcast(arguments["products"], _DOUBLES.as_pointer())
            products = cgutils.alloca_once_value(builder, load(builder, place))
            with site.positions() as p:
                d = reals.convert(site.own(p))
                decay = reals.decay(d, splat(builder, site.at("base", p)), arguments["factor"])
                minus_e = builder.fmul(d, reals.splat(arguments["minus_change"]))
                ratio = builder.fdiv(reals.expm1(minus_e), builder.fadd(decay, reals.constant(1.0)))
                wide = ratio if ratio.type == _DOUBLES else builder.fpext(ratio, _DOUBLES)
                factors = builder.fadd(wide, ir.Constant(_DOUBLES, [1.0] * CHAINS))
                builder.store(builder.fmul(builder.load(products), factors), products)
                if draws:
                    drawn = reals.is_on(site.uniforms(p, reals), decay)
                    builder.store(builder.bitcast(drawn, _I32), site.place(site.at("sites", p)))
            builder.store(builder.load(products), place).align = 4
            return context.get_dummy_value()

        i64, real = types.int64, base.dtype
        signature = types.void(
            words, i64, i64, i64, sites, base, fields, starts, middles, neighbours, couplings, real, real,
            generators, i64, i64, products,
        )  # fmt: skip
        return signature, codegen

    return intrinsic(weigh)


_weigh_and_draw = _weigher(draws=True)
_weigh = _weigher(draws=False)


@compiled
def run_bits(
    betas: np.ndarray,
    graph: BitGraph,
    reversed_sweeps: bool,
    clamped: np.ndarray,
    words: np.ndarray,
    generators: np.ndarray,
    first_lane: int,
    energy: np.ndarray,
    log_weights: np.ndarray,
) -> None:
    """Take every group through betas[0] … betas[-1], in place.

    `words` (group, site) holds the bits, `energy` (group, chain) the state's part of log f_1 - log f_0 in steps,
    `log_weights` (group, chain) gain; `clamped` (site,) marks sites that keep their value. `first_lane` is the
    generator of the first position.
    """
    sites, base, fields, starts, middles = graph.sites, graph.base, graph.fields, graph.starts, graph.middles
    neighbours, couplings, blocks = graph.neighbours, graph.couplings, graph.blocks
    n_sites, n_summed, n_blocks = words.shape[1], blocks[0], blocks.size - 1
    real = base.dtype.type
    products = np.empty(CHAINS)
    for group in range(words.shape[0]):
        turn = first_lane
        for i in range(betas.size):
            beta = betas[i]
            last = i + 1 == betas.size
            factor = real(beta * graph.scale)
            if n_summed > 0:
                # The weight of the last step, at the state that this step starts from; the draw needs the same d.
                change = beta - betas[i - 1] if i > 0 else 0.0
                coarse = abs(change) * graph.reach > _LARGEST_STEP
                if coarse:
                    _add_softplus(graph, betas[i - 1], beta, words, group, log_weights)
                minus_change = real(0.0 if coarse else -change * graph.scale)
                size = _sites_at_once(change, graph.reach)
                for low in range(0, n_summed, size):
                    high = min(low + size, n_summed)
                    products[:] = 1.0
                    if last:
                        _weigh(
                            words, n_sites, low, high, sites, base, fields, starts, middles, neighbours, couplings,
                            factor, minus_change, generators, group, turn, products,
                        )  # fmt: skip
                    else:
                        _weigh_and_draw(
                            words, n_sites, low, high, sites, base, fields, starts, middles, neighbours, couplings,
                            factor, minus_change, generators, group, turn, products,
                        )  # fmt: skip
                        turn += high - low
                    if minus_change != 0:
                        for chain in range(CHAINS):
                            log_weights[group, chain] -= math.log(products[chain])
            if last:
                break
            for k in range(n_blocks):
                block = n_blocks - 1 - k if reversed_sweeps else k
                end = blocks[block + 1]
                for low in range(blocks[block], end, SITES):
                    high = min(low + SITES, end)
                    _redraw(
                        words, n_sites, low, high, sites, base, fields, starts, middles, neighbours, couplings,
                        factor, clamped, generators, group, turn, energy,
                    )  # fmt: skip
                    turn += high - low
            step = (betas[i + 1] - beta) * graph.scale
            for chain in range(CHAINS):
                log_weights[group, chain] += step * energy[group, chain]


@compiled
def _sites_at_once(change: float, reach: float) -> int:
    """How many weights can be multiplied before their logarithm is taken."""
    step = min(abs(change) * reach, _LARGEST_STEP)
    return SITES if step * SITES < _LARGEST_PRODUCT else max(1, int(_LARGEST_PRODUCT / step))


@compiled
def _add_softplus(
    graph: BitGraph, previous: float, beta: float, words: np.ndarray, group: int, log_weights: np.ndarray
) -> None:
    """Add the change of log f between two betas by what is summed out, for steps of any size."""
    d = np.empty(CHAINS)
    for position in range(graph.blocks[0]):
        _input_of(graph, position, words, group, d)
        for chain in range(CHAINS):
            rate = graph.scale * d[chain]
            base = float(graph.base[position])
            log_weights[group, chain] += _softplus(base + beta * rate) - _softplus(base + previous * rate)


@compiled
def _input_of(graph: BitGraph, position: int, words: np.ndarray, group: int, d: np.ndarray) -> None:
    """d (chain,) of a position from the sites of the state alone, in steps."""
    d[:] = graph.fields[position]
    for entry in range(graph.starts[position], graph.middles[position]):
        word = words[group, graph.neighbours[entry]]
        for chain in range(CHAINS):
            d[chain] += graph.couplings[entry] * ((word >> np.uint32(chain)) & np.uint32(1))


@compiled
def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@compiled
def state_energy(graph: BitGraph, words: np.ndarray) -> np.ndarray:
    """The state's part (group, chain) of log f_1 - log f_0, in steps: what `run_bits` keeps up to date."""
    energy = np.zeros((words.shape[0], CHAINS), np.int64)
    total = np.empty(CHAINS, np.int64)
    for group in range(words.shape[0]):
        for position in range(graph.blocks[0], graph.sites.size):
            own = words[group, graph.sites[position]]
            total[:] = graph.fields[position]
            for entry in range(graph.starts[position], graph.middles[position]):
                if graph.neighbours[entry] < graph.sites[position]:  # every pair once
                    word = words[group, graph.neighbours[entry]]
                    for chain in range(CHAINS):
                        total[chain] += graph.couplings[entry] * np.int64(
                            (word >> np.uint32(chain)) & np.uint32(1)
                        )
            for chain in range(CHAINS):
                energy[group, chain] += total[chain] * np.int64((own >> np.uint32(chain)) & np.uint32(1))
    return energy


@compiled
def log_f_at(beta: float, graph: BitGraph, words: np.ndarray) -> np.ndarray:
    """log f_beta(state) (group, chain) without the base's share of the state, in float64."""
    log_f = np.zeros((words.shape[0], CHAINS))
    d = np.empty(CHAINS)
    for group in range(words.shape[0]):
        for position in range(graph.sites.size):
            _pairs_of(graph, position, words, group, d)
            base = float(graph.base[position])
            own = words[group, graph.sites[position]]
            for chain in range(CHAINS):
                if position < graph.blocks[0]:
                    log_f[group, chain] += _softplus(base + beta * graph.scale * d[chain])
                elif (own >> np.uint32(chain)) & np.uint32(1):
                    log_f[group, chain] += beta * graph.scale * d[chain]
    return log_f


@compiled
def _pairs_of(graph: BitGraph, position: int, words: np.ndarray, group: int, d: np.ndarray) -> None:
    """As `_input_of`; between two sites of the state a pair counts for the later one alone."""
    d[:] = graph.fields[position]
    summed_out = position < graph.blocks[0]
    for entry in range(graph.starts[position], graph.middles[position]):
        neighbour = graph.neighbours[entry]
        if summed_out or neighbour < graph.sites[position]:
            word = words[group, neighbour]
            for chain in range(CHAINS):
                d[chain] += graph.couplings[entry] * ((word >> np.uint32(chain)) & np.uint32(1))
