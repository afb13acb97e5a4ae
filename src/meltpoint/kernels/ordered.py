"""The inner loop of products whose sums have a fixed order: the terms of a sum are added one after the other.

So a sum has the same bits whatever the processor's vectors, the library of matrix products, the other rows, and the
place of its row among them. Products and sums are not fused, because not all processors can. Sums of several rows and
of a whole strip of columns are in registers together: each waits for its own last addition only.
"""

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.emitting import I64, Arguments, emitted, load, loop, splat
from meltpoint.kernels.rows import PAIR, STRIP_BYTES, Strips, strips_of

Floats: TypeAlias = NDArray[np.float64]


def ordered_product(states: NDArray[Any], weights: NDArray[Any] | Strips) -> Floats:
    """states @ weights (unit, *column), for zeros and ones or for real states (row, unit), in the weights' precision.

    For every product whose bits are promised: those of a matrix library differ between processors, and between calls
    with other numbers of rows. Weights that are used again are better given as `strips_for_products`.
    """
    if not isinstance(weights, Strips):
        if weights.ndim == 1:
            return ordered_product(states, weights[:, np.newaxis])[:, 0]
        weights = strips_for_products(weights)
    rows = np.ascontiguousarray(states, weights.flat.dtype).view()
    rows.flags.writeable = False  # of the view: one type of array, compiled once
    n_columns, width = weights.n_columns, weights.width
    sums: Any = np.empty((len(rows), -(-n_columns // width) * width), rows.dtype)
    _multiply(rows, weights, sums)
    return np.ascontiguousarray(sums[:, :n_columns])


def strips_for_products(weights: NDArray[Any]) -> Strips:
    """Weights (unit, column) as `ordered_product` reads them."""
    return strips_of(weights, PAIR)


@compiled
def _multiply(states: np.ndarray, weights: Strips, out: np.ndarray) -> None:
    """out (row, padded column) = states (row, unit) @ weights: all rows use a strip while it is in the cache."""
    n_rows, n_units = states.shape
    for column in range(0, out.shape[1], weights.width):
        multiply_strip(
            weights.flat, column * n_units, states, n_rows, n_units, out, column, out.shape[1]
        )  # fmt: skip


_WIDE_REGISTERS = "+avx512f"
_ROWS_AT_ONCE = {True: (8, 4, 1), False: (2, 1)}
"""Rows whose sums fill the registers, by whether a register holds a cache line; then what is left over."""


@emitted("weights strip states n_rows n_units out column stride")
def multiply_strip(given: Arguments) -> None:
    """out[row, column : column + width] = states[row] @ a strip of PAIR cache lines, for all rows.

    `weights` is flat and starts a cache line, `strip` is the element at which the strip starts; `states` (row, unit)
    and `out` are of its type, and rows of `out` are `stride` elements long.
    """
    builder = given.builder
    features = given.context.codegen().magic_tuple()[2]
    n_rows, done = given["n_rows"], ir.Constant(I64, 0)
    for rows in _ROWS_AT_ONCE[_WIDE_REGISTERS in features]:
        left = builder.sub(n_rows, done)
        end = builder.add(done, builder.sub(left, builder.urem(left, ir.Constant(I64, rows))))
        with loop(builder, done, end, rows) as (row, _):
            _multiply_rows(given, row, rows)
        done = end


def _multiply_rows(given: Arguments, row: Any, rows: int) -> None:
    builder, real = given.builder, given["weights"].type.pointee
    lanes = STRIP_BYTES * 8 // (32 if isinstance(real, ir.FloatType) else 64)
    vector = ir.VectorType(real, lanes)
    sums = [cgutils.alloca_once(builder, vector) for _ in range(rows * PAIR)]
    begins = []
    for k in range(rows):
        at = builder.add(row, ir.Constant(I64, k))
        begins.append(builder.gep(given["states"], [builder.mul(at, given["n_units"])]))
    for place in sums:
        builder.store(ir.Constant(vector, None), place)
    strip = builder.bitcast(given.place("weights", given["strip"]), vector.as_pointer())
    with loop(builder, 0, given["n_units"]) as (unit, _):
        line = builder.mul(unit, ir.Constant(I64, PAIR))
        parts = [
            load(builder, builder.gep(strip, [builder.add(line, ir.Constant(I64, part))]), STRIP_BYTES)
            for part in range(PAIR)
        ]
        for k, begin in enumerate(begins):
            state = splat(builder, builder.load(builder.gep(begin, [unit])), lanes)
            for part in range(PAIR):
                place = sums[k * PAIR + part]
                builder.store(builder.fadd(builder.load(place), builder.fmul(state, parts[part])), place)
    for k in range(rows):
        at = builder.mul(builder.add(row, ir.Constant(I64, k)), given["stride"])
        out = builder.gep(given["out"], [builder.add(at, given["column"])])
        out = builder.bitcast(out, vector.as_pointer())
        for part in range(PAIR):
            target = builder.gep(out, [ir.Constant(I64, part)])
            builder.store(builder.load(sums[k * PAIR + part]), target).align = 4
