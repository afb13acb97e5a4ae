"""Sets of units as the bits of words."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.annealing.kernels.compiling import intrinsic

WORD = 32
_BYTE = 8
SLACK = _BYTE
"""Elements that an array which `list_ones` fills must have beyond its lists."""
_ONES = [[k for k in range(_BYTE) if byte >> k & 1] for byte in range(2**_BYTE)]
"""Positions of the ones of every byte."""


@intrinsic
def count_ones(_context: Any, word: Any) -> Any:
    """Number of ones in a word."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.zext(builder.ctpop(args[0]), ir.IntType(64))

    return types.int64(types.uint32), codegen


@intrinsic
def list_ones(_context: Any, word: Any, first: Any, step: Any, out: Any, at: Any) -> Any:
    """out[at:] = first + step * k for the positions k of a word's ones; gives the end of the list.

    A byte at a time from a table, without branches: up to _BYTE elements beyond the end of the list are overwritten.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i8, i32, i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
        narrow, wide = ir.VectorType(i8, _BYTE), ir.VectorType(i32, _BYTE)
        positions = [k for ones in _ONES for k in (*ones, *[0] * (_BYTE - len(ones)))]
        values = ir.Constant(ir.ArrayType(i8, len(positions)), positions)
        table = cgutils.global_constant(builder.module, "positions_of_ones", values)
        table = builder.bitcast(table, narrow.as_pointer())
        data = context.make_array(signature.args[3])(context, builder, args[3]).data
        word, first, step, _, end = args

        def splat(scalar: Any) -> Any:
            undefined = ir.Constant(wide, ir.Undefined)
            lane = builder.insert_element(undefined, builder.trunc(scalar, i32), ir.Constant(i32, 0))
            return builder.shuffle_vector(lane, undefined, ir.Constant(wide, None))

        for k in range(WORD // _BYTE):
            byte = builder.and_(
                builder.lshr(word, ir.Constant(i32, _BYTE * k)), ir.Constant(i32, 2**_BYTE - 1)
            )
            ones = builder.load(builder.gep(table, [builder.zext(byte, i64)]))
            ones.align = 1
            start = builder.add(first, builder.mul(step, ir.Constant(i64, _BYTE * k)))
            listed = builder.add(splat(start), builder.mul(builder.zext(ones, wide), splat(step)))
            place = builder.bitcast(builder.gep(data, [end]), wide.as_pointer())
            builder.store(listed, place).align = 4
            end = builder.add(end, builder.zext(builder.ctpop(byte), i64))
        return end

    i64 = types.int64
    return types.int64(types.uint32, i64, i64, out, i64), codegen
