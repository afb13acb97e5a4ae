"""Enumeration equals the sum over the joint state, closed forms, and itself on any number of threads."""

import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from contract.three_blocks import three_blocks
from meltpoint.errors import InputError
from meltpoint.estimators import exact
from meltpoint.estimators.exact import exact_log_z
from meltpoint.kernels.compiling import check_threads
from meltpoint.layers.gaussian import Gaussian
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from meltpoint.statistics.elementary import softplus
from oracle import zoo
from oracle.tables import Layers, all_states

sizes = st.integers(1, 8)
seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([0.0, 1e-3, 1.0, 30.0, 150.0, 1000.0, 1e5])


def test_real_states_are_not_enumerated():
    model = three_blocks("visible", "bernoulli")
    reals = replace(model, triangle=replace(model.triangle, unit=Gaussian()))
    assert (model.mrf.smaller_side, reals.mrf.smaller_side) == (3, np.inf)
    with pytest.raises(InputError, match="whose states are real numbers"):
        exact_log_z(reals)


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-12, abs=1e-12)


def by_joint_states(layers: Layers) -> float:
    return float(logsumexp(layers.log_f()))


def rbm_of(layers: Layers) -> RBM:
    return RBM(layers.weights[0], *layers.biases)


def random_rbm(n_visible: int, n_hidden: int, scale: float, seed: int = 0) -> RBM:
    return rbm_of(zoo.layers(np.random.default_rng(seed), [n_visible, n_hidden], scale))


@given(n_visible=sizes, n_hidden=sizes, scale=scales, seed=seeds)
def test_equals_the_sum_over_the_joint_state(n_visible, n_hidden, scale, seed) -> None:
    layers = zoo.layers(np.random.default_rng(seed), [n_visible, n_hidden], scale)
    assert exact_log_z(rbm_of(layers), threads=1) == close(by_joint_states(layers))


@given(n_layers=st.integers(2, 5), scale=scales, data=st.data(), seed=seeds)
def test_deep_machines_equal_the_sum_over_the_joint_state(n_layers, scale, data, seed) -> None:
    widths = data.draw(st.lists(st.integers(1, 3), min_size=n_layers, max_size=n_layers))
    layers = zoo.layers(np.random.default_rng(seed), widths, scale)
    assert exact_log_z(DBM(layers.weights, layers.biases), threads=1) == close(by_joint_states(layers))


def test_three_hidden_layers() -> None:
    layers = zoo.layers(np.random.default_rng(3), [5, 3, 4, 4], 2.0)
    assert exact_log_z(DBM(layers.weights, layers.biases)) == close(by_joint_states(layers))


def test_a_dbn_has_the_normaliser_of_its_top() -> None:
    layers = zoo.layers(np.random.default_rng(4), [6, 5, 4], 2.0)
    top = RBM(layers.weights[1], layers.biases[1], layers.biases[2])
    dbn = DBN([(layers.weights[0], layers.biases[0], np.zeros(5))], top)
    assert exact_log_z(dbn) == close(by_joint_states(Layers(layers.weights[1:], layers.biases[1:])))


@pytest.mark.parametrize("scale", [0.3, 3.0, 60.0, 200.0, 1000.0])
@pytest.mark.parametrize("shape", [(13, 40), (40, 13)], ids=str)
def test_many_blocks(shape, scale) -> None:
    model = random_rbm(*shape, scale)
    two, states = model.mrf, all_states(13)
    if shape[0] == 13:
        log_f = two.log_f(states)
    else:
        log_f = states @ two.odd_bias + softplus(two.even_field(states) + two.even_bias).sum(axis=1)
    assert exact_log_z(model) == close(float(logsumexp(log_f)))


@pytest.mark.parametrize("strong", [0.0, 5.0, 900.0])
def test_many_blocks_against_a_closed_form(strong) -> None:
    """Units in pairs: Z is the product of the pairs' own sums, whatever the blocks are."""
    n = 18
    rng = np.random.default_rng(5)
    pair, a, b = strong * rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal(n)
    weights = np.zeros((n + 30, n))
    weights[np.arange(n), np.arange(n)] = pair
    alone = rng.standard_normal(30)
    pairs = logsumexp([np.zeros(n), a, b, a + b + pair], axis=0)
    model = RBM(weights, np.concatenate([a, alone]), b)
    assert exact_log_z(model) == close(float(pairs.sum() + softplus(alone).sum()))


@pytest.mark.parametrize("scale", [0.0, 0.5, 50.0])
def test_products_over_many_units_stay_in_range(scale) -> None:
    model = random_rbm(4000, 3, scale)
    states = all_states(3)
    log_f = states @ model.hidden_bias + softplus(states @ model.weights.T + model.visible_bias).sum(axis=1)
    assert exact_log_z(model) == close(float(logsumexp(log_f)))


@pytest.mark.parametrize("field", [1000.0, -1000.0, 720.0, -720.0])
def test_saturated_units(field) -> None:
    """Fields far outside the range of exp, pulled back by half by weights inside a block."""
    layers = Layers((np.full((3, 2), -field / 4),), (np.full(3, field), np.zeros(2)))
    assert exact_log_z(rbm_of(layers)) == close(by_joint_states(layers))


def test_threads_do_not_matter(monkeypatch) -> None:
    model = random_rbm(20, 15, 1.0)
    alone = exact_log_z(model, threads=1)
    monkeypatch.setattr(exact, "_CALL_WORK", 1)
    assert [exact_log_z(model, threads=n) for n in (1, 2, 5)] == [alone] * 3


def test_progress_ends_complete(monkeypatch) -> None:
    monkeypatch.setattr(exact, "_CALL_WORK", 1)
    seen = []
    exact_log_z(random_rbm(15, 15, 1.0), progress=lambda *told: seen.append(told))
    assert [done for task, done, _ in seen if task == "enumeration"] == list(range(1, 17))
    assert all(total == 16 for task, _, total in seen if task == "enumeration")


@pytest.mark.slow
def test_ctrl_c_stops_at_once() -> None:
    def interrupt(task: str, _done: float, _total: float) -> None:
        if task == "enumeration":
            signal.raise_signal(signal.SIGINT)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        exact_log_z(random_rbm(784, 30, 0.3), progress=interrupt)  # all of it would take a minute
    assert time.monotonic() - started < 15


@pytest.mark.parametrize(
    "model",
    [
        RBM(np.ones((31, 40)), np.zeros(31), np.zeros(40)),
        DBM([np.ones((30, 31)), np.ones((31, 1))], [np.zeros(30), np.zeros(31), np.zeros(1)]),
    ],
    ids=repr,
)
def test_too_many_units(model) -> None:
    with pytest.raises(
        InputError, match=r"31 units on the smaller side.*width 3\d.*at most 30.*ais_log_z.*evaluate"
    ):
        exact_log_z(model)


def test_sparse_models_of_any_size_are_eliminated() -> None:
    """A ring of 400 units, visible and hidden ones in turn: nothing could be enumerated."""
    n = 200
    rng = np.random.default_rng(6)
    weights = np.zeros((n, n))
    weights[np.arange(n), np.arange(n)] = rng.standard_normal(n)
    weights[np.arange(1, n), np.arange(n - 1)] = rng.standard_normal(n - 1)
    weights[0, -1] = 0.7
    a, b = rng.standard_normal(n), rng.standard_normal(n)
    bits = np.array([0.0, 1.0])
    transfer = np.eye(2)
    log_scale = 0.0
    for i in range(n):
        to_hidden = np.exp(np.add.outer(a[i] * bits, b[i] * bits) + weights[i, i] * np.outer(bits, bits))
        to_visible = np.exp(weights[(i + 1) % n, i] * np.outer(bits, bits))
        transfer = transfer @ to_hidden @ to_visible
        log_scale += np.log(transfer.sum())
        transfer /= transfer.sum()
    assert exact_log_z(RBM(weights, a, b)) == close(log_scale + np.log(np.trace(transfer)))


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_threads_are_checked(threads) -> None:
    with pytest.raises(InputError, match="threads"):
        exact_log_z(random_rbm(2, 2, 1.0), threads=threads)


@pytest.mark.slow
@pytest.mark.usefixtures("all_cores")
@pytest.mark.parametrize(("n_hidden", "seconds"), [(20, 2.0), (25, 60.0)])
def test_as_fast_as_promised(n_hidden, seconds) -> None:
    if check_threads(None) < 2:
        pytest.skip("the promise is for two cores")
    exact_log_z(random_rbm(2, 2, 1.0))  # compiles
    model = random_rbm(784, n_hidden, 0.3)
    times = []
    for _ in range(3):
        started = time.perf_counter()
        exact_log_z(model)
        times.append(time.perf_counter() - started)
        if min(times) <= seconds:
            return
    pytest.fail(f"{min(times):.2f} s for 784 x {n_hidden}, promised are {seconds:g} s")
