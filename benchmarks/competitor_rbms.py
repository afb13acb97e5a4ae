"""AIS of an RBM by the library `rbms`, through its own function. Runs in .venv-bench.

Its base distribution is fixed, the model's own visible biases: the work of a step is the same.
"""

# pyright: reportMissingImports=false
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import torch
from rbms.bernoulli_bernoulli.classes import BBRBM
from rbms.partition_function.ais import compute_partition_function_ais

NAME = f"rbms {version('rbms')}"


def prepare(problem: dict[str, np.ndarray], chains: int, steps: int, threads: int) -> Callable[[], float]:
    """A function that runs AIS once and returns log Z."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    parameters = (torch.from_numpy(problem[name]) for name in ("weights", "visible_bias", "hidden_bias"))
    model = BBRBM(*parameters)

    def run(steps: int) -> float:
        return compute_partition_function_ais(num_chains=chains, num_beta=steps + 1, params=model)

    run(3)
    return lambda: run(steps)
