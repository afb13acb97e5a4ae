"""Simulated annealing of Ising models by dwave-samplers, with its Gibbs updates. Runs in .venv-bench."""

# pyright: reportMissingImports=false
from collections.abc import Callable
from importlib.metadata import version

import dimod
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler

NAME = f"dwave-samplers {version('dwave-samplers')}"


def prepare(problem: dict[str, np.ndarray], chains: int, steps: int, threads: int) -> Callable[[], float]:
    """A function that takes every chain through the betas once; it has no log Z to give."""
    assert threads == 1, "it has one"
    pairs = zip(problem["rows"].tolist(), problem["columns"].tolist(), strict=True)
    couplings = dict(zip(pairs, (-problem["couplings"]).tolist(), strict=True))
    sites = dict.fromkeys(range(int(problem["sites"])), 0.0)
    model = dimod.BinaryQuadraticModel(sites, couplings, 0.0, "SPIN")
    sampler = SimulatedAnnealingSampler()

    def run(steps: int) -> float:
        sampler.sample(
            model,
            num_reads=chains,
            beta_schedule_type="custom",
            beta_schedule=np.linspace(0, 1, steps),
            num_sweeps_per_beta=1,
            proposal_acceptance_criteria="Gibbs",
            seed=1,
        )
        return 0.0

    run(2)
    return lambda: run(steps)
