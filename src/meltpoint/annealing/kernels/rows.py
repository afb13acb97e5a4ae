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

_REGISTER_BYTES = 64
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


@intrinsic
def add_flips(
    _context: Any,
    weights: Any,
    strip: Any,
    lines: Any,
    first: Any,
    n_added: Any,
    n_removed: Any,
    out: Any,
    column: Any,
) -> Any:
    """out[column:column+width] += the strip's rows at n_added lines from `first` on - those at the n_removed after them.

    The parameters are those of `add_rows`. Only integer sums can be corrected so: for other weights nothing is emitted.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not isinstance(signature.args[0].dtype, types.Integer):
            return context.get_dummy_value()
        data = {k: context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2, 6)}
        types_ = signature.args[0].dtype, signature.args[6].dtype
        added = builder.gep(data[2], [args[3]])
        _Sum(context, builder, *types_, GROUP, 1, 1).emit_flips(
            strip=builder.gep(data[0], [args[1]]),
            added=(added, args[4]),
            removed=(builder.gep(added, [args[4]]), args[5]),
            out=builder.gep(data[6], [args[7]]),
        )
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(weights, i64, lines, i64, i64, i64, out, i64), codegen


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
        """The instructions of `add_rows` and its like."""
        builder = self.builder
        zero = ir.Constant(self.wide, None)
        for place in (place for sums in self.sums for place in sums):
            builder.store(zero, place)
        self._add_list(strip, lines, count, self.plus)
        signs = self._splat(sign)
        for place, (first, *others) in zip(self._places(out), zip(*self.sums, strict=True), strict=True):
            total = builder.load(first)
            for other in others:
                total = self.plus(total, builder.load(other))
            old = builder.load(place)
            old.align = 4
            old = builder.select(fresh, zero, old)
            times = builder.mul if self.integer else builder.fmul
            builder.store(self.plus(old, times(total, signs)), place).align = 4

    def emit_flips(self, strip: Any, added: tuple[Any, Any], removed: tuple[Any, Any], out: Any) -> None:
        """The instructions of `add_flips`; lists are pointers and counts."""
        builder = self.builder
        for place, total in zip(self._places(out), self.sums[0], strict=True):
            old = builder.load(place)
            old.align = 4
            builder.store(old, total)
        self._add_list(strip, *added, builder.add)
        self._add_list(strip, *removed, builder.sub)
        for place, total in zip(self._places(out), self.sums[0], strict=True):
            builder.store(builder.load(total), place).align = 4

    def _add_list(self, strip: Any, lines: Any, count: Any, combine: Any) -> None:
        """Combine the listed rows with the sums: by addition, or by subtraction."""
        builder = self.builder
        strip = builder.bitcast(strip, _I8.as_pointer())
        whole = builder.and_(count, ir.Constant(_I64, -self.group))
        with self._loop(ir.Constant(_I64, 0), whole, self.group) as (low, _):
            rows = [self._row(strip, lines, low, k) for k in range(self.group)]
            for k, sums in enumerate(self.sums):
                self._add_up(rows[k :: self.n_sums], sums, combine)
        if not self.widens:
            with self._loop(whole, count, 1) as (r, _):
                self._add_up([self._row(strip, lines, r, 0)], self.sums[0], combine)
            return
        rest = [cgutils.alloca_once(builder, self.narrow) for _ in self.registers]
        for place in rest:
            builder.store(ir.Constant(self.narrow, None), place)
        with self._loop(whole, count, 1) as (r, _):
            for place, value in zip(rest, self._row(strip, lines, r, 0), strict=True):
                builder.store(builder.add(builder.load(place), value), place)
        self._add_up([[builder.load(place) for place in rest]], self.sums[0], combine)

    def _places(self, out: Any) -> list[Any]:
        """Where the registers of a sum are kept."""
        out = self.builder.bitcast(out, self.wide.as_pointer())
        return [self.builder.gep(out, [ir.Constant(_I64, k)]) for k in self.registers]

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

    def _add_up(self, rows: list[list[Any]], sums: list[Any], combine: Any) -> None:
        """Combine at most a group of rows with the sums; their own sum is widened when all rows are in it."""
        for r, total in enumerate(sums):
            chains = [row[r] for row in rows[:2]]
            for k, row in enumerate(rows[2:]):
                chains[k % 2] = self.plus(chains[k % 2], row[r])
            group = self.plus(*chains) if len(chains) == 2 else chains[0]
            if self.widens:
                group = self.builder.sext(group, self.wide)
            self.builder.store(combine(self.builder.load(total), group), total)

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
