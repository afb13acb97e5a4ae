"""Elementary functions of the kernels against NumPy's in float64, over their whole range."""

import math

import numpy as np
import pytest
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from meltpoint.kernels.numerics import LIMIT, Reals, exp
from meltpoint.kernels.streams import LANES


def vectorised(emit):
    """An intrinsic f(x, at, out): LANES results of emit(reals, vector x) from x[at:] go to out[at:]."""

    @intrinsic
    def apply(_context, x, at, out):
        def codegen(context, builder, signature, args):
            reals = Reals(builder, context.get_value_type(signature.args[0].dtype), LANES)
            places = [context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2)]
            source, target = (
                builder.bitcast(builder.gep(place, [args[1]]), reals.vector.as_pointer()) for place in places
            )
            value = builder.load(source)
            value.align = 4
            builder.store(emit(reals, value), target).align = 4
            return context.get_dummy_value()

        return types.void(x, types.int64, out), codegen

    @njit
    def over(x):
        out = np.empty_like(x)
        for at in range(0, x.size, LANES):
            apply(x, at, out)  # pyright: ignore[reportCallIssue]
        return out

    return over


_decay = vectorised(lambda reals, x: reals.decay(x, reals.constant(0.0), ir.Constant(reals.real, 1.0)))
_expm1 = vectorised(lambda reals, x: reals.expm1(x))


@njit
def _exp(x):
    out = np.empty_like(x)
    for k in range(x.size):
        out[k] = exp(x[k])
    return out


def inputs(dtype, limit=LIMIT):
    """Numbers in ± limit, dense everywhere and near zero, as many as fill whole vectors."""
    small = 10.0 ** np.linspace(-30, math.log10(limit), 40_000)
    x = np.concatenate([np.linspace(-limit, limit, 400_000), small, -small, [0.0, -0.0]])
    return np.pad(x, (0, -x.size % LANES)).astype(dtype)


# A float32 has 24 bits: half a unit in the last place is 6e-8.
ALLOWED = {np.float32: 2e-7, np.float64: 5e-16}


@pytest.mark.parametrize("dtype", ALLOWED)
def test_decay(dtype) -> None:
    x = inputs(dtype)
    expected = np.exp(-x.astype(np.float64))
    assert np.abs(_decay(x) / expected - 1).max() < ALLOWED[dtype]


@pytest.mark.parametrize("dtype", ALLOWED)
def test_decay_is_clipped_where_a_float32_ends(dtype) -> None:
    x = np.pad(np.array([88.0, 1e4, 1e30, np.inf, -88.0, -1e4, -1e30, -np.inf]), (0, LANES - 8)).astype(dtype)
    high, low = _decay(x)[:4], _decay(x)[4:8]
    np.testing.assert_allclose(high, np.exp(-LIMIT), rtol=1e-6)
    np.testing.assert_allclose(low, np.exp(LIMIT), rtol=1e-6)


@pytest.mark.parametrize("dtype", ALLOWED)
def test_expm1(dtype) -> None:
    x = inputs(dtype)
    x = x[x != 0]
    x = x[: x.size // LANES * LANES]
    expected = np.expm1(x.astype(np.float64))
    assert np.abs(_expm1(x) / expected - 1).max() < 3 * ALLOWED[dtype]


@pytest.mark.parametrize("dtype", ALLOWED)
def test_no_step_changes_nothing(dtype) -> None:
    assert (_expm1(np.zeros(LANES, dtype)) == 0).all()


@pytest.mark.parametrize("dtype", ALLOWED)
def test_exp_in_loops(dtype) -> None:
    x = inputs(dtype)
    assert np.abs(_exp(x) / np.exp(x.astype(np.float64)) - 1).max() < ALLOWED[dtype]


def test_a_coarser_polynomial_would_be_noticed() -> None:
    x = inputs(np.float32, 0.3).astype(np.float64)
    taylor = sum(x**k / math.factorial(k) for k in range(5))
    assert np.abs(taylor / np.exp(x) - 1).max() > ALLOWED[np.float32]
