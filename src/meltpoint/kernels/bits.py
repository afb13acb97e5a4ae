"""Sets of units as the bits of words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.kernels.emitting import I32, I64, Arguments, emitted, load, loop, splat

WORD = 32
_BYTE, _HALF = 8, 16
_ONES = [[k for k in range(_BYTE) if byte >> k & 1] for byte in range(2**_BYTE)]
"""Positions of the ones of every byte."""
SLACK = _HALF
"""Elements that an array which `list_on` fills must have beyond its lists."""


@emitted("words at others from_ n_words", returns=types.int64)
def count_flipped(given: Arguments) -> Any:
    """Number of bits in which n_words words from `at` on differ from others, from `from_` on; both C-contiguous."""
    builder = given.builder
    total = cgutils.alloca_once_value(builder, ir.Constant(I64, 0))
    with _words_of(given) as (word, other):
        count = builder.zext(builder.ctpop(builder.xor(word, other)), I64)
        builder.store(builder.add(builder.load(total), count), total)
    return builder.load(total)


def lister(has_compress: Callable[[Any], bool]) -> Any:
    """A function that lists bits, without branches."""

    @emitted("words at others from_ n_words first step out begin", returns=types.int64)
    def list_on(given: Arguments) -> Any:
        """out[begin:] = first + step * k for the bits k that are on in n_words words but not in the others.

        Gives the end of the list.
        Up to SLACK elements beyond the end of the list are overwritten. The first parameters are as above.
        """
        builder, step = given.builder, given["step"]
        emit, size = (_compressed, _HALF) if has_compress(given.context) else (_looked_up, _BYTE)
        end = cgutils.alloca_once_value(builder, given["begin"])
        first = cgutils.alloca_once_value(builder, given["first"])
        skip = builder.mul(step, ir.Constant(I64, size))
        with _words_of(given) as (word, other):
            word = builder.and_(word, builder.not_(other))
            for k in range(0, WORD, size):
                part = builder.trunc(builder.lshr(word, ir.Constant(I32, k)), ir.IntType(size))
                listed = emit(builder, part, builder.load(first), step)
                place = given.place("out", builder.load(end))
                builder.store(listed, builder.bitcast(place, listed.type.as_pointer())).align = 4
                count = builder.zext(builder.ctpop(part), I64)
                builder.store(builder.add(builder.load(end), count), end)
                builder.store(builder.add(builder.load(first), skip), first)
        return builder.load(end)

    return list_on


@contextmanager
def _words_of(given: Arguments) -> Iterator[tuple[Any, Any]]:
    """A loop over the words and the others of `count_flipped`."""
    builder = given.builder
    words, others = given.place("words", given["at"]), given.place("others", given["from_"])
    with loop(builder, 0, given["n_words"]) as (k, _):
        yield builder.load(builder.gep(words, [k])), builder.load(builder.gep(others, [k]))


def _has_compress(context: Any) -> bool:
    """Whether the processor moves the chosen lanes of a register to its front in one instruction."""
    return "+avx512f" in context.codegen().magic_tuple()[2]


list_on = lister(_has_compress)


def _compressed(builder: Any, part: Any, start: Any, step: Any) -> Any:
    """start + step * k for the positions k of the ones of half a word, then zeros."""
    wide = ir.VectorType(I32, _HALF)
    mask = ir.VectorType(ir.IntType(1), _HALF)
    start, step = (splat(builder, builder.trunc(each, I32), _HALF) for each in (start, step))
    all_of_them = builder.add(start, builder.mul(step, ir.Constant(wide, list(range(_HALF)))))
    kind = ir.FunctionType(wide, [wide, wide, mask])
    name = f"llvm.x86.avx512.mask.compress.v{_HALF}i32"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [all_of_them, ir.Constant(wide, None), builder.bitcast(part, mask)])


def _looked_up(builder: Any, part: Any, start: Any, step: Any) -> Any:
    """The same for the ones of a byte, from a table; what follows them means nothing."""
    narrow, wide = ir.VectorType(ir.IntType(8), _BYTE), ir.VectorType(I32, _BYTE)
    positions = [k for ones in _ONES for k in (*ones, *[0] * (_BYTE - len(ones)))]
    values = ir.Constant(ir.ArrayType(ir.IntType(8), len(positions)), positions)
    table = cgutils.global_constant(builder.module, "positions_of_ones", values)
    place = builder.gep(builder.bitcast(table, narrow.as_pointer()), [builder.zext(part, I64)])
    ones = load(builder, place, 1)
    start, step = (splat(builder, builder.trunc(each, I32), _BYTE) for each in (start, step))
    return builder.add(start, builder.mul(builder.zext(ones, wide), step))
