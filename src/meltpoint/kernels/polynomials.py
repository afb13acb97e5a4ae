"""exp and expm1 as polynomials on LLVM vectors of float32 or float64.

x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) - 1 is a polynomial in r, and 2**n is written into the exponent bits.
Products and sums are fused only where the source calls `fma`, so the result has the same bits on every machine.
"""

import math
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from meltpoint.kernels.emitting import splat
from meltpoint.kernels.xoshiro import UNIFORM

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
