"""Gibbs sampling of Potts models by adabmDCA, through its own function, on the CPU. Runs in .venv-bench."""

# pyright: reportMissingImports=false
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import torch
from adabmDCA.sampling import gibbs_sampling

NAME = f"adabmDCA {version('adabmDCA')}"


def prepare(problem: dict[str, np.ndarray], chains: int, steps: int, threads: int) -> Callable[[], float]:
    """A function that sweeps all chains once for every beta; it has no log Z to give."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    fields, tables = (torch.from_numpy(problem[name].astype(np.float32)) for name in ("fields", "tables"))
    n_sites, n_states = fields.shape
    parameters = {"bias": fields, "coupling_matrix": tables.permute(0, 2, 1, 3).contiguous()}
    states = torch.randint(0, n_states, (chains, n_sites))
    state = torch.nn.functional.one_hot(states, n_states).float()

    def run(steps: int) -> float:
        chain = state
        for beta in np.linspace(0, 1, steps).tolist():
            chain = gibbs_sampling(chain, parameters, 1, beta)
        return 0.0

    run(1)
    return lambda: run(steps)
