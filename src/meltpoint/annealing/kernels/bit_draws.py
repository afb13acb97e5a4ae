"""Sites with two states in all chains of a group at a time, a chain in each lane: their inputs, weights and draws."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.annealing.kernels.chains import CHAINS, load, pointers, splat, step_generators
from meltpoint.kernels.compiling import intrinsic
from meltpoint.kernels.polynomials import Reals
from meltpoint.kernels.streams import LANES

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_DOUBLES = ir.VectorType(ir.DoubleType(), CHAINS)
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
def redraw(
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


weigh_and_draw = _weigher(draws=True)
weigh_only = _weigher(draws=False)
