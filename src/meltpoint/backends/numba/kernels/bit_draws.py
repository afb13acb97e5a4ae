"""Sites with two states in all chains of a group at a time, a chain in each lane: their inputs, weights and draws."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from meltpoint.backends.numba.kernels.chains import CHAINS, step_generators
from meltpoint.kernels.emitting import I8, I32, I64, Arguments, emitted, load, loop, splat
from meltpoint.kernels.numerics import Reals
from meltpoint.kernels.streams import LANES

_DOUBLES = ir.VectorType(ir.DoubleType(), CHAINS)
_NAMES = "words n_sites low high graph factor clamped generators group lane energy"


class _Site:
    """Emits what all loops over positions share: d of a position in all chains of the group."""

    def __init__(self, given: Arguments) -> None:
        self.builder, self.given = given.builder, given
        self.row = self.builder.mul(given["group"], given["n_sites"])
        whole = given["fields"].type.pointee
        self.sum = cgutils.alloca_once(self.builder, ir.VectorType(whole, CHAINS))

    @contextmanager
    def positions(self) -> Iterator[Any]:
        """A loop over the positions low … high - 1."""
        with loop(self.builder, self.given["low"], self.given["high"]) as (position, _):
            yield position

    def uniforms(self, position: Any, reals: Reals) -> Any:
        """The uniforms of a position: the generators take turns, beginning with `lane` at `low`."""
        turn = self.builder.add(self.given["lane"], self.builder.sub(position, self.given["low"]))
        turn = self.builder.and_(turn, ir.Constant(I64, LANES - 1))
        return step_generators(
            self.builder, self.given["generators"], self.given["group"], turn, reals.vector
        )

    def place(self, site: Any) -> Any:
        """Where the word of a site is."""
        return self.given.place("words", self.builder.add(self.row, self.builder.sext(site, I64)))

    def own(self, position: Any) -> Any:
        """d of a position from its field and from its neighbours in the state."""
        self.builder.store(splat(self.builder, self.given.at("fields", position), CHAINS), self.sum)
        self._add(self.given.at("starts", position), self.given.at("middles", position))
        return self.builder.load(self.sum)

    def full(self, position: Any) -> Any:
        """After `own`: d with the neighbours that are summed out."""
        following = self.builder.add(position, ir.Constant(I64, 1))
        self._add(self.given.at("middles", position), self.given.at("starts", following))
        return self.builder.load(self.sum)

    def _add(self, first: Any, end: Any) -> None:
        with loop(self.builder, first, end) as (entry, _):
            word = self.builder.load(self.place(self.given.at("neighbours", entry)))
            coupling = splat(self.builder, self.given.at("couplings", entry), CHAINS)
            self.add_where(self.sum, word, coupling, self.builder.add)

    def add_where(self, total: Any, word: Any, value: Any, operation: Any) -> None:
        """Add to or subtract from the lanes whose bit is one."""
        builder = self.builder
        on = builder.bitcast(word, ir.VectorType(ir.IntType(1), CHAINS))
        before = builder.load(total)
        builder.store(builder.select(on, operation(before, value), before), total)


@emitted(_NAMES, reals="base")
def redraw(given: Arguments) -> None:
    """Redraw positions low … high - 1 of a group's chains, none of which are coupled.

    The inputs are factor · d + base. `energy` (group, chain) changes with the state's part of log f, in steps; `lane`
    is the generator of the first position, and the others take the next ones in turn.
    """
    builder = given.builder
    site = _Site(given)
    reals = Reals(builder, given["base"].type.pointee, CHAINS)
    change = cgutils.alloca_once_value(builder, ir.Constant(site.sum.type.pointee, None))
    with site.positions() as p:
        number = given.at("sites", p)
        own = site.own(p)
        decay = reals.decay(site.full(p), reals.splat(given.at("base", p)), given["factor"])
        drawn = builder.bitcast(reals.is_on(site.uniforms(p, reals), decay), I32)
        is_clamped = given.at("clamped", builder.sext(number, I64))
        kept = builder.sext(builder.icmp_unsigned("!=", is_clamped, ir.Constant(I8, 0)), I32)
        place = site.place(number)
        old = builder.load(place)
        new = builder.or_(builder.and_(old, kept), builder.and_(drawn, builder.not_(kept)))
        builder.store(new, place)
        site.add_where(change, new, own, builder.add)
        site.add_where(change, old, own, builder.sub)
    wide = ir.VectorType(I64, CHAINS)
    found = builder.load(change)
    found = found if found.type == wide else builder.sext(found, wide)
    place = builder.gep(builder.bitcast(given["energy"], wide.as_pointer()), [given["group"]])
    builder.store(builder.add(load(builder, place), found), place).align = 4


def _weigher(draws: bool) -> Any:
    """A function that weighs the step of what is summed out to a new beta and, if it `draws`, draws it there."""

    @emitted(_NAMES.replace("clamped", "minus_change").replace("energy", "products"), reals="base")
    def weigh(given: Arguments) -> None:
        """Multiply products (chain,) by the inverse weights of positions low … high - 1, which are summed out.

        A position weighs (1 + exp(t)) / (1 + exp(t - e)) with t = factor · d + base and -e = minus_change · d; its
        inverse is 1 + sigmoid(t) · expm1(-e).
        """
        builder = given.builder
        site = _Site(given)
        reals = Reals(builder, given["base"].type.pointee, CHAINS)
        place = builder.bitcast(given["products"], _DOUBLES.as_pointer())
        products = cgutils.alloca_once_value(builder, load(builder, place))
        with site.positions() as p:
            d = reals.convert(site.own(p))
            decay = reals.decay(d, reals.splat(given.at("base", p)), given["factor"])
            factors = reals.inverse_weights(builder.fmul(d, reals.splat(given["minus_change"])), decay)
            builder.store(builder.fmul(builder.load(products), factors), products)
            if draws:
                drawn = reals.is_on(site.uniforms(p, reals), decay)
                builder.store(builder.bitcast(drawn, I32), site.place(given.at("sites", p)))
        builder.store(builder.load(products), place).align = 4

    return weigh


weigh_and_draw = _weigher(draws=True)
weigh_only = _weigher(draws=False)
