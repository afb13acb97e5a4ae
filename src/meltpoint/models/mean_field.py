"""Mean-field rates of a deep Boltzmann machine's hidden units, for the proposals of importance sampling.

Any proposal is valid, as long as its own probabilities enter the weights; so sums are in float32, the visible units'
share of the inputs is computed once, and an example leaves as soon as it has settled. Rows are always as many
together, because products of other shapes round otherwise, and an example's draws may not depend on its neighbours.
"""

import numpy as np
from numpy.typing import NDArray

from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.bipartite import Bipartite

_ROWS = 64
_SWEEPS = 200
_TOLERANCE = 1e-3  # a bound at its maximum loses the square of this
_LIMIT = np.float32(80.0)  # of inputs: exp(80) is a float32


def settled_rates(two: Bipartite, n_visible: int, weights: Floats, visible: Bits) -> tuple[Floats, Floats]:
    """Rates (example, even hidden unit) and (example, odd unit) of the factorial posterior given visible states.

    `weights` (even hidden unit, odd unit) are those of `two` without its visible units. Odd and even hidden units are
    updated in turn until no even rate of the example changes by more than a tolerance.
    """
    down = weights.astype(np.float32)
    up = np.ascontiguousarray(down.T)
    even_bias = two.even_bias[n_visible:].astype(np.float32)
    padded = np.pad(visible, ((0, 0), (0, two.n_even - n_visible)))
    from_visible = (two.odd_field(padded) + two.odd_bias).astype(np.float32)
    even_rates, odd_rates = np.empty((len(visible), len(down))), np.empty(from_visible.shape)
    even = np.zeros((_ROWS, len(down)), np.float32)
    given = np.zeros((_ROWS, down.shape[1]), np.float32)
    example = np.full(_ROWS, -1)  # whose rates a row holds, if any
    sweeps = np.zeros(_ROWS, np.int64)
    waiting = 0
    while True:
        free = np.flatnonzero(example < 0)[: len(visible) - waiting]
        if free.size:
            example[free] = np.arange(waiting, waiting + free.size)
            given[free], even[free], sweeps[free] = from_visible[example[free]], _expit(even_bias), 0
            waiting += free.size
        if (example < 0).all():
            return even_rates, odd_rates
        odd = _expit(even @ down + given)
        new = _expit(odd @ up + even_bias)
        sweeps += 1
        done = (np.abs(new - even).max(axis=1, initial=0.0) < _TOLERANCE) | (sweeps >= _SWEEPS)
        done = np.flatnonzero(done & (example >= 0))
        even = new
        even_rates[example[done]] = new[done]
        odd_rates[example[done]] = odd[done]
        example[done] = -1


def _expit(inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / (1 + exp(-inputs)); the whole array at once."""
    decay = np.clip(inputs, -_LIMIT, _LIMIT)
    np.exp(np.negative(decay, out=decay), out=decay)
    decay += np.float32(1.0)
    return np.reciprocal(decay, out=decay)
