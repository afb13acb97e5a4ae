"""Families of small Ising models, Potts models and factor graphs whose exact log-probabilities are known.

Data are exact samples, by enumeration, but for `ising-far`, whose data come from one of the model's modes alone.
"""

from collections.abc import Callable

import numpy as np
from honesty_models import EXAMPLES, Subject

import meltpoint as mp

_TRAIN = 300


def glass(seed: int) -> Subject:
    """Spin glass, every pair coupled."""
    rng = np.random.default_rng([101, seed])
    n = int(rng.integers(8, 15))
    couplings = _symmetric(rng.normal(0, rng.uniform(0.3, 3.0) / np.sqrt(n), (n, n)))
    return _drawn("ising-glass", mp.Ising(couplings, rng.normal(0, 0.3, n)), rng)


def lattice(seed: int) -> Subject:
    """Ferromagnet on a lattice with free boundaries or on a torus, from hot to cold; weak fields."""
    rng = np.random.default_rng([102, seed])
    shape = (3, int(rng.integers(3, 6))) if rng.random() < 0.5 else (4, 4)
    site = np.arange(shape[0] * shape[1]).reshape(shape)
    couplings = np.zeros((site.size, site.size))
    for axis in (0, 1):
        first, second = site, np.roll(site, -1, axis)
        if rng.random() < 0.5:
            cut = [slice(None)] * 2
            cut[axis] = slice(0, -1)
            first, second = first[tuple(cut)], second[tuple(cut)]
        couplings[first, second] = rng.uniform(0.2, 1.2)
    units = "spin" if rng.random() < 0.5 else "bernoulli"
    return _drawn("ising-lattice", mp.Ising(_symmetric(couplings), rng.normal(0, 0.1, site.size), units), rng)


def hidden(seed: int) -> Subject:
    """Boltzmann machine with hidden sites, coupled to each other or not."""
    rng = np.random.default_rng([103, seed])
    n, h = int(rng.integers(6, 10)), int(rng.integers(2, 6))
    kept = rng.random((n + h, n + h)) < rng.uniform(0.3, 1.0)
    couplings = _symmetric(rng.normal(0, rng.uniform(0.3, 1.5), kept.shape) * kept)
    model = mp.Ising(couplings, rng.normal(0, 0.5, n + h), "bernoulli", hidden=rng.permutation(n + h)[:h])
    return _drawn("ising-hidden", model, rng)


def far(seed: int) -> Subject:
    """Hopfield network of a few patterns; the data are near one of them, or its mirror image."""
    rng = np.random.default_rng([104, seed])
    n = int(rng.integers(10, 15))
    patterns = 2.0 * rng.integers(0, 2, (int(rng.integers(1, 4)), n)) - 1
    couplings = rng.uniform(0.8, 3.0) / n * patterns.T @ patterns
    np.fill_diagonal(couplings, 0)
    model = mp.Ising(couplings, rng.normal(0, 0.05, n))
    return _drawn("ising-far", model, rng, near=lambda x: x @ patterns[0] > n / 2)


def potts(seed: int) -> Subject:
    """Potts model with one number of states, every pair coupled."""
    rng = np.random.default_rng([105, seed])
    q = int(rng.integers(3, 6))
    sites = int(rng.integers(3, 7 if q < 5 else 6))
    couplings = rng.normal(0, rng.uniform(0.2, 2.0) / np.sqrt(sites), (sites, sites, q, q))
    couplings[np.tril_indices(sites)] = 0
    model = mp.Potts(couplings + couplings.transpose(1, 0, 3, 2), rng.normal(0, 0.7, (sites, q)))
    return _drawn("potts", model, rng)


def potts_mixed(seed: int) -> Subject:
    """Potts model with different numbers of states and some pairs, perhaps with hidden sites."""
    rng = np.random.default_rng([106, seed])
    counts = rng.integers(2, 5, int(rng.integers(5, 8)))
    pairs = [(i, j) for j in range(len(counts)) for i in range(j) if rng.random() < 0.6]
    couplings = {(i, j): rng.normal(0, 1.2, (counts[i], counts[j])) for i, j in pairs}
    own = rng.permutation(len(counts))[: int(rng.integers(0, 3))]
    return _drawn("potts-mixed", mp.Potts(couplings, [rng.normal(0, 0.7, q) for q in counts], own), rng)


def factors(seed: int) -> Subject:
    """Factor graph with factors up to order three or four."""
    return _factor_graph("factors", seed, hidden=False)


def factors_hidden(seed: int) -> Subject:
    """The same with hidden variables."""
    return _factor_graph("factors-hidden", seed, hidden=True)


FAMILIES: dict[str, Callable[[int], Subject]] = {
    "ising-glass": glass,
    "ising-lattice": lattice,
    "ising-hidden": hidden,
    "ising-far": far,
    "potts": potts,
    "potts-mixed": potts_mixed,
    "factors": factors,
    "factors-hidden": factors_hidden,
}


def _factor_graph(family: str, seed: int, *, hidden: bool) -> Subject:
    rng = np.random.default_rng([107, hidden, seed])
    counts = rng.integers(2, 4, int(rng.integers(5, 10)))
    scale = rng.uniform(0.3, 2.0)
    tables = []
    for _ in range(len(counts) + int(rng.integers(0, 4))):
        scope = rng.permutation(len(counts))[: int(rng.integers(1, 5))]
        tables.append((tuple(scope.tolist()), rng.normal(0, scale, counts[scope])))
    own = rng.permutation(len(counts))[: int(rng.integers(1, 4))] if hidden else None
    return _drawn(family, mp.FactorGraph(counts, tables, own), rng)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    upper = np.triu(matrix, 1)
    return upper + upper.T


def _drawn(
    family: str, model: mp.Ising | mp.Potts | mp.FactorGraph, rng: np.random.Generator, near=None
) -> Subject:
    """The model with exact samples of it, and exact values from a table of all its states."""
    cardinalities, tables, constant = model.as_factors()
    states = np.indices(cardinalities).reshape(len(cardinalities), -1)
    log_f = np.full(states.shape[1], constant)
    for scope, table in tables:
        log_f += table[tuple(states[list(scope)])]
    visible, which = np.unique(states[: model.n_visible].T, axis=0, return_inverse=True)
    log_z = float(np.logaddexp.reduce(log_f))
    probability = np.bincount(which.reshape(-1), np.exp(log_f - log_z), len(visible))
    x = model.decode(visible.astype(np.uint8))
    chosen = probability if near is None else probability * near(x)
    if chosen.sum() == 0:
        chosen = probability
    rows = rng.choice(len(x), _TRAIN + EXAMPLES, p=chosen / chosen.sum())
    train, test = rows[:_TRAIN], rows[_TRAIN:]
    return Subject(family, model, x[train], x[test], log_z, np.log(probability[test]) + log_z)
