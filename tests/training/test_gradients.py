"""Every expected update against the derivative of an enumerated objective, to 1e-10."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp, xlogy

from meltpoint.training.phases import (
    Gradient,
    TrainableDBM,
    centre,
    data_phase,
    gradient,
    log_f_bound,
    model_phase,
    trainable_dbm,
)
from meltpoint.training.stage import initial_state, sgd_step
from oracle.derivatives import (
    bernoulli,
    derivative,
    joint_states,
    layers,
    random_parameters,
    tied_log_likelihood,
    visible_log_probabilities,
)
from oracle.tables import all_states

DATA = np.array([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 0, 1]], np.uint8)
KIND = np.dtype(np.float64)


def dbm_of(parameters, copies=None) -> TrainableDBM:
    """A float64 DBM with copies of these parameters: all weights, then all biases."""
    return trainable_dbm([p.copy() for p in parameters], copies or (1,) * ((len(parameters) + 1) // 2))


def expected_update(dbm: TrainableDBM, data, model_states, weights, sweeps=0) -> Gradient:
    """The update averaged over model phases: the states of one chain each, with these probabilities."""
    inferred = data_phase(dbm, data, sweeps)
    updates = [
        gradient(inferred, [layer[i : i + 1] for layer in model_states], KIND)
        for i in np.flatnonzero(weights)
    ]
    weights = weights[weights != 0]
    return Gradient(
        tuple(np.tensordot(weights, [u.pairs[k] for u in updates], 1) for k in range(len(dbm.couplings))),
        tuple(np.tensordot(weights, [u.units[k] for u in updates], 1) for k in range(dbm.n_layers)),
    )


def all_parts(update: Gradient):
    return (*update.pairs, *update.units)


def assert_same(update: Gradient, slopes) -> None:
    for part, slope in zip(all_parts(update), slopes, strict=True):
        np.testing.assert_allclose(part, slope, rtol=0, atol=1e-10)


def log_z(parameters) -> float:
    return float(logsumexp(layers(parameters).log_f()))


def log_likelihood(parameters) -> float:
    codes = DATA.astype(int) @ (1 << np.arange(DATA.shape[1])[::-1])
    return float(visible_log_probabilities(parameters)[codes].mean())


def model_phase_by_enumeration(dbm: TrainableDBM, monkeypatch, parameters, starts, start_weights):
    """Every outcome of one `model_phase` step from the odd states `starts`, and its probability."""
    outcomes = all_states(parameters[0].shape[0])
    odd = np.repeat(starts, len(outcomes), axis=0)
    drawn = np.tile(outcomes, (len(starts), 1))
    weights = np.repeat(start_weights, len(outcomes)) * bernoulli(drawn, dbm.probabilities(0, [odd, odd]))
    with monkeypatch.context() as patch:
        patch.setattr(
            TrainableDBM, "draw_layer", lambda _, layer, rates, __: drawn if layer == 0 else np.round(rates)
        )
        states, _ = model_phase(dbm, [odd], 1, np.zeros((1, 4, 32), np.uint32))
    return states, weights


def hidden_marginal(parameters):
    """Every hidden state of an RBM, and its probability."""
    weights, visible_bias, hidden_bias = parameters
    return all_states(hidden_bias.size), np.exp(
        visible_log_probabilities([weights.T, hidden_bias, visible_bias])
    )


def test_persistent_chains_in_equilibrium_give_the_exact_gradient(monkeypatch):
    parameters = random_parameters([4, 3], seed=1)
    hidden, probabilities = hidden_marginal(parameters)
    rbm = dbm_of(parameters)
    states, weights = model_phase_by_enumeration(rbm, monkeypatch, parameters, hidden, probabilities)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert_same(expected_update(rbm, DATA, states, weights), derivative(log_likelihood, parameters))


def test_contrastive_divergence_is_at_rest_where_the_data_are_the_model(monkeypatch):
    # CD-1 is not the gradient of the likelihood, but its expectation must vanish at the same place.
    parameters = random_parameters([4, 3], seed=2)
    (visible, hidden), joint = joint_states(parameters)
    rbm = dbm_of(parameters)
    states, weights = model_phase_by_enumeration(rbm, monkeypatch, parameters, hidden, joint)
    inferred = data_phase(rbm, visible, 0)
    data_pairs = np.einsum("s,si,sj->ij", joint, *inferred)
    model_pairs = np.einsum("s,si,sj->ij", weights, *states)
    np.testing.assert_allclose(data_pairs, model_pairs, rtol=0, atol=1e-12)


def test_contrastive_divergence_from_elsewhere_is_not_the_gradient(monkeypatch):
    # The mutant beside the two tests above: chains out of equilibrium must show.
    parameters = random_parameters([4, 3], seed=1)
    hidden, _ = hidden_marginal(parameters)
    rbm = dbm_of(parameters)
    uniform = np.full(len(hidden), 1 / len(hidden))
    states, weights = model_phase_by_enumeration(rbm, monkeypatch, parameters, hidden, uniform)
    update = expected_update(rbm, DATA, states, weights)
    assert np.abs(update.pairs[0] - derivative(log_likelihood, parameters)[0]).max() > 1e-3


@pytest.mark.parametrize("copies", [(2, 1), (1, 2), (2, 2)])
def test_doubled_layers_give_the_gradient_of_the_tied_model(copies):
    parameters = random_parameters([3, 2], seed=3)
    doubled = dbm_of(parameters, copies)
    # The tied model written out: its joint states, summed over copies, are the counts `model_phase` works with.
    weights, visible_bias, hidden_bias = parameters
    full = [np.tile(weights, copies), np.tile(visible_bias, copies[0]), np.tile(hidden_bias, copies[1])]
    (visible, _), probabilities = joint_states(full)
    counts = visible.reshape(len(visible), copies[0], -1).sum(axis=1).astype(np.uint8)
    states = [counts, copies[1] * doubled.probabilities(1, [counts])]
    update = expected_update(doubled, DATA[:, :3], states, probabilities)
    assert_same(update, derivative(lambda p: tied_log_likelihood(p, copies, DATA[:, :3]), parameters))


def test_mean_field_gives_the_gradient_of_its_bound():
    parameters = random_parameters([4, 3, 2], seed=4)
    sweeps = 200  # to the fixed point, where the bound is stationary in the means

    def objective(moved) -> float:
        dbm = dbm_of(moved)
        return float(log_f_bound(dbm, data_phase(dbm, DATA, sweeps)).mean()) - log_z(moved)

    dbm = dbm_of(parameters)
    states, probabilities = joint_states(parameters)
    visible, _, top = states
    update = expected_update(dbm, DATA, [visible, dbm.probabilities(1, states), top], probabilities, sweeps)
    assert_same(update, derivative(objective, parameters))


def test_the_bound_is_a_bound_and_exact_for_one_hidden_layer():
    parameters = random_parameters([4, 3], seed=5)
    rbm = dbm_of(parameters)
    log_p = visible_log_probabilities(parameters)
    codes = DATA.astype(int) @ (1 << np.arange(4)[::-1])
    np.testing.assert_allclose(
        log_f_bound(rbm, data_phase(rbm, DATA, 0)) - log_z(parameters), log_p[codes], rtol=0, atol=1e-12
    )
    deep = random_parameters([4, 3, 2], seed=6, scale=1.5)
    dbm = dbm_of(deep)
    exact = visible_log_probabilities(deep)[codes]
    bounds = [log_f_bound(dbm, data_phase(dbm, DATA, sweeps)) - log_z(deep) for sweeps in (0, 1, 100)]
    assert (bounds[2] < exact).all()
    assert bounds[0].mean() < bounds[1].mean() < bounds[2].mean()


@pytest.mark.parametrize("copies", [(2, 1), (1, 2), (2, 2)])
def test_the_bound_counts_every_copy(copies):
    weights, visible_bias, hidden_bias = parameters = random_parameters([3, 2], seed=10)
    doubled = dbm_of(parameters, copies)
    full = [np.tile(weights, copies), np.tile(visible_bias, copies[0]), np.tile(hidden_bias, copies[1])]
    for example in DATA[:, :3]:
        exact = tied_log_likelihood(parameters, copies, example[np.newaxis]) + log_z(full)
        bound = log_f_bound(doubled, data_phase(doubled, example[np.newaxis], 0))
        np.testing.assert_allclose(bound, [exact], rtol=0, atol=1e-12)


def test_mean_field_against_plain_numpy():
    weights1, weights2, _, bias1, bias2 = parameters = random_parameters([4, 3, 2], seed=7)
    means1 = expit(2 * DATA @ weights1 + bias1)
    means2 = expit(means1 @ weights2 + bias2)
    for _ in range(3):
        means1 = expit(DATA @ weights1 + means2 @ weights2.T + bias1)
        means2 = expit(means1 @ weights2 + bias2)
    states = data_phase(dbm_of(parameters), DATA, 3)
    np.testing.assert_allclose(states[1], means1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(states[2], means2, rtol=0, atol=1e-12)
    entropy = -sum((xlogy(m, m) + xlogy(1 - m, 1 - m)).sum(axis=1) for m in (means1, means2))
    energy = (
        DATA @ parameters[2]
        + means1 @ bias1
        + means2 @ bias2
        + np.einsum("ni,ij,nj->n", DATA, weights1, means1)
        + np.einsum("ni,ij,nj->n", means1, weights2, means2)
    )
    np.testing.assert_allclose(log_f_bound(dbm_of(parameters), states), energy + entropy, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [[4, 3], [4, 3, 2]])
def test_centring_is_the_gradient_in_centred_coordinates(sizes):
    rng = np.random.default_rng(8)
    parameters = random_parameters(sizes, seed=8)
    offsets = [rng.random(size) for size in sizes]
    n = len(sizes) - 1
    plain = derivative(log_likelihood, parameters)

    def natural(centred):
        """bias of layer k = centred bias - what the offsets of its neighbours send it."""
        weights, biases = centred[:n], [b.copy() for b in centred[n:]]
        for k, w in enumerate(weights):
            biases[k] -= w @ offsets[k + 1]
            biases[k + 1] -= offsets[k] @ w
        return [*weights, *biases]

    biases = [b.copy() for b in parameters[n:]]
    for k, w in enumerate(parameters[:n]):
        biases[k] += w @ offsets[k + 1]
        biases[k + 1] += offsets[k] @ w
    centred_parameters = [*parameters[:n], *biases]
    slopes = derivative(lambda p: log_likelihood(natural(p)), centred_parameters)
    # A step along the centred gradient, carried back: `natural` is linear.
    carried = natural(slopes)
    update = Gradient(tuple(p.copy() for p in plain[:n]), tuple(p.copy() for p in plain[n:]))
    centre(update, offsets)
    assert_same(update, carried)


@pytest.mark.parametrize("centred", [False, True])
def test_exact_gradient_training_raises_the_likelihood_at_every_step(centred):
    parameters = random_parameters([4, 3], seed=9)
    rbm = dbm_of(parameters)
    state = initial_state(rbm)
    offsets = [DATA.mean(axis=0), np.full(3, 0.5)]
    values = [log_likelihood(rbm.parameters)]
    for _ in range(150):
        visible, probabilities = all_states(4), np.exp(visible_log_probabilities(rbm.parameters))
        update = expected_update(rbm, DATA, [visible, rbm.probabilities(1, [visible])], probabilities)
        if centred:
            centre(update, offsets)
        sgd_step(state, update, rate=0.2, momentum=0.0, weight_decay=0.0)
        values.append(log_likelihood(rbm.parameters))
    assert (np.diff(values) > 0).all()
    assert values[-1] > values[0] + 1.0
