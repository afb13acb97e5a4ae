"""AIS of an RBM in eager PyTorch: two products per step, everything else in place. Runs in .venv-bench."""

# pyright: reportMissingImports=false
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch

NAME = f"PyTorch {torch.__version__.split('+')[0]}, eager"


def prepare(problem: dict[str, np.ndarray], chains: int, steps: int, threads: int) -> Callable[[], float]:
    """A function that runs AIS once and returns log Z."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    weights, visible_bias, hidden_bias, base = (
        torch.from_numpy(problem[name]) for name in ("weights", "visible_bias", "hidden_bias", "base")
    )
    n_visible, n_hidden = weights.shape
    slope = visible_bias - base
    v = torch.empty(chains, n_visible)
    v_rate = torch.empty(chains, n_visible)
    h = torch.empty(chains, n_hidden)
    h_rate = torch.empty(chains, n_hidden)
    field = torch.empty(chains, n_hidden)  # v @ W + hidden bias: serves this weight and the next draw
    zero = torch.zeros(())

    def run(steps: int) -> float:
        betas = np.linspace(0, 1, steps + 1).tolist()
        log_weights = torch.zeros(chains, dtype=torch.float64)
        field.zero_()
        for beta, following in pairwise(betas):
            torch.mul(field, beta, out=h_rate).sigmoid_()
            h.uniform_().lt_(h_rate)
            torch.addmm(base + beta * slope, h, weights.T, alpha=beta, out=v_rate).sigmoid_()
            v.uniform_().lt_(v_rate)
            torch.addmm(hidden_bias, v, weights, out=field)
            torch.logaddexp(torch.mul(field, following, out=h_rate), zero, out=h_rate)
            torch.logaddexp(torch.mul(field, beta, out=h), zero, out=h)
            log_weights += h_rate.sub_(h).sum(dim=1).add_(v @ slope, alpha=following - beta)
        log_z = torch.logsumexp(log_weights, 0) - np.log(chains)
        return float(log_z + torch.nn.functional.softplus(base).sum() + n_hidden * np.log(2))

    run(3)
    return lambda: run(steps)
