"""Training from the outside: what is learned, what is refused, what is told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlog1py, xlogy

from meltpoint.datasets import load
from meltpoint.errors import InputError
from meltpoint.estimators.exact import exact_log_z
from meltpoint.models.dbn import DBN
from meltpoint.training.examples import check_examples
from meltpoint.training.loop import Stage, TrainingRun
from meltpoint.training.phases import Architecture, data_phase, random_stream, trainable_dbm
from meltpoint.training.settings import TrainingSettings
from meltpoint.training.stage import StagePlan
from meltpoint.training.train import compose_layers, train_dbm, train_dbn, train_rbm
from oracle.derivatives import random_parameters, visible_log_probabilities
from oracle.tables import all_states

STRIPES = np.repeat([[0, 0, 1, 1, 0, 1], [1, 1, 0, 0, 1, 0]], 100, axis=0).astype(np.uint8)


def divergence(log_p, parameters) -> float:
    """From the distribution log_p (visible state,) to a layered model's."""
    return float(np.exp(log_p) @ (log_p - visible_log_probabilities(parameters)))


def examples_of(sizes, n) -> tuple[np.ndarray, np.ndarray]:
    """Visible states drawn from a random dbm, and its distribution (visible state,)."""
    parameters = random_parameters(sizes, seed=1, scale=3.0)
    weights, biases = parameters[: len(sizes) - 1], parameters[len(sizes) - 1 :]
    for bias in biases:
        bias[:] = 0
    for k, coupling in enumerate(weights):  # every unit is on half of the time, and strongly coupled
        biases[k] -= coupling.sum(axis=1) / 2
        biases[k + 1] -= coupling.sum(axis=0) / 2
    log_p = visible_log_probabilities(parameters)
    drawn = np.random.default_rng(0).choice(log_p.size, n, p=np.exp(log_p))
    return all_states(sizes[0])[drawn], log_p


def rbm_parameters(rbm):
    return [rbm.weights, rbm.visible_bias, rbm.hidden_bias]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cd", "pcd"])
@pytest.mark.parametrize("centred", [False, True])
def test_an_rbm_learns_the_distribution_of_an_rbm(method, centred):
    data, log_p = examples_of([6, 3], 2000)
    start = train_rbm(data, 3, learning_rate=0.0, epochs=1)
    rbm = train_rbm(
        data, 3, method=method, k=3, centred=centred, epochs=100, learning_rate=1.0, weight_decay=0.0
    )
    assert divergence(log_p, rbm_parameters(start)) > 0.2
    assert divergence(log_p, rbm_parameters(rbm)) < 0.04


@pytest.mark.slow
def test_a_dbm_learns_the_distribution_of_a_dbm():
    data, log_p = examples_of([6, 3, 2], 2000)
    dbm = train_dbm(data, (3, 2), k=2, epochs=[10, 10, 150], learning_rate=0.3, weight_decay=0.0)
    assert divergence(log_p, [*dbm.weights, *dbm.biases]) < 0.04


@pytest.mark.slow
def test_a_dbn_generates_the_two_patterns():
    dbn = train_dbn(STRIPES, (4, 3), epochs=200, batch=20, weight_decay=0.0)
    assert isinstance(dbn, DBN)
    top = visible_log_probabilities(rbm_parameters(dbn.top))
    rng = np.random.default_rng(0)
    chosen = rng.choice(top.size, 5000, p=np.exp(top))
    upper = (chosen[:, np.newaxis] >> np.arange(4)[::-1] & 1).astype(np.uint8)
    drawn = dbn.generate(upper, rng)
    assert (drawn[:, np.newaxis] == STRIPES[[0, -1]]).all(axis=2).any(axis=1).mean() > 0.8


@pytest.mark.slow
def test_defaults_learn_digits():
    digits = load("digits")
    rbm = train_rbm(digits.train, 10, epochs=100)
    rates = (digits.train.sum(axis=0) + 1) / (len(digits.train) + 2)
    independent = (xlogy(digits.test, rates) + xlog1py(1 - digits.test, -rates)).sum(axis=1).mean()
    assert rbm.log_f(digits.test).mean() - exact_log_z(rbm) > independent + 2


options = st.fixed_dictionaries(
    {},
    optional={
        "method": st.sampled_from(["cd", "pcd"]),
        "k": st.integers(1, 3),
        "batch": st.integers(1, 300),
        "learning_rate": st.floats(0, 0.5),
        "schedule": st.sampled_from(["linear", "constant"]),
        "momentum": st.floats(0, 0.9),
        "weight_decay": st.floats(0, 0.1),
        "averaged": st.floats(0, 1),
        "centred": st.booleans(),
        "seed": st.integers(0, 2**40),
    },
)


@given(options, st.integers(1, 70), st.booleans())
@settings(deadline=None, max_examples=min(30, settings().max_examples))
def test_any_allowed_choice_gives_a_finite_model_that_its_seed_determines(chosen, hidden, grey):
    data = STRIPES[::10] * np.float64(0.5) if grey else STRIPES[::10]
    first, again = (train_rbm(data, hidden, epochs=2, **chosen) for _ in range(2))
    assert first.weights.shape == (6, hidden)
    assert np.isfinite(first.weights).all()
    np.testing.assert_array_equal(first.weights, again.weights)


@given(options)
@settings(deadline=None, max_examples=10)
def test_any_allowed_choice_trains_deep_models(chosen):
    assert train_dbm(STRIPES[::20], (3, 2, 2), epochs=1, **chosen).layer_sizes == (6, 3, 2, 2)
    assert train_dbn(STRIPES[::20], (3, 2, 2), epochs=1, **chosen).layer_sizes == (6, 3, 2, 2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hidden": 0}, "hidden"),
        ({"hidden": 2.5}, "hidden"),
        ({"method": "sgd"}, "'cd' or 'pcd'"),
        ({"schedule": "cosine"}, "'linear' or 'constant'"),
        ({"k": 0}, "k=0"),
        ({"epochs": -1}, "epochs"),
        ({"batch": True}, "batch"),
        ({"learning_rate": -0.1}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"momentum": 1.0}, "momentum"),
        ({"averaged": 1.5}, "averaged"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"centred": "maybe"}, "centred"),
        ({"method": "cd", "chains": 10}, "leave chains out"),
        ({"seed": -1}, "seed"),
        ({"validation": STRIPES[:, :3]}, "label column"),
    ],
)
def test_wrong_choices_are_refused_with_a_remedy(wrong, message):
    with pytest.raises(InputError, match=message):
        train_rbm(STRIPES, **({"hidden": 2} | wrong))


def test_a_diverging_run_says_so():
    with pytest.raises(InputError, match="lower the learning rate"), np.errstate(all="ignore"):
        train_rbm(
            STRIPES, 2, learning_rate=10.0, weight_decay=1.0, momentum=0.999, epochs=500, schedule="constant"
        )


def test_recognition_doubles_where_the_machine_was_trained_doubled():
    weights = np.array([[3.0]], np.float32)
    zero = np.zeros(1, np.float32)
    for copies, expected in (((1, 1), 1 / (1 + np.exp(-3))), ((2, 1), 1 / (1 + np.exp(-6)))):
        plan = StagePlan(1, "above", Architecture((1, 1), (1, 1)), TrainingSettings(), 1)
        run = TrainingRun(check_examples([[1]], "data"), None, (plan,), 0, None, None, None)
        stage = Stage(run, plan, below=(trainable_dbm([weights, zero, zero], copies),))
        drawn = stage.lowest_layer(np.ones((40_000, 1), np.uint8), random_stream(0))
        assert abs(drawn.mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / 40_000)


def test_composing_keeps_the_total_input_of_a_middle_layer():
    # In the doubled machines h1 receives 2 W1 v + b or 2 W2 h2 + c; compose_layers, the half of both.
    rng = np.random.default_rng(0)
    low = trainable_dbm([rng.normal(size=s).astype(np.float32) for s in ((4, 3), (4,), (3,))], (2, 1))
    high = trainable_dbm([rng.normal(size=s).astype(np.float32) for s in ((3, 2), (3,), (2,))], (1, 2))
    dbm = compose_layers([low, high])
    visible, top = np.ones((1, 4), np.uint8), np.ones((1, 2), np.uint8)
    from_low = np.log(1 / low.probabilities(1, [2 * visible]) - 1)
    from_high = np.log(1 / high.probabilities(0, [visible, 2 * top]) - 1)
    both = np.log(1 / dbm.probabilities(1, [visible, visible[:, :3], top]) - 1)
    np.testing.assert_allclose(both, (from_low + from_high) / 2, rtol=1e-4)
    assert data_phase(dbm, visible, 1)[2].shape == (1, 2)


def test_progress_and_epochs_are_told():
    calls, epochs = [], []
    train_rbm(
        STRIPES,
        2,
        epochs=5,
        batch=50,
        validation=STRIPES[::7],
        progress=lambda *call: calls.append(call),
        on_epoch=epochs.append,
    )
    assert [round(done, 6) for _, done, _ in calls] == [round(0.25 * i, 6) for i in range(1, 21)]
    assert {(what, total) for what, _, total in calls} == {("training", 5)}
    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4, 5]
    assert all(epoch.of == 5 and epoch.gap is not None and epoch.seconds > 0 for epoch in epochs)
    assert [epoch.bracket is not None for epoch in epochs] == [False] * 4 + [True]
    bracket = epochs[-1].bracket
    assert abs(bracket.optimistic - bracket.conservative) < 0.5


def test_telling_does_not_change_what_is_learned():
    quiet = train_rbm(STRIPES, 2, epochs=2)
    watched = train_rbm(STRIPES, 2, epochs=2, validation=STRIPES, on_epoch=lambda _: None)
    np.testing.assert_array_equal(quiet.weights, watched.weights)


@pytest.mark.slow
def test_the_gap_shows_learning_by_heart():
    rng = np.random.default_rng(1)
    noise, other = (rng.random((2, 30, 40)) < 0.5).astype(np.uint8)
    epochs = []
    train_rbm(noise, 60, epochs=100, batch=3, validation=other, on_epoch=epochs.append, weight_decay=0.0)
    assert abs(epochs[0].gap) < 2
    assert epochs[-1].gap > 5
