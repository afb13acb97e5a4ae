"""The inner loop of annealing and training: add up the rows of W that belong to the units that are on.

A strip is one cache line wide (64 bytes: 32 int16, 16 float32 or 8 float64 columns), so that a strip of a
few hundred rows stays in the first-level cache while a tile of chains is processed, and the sums stay in
registers. Written as LLVM vectors because Numba's own vectoriser keeps the sums in memory and checks nine
pointers for overlap before every row (docs/decisions/kernels.md has the figures).
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from meltpoint.kernels.emitting import I8, I64, Arguments, emitted, load, loop, splat

STRIP_BYTES = 64
GROUP = 16
"""Units whose int16 weights may always be added up before the sum is widened to int32; often it can be more."""
BLOCK = 4
"""Integer rows that are added between two comparisons: lists of rows to widen are filled up to multiples of it."""
QUAD = 4
"""Units whose 16 partial sums make up one table."""
FEW = 64
"""Units whose int16 weights may be added up without widening at all, if they are all there are."""
PAIR = 2
"""Cache lines of most strips whose sums are widened and kept: a list of rows serves both of them."""


class Strips(NamedTuple):
    """A matrix (row, column) as strips of `width` columns, the last one padded, each strip row by row."""

    flat: NDArray[np.floating]
    n_rows: int
    n_columns: int
    width: int


def strips_of(matrix: NDArray[np.floating], n_lines: int = 1) -> Strips:
    """Cut a matrix, or a transposed view of one, into strips of n_lines cache lines."""
    n_rows, n_columns = matrix.shape
    width = n_lines * STRIP_BYTES // matrix.itemsize
    n_strips, n_whole = -(-n_columns // width), n_columns // width
    flat = empty_aligned(n_strips * n_rows * width, matrix.dtype)
    strips, end = flat.reshape(n_strips, n_rows, width), n_whole * width
    strips[:n_whole] = matrix[:, :end].reshape(n_rows, n_whole, width).swapaxes(0, 1)
    strips[n_whole:] = 0
    strips[n_whole:, :, : n_columns - end] = matrix[:, end:]
    return Strips(flat, n_rows, n_columns, width)


def empty_aligned(size: int, dtype: np.dtype) -> NDArray[Any]:
    """Room for so many elements, of which the first starts a cache line: the adders rely on it."""
    room = np.empty(size * dtype.itemsize + STRIP_BYTES, np.uint8)
    skip = -room.ctypes.data % STRIP_BYTES
    return room[skip : skip + size * dtype.itemsize].view(dtype)


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


def strip_width(dtype: np.dtype) -> int:
    """Columns of one strip."""
    return STRIP_BYTES // dtype.itemsize


_REGISTER_BYTES = 64  # where registers are narrower, LLVM takes several
_ZERO = ir.Constant(I64, 0)


def _adder(rows_at_once: int = GROUP, n_sums: int = 1) -> Any:
    """A function that adds rows of one cache line.

    `rows_at_once` and `n_sums` are for floats, whose order of additions is part of the results: row k of so many
    belongs to sum k % n_sums, and the sums are added up at the end.
    """

    @emitted(
        "weights strip lines first count sign fresh out column",
        where=lambda kinds: kinds["weights"].dtype == kinds["out"].dtype,
    )
    def add(given: Arguments) -> None:
        """out[column:column+width] += sign * sum of the strip's rows at lines[first:first+count]; = where fresh.

        `weights` is flat and starts a cache line, `strip` is the element at which the strip starts; `lines` is
        flat uint32 and holds row * STRIP_BYTES; `out` is flat and of the weights' type: where it is not, nothing is
        emitted.
        """
        _Sum(given, "weights", 1, rows_at_once, n_sums).emit()

    return add


add_rows = _adder()
add_rows_at_once = _adder(rows_at_once=4, n_sums=4)
"""Row adder of training. A sum must wait for its last addition: with four sums, float32 rows take less time."""


def _kept_adder(n_lines: int, weight_type: Any, sum_type: Any) -> Any:
    """A function that adds rows of n_lines cache lines to a base, and subtracts others."""

    @emitted(
        "weights strip lines added n_added removed n_removed group bases base out column",
        where=lambda kinds: (kinds["weights"].dtype, kinds["out"].dtype) == (weight_type, sum_type),
    )
    def add(given: Arguments) -> None:
        """out[column:column+width] = a base + the strip's rows at lines[added:] - those at lines[removed:].

        Rows and sums are float32; or rows are int16 and sums int32, widened after every `group` rows (a multiple of
        BLOCK). `n_added` and `n_removed` lines are taken, and those that fill up a block, which must point at a row
        of zeros. The base is at bases[base:] or, where `base` is negative, what `out` holds. For other types nothing is
        emitted.
        """
        _Sum(given, "weights", n_lines, n_sums=1 if weight_type == types.int16 else 2).emit_kept()

    return add


add_kept = _kept_adder(1, types.int16, types.int32)
add_kept_pairs = _kept_adder(PAIR, types.int16, types.int32)
add_float_pairs = _kept_adder(PAIR, types.float32, types.float32)


@emitted(
    "tables strip states n_quads fresh out column",
    where=lambda kinds: kinds["tables"].dtype == types.int16,
)
def add_tables(given: Arguments) -> None:
    """out[column:column+width] += the rows of n_quads quads' tables that belong to their states; = where fresh.

    `tables` is flat and starts a cache line, `strip` is the element at which the strip's tables start, `states` has
    four bits for each quad. Tables are int16, and so are sums; or sums are int32, n_quads is a multiple of four,
    and so many tables are added up before the sum is widened. For other types nothing is emitted.
    """
    _Sum(given, "tables").emit_tables()


@emitted("parts place out column")
def add_columns(given: Arguments) -> None:
    """out[column:column+width] += parts[place:place+width] for a strip of PAIR cache lines of int16."""
    builder = given.builder
    wide = ir.VectorType(given["parts"].type.pointee, PAIR * STRIP_BYTES // 2)
    source, target = (
        builder.bitcast(given.place(name, given[at]), wide.as_pointer())
        for name, at in (("parts", "place"), ("out", "column"))
    )
    plus = builder.add if isinstance(given.kinds["parts"].dtype, types.Integer) else builder.fadd
    builder.store(plus(load(builder, source), load(builder, target)), target).align = 4


class _Sum:
    """Emits the instructions of an adder for the type of the weights of this name and that of `out`."""

    def __init__(
        self, given: Arguments, weights: str, n_lines: int = 1, rows_at_once: int = GROUP, n_sums: int = 1
    ) -> None:
        builder, weight = given.builder, given.kinds[weights].dtype
        self.builder, self.n_lines, self.rows_at_once, self.n_sums = builder, n_lines, rows_at_once, n_sums
        self.registers = range(n_lines * STRIP_BYTES // _REGISTER_BYTES)
        self.integer = isinstance(weight, types.Integer)
        self.lanes = 8 * _REGISTER_BYTES // weight.bitwidth
        self.narrow = ir.VectorType(given[weights].type.pointee, self.lanes)
        self.wide = ir.VectorType(given["out"].type.pointee, self.lanes)
        self.plus = builder.add if self.integer else builder.fadd
        self.sums = [self._places_for(self.wide) for _ in range(n_sums)]
        self.given, self.strip = given, given.place(weights, given["strip"])
        self.out = given.place("out", given["column"])

    def emit(self) -> None:
        """The instructions of `add_rows` and its like."""
        builder, given = self.builder, self.given
        lines, count = given.place("lines", given["first"]), given["count"]
        zero = ir.Constant(self.wide, None)
        for sums in self.sums:
            self._clear(sums)
        if self.integer:
            self._add_integers(lines, _ZERO, count)
        else:
            self._add_floats(lines, count)
        signs = self._splat(given["sign"])
        for place, total in zip(self._places_in(self.out), self._totals(), strict=True):
            old = builder.select(given["fresh"], zero, load(builder, place))
            times = builder.mul if self.integer else builder.fmul
            builder.store(self.plus(old, times(total, signs)), place).align = 4

    def emit_kept(self) -> None:
        """The instructions of `add_kept` and its like."""
        builder, given, group = self.builder, self.given, self.given["group"]
        corrects = builder.icmp_signed("<", given["base"], _ZERO)
        base = builder.select(corrects, self.out, given.place("bases", given["base"]))
        for place, total in zip(self._places_in(base), self.sums[0], strict=True):
            builder.store(load(builder, place), total)
        for sums in self.sums[1:]:
            self._clear(sums)
        narrow = self._places_for(self.narrow) if self.integer else []
        operations = (builder.add, builder.sub) if self.integer else (builder.fadd, builder.fsub)
        for name, combine in zip(("added", "removed"), operations, strict=True):
            lines, count = given.place("lines", given[name]), given[f"n_{name}"]
            count = builder.and_(builder.add(count, ir.Constant(I64, BLOCK - 1)), ir.Constant(I64, -BLOCK))
            if not self.integer:
                self._add_blocks(lines, _ZERO, count, self.sums, combine)
                continue
            with loop(builder, _ZERO, count, group) as (low, _):
                self._clear(narrow)
                end = builder.add(low, group)
                end = builder.select(builder.icmp_signed("<", end, count), end, count)
                self._add_blocks(lines, low, end, [narrow], builder.add)
                for place, total in zip(narrow, self.sums[0], strict=True):
                    value = builder.sext(builder.load(place), self.wide)
                    builder.store(combine(builder.load(total), value), total)
        for place, total in zip(self._places_in(self.out), self._totals(), strict=True):
            builder.store(total, place).align = 4

    def emit_tables(self) -> None:
        """The instructions of `add_tables`."""
        builder, given = self.builder, self.given
        zero = ir.Constant(self.wide, None)
        for place, total in zip(self._places_in(self.out), self.sums[0], strict=True):
            builder.store(builder.select(given["fresh"], zero, load(builder, place, 2)), total)
        widens = self.narrow != self.wide
        line = ir.Constant(I64, self.n_lines * STRIP_BYTES)
        # Where a table begins; the state's row is at four bits times a row.
        table = cgutils.alloca_once_value(builder, builder.bitcast(self.strip, I8.as_pointer()))
        left = cgutils.alloca_once_value(builder, given["states"])
        sums = self._places_for(self.narrow) if widens else self.sums[0]
        at_once = GROUP // QUAD if widens else 1
        with loop(builder, 0, given["n_quads"], at_once):
            if widens:
                self._clear(sums)
            for _ in range(at_once):
                bits = builder.load(left)
                begin = builder.load(table)
                state = builder.and_(bits, ir.Constant(I64, 2**QUAD - 1))
                row = builder.bitcast(
                    builder.gep(begin, [builder.mul(state, line)]), self.narrow.as_pointer()
                )
                for place, value in zip(sums, self._registers_at(row), strict=True):
                    builder.store(builder.add(builder.load(place), value), place)
                builder.store(builder.lshr(bits, ir.Constant(I64, QUAD)), left)
                size = ir.Constant(I64, 2**QUAD * self.n_lines * STRIP_BYTES)
                builder.store(builder.gep(begin, [size]), table)
            if widens:
                for place, total in zip(sums, self.sums[0], strict=True):
                    value = builder.sext(builder.load(place), self.wide)
                    builder.store(builder.add(builder.load(total), value), total)
        for place, total in zip(self._places_in(self.out), self.sums[0], strict=True):
            builder.store(builder.load(total), place).align = 2

    def _add_integers(self, lines: Any, low: Any, end: Any) -> None:
        """Add the rows at lines[low:end]."""
        builder = self.builder
        blocks = builder.and_(builder.sub(end, low), ir.Constant(I64, -BLOCK))
        blocks = builder.add(low, blocks)
        self._add_blocks(lines, low, blocks, self.sums, builder.add)
        self._add_blocks(lines, blocks, end, self.sums, builder.add, 1)

    def _add_blocks(
        self, lines: Any, low: Any, end: Any, sums: list[list[Any]], combine: Any, size: int = BLOCK
    ) -> None:
        """Combine the rows at lines[low:end], so many at a time, with one sum after the other."""
        builder = self.builder
        with loop(builder, low, end, size) as (at, _):
            for k in range(size):
                for place, value in zip(sums[k % len(sums)], self._row(lines, at, k), strict=True):
                    builder.store(combine(builder.load(place), value), place)

    def _add_floats(self, lines: Any, count: Any) -> None:
        """Add the listed rows to the sums: of a sum's rows of a turn every other one, then both halves to the sum."""
        builder = self.builder
        whole = builder.and_(count, ir.Constant(I64, -self.rows_at_once))
        with loop(builder, 0, whole, self.rows_at_once) as (low, _):
            rows = [self._row(lines, low, k) for k in range(self.rows_at_once)]
            for k, sums in enumerate(self.sums):
                for r, total in enumerate(sums):
                    halves = [row[r] for row in rows[k :: self.n_sums][:2]]
                    for i, row in enumerate(rows[k :: self.n_sums][2:]):
                        halves[i % 2] = builder.fadd(halves[i % 2], row[r])
                    turn = builder.fadd(*halves) if len(halves) == 2 else halves[0]
                    builder.store(builder.fadd(builder.load(total), turn), total)
        with loop(builder, whole, count, 1) as (at, _):
            for total, value in zip(self.sums[0], self._row(lines, at, 0), strict=True):
                builder.store(builder.fadd(builder.load(total), value), total)

    def _row(self, lines: Any, at: Any, k: int) -> list[Any]:
        """The registers of one row."""
        builder = self.builder
        line = builder.load(builder.gep(lines, [builder.add(at, ir.Constant(I64, k))]))
        offset = builder.mul(builder.zext(line, I64), ir.Constant(I64, self.n_lines))
        row = builder.gep(builder.bitcast(self.strip, I8.as_pointer()), [offset])
        return self._registers_at(builder.bitcast(row, self.narrow.as_pointer()))

    def _registers_at(self, row: Any) -> list[Any]:
        places = (self.builder.gep(row, [ir.Constant(I64, r)]) for r in self.registers)
        return [load(self.builder, place, _REGISTER_BYTES) for place in places]

    def _places_for(self, vector: ir.VectorType) -> list[Any]:
        """One variable for every register of a row."""
        return [cgutils.alloca_once(self.builder, vector) for _ in self.registers]

    def _places_in(self, out: Any) -> list[Any]:
        """Where the registers of a sum are kept."""
        out = self.builder.bitcast(out, self.wide.as_pointer())
        return [self.builder.gep(out, [ir.Constant(I64, k)]) for k in self.registers]

    def _totals(self) -> Iterator[Any]:
        """Every register of the sums, added up."""
        for sums in zip(*self.sums, strict=True):
            yield reduce(self.plus, map(self.builder.load, sums))

    def _clear(self, places: list[Any]) -> None:
        for place in places:
            self.builder.store(ir.Constant(place.type.pointee, None), place)

    def _splat(self, sign: Any) -> Any:
        convert = self.builder.trunc if self.integer else self.builder.sitofp
        return splat(self.builder, convert(sign, self.wide.element), self.lanes)
