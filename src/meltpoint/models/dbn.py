"""Deep belief networks: directed sigmoid layers below an RBM (paper, sections 2.1 and 3.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from meltpoint.errors import InputError, Progress
from meltpoint.models import checks
from meltpoint.models.bipartite import sum_softplus
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.log_f import SAMPLES, LogF, draw_given, estimate_log_f, log_bernoulli
from meltpoint.models.rbm import RBM


@dataclass(frozen=True)
class Directed:
    """One directed layer: p(lower | upper) = sigmoid(upper @ weights.T + visible_bias), and its recognition.

    The recognition distribution q(upper | lower) = sigmoid(lower @ weights + recognition_bias) uses the
    transpose of the same weights.
    """

    weights: Floats
    visible_bias: Floats
    recognition_bias: Floats


@dataclass(frozen=True, init=False, repr=False, eq=False)
class DBN:
    """A DBN: directed layers, lowest first, and the RBM on top.

    >>> top = RBM(np.zeros((4, 5)), np.zeros(4), np.zeros(5))
    >>> DBN(directed=[(np.zeros((6, 4)), np.zeros(6), np.zeros(4))], top=top)
    DBN 6-4-5
    """

    directed: tuple[Directed, ...]
    top: RBM

    def __init__(self, directed: Sequence[Sequence[ArrayLike] | Directed], top: RBM) -> None:
        if not isinstance(top, RBM):
            raise InputError(
                found=f"a top of type {type(top).__name__}",
                expected="an RBM",
                remedy="DBN(directed=[…], top=RBM(…))",
            )
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
        object.__setattr__(self, "directed", layers)
        object.__setattr__(self, "top", top)

    def __repr__(self) -> str:
        return "DBN " + "-".join(map(str, self.layer_sizes))

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Units of each layer, visible first."""
        return (*(layer.weights.shape[0] for layer in self.directed), *self.top.layer_sizes)

    @property
    def n_visible(self) -> int:
        """Number of visible units."""
        return self.layer_sizes[0]

    def recognise(self, x: ArrayLike) -> Floats:
        """Probability (example, unit) that the units of the top RBM's lower side are on, by recognition."""
        rates: NDArray[Any] = checks.binary(x, "x", self.n_visible)
        for layer in self.directed:
            rates = expit(rates @ layer.weights + layer.recognition_bias)
        return np.asarray(rates, np.float64)

    def recognise_sample(
        self, lower: NDArray[np.generic], generators: list[np.random.Generator]
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Draw the upper layers by recognition, starting from (example, sample, visible unit).

        Gives the units of the top RBM's lower side (example, sample, unit) and log p(lower layers | upper) -
        log q(upper layers | lower) (example, sample), which RAISE and importance sampling add to their weights.
        """
        state = lower.astype(np.bool_)
        log_weights = np.zeros(state.shape[:2])
        for layer in self.directed:
            weights = layer.weights.astype(np.float32)
            # Samples of one example that are still equal need one product for all of them.
            distinct = state[:, :1] if lower.strides[1] == 0 and layer is self.directed[0] else state
            inputs = distinct.astype(np.float32) @ weights + layer.recognition_bias.astype(np.float32)
            inputs = np.broadcast_to(inputs, (*state.shape[:2], weights.shape[1]))
            upper = draw_given(generators, expit(inputs, dtype=np.float64))
            log_weights -= log_bernoulli(upper, inputs)
            below = upper.astype(np.float32) @ weights.T
            below += layer.visible_bias.astype(np.float32)
            log_weights += log_bernoulli(state, below)
            state = upper
        return state, log_weights

    def generate(self, upper: Bits, generator: np.random.Generator) -> Bits:
        """Visible units (example, unit) drawn through the directed layers from the top RBM's lower side."""
        state = upper
        for layer in reversed(self.directed):
            rates = expit(state @ layer.weights.T + layer.visible_bias)
            state = (generator.random(rates.shape) < rates).astype(np.uint8)
        return state

    def log_f(self, x: ArrayLike, *, samples: int = SAMPLES, seed: int = 0) -> Floats:
        """Log unnormalised probability (example,) of visible states, estimated by importance sampling.

        It is unnormalised by the top RBM's Z. Without directed layers it is exact.
        """
        return self.log_f_estimate(x, samples=samples, seed=seed).values

    def log_f_estimate(
        self, x: ArrayLike, *, samples: int = SAMPLES, seed: int = 0, progress: Progress | None = None
    ) -> LogF:
        """Log f with standard errors and the variational lower bound, by sampling the recognition distribution."""
        bits = checks.binary(x, "x", self.n_visible)
        if not self.directed:
            exact = self.top.log_f(bits)
            return LogF(exact, np.zeros(len(bits)), exact)
        return estimate_log_f(
            bits,
            self._weigh,
            sum(self.layer_sizes),
            samples=samples,
            seed=seed,
            progress=progress,
        )

    def _weigh(
        self, visible: Bits, generators: list[np.random.Generator], samples: int
    ) -> tuple[Floats, Floats]:
        """Log importance weights (example, sample), and their mean: a lower bound on average (Jensen)."""
        start = np.broadcast_to(visible[:, np.newaxis], (len(visible), samples, self.n_visible))
        state, log_weights = self.recognise_sample(start, generators)
        flat = state.reshape(-1, state.shape[2])
        field = flat.astype(np.float32) @ self.top.weights.astype(np.float32)
        field += self.top.hidden_bias.astype(np.float32)
        log_top = flat @ self.top.visible_bias + sum_softplus(field)
        log_weights += log_top.reshape(log_weights.shape)
        return log_weights, log_weights.mean(axis=1)


def _directed(layer: Sequence[ArrayLike] | Directed, k: int) -> Directed:
    if isinstance(layer, Directed):
        layer = (layer.weights, layer.visible_bias, layer.recognition_bias)
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
