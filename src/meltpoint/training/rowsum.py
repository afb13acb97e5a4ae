"""The inner loop of sparse products: add up listed rows of a strip in vector registers.

Four rows are added at a time into sums of their own, because one addition has to wait for the one before it:
with a single sum the wait costs more than the loads.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

STRIP_BYTES = 64
_REGISTER_BYTES = 32
_ROWS_AT_ONCE = 4
_I64 = ir.IntType(64)


@intrinsic
def sum_rows(
    _context: Any,  # noqa: ANN401
    strips: Any,  # noqa: ANN401
    strip: Any,  # noqa: ANN401
    rows: Any,  # noqa: ANN401
    first: Any,  # noqa: ANN401
    count: Any,  # noqa: ANN401
    out: Any,  # noqa: ANN401
    at: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """out[at : at + width] = sum of the strip's rows rows[first : first + count].

    `strips` is flat, starts at a multiple of STRIP_BYTES, and holds the strip's first row from element
    `strip`; `rows` is flat uint32, `out` flat and of the strips' type.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        element = signature.args[0].dtype
        lanes = 8 * _REGISTER_BYTES // element.bitwidth
        registers = range(STRIP_BYTES // _REGISTER_BYTES)
        vector = ir.VectorType(context.get_value_type(element), lanes)

        def data(k: int) -> Any:  # noqa: ANN401
            return context.make_array(signature.args[k])(context, builder, args[k]).data

        def number(value: int) -> ir.Constant:
            return ir.Constant(_I64, value)

        start = builder.gep(data(0), [args[1]])
        listed = builder.gep(data(2), [args[3]])
        sums = [[cgutils.alloca_once(builder, vector) for _ in registers] for _ in range(_ROWS_AT_ONCE)]
        for place in (place for group in sums for place in group):
            builder.store(ir.Constant(vector, None), place)

        def add(r: Any, group: list[Any]) -> None:  # noqa: ANN401
            row = builder.zext(builder.load(builder.gep(listed, [r])), _I64)
            line = builder.gep(start, [builder.mul(row, number(len(registers) * lanes))])
            line = builder.bitcast(line, vector.as_pointer())
            for k in registers:
                value = builder.load(builder.gep(line, [number(k)]))
                value.align = _REGISTER_BYTES
                builder.store(builder.fadd(builder.load(group[k]), value), group[k])

        count = args[4]
        whole = builder.mul(builder.udiv(count, number(_ROWS_AT_ONCE)), number(_ROWS_AT_ONCE))
        with cgutils.for_range_slice(builder, number(0), whole, number(_ROWS_AT_ONCE), _I64) as (r, _):
            for i, group in enumerate(sums):
                add(builder.add(r, number(i)), group)
        with cgutils.for_range_slice(builder, whole, count, number(1), _I64) as (r, _):
            add(r, sums[0])

        target = builder.bitcast(builder.gep(data(5), [args[6]]), vector.as_pointer())
        for k in registers:
            total = builder.load(sums[0][k])
            for group in sums[1:]:
                total = builder.fadd(total, builder.load(group[k]))
            builder.store(total, builder.gep(target, [number(k)])).align = element.bitwidth // 8
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(strips, i64, rows, i64, i64, out, i64), codegen
