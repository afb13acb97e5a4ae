"""Random parameters for tests. Weights are strong, so that a mistake shows in the first digits."""

from itertools import pairwise

import numpy as np

from oracle.tables import Layers


def layers(rng: np.random.Generator, sizes: list[int], scale: float = 2.5) -> Layers:
    """A layered machine with normal weights and biases."""
    weights = [rng.normal(0, scale, pair) for pair in pairwise(sizes)]
    biases = [rng.normal(0, scale / 2, size) for size in sizes]
    return Layers(tuple(weights), tuple(biases))


SCHEDULES = {
    "two betas": np.array([0.0, 1.0]),
    "linear": np.linspace(0, 1, 5),
    "squared": np.linspace(0, 1, 5) ** 2,
    "uneven": np.array([0.0, 0.03, 0.4, 0.45, 0.99, 1.0]),
}
