"""Deep Boltzmann machines of any depth (paper, section 2.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from meltpoint.errors import InputError, Progress
from meltpoint.models import checks
from meltpoint.models.bipartite import Bipartite, Block, sum_softplus
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.log_f import SAMPLES, LogF, draw, estimate_log_f, log_bernoulli

_MEAN_FIELD_SWEEPS = 200
_MEAN_FIELD_TOLERANCE = 1e-6


@dataclass(frozen=True, init=False, repr=False, eq=False)
class DBM:
    """A binary DBM: log f = sum of biases[k]·h_k and of h_k·weights[k]·h_{k+1}, where h_0 is visible.

    >>> DBM(weights=[np.zeros((6, 4)), np.zeros((4, 3))], biases=[np.zeros(6), np.zeros(4), np.zeros(3)])
    DBM 6-4-3
    """

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    def __init__(self, weights: Sequence[ArrayLike], biases: Sequence[ArrayLike]) -> None:
        if len(weights) == 0 or len(biases) != len(weights) + 1:
            raise InputError(
                found=f"{len(weights)} weight matrices and {len(biases)} bias vectors",
                expected="at least one matrix, and one more bias vector than matrices",
                remedy="DBM(weights=[W1, W2], biases=[visible, hidden1, hidden2])",
            )
        ws = [checks.parameter(w, f"weights[{k}]", 2) for k, w in enumerate(weights)]
        for k in range(len(ws) - 1):
            if ws[k].shape[1] != ws[k + 1].shape[0]:
                raise InputError(
                    found=f"weights[{k}] of shape {ws[k].shape} below weights[{k + 1}] of shape {ws[k + 1].shape}",
                    expected=f"{ws[k].shape[1]} rows in weights[{k + 1}], one for each unit of hidden layer {k + 1}",
                    remedy="is one of them transposed? weights[k] is (units of layer k, units of layer k+1)",
                )
        sizes = [ws[0].shape[0], *(w.shape[1] for w in ws)]
        bs = [
            checks.bias(b, f"biases[{k}]", size, f"unit of layer {k}")
            for k, (b, size) in enumerate(zip(biases, sizes, strict=True))
        ]
        object.__setattr__(self, "weights", tuple(ws))
        object.__setattr__(self, "biases", tuple(bs))

    def __repr__(self) -> str:
        return "DBM " + "-".join(map(str, self.layer_sizes))

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Units of each layer, visible first."""
        return tuple(b.size for b in self.biases)

    @property
    def n_visible(self) -> int:
        """Number of visible units."""
        return self.biases[0].size

    @cached_property
    def bipartite(self) -> Bipartite:
        """v, h2, h4, … are the even side, h1, h3, … the odd side."""
        blocks = [
            Block(k // 2, k // 2, w)
            if k % 2 == 0
            else Block((k + 1) // 2, (k - 1) // 2, np.ascontiguousarray(w.T))
            for k, w in enumerate(self.weights)
        ]
        return Bipartite(self.biases[0::2], self.biases[1::2], tuple(blocks))

    def log_f(self, x: ArrayLike, *, samples: int = SAMPLES, seed: int = 0) -> Floats:
        """Log unnormalised probability (example,) of visible states, estimated by importance sampling.

        With one hidden layer nothing is left to estimate, and it is exact.

        >>> DBM([np.zeros((2, 3))], [np.zeros(2), np.zeros(3)]).log_f([[0, 1]]).round(4)
        array([2.0794])
        """
        return self.log_f_estimate(x, samples=samples, seed=seed).values

    def log_f_estimate(
        self, x: ArrayLike, *, samples: int = SAMPLES, seed: int = 0, progress: Progress | None = None
    ) -> LogF:
        """Log f with standard errors and the mean-field lower bound.

        The proposal is the mean-field posterior of the even hidden layers; the odd layers are summed out.
        """
        bits = checks.binary(x, "x", self.n_visible)
        if len(self.weights) == 1:
            exact = self.bipartite.log_f(bits)
            return LogF(exact, np.zeros(len(bits)), exact)
        return estimate_log_f(
            bits,
            self._weigh,
            self.bipartite.n_even + self.bipartite.n_odd,
            samples=samples,
            seed=seed,
            progress=progress,
        )

    def mean_field(
        self, visible: Bits, *, sweeps: int = _MEAN_FIELD_SWEEPS, tolerance: float = _MEAN_FIELD_TOLERANCE
    ) -> tuple[Floats, Floats]:
        """Means (example, even unit) and (example, odd unit) of the factorial posterior; visible means are the data.

        Odd and even hidden units are updated in turn. Each update is exact given the other side, so the lower
        bound rises with every sweep.
        """
        two = self.bipartite
        hidden = slice(self.n_visible, two.n_even)
        even = np.full((len(visible), two.n_even), 0.5)
        even[:, : self.n_visible] = visible
        even[:, hidden] = expit(two.even_bias[hidden])
        odd = two.odd_given_even(even)
        moving = np.arange(len(visible) if two.n_even > self.n_visible else 0)
        for _ in range(sweeps):
            if moving.size == 0:
                break
            new = expit(two.even_field(odd[moving]) + two.even_bias)[:, hidden]
            change = np.abs(new - even[moving, hidden]).max(axis=1)
            even[moving, hidden] = new
            odd[moving] = two.odd_given_even(even[moving])
            moving = moving[change >= tolerance]  # each example stops by itself, whatever its neighbours do
        return even, odd

    def mean_field_bound(self, visible: Bits, even: Floats, odd: Floats) -> Floats:
        """Lower bound (example,) on log f(v): expected log f plus the entropy of the factorial posterior."""
        two = self.bipartite
        energy = even @ two.even_bias + odd @ two.odd_bias + (two.odd_field(even) * odd).sum(axis=1)
        return energy + _entropy(even[:, self.n_visible :]) + _entropy(odd)

    def _weigh(
        self, visible: Bits, generators: list[np.random.Generator], samples: int
    ) -> tuple[Floats, Floats]:
        """Log of f(v, even hidden) / q(even hidden | v) for samples of q (example, sample), and the bound."""
        even, odd = self.mean_field(visible)
        rates = np.clip(even[:, self.n_visible :], 1e-6, 1 - 1e-6)
        hidden = draw(generators, rates, samples)
        log_weights = self.log_joint(visible, hidden) - log_bernoulli(hidden, logit(rates)[:, np.newaxis])
        return log_weights, self.mean_field_bound(visible, even, odd)

    def log_joint(self, visible: Bits, hidden: NDArray[np.bool_]) -> Floats:
        """log f(v, even hidden layers) (example, sample), odd layers summed out, for (example, sample, unit)."""
        two = self.bipartite
        from_visible = (
            two.odd_field(np.pad(visible, ((0, 0), (0, two.n_even - self.n_visible)))) + two.odd_bias
        )
        flat = hidden.reshape(-1, hidden.shape[2]).astype(np.float32)
        field = np.zeros((len(flat), two.n_odd), np.float32)
        for block in two.blocks:
            if block.even_layer > 0:
                rows = two.even_slices[block.even_layer]
                columns = slice(rows.start - self.n_visible, rows.stop - self.n_visible)
                field[:, two.odd_slices[block.odd_layer]] += flat[:, columns] @ block.weights.astype(
                    np.float32
                )
        field = field.reshape(*hidden.shape[:2], -1)
        field += from_visible[:, np.newaxis].astype(np.float32)
        bias = (visible @ two.even_bias[: self.n_visible])[:, np.newaxis] + hidden @ two.even_bias[
            self.n_visible :
        ]
        return bias + sum_softplus(field)


def _entropy(rates: Floats) -> Floats:
    p = np.clip(rates, 1e-300, 1.0)
    q = np.clip(1 - rates, 1e-300, 1.0)
    return -(rates * np.log(p) + (1 - rates) * np.log(q)).sum(axis=1)
