"""exp and expm1 as polynomials on float32 or float64, scalars or LLVM vectors of them; log and softplus.

x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) - 1 is a polynomial in r, and 2**n is written into the exponent bits.
Products and sums are fused only where the source calls `fma`, so the result has the same bits on every machine.
"""

import math
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from meltpoint.kernels.compiling import compiled_into_callers
from meltpoint.kernels.emitting import intrinsic, splat
from meltpoint.kernels.streams import UNIFORM

LIMIT = 87.0
"""Inputs are clipped to ± this: exp(±87) is still a normal float32."""

# Cephes' minimax polynomial for float32, highest power first; Taylor's for float64, to the last bit at |r| < 0.35.
_FLOAT32 = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)
_FLOAT64 = tuple(1 / math.factorial(k) for k in range(14, 1, -1))
_LN2_PARTS = (0.693359375, -2.12194440054690583e-4)
"""ln 2 as a sum: n times the first part is exact."""


class Reals:
    """Emits arithmetic on vectors of `lanes` numbers of one type; on single numbers if there are 0 lanes."""

    def __init__(
        self,
        builder: Any,
        real: ir.Type,
        lanes: int,
        coefficients: tuple[float, ...] | None = None,
        fuses: bool = True,
    ) -> None:
        self.builder, self.real, self.lanes, self._fuses = builder, real, lanes, fuses
        single = isinstance(real, ir.FloatType)
        self._bits = 32 if single else 64
        self.vector: Any = ir.VectorType(real, lanes) if lanes else real
        integer = ir.IntType(self._bits)
        self._integers: Any = ir.VectorType(integer, lanes) if lanes else integer
        self._mantissa, self._offset = (23, 127) if single else (52, 1023)
        self._coefficients = coefficients or (_FLOAT32 if single else _FLOAT64)
        # 1.5 times 2**mantissa: adding and subtracting it rounds to the nearest integer.
        self._round = 1.5 * 2.0**self._mantissa

    def constant(self, value: float) -> ir.Constant:
        """The same number in every lane."""
        return self._filled(self.vector, value)

    def splat(self, scalar: Any) -> Any:
        """A scalar in every lane."""
        return splat(self.builder, scalar, self.lanes)

    def convert(self, value: Any) -> Any:
        """Integers as reals; reals as they are."""
        return value if value.type == self.vector else self.builder.sitofp(value, self.vector)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a * b + c, rounded once where products and sums are fused."""
        if not self._fuses:
            return self.builder.fadd(self.builder.fmul(a, b), c)
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fma.{f'v{self.lanes}' if self.lanes else ''}f{self._bits}"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), [a, b, c])

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
        power, excess = self.split(x)
        return self.builder.fmul(self.builder.fadd(excess, self.constant(1.0)), power)

    def expm1(self, x: Any) -> Any:
        """exp(x) - 1 with full relative precision near zero, for |x| at most LIMIT."""
        power, excess = self.split(x)
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

    def split(self, x: Any) -> tuple[Any, Any]:
        """2**n and exp(r) - 1, where x = n ln 2 + r."""
        builder = self.builder
        rounded = self.fma(x, self.constant(1 / math.log(2)), self.constant(self._round))
        n = builder.fsub(rounded, self.constant(self._round))
        r = x
        for part in _LN2_PARTS:
            r = self.fma(n, self.constant(-part), r)
        p = self.constant(self._coefficients[0])
        for coefficient in self._coefficients[1:]:
            p = self.fma(p, r, self.constant(coefficient))
        excess = self.fma(p, builder.fmul(r, r), r)
        # The low bits of `rounded` hold n: no conversion is needed to move it into the exponent.
        bits = builder.add(
            builder.bitcast(rounded, self._integers), self._filled(self._integers, self._offset)
        )
        power = builder.shl(bits, self._filled(self._integers, self._mantissa))
        return builder.bitcast(power, self.vector), excess

    def _filled(self, kind: ir.Type, value: float) -> ir.Constant:
        return ir.Constant(kind, [value] * self.lanes if self.lanes else value)


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
def exp(_context: Any, x: Any) -> Any:
    """exp(x) for |x| at most LIMIT, in x's own precision, for loops that Numba itself vectorises.

    Products and sums of float64 are not fused, which not all processors can do.
    """

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        real = context.get_value_type(x)
        single = isinstance(real, ir.FloatType)
        reals = Reals(builder, real, 0, _FLOAT32 if single else _FLOAT64[1:], fuses=single)
        power, excess = reals.split(args[0])
        return builder.fmul(builder.fadd(excess, reals.constant(1.0)), power)

    return x(x), codegen


@compiled_into_callers
def log(x):
    """log(x) of any float64."""
    if not 0.0 < x < math.inf:
        return math.log(x)  # infinite or NaN
    m, power = math.frexp(x)
    m, k = 2 * m, float(power - 1)
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
