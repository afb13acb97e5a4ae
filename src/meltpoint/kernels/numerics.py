"""exp and expm1 as polynomials on LLVM vectors of float32 or float64.

x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) - 1 is a polynomial in r, and 2**n is written into the exponent bits.
Products and sums are fused only where the source calls `fma`, so the result has the same bits on every machine.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import literal_unroll, types
from numba.core import cgutils
from numba.extending import overload

from meltpoint.kernels.compiling import compiled_into_callers, intrinsic
from meltpoint.kernels.emitting import splat
from meltpoint.kernels.streams import UNIFORM

LIMIT = 87.0
"""Inputs are clipped to ± this: exp(±87) is still a normal float32."""

# Cephes' minimax polynomial for float32, highest power first; Taylor's for float64, to the last bit at |r| < 0.35.
FLOAT32 = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)
_FLOAT64 = tuple(1 / math.factorial(k) for k in range(14, 1, -1))
LN2_PARTS = (0.693359375, -2.12194440054690583e-4)
"""ln 2 as a sum: n times the first part is exact."""


class Reals:
    """Emits arithmetic on vectors of `lanes` numbers of one type."""

    def __init__(self, builder: Any, real: ir.Type, lanes: int) -> None:
        self.builder, self.real, self.lanes = builder, real, lanes
        self.vector = ir.VectorType(real, lanes)
        single = isinstance(real, ir.FloatType)
        self._integer = ir.IntType(32 if single else 64)
        self._mantissa, self._offset = (23, 127) if single else (52, 1023)
        self._coefficients = FLOAT32 if single else _FLOAT64
        # 1.5 times 2**mantissa: adding and subtracting it rounds to the nearest integer.
        self._round = 1.5 * 2.0**self._mantissa

    def constant(self, value: float) -> ir.Constant:
        """The same number in every lane."""
        return ir.Constant(self.vector, [value] * self.lanes)

    def splat(self, scalar: Any) -> Any:
        """A scalar in every lane."""
        return splat(self.builder, scalar, self.lanes)

    def convert(self, value: Any) -> Any:
        """Integers as reals; reals as they are."""
        return value if value.type == self.vector else self.builder.sitofp(value, self.vector)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a * b + c, rounded once."""
        function = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fma.v{self.lanes}f{self._integer.width}"
        return self.builder.call(
            cgutils.get_or_insert_function(self.builder.module, function, name), [a, b, c]
        )

    def decay(self, field: Any, bias: Any, factor: Any) -> Any:
        """exp(-t) for t = factor * field + bias, t clipped to ± LIMIT."""
        # Negating both terms costs nothing: it becomes part of the fused instruction.
        minus_t = self.fma(
            self.builder.fneg(self.convert(field)), self.splat(factor), self.builder.fneg(bias)
        )
        return self.exp(minus_t)

    def exp(self, x: Any) -> Any:
        """exp(x), x clipped to ± LIMIT."""
        for bound, beyond in ((LIMIT, ">"), (-LIMIT, "<")):
            edge = self.constant(bound)
            x = self.builder.select(self.builder.fcmp_ordered(beyond, x, edge), edge, x)
        power, excess = self._split(x)
        return self.builder.fmul(self.builder.fadd(excess, self.constant(1.0)), power)

    def expm1(self, x: Any) -> Any:
        """exp(x) - 1 with full relative precision near zero, for |x| at most LIMIT."""
        power, excess = self._split(x)
        return self.fma(excess, power, self.builder.fsub(power, self.constant(1.0)))

    def is_on(self, uniforms: Any, decay: Any) -> Any:
        """Whether u (1 + exp(-t)) <= 1 for uniforms u in units of UNIFORM, lane by lane."""
        scaled = self.fma(uniforms, decay, uniforms)
        return self.builder.fcmp_ordered("<=", scaled, self.constant(1 / UNIFORM))

    def inverse_weights(self, minus_d: Any, decay: Any) -> Any:
        """1 + sigmoid(t) expm1(-d) in float64, for exp(-t): (1 + exp(t - d)) / (1 + exp(t))."""
        ratio = self.builder.fdiv(self.expm1(minus_d), self.builder.fadd(decay, self.constant(1.0)))
        double = ir.VectorType(ir.DoubleType(), self.lanes)
        wide = ratio if ratio.type == double else self.builder.fpext(ratio, double)
        return self.builder.fadd(wide, ir.Constant(double, [1.0] * self.lanes))

    def _split(self, x: Any) -> tuple[Any, Any]:
        """2**n and exp(r) - 1, where x = n ln 2 + r."""
        builder = self.builder
        rounded = self.fma(x, self.constant(1 / math.log(2)), self.constant(self._round))
        n = builder.fsub(rounded, self.constant(self._round))
        r = x
        for part in LN2_PARTS:
            r = self.fma(n, self.constant(-part), r)
        p = self.constant(self._coefficients[0])
        for coefficient in self._coefficients[1:]:
            p = self.fma(p, r, self.constant(coefficient))
        excess = self.fma(p, builder.fmul(r, r), r)
        integers = ir.VectorType(self._integer, self.lanes)

        def whole(value: int) -> ir.Constant:
            return ir.Constant(integers, [value] * self.lanes)

        # The low bits of `rounded` hold n: no conversion is needed to move it into the exponent.
        bits = builder.add(builder.bitcast(rounded, integers), whole(self._offset))
        return builder.bitcast(builder.shl(bits, whole(self._mantissa)), self.vector), excess


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
