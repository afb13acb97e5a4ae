"""Mean-field rates of a deep Boltzmann machine's hidden units, for the proposals of importance sampling.

Any proposal is valid, as long as its own probabilities enter the weights; so sums are in float32, the visible units'
share of the inputs is computed once, and an example leaves as soon as it has settled.
"""

import numpy as np

from meltpoint.kernels.ordered import ordered_product, strips_for_products
from meltpoint.kernels.sigmoid import sigmoid
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.bipartite import Bipartite

_SWEEPS = 200
_TOLERANCE = 1e-3  # a bound at its maximum loses the square of this


def settled_rates(two: Bipartite, n_visible: int, weights: Floats, visible: Bits) -> tuple[Floats, Floats]:
    """Rates (example, even hidden unit) and (example, odd unit) of the factorial posterior given visible states.

    `weights` (even hidden unit, odd unit) are those of `two` without its visible units. Odd and even hidden units are
    updated in turn until no even rate of the example changes by more than a tolerance.
    """
    down, up = (strips_for_products(each.astype(np.float32)) for each in (weights, weights.T))
    even_bias = two.even_bias[n_visible:].astype(np.float32)
    padded = np.pad(visible, ((0, 0), (0, two.n_even - n_visible)))
    given = (two.odd_field(padded) + two.odd_bias).astype(np.float32)
    even_rates, odd_rates = np.empty((len(visible), len(weights))), np.empty(given.shape)
    moving = np.arange(len(visible))
    even = np.tile(sigmoid(even_bias), (len(visible), 1))
    for sweep in range(_SWEEPS):
        odd = sigmoid(ordered_product(even, down) + given)
        new = sigmoid(ordered_product(odd, up) + even_bias)
        settled = np.abs(new - even).max(axis=1, initial=0.0) < _TOLERANCE
        if sweep == _SWEEPS - 1:
            settled[:] = True
        if settled.any():
            even_rates[moving[settled]], odd_rates[moving[settled]] = new[settled], odd[settled]
            moving, given, new = moving[~settled], given[~settled], new[~settled]
        even = new
        if moving.size == 0:
            break
    return even_rates, odd_rates
