"""Bernoulli units: probabilities and draws from inputs, fused so that they cost little beside the products.

The random numbers come from the 32 interleaved generators of the annealing kernels. Their state is an
argument, made from a `SeedSequence` by `stream`.
"""

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.kernels.compiling import compiled
from meltpoint.annealing.kernels.numerics import LIMIT, exp
from meltpoint.annealing.kernels.xoshiro import LANES, fill_uniforms
from meltpoint.randomness import Purpose, sequence


def stream(seed: int, *key: int) -> NDArray[np.uint32]:
    """Generators (1, 4, lane) of one key (stage, epoch, …) of a training run."""
    words = sequence(seed, Purpose.TRAINING, *key).generate_state(4 * LANES, np.uint32)
    return words.astype(np.uint32).reshape(1, 4, LANES)


@compiled
def switch_on(field: np.ndarray, bias: np.ndarray) -> None:
    """Replace inputs (example, unit) by the probabilities sigmoid(field + bias) of being on."""
    t = np.empty(field.shape[1], field.dtype)  # a loop that reads and writes one array is not vectorised
    for row in range(field.shape[0]):
        t[:] = field[row]
        _sigmoid(t, bias, field[row])


@compiled
def _sigmoid(field: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    one, limit = out.dtype.type(1), out.dtype.type(LIMIT)
    for j in range(field.size):
        t = field[j] + bias[j]
        t = t if t < limit else limit
        t = t if t > -limit else -limit
        out[j] = one / (one + exp(-t))


@compiled
def draw(probabilities: np.ndarray, state: np.ndarray, out: np.ndarray) -> None:
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
def draw_pairs(probabilities: np.ndarray, state: np.ndarray, out: np.ndarray) -> None:
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
