"""Exponentials and logarithms of arrays with the same bits on every machine.

NumPy, SciPy and the system's mathematical library have other instructions for each kind of processor: the last bits
differ. These are sums and products in a fixed order, of which every processor makes the same. Errors are below two
units in the last place. Zeros, infinities and NaN come out as from NumPy, without warnings.
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

_BLOCK = 4096  # numbers of which all that is computed on the way stays in the cache
_LOG2E, _SQRT_HALF = 1 / math.log(2), math.sqrt(0.5)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440054690583e-4  # n times the first part is exact
_TAYLOR = tuple(1 / math.factorial(k) for k in range(13, 1, -1))
_LARGEST_EXPONENT = 746.0  # beyond, exp is 0 or infinite
# fdlibm's log: ln 2 in two parts, and a minimax polynomial of (log(1 + s) - log(1 - s)) / s - 2 in s**2.
_LOG_HIGH, _LOG_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LOG = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)
_Function = Callable[..., Any]


def _elementwise(function: _Function) -> _Function:
    """A function of float64 vectors for arrays and numbers, block by block; float32 comes out as float32."""

    @wraps(function)
    def apply(x: Any) -> Any:  # noqa: ANN401
        given = np.asarray(x)
        with np.errstate(all="ignore"):
            if (
                given.dtype == np.float64
                and 0 < given.size <= _BLOCK
                and given.ndim
                and given.flags.c_contiguous
            ):
                return function(given)
            numbers = given.astype(np.float64, copy=False).reshape(-1)
            found = np.empty(given.shape, given.dtype if given.dtype.kind == "f" else np.float64)
            flat = found.reshape(-1)
            for low in range(0, numbers.size, _BLOCK):
                flat[low : low + _BLOCK] = function(numbers[low : low + _BLOCK])
        return found[()]

    return apply


@_elementwise
def exp(x: Any) -> Any:  # noqa: ANN401
    """e to the power x."""
    x = np.maximum(np.minimum(x, _LARGEST_EXPONENT), -_LARGEST_EXPONENT)
    n = np.rint(x * _LOG2E)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = r * _TAYLOR[0] + _TAYLOR[1]
    for c in _TAYLOR[2:]:
        p *= r
        p += c
    return np.ldexp((p * (r * r) + r) + 1.0, n.astype(np.int32))


@_elementwise
def log(x: Any) -> Any:  # noqa: ANN401
    """Natural logarithm."""
    m, k = np.frexp(x)
    low = m < _SQRT_HALF
    f, k = m + m * low - 1.0, k - low.astype(np.float64)
    s = f / (f + 2.0)
    z = s * s
    p = z * _LOG[0] + _LOG[1]
    for c in _LOG[2:]:
        p *= z
        p += c
    half = f * f / 2
    found = k * _LOG_HIGH - ((half - (s * (half + z * p) + k * _LOG_LOW)) - f)
    usual = (x > 0) & (x < np.inf)
    if usual.all():
        return found
    return np.where(usual, found, np.where(x == 0, -np.inf, np.where(x > 0, x, np.nan)))


@_elementwise
def log1p(x: Any) -> Any:  # noqa: ANN401
    """log(1 + x)."""
    # What 1 + x loses by rounding, its logarithm loses in the same proportion.
    near = 1.0 + x
    lost = near - 1.0
    return np.where((lost == 0) | (x == np.inf), x, log(near) * (x / lost))


@_elementwise
def expm1(x: Any) -> Any:  # noqa: ANN401
    """exp(x) - 1."""
    power = exp(x)
    found = np.where(power == 1.0, x, (power - 1.0) * (x / log(power)))
    return np.where(np.abs(x) > 40.0, power - 1.0, found)


@_elementwise
def tanh(x: Any) -> Any:  # noqa: ANN401
    """Hyperbolic tangent."""
    t = expm1(-2.0 * np.abs(x))
    return np.copysign(t / (2.0 + t), x)


@_elementwise
def expit(x: Any) -> Any:  # noqa: ANN401
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + exp(-x))


@_elementwise
def logit(p: Any) -> Any:  # noqa: ANN401
    """log(p / (1 - p))."""
    return log(p) - log1p(-p)


@_elementwise
def softplus(x: Any) -> Any:  # noqa: ANN401
    """log(1 + exp(x)), without overflow."""
    return np.maximum(x, 0.0) + log1p(exp(-np.abs(x)))


def log_add_exp(x: Any, y: Any) -> Any:  # noqa: ANN401
    """log(exp(x) + exp(y))."""
    with np.errstate(invalid="ignore"):
        more = log1p(exp(-np.abs(np.subtract(x, y))))
        return np.maximum(x, y) + np.where(np.equal(x, y), math.log(2), more)


def softmax(x: Any, axis: int | tuple[int, ...]) -> Any:  # noqa: ANN401
    """exp(x), divided by its sum along an axis or several."""
    weights = exp(x - np.max(x, axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)
