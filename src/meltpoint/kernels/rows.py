"""The inner loop of annealing and training: add up the rows of W that belong to the units that are on.

A strip is one or two cache lines wide (64 bytes: 32 int16, 16 float32 or 8 float64 columns), so that a strip of a
few hundred rows stays in the first-level cache while a tile of chains is processed, and the sums stay in
registers. Written as LLVM vectors because Numba's own vectoriser keeps the sums in memory and checks nine
pointers for overlap before every row (docs/decisions/kernels.md has the figures).
"""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from meltpoint.kernels.emitting import I8, I64, Arguments, emitted, load, loop, splat

STRIP_BYTES = 64
LINE = STRIP_BYTES // 2
"""Columns of int16 in a cache line."""
GROUP = 16
"""Units whose int16 weights may always be added up before the sum is widened to int32; often it can be more."""
BLOCK = 4
"""Integer rows that are added between two comparisons: lists of rows to widen are filled up to multiples of it."""
QUAD = 4
"""Units whose 16 partial sums make up one table."""
FEW = 64
"""Units of whose int16 weights any sum fits in int16, if they are all there are."""
PAIR = 2
"""Cache lines of most strips whose sums are widened and kept: a list of rows serves both of them."""


class Strips(NamedTuple):
    """A matrix (row, column) as strips of `width` columns, the last one padded, each strip row by row."""

    flat: NDArray[np.floating]
    n_rows: int
    n_columns: int
    width: int

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies of arrays, and those from pickles, do not start a cache line.
        return _aligned_strips, tuple(self)


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


def _aligned_strips(flat: NDArray[np.floating], n_rows: int, n_columns: int, width: int) -> Strips:
    aligned = empty_aligned(flat.size, flat.dtype)
    aligned[:] = flat
    return Strips(aligned, n_rows, n_columns, width)


def empty_aligned(size: int, dtype: np.dtype) -> NDArray[Any]:
    """An empty array whose first element starts a cache line: the adders rely on it."""
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


def _float_adder(rows_at_once: int, n_sums: int) -> Any:
    """A function that adds rows of floats, one cache line wide.

    The order of additions is part of the results: of `rows_at_once` rows row k belongs to sum k % n_sums, and the sums
    are added up at the end.
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
        adder = _Adder(given, 1, n_sums)
        builder, lines, count = given.builder, given.place("lines", given["first"]), given["count"]
        whole = builder.and_(count, ir.Constant(I64, -rows_at_once))
        with loop(builder, 0, whole, rows_at_once) as (low, _):
            rows = [adder.row(lines, low, k) for k in range(rows_at_once)]
            for k, sums in enumerate(adder.sums):
                for r, total in enumerate(sums):
                    halves = [row[r] for row in rows[k::n_sums][:2]]
                    for i, row in enumerate(rows[k::n_sums][2:]):
                        halves[i % 2] = builder.fadd(halves[i % 2], row[r])
                    turn = builder.fadd(*halves) if len(halves) == 2 else halves[0]
                    builder.store(builder.fadd(builder.load(total), turn), total)
        adder.add_blocks(lines, whole, count, adder.sums[:1], builder.fadd, 1)
        sign = splat(builder, builder.sitofp(given["sign"], adder.wide.element), adder.lanes)
        for place, total, old in zip(adder.out, adder.totals(), adder.before(given["fresh"]), strict=True):
            builder.store(builder.fadd(old, builder.fmul(total, sign)), place).align = 4

    return add


add_rows = _float_adder(rows_at_once=16, n_sums=1)
add_rows_at_once = _float_adder(rows_at_once=4, n_sums=4)
"""Row adder of training. A sum must wait for its last addition: with four sums, float32 rows take less time."""


def _kept_adder(n_lines: int, weight_type: Any, sum_type: Any) -> Any:
    """A function that adds and subtracts rows of n_lines cache lines."""

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
        adder = _Adder(given, n_lines, n_sums=1 if weight_type == types.int16 else 2)
        builder, group = given.builder, given["group"]
        own, other = given.place("out", given["column"]), given.place("bases", given["base"])
        own = builder.select(builder.icmp_signed("<", given["base"], ir.Constant(I64, 0)), own, other)
        for total, place in zip(adder.sums[0], adder.places(own), strict=True):
            builder.store(load(builder, place), total)
        narrow = adder.variables(adder.narrow) if adder.integer else []
        operations = (builder.add, builder.sub) if adder.integer else (builder.fadd, builder.fsub)
        for name, combine in zip(("added", "removed"), operations, strict=True):
            lines, count = given.place("lines", given[name]), given[f"n_{name}"]
            count = builder.and_(builder.add(count, ir.Constant(I64, BLOCK - 1)), ir.Constant(I64, -BLOCK))
            if not adder.integer:
                adder.add_blocks(lines, ir.Constant(I64, 0), count, adder.sums, combine)
                continue
            with loop(builder, 0, count, group) as (low, _):
                adder.clear(narrow)
                end = builder.add(low, group)
                end = builder.select(builder.icmp_signed("<", end, count), end, count)
                adder.add_blocks(lines, low, end, [narrow], builder.add)
                adder.widen(narrow, combine)
        adder.store()

    return add


add_kept = _kept_adder(1, types.int16, types.int32)
add_kept_pairs = _kept_adder(PAIR, types.int16, types.int32)
add_float_pairs = _kept_adder(PAIR, types.float32, types.float32)


def _of_sixteen_bits(kinds: dict[str, Any]) -> bool:
    return kinds["out"].dtype in (types.int16, types.int32)


@emitted("weights at stride n_quads out", where=_of_sixteen_bits)
def build_tables(given: Arguments) -> None:
    """out = the sums (quad, state, column) of a cache line's rows in the 16 states of n_quads quads.

    The rows begin at weights[at:], `stride` elements apart; `out` starts a cache line.
    """
    builder, half = given.builder, ir.VectorType(ir.IntType(16), LINE // 2)
    with loop(builder, 0, given["n_quads"]) as (quad, _):
        first = builder.mul(builder.mul(quad, ir.Constant(I64, QUAD)), given["stride"])
        first = builder.add(given["at"], first)
        table = builder.mul(quad, ir.Constant(I64, 2**QUAD * LINE))
        for part in (0, LINE // 2):
            sums, at = [ir.Constant(half, None)], builder.add(first, ir.Constant(I64, part))
            for _ in range(QUAD):
                value = load(builder, builder.bitcast(given.place("weights", at), half.as_pointer()), 32)
                sums += [builder.add(known, value) for known in sums]
                at = builder.add(at, given["stride"])
            for state, value in enumerate(sums):
                place = given.place("out", builder.add(table, ir.Constant(I64, state * LINE + part)))
                builder.store(value, builder.bitcast(place, half.as_pointer())).align = 32


@emitted("weights states n_quads fresh out column", where=_of_sixteen_bits)
def add_tables(given: Arguments) -> None:
    """out[column:column+width] += the rows of n_quads quads' tables that belong to their states; = where fresh.

    `weights` are tables as `build_tables` makes them, a multiple of four: their sums are widened to int32; `states` has
    four bits for each quad.
    """
    builder, adder = given.builder, _Adder(given)
    for total, old in zip(adder.sums[0], adder.before(given["fresh"]), strict=True):
        builder.store(old, total)
    left = cgutils.alloca_once_value(builder, given["states"])
    narrow, at_once = adder.variables(adder.narrow), GROUP // QUAD
    with loop(builder, 0, given["n_quads"], at_once) as (first, _):
        adder.clear(narrow)
        for k in range(at_once):
            bits = builder.load(left)
            quad = builder.mul(builder.add(first, ir.Constant(I64, k)), ir.Constant(I64, 2**QUAD))
            state = builder.and_(bits, ir.Constant(I64, 2**QUAD - 1))
            at = builder.mul(builder.add(quad, state), ir.Constant(I64, STRIP_BYTES))
            for place, value in zip(narrow, adder.row_at(at), strict=True):
                builder.store(builder.add(builder.load(place), value), place)
            builder.store(builder.lshr(bits, ir.Constant(I64, QUAD)), left)
        adder.widen(narrow, builder.add)
    adder.store()


class _Adder:
    """Emits what adders share: sums of rows of `weights` in registers, and the place in `out` where they are kept."""

    def __init__(self, given: Arguments, n_lines: int = 1, n_sums: int = 1) -> None:
        builder, weight = given.builder, given.kinds["weights"].dtype
        self.builder, self.n_lines = builder, n_lines
        self.registers = range(n_lines * STRIP_BYTES // _REGISTER_BYTES)
        self.integer = isinstance(weight, types.Integer)
        self.lanes = 8 * _REGISTER_BYTES // weight.bitwidth
        self.narrow = ir.VectorType(given["weights"].type.pointee, self.lanes)
        self.wide = ir.VectorType(given["out"].type.pointee, self.lanes)
        self.sums = [self.variables(self.wide) for _ in range(n_sums)]
        for sums in self.sums:
            self.clear(sums)
        strip = given.place("weights", given["strip"]) if "strip" in given.kinds else given["weights"]
        self.strip = builder.bitcast(strip, I8.as_pointer())
        self.out = self.places(given.place("out", given["column"]))

    def places(self, sums: Any) -> list[Any]:
        """Where the registers of sums are kept."""
        sums = self.builder.bitcast(sums, self.wide.as_pointer())
        return [self.builder.gep(sums, [ir.Constant(I64, k)]) for k in self.registers]

    def before(self, fresh: Any) -> list[Any]:
        """What is kept, or zeros where fresh."""
        zero = ir.Constant(self.wide, None)
        return [self.builder.select(fresh, zero, load(self.builder, place)) for place in self.out]

    def add_blocks(
        self, lines: Any, low: Any, end: Any, sums: list[list[Any]], combine: Any, size: int = BLOCK
    ) -> None:
        """Combine the rows at lines[low:end], `size` at a time, with one sum after the other."""
        builder = self.builder
        with loop(builder, low, end, size) as (at, _):
            for k in range(size):
                for place, value in zip(sums[k % len(sums)], self.row(lines, at, k), strict=True):
                    builder.store(combine(builder.load(place), value), place)

    def row(self, lines: Any, at: Any, k: int) -> list[Any]:
        """The registers of the row at lines[at + k]."""
        line = self.builder.load(self.builder.gep(lines, [self.builder.add(at, ir.Constant(I64, k))]))
        return self.row_at(self.builder.mul(self.builder.zext(line, I64), ir.Constant(I64, self.n_lines)))

    def row_at(self, offset: Any) -> list[Any]:
        """The registers of the row that begins at an offset in bytes."""
        builder = self.builder
        row = builder.bitcast(builder.gep(self.strip, [offset]), self.narrow.as_pointer())
        places = (builder.gep(row, [ir.Constant(I64, r)]) for r in self.registers)
        return [load(builder, place, _REGISTER_BYTES) for place in places]

    def widen(self, narrow: list[Any], combine: Any) -> None:
        """Combine sums of int16 with the wide one."""
        builder = self.builder
        for place, total in zip(narrow, self.sums[0], strict=True):
            value = builder.sext(builder.load(place), self.wide)
            builder.store(combine(builder.load(total), value), total)

    def variables(self, vector: ir.VectorType) -> list[Any]:
        """One variable for every register of a row."""
        return [cgutils.alloca_once(self.builder, vector) for _ in self.registers]

    def clear(self, places: list[Any]) -> None:
        for place in places:
            self.builder.store(ir.Constant(place.type.pointee, None), place)

    def totals(self) -> list[Any]:
        """Every register of the sums, added up."""
        plus = self.builder.add if self.integer else self.builder.fadd
        return [reduce(plus, map(self.builder.load, sums)) for sums in zip(*self.sums, strict=True)]

    def store(self) -> None:
        """Keep the sums."""
        for place, total in zip(self.out, self.totals(), strict=True):
            self.builder.store(total, place).align = 4
