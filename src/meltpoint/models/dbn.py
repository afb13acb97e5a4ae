"""Deep belief networks: directed sigmoid layers below an RBM (paper, sections 2.1 and 3.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.base import Base
from meltpoint.annealing.blocks import RaiseStart, Segment
from meltpoint.annealing.path import Path
from meltpoint.arguments import Count, Seed, public
from meltpoint.errors import InputError
from meltpoint.kernels.importance import SummedOut, weigh_draws
from meltpoint.kernels.ordered import ordered_product
from meltpoint.kernels.sigmoid import sigmoid, sum_softplus
from meltpoint.kernels.streams import Streams
from meltpoint.layers import Unit, unit_named
from meltpoint.layers.unit import Floats, States
from meltpoint.models import checks
from meltpoint.models.annealed_posterior import annealed_log_weights
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.log_f import (
    ENUMERATED,
    SAMPLES,
    LogFMethod,
    block_that_fits,
    corners,
    draw_given,
    estimate_log_f,
    exact_log_f,
    log_bernoulli,
)
from meltpoint.models.model import Model, ParameterArrays, Uniforms
from meltpoint.models.posterior import Directed, Mixture, Posterior
from meltpoint.models.rbm import RBM
from meltpoint.randomness import Purpose, generator
from meltpoint.statistics.log_space import log_sum_exp

_DIRECTED = ("weights", "visible_bias", "recognition_bias")
_CONTROL_EXAMPLES = 64  # whose hidden layers are annealed


@dataclass(frozen=True, init=False, repr=False, eq=False)
class DBN(Model):
    """A DBN: directed layers, lowest first, and the RBM on top.

    Parameters
    ----------
    directed
        (weights, visible_bias, recognition_bias) of each directed layer, weights (lower, upper).
    top
        The RBM on top.
    units
        Kinds of the lower units of the directed layers: one for all, or a list. Left out, they are as the top
        RBM's visible units.

    >>> top = RBM(np.zeros((4, 5)), np.zeros(4), np.zeros(5))
    >>> DBN(directed=[(np.zeros((6, 4)), np.zeros(6), np.zeros(4))], top=top)
    DBN 6-4-5
    """

    kind = "DBN"

    directed: tuple[Directed, ...]
    top: RBM
    directed_units: tuple[Unit, ...]

    @public
    def __init__(
        self,
        directed: Sequence[Sequence[ArrayLike] | Directed],
        top: RBM,
        *,
        units: str | Unit | Sequence[str | Unit] | None = None,
    ) -> None:
        layers = tuple(_directed(layer, k) for k, layer in enumerate(directed))
        above = [*(layer.weights.shape[0] for layer in layers[1:]), top.n_visible]
        for k, (layer, size) in enumerate(zip(layers, above, strict=False)):
            if layer.weights.shape[1] != size:
                upper = "the top RBM" if k == len(layers) - 1 else f"directed[{k + 1}]"
                raise InputError(
                    found=f"directed[{k}] with weights of shape {layer.weights.shape} below {upper} with {size} units",
                    expected=f"{size} columns",
                    remedy="is it transposed? weights are (lower layer, upper layer), lowest layer first",
                )
        kinds = checks.unit_names(top.visible if units is None else units, len(layers))
        self._set(directed=layers, top=top, directed_units=tuple(map(unit_named, kinds)))

    @property
    def n_visible(self) -> int:
        return self.layer_sizes[0]

    @property
    def support(self) -> Unit:
        return self.units[0]

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        return (*(layer.weights.shape[0] for layer in self.directed), *self.top.layer_sizes)

    @property
    def units(self) -> tuple[Unit, ...]:
        return (*self.directed_units, *self.top.units)

    @property
    def undirected(self) -> RBM:
        return self.top

    @property
    def mrf(self) -> Bipartite:
        return self.top.mrf

    @property
    def bipartite(self) -> Bipartite | None:
        return self.top.bipartite

    def path(self, base: Base) -> Path:
        return self.top.path(base)

    @cached_property
    def _bit_layers(self) -> tuple[Directed, ...]:
        """The directed layers written for bits."""
        return tuple(layer.in_bits(self.units[k : k + 2]) for k, layer in enumerate(self.directed))

    @cached_property
    def _bit_top(self) -> Directed:
        return Directed(self.mrf.blocks[0].weights, self.mrf.even_bias, self.mrf.odd_bias)

    @cached_property
    def _posterior(self) -> Posterior:
        return Posterior(self._bit_layers, self._bit_top)

    def recognise(self, x: ArrayLike) -> Floats:
        """Probability (example, unit) that the units of the top RBM's lower side are on (+1), by recognition."""
        return self.annealed_rates(self.encode(x))

    def annealed_rates(self, visible: States) -> Floats:
        """The same of visible states."""
        rates: NDArray[Any] = visible
        for layer in self._bit_layers:
            rates = sigmoid(layer.up(rates))
        return np.asarray(rates, np.float64)

    def recognise_sample(
        self, lower: NDArray[np.generic], generators: list[np.random.Generator]
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Draw the upper layers by recognition, starting from states (example, sample, visible unit).

        Gives the units of the top RBM's lower side (example, sample, unit) and log p(lower layers | upper) -
        log q(upper layers | lower) (example, sample), which RAISE and importance sampling add to their weights.
        """
        state = lower.astype(np.bool_)
        log_weights = np.zeros(state.shape[:2])
        for k, layer in enumerate(self._bit_layers):
            single, n_samples = layer.astype(np.float32), state.shape[1]
            # Samples of one example that are still equal need one product for all of them.
            distinct = state[:, :1] if lower.strides[1] == 0 and k == 0 else state
            inputs = single.up(distinct.reshape(-1, state.shape[2])).reshape(*distinct.shape[:2], -1)
            inputs = np.broadcast_to(inputs, (len(state), n_samples, inputs.shape[2]))
            upper = draw_given(generators, sigmoid(inputs.astype(np.float64)))
            log_weights -= log_bernoulli(upper, inputs)
            below = single.down(upper.reshape(-1, upper.shape[2]))
            log_weights += log_bernoulli(state, below.reshape(state.shape))
            state = upper
        return state, log_weights

    def raise_start(
        self, path: Path, visible: States, betas: Floats, seed: int, keys: NDArray[np.integer]
    ) -> RaiseStart:
        """Chains start at draws of the recognition distribution, a new one for each, and melt the top RBM."""
        generators = [generator(seed, Purpose.RECOGNITION, *key) for key in keys.tolist()]
        drawn, log_weights = self.recognise_sample(visible[:, np.newaxis], generators)
        start = drawn[:, 0].astype(np.uint8)
        melt = Segment(betas[::-1].copy(), reversed_sweeps=True)
        return RaiseStart(start, [melt], log_weights[:, 0] + path.log_f(1.0, start) - path.log_z_base)

    @property
    def raise_passes(self) -> int:
        return 1  # recognition takes the place of heating

    @property
    def raise_starts_from(self) -> str | None:
        return "the recognition distribution" if self.directed else None

    def generate(self, state: States, generator: np.random.Generator) -> States:
        """Visible states (chain, visible unit) drawn through the directed layers from the top RBM's lower side."""
        for layer in reversed(self._bit_layers):
            rates = sigmoid(layer.down(state))
            state = (generator.random(rates.shape) < rates).astype(np.uint8)
        return state

    def visible_log_odds(self, state: States, uniforms: Uniforms) -> Floats:
        if not self.directed:
            return self.top.visible_log_odds(state, uniforms)
        lowest, *others = self._bit_layers
        for layer in reversed(others):
            rates = sigmoid(layer.down(state))
            state = uniforms(rates.shape[1]) <= rates
        return lowest.down(state)

    def log_f(self, x: ArrayLike, *, samples: Count = SAMPLES, seed: Seed = 0) -> Floats:
        """Log unnormalised probability (example,) of visible states, estimated by importance sampling.

        It is unnormalised by the top RBM's Z. Without directed layers, or with one below up to ten units, it is exact.
        """
        return self.log_f_estimate(x, samples=samples, seed=seed).values

    def log_f_method(self, samples: int = SAMPLES, seed: int = 0, threads: int = 1) -> LogFMethod:
        """Importance sampling, with the variational lower bound.

        Samples come from the recognition distribution, and with one directed layer also from a mean field of the
        posterior. Few states of a single hidden layer are added up instead.
        """
        if not self.directed:
            return self.top.log_f_method(samples, seed, threads)
        if len(self.directed) > 1:
            weigh = partial(self._weigh_recognition, samples=samples, seed=seed)
            block = block_that_fits(sum(self.layer_sizes), samples)
            return partial(estimate_log_f, weigh=weigh, block=block)
        if 2**self.mrf.n_even <= ENUMERATED:
            return partial(exact_log_f, log_f=self._add_up)
        weigh = partial(self._weigh_mixture, samples=samples, seed=seed, threads=threads)
        return partial(estimate_log_f, weigh=weigh)

    def log_f_control(self, states: States, seed: int) -> tuple[NDArray[np.integer], Floats]:
        """A random part of the examples, with log weights (control example, chain) of annealed hidden layers."""
        rng = generator(seed, Purpose.ANNEALED_LOG_F)
        positions = np.sort(rng.permutation(len(states))[:_CONTROL_EXAMPLES])
        return positions, annealed_log_weights(
            self._posterior, states[positions], rng
        ) + self.mrf.log_constant

    def _add_up(self, visible: States) -> Floats:
        """Log f (example,): all states of the only directed layer's upper units added up."""
        (layer,), states = self._bit_layers, corners(self.mrf.n_even)
        inputs = layer.down(states)
        log_joint = ordered_product(visible, inputs.T) - sum_softplus(inputs) + self.mrf.log_f(states)
        return np.asarray(log_sum_exp(log_joint, axis=1))

    def _weigh_recognition(
        self, visible: States, numbers: NDArray[np.integer], samples: int, seed: int
    ) -> tuple[Floats, Floats]:
        """Log importance weights (example, sample) of draws of the recognition distribution, and their bound."""
        generators = [generator(seed, Purpose.LOG_F, number) for number in numbers.tolist()]
        start = np.broadcast_to(visible[:, np.newaxis], (len(visible), samples, self.n_visible))
        state, log_weights = self.recognise_sample(start, generators)
        flat = state.reshape(-1, state.shape[2])
        above = sum_softplus(self._bit_top.astype(np.float32).up(flat))
        log_top = ordered_product(flat, self.mrf.even_bias) + above + self.mrf.log_constant
        log_weights += log_top.reshape(log_weights.shape)
        return log_weights, log_weights.mean(axis=1)  # a lower bound on average (Jensen)

    def _weigh_mixture(
        self, visible: States, numbers: NDArray[np.integer], samples: int, seed: int, threads: int
    ) -> tuple[Floats, Floats]:
        """The same for samples of the only directed layer's mixture: of p(v | h1) f_top(h1) / q(h1 | v)."""
        (layer,), top = self._bit_layers, self.mrf
        from_visible = layer.to_upper(visible)
        recognition = from_visible + layer.recognition_bias
        mixture = Mixture.of(recognition, self._posterior.mean_field(visible, recognition), samples)
        ones = np.ones((len(visible), 1))
        sums, softplus = weigh_draws(
            self._drawn_to_neighbours,
            self._drawn_to_neighbours.inputs([ones * layer.visible_bias, ones * top.odd_bias]),
            mixture.rates,
            mixture.proposals,
            np.concatenate([(from_visible + top.even_bias)[:, :, np.newaxis], mixture.inputs], axis=2),
            Streams(seed, Purpose.LOG_F, numbers).generators(),
            threads,
        )
        constant = ordered_product(visible, layer.visible_bias) + top.log_constant
        log_weights = sums[:, :, 0] + softplus + constant[:, np.newaxis] - mixture.log_prob(sums[:, :, 1:])
        return log_weights, log_weights.mean(axis=1)

    @cached_property
    def _drawn_to_neighbours(self) -> SummedOut:
        """Weights of the only directed layer's upper units: to the layer below, which is given, and to the top layer.

        log p(v | h1) has minus the softplus of v's inputs, log f_top(h1) plus those of the top layer.
        """
        (layer,) = self._bit_layers
        return SummedOut.of([(-1.0, layer.weights.T), (1.0, self.mrf.blocks[0].weights)])

    def arrays(self) -> ParameterArrays:
        arrays = {
            f"directed_{layer}_{name}": getattr(directed, name)
            for layer, directed in enumerate(self.directed, start=1)
            for name in _DIRECTED
        }
        return arrays | {f"top_{name}": array for name, array in self.top.arrays().items()}

    @classmethod
    def array_names(cls, present: set[str]) -> list[str]:
        depth = sum(name.startswith("directed_") and name.endswith("_weights") for name in present)
        directed = [f"directed_{layer}_{name}" for layer in range(1, depth + 1) for name in _DIRECTED]
        return [*directed, *(f"top_{name}" for name in RBM.array_names(present))]

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "DBN":
        layers = list(zip(arrays[:-3:3], arrays[1:-3:3], arrays[2:-3:3], strict=True))
        kinds = checks.unit_names(units, len(layers) + 2)
        return cls(layers, RBM(*arrays[-3:], visible=kinds[-2], hidden=kinds[-1]), units=kinds[:-2])


def _directed(layer: Sequence[ArrayLike] | Directed, k: int) -> Directed:
    if isinstance(layer, Directed):
        layer = [getattr(layer, name) for name in _DIRECTED]
    if len(layer) != 3:
        raise InputError(
            found=f"directed[{k}] with {len(layer)} parts",
            expected="(weights, visible_bias, recognition_bias)",
            remedy="the recognition bias is missing? it is the hidden bias of the RBM this layer was trained as",
        )
    weights = checks.parameter(layer[0], f"directed[{k}] weights", 2)
    return Directed(
        weights,
        checks.bias(layer[1], f"directed[{k}] visible_bias", weights.shape[0], "row of the weights"),
        checks.bias(layer[2], f"directed[{k}] recognition_bias", weights.shape[1], "column of the weights"),
    )
