"""Deep Boltzmann machines of any depth (paper, section 2.1)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.arguments import Count, Seed, public
from meltpoint.errors import InputError
from meltpoint.kernels.importance import SummedOut, drawable, weigh_draws
from meltpoint.kernels.ordered import ordered_product, strips_for_products
from meltpoint.kernels.sigmoid import sigmoid, sum_softplus
from meltpoint.kernels.streams import Streams
from meltpoint.layers import Unit, unit_named
from meltpoint.layers.unit import Floats, States
from meltpoint.models import checks
from meltpoint.models.bipartite import BipartiteModel, Layers
from meltpoint.models.log_f import ENUMERATED, SAMPLES, LogFMethod, corners, estimate_log_f, exact_log_f
from meltpoint.models.model import ParameterArrays
from meltpoint.randomness import Purpose
from meltpoint.statistics.elementary import log1p, logit
from meltpoint.statistics.log_space import log_sum_exp

_TOLERANCE = 1e-3  # of mean fields that are proposals: a bound at its maximum loses the square of this
_LEAST_RATE = 1e-6


@dataclass(frozen=True, init=False, repr=False, eq=False)
class DBM(BipartiteModel):
    """A DBM: log f = sum of biases[k]·h_k and of h_k·weights[k]·h_{k+1}, where h_0 is visible.

    Parameters
    ----------
    weights
        One (layer k, layer k+1) matrix for every pair of neighbouring layers.
    biases
        One vector for every layer, visible first.
    units
        "bernoulli" for units in {0, 1}, "spin" for units in {-1, +1}, or a list with one for every layer.

    >>> DBM(weights=[np.zeros((6, 4)), np.zeros((4, 3))], biases=[np.zeros(6), np.zeros(4), np.zeros(3)])
    DBM 6-4-3
    """

    kind = "DBM"

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    layer_units: tuple[Unit, ...]

    @public
    def __init__(
        self,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        *,
        units: str | Unit | Sequence[str | Unit] = "bernoulli",
    ) -> None:
        if len(weights) == 0 or len(biases) != len(weights) + 1:
            raise InputError(
                found=f"{len(weights)} weight matrices and {len(biases)} bias vectors",
                expected="at least one matrix, and one more bias vector than matrices",
                remedy="DBM(weights=[W1, W2], biases=[visible, hidden1, hidden2])",
            )
        ws = [checks.parameter(w, f"weights[{k}]", 2) for k, w in enumerate(weights)]
        for k, (lower, upper) in enumerate(itertools.pairwise(ws)):
            if lower.shape[1] != upper.shape[0]:
                raise InputError(
                    found=f"weights[{k}] of shape {lower.shape} below weights[{k + 1}] of shape {upper.shape}",
                    expected=f"{lower.shape[1]} rows in weights[{k + 1}], one for each unit of hidden layer {k + 1}",
                    remedy="is one of them transposed? weights[k] is (units of layer k, units of layer k+1)",
                )
        sizes = [ws[0].shape[0], *(w.shape[1] for w in ws)]
        bs = [
            checks.bias(b, f"biases[{k}]", size, f"unit of layer {k}")
            for k, (b, size) in enumerate(zip(biases, sizes, strict=True))
        ]
        kinds = checks.unit_names(units, len(sizes))
        self._set(weights=tuple(ws), biases=tuple(bs), layer_units=tuple(map(unit_named, kinds)))

    @property
    def units(self) -> tuple[Unit, ...]:
        return self.layer_units

    @cached_property
    def layers(self) -> Layers:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Layers(self.weights, self.biases)

    def log_f(self, x: ArrayLike, *, samples: Count = SAMPLES, seed: Seed = 0) -> Floats:
        """Log unnormalised probability (example,) of visible states, estimated by importance sampling.

        With one hidden layer, or up to ten hidden units on one side, nothing is left to estimate, and it is exact.

        >>> DBM([np.zeros((2, 3))], [np.zeros(2), np.zeros(3)]).log_f([[0, 1]]).round(4)
        array([2.0794])
        """
        return self.log_f_estimate(x, samples=samples, seed=seed).values

    def log_f_method(self, samples: int = SAMPLES, seed: int = 0, threads: int = 1) -> LogFMethod:
        """Log f with standard errors and the mean-field lower bound.

        The proposal is the mean-field posterior of the even hidden layers; the odd layers are summed out. Where one
        side has few hidden units all their states are added up instead.
        """
        if len(self.weights) == 1:
            return partial(exact_log_f, log_f=self.mrf.log_f)
        two = self.mrf
        if 2 ** min(two.n_even - self.n_visible, two.n_odd) <= ENUMERATED:
            return partial(exact_log_f, log_f=self._add_up)
        if not self._hidden_weights.any():
            return partial(exact_log_f, log_f=self._factorised)

        return partial(
            estimate_log_f, weigh=partial(self._weigh, samples=samples, seed=seed, threads=threads)
        )

    def _add_up(self, visible: States) -> Floats:
        """Log f (example,): the states of one side's hidden units are added up, those of the other summed out."""
        two, n = self.mrf, self.n_visible
        weights = self._hidden_weights
        from_visible = two.odd_field(self._padded(visible))
        log_f: Any
        if two.n_even - n <= two.n_odd:
            states = corners(two.n_even - n)
            log_weights = ordered_product(states, two.even_bias[n:])
            within = ordered_product(states, weights) + two.odd_bias
            log_f = [log_sum_exp(log_weights + sum_softplus(within + given)) for given in from_visible]
        else:
            states = corners(two.n_odd)
            within = ordered_product(states, weights.T) + two.even_bias[n:]
            log_weights = ordered_product(states, two.odd_bias) + sum_softplus(within)
            log_f = log_sum_exp(
                ordered_product(from_visible, states.T.astype(np.float64)) + log_weights, axis=1
            )
        return np.asarray(log_f) + ordered_product(visible, two.even_bias[:n]) + two.log_constant

    def _factorised(self, visible: States) -> Floats:
        """Log f (example,) where hidden layers are not coupled to each other."""
        two = self.mrf
        return two.log_f(self._padded(visible)) + sum_softplus(two.even_bias[self.n_visible :])

    def mean_field(
        self,
        visible: States,
        *,
        sweeps: int = 200,
        tolerance: float = 1e-6,
        dtype: type[np.floating] = np.float64,
    ) -> tuple[Floats, Floats]:
        """Rates (example, even unit) and (example, odd unit) of the factorial posterior; visible rates are the data.

        `visible` are states, and rates are probabilities of state 1 (a spin's +1). Odd and even hidden units are
        updated in turn until no even rate of the example changes by more than the tolerance. Each update is exact given
        the other side, so the lower bound rises with every sweep.
        """
        two, weights = self.mrf, self._hidden_weights
        down, up = (strips_for_products(each.astype(dtype)) for each in (weights, weights.T))
        even_bias = two.even_bias[self.n_visible :].astype(dtype)
        given = (two.odd_field(self._padded(visible)) + two.odd_bias).astype(dtype)
        even_rates, odd_rates = np.empty((len(visible), two.n_even)), np.empty(given.shape)
        even_rates[:, : self.n_visible] = visible
        moving = np.arange(len(visible))
        even = np.tile(sigmoid(even_bias), (len(visible), 1))
        for sweep in range(sweeps):
            odd = sigmoid(ordered_product(even, down) + given)
            new = sigmoid(ordered_product(odd, up) + even_bias)
            settled = np.abs(new - even).max(axis=1, initial=0.0) < tolerance
            settled |= sweep == sweeps - 1
            even_rates[moving[settled], self.n_visible :] = new[settled]
            odd_rates[moving[settled]] = odd[settled]
            moving, given, even = moving[~settled], given[~settled], new[~settled]
            if moving.size == 0:
                break
        return even_rates, odd_rates

    def _padded(self, visible: States) -> States:
        """Even states whose hidden units are 0."""
        return np.pad(visible, ((0, 0), (0, self.mrf.n_even - self.n_visible)))

    def _weigh(
        self, visible: States, numbers: NDArray[np.integer], samples: int, seed: int, threads: int
    ) -> tuple[Floats, Floats]:
        """Log of f(v, even hidden) / q(even hidden | v) for samples of q (example, sample), and the bound."""
        two, n = self.mrf, self.n_visible
        # Any proposal is valid, as long as its own probabilities enter the weights.
        even, odd = self.mean_field(visible, tolerance=_TOLERANCE, dtype=np.float32)
        rates = drawable(np.clip(even[:, n:], _LEAST_RATE, 1 - _LEAST_RATE))
        linear = two.even_bias[n:] - logit(rates)
        sums, softplus = weigh_draws(
            self._drawn_to_odd,
            self._drawn_to_odd.inputs([two.odd_field(self._padded(visible)) + two.odd_bias]),
            rates[np.newaxis],
            np.zeros(samples, np.int64),
            linear[:, :, np.newaxis],
            Streams(seed, Purpose.LOG_F, numbers).generators(),
            threads,
        )
        constant = ordered_product(visible, two.even_bias[:n]) - log1p(-rates).sum(axis=1)
        constant += two.log_constant
        return sums[:, :, 0] + softplus + constant[:, np.newaxis], two.mean_field_bound(even, odd, n)

    @cached_property
    def _hidden_weights(self) -> Floats:
        """Weights (even hidden unit, odd unit)."""
        two = self.mrf
        weights = np.zeros((two.n_even, two.n_odd))
        for even, odd, block in two.placed_blocks:
            weights[even, odd] = block.weights
        return weights[self.n_visible :]

    @cached_property
    def _drawn_to_odd(self) -> SummedOut:
        return SummedOut.of([(1.0, self._hidden_weights)])

    def arrays(self) -> ParameterArrays:
        """Parameters by the names they have in a file; layers count from 1."""
        values = [self.biases[0], *itertools.chain(*zip(self.weights, self.biases[1:], strict=True))]
        return dict(zip(_array_names(len(self.weights)), values, strict=True))

    @classmethod
    def array_names(cls, present: set[str]) -> list[str]:
        return _array_names(sum(name.startswith("weights_") for name in present))

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "DBM":
        return cls(arrays[1::2], [arrays[0], *arrays[2::2]], units=units or "bernoulli")


def _array_names(depth: int) -> list[str]:
    own = ("weights", "hidden_bias")
    return ["visible_bias", *(f"{name}_{layer}" for layer in range(1, depth + 1) for name in own)]
