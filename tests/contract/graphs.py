"""Ising models, Potts models and factor graphs with every kind of sweep, and the library's sweeps enumerated."""

from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

import meltpoint as mp
from oracle.sites import enumerate_factors


def symmetric(rng, n, kept=None):
    """Couplings (site, site): all, or those where `kept` is."""
    upper = np.triu(rng.normal(0, 1.2, (n, n)), 1)
    return (upper + upper.T) * (1 if kept is None else kept)


def ring(n, closed=True):
    """Which sites of a ring or chain are neighbours."""
    near = np.abs(np.subtract.outer(range(n), range(n)))
    return (near == 1) | (closed & (near == n - 1))


def potts(rng, counts, pairs, hidden=None):
    """A Potts model with these numbers of states and coupled pairs."""
    couplings = {(i, j): rng.normal(0, 1, (counts[i], counts[j])) for i, j in pairs}
    return mp.Potts(couplings, [rng.normal(0, 1, q) for q in counts], hidden, constant=0.4)


def factor_graph(rng, counts, scopes, hidden=None):
    """A factor graph with these scopes."""
    tables = [(scope, rng.normal(0, 1.2, [counts[i] for i in scope])) for scope in scopes]
    return mp.FactorGraph(counts, tables, hidden)


def make_cases():
    """Models by what is special about their sweeps."""
    rng = np.random.default_rng(15)
    triangle, line = [(0, 1), (2, 1), (0, 2)], [(0, 1), (2, 1)]
    h = rng.normal(0, 0.8, 5)
    return {
        "spin dense": mp.Ising(symmetric(rng, 4), h[:4], constant=0.3),
        "bernoulli dense": mp.Ising(symmetric(rng, 4), h[:4], "bernoulli"),
        "spin chain, two colours": mp.Ising(symmetric(rng, 5, ring(5, closed=False)), h),
        "bernoulli chain, two colours, sparse": mp.Ising(
            sparse.coo_array(symmetric(rng, 5, ring(5, closed=False))), h, "bernoulli"
        ),
        "spin ring of five, three colours, sparse": mp.Ising(sparse.csr_array(symmetric(rng, 5, ring(5))), h),
        "spin ring, hidden uncoupled": mp.Ising(symmetric(rng, 5, ring(5)), h, hidden=[0, 2]),
        "bernoulli dense, hidden coupled": mp.Ising(symmetric(rng, 4), h[:4], "bernoulli", hidden=[1, 3]),
        "spin chain, hidden kept": mp.Ising(symmetric(rng, 5, ring(5, closed=False)), h, hidden=[1, 2, 4]),
        "no couplings": mp.Ising(np.zeros((3, 3)), h[:3]),
        "potts dense": potts(rng, [3, 3, 3], triangle),
        "potts line, two colours": potts(rng, [3, 3, 3], line),
        "potts of two states": potts(rng, [2, 2, 2, 2], [*triangle, (3, 0)]),
        "potts dense, hidden coupled": potts(rng, [3, 3, 3], triangle, [0, 2]),
        "potts mixed": potts(rng, [2, 3, 4], triangle),
        "potts mixed line": potts(rng, [3, 2, 4], line),
        "potts mixed, hidden": potts(rng, [2, 3, 2, 3], [*triangle, (3, 0)], [1, 3]),
        "order three": factor_graph(rng, [2, 3, 2], [(0, 1, 2), (1,), ()]),
        "order three, two colours": factor_graph(rng, [2, 2, 2, 2], [(0, 1, 2), (3, 1)]),
        "order three, mixed, hidden": factor_graph(
            rng, [2, 3, 2, 2, 1], [(2, 0, 1), (3, 1), (1,), (4, 3)], [1, 2]
        ),
        "order three, hidden uncoupled": factor_graph(rng, [2, 3, 2, 3], [(0, 1, 2), (3, 2)], [1, 3]),
        "pairs of two states": factor_graph(rng, [2, 2, 2], [(0, 1), (1, 0), (1, 2), (2,)]),
    }


CASES = make_cases()


def base_of(model):
    """A base with biases for visible and hidden sites."""
    rng = np.random.default_rng(99)
    return mp.Base("given", tuple(rng.normal(0, 1, layer.shape) for layer in model.uniform_layers()))


class Graph:
    """A model with its oracle, whose sites are numbered as the units in the columns of the library's arrays."""

    def __init__(self, model, base=None):
        self.model, self.base = model, base_of(model) if base is None else base
        self.mrf = model.mrf
        self.path = model.path(self.base)
        order = self.mrf.layout.order
        # `as_factors` has visible sites first, columns have their own order.
        number = np.empty(len(order), int)
        number[np.concatenate([model.visible, model.hidden])] = np.arange(len(order))
        column_of_number = np.empty(len(order), int)
        column_of_number[number[order]] = np.arange(len(order))
        cardinalities, factors, constant = model.as_factors()
        self.cardinalities = np.array(cardinalities)[number[order]]
        layers = [*self.base.biases, *model.uniform_layers()[len(self.base.biases) :]]
        values = np.array(getattr(model.unit, "values", ()))
        by_number = [row * values if values.size else row for layer in layers for row in layer]
        self.oracle = enumerate_factors(
            self.cardinalities,
            [([int(column_of_number[i]) for i in scope], table) for scope, table in factors],
            constant,
            [by_number[k] for k in number[order]],
        )
        self.kept = np.arange(self.mrf.n_state)
        self.summed_out = np.arange(self.mrf.n_state, len(order))
        self.visible = np.argsort(order)[model.visible]
        self.states, self.state_of = self.oracle.rows(self.kept)
        self.examples, _ = self.oracle.rows(self.visible)

    def p_ann(self, betas):
        """The annealing model (visible state,), by the oracle."""
        blocks = [np.asarray(block.columns) for block in self.mrf.state_blocks]
        sweep = [self.summed_out, *blocks] if len(self.summed_out) else blocks
        return self.oracle.p_ann(betas, sweep, self.summed_out, self.visible)

    def step(self, beta, following, clamped=None, reversed_sweeps=False):
        """Probability and weight (state, state) of one step of the library's reference loop, over all its draws."""
        n, outcomes = len(self.states), self.oracle.states
        start = np.repeat(self.states, len(outcomes), axis=0)
        drawn = _Dictated(np.tile(outcomes, (n, 1)))
        transition = self.path.transition.reversed() if reversed_sweeps else self.path.transition
        state = transition.move(self.path, beta, start, drawn, clamped)
        gained = self.path.log_f(following, state) - self.path.log_f(beta, state)
        matrices = np.zeros((2, n, n))
        rows, columns = np.repeat(np.arange(n), len(outcomes)), self.number(state)
        np.add.at(matrices[0], (rows, columns), np.exp(drawn.log_prob))
        np.add.at(matrices[1], (rows, columns), np.exp(drawn.log_prob + gained))
        return matrices

    def number(self, states):
        """Which of the kept sites' states (chain, unit) these are."""
        places = np.cumprod([1, *self.cardinalities[self.kept][:0:-1]])[::-1]
        codes = self.states.astype(int) @ places
        return np.searchsorted(codes, states.astype(int) @ places)

    def expected(self, segments):
        """Expected weight (state,) of the segments for a chain from each state, by the library's own steps."""
        steps = [
            self.step(beta, following, segment.clamped, segment.reversed_sweeps)[1]
            for segment in segments
            for beta, following in pairwise(segment.betas)
        ]
        weights = np.ones(len(self.states))
        for matrix in reversed(steps):
            weights = matrix @ weights
        return weights

    def raise_probabilities(self, betas, change=list):
        """E[weight] (visible state,) of RAISE, which must be p_ann."""
        keys = np.zeros((len(self.examples), 2), int)
        start = self.model.raise_start(self.path, self.examples, betas, 0, keys)
        expected = self.expected(change(start.segments))[self.number(start.state)]
        return np.exp(start.log_weights) * expected


class _Dictated:
    """A draw that hands out states chosen beforehand (chain, unit) and adds up their log probability (chain,)."""

    def __init__(self, outcomes):
        self.outcomes = outcomes
        self.log_prob = np.zeros(len(outcomes))

    def units(self, block, inputs):
        chosen = self.outcomes[:, block.columns]
        log_weights = inputs if block.unit.input_shape else np.stack([np.zeros_like(inputs), inputs], -1)
        own = np.take_along_axis(log_weights, chosen[..., np.newaxis].astype(int), axis=-1)[..., 0]
        self.log_prob += (own - logsumexp(log_weights, axis=-1)).sum(axis=1)
        return chosen
