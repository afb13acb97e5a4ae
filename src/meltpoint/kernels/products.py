"""The inner loop of products whose sums have a fixed order: the terms of a sum are added one after the other.

So a sum has the same bits whatever the processor's vectors, the library of matrix products, the other rows, and the
place of its row among them. Products and sums are not fused, because not all processors can. Sums of several rows and
of a whole strip of columns are in registers together: each waits for its own last addition only.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from meltpoint.kernels.emitting import I64, Arguments, emitted, load, loop, splat
from meltpoint.kernels.strips import PAIR, STRIP_BYTES

_WIDE_REGISTERS = "+avx512f"
_ROWS_AT_ONCE = {True: (8, 4, 1), False: (2, 1)}
"""Rows whose sums fill the registers, by whether a register holds a cache line; then what is left over."""


@emitted("weights strip states n_rows n_units out column stride")
def multiply_strip(given: Arguments) -> None:
    """out[row, column : column + width] = states[row] @ a strip of PAIR cache lines, for all rows.

    `weights` is flat and starts a cache line, `strip` is the element at which the strip starts; `states` (row, unit)
    and `out` are of its type, and rows of `out` are `stride` elements long.
    """
    builder = given.builder
    features = given.context.codegen().magic_tuple()[2]
    n_rows, done = given["n_rows"], ir.Constant(I64, 0)
    for rows in _ROWS_AT_ONCE[_WIDE_REGISTERS in features]:
        left = builder.sub(n_rows, done)
        end = builder.add(done, builder.sub(left, builder.urem(left, ir.Constant(I64, rows))))
        with loop(builder, done, end, rows) as (row, _):
            _multiply_rows(given, row, rows)
        done = end


def _multiply_rows(given: Arguments, row: Any, rows: int) -> None:
    builder, real = given.builder, given["weights"].type.pointee
    lanes = STRIP_BYTES * 8 // (32 if isinstance(real, ir.FloatType) else 64)
    vector = ir.VectorType(real, lanes)
    sums = [cgutils.alloca_once(builder, vector) for _ in range(rows * PAIR)]
    begins = []
    for k in range(rows):
        at = builder.add(row, ir.Constant(I64, k))
        begins.append(builder.gep(given["states"], [builder.mul(at, given["n_units"])]))
    for place in sums:
        builder.store(ir.Constant(vector, None), place)
    strip = builder.bitcast(given.place("weights", given["strip"]), vector.as_pointer())
    with loop(builder, 0, given["n_units"]) as (unit, _):
        line = builder.mul(unit, ir.Constant(I64, PAIR))
        parts = [
            load(builder, builder.gep(strip, [builder.add(line, ir.Constant(I64, part))]), STRIP_BYTES)
            for part in range(PAIR)
        ]
        for k, begin in enumerate(begins):
            state = splat(builder, builder.load(builder.gep(begin, [unit])), lanes)
            for part in range(PAIR):
                place = sums[k * PAIR + part]
                builder.store(builder.fadd(builder.load(place), builder.fmul(state, parts[part])), place)
    for k in range(rows):
        at = builder.mul(builder.add(row, ir.Constant(I64, k)), given["stride"])
        out = builder.gep(given["out"], [builder.add(at, given["column"])])
        out = builder.bitcast(out, vector.as_pointer())
        for part in range(PAIR):
            target = builder.gep(out, [ir.Constant(I64, part)])
            builder.store(builder.load(sums[k * PAIR + part]), target).align = 4
