"""Base distributions: rates become biases, layer by layer, for the model they are meant for."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import meltpoint as mp
from meltpoint.annealing.base import Base, uniform
from meltpoint.errors import InputError
from meltpoint.estimators.base_rates import data_rates, model_rates, resolve_base
from meltpoint.models.rbm import RBM
from meltpoint.runs.run import Run
from oracle.driving import models
from oracle.driving.truth import oracle_path
from oracle.tables import all_states, marginal


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 20), st.integers(1, 6)), elements=st.integers(0, 1)))
def test_data_rates_are_smoothed_by_one_example_on_and_one_off(train) -> None:
    (bias,) = data_rates(train).biases
    np.testing.assert_allclose(
        1 / (1 + np.exp(-bias)), (train.sum(axis=0) + 1) / (len(train) + 2), rtol=1e-12
    )


def test_data_rates_of_a_dbn_are_those_of_its_recognition() -> None:
    model, train = models.dbn(51, [3, 2, 4, 2]), all_states(3)
    (bias,) = data_rates(train, model).biases
    expected = (model.recognise(train).sum(axis=0) + 1) / (len(train) + 2)
    np.testing.assert_allclose(1 / (1 + np.exp(-bias)), expected, rtol=1e-12)
    model.path(data_rates(train, model))


@pytest.mark.parametrize("model", [models.rbm(52, 3, 2), models.dbm(52, [3, 2, 2])], ids=repr)
def test_data_rates_do_not_depend_on_an_undirected_model(model) -> None:
    np.testing.assert_array_equal(data_rates(all_states(3), model).biases, data_rates(all_states(3)).biases)


def test_biases_go_to_their_side() -> None:
    model = models.dbm(53, [3, 2, 2, 1])
    biases = tuple(np.arange(10 * k, 10 * k + n, dtype=float) for k, n in enumerate([3, 2, 2, 1]))
    even, odd = model.path(Base("test", biases)).base
    assert even.tolist() == [0, 1, 2, 20, 21]
    assert odd.tolist() == [10, 11, 30]
    even, odd = model.path(Base("test", biases[:1])).base
    assert even.tolist() == [0, 1, 2, 0, 0]
    assert odd.tolist() == [0, 0, 0]
    assert not model.path(uniform()).base[0].any()


@pytest.mark.parametrize("model", [models.rbm(54, 3, 3, 1.0), models.dbm(54, [3, 2, 2], 1.0)], ids=repr)
def test_model_rates_are_near_the_models_own(model) -> None:
    base = model_rates(model, seed=1, threads=1)
    (bias,) = base.biases
    path = oracle_path(model, uniform())
    exact = marginal(path.p(1.0), path.visible) @ all_states(3)
    # Hoeffding for the mean of 256 numbers in [0, 1], false alarms once in a million.
    assert np.abs(1 / (1 + np.exp(-bias)) - exact).max() < np.sqrt(np.log(2 * 3 / 1e-6) / (2 * 256))
    np.testing.assert_array_equal(model_rates(model, seed=1, threads=2).biases, base.biases)
    assert (model_rates(model, seed=2, threads=1).biases[0] != bias).any()


def test_model_rates_of_units_that_are_never_on_stay_finite() -> None:
    (bias,) = model_rates(RBM(np.zeros((2, 2)), [-50.0, 50.0], [0, 0]), threads=1).biases
    assert np.isfinite(bias).all()
    assert bias[0] < -9
    assert bias[1] > 9


def test_model_rates_of_a_dbn_are_for_its_top() -> None:
    model = models.dbn(55, [5, 3, 2])
    assert [b.size for b in model_rates(model, threads=1).biases] == [3]


BAD_TRAIN = {
    "a vector": (np.zeros(4), None, r"train of shape \(4,\), expected \(examples, pixels\)"),
    "nothing": (np.zeros((0, 4)), None, r"train of shape \(0, 4\)"),
    "grey": (np.full((2, 3), 0.5), None, "train with values from 0.5 to 0.5, .* binarise"),
    "too wide for the model": (np.zeros((2, 4)), models.rbm(0, 3, 2), "train with 4 columns, expected 3"),
    "too wide for a DBN": (np.zeros((2, 4)), models.dbn(0, [3, 2, 2]), "train with 4 columns, expected 3"),
}


@pytest.mark.parametrize("case", BAD_TRAIN)
def test_bad_training_data(case) -> None:
    train, model, message = BAD_TRAIN[case]
    with pytest.raises(InputError, match=message):
        data_rates(train, model)


def test_a_base_for_another_model() -> None:
    rbm, dbn = models.rbm(0, 3, 2), models.dbn(0, [4, 3, 2])
    with pytest.raises(
        InputError, match="base rates for 5 units, expected 3, the size of layer 0 of RBM 3-2: take"
    ):
        rbm.path(Base("data", (np.zeros(5),)))
    with pytest.raises(InputError, match=r"base rates for 4 units, .* data_rates\(train, model\)"):
        dbn.path(Base("data", (np.zeros(4),)))
    with pytest.raises(InputError, match="a base with 3 layers, expected at most 2"):
        rbm.path(Base("data", (np.zeros(3), np.zeros(2), np.zeros(1))))


def test_data_rates_of_spins_are_those_of_their_bits() -> None:
    train = all_states(3)[[0, 1, 1, 5]]
    model = models.rbm(56, 3, 2, units=("spin", "spin"))
    (bias,) = data_rates(model.decode(train), model).biases
    np.testing.assert_allclose(2 * bias, data_rates(train).biases[0], rtol=1e-12)
    np.testing.assert_allclose(model.path(Base("data", (bias,))).base[0], 2 * bias)
    with pytest.raises(InputError, match=r"values -1 and \+1 and no model.*data_rates\(train, model\)"):
        data_rates(model.decode(train))


@pytest.mark.parametrize("model", [models.rbm(57, 3, 2), models.dbn(57, [4, 3, 2])], ids=repr)
def test_a_base_by_its_name(model) -> None:
    train = all_states(model.n_visible)[:5]
    assert resolve_base(None, model, Run(1)).name == resolve_base("uniform", model, Run(1)).name == "uniform"
    np.testing.assert_array_equal(
        resolve_base("model", model, Run(1), seed=3).biases[0], model_rates(model, seed=3).biases[0]
    )
    np.testing.assert_array_equal(
        resolve_base("data", model, Run(1), train=train).biases[0], data_rates(train, model).biases[0]
    )
    own = Base("own", (np.zeros(3),))
    assert resolve_base(own, model, Run(1)) is own


ESTIMATES = [
    mp.ais_log_z,
    partial(mp.raise_log_prob, x=[[0, 1, 1]]),
    partial(mp.sample_annealing_model, n=2),
]


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_estimators_take_the_name_of_a_base(estimate) -> None:
    model = models.rbm(58, 3, 2)
    bases = "model", mp.model_rates(model, seed=2)
    by_name, by_object = (estimate(model, base=base, steps=5, seed=2) for base in bases)
    np.testing.assert_array_equal(
        getattr(by_name, "log_weights", by_name), getattr(by_object, "log_weights", by_object)
    )
    with pytest.raises(InputError, match=r"base='data' and no training data.*mp.data_rates\(train, model\)"):
        estimate(model, base="data")
    with pytest.raises(InputError, match="base='unifrom'"):
        estimate(model, base="unifrom")
