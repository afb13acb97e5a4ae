"""AIS of an RBM in JAX: one jitted scan over the betas. Runs in .venv-bench."""

# pyright: reportMissingImports=false
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

NAME = f"JAX {jax.__version__}, jitted scan"


def prepare(problem: dict[str, np.ndarray], chains: int, steps: int, threads: int) -> Callable[[], float]:
    """A function that runs AIS once and returns log Z. XLA takes the cores that the process may use."""
    weights, visible_bias, hidden_bias, base = (
        jnp.asarray(problem[name]) for name in ("weights", "visible_bias", "hidden_bias", "base")
    )
    n_visible, n_hidden = weights.shape
    slope = visible_bias - base

    def step(carry, betas):
        field, log_weights, key = carry
        beta, following = betas
        key, hidden_key, visible_key = jax.random.split(key, 3)
        hidden = jax.random.uniform(hidden_key, (chains, n_hidden)) < jax.nn.sigmoid(beta * field)
        visible_field = beta * (hidden.astype(jnp.float32) @ weights.T) + (base + beta * slope)
        drawn = jax.random.uniform(visible_key, (chains, n_visible)) < jax.nn.sigmoid(visible_field)
        visible = drawn.astype(jnp.float32)
        field = visible @ weights + hidden_bias
        change = (jax.nn.softplus(following * field) - jax.nn.softplus(beta * field)).sum(axis=1)
        log_weights += change + (following - beta) * (visible @ slope)
        return (field, log_weights, key), None

    def ais(betas, key):
        start = (jnp.zeros((chains, n_hidden)), jnp.zeros(chains), key)
        (_, log_weights, _), _ = jax.lax.scan(step, start, (betas[:-1], betas[1:]))
        log_z = jax.scipy.special.logsumexp(log_weights) - jnp.log(chains)
        return log_z + jax.nn.softplus(base).sum() + n_hidden * jnp.log(2.0)

    betas = jnp.linspace(0, 1, steps + 1, dtype=jnp.float32)
    key = jax.random.key(0)  # Threefry: half the time of JAX's other generators on a CPU
    compiled = jax.jit(ais).lower(betas, key).compile()
    return lambda: float(compiled(betas, key))
