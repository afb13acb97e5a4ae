"""The inner loop of everything: add up the rows of W that belong to the units that are on.

A strip is one cache line wide (64 bytes: 32 int16, 16 float32 or 8 float64 columns), so that a strip of a
few hundred rows stays in the first-level cache while a tile of chains walks over it, and the sums stay in two
vector registers. Written as LLVM vectors because Numba's own vectoriser keeps the sums in memory and checks
nine pointers for overlap before every row (docs/decisions/kernels.md has the figures).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

STRIP_BYTES = 64
_REGISTER_BYTES = 32
GROUPS = (16, 8, 4)
"""How many rows of int16 weights may be added before the sum is widened to int32."""

_I64 = ir.IntType(64)


def _int(value: int) -> ir.Constant:
    return ir.Constant(_I64, value)


@intrinsic
def add_rows(  # noqa: PLR0913
    _context: Any,  # noqa: ANN401
    weights: Any,  # noqa: ANN401
    strip: Any,  # noqa: ANN401
    rows: Any,  # noqa: ANN401
    first: Any,  # noqa: ANN401
    count: Any,  # noqa: ANN401
    group: Any,  # noqa: ANN401
    sign: Any,  # noqa: ANN401
    out: Any,  # noqa: ANN401
    column: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """out[column:column+width] += sign * sum of strip rows rows[first:first+count].

    `weights` is flat and `strip` the element at which the strip's first row starts; `rows` is flat uint32;
    `group` is how many int16 rows are added before widening (other types ignore it); `out` is flat, int32 for int16 weights and of the weights' own type otherwise.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        element = signature.args[0].dtype
        integer = isinstance(element, types.Integer)
        lanes = 8 * _REGISTER_BYTES // element.bitwidth
        registers = STRIP_BYTES // _REGISTER_BYTES
        vector = ir.VectorType(context.get_value_type(element), lanes)

        def data(k: int) -> Any:  # noqa: ANN401
            return context.make_array(signature.args[k])(context, builder, args[k]).data

        strip_start = builder.gep(data(0), [args[1]])
        row_start = builder.gep(data(2), [args[3]])
        count = args[4]
        wide = ir.VectorType(ir.IntType(32), lanes) if integer else vector
        plus = builder.add if integer else builder.fadd
        # Allocas become registers: `sums` of the weights' type, and for int16 their widened totals.
        sums = [cgutils.alloca_once(builder, vector) for _ in range(registers)]
        totals = [cgutils.alloca_once(builder, wide) for _ in range(registers)] if integer else sums

        def clear(places: list[Any]) -> None:
            for place in places:
                builder.store(ir.Constant(place.type.pointee, None), place)

        def add(low: Any, high: Any) -> None:  # noqa: ANN401
            with cgutils.for_range_slice(builder, low, high, _int(1), _I64) as (r, _):
                row = builder.zext(builder.load(builder.gep(row_start, [r])), _I64)
                line = builder.gep(strip_start, [builder.mul(row, _int(registers * lanes))])
                line = builder.bitcast(line, vector.as_pointer())
                for k, place in enumerate(sums):
                    value = builder.load(builder.gep(line, [_int(k)]))
                    value.align = _REGISTER_BYTES
                    builder.store(plus(builder.load(place), value), place)

        clear(totals)
        if integer:
            with cgutils.for_range_slice(builder, _int(0), count, args[5], _I64) as (low, _):
                end = builder.add(low, args[5])
                high = builder.select(builder.icmp_signed("<", end, count), end, count)
                clear(sums)
                add(low, high)
                for s, total in zip(sums, totals, strict=True):
                    builder.store(plus(builder.load(total), builder.sext(builder.load(s), wide)), total)
        else:
            add(_int(0), count)

        sign = builder.trunc(args[6], wide.element) if integer else builder.sitofp(args[6], wide.element)
        undefined = ir.Constant(wide, ir.Undefined)
        signs = builder.insert_element(undefined, sign, ir.Constant(ir.IntType(32), 0))
        signs = builder.shuffle_vector(
            signs, undefined, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
        )
        target = builder.bitcast(builder.gep(data(7), [args[8]]), wide.as_pointer())
        for k, total in enumerate(totals):
            place = builder.gep(target, [_int(k)])
            old = builder.load(place)
            old.align = 4
            times = builder.mul if integer else builder.fmul
            builder.store(plus(old, times(builder.load(total), signs)), place).align = 4
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(weights, i64, rows, i64, i64, i64, i64, out, i64), codegen


def largest_int16(group: int) -> int:
    """The largest weight such that the sum of a group of rows fits in int16."""
    return 32767 // group


def strip_width(dtype: np.dtype) -> int:
    """Columns of one strip."""
    return STRIP_BYTES // dtype.itemsize
