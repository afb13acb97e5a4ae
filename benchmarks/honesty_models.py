"""Families of small models whose exact log-probabilities are known, each made from a seed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

import meltpoint as mp
from meltpoint.kernels.sigmoid import sum_softplus

Bits = np.ndarray
EXAMPLES = 60


@dataclass(frozen=True, eq=False)
class Subject:
    """A model, data to take base rates from, test data, and exact values: log Z, log f (example,), mean log p."""

    family: str
    model: Any
    train: Bits
    test: Bits
    log_z: float
    log_f: np.ndarray

    @property
    def mean_log_prob(self) -> float:
        """Exact mean log-probability of the test data."""
        return float(self.log_f.mean() - self.log_z)


def weak(seed: int) -> Subject:
    """Random RBM with weak to moderate weights; data drawn from it."""
    return _random_rbm("weak", seed, 0.1, 1.0)


def strong(seed: int) -> Subject:
    """Random RBM with strong to very strong weights; data drawn from it."""
    return _random_rbm("strong", seed, 1.0, 4.0)


def mixture(seed: int) -> Subject:
    """RBM whose hidden units each favour one prototype and exclude each other; data drawn from it."""
    rng = np.random.default_rng([2, seed])
    n_visible, n_hidden = int(rng.integers(16, 41)), int(rng.integers(3, 9))
    prototypes = rng.integers(0, 2, (n_visible, n_hidden)) * 2.0 - 1.0
    weights, visible = rng.uniform(2.5, 6.0) * prototypes, rng.normal(0, 0.3, n_visible)
    alone = sum_softplus(visible + weights.T)  # each unit alone has about the mass of none
    hidden = sum_softplus(visible[np.newaxis])[0] - alone + rng.normal(0, 0.5, n_hidden)
    rbm = mp.RBM(weights, visible, hidden)
    return _from_model("mixture", rbm, rng)


def far_unit(seed: int) -> Subject:
    """One hidden unit opens a mode far from the data that has 5 to 95 % of the mass; data from the rest."""
    rng = np.random.default_rng([3, seed])
    rest = _rbm(rng, int(rng.integers(12, 41)), int(rng.integers(2, 8)), 0.8)
    columns = rng.uniform(2.0, 5.0) * (2.0 * rng.integers(0, 2, rest.n_visible) - 1.0)
    return _with_far_units("far unit", rest, [columns], [rng.uniform(0.05, 0.95)], rng)


def far_two(seed: int) -> Subject:
    """Two hidden units that open two far modes; data from the rest."""
    rng = np.random.default_rng([4, seed])
    rest = _rbm(rng, int(rng.integers(16, 41)), int(rng.integers(2, 7)), 0.8)
    columns = [rng.uniform(2.0, 5.0) * (2.0 * rng.integers(0, 2, rest.n_visible) - 1.0) for _ in range(2)]
    return _with_far_units("two far units", rest, columns, list(rng.uniform(0.05, 0.6, 2)), rng)


def far_ones(seed: int) -> Subject:
    """A mode where all visible units are on, opened by several hidden units together; data from the rest."""
    rng = np.random.default_rng([5, seed])
    n_visible, together = int(rng.integers(12, 33)), int(rng.integers(2, 5))
    rest = _rbm(rng, n_visible, int(rng.integers(2, 6)), 0.6, shift=-1.0)
    weights = np.concatenate(
        [rest.weights, np.full((n_visible, together), rng.uniform(2.0, 4.0) / together * 1.5)], axis=1
    )
    wanted = mp.exact_log_z(rest, threads=1) - np.log1p(-rng.uniform(0.1, 0.9))
    low, high = -10.0 * n_visible, 0.0
    for _ in range(50):  # the bias that gives the mode its share of the mass
        middle = (low + high) / 2
        rbm = mp.RBM(weights, rest.visible_bias, np.append(rest.hidden_bias, np.full(together, middle)))
        low, high = (middle, high) if mp.exact_log_z(rbm, threads=1) < wanted else (low, middle)
    data = _draw(rest, rng, 300 + EXAMPLES)
    return _exact("all ones", rbm, data[:300], data[300:])


def far_many(seed: int) -> Subject:
    """Six to twelve far modes of equal size, which together have 20 to 80 % of the mass; data from the rest."""
    rng = np.random.default_rng([10, seed])
    rest = _rbm(rng, int(rng.integers(20, 41)), int(rng.integers(2, 4)), 0.8)
    count, share = int(rng.integers(6, 13)), rng.uniform(0.2, 0.8)
    each = share / count / (1 - share + share / count)  # against the rest alone
    scale = rng.uniform(3.0, 6.0)
    columns = [scale * (2.0 * rng.integers(0, 2, rest.n_visible) - 1.0) for _ in range(count)]
    return _with_far_units("many far units", rest, columns, [each] * count, rng)


def patterns(seed: int) -> Subject:
    """Patterns stored in all hidden units at once; data from around one of them."""
    rng = np.random.default_rng([11, seed])
    n_visible, n_hidden, count = int(rng.integers(16, 41)), int(rng.integers(8, 13)), int(rng.integers(2, 5))
    above, below = (2.0 * rng.integers(0, 2, (count, n)) - 1.0 for n in (n_visible, n_hidden))
    weights = rng.uniform(6.0, 16.0) / n_hidden * above.T @ below
    rbm = mp.RBM(weights, -weights.sum(axis=1) / 2, -weights.sum(axis=0) / 2)
    drawn = _draw(rbm, rng, 4000)
    near = drawn[np.argsort(-(2.0 * drawn - 1) @ above[0], kind="stable")][: 300 + EXAMPLES]
    near = rng.permutation(near)
    return _exact("patterns", rbm, near[:300], near[300:])


def digits_cd(seed: int) -> Subject:
    """A BernoulliRBM of scikit-learn, poorly fitted: 24 hidden units on binarised digits."""
    from sklearn.neural_network import BernoulliRBM

    train, test = _digits()
    rate = (0.05, 0.2)[seed % 2]
    fitted = BernoulliRBM(24, learning_rate=rate, n_iter=30, random_state=seed // 2).fit(train)
    rbm = mp.RBM(fitted.components_.T, fitted.intercept_visible_, fitted.intercept_hidden_)
    return _exact("scikit-learn", rbm, train, test)


def fitted(seed: int) -> Subject:
    """RBMs fitted by train_rbm to digits or to bars and stripes, well or hardly."""
    rng = np.random.default_rng([7, seed])
    settings = {
        "epochs": int(rng.integers(2, 40)),
        "learning_rate": rng.choice([0.05, 0.2, 0.5]),
        "seed": seed,
    }
    method = "cd" if seed % 3 == 0 else "pcd"
    if seed % 2:
        data = mp.datasets.load("bars-and-stripes")
        train = np.tile(data.train, (10, 1))
        return _exact(
            "fitted",
            mp.train_rbm(train, int(rng.integers(4, 13)), method=method, batch=30, **settings),
            train,
            data.test,
        )
    train, test = _digits()
    return _exact(
        "fitted", mp.train_rbm(train, int(rng.integers(4, 13)), method=method, **settings), train, test
    )


def dbm(seed: int) -> Subject:
    """Random three-layer DBM; data drawn from it."""
    rng = np.random.default_rng([8, seed])
    sizes = int(rng.integers(6, 11)), int(rng.integers(4, 9)), int(rng.integers(3, 7))
    scale = rng.uniform(0.3, 2.5)
    weights = [rng.normal(0, scale, pair) for pair in pairwise(sizes)]
    biases = [rng.normal(0, 0.5, size) for size in sizes]
    for k, w in enumerate(weights):  # centred inputs: neither everything on nor everything off
        biases[k] -= w.sum(axis=1) / 2
        biases[k + 1] -= w.sum(axis=0) / 2
    model = mp.DBM(weights, biases)
    two = model.mrf
    states = _corners(two.n_even)
    log_f = two.log_f(states)
    drawn = states[rng.choice(len(states), 300 + EXAMPLES, p=np.exp(log_f - logsumexp(log_f)))]
    visible = drawn[:, : model.n_visible]
    return _exact_dbm(model, visible[:300], visible[300:])


def dbn_good(seed: int) -> Subject:
    """DBN whose recognition is that of the RBM its directed layer was made from; data drawn from it."""
    return _dbn("DBN", seed, 0.0)


def dbn_bad(seed: int) -> Subject:
    """The same with one recognition bias shifted by 3 to 6."""
    return _dbn("DBN, bad recognition", seed, 1.0)


FAMILIES: dict[str, Callable[[int], Subject]] = {
    "weak": weak,
    "strong": strong,
    "mixture": mixture,
    "far-unit": far_unit,
    "far-two": far_two,
    "far-ones": far_ones,
    "far-many": far_many,
    "patterns": patterns,
    "sklearn": digits_cd,
    "fitted": fitted,
    "dbm": dbm,
    "dbn": dbn_good,
    "dbn-bad": dbn_bad,
}


def _random_rbm(family: str, seed: int, least: float, most: float) -> Subject:
    rng = np.random.default_rng([1, int(10 * least), seed])
    rbm = _rbm(rng, int(rng.integers(6, 31)), int(rng.integers(2, 11)), rng.uniform(least, most))
    return _from_model(family, rbm, rng)


def _rbm(rng: np.random.Generator, n_visible: int, n_hidden: int, scale: float, shift: float = 0.0) -> mp.RBM:
    weights = rng.normal(0, scale, (n_visible, n_hidden))
    visible = rng.normal(shift, 1.0, n_visible) - weights.sum(axis=1) / 2
    return mp.RBM(weights, visible, rng.normal(0, 1.0, n_hidden) - weights.sum(axis=0) / 2)


def _with_far_units(
    family: str, rest: mp.RBM, columns: list[np.ndarray], shares: list[float], rng: np.random.Generator
) -> Subject:
    """The rest with one more hidden unit per column, biased so that switched on it has about its share of mass."""
    weights, hidden, log_z = rest.weights, rest.hidden_bias, mp.exact_log_z(rest, threads=1)
    for column, share in zip(columns, shares, strict=True):
        on = mp.RBM(rest.weights, rest.visible_bias + column, rest.hidden_bias)
        bias = log_z + np.log(share) - np.log1p(-share) - mp.exact_log_z(on, threads=1)
        weights, hidden = np.column_stack([weights, column]), np.append(hidden, bias)
    data = _draw(rest, rng, 300 + EXAMPLES)
    return _exact(family, mp.RBM(weights, rest.visible_bias, hidden), data[:300], data[300:])


def _from_model(family: str, rbm: mp.RBM, rng: np.random.Generator) -> Subject:
    data = _draw(rbm, rng, 300 + EXAMPLES)
    return _exact(family, rbm, data[:300], data[300:])


def _draw(rbm: mp.RBM, rng: np.random.Generator, count: int) -> Bits:
    """Exact samples (example, visible unit): the hidden units by enumeration, then the visible ones."""
    hidden = _corners(rbm.n_hidden)
    log_f = hidden @ rbm.hidden_bias + sum_softplus(hidden @ rbm.weights.T + rbm.visible_bias)
    chosen = hidden[rng.choice(len(hidden), count, p=np.exp(log_f - logsumexp(log_f)))]
    rates = expit(chosen @ rbm.weights.T + rbm.visible_bias)
    return (rng.random(rates.shape) < rates).astype(np.uint8)


def _exact(family: str, rbm: mp.RBM, train: Bits, test: Bits) -> Subject:
    return Subject(family, rbm, train, test, mp.exact_log_z(rbm, threads=1), rbm.log_f(test))


def _exact_dbm(model: mp.DBM, train: Bits, test: Bits) -> Subject:
    two = model.mrf
    hidden = _corners(two.n_even - model.n_visible)
    states = np.concatenate([np.repeat(test, len(hidden), axis=0), np.tile(hidden, (len(test), 1))], axis=1)
    log_f = logsumexp(two.log_f(states).reshape(len(test), -1), axis=1)
    return Subject("DBM", model, train, test, mp.exact_log_z(model, threads=1), log_f)


def _dbn(family: str, seed: int, shifted: float) -> Subject:
    rng = np.random.default_rng([9, seed])
    n_visible, n_middle, n_top = int(rng.integers(6, 25)), int(rng.integers(4, 10)), int(rng.integers(3, 9))
    below = _rbm(rng, n_visible, n_middle, rng.uniform(0.5, 2.0))
    top = _rbm(rng, n_middle, n_top, rng.uniform(0.3, 1.5))
    recognition = below.hidden_bias.copy()
    recognition[int(rng.integers(n_middle))] += shifted * rng.choice([-1, 1]) * rng.uniform(3.0, 6.0)
    model = mp.DBN([(below.weights, below.visible_bias, recognition)], top)
    states = _corners(n_middle)
    log_top = top.log_f(states)
    drawn = states[rng.choice(len(states), 300 + EXAMPLES, p=np.exp(log_top - logsumexp(log_top)))]
    data = model.generate(drawn, rng)
    test = data[300:]
    inputs = states @ below.weights.T + below.visible_bias
    given = test @ inputs.T - sum_softplus(inputs)
    return Subject(
        family, model, data[:300], test, mp.exact_log_z(model, threads=1), logsumexp(given + log_top, axis=1)
    )


@cache
def _digits() -> tuple[Bits, Bits]:
    data = mp.datasets.load("digits", binarize="threshold")
    return data.train, data.test


def _corners(units: int) -> Bits:
    return (np.arange(2**units)[:, np.newaxis] >> np.arange(units) & 1).astype(np.uint8)
