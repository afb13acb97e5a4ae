"""Importance-sampling estimates of f(v): enumerated over the proposal they are unbiased, their bounds are bounds."""

import functools
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meltpoint.errors import InputError
from meltpoint.kernels.sigmoid import sum_softplus
from meltpoint.models import dbm, dbn
from meltpoint.models.log_f import draw_given, estimate_log_f, log_bernoulli
from oracle.concentration import bernstein
from oracle.driving import models
from oracle.driving.double import in_double
from oracle.driving.truth import f_visible, recognition_outcomes, recognition_probability, recognition_sizes
from oracle.tables import all_states

DBMS = [
    models.dbm(31, [3, 2, 2]),
    models.dbm(32, [2, 2, 2, 3]),
    models.dbm(33, [2, 1, 2, 2, 2]),
    models.dbm(34, [3, 2, 2], 1.2, units="spin"),
    models.dbm(35, [2, 2, 2, 1], 1.2, units=["spin", "bernoulli", "bernoulli", "spin"]),
]
DBNS = [
    models.dbn(31, [3, 2, 2]),
    models.dbn(32, [2, 3, 2, 2]),
    models.dbn(33, [2, 3, 2, 2], 0.8, units=["spin", "spin", "bernoulli", "spin"]),
]
EXACT, SINGLE = 1e-12, 3e-6
"""Relative errors that float64 may leave, and float32."""


class Dense:
    """What `SummedOut` is, with weights in float64 as they come."""

    def __init__(self, parts):
        self.parts = parts

    of = classmethod(lambda cls, parts: cls(parts))

    def inputs(self, parts):
        return parts


def every_outcome(model, room, copies=1, linear_of=lambda linear: linear):
    """Probability (visible state, outcome), and log weights if draws were all states, each `copies` times."""
    drawn = []

    def weigh(summed_out, inputs, rates, proposals, linear, _generators, _threads):
        states = np.repeat(all_states(rates.shape[2]).astype(bool), copies, axis=0)
        assert len(states) == len(proposals)
        own = np.moveaxis(rates[proposals], 0, 1)
        drawn.append(np.where(states, own, 1 - own).prod(axis=2) / copies)
        softplus = 0.0
        for (sign, weights), own_inputs in zip(summed_out.parts, inputs, strict=True):
            softplus = softplus + sign * sum_softplus(own_inputs[:, np.newaxis] + states @ weights)
        return states @ linear_of(linear), softplus

    n_units = model.mrf.n_even - model.n_visible if room is dbm else recognition_sizes(model)[0]
    vars(model).pop("_drawn_to_odd", None), vars(model).pop("_drawn_to_neighbours", None)
    with mock.patch.object(room, "weigh_draws", weigh), mock.patch.object(room, "SummedOut", Dense):
        estimator = model._weigh if room is dbm else model._weigh_mixture
        weighed = estimator(all_states(model.n_visible), np.arange(1), copies * 2**n_units, 0, 1)
    vars(model).pop("_drawn_to_odd", None), vars(model).pop("_drawn_to_neighbours", None)
    return drawn[0], np.exp(weighed[0])


def dbn_weights(model):
    """Probability and weight (visible state, outcome) of every outcome of a DBN's proposals."""
    if len(model.directed) == 1:
        return every_outcome(model, dbn, copies=4)  # once of four by recognition
    with mock.patch.object(dbn, "draw_given", recognition_outcomes(model)):
        log_weights, _ = model._weigh_recognition(
            all_states(model.n_visible), np.arange(0), 2 ** sum(recognition_sizes(model)), 0
        )
    return recognition_probability(model), np.exp(log_weights)


def weights_of(model):
    return every_outcome(model, dbm) if model in DBMS else dbn_weights(model)


@pytest.fixture
def sampled(monkeypatch):
    """Without adding up the states of tiny models."""
    for room in (dbm, dbn):
        monkeypatch.setattr(room, "ENUMERATED", 0)


@pytest.mark.parametrize("model", [*DBMS, *DBNS], ids=repr)
def test_the_estimate_is_unbiased(model) -> None:
    with in_double():
        probability, weights = weights_of(model)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=EXACT)
    np.testing.assert_allclose((probability * weights).sum(axis=1), f_visible(model), rtol=EXACT)


@pytest.mark.parametrize("model", [*DBMS, *DBNS], ids=repr)
def test_in_single_precision_it_is_as_unbiased_as_can_be(model) -> None:
    probability, weights = weights_of(model)
    np.testing.assert_allclose((probability * weights).sum(axis=1), f_visible(model), rtol=SINGLE)


@pytest.mark.parametrize("model", DBNS, ids=repr)
def test_the_bound_of_a_dbn_lies_below_in_expectation(model) -> None:
    probability, weights = dbn_weights(model)
    assert ((probability * np.log(weights)).sum(axis=1) < np.log(f_visible(model))).all()


def test_mutants_of_the_weights_are_rejected() -> None:
    probability, weights = every_outcome(DBMS[0], dbm)
    shuffled = probability[:, ::-1]  # drawn from one distribution, weighted with another's density
    assert np.abs((shuffled * weights).sum(axis=1) / f_visible(DBMS[0]) - 1).max() > 1e-3
    probability, weights = every_outcome(DBMS[0], dbm, linear_of=np.zeros_like)  # no density at all
    assert np.abs((probability * weights).sum(axis=1) / f_visible(DBMS[0]) - 1).max() > 1e-3


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("model", [*DBMS, *DBNS], ids=repr)
def test_log_f_is_near_the_truth(model) -> None:
    probability, weights = weights_of(model)
    expected, n = f_visible(model), 4000
    variance = (probability * weights**2).sum(axis=1) - expected**2
    estimate = model.log_f_estimate(model.decode(all_states(model.n_visible)), samples=n, seed=1)
    for k, value in enumerate(np.exp(estimate.values)):
        allowed = bernstein(n, variance[k], weights[k].max(), 1e-6 / expected.size)
        assert abs(value - expected[k]) < allowed


@given(
    sizes=st.lists(st.integers(1, 3), min_size=3, max_size=4),
    scale=st.floats(0.01, 6),
    seed=st.integers(0, 999),
)
@settings(max_examples=min(25, settings().max_examples), deadline=None)
def test_mean_field_rises_with_every_sweep_and_stays_below_f(sizes, scale, seed) -> None:
    model = models.dbm(seed, sizes, scale)
    x, log_f = all_states(model.n_visible), np.log(f_visible(model))
    bounds = [
        model.mrf.mean_field_bound(*model.mean_field(x, sweeps=k, tolerance=0), model.n_visible)
        for k in range(1, 9)
    ]
    assert (np.diff(bounds, axis=0) > -1e-12 * np.maximum(1, np.abs(log_f))).all()
    assert (bounds[-1] <= log_f + 1e-12 * np.maximum(1, np.abs(log_f))).all()


@pytest.mark.parametrize("model", DBMS, ids=repr)
def test_mean_field_is_a_fixed_point(model) -> None:
    x, two = all_states(model.n_visible), model.mrf
    even, odd = model.mean_field(x, sweeps=5000, tolerance=1e-13)
    np.testing.assert_array_equal(even[:, : model.n_visible], x)
    np.testing.assert_allclose(odd, two.odd_given_even(even), atol=1e-12)
    np.testing.assert_allclose(
        even[:, model.n_visible :], two.even_given_odd(odd)[:, model.n_visible :], atol=1e-11
    )


@pytest.mark.parametrize("model", [*DBMS, *DBNS[::2][:1], models.dbm(36, [3, 2, 4, 1])], ids=repr)
def test_few_states_are_added_up(model) -> None:
    x = model.decode(all_states(model.n_visible))
    estimate = model.log_f_estimate(x)
    assert estimate.is_exact
    np.testing.assert_allclose(np.exp(estimate.values), f_visible(model), rtol=1e-12)


def test_one_hidden_layer_needs_no_estimate() -> None:
    model = models.dbm(34, [4, 5])
    estimate = model.log_f_estimate(all_states(4))
    np.testing.assert_allclose(np.exp(estimate.values), f_visible(model), rtol=1e-12)
    np.testing.assert_array_equal(estimate.values, estimate.bound)
    assert (estimate.stderrs == 0).all()


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("model", [DBMS[0], DBNS[0], DBNS[1]], ids=repr)
def test_an_examples_estimate_depends_on_its_place_and_seed_alone(model, monkeypatch) -> None:
    x = all_states(model.n_visible)
    whole = model.log_f(x, samples=50, seed=3)
    calls = []
    blocks = functools.partial(estimate_log_f, block=1)  # one example at a time
    with monkeypatch.context() as patch:
        for room in (dbm, dbn):
            patch.setattr(room, "estimate_log_f", lambda *a, block=1, **k: blocks(*a, **k))
        again = model.log_f_estimate(
            x, samples=50, seed=3, progress=lambda *told: calls.append(told[1:])
        ).values
    np.testing.assert_allclose(again, whole, rtol=1e-12)  # matrix products of other shapes round otherwise
    assert calls == [(k + 1, len(x)) for k in range(len(x))]
    np.testing.assert_allclose(model.log_f(x[:2], samples=50, seed=3), whole[:2], rtol=1e-12)
    assert (model.log_f(x, samples=50, seed=4) != whole).any()


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(threads) -> None:
    for model in (DBMS[0], DBNS[0]):
        x = model.decode(all_states(model.n_visible))
        one, more = (model.log_f_estimate(x, samples=50, threads=n).values for n in (1, threads))
        np.testing.assert_array_equal(one, more)


@pytest.mark.parametrize("samples", [0, -1, 2.5, True, "many"])
@pytest.mark.parametrize("model", [DBMS[0], DBNS[0]], ids=repr)
def test_bad_number_of_samples(model, samples) -> None:
    with pytest.raises(InputError, match=f"found samples={samples!r}, expected a whole number from 1 on"):
        model.log_f([[0] * model.n_visible], samples=samples)


class Lattice:
    """A generator that gives the smallest uniform its type can tell from zero."""

    def random(self, size, dtype=np.float64):
        return np.full(size, 2.0**-24 if dtype == np.float32 else 2.0**-53, dtype)


def test_units_are_drawn_as_rarely_as_their_rates_say() -> None:
    # With 24 bits a unit of rate 1e-12 would come up with probability 6e-8, weighted by 1 / 1e-12.
    generators: Any = [Lattice()]
    rates = np.array([[[1e-12]]])
    assert draw_given(generators, rates).all()


@given(st.lists(st.tuples(st.booleans(), st.floats(-700, 700)), min_size=1, max_size=8))
def test_log_bernoulli_is_the_log_of_a_product(units) -> None:
    bits, inputs = np.array([b for b, _ in units]), np.array([t for _, t in units])
    expected = sum(-np.logaddexp(0, -t if on else t) for on, t in units)
    assert log_bernoulli(bits, inputs) == pytest.approx(expected, rel=1e-12, abs=1e-11)
    assert log_bernoulli(~bits, -inputs) == pytest.approx(expected, rel=1e-12, abs=1e-11)
