"""One site of one chain at a time, its states in the lanes of a vector: rows of tables added up, and a state drawn."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.annealing.kernels.chains import CHAINS, pointers, step_generators
from meltpoint.kernels.compiling import intrinsic
from meltpoint.kernels.polynomials import Reals
from meltpoint.kernels.xoshiro import UNIFORM

_I32, _I64 = ir.IntType(32), ir.IntType(64)
ABSENT = -1e30
"""Input of a state that a site does not have."""


def _vector_at(builder: Any, pointer: Any, index: Any, lanes: int) -> Any:
    """The place of so many elements from an index on."""
    vector = ir.VectorType(pointer.type.pointee, lanes)
    return builder.bitcast(builder.gep(pointer, [index]), vector.as_pointer())


def _load(builder: Any, place: Any) -> Any:
    value = builder.load(place)
    value.align = 2
    return value


@intrinsic
def add_rows(
    _context: Any, width: Any, sums: Any, chain: Any, n_chains: Any, tables: Any, rows: Any, count: Any
) -> Any:
    """sums[chain] += the rows of the tables that begin at rows[0, chain], …, rows[count - 1, chain]."""
    lanes = 2**width.count

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        names = "width sums chain n_chains tables rows count"
        a = pointers(context, builder, signature, args, names)
        place = _vector_at(builder, a["sums"], builder.mul(a["chain"], ir.Constant(_I64, lanes)), lanes)
        total = cgutils.alloca_once_value(builder, _load(builder, place))
        steps = ir.Constant(_I64, 0), a["count"], ir.Constant(_I64, 1)
        with cgutils.for_range_slice(builder, *steps, _I64) as (k, _):
            index = builder.add(builder.mul(k, a["n_chains"]), a["chain"])
            row = builder.load(builder.gep(a["rows"], [index]))
            value = _load(builder, _vector_at(builder, a["tables"], row, lanes))
            builder.store(builder.add(builder.load(total), value), total)
        builder.store(builder.load(total), place).align = 2
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(width, sums, i64, i64, tables, rows, i64), codegen


def _drawer(weighs: bool) -> Any:
    """An intrinsic that draws a site's state and, if told to, weighs the step from another beta."""

    def draw(
        _context: Any,
        width: Any,
        sums: Any,
        chain: Any,
        base: Any,
        position: Any,
        factor: Any,
        uniform: Any,
        minus_change: Any,
        excess: Any,
    ) -> Any:
        """The state of a site in a chain: the first one up to which the probabilities add up to the uniform.

        Its states' inputs are t = factor · d + base[position], with d = sums[chain]. A drawer that weighs sets
        excess[chain] to the mean over states of expm1(minus_change · (d - d of the drawn state)).
        """
        lanes = 2**width.count

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            names = "width sums chain base position factor uniform minus_change excess"
            a = pointers(context, builder, signature, args, names)
            reals = Reals(builder, a["base"].type.pointee, lanes)
            length = ir.Constant(_I64, lanes)
            first = builder.mul(a["chain"], length)
            d = reals.convert(_load(builder, _vector_at(builder, a["sums"], first, lanes)))
            base = _load(builder, _vector_at(builder, a["base"], builder.mul(a["position"], length), lanes))
            present = builder.fcmp_ordered(">", base, reals.constant(ABSENT / 2))
            inputs = reals.fma(d, reals.splat(a["factor"]), base)
            inputs = builder.select(present, inputs, reals.constant(ABSENT))
            weights = reals.exp(builder.fsub(inputs, _largest(builder, inputs, lanes)))
            weights = builder.select(present, weights, reals.constant(0.0))
            reached = _cumulative(builder, weights, lanes)
            total = builder.extract_element(reached, ir.Constant(_I32, lanes - 1))
            below = builder.fcmp_ordered("<", reached, reals.splat(builder.fmul(a["uniform"], total)))
            # Lanes are added up in different orders, so that the last state's sum may be less than the total.
            bits = ir.IntType(lanes)
            counts = [
                builder.zext(builder.ctpop(builder.bitcast(mask, bits)), _I64) for mask in (below, present)
            ]
            final = builder.sub(counts[1], ir.Constant(_I64, 1))
            drawn = builder.select(builder.icmp_signed("<", counts[0], final), counts[0], final)
            if weighs:
                chosen = builder.load(builder.gep(a["sums"], [builder.add(first, drawn)]))
                d = builder.fsub(d, reals.splat(builder.sitofp(chosen, reals.real)))
                d = builder.select(present, d, reals.constant(0.0))
                terms = builder.fmul(weights, reals.expm1(builder.fmul(d, reals.splat(a["minus_change"]))))
                summed = builder.extract_element(
                    _cumulative(builder, terms, lanes), ir.Constant(_I32, lanes - 1)
                )
                builder.store(builder.fdiv(summed, total), builder.gep(a["excess"], [a["chain"]]))
            return drawn

        i64, real = types.int64, base.dtype
        return types.int64(width, sums, i64, base, i64, real, real, real, excess), codegen

    return intrinsic(draw)


draw_state = _drawer(weighs=False)
draw_and_weigh = _drawer(weighs=True)


def _largest(builder: Any, values: Any, lanes: int) -> Any:
    """The largest lane, in every lane: each exchange compares with the lane whose number differs in one bit."""
    undefined = ir.Constant(values.type, ir.Undefined)
    shift = 1
    while shift < lanes:
        order = ir.Constant(ir.VectorType(_I32, lanes), [k ^ shift for k in range(lanes)])
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
        moved = builder.shuffle_vector(values, zeros, ir.Constant(ir.VectorType(_I32, lanes), order))
        values = builder.fadd(values, moved)
        shift *= 2
    return values


@intrinsic
def fill_uniforms_of_site(_context: Any, generators: Any, group: Any, lane: Any, out: Any) -> Any:
    """out[CHAINS · group :] = uniforms in (0, 1] of one generator of each of the group's chains."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a = pointers(context, builder, signature, args, "generators group lane out")
        reals = ir.VectorType(a["out"].type.pointee, CHAINS)
        uniforms = step_generators(builder, a["generators"], a["group"], a["lane"], reals)
        value = builder.fmul(uniforms, ir.Constant(reals, [UNIFORM] * CHAINS))
        place = _vector_at(builder, a["out"], builder.mul(a["group"], ir.Constant(_I64, CHAINS)), CHAINS)
        builder.store(value, place).align = 4
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(generators, i64, i64, out), codegen
