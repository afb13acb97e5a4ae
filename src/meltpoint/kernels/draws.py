"""Draws of layers of units (example, unit) from their means, row after row of one stream of random numbers."""

import numpy as np

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.streams import LANES, fill_uniforms


@compiled
def draw_bits(probabilities: np.ndarray, state: np.ndarray, out: np.ndarray) -> None:
    """Fill out (example, unit) with zeros and ones; state advances."""
    width = probabilities.shape[1]
    uniforms = np.empty((width + LANES - 1) // LANES * LANES, dtype=np.float32)
    one, zero = out.dtype.type(1), out.dtype.type(0)
    for row in range(probabilities.shape[0]):
        fill_uniforms(state, 0, uniforms, uniforms.size)
        p, units = probabilities[row], out[row]
        for j in range(width):
            units[j] = one if uniforms[j] <= p[j] else zero


@compiled
def draw_counts(probabilities: np.ndarray, state: np.ndarray, out: np.ndarray) -> None:
    """Fill out (example, unit) with the number of ones, 0 to 2, in two draws of each unit; state advances."""
    width = probabilities.shape[1]
    uniforms = np.empty((2 * width + LANES - 1) // LANES * LANES, dtype=np.float32)
    one, zero = out.dtype.type(1), out.dtype.type(0)
    for row in range(probabilities.shape[0]):
        fill_uniforms(state, 0, uniforms, uniforms.size)
        p, units = probabilities[row], out[row]
        for j in range(width):
            first = one if uniforms[j] <= p[j] else zero
            units[j] = first + (one if uniforms[width + j] <= p[j] else zero)


@compiled
def draw_states(probabilities: np.ndarray, state: np.ndarray, out: np.ndarray, q: int) -> None:
    """Set one of the q numbers of each site to one in out (example, site and state), which is zero; state advances."""
    n_sites = probabilities.shape[1] // q
    uniforms = np.empty((n_sites + LANES - 1) // LANES * LANES, dtype=np.float32)
    for row in range(probabilities.shape[0]):
        fill_uniforms(state, 0, uniforms, uniforms.size)
        p, units = probabilities[row], out[row]
        for site in range(n_sites):
            first, rest = site * q, uniforms[site]
            s = 0
            while s < q - 1 and rest > p[first + s]:
                rest -= p[first + s]
                s += 1
            units[first + s] = 1
