"""More families of small models with exact log-probabilities: what was thought of to break a report.

Deep models whose log f must be estimated, other units, exact symmetries, hubs, near-deterministic weights, saturated
biases, data of another model, and models fitted to a handful of examples.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from honesty_graphs import _drawn, _symmetric
from honesty_models import EXAMPLES, Subject, _corners, _draw, _exact, _from_model, _rbm
from scipy.special import expit, logsumexp

import meltpoint as mp
from meltpoint.kernels.sigmoid import sum_softplus

_TRAIN = 300


def dbm_wide(seed: int) -> Subject:
    """DBM with too many hidden units for log f to be added up; data drawn from it."""
    rng = np.random.default_rng([201, seed])
    return _wide_dbm("DBM, wide", rng, rng.uniform(0.3, 2.5))


def dbm_bimodal(seed: int) -> Subject:
    """The same with hidden layers that agree as a ferromagnet does: posteriors have two modes."""
    rng = np.random.default_rng([202, seed])
    return _wide_dbm("DBM, bimodal", rng, rng.uniform(0.2, 0.8), agreement=rng.uniform(0.3, 1.0))


def dbn_wide(seed: int) -> Subject:
    """DBN with too many hidden units for log f to be added up, with good or bad recognition; data drawn from it."""
    rng = np.random.default_rng([203, seed])
    n_visible, n_middle, n_top = int(rng.integers(8, 25)), int(rng.integers(11, 14)), int(rng.integers(3, 9))
    below = _rbm(rng, n_visible, n_middle, rng.uniform(0.5, 2.0))
    top = _rbm(rng, n_middle, n_top, rng.uniform(0.3, 1.5))
    recognition = below.hidden_bias + (seed % 2) * rng.normal(0, 3.0, n_middle)
    return _exact_dbn("DBN, wide", mp.DBN([(below.weights, below.visible_bias, recognition)], top), rng)


def dbn_two_codes(seed: int) -> Subject:
    """DBN whose top RBM has two codes, of which recognition knows one; data drawn from it."""
    return _two_codes("DBN, two codes", np.random.default_rng([215, seed]), [])


def dbn_two_codes_deep(seed: int) -> Subject:
    """The same with a layer of hidden units between the codes and the data."""
    rng = np.random.default_rng([216, seed])
    return _two_codes("DBN, two codes, deep", rng, [int(rng.integers(4, 11))])


def potts_rbm(seed: int) -> Subject:
    """RBM with Potts visible units, weak to strong; data drawn from it."""
    rng = np.random.default_rng([204, seed])
    sites, q, n_hidden = int(rng.integers(4, 13)), int(rng.integers(3, 7)), int(rng.integers(2, 9))
    weights = rng.normal(0, rng.uniform(0.3, 3.0), (sites, q, n_hidden))
    bias = rng.normal(0, 0.5, (sites, q)) - weights.sum(axis=2) / 2
    hidden_bias = rng.normal(0, 1.0, n_hidden)
    states = _corners(n_hidden)
    inputs = np.einsum("sh,iqh->siq", states, weights) + bias
    log_f = states @ hidden_bias + logsumexp(inputs, axis=2).sum(axis=1)
    chosen = inputs[rng.choice(len(states), _TRAIN + EXAMPLES, p=np.exp(log_f - logsumexp(log_f)))]
    x = np.argmax(chosen + rng.gumbel(size=chosen.shape), axis=2)
    model = mp.RBM(weights, bias, hidden_bias, visible="potts")
    return _exact("RBM, Potts units", model, x[:_TRAIN], x[_TRAIN:])


def gaussian_rbm(seed: int) -> Subject:
    """RBM with Gaussian visible units: a mixture of Gaussians, near or far from each other; data drawn from it."""
    rng = np.random.default_rng([205, seed])
    n_visible, n_hidden = int(rng.integers(2, 13)), int(rng.integers(2, 8))
    scale = rng.uniform(0.5, 2.0, n_visible)
    weights = rng.normal(0, rng.uniform(0.3, 2.5), (n_visible, n_hidden))
    bias = rng.normal(0, 1.0, n_visible)
    # Each mean of the mixture is bias + scale * (weights @ h): its mass has these exponents.
    hidden_bias = rng.normal(0, 1.0, n_hidden) - (weights**2).sum(axis=0) / 2 - (bias / scale) @ weights
    states = _corners(n_hidden)
    means = bias + states @ weights.T * scale
    log_f = states @ hidden_bias + ((means / scale) ** 2 - (bias / scale) ** 2).sum(axis=1) / 2
    chosen = means[rng.choice(len(states), _TRAIN + EXAMPLES, p=np.exp(log_f - logsumexp(log_f)))]
    x = chosen + scale * rng.normal(size=chosen.shape)
    model = mp.RBM(weights, bias, hidden_bias, visible="gaussian", visible_scale=scale)
    return _exact("RBM, Gaussian units", model, x[:_TRAIN], x[_TRAIN:])


def spins(seed: int) -> Subject:
    """RBM of spins without biases, or with weak ones: each mode has a mirror image; data from one half of them."""
    rng = np.random.default_rng([206, seed])
    n_visible, n_hidden = int(rng.integers(6, 25)), int(rng.integers(2, 10))
    weights = rng.normal(0, rng.uniform(0.3, 1.5), (n_visible, n_hidden))
    tilt = rng.choice([0.0, 0.1])
    model = mp.RBM(
        weights, tilt * rng.normal(size=n_visible), np.zeros(n_hidden), visible="spin", hidden="spin"
    )
    states = 2.0 * _corners(n_hidden) - 1
    inputs = states @ weights.T + model.visible_bias
    log_f = np.logaddexp(inputs, -inputs).sum(axis=1)
    chosen = inputs[rng.choice(len(states), _TRAIN + EXAMPLES, p=np.exp(log_f - logsumexp(log_f)))]
    x = np.where(rng.random(chosen.shape) < expit(2 * chosen), 1, -1)
    x *= np.where(x @ weights[:, :1] > 0, 1, -1)
    return _exact("RBM, spins", model, x[:_TRAIN], x[_TRAIN:])


def hub(seed: int) -> Subject:
    """One hidden unit is coupled strongly to all visible ones; data from both of its states, or from one."""
    rng = np.random.default_rng([207, seed])
    rest = _rbm(rng, int(rng.integers(10, 31)), int(rng.integers(2, 8)), 0.8)
    column = rng.uniform(1.0, 6.0) * np.where(rng.random(rest.n_visible) < rng.uniform(0.5, 1.0), 1.0, -1.0)
    on = mp.RBM(rest.weights, rest.visible_bias + column, rest.hidden_bias)
    balance = mp.exact_log_z(rest, threads=1) - mp.exact_log_z(on, threads=1) + rng.normal(0, 2.0)
    weights, hidden = np.column_stack([rest.weights, column]), np.append(rest.hidden_bias, balance)
    rbm = mp.RBM(weights, rest.visible_bias, hidden)
    if seed % 2:
        return _from_model("hub", rbm, rng)
    data = _draw(on if rng.random() < 0.5 else rest, rng, _TRAIN + EXAMPLES)
    return _exact("hub", rbm, data[:_TRAIN], data[_TRAIN:])


def duplicated(seed: int) -> Subject:
    """Every hidden unit two to four times: exactly symmetric modes; data drawn from it."""
    rng = np.random.default_rng([208, seed])
    n_visible, copies = int(rng.integers(8, 25)), int(rng.integers(2, 5))
    n_hidden = int(rng.integers(2, 12 // copies + 1))
    weights = np.tile(rng.normal(0, rng.uniform(0.5, 3.0), (n_visible, n_hidden)), (1, copies))
    visible = rng.normal(0, 1.0, n_visible) - weights.sum(axis=1) / 2
    hidden = np.tile(rng.normal(0, 1.0, n_hidden), copies) - weights.sum(axis=0) / 2
    return _from_model("duplicated", mp.RBM(weights, visible, hidden), rng)


def deterministic(seed: int) -> Subject:
    """Weights of 20 to 50, sparse or not: units are hardly free; data drawn from it."""
    rng = np.random.default_rng([209, seed])
    n_visible, n_hidden = int(rng.integers(4, 17)), int(rng.integers(2, 9))
    signs = rng.choice([-1.0, 0.0, 1.0], (n_visible, n_hidden), p=[0.25, 0.5, 0.25])
    weights = rng.uniform(20.0, 50.0) * signs
    shift = rng.choice([0.0, 0.5])
    visible = rng.normal(0, 1.0, n_visible) - shift * weights.sum(axis=1)
    rbm = mp.RBM(weights, visible, rng.normal(0, 1.0, n_hidden) - shift * weights.sum(axis=0))
    return _from_model("deterministic", rbm, rng)


def saturated(seed: int) -> Subject:
    """Biases of up to 30 on moderate weights; data drawn from it, some of them flipped."""
    rng = np.random.default_rng([210, seed])
    n_visible, n_hidden = int(rng.integers(6, 25)), int(rng.integers(2, 9))
    weights = rng.normal(0, rng.uniform(0.5, 3.0), (n_visible, n_hidden))
    visible = rng.choice([-30.0, 0.0, 30.0], n_visible) + rng.normal(0, 1.0, n_visible)
    rbm = mp.RBM(weights, visible, rng.choice([-30.0, 0.0, 30.0], n_hidden) + rng.normal(0, 1.0, n_hidden))
    data = _draw(rbm, rng, _TRAIN + EXAMPLES)
    data ^= (rng.random(data.shape) < rng.choice([0.0, 0.02])).astype(np.uint8)
    return _exact("saturated", rbm, data[:_TRAIN], data[_TRAIN:])


def foreign(seed: int) -> Subject:
    """Data of another random model of the same size, or uniform ones: the model gives them next to nothing."""
    rng = np.random.default_rng([211, seed])
    n_visible, n_hidden = int(rng.integers(6, 31)), int(rng.integers(2, 11))
    rbm = _rbm(rng, n_visible, n_hidden, rng.uniform(0.5, 3.0))
    other = _rbm(rng, n_visible, n_hidden, rng.uniform(0.5, 3.0))
    uniform = rng.integers(0, 2, (_TRAIN + EXAMPLES, n_visible)).astype(np.uint8)
    data = uniform if seed % 2 else _draw(other, rng, _TRAIN + EXAMPLES)
    return _exact("data of another model", rbm, data[:_TRAIN], data[_TRAIN:])


def tiny(seed: int) -> Subject:
    """One to four visible units and one to three hidden ones, weak to very strong."""
    rng = np.random.default_rng([212, seed])
    rbm = _rbm(rng, int(rng.integers(1, 5)), int(rng.integers(1, 4)), rng.uniform(0.1, 10.0))
    return _from_model("tiny", rbm, rng)


def overfitted(seed: int) -> Subject:
    """RBM fitted to ten examples of the digits for a thousand epochs; tested on others."""
    rng = np.random.default_rng([213, seed])
    digits = mp.datasets.load("digits", binarize="threshold")
    train = digits.train[rng.choice(len(digits.train), 10, replace=False)]
    rate = rng.choice([0.02, 0.1, 0.3])
    rbm = mp.train_rbm(train, int(rng.integers(4, 13)), epochs=300, batch=5, learning_rate=rate, seed=seed)
    test = digits.test[rng.choice(len(digits.test), EXAMPLES, replace=False)]
    return _exact("overfitted", rbm, train, test if seed % 2 else np.tile(train, (6, 1)))


def frustrated(seed: int) -> Subject:
    """Ising model with couplings of plus or minus one strength and no fields: many degenerate ground states."""
    rng = np.random.default_rng([214, seed])
    n = int(rng.integers(8, 15))
    kept = rng.random((n, n)) < rng.uniform(0.3, 1.0)
    couplings = _symmetric(rng.uniform(0.5, 4.0) * rng.choice([-1.0, 1.0], (n, n)) * kept)
    return _drawn("ising-frustrated", mp.Ising(couplings, np.zeros(n)), rng)


FAMILIES: dict[str, Callable[[int], Subject]] = {
    "dbm-wide": dbm_wide,
    "dbm-bimodal": dbm_bimodal,
    "dbn-wide": dbn_wide,
    "dbn-two-codes": dbn_two_codes,
    "dbn-two-codes-deep": dbn_two_codes_deep,
    "potts-rbm": potts_rbm,
    "gaussian-rbm": gaussian_rbm,
    "spins": spins,
    "hub": hub,
    "duplicated": duplicated,
    "deterministic": deterministic,
    "saturated": saturated,
    "foreign": foreign,
    "tiny": tiny,
    "overfitted": overfitted,
    "ising-frustrated": frustrated,
}


def _wide_dbm(family: str, rng: np.random.Generator, scale: float, agreement: float = 0.0) -> Subject:
    sizes = int(rng.integers(6, 13)), int(rng.integers(11, 14)), int(rng.integers(11, 14))
    weights = [rng.normal(0, scale, pair) for pair in pairwise(sizes)]
    weights[1] += agreement
    biases = [rng.normal(0, 0.5, size) for size in sizes]
    for k, w in enumerate(weights):  # centred inputs: neither everything on nor everything off
        biases[k] -= w.sum(axis=1) / 2
        biases[k + 1] -= w.sum(axis=0) / 2
    model = mp.DBM(weights, biases)
    middle = _corners(sizes[1])
    above = middle @ biases[1] + sum_softplus(middle @ weights[1] + biases[2])
    log_f = above + sum_softplus(middle @ weights[0].T + biases[0])
    drawn = middle[rng.choice(len(middle), _TRAIN + EXAMPLES, p=np.exp(log_f - logsumexp(log_f)))]
    rates = expit(drawn @ weights[0].T + biases[0])
    x = (rng.random(rates.shape) < rates).astype(np.uint8)
    test = x[_TRAIN:]
    of_test = test @ biases[0] + logsumexp(test @ weights[0] @ middle.T + above, axis=1)
    return Subject(family, model, x[:_TRAIN], test, float(logsumexp(log_f)), of_test)


def _two_codes(family: str, rng: np.random.Generator, between: list[int]) -> Subject:
    n, n_top = int(rng.integers(8 if between else 11, 12 if between else 17)), int(rng.integers(3, 13))
    code = rng.choice([-1.0, 1.0], n)
    weights = rng.uniform(0.5, 8.0) * np.outer(code, rng.choice([-1.0, 1.0], n_top))
    weights += rng.normal(0, rng.uniform(0, 0.5), weights.shape)
    tilt = rng.normal(0, 0.1, n)
    top = mp.RBM(
        weights, tilt - weights.sum(axis=1) / 2, -weights.sum(axis=0) / 2
    )  # code and -code are alike
    sizes = [int(rng.integers(5, 13)), *between, n]
    layers = [_rbm(rng, lower, upper, rng.uniform(0, 0.7)) for lower, upper in pairwise(sizes)]
    directed = [[layer.weights, layer.visible_bias, layer.hidden_bias] for layer in layers]
    directed[-1][2] = rng.uniform(3.0, 60.0) * code
    return _exact_dbn(family, mp.DBN(directed, top), rng)


def _exact_dbn(family: str, model: mp.DBN, rng: np.random.Generator) -> Subject:
    """Data drawn from a DBN, with exact values: all states of its hidden layers are added up."""
    states = _corners(model.top.n_visible)
    log_mass = model.top.log_f(states)
    drawn = states[rng.choice(len(states), _TRAIN + EXAMPLES, p=np.exp(log_mass - logsumexp(log_mass)))]
    data = model.generate(drawn, rng)
    lower_states = [_corners(layer.weights.shape[0]) for layer in model.directed[:0:-1]]
    for layer, lower in zip(reversed(model.directed), [*lower_states, data[_TRAIN:]], strict=True):
        inputs = states @ layer.weights.T + layer.visible_bias
        log_mass = logsumexp(lower @ inputs.T - sum_softplus(inputs) + log_mass, axis=1)
        states = lower
    log_z = mp.exact_log_z(model, threads=1)
    return Subject(family, model, data[:_TRAIN], data[_TRAIN:], log_z, log_mass)
