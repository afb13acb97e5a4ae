"""Sets of units as machine words: from bytes that are 0 or 1 to the positions of the ones."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

WORD = 32


@intrinsic
def word_of(_context: Any, on: Any, at: Any) -> Any:  # noqa: ANN401
    """The bytes on[at:at+32], each 0 or 1, as the bits of a uint32."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        vector = ir.VectorType(ir.IntType(8), WORD)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        value = builder.load(builder.bitcast(builder.gep(data, [args[1]]), vector.as_pointer()))
        value.align = 1
        return builder.bitcast(
            builder.icmp_unsigned("!=", value, ir.Constant(vector, None)), ir.IntType(WORD)
        )

    return types.uint32(on, types.int64), codegen


@intrinsic
def trailing_zeros(_context: Any, word: Any) -> Any:  # noqa: ANN401
    """Position of the lowest one in a word that is not zero."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint32(types.uint32), codegen


@intrinsic
def without_lowest(_context: Any, word: Any) -> Any:  # noqa: ANN401
    """The word without its lowest one."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.and_(args[0], builder.sub(args[0], ir.Constant(ir.IntType(WORD), 1)))

    return types.uint32(types.uint32), codegen


@intrinsic
def count_ones(_context: Any, word: Any) -> Any:  # noqa: ANN401
    """Number of ones in a word."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.zext(builder.ctpop(args[0]), ir.IntType(64))

    return types.int64(types.uint32), codegen
