"""Weights of draws from compiled code, against the same draws in NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meltpoint.kernels.importance import SummedOut, drawable, weigh_draws
from meltpoint.kernels.sigmoid import sum_softplus
from meltpoint.kernels.streams import Streams, next_uniforms
from meltpoint.randomness import Purpose


def case(seed, units, columns, examples, draws, n_proposals):
    """Arguments of `weigh_draws`, and the sums and softplus that its draws must have, in float64."""
    rng = np.random.default_rng(seed)
    parts = [((-1.0) ** k, rng.normal(0, 1, (units, size))) for k, size in enumerate(columns)]
    given_inputs = [rng.normal(0, 2, (examples, size)) for size in columns]
    rates = drawable(rng.beta(0.3, 0.3, (n_proposals, examples, units)))
    proposals = np.arange(draws) % n_proposals
    linear = rng.normal(0, 1, (examples, units, 2))
    streams = Streams(seed, Purpose.LOG_F, np.arange(examples))
    generators = streams.generators()
    states = np.empty((examples, draws, units), bool)
    for draw in range(draws):
        states[:, draw] = next_uniforms(generators, units) < rates[proposals[draw]]
    softplus = sum(
        sign * sum_softplus(own[:, np.newaxis] + states @ weights)
        for (sign, weights), own in zip(parts, given_inputs, strict=True)
    )
    summed_out = SummedOut.of(parts)
    arguments = summed_out, summed_out.inputs(given_inputs), rates, proposals, linear
    return (*arguments, streams.generators()), states @ linear, softplus


@given(
    seed=st.integers(0, 999),
    units=st.integers(1, 70),
    columns=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    examples=st.integers(1, 4),
    draws=st.integers(1, 9),
    n_proposals=st.integers(1, 2),
)
@settings(max_examples=min(40, settings().max_examples), deadline=None)
def test_compiled_draws_are_those_of_numpy(seed, units, columns, examples, draws, n_proposals):
    arguments, sums, softplus = case(seed, units, columns, examples, draws, n_proposals)
    found_sums, found_softplus = weigh_draws(*arguments, threads=1)
    np.testing.assert_allclose(found_sums, sums, atol=1e-11)
    np.testing.assert_allclose(found_softplus, softplus, atol=2e-5 * (1 + np.abs(softplus).max()))


def test_many_strips_do_not_overflow():
    arguments, _sums, softplus = case(1, 33, [2000, 500], 2, 3, 2)
    _, found = weigh_draws(*arguments, threads=2)
    np.testing.assert_allclose(found, softplus, rtol=1e-5)


def test_a_row_left_out_is_noticed():
    arguments, _sums, softplus = case(2, 40, [30], 2, 6, 1)
    summed_out, inputs, *rest = arguments
    summed_out.strips.flat[7 * 32 : 8 * 32] = 0.0  # the first strip of unit 7
    _, found = weigh_draws(summed_out, inputs, *rest, threads=1)
    assert np.abs(found - softplus).max() > 1e-3


@pytest.mark.parametrize("rate", [0.0, 1e-30, 0.25, 1 - 1e-17, 1.0])
def test_rates_can_be_drawn_exactly(rate):
    (found,) = drawable(np.array([rate]))
    assert 0 < found < 1
    assert found * 2**31 == round(found * 2**31)
    assert abs(found - rate) <= 2.0**-31
