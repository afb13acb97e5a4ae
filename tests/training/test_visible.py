"""Training of RBMs with spins, Potts and Gaussian visible units: gradients, draws, the model that comes out."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import meltpoint as mp
from meltpoint.layers import Bernoulli, Potts, Unit
from meltpoint.training.examples import check_examples
from meltpoint.training.phases import (
    Architecture,
    data_phase,
    gradient,
    initial_dbm,
    log_f_bound,
    random_stream,
    trainable_dbm,
)

KINDS = ["bernoulli", "spin", "potts", "gaussian"]


def examples_of(kind, n=400, width=4, seed=0):
    """Examples (example, unit) whose first two units go together."""
    rng = np.random.default_rng(seed)
    if kind == "gaussian":
        x = rng.normal(1, 2, (n, width))
        x[:, 1] = x[:, 0] + rng.normal(0, 0.5, n)
        return x
    x = rng.integers(0, 3 if kind == "potts" else 2, (n, width))
    x[:, 1] = np.where(rng.random(n) < 0.9, x[:, 0], x[:, 1])
    return 2 * x - 1 if kind == "spin" else x


def random_dbm(examples, n_hidden=3, seed=0):
    rng = np.random.default_rng(seed)
    architecture = Architecture((examples.width, n_hidden), (1, 1), examples.visible)
    start = initial_dbm(architecture, examples.visible.initial_bias(examples.rows), rng)
    drawn = [(p + rng.normal(0, 0.3, p.shape)).astype(np.float32) for p in start.parameters]
    return trainable_dbm(drawn, (1, 1), examples.visible)


def trained(dbm):
    return mp.RBM(**dbm.visible.rbm_arguments(*dbm.parameters))


@pytest.mark.parametrize("kind", KINDS)
def test_log_f_of_the_layer_is_that_of_the_model(kind) -> None:
    """Up to a constant, which the model's own terms have."""
    x = examples_of(kind, 20)
    examples = check_examples(x, "data", kind)
    dbm = random_dbm(examples)
    states = data_phase(dbm, examples.layer(slice(None), random_stream(0)), 0)
    difference = log_f_bound(dbm, states) - trained(dbm).log_f(x)
    np.testing.assert_allclose(difference, difference[0], atol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_means_of_the_model(kind) -> None:
    """Means of 40,000 draws, 6 standard errors: a false alarm in 5e8 for each number."""
    n = 40_000
    examples = check_examples(examples_of(kind), "data", kind)
    dbm = random_dbm(examples)
    hidden = np.tile(np.array([1, 0, 1], np.uint8), (n, 1))
    means = dbm.probabilities(0, [hidden, hidden])
    drawn = np.asarray(dbm.draw_layer(0, means, random_stream(1)), np.float64)
    error = drawn.std(axis=0) / np.sqrt(n)
    assert (np.abs(drawn.mean(axis=0) - means[0]) < 6 * error + 1e-6).all()
    assert (np.abs(np.roll(drawn.mean(axis=0), 1) - means[0]) > 6 * error).any()
    expected = trained(dbm).visible_given_hidden(hidden[:1]).ravel()
    if kind == "gaussian":
        expected = (expected - dbm.visible.centre) / dbm.visible.deviation
        np.testing.assert_allclose(drawn.var(axis=0), np.exp(-dbm.further[0]), rtol=0.05)
    np.testing.assert_allclose(means[0], expected, rtol=1e-4, atol=1e-5)
    if kind == "potts":
        np.testing.assert_array_equal(drawn.reshape(n, -1, 3).sum(axis=2), 1)


def test_the_gradient_of_potts_units_is_that_of_the_likelihood() -> None:
    """Model averages by enumeration, differences of the exact log likelihood in between."""
    x = examples_of("potts", 30, 2)
    examples = check_examples(x, "data", "potts")
    dbm = random_dbm(examples, 2)
    states = np.array(list(itertools.product(range(3), repeat=2)))
    every = check_examples(states, "all", like=examples).layer(slice(None), random_stream(0))

    def rbm(parameters):
        return mp.RBM(**dbm.visible.rbm_arguments(*parameters))

    p = softmax(rbm(dbm.parameters).log_f(states))
    n = 20_000  # copies in proportion to their probability
    model = data_phase(dbm, np.repeat(every, np.rint(n * p).astype(int), axis=0), 0)
    data = data_phase(dbm, examples.layer(slice(None), random_stream(0)), 0)
    slopes = gradient(data, model, np.dtype(np.float64))

    def log_likelihood(parameters):
        model = rbm(parameters)
        return model.log_f(x).mean() - logsumexp(model.log_f(states))

    for k, slope in enumerate((*slopes.pairs, *slopes.units)):
        for index in list(np.ndindex(slope.shape))[:4]:
            ends = []
            for step in (1e-3, -1e-3):
                changed = [np.array(p, np.float64) for p in dbm.parameters]
                changed[k][index] += step
                ends.append(log_likelihood(changed))
            assert slope[index] == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=1e-3)


def test_the_gradient_of_a_gaussian_precision_is_that_of_the_likelihood() -> None:
    """The model's average of x² by integration over one unit."""
    examples = check_examples(examples_of("gaussian", 50, 1 + 1)[:, :1], "data", "gaussian")
    dbm = random_dbm(examples, 2)
    grid = np.linspace(-12, 12, 4001)[:, np.newaxis]
    layer = examples.layer(slice(None), random_stream(0)).astype(np.float64)

    def log_f(x, log_precision):
        parts = (*dbm.parameters[:3], np.array([log_precision]))
        other = trainable_dbm([np.array(p, np.float64) for p in parts], (1, 1), dbm.visible)
        field = x @ other.couplings[0].weights + other.biases[1]
        own = x[:, 0] * other.biases[0] - np.exp(log_precision) * x[:, 0] ** 2 / 2
        return own + np.logaddexp(0, field).sum(axis=1)

    def log_likelihood(log_precision):
        return log_f(layer, log_precision).mean() - logsumexp(log_f(grid, log_precision))

    at = float(dbm.further[0][0])
    p = softmax(log_f(grid, at))
    square = np.sqrt(p @ grid[:, 0] ** 2)
    (slope,) = dbm.visible.further_slopes(layer, np.array([[square]]), dbm.further)
    expected = (log_likelihood(at + 1e-4) - log_likelihood(at - 1e-4)) / 2e-4
    assert slope[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cd", "pcd"])
@pytest.mark.parametrize("kind", KINDS[1:])
def test_training_learns_what_goes_together(kind, method, tmp_path) -> None:
    """Better than the independent model by most of the information that the first two units share."""
    train, test = examples_of(kind, 600), examples_of(kind, 200, seed=1)
    model = mp.train_rbm(
        train, hidden=4, visible=kind, method=method, epochs=200, batch=20, checkpoint=tmp_path / "run.npz"
    )
    assert model.visible.name == kind
    base = mp.data_rates(train, model)
    unit = model.units[0]
    bias = base.biases[0]
    independent = (
        (unit.log_weight(unit.encode(test, "x"), bias) - unit.log_partition(bias)).sum(axis=1).mean()
    )
    learned = model.log_f(test).mean() - mp.exact_log_z(model)
    assert learned > independent + 0.2
    again = mp.train_rbm(
        train, hidden=4, visible=kind, method=method, epochs=200, batch=20, checkpoint=tmp_path / "run.npz"
    )
    np.testing.assert_array_equal(again.weights, model.weights)


def test_potts_states_are_those_of_the_data_or_as_many_as_are_asked_for() -> None:
    x = examples_of("potts", 20)
    assert mp.train_rbm(x, 2, visible="potts", epochs=1).visible == Potts(3)
    assert mp.train_rbm(x, 2, visible=Potts(5), epochs=1).weights.shape == (4, 5, 2)
    with pytest.raises(mp.InputError, match="validation with values from 0 to 3"):
        mp.train_rbm(x, 2, visible="potts", epochs=1, validation=np.full((3, 4), 3) * [1, 0, 0, 0])
    with pytest.raises(mp.InputError, match="at most 256 states"):
        mp.train_rbm(x * 200, 2, visible="potts", epochs=1)
    with pytest.raises(mp.InputError, match="expected only -1 and"):
        mp.train_rbm(x, 2, visible="spin", epochs=1)


def test_a_kind_of_unit_that_cannot_be_trained_is_refused() -> None:
    class Frozen(Bernoulli):
        fitted = Unit.fitted

    with pytest.raises(mp.InputError, match="units that can be trained"):
        mp.train_rbm(examples_of("bernoulli"), 2, visible=Frozen(), epochs=1)
    with pytest.raises(mp.InputError, match=r"'ternary'.*'potts' or 'gaussian'"):
        mp.train_rbm(examples_of("bernoulli"), 2, visible="ternary", epochs=1)


@pytest.mark.slow
def test_epochs_are_described_in_the_models_own_terms() -> None:
    for kind in KINDS[1:]:
        found = []
        x = examples_of(kind, 60)
        mp.train_rbm(x[:40], 2, visible=kind, epochs=5, validation=x[40:], on_epoch=found.append)
        assert np.isfinite(
            [found[-1].gap, found[-1].bracket.conservative, found[-1].bracket.optimistic]
        ).all()
