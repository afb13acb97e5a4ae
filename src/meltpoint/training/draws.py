"""Bernoulli units: probabilities and draws from inputs, fused so that they cost little beside the products.

The random numbers come from the 32 interleaved generators of the annealing kernels. Their state is an
argument, made by `stream` from a seed and a key.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.kernels.compiling import compiled
from meltpoint.annealing.kernels.numerics import LIMIT, exp
from meltpoint.annealing.kernels.xoshiro import LANES, fill_uniforms
from meltpoint.randomness import Purpose, sequence
from meltpoint.training.sparse import Lists, append_row, list_rows


@dataclass(frozen=True)
class Drawn:
    """Units (example, unit), zeros and ones or their sums over two copies, and the lists of those that are on."""

    units: NDArray[np.uint8]
    lists: Lists

    def __len__(self) -> int:
        return len(self.units)

    @property
    def density(self) -> float:
        """Share of units that are on, those that count twice taken twice."""
        return float(self.lists.starts[-1]) / self.units.size

    def doubled(self) -> "Drawn":
        """Two copies of every unit, equal to each other."""
        starts, columns = self.lists
        twice = Lists(2 * starts, np.repeat(columns[: starts[-1]], 2))
        return Drawn(self.units * np.uint8(2), twice)


def drawn_of(units: NDArray[np.uint8]) -> Drawn:
    """Given zeros, ones and twos (example, unit) as if they had been drawn."""
    return Drawn(units, list_rows(units))


def stream(seed: int, *key: int) -> NDArray[np.uint32]:
    """Generators (1, 4, lane) of one key (stage, epoch, …) of a training run."""
    words = sequence(seed, Purpose.TRAINING, *key).generate_state(4 * LANES, np.uint32)
    return words.astype(np.uint32).reshape(1, 4, LANES)


def draw(probabilities: NDArray[np.floating], stream: NDArray[np.uint32], copies: int = 1) -> Drawn:
    """Units that are on with these probabilities (example, unit), summed over 1 or 2 copies; the stream advances."""
    units = np.empty(probabilities.shape, np.uint8)
    starts = np.zeros(len(units) + 1, np.int64)
    columns = np.empty(copies * units.size + 2, np.uint32)
    _draw(probabilities, stream, copies, units, starts, columns)
    return Drawn(units, Lists(starts, columns))


@compiled
def _draw(
    probabilities: np.ndarray,
    stream: np.ndarray,
    copies: int,
    units: np.ndarray,
    starts: np.ndarray,
    columns: np.ndarray,
) -> None:
    width = probabilities.shape[1]
    uniforms = np.empty((copies * width + LANES - 1) // LANES * LANES, np.float32)
    n = 0
    for row in range(probabilities.shape[0]):
        fill_uniforms(stream, 0, uniforms, uniforms.size)
        p, on = probabilities[row], units[row]
        for j in range(width):
            on[j] = 1 if uniforms[j] <= p[j] else 0
        if copies == 2:
            for j in range(width):
                on[j] += np.uint8(1 if uniforms[width + j] <= p[j] else 0)
        n = append_row(on, columns, n)
        starts[row + 1] = n


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
