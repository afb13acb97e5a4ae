"""The inner loop of annealing and training: add up the rows of W that belong to the units that are on.

A strip is one cache line wide (64 bytes: 32 int16, 16 float32 or 8 float64 columns), so that a strip of a
few hundred rows stays in the first-level cache while a tile of chains is processed, and the sums stay in
registers. Written as LLVM vectors because Numba's own vectoriser keeps the sums in memory and checks nine
pointers for overlap before every row (docs/decisions/kernels.md has the figures).
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from meltpoint.kernels.compiling import intrinsic
from meltpoint.kernels.strips import BLOCK, GROUP, PAIR, QUAD, STRIP_BYTES, WIDE

_REGISTER_BYTES = 64  # where registers are narrower, LLVM takes several
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
        sign: Any,
        fresh: Any,
        out: Any,
        column: Any,
    ) -> Any:
        """out[column:column+width] += sign * sum of the strip's rows at lines[first:first+count]; = where fresh.

        `weights` is flat and starts a cache line, `strip` is the element at which the strip starts; `lines` is
        flat uint32 and holds row * STRIP_BYTES; `out` is flat and of the weights' type: where it is not, nothing is
        emitted.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            types_ = signature.args[0].dtype, signature.args[7].dtype
            if types_[0] != types_[1]:
                return context.get_dummy_value()
            data = _data(context, builder, signature, args)
            _Sum(context, builder, *types_, n_lines, rows_at_once, n_sums).emit(
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


add_rows = _adder(1)
add_wide_rows = _adder(WIDE)
add_rows_at_once = _adder(1, rows_at_once=4, n_sums=4)
"""Row adder of training. A sum must wait for its last addition: with four sums, float32 rows take less time."""


def _kept_adder(n_lines: int, weight_type: Any, sum_type: Any) -> Any:
    """An intrinsic that adds rows of n_lines cache lines to a base, and subtracts others."""

    def add(
        _context: Any,
        weights: Any,
        strip: Any,
        lines: Any,
        added: Any,
        n_added: Any,
        removed: Any,
        n_removed: Any,
        group: Any,
        bases: Any,
        base: Any,
        out: Any,
        column: Any,
    ) -> Any:
        """out[column:column+width] = a base + the strip's rows at lines[added:] - those at lines[removed:].

        Rows and sums are float32; or rows are int16 and sums int32, widened after every `group` rows (a multiple of
        BLOCK). `n_added` and `n_removed` lines are taken, and those that fill up a block, which must point at a row
        of zeros. The base is at bases[base:] or, where `base` is negative, what `out` holds. For other types nothing is
        emitted.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            types_ = signature.args[0].dtype, signature.args[10].dtype
            if types_ != (weight_type, sum_type):
                return context.get_dummy_value()
            data = _data(context, builder, signature, args)
            out = builder.gep(data[10], [args[11]])
            corrects = builder.icmp_signed("<", args[9], _ZERO)
            _Sum(context, builder, *types_, n_lines, n_sums=1 if types_[0] == types.int16 else 2).emit_kept(
                strip=builder.gep(data[0], [args[1]]),
                added=(builder.gep(data[2], [args[3]]), args[4]),
                removed=(builder.gep(data[2], [args[5]]), args[6]),
                group=args[7],
                base=builder.select(corrects, out, builder.gep(data[8], [args[9]])),
                out=out,
            )
            return context.get_dummy_value()

        i64 = types.int64
        return types.void(weights, i64, lines, i64, i64, i64, i64, i64, bases, i64, out, i64), codegen

    return intrinsic(add)


add_kept = _kept_adder(1, types.int16, types.int32)
add_kept_pairs = _kept_adder(PAIR, types.int16, types.int32)
add_float_pairs = _kept_adder(PAIR, types.float32, types.float32)


def _table_adder(n_lines: int) -> Any:
    """An intrinsic that adds rows of tables, n_lines cache lines wide."""

    def add(
        _context: Any,
        tables: Any,
        strip: Any,
        states: Any,
        n_quads: Any,
        fresh: Any,
        out: Any,
        column: Any,
    ) -> Any:
        """out[column:column+width] += the rows of n_quads quads' tables that belong to their states; = where fresh.

        `tables` is flat and starts a cache line, `strip` is the element at which the strip's tables start, `states` has
        four bits for each quad. Tables are int16, and so are sums; or sums are int32, n_quads is a multiple of four,
        and so many tables are added up before the sum is widened. For other types nothing is emitted.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            types_ = signature.args[0].dtype, signature.args[5].dtype
            if types_[0] != types.int16:
                return context.get_dummy_value()
            data = _data(context, builder, signature, args)
            _Sum(context, builder, *types_, n_lines).emit_tables(
                strip=builder.gep(data[0], [args[1]]),
                states=args[2],
                n_quads=args[3],
                fresh=args[4],
                out=builder.gep(data[5], [args[6]]),
            )
            return context.get_dummy_value()

        i64 = types.int64
        return types.void(tables, i64, types.uint64, i64, types.boolean, out, i64), codegen

    return intrinsic(add)


add_tables = _table_adder(1)
add_wide_tables = _table_adder(WIDE)


@intrinsic
def add_columns(_context: Any, parts: Any, place: Any, out: Any, column: Any) -> Any:
    """out[column:column+width] += parts[place:place+width] for a strip of PAIR cache lines of int16."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _data(context, builder, signature, args)
        wide = ir.VectorType(context.get_value_type(signature.args[0].dtype), PAIR * STRIP_BYTES // 2)
        source, target = (
            builder.bitcast(builder.gep(data[k], [args[k + 1]]), wide.as_pointer()) for k in (0, 2)
        )
        values = [builder.load(place) for place in (source, target)]
        for value in values:
            value.align = 4
        plus = builder.add if isinstance(signature.args[0].dtype, types.Integer) else builder.fadd
        builder.store(plus(*values), target).align = 4
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(parts, i64, out, i64), codegen


def _data(context: Any, builder: Any, signature: Any, args: Any) -> dict[int, Any]:
    """Where the data of the arguments that are arrays begin."""
    return {
        k: context.make_array(kind)(context, builder, args[k]).data
        for k, kind in enumerate(signature.args)
        if isinstance(kind, types.Array)
    }


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
        self.plus = builder.add if self.integer else builder.fadd
        self.sums = [self._places_for(self.wide) for _ in range(n_sums)]

    def emit(self, strip: Any, lines: Any, count: Any, sign: Any, fresh: Any, out: Any) -> None:
        """The instructions of `add_rows` and its like."""
        builder = self.builder
        zero = ir.Constant(self.wide, None)
        for sums in self.sums:
            self._clear(sums)
        if self.integer:
            self._add_integers(strip, lines, _ZERO, count)
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

    def emit_kept(
        self, strip: Any, added: tuple[Any, Any], removed: tuple[Any, Any], group: Any, base: Any, out: Any
    ) -> None:
        """The instructions of `add_kept`; lists are pointers and counts."""
        builder = self.builder
        for place, total in zip(self._places_in(base), self.sums[0], strict=True):
            old = builder.load(place)
            old.align = 4
            builder.store(old, total)
        for sums in self.sums[1:]:
            self._clear(sums)
        narrow = self._places_for(self.narrow) if self.integer else []
        operations = (builder.add, builder.sub) if self.integer else (builder.fadd, builder.fsub)
        for (lines, count), combine in zip((added, removed), operations, strict=True):
            count = builder.and_(builder.add(count, ir.Constant(_I64, BLOCK - 1)), ir.Constant(_I64, -BLOCK))
            if not self.integer:
                self._add_blocks(strip, lines, _ZERO, count, self.sums, combine)
                continue
            with cgutils.for_range_slice(builder, _ZERO, count, group, _I64) as (low, _):
                self._clear(narrow)
                end = builder.add(low, group)
                end = builder.select(builder.icmp_signed("<", end, count), end, count)
                self._add_blocks(strip, lines, low, end, [narrow], builder.add)
                for place, total in zip(narrow, self.sums[0], strict=True):
                    value = builder.sext(builder.load(place), self.wide)
                    builder.store(combine(builder.load(total), value), total)
        for place, (first, *others) in zip(self._places_in(out), zip(*self.sums, strict=True), strict=True):
            total = builder.load(first)
            for other in others:
                total = self.plus(total, builder.load(other))
            builder.store(total, place).align = 4

    def emit_tables(self, strip: Any, states: Any, n_quads: Any, fresh: Any, out: Any) -> None:
        """The instructions of `add_tables`."""
        builder = self.builder
        zero = ir.Constant(self.wide, None)
        for place, total in zip(self._places_in(out), self.sums[0], strict=True):
            old = builder.load(place)
            old.align = 2
            builder.store(builder.select(fresh, zero, old), total)
        widens = self.narrow != self.wide
        line = ir.Constant(_I64, self.n_lines * STRIP_BYTES)
        # Where a table begins; the state's row is at four bits times a row.
        table = cgutils.alloca_once_value(builder, builder.bitcast(strip, _I8.as_pointer()))
        left = cgutils.alloca_once_value(builder, states)
        sums = self._places_for(self.narrow) if widens else self.sums[0]
        at_once = GROUP // QUAD if widens else 1
        with self._loop(_ZERO, n_quads, at_once):
            if widens:
                self._clear(sums)
            for _ in range(at_once):
                bits = builder.load(left)
                begin = builder.load(table)
                state = builder.and_(bits, ir.Constant(_I64, 2**QUAD - 1))
                row = builder.bitcast(
                    builder.gep(begin, [builder.mul(state, line)]), self.narrow.as_pointer()
                )
                for place, value in zip(sums, self._registers_at(row), strict=True):
                    builder.store(builder.add(builder.load(place), value), place)
                builder.store(builder.lshr(bits, ir.Constant(_I64, QUAD)), left)
                size = ir.Constant(_I64, 2**QUAD * self.n_lines * STRIP_BYTES)
                builder.store(builder.gep(begin, [size]), table)
            if widens:
                for place, total in zip(sums, self.sums[0], strict=True):
                    value = builder.sext(builder.load(place), self.wide)
                    builder.store(builder.add(builder.load(total), value), total)
        for place, total in zip(self._places_in(out), self.sums[0], strict=True):
            builder.store(builder.load(total), place).align = 2

    def _add_integers(self, strip: Any, lines: Any, low: Any, end: Any) -> None:
        """Add the rows at lines[low:end]."""
        builder = self.builder
        blocks = builder.and_(builder.sub(end, low), ir.Constant(_I64, -BLOCK))
        blocks = builder.add(low, blocks)
        self._add_blocks(strip, lines, low, blocks, self.sums, builder.add)
        self._add_blocks(strip, lines, blocks, end, self.sums, builder.add, 1)

    def _add_blocks(
        self,
        strip: Any,
        lines: Any,
        low: Any,
        end: Any,
        sums: list[list[Any]],
        combine: Any,
        size: int = BLOCK,
    ) -> None:
        """Combine the rows at lines[low:end], so many at a time, with one sum after the other."""
        builder = self.builder
        with self._loop(low, end, size) as (at, _):
            for k in range(size):
                for place, value in zip(sums[k % len(sums)], self._row(strip, lines, at, k), strict=True):
                    builder.store(combine(builder.load(place), value), place)

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
        return self._registers_at(builder.bitcast(row, self.narrow.as_pointer()))

    def _registers_at(self, row: Any) -> list[Any]:
        values = [self.builder.load(self.builder.gep(row, [ir.Constant(_I64, r)])) for r in self.registers]
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
