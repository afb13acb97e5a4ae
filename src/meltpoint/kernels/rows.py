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

from meltpoint.kernels.compiling import intrinsic

STRIP_BYTES = 64
GROUP = 16
"""Units whose int16 weights may always be added up before the sum is widened to int32; often it can be more."""
QUAD = 4
"""Units whose 16 partial sums make up one table."""
FEW = 64
"""Units whose int16 weights may be added up without widening at all, if they are all there are."""
WIDE = 4
"""A wide strip, for sources of few units, is this many cache lines wide: fewer strips, less overhead for each."""

_REGISTER_BYTES = 64  # where registers are narrower, LLVM takes several
_BLOCK = 4  # integer rows that are added between two comparisons
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_ZERO = ir.Constant(_I64, 0)


def _adder(n_lines: int, rows_at_once: int = GROUP, n_sums: int = 1) -> Any:
    """An intrinsic that adds rows of n_lines cache lines.

    `rows_at_once` and `n_sums` are for floats, whose order of additions is part of the results: row k of so many
    belongs to sum k % n_sums, and the sums are added up at the end.
    """

    def add(
        _context: Any,
        weights: Any,
        strip: Any,
        lines: Any,
        first: Any,
        count: Any,
        group: Any,
        sign: Any,
        fresh: Any,
        out: Any,
        column: Any,
    ) -> Any:
        """out[column:column+width] += sign * sum of the strip's rows at lines[first:first+count]; = where fresh.

        `weights` is flat and starts a cache line, `strip` is the element at which the strip starts; `lines` is
        flat uint32 and holds row * STRIP_BYTES; `out` is flat, of the weights' type or, for int16, int32. Then the sum
        is widened after every `group` rows.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = {
                k: context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2, 8)
            }
            types_ = signature.args[0].dtype, signature.args[8].dtype
            _Sum(context, builder, *types_, n_lines, rows_at_once, n_sums).emit(
                strip=builder.gep(data[0], [args[1]]),
                lines=builder.gep(data[2], [args[3]]),
                count=args[4],
                group=args[5],
                sign=args[6],
                fresh=args[7],
                out=builder.gep(data[8], [args[9]]),
            )
            return context.get_dummy_value()

        i64 = types.int64
        return types.void(weights, i64, lines, i64, i64, i64, i64, types.boolean, out, i64), codegen

    return intrinsic(add)


add_rows = _adder(1)
add_wide_rows = _adder(WIDE)
add_rows_at_once = _adder(1, rows_at_once=4, n_sums=4)
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
    group: Any,
    out: Any,
    column: Any,
) -> Any:
    """out[column:column+width] += the strip's rows at n_added lines from `first` on - those at n_removed lines after.

    The parameters are those of `add_rows`. Only integer sums can be corrected so: for other weights nothing is emitted.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not isinstance(signature.args[0].dtype, types.Integer):
            return context.get_dummy_value()
        data = {k: context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2, 7)}
        types_ = signature.args[0].dtype, signature.args[7].dtype
        added = builder.gep(data[2], [args[3]])
        _Sum(context, builder, *types_).emit_flips(
            strip=builder.gep(data[0], [args[1]]),
            added=(added, args[4]),
            removed=(builder.gep(added, [args[4]]), args[5]),
            group=args[6],
            out=builder.gep(data[7], [args[8]]),
        )
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(weights, i64, lines, i64, i64, i64, i64, out, i64), codegen


class _Sum:
    """Emits the instructions of an adder for one type of weights and one of sums."""

    def __init__(
        self,
        context: Any,
        builder: Any,
        weight: Any,
        total: Any,
        n_lines: int = 1,
        rows_at_once: int = GROUP,
        n_sums: int = 1,
    ) -> None:
        self.builder, self.n_lines, self.rows_at_once, self.n_sums = builder, n_lines, rows_at_once, n_sums
        self.registers = range(n_lines * STRIP_BYTES // _REGISTER_BYTES)
        self.integer = isinstance(weight, types.Integer)
        self.lanes = 8 * _REGISTER_BYTES // weight.bitwidth
        self.narrow = ir.VectorType(context.get_value_type(weight), self.lanes)
        self.wide = ir.VectorType(context.get_value_type(total), self.lanes)
        self.widens = weight != total
        self.plus = builder.add if self.integer else builder.fadd
        self.sums = [self._places_for(self.wide) for _ in range(n_sums)]

    def emit(self, strip: Any, lines: Any, count: Any, group: Any, sign: Any, fresh: Any, out: Any) -> None:
        """The instructions of `add_rows` and its like."""
        builder = self.builder
        zero = ir.Constant(self.wide, None)
        for sums in self.sums:
            self._clear(sums)
        if self.integer:
            self._add_integers(strip, lines, count, group, builder.add)
        else:
            self._add_floats(strip, lines, count)
        signs = self._splat(sign)
        for place, (first, *others) in zip(self._places_in(out), zip(*self.sums, strict=True), strict=True):
            total = builder.load(first)
            for other in others:
                total = self.plus(total, builder.load(other))
            old = builder.load(place)
            old.align = 4
            old = builder.select(fresh, zero, old)
            times = builder.mul if self.integer else builder.fmul
            builder.store(self.plus(old, times(total, signs)), place).align = 4

    def emit_flips(
        self, strip: Any, added: tuple[Any, Any], removed: tuple[Any, Any], group: Any, out: Any
    ) -> None:
        """The instructions of `add_flips`; lists are pointers and counts."""
        builder = self.builder
        for place, total in zip(self._places_in(out), self.sums[0], strict=True):
            old = builder.load(place)
            old.align = 4
            builder.store(old, total)
        self._add_integers(strip, *added, group, builder.add)
        self._add_integers(strip, *removed, group, builder.sub)
        for place, total in zip(self._places_in(out), self.sums[0], strict=True):
            builder.store(builder.load(total), place).align = 4

    def _add_integers(self, strip: Any, lines: Any, count: Any, group: Any, combine: Any) -> None:
        """Combine the listed rows with the sums: by addition, or by subtraction."""
        builder = self.builder
        narrow = self._places_for(self.narrow)
        with cgutils.for_range_slice(builder, _ZERO, count, group if self.widens else count, _I64) as (
            low,
            _,
        ):
            self._clear(narrow)
            end = builder.add(low, group) if self.widens else count
            end = builder.select(builder.icmp_signed("<", end, count), end, count)
            blocks = builder.and_(builder.sub(end, low), ir.Constant(_I64, -_BLOCK))
            blocks = builder.add(low, blocks)
            for start, stop, step in ((low, blocks, _BLOCK), (blocks, end, 1)):
                with self._loop(start, stop, step) as (at, _):
                    for k in range(step):
                        for place, value in zip(narrow, self._row(strip, lines, at, k), strict=True):
                            builder.store(builder.add(builder.load(place), value), place)
            for place, total in zip(narrow, self.sums[0], strict=True):
                value = builder.load(place)
                value = builder.sext(value, self.wide) if self.widens else value
                builder.store(combine(builder.load(total), value), total)

    def _add_floats(self, strip: Any, lines: Any, count: Any) -> None:
        """Add the listed rows to the sums: of a sum's rows of a turn every other one, then both halves to the sum."""
        builder = self.builder
        whole = builder.and_(count, ir.Constant(_I64, -self.rows_at_once))
        with self._loop(_ZERO, whole, self.rows_at_once) as (low, _):
            rows = [self._row(strip, lines, low, k) for k in range(self.rows_at_once)]
            for k, sums in enumerate(self.sums):
                for r, total in enumerate(sums):
                    halves = [row[r] for row in rows[k :: self.n_sums][:2]]
                    for i, row in enumerate(rows[k :: self.n_sums][2:]):
                        halves[i % 2] = builder.fadd(halves[i % 2], row[r])
                    turn = builder.fadd(*halves) if len(halves) == 2 else halves[0]
                    builder.store(builder.fadd(builder.load(total), turn), total)
        with self._loop(whole, count, 1) as (at, _):
            for total, value in zip(self.sums[0], self._row(strip, lines, at, 0), strict=True):
                builder.store(builder.fadd(builder.load(total), value), total)

    def _loop(self, start: Any, stop: Any, step: int) -> Any:
        return cgutils.for_range_slice(self.builder, start, stop, ir.Constant(_I64, step), _I64)

    def _row(self, strip: Any, lines: Any, at: Any, k: int) -> list[Any]:
        """The registers of one row."""
        builder = self.builder
        line = builder.load(builder.gep(lines, [builder.add(at, ir.Constant(_I64, k))]))
        offset = builder.mul(builder.zext(line, _I64), ir.Constant(_I64, self.n_lines))
        row = builder.gep(builder.bitcast(strip, _I8.as_pointer()), [offset])
        row = builder.bitcast(row, self.narrow.as_pointer())
        values = [builder.load(builder.gep(row, [ir.Constant(_I64, r)])) for r in self.registers]
        for value in values:
            value.align = _REGISTER_BYTES
        return values

    def _places_for(self, vector: ir.VectorType) -> list[Any]:
        """One variable for every register of a row."""
        return [cgutils.alloca_once(self.builder, vector) for _ in self.registers]

    def _places_in(self, out: Any) -> list[Any]:
        """Where the registers of a sum are kept."""
        out = self.builder.bitcast(out, self.wide.as_pointer())
        return [self.builder.gep(out, [ir.Constant(_I64, k)]) for k in self.registers]

    def _clear(self, places: list[Any]) -> None:
        for place in places:
            self.builder.store(ir.Constant(place.type.pointee, None), place)

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


def safe_group(rows: np.ndarray) -> int:
    """How many of the integer rows (row, column), at least GROUP, can be added up in int16, whichever they are."""
    n_safe = len(rows)
    for side in (rows, -rows):
        sums = np.cumsum(np.sort(np.maximum(side, 0).astype(np.int64), axis=0)[::-1], axis=0)
        n_safe = min(n_safe, int((sums <= np.iinfo(np.int16).max).all(axis=1).sum()))
    return max(n_safe, GROUP)


def safe_quads(rows: np.ndarray) -> int:
    """How many tables of consecutive quads, from a multiple of it on, can be added up in int16; a power of two."""
    n_quads = GROUP // QUAD
    while n_quads * QUAD < len(rows):
        starts = np.arange(0, len(rows), 2 * n_quads * QUAD)
        for side in (rows, -rows):
            sums = np.add.reduceat(np.maximum(side, 0).astype(np.int64), starts, axis=0)
            if sums.max() > np.iinfo(np.int16).max:
                return n_quads
        n_quads *= 2
    return n_quads


def strip_width(dtype: np.dtype) -> int:
    """Columns of one strip."""
    return STRIP_BYTES // dtype.itemsize
