"""Enumerated graphs: sites of any numbers of states, log f of every joint state from its factors and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]
Sites = NDArray[np.integer]


@dataclass(frozen=True)
class Enumerated:
    """Every joint state (state, site), and its log f (state,) in a base of independent sites and in the model."""

    states: NDArray[np.uint8]
    log_f_base: Table
    log_f_model: Table

    def log_f(self, beta: float) -> Table:
        """On the path between the two."""
        return (1 - beta) * self.log_f_base + beta * self.log_f_model

    def z(self, beta: float) -> float:
        """The normaliser at beta."""
        return float(np.exp(self.log_f(beta)).sum())

    def p(self, beta: float) -> Table:
        """The distribution (state,) at beta."""
        return np.exp(self.log_f(beta)) / self.z(beta)

    def redraw(self, beta: float, sites: Sites) -> Table:
        """Transition matrix that draws these sites given the others at beta."""
        _, others = self.rows(np.setdiff1d(np.arange(self.states.shape[1]), sites))
        joint = np.where(others[:, np.newaxis] == others, self.p(beta), 0.0)
        return joint / joint.sum(axis=1, keepdims=True)

    def rows(self, sites: Sites) -> tuple[NDArray[np.uint8], Sites]:
        """Every joint state of some sites, and which of them each joint state of all sites has."""
        rows, which = np.unique(self.states[:, sites], axis=0, return_inverse=True)
        return rows, which.reshape(-1)

    def marginal(self, distribution: Table, sites: Sites) -> Table:
        """A distribution (state,) of all sites as one of these sites, in the order of `rows`."""
        rows, which = self.rows(sites)
        return np.bincount(which, distribution, len(rows))

    def p_ann(self, betas: Table, sweep: Sequence[Sites], last: Sites, visible: Sites) -> Table:
        """The annealing model of visible sites: p_0, a sweep at each further beta, and one more draw of `last`."""
        distribution = self.p(betas[0])
        for beta in betas[1:]:
            for sites in sweep:
                distribution = distribution @ self.redraw(beta, sites)
        if len(last):
            distribution = distribution @ self.redraw(1.0, last)
        return self.marginal(distribution, visible)


def enumerate_factors(
    cardinalities: Sequence[int],
    factors: Sequence[tuple[Sequence[int], Table]],
    constant: float,
    base: Sequence[Table],
) -> Enumerated:
    """All states of sites with these factors; `base` has the log weights (state,) of each site in the base."""
    states = np.array(list(product(*map(range, cardinalities))), np.uint8)
    log_f_model = np.full(len(states), constant)
    for scope, table in factors:
        log_f_model += table[tuple(states[:, i] for i in scope)]
    log_f_base = np.zeros(len(states))
    for i, weights in enumerate(base):
        log_f_base += np.asarray(weights)[states[:, i]]
    return Enumerated(states, log_f_base, log_f_model)
