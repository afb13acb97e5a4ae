"""Elementary functions of the kernels: float32 versions that LLVM vectorises, libm for float64.

`np.exp` inside a Numba loop calls libm once per element. The float32 polynomials below are straight-line
arithmetic, so a loop over units becomes eight units per instruction. Where a product and a sum are fused, the
source says so (`fma`), and nowhere else: the result has the same bits on every machine.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

LIMIT = 87.0  # exp(±87) is still a normal float32

_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_ROUND = np.float32(12582912.0)  # 1.5 * 2**23: adding and subtracting it rounds to the nearest integer
_ONE = np.float32(1.0)
_C2 = np.float32(0.5)
_C3 = np.float32(1.6666665459e-1)
_C4 = np.float32(4.1665795894e-2)
_C5 = np.float32(8.3334519073e-3)
_C6 = np.float32(1.3981999507e-3)
_C7 = np.float32(1.9875691500e-4)


@intrinsic
def two_to_the(_context: Any, power: Any) -> Any:  # noqa: ANN401
    """2**power for a float32 that holds an integer in -126 … 127, by writing the exponent bits."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        i32 = ir.IntType(32)
        exponent = builder.add(builder.fptosi(args[0], i32), ir.Constant(i32, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(i32, 23)), ir.FloatType())

    return types.float32(types.float32), codegen


def exp(x: float) -> float:
    """exp(x) for |x| at most LIMIT, in x's own precision."""
    return math.exp(x)


def expm1(x: float) -> float:
    """exp(x) - 1 for |x| at most LIMIT with full relative precision near zero, in x's own precision."""
    return math.expm1(x)


@intrinsic
def fma(_context: Any, a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    """a * b + c, rounded once."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), codegen


def _exp32(x):  # noqa: ANN001, ANN202 (Numba compares the signatures of overloads)
    n = fma(x, _LOG2E, _ROUND) - _ROUND
    r = fma(n, -_LN2_LOW, fma(n, -_LN2_HIGH, x))
    p = fma(fma(fma(fma(fma(_C7, r, _C6), r, _C5), r, _C4), r, _C3), r, _C2)
    return (fma(p, r * r, r) + _ONE) * two_to_the(n)


def _expm1_32(x):  # noqa: ANN001, ANN202
    n = fma(x, _LOG2E, _ROUND) - _ROUND
    r = fma(n, -_LN2_LOW, fma(n, -_LN2_HIGH, x))
    p = fma(fma(fma(fma(fma(_C7, r, _C6), r, _C5), r, _C4), r, _C3), r, _C2)
    scale = two_to_the(n)
    return fma(fma(p, r * r, r), scale, scale - _ONE)


@overload(exp, inline="always")
def _overload_exp(x):  # noqa: ANN001, ANN202
    return _exp32 if x == types.float32 else (lambda x: math.exp(x))


@overload(expm1, inline="always")
def _overload_expm1(x):  # noqa: ANN001, ANN202
    return _expm1_32 if x == types.float32 else (lambda x: math.expm1(x))


PRODUCTS = 16


@intrinsic
def multiply_up(_context: Any, ratios: Any, count: Any, out: Any) -> Any:  # noqa: ANN401
    """out[:4] = products of (1 + ratios[:count]) in float64; their product is the product of all.

    `count` is a multiple of PRODUCTS. Sixteen independent products, so that none waits for another.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        def data(k: int) -> Any:  # noqa: ANN401
            return context.make_array(signature.args[k])(context, builder, args[k]).data

        i64, double = ir.IntType(64), ir.DoubleType()
        narrow = ir.VectorType(context.get_value_type(signature.args[0].dtype), PRODUCTS)
        wide = ir.VectorType(double, PRODUCTS)
        ones = ir.Constant(wide, [1.0] * PRODUCTS)
        product = cgutils.alloca_once_value(builder, ones)
        builder.store(ones, product)
        step = ir.Constant(i64, PRODUCTS)
        with cgutils.for_range_slice(builder, ir.Constant(i64, 0), args[1], step, i64) as (at, _):
            value = builder.load(builder.bitcast(builder.gep(data(0), [at]), narrow.as_pointer()))
            value.align = 4
            if narrow.element != double:
                value = builder.fpext(value, wide)
            builder.store(builder.fmul(builder.load(product), builder.fadd(value, ones)), product)
        whole = builder.load(product)
        while whole.type.count > 4:
            half = whole.type.count // 2
            low = ir.Constant(ir.VectorType(ir.IntType(32), half), list(range(half)))
            high = ir.Constant(ir.VectorType(ir.IntType(32), half), list(range(half, 2 * half)))
            whole = builder.fmul(
                builder.shuffle_vector(whole, whole, low), builder.shuffle_vector(whole, whole, high)
            )
        builder.store(whole, builder.bitcast(data(2), whole.type.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.void(ratios, types.int64, out), codegen
