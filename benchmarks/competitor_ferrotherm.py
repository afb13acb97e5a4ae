"""Gibbs sweeps of Ising models by ferrotherm, colour by colour, beta after beta. Runs in .venv-bench."""

# pyright: reportMissingImports=false
from collections.abc import Callable
from importlib.metadata import version

import ferrotherm
import numpy as np

NAME = f"ferrotherm {version('ferrotherm')}"


def prepare(problem: dict[str, np.ndarray], chains: int, steps: int, threads: int) -> Callable[[], float]:
    """A function that takes one chain after the other through the betas; it has no log Z to give."""
    model = ferrotherm.Model(int(problem["sites"]))
    triples = (problem["rows"], problem["columns"], problem["couplings"])
    model.couple_many(list(zip(*(array.tolist() for array in triples), strict=True)))
    chain = model.build(beta=1.0, seed=1)

    def run(steps: int) -> float:
        for _ in range(chains):
            for beta in np.linspace(0, 1, steps).tolist():
                chain.beta = max(beta, 1e-6)  # it refuses 0
                chain.sweep(1, threads=threads)
        return 0.0

    run(2)
    return lambda: run(steps)
