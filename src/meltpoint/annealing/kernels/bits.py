"""Sets of units as the bits of words."""

from typing import Any

from llvmlite import ir
from numba import types

from meltpoint.annealing.kernels.compiling import intrinsic

WORD = 32


@intrinsic
def trailing_zeros(_context: Any, word: Any) -> Any:
    """Position of the lowest one in a word that is not zero."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint32(types.uint32), codegen


@intrinsic
def without_lowest(_context: Any, word: Any) -> Any:
    """The word without its lowest one."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.and_(args[0], builder.sub(args[0], ir.Constant(ir.IntType(WORD), 1)))

    return types.uint32(types.uint32), codegen


@intrinsic
def count_ones(_context: Any, word: Any) -> Any:
    """Number of ones in a word."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.zext(builder.ctpop(args[0]), ir.IntType(64))

    return types.int64(types.uint32), codegen
