"""Sets of units as the bits of words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.kernels.compiling import intrinsic

WORD = 32
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_BYTE, _HALF = 8, 16
_ONES = [[k for k in range(_BYTE) if byte >> k & 1] for byte in range(2**_BYTE)]
"""Positions of the ones of every byte."""
SLACK = _HALF
"""Elements that an array which `list_on` fills must have beyond its lists."""


@intrinsic
def count_flipped(_context: Any, words: Any, at: Any, others: Any, from_: Any, n_words: Any) -> Any:
    """Number of bits in which n_words words from `at` on differ from others, from `from_` on; both C-contiguous."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        total = cgutils.alloca_once_value(builder, ir.Constant(_I64, 0))
        with _words_of(context, builder, signature, args) as (word, other):
            count = builder.zext(builder.ctpop(builder.xor(word, other)), _I64)
            builder.store(builder.add(builder.load(total), count), total)
        return builder.load(total)

    i64 = types.int64
    return types.int64(words, i64, others, i64, i64), codegen


def lister(has_compress: Callable[[Any], bool]) -> Any:
    """An intrinsic that lists bits, without branches."""

    def list_on(
        _context: Any,
        words: Any,
        at: Any,
        others: Any,
        from_: Any,
        n_words: Any,
        first: Any,
        step: Any,
        out: Any,
        begin: Any,
    ) -> Any:
        """out[begin:] = first + step * k for the bits k that are on in n_words words but not in the others.

        Gives the end of the list.
        Up to SLACK elements beyond the end of the list are overwritten. The first parameters are as above.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            step, begin = args[6], args[8]
            data = context.make_array(signature.args[7])(context, builder, args[7]).data
            emit, size = (_compressed, _HALF) if has_compress(context) else (_looked_up, _BYTE)
            end = cgutils.alloca_once_value(builder, begin)
            first = cgutils.alloca_once_value(builder, args[5])
            skip = builder.mul(step, ir.Constant(_I64, size))
            with _words_of(context, builder, signature, args) as (word, other):
                word = builder.and_(word, builder.not_(other))
                for k in range(0, WORD, size):
                    part = builder.trunc(builder.lshr(word, ir.Constant(_I32, k)), ir.IntType(size))
                    listed = emit(builder, part, builder.load(first), step)
                    place = builder.gep(data, [builder.load(end)])
                    builder.store(listed, builder.bitcast(place, listed.type.as_pointer())).align = 4
                    count = builder.zext(builder.ctpop(part), _I64)
                    builder.store(builder.add(builder.load(end), count), end)
                    builder.store(builder.add(builder.load(first), skip), first)
            return builder.load(end)

        i64 = types.int64
        return types.int64(words, i64, others, i64, i64, i64, i64, out, i64), codegen

    return intrinsic(list_on)


@contextmanager
def _words_of(context: Any, builder: Any, signature: Any, args: Any) -> Iterator[tuple[Any, Any]]:
    """A loop over the words and the others of `count_flipped`."""
    places = [
        builder.gep(context.make_array(signature.args[k])(context, builder, args[k]).data, [args[k + 1]])
        for k in (0, 2)
    ]
    steps = ir.Constant(_I64, 0), args[4], ir.Constant(_I64, 1)
    with cgutils.for_range_slice(builder, *steps, _I64) as (k, _):
        yield builder.load(builder.gep(places[0], [k])), builder.load(builder.gep(places[1], [k]))


def _has_compress(context: Any) -> bool:
    """Whether the processor moves the chosen lanes of a register to its front in one instruction."""
    return "+avx512f" in context.codegen().magic_tuple()[2]


list_on = lister(_has_compress)


def _compressed(builder: Any, part: Any, start: Any, step: Any) -> Any:
    """start + step * k for the positions k of the ones of half a word, then zeros."""
    wide = ir.VectorType(_I32, _HALF)
    mask = ir.VectorType(ir.IntType(1), _HALF)
    all_of_them = builder.add(
        _splat(builder, start, wide),
        builder.mul(_splat(builder, step, wide), ir.Constant(wide, list(range(_HALF)))),
    )
    kind = ir.FunctionType(wide, [wide, wide, mask])
    name = f"llvm.x86.avx512.mask.compress.v{_HALF}i32"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [all_of_them, ir.Constant(wide, None), builder.bitcast(part, mask)])


def _looked_up(builder: Any, part: Any, start: Any, step: Any) -> Any:
    """The same for the ones of a byte, from a table; what follows them means nothing."""
    narrow, wide = ir.VectorType(ir.IntType(8), _BYTE), ir.VectorType(_I32, _BYTE)
    positions = [k for ones in _ONES for k in (*ones, *[0] * (_BYTE - len(ones)))]
    values = ir.Constant(ir.ArrayType(ir.IntType(8), len(positions)), positions)
    table = cgutils.global_constant(builder.module, "positions_of_ones", values)
    place = builder.gep(builder.bitcast(table, narrow.as_pointer()), [builder.zext(part, _I64)])
    ones = builder.load(place)
    ones.align = 1
    scaled = builder.mul(builder.zext(ones, wide), _splat(builder, step, wide))
    return builder.add(_splat(builder, start, wide), scaled)


def _splat(builder: Any, scalar: Any, vector: ir.VectorType) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    lane = builder.insert_element(undefined, builder.trunc(scalar, _I32), ir.Constant(_I32, 0))
    return builder.shuffle_vector(lane, undefined, ir.Constant(vector, None))
