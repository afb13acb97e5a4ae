"""One site of one chain at a time, its states in the lanes of a vector: rows of tables added up, and a state drawn."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.backends.numba.kernels.chains import CHAINS, step_generators
from meltpoint.kernels.emitting import I32, I64, Arguments, emitted, load, loop
from meltpoint.kernels.numerics import Reals
from meltpoint.kernels.streams import UNIFORM

ABSENT = -1e30
"""Input of a state that a site does not have."""


def _vector_at(given: Arguments, name: str, index: Any, lanes: int) -> Any:
    """The place of so many elements of an array from an index on."""
    vector = ir.VectorType(given[name].type.pointee, lanes)
    return given.builder.bitcast(given.place(name, index), vector.as_pointer())


@emitted("width sums chain n_chains tables rows count")
def add_rows(given: Arguments) -> None:
    """sums[chain] += the rows of the tables that begin at rows[0, chain], …, rows[count - 1, chain]."""
    builder, lanes = given.builder, 2 ** given.kinds["width"].count
    place = _vector_at(given, "sums", builder.mul(given["chain"], ir.Constant(I64, lanes)), lanes)
    total = cgutils.alloca_once_value(builder, load(builder, place, 2))
    plus = builder.add if isinstance(given.kinds["sums"].dtype, types.Integer) else builder.fadd
    with loop(builder, 0, given["count"]) as (k, _):
        row = given.at("rows", builder.add(builder.mul(k, given["n_chains"]), given["chain"]))
        value = load(builder, _vector_at(given, "tables", row, lanes), 2)
        builder.store(plus(builder.load(total), value), total)
    builder.store(builder.load(total), place).align = 2


def _drawer(weighs: bool) -> Any:
    """A function that draws a site's state and, if it `weighs`, weighs the step from another beta."""

    @emitted(
        "width sums chain base position factor uniform minus_change excess", returns=types.int64, reals="base"
    )
    def draw(given: Arguments) -> Any:
        """The state of a site in a chain: the first one up to which the probabilities add up to the uniform.

        Its states' inputs are t = factor · d + base[position], with d = sums[chain]. A drawer that weighs sets
        excess[chain] to the mean over states of expm1(minus_change · (d - d of the drawn state)).
        """
        builder, lanes = given.builder, 2 ** given.kinds["width"].count
        reals = Reals(builder, given["base"].type.pointee, lanes)
        length = ir.Constant(I64, lanes)
        first = builder.mul(given["chain"], length)
        d = reals.convert(load(builder, _vector_at(given, "sums", first, lanes), 2))
        base = load(builder, _vector_at(given, "base", builder.mul(given["position"], length), lanes), 2)
        present = builder.fcmp_ordered(">", base, reals.constant(ABSENT / 2))
        inputs = reals.fma(d, reals.splat(given["factor"]), base)
        inputs = builder.select(present, inputs, reals.constant(ABSENT))
        weights = reals.exp(builder.fsub(inputs, _largest(builder, inputs, lanes)))
        weights = builder.select(present, weights, reals.constant(0.0))
        reached = _cumulative(builder, weights, lanes)
        total = builder.extract_element(reached, ir.Constant(I32, lanes - 1))
        below = builder.fcmp_ordered("<", reached, reals.splat(builder.fmul(given["uniform"], total)))
        # Lanes are added up in different orders, so that the last state's sum may be less than the total.
        bits = ir.IntType(lanes)
        counts = [builder.zext(builder.ctpop(builder.bitcast(mask, bits)), I64) for mask in (below, present)]
        final = builder.sub(counts[1], ir.Constant(I64, 1))
        drawn = builder.select(builder.icmp_signed("<", counts[0], final), counts[0], final)
        if weighs:
            chosen = given.at("sums", builder.add(first, drawn))
            d = builder.fsub(d, reals.splat(builder.sitofp(chosen, reals.real)))
            d = builder.select(present, d, reals.constant(0.0))
            terms = builder.fmul(weights, reals.expm1(builder.fmul(d, reals.splat(given["minus_change"]))))
            summed = builder.extract_element(_cumulative(builder, terms, lanes), ir.Constant(I32, lanes - 1))
            builder.store(builder.fdiv(summed, total), given.place("excess", given["chain"]))
        return drawn

    return draw


draw_state = _drawer(weighs=False)
draw_and_weigh = _drawer(weighs=True)


def _largest(builder: Any, values: Any, lanes: int) -> Any:
    """The largest lane, in every lane: each exchange compares with the lane whose number differs in one bit."""
    undefined = ir.Constant(values.type, ir.Undefined)
    shift = 1
    while shift < lanes:
        order = ir.Constant(ir.VectorType(I32, lanes), [k ^ shift for k in range(lanes)])
        other = builder.shuffle_vector(values, undefined, order)
        values = builder.select(builder.fcmp_ordered(">", other, values), other, values)
        shift *= 2
    return values


def _cumulative(builder: Any, values: Any, lanes: int) -> Any:
    """Sums of the lanes up to each."""
    zeros = ir.Constant(values.type, None)
    shift = 1
    while shift < lanes:
        order = [k - shift if k >= shift else lanes for k in range(lanes)]
        moved = builder.shuffle_vector(values, zeros, ir.Constant(ir.VectorType(I32, lanes), order))
        values = builder.fadd(values, moved)
        shift *= 2
    return values


@emitted("generators group lane out")
def fill_uniforms_of_site(given: Arguments) -> None:
    """out[CHAINS · group :] = uniforms in (0, 1] of one generator of each of the group's chains."""
    builder = given.builder
    reals = ir.VectorType(given["out"].type.pointee, CHAINS)
    uniforms = step_generators(builder, given["generators"], given["group"], given["lane"], reals)
    value = builder.fmul(uniforms, ir.Constant(reals, [UNIFORM] * CHAINS))
    place = _vector_at(given, "out", builder.mul(given["group"], ir.Constant(I64, CHAINS)), CHAINS)
    builder.store(value, place).align = 4
