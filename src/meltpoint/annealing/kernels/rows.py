"""The inner loop of everything: add up the rows of W that belong to the units that are on.

A strip is one cache line wide (64 bytes: 32 int16, 16 float32 or 8 float64 columns), so that a strip of a
few hundred rows stays in the first-level cache while a tile of chains walks over it, and the sums stay in
registers. Written as LLVM vectors because Numba's own vectoriser keeps the sums in memory and checks nine
pointers for overlap before every row (docs/decisions/kernels.md has the figures).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.annealing.kernels.compiling import intrinsic

STRIP_BYTES = 64
GROUP = 16
"""Units whose int16 weights may be added up before the sum is widened to int32."""
QUAD = 4
"""Units whose 16 partial sums make up one table of `add_quads`."""
FEW = 64
"""Units whose int16 weights may be added up without widening at all, if they are all there are."""
WIDE = 4
"""A wide strip, for sources of few units, is this many cache lines wide: fewer strips, less overhead for each."""

_REGISTER_BYTES = 32
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _adder(group: int, n_lines: int, n_sums: int = 1) -> Any:
    """An intrinsic that adds rows of n_lines cache lines, a group of rows at a time.

    Row k of a group belongs to sum k % n_sums; the sums are added up at the end. Where they are int32 and the weights
    int16, the sum of a group is widened.
    """

    def add(
        _context: Any,
        weights: Any,
        strip: Any,
        lines: Any,
        first: Any,
        count: Any,
        sign: Any,
        fresh: Any,
        out: Any,
        column: Any,
    ) -> Any:
        """out[column:column+width] += sign * sum of the strip's rows at lines[first:first+count]; = where fresh.

        `weights` is flat and starts a cache line, `strip` is the element at which the strip starts; `lines` is
        flat uint32 and holds row * STRIP_BYTES; `out` is flat, of the weights' type or, for int16, int32.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = {
                k: context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2, 7)
            }
            types_ = signature.args[0].dtype, signature.args[7].dtype
            _Sum(context, builder, *types_, group, n_lines, n_sums).emit(
                strip=builder.gep(data[0], [args[1]]),
                lines=builder.gep(data[2], [args[3]]),
                count=args[4],
                sign=args[5],
                fresh=args[6],
                out=builder.gep(data[7], [args[8]]),
            )
            return context.get_dummy_value()

        i64 = types.int64
        return types.void(weights, i64, lines, i64, i64, i64, types.boolean, out, i64), codegen

    return intrinsic(add)


add_rows = _adder(GROUP, 1)
add_quads = _adder(GROUP // QUAD, 1)
add_wide_rows = _adder(GROUP, WIDE)
add_wide_quads = _adder(GROUP // QUAD, WIDE)
add_rows_at_once = _adder(4, 1, n_sums=4)
"""For training. A sum has to wait for the addition before it: with four, float32 rows of any number take less time."""


class _Sum:
    """Emits the instructions of an adder for one type of weights and one of sums."""

    def __init__(
        self,
        context: Any,
        builder: Any,
        weight: Any,
        total: Any,
        group: int,
        n_lines: int,
        n_sums: int,
    ) -> None:
        self.builder, self.group, self.n_lines, self.n_sums = builder, group, n_lines, n_sums
        self.registers = range(n_lines * STRIP_BYTES // _REGISTER_BYTES)
        self.integer = isinstance(weight, types.Integer)
        self.lanes = 8 * _REGISTER_BYTES // weight.bitwidth
        self.narrow = ir.VectorType(context.get_value_type(weight), self.lanes)
        self.wide = ir.VectorType(context.get_value_type(total), self.lanes)
        self.widens = weight != total
        self.plus = builder.add if self.integer else builder.fadd
        self.sums = [[cgutils.alloca_once(builder, self.wide) for _ in self.registers] for _ in range(n_sums)]

    def emit(self, strip: Any, lines: Any, count: Any, sign: Any, fresh: Any, out: Any) -> None:
        builder = self.builder
        strip = builder.bitcast(strip, _I8.as_pointer())
        zero = ir.Constant(self.wide, None)
        for place in (place for sums in self.sums for place in sums):
            builder.store(zero, place)
        whole = builder.and_(count, ir.Constant(_I64, -self.group))
        with self._loop(ir.Constant(_I64, 0), whole, self.group) as (low, _):
            rows = [self._row(strip, lines, low, k) for k in range(self.group)]
            for k, sums in enumerate(self.sums):
                self._add_up(rows[k :: self.n_sums], sums)
        rest = self.sums[0]
        if self.widens:
            rest = [cgutils.alloca_once(builder, self.narrow) for _ in self.registers]
            for place in rest:
                builder.store(ir.Constant(self.narrow, None), place)
        with self._loop(whole, count, 1) as (r, _):
            for place, value in zip(rest, self._row(strip, lines, r, 0), strict=True):
                builder.store(self.plus(builder.load(place), value), place)
        if self.widens:
            self._add_up([[builder.load(place) for place in rest]], self.sums[0])
        signs = self._splat(sign)
        out = builder.bitcast(out, self.wide.as_pointer())
        for k, (first, *others) in enumerate(zip(*self.sums, strict=True)):
            total = builder.load(first)
            for other in others:
                total = self.plus(total, builder.load(other))
            place = builder.gep(out, [ir.Constant(_I64, k)])
            old = builder.load(place)
            old.align = 4
            old = builder.select(fresh, zero, old)
            times = builder.mul if self.integer else builder.fmul
            builder.store(self.plus(old, times(total, signs)), place).align = 4

    def _loop(self, start: Any, stop: Any, step: int) -> Any:
        return cgutils.for_range_slice(self.builder, start, stop, ir.Constant(_I64, step), _I64)

    def _row(self, strip: Any, lines: Any, at: Any, k: int) -> list[Any]:
        """The registers of one row."""
        builder = self.builder
        line = builder.load(builder.gep(lines, [builder.add(at, ir.Constant(_I64, k))]))
        offset = builder.mul(builder.zext(line, _I64), ir.Constant(_I64, self.n_lines))
        start = builder.bitcast(builder.gep(strip, [offset]), self.narrow.as_pointer())
        values = [builder.load(builder.gep(start, [ir.Constant(_I64, r)])) for r in self.registers]
        for value in values:
            value.align = _REGISTER_BYTES
        return values

    def _add_up(self, rows: list[list[Any]], sums: list[Any]) -> None:
        """Add at most a group of rows to the sums; what is added is widened when all rows are in it."""
        for r, total in enumerate(sums):
            chains = [row[r] for row in rows[:2]]
            for k, row in enumerate(rows[2:]):
                chains[k % 2] = self.plus(chains[k % 2], row[r])
            group = self.plus(*chains) if len(chains) == 2 else chains[0]
            if self.widens:
                group = self.builder.sext(group, self.wide)
            self.builder.store(self.plus(self.builder.load(total), group), total)

    def _splat(self, sign: Any) -> Any:
        builder = self.builder
        scalar = (builder.trunc if self.integer else builder.sitofp)(sign, self.wide.element)
        undefined = ir.Constant(self.wide, ir.Undefined)
        first = builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
        return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_I32, self.lanes), None))


def largest_sum(weights: np.ndarray, n_rows: int) -> float:
    """The largest |sum| over n_rows rows that any column of weights (row, column) can have."""
    return max(
        float(np.sort(np.maximum(side, 0.0), axis=0)[-n_rows:].sum(axis=0).max())
        for side in (weights, -weights)
    )


def strip_width(dtype: np.dtype) -> int:
    """Columns of one strip."""
    return STRIP_BYTES // dtype.itemsize
