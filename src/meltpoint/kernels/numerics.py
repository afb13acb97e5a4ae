"""exp for loops that Numba itself vectorises (`polynomials` has the same function on LLVM vectors), and softplus."""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import overload

from meltpoint.kernels.compiling import compiled_into_callers, intrinsic
from meltpoint.kernels.polynomials import FLOAT32, LIMIT, LN2_PARTS

__all__ = ["LIMIT", "exp", "softplus"]

_LOG2E = np.float32(1 / math.log(2))
_MINUS_HIGH, _MINUS_LOW = (np.float32(-part) for part in LN2_PARTS)
_ROUND = np.float32(1.5 * 2.0**23)  # adding and subtracting it rounds to the nearest integer
_ONE = np.float32(1.0)
_C7, _C6, _C5, _C4, _C3, _C2 = (np.float32(c) for c in FLOAT32)


@intrinsic
def _two_to_the(_context: Any, power: Any) -> Any:
    """2**power for a float32 that holds an integer in -126 … 127, by writing the exponent bits."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        exponent = builder.add(builder.fptosi(args[0], i32), ir.Constant(i32, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(i32, 23)), ir.FloatType())

    return types.float32(types.float32), codegen


@intrinsic
def _fma(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), codegen


def exp(x: float) -> float:
    """exp(x) for |x| at most LIMIT, in x's own precision."""
    return math.exp(x)


def _exp32(x):
    n = _fma(x, _LOG2E, _ROUND) - _ROUND
    r = _fma(n, _MINUS_LOW, _fma(n, _MINUS_HIGH, x))
    p = _fma(_fma(_fma(_fma(_fma(_C7, r, _C6), r, _C5), r, _C4), r, _C3), r, _C2)
    return (_fma(p, r * r, r) + _ONE) * _two_to_the(n)


@overload(exp, inline="always")
def _overload_exp(x):
    return _exp32 if x == types.float32 else (lambda x: math.exp(x))


@compiled_into_callers
def softplus(x):
    """log(1 + exp(x)) of any float64."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
