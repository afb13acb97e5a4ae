"""The yardsticks: the matrix products of a step and nothing else, and the loop in plain NumPy."""

import time

import numpy as np
from cases import Case

from meltpoint.annealing.blocks import GeneratorDraws, Segment
from meltpoint.annealing.schedule import as_betas
from meltpoint.backends.reference import anneal_reference
from meltpoint.models import Model


class DenseBound:
    """Nothing but a step's float32 matrix products, of so many chains, into arrays that are there."""

    def __init__(self, model: Model, chains: int) -> None:
        rng = np.random.default_rng(0)
        self._chains = chains
        self._products = []
        two = model.bipartite
        assert two is not None
        for block in two.blocks:
            weights = block.weights.astype(np.float32)
            for w in (weights, weights.T):
                state = (rng.random((chains, w.shape[0]), np.float32) < 0.5).astype(np.float32)
                self._products.append((state, w, np.empty((chains, w.shape[1]), np.float32)))

    def rate(self, seconds: float) -> float:
        """Chain-steps per second, measured for at least so many seconds."""
        start = time.perf_counter()
        rounds = 0
        while (elapsed := time.perf_counter() - start) < seconds:
            for state, weights, out in self._products:
                np.matmul(state, weights, out=out)
            rounds += 1
        return self._chains * rounds / elapsed


def reference_rate(case: Case, chains: int, seconds: float) -> float:
    """Chain-steps per second of the NumPy reference on one AIS schedule of at least so many seconds."""
    path = case.model.path(case.base)
    draws = GeneratorDraws([np.random.default_rng(0)], chains)

    def run(steps: int) -> float:
        start = time.perf_counter()
        state = np.zeros((chains, path.n_state), path.dtype)
        anneal_reference(path, Segment(as_betas(steps)), state, draws)
        return time.perf_counter() - start

    pilot = 20
    steps = max(pilot, round(pilot * seconds / run(pilot)))
    return chains * steps / run(steps)
