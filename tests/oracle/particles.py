"""The generative process with N particles, enumerated: run N AIS chains, keep one by its weight, move once more.

A chain's state is the even side and the odd side is summed out of the weights, as everywhere in this method. All
follows from tables of the joint distribution.
"""

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from oracle.chains import Path
from oracle.tables import Table, add_up, all_states, code, marginal


@dataclass(frozen=True)
class ForwardChains:
    """Every AIS chain there can be: its probability, its weight (unbiased for Z) and its last even state."""

    probability: Table
    weight: Table
    end: Table


def even_f(path: Path, beta: float) -> Table:
    """f_beta (even state,), the odd side summed out."""
    return marginal(np.exp(path.log_f(beta)), path.even)


def even_move(path: Path, beta: float) -> Table:
    """The move at beta as a matrix (even state, even state): the odd side is drawn first, so it may start anywhere."""
    joint = all_states(path.even.size)
    move = path.gibbs(beta)[(joint[:, ~path.even] == 0).all(axis=1)]
    columns = code(joint[:, path.even])
    return np.stack([add_up(columns, row, 2 ** int(path.even.sum())) for row in move])


def forward_chains(path: Path, betas: Table) -> ForwardChains:
    """All AIS chains through the betas (Algorithm 1): weights are taken at s_k, moves made at s_{k+1}."""
    n = 2 ** int(path.even.sum())
    probability = even_f(path, 0.0) / path.z(0.0)
    weight, end = np.full(n, path.z(0.0)), np.arange(n)
    for k, (beta, following) in enumerate(pairwise(betas)):
        if k > 0:
            moved = even_move(path, beta)[end]  # (chain, next state)
            probability = (probability[:, np.newaxis] * moved).ravel()
            weight, end = np.repeat(weight, n), np.tile(np.arange(n), len(end))
        weight = weight * (even_f(path, following) / even_f(path, beta))[end]
    return ForwardChains(probability, weight, end)


def p_n(path: Path, betas: Table, particles: int) -> Table:
    """The law (visible state,) of the process with N particles, over all tuples of N chains."""
    chains = forward_chains(path, betas)
    last = np.zeros(2 ** int(path.even.sum()))
    for tuple_ in product(range(len(chains.end)), repeat=particles):
        which = np.array(tuple_)
        weights = chains.weight[which]
        kept = weights / weights.sum() * np.prod(chains.probability[which])
        last += add_up(chains.end[which], kept, len(last))
    units = np.flatnonzero(path.even)
    return marginal(last @ even_move(path, 1.0), path.visible[units])
