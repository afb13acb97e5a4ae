"""exp for loops that Numba itself vectorises (`polynomials` has the same function on LLVM vectors), and softplus."""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import literal_unroll, types
from numba.extending import overload

from meltpoint.kernels.compiling import compiled_into_callers, intrinsic
from meltpoint.kernels.polynomials import FLOAT32, LIMIT, LN2_PARTS

__all__ = ["LIMIT", "exp", "log", "softplus"]

_LOG2E = 1 / math.log(2)
_HIGH, _LOW = LN2_PARTS
_LOG2E32, _MINUS_HIGH32, _MINUS_LOW32 = (np.float32(each) for each in (_LOG2E, -_HIGH, -_LOW))
_ROUND32, _ROUND64 = np.float32(1.5 * 2.0**23), 1.5 * 2.0**52
"""Adding and subtracting it rounds to the nearest integer."""
_ONE = np.float32(1.0)
_C7, _C6, _C5, _C4, _C3, _C2 = (np.float32(c) for c in FLOAT32)
_TAYLOR = tuple(1 / math.factorial(k) for k in range(13, 1, -1))
_LEAST_NORMAL = 2.0**-1022
_SQRT2 = math.sqrt(2)
# fdlibm's log: ln 2 in two parts, and a minimax polynomial of (log(1 + s) - log(1 - s)) / s - 2 in s**2.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_L1, _L2, _L3, _L4, _L5, _L6, _L7 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


@intrinsic
def _two_to_the(_context: Any, power: Any) -> Any:
    """2**power for a float that holds an integer and has a normal power, by writing the exponent bits."""
    width, mantissa, offset = (32, 23, 127) if power == types.float32 else (64, 52, 1023)

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        integer = ir.IntType(width)
        exponent = builder.add(builder.fptosi(args[0], integer), ir.Constant(integer, offset))
        return builder.bitcast(builder.shl(exponent, ir.Constant(integer, mantissa)), args[0].type)

    return power(power), codegen


@intrinsic
def _fma(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), codegen


@intrinsic
def _mantissa(_context: Any, x: Any) -> Any:
    """The mantissa, in [1, 2), of a positive normal float64."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        i64 = ir.IntType(64)
        digits = builder.and_(builder.bitcast(args[0], i64), ir.Constant(i64, 2**52 - 1))
        return builder.bitcast(builder.or_(digits, ir.Constant(i64, 1023 << 52)), ir.DoubleType())

    return types.float64(types.float64), codegen


@intrinsic
def _exponent(_context: Any, x: Any) -> Any:
    """The exponent of a positive normal float64."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        i64 = ir.IntType(64)
        exponent = builder.lshr(builder.bitcast(args[0], i64), ir.Constant(i64, 52))
        return builder.sitofp(builder.sub(exponent, ir.Constant(i64, 1023)), ir.DoubleType())

    return types.float64(types.float64), codegen


def exp(x: float) -> float:
    """exp(x) for |x| at most LIMIT, in x's own precision."""
    return math.exp(x)


def _exp32(x):
    n = _fma(x, _LOG2E32, _ROUND32) - _ROUND32
    r = _fma(n, _MINUS_LOW32, _fma(n, _MINUS_HIGH32, x))
    p = _fma(_fma(_fma(_fma(_fma(_C7, r, _C6), r, _C5), r, _C4), r, _C3), r, _C2)
    return (_fma(p, r * r, r) + _ONE) * _two_to_the(n)


def _exp64(x):
    n = (x * _LOG2E + _ROUND64) - _ROUND64
    r = (x - n * _HIGH) - n * _LOW
    p = 0.0
    for c in literal_unroll(_TAYLOR):
        p = p * r + c
    return ((p * (r * r) + r) + 1.0) * _two_to_the(n)


@overload(exp, inline="always")
def _overload_exp(x):
    return _exp32 if x == types.float32 else _exp64


@compiled_into_callers
def log(x):
    """log(x) of any float64."""
    if not _LEAST_NORMAL <= x < math.inf:
        if 0.0 < x < _LEAST_NORMAL:
            return _log_normal(x * 2.0**54) - 54 * _LN2_HIGH - 54 * _LN2_LOW
        return math.log(x)  # infinite or NaN
    return _log_normal(x)


@compiled_into_callers
def _log_normal(x):
    m, k = _mantissa(x), _exponent(x)
    if m > _SQRT2:
        m, k = m / 2, k + 1
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = z * (_L1 + w * (_L3 + w * (_L5 + w * _L7)))
    even = w * (_L2 + w * (_L4 + w * _L6))
    half = f * f / 2
    return k * _LN2_HIGH - ((half - (s * (half + (even + odd)) + k * _LN2_LOW)) - f)


@compiled_into_callers
def softplus(x):
    """log(1 + exp(x)) of any float64."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
