"""Base distributions: independent units, with their sampler and their log Z in one place.

A base is the biases of independent units, layer by layer. Its log Z is `Family.log_z_base`, and its sampler is
the first move of the loop at beta 0; both use these biases and nothing else, so they cannot disagree.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.anneal import Leg, anneal
from meltpoint.annealing.family import Family
from meltpoint.annealing.schedule import as_betas
from meltpoint.annealing.streams import chain_generators
from meltpoint.errors import InputError, Progress
from meltpoint.models import Model, mrf_of
from meltpoint.models.checks import Floats, binary, to_bits
from meltpoint.models.dbn import DBN
from meltpoint.randomness import Purpose, generator

_RATE_CHAINS = 256
_RATE_STEPS = 500
_RATE_MOVES = 50
_RATE_SMOOTHING = 0.01


@dataclass(frozen=True)
class Base:
    """Biases of independent units: one array per layer, lowest first; layers beyond the last are uniform."""

    name: str
    biases: tuple[Floats, ...] = ()


def uniform() -> Base:
    """Every state is equally probable.

    >>> uniform()
    Base(name='uniform', biases=())
    """
    return Base("uniform")


def data_rates(train: ArrayLike, model: Model | None = None) -> Base:
    """The paper's data base rates: visible units as often on as in training data, hidden units uniform.

    Counts are smoothed by one example on and one off, so that a pixel that is never on keeps a finite bias.
    For a DBN the annealed units are the top RBM's: pass the model, and the rates are those of the top RBM's
    visible side under the recognition distribution on the training data.

    >>> data_rates([[0, 1], [0, 1]]).biases[0].round(3)
    array([-1.099,  1.099])
    """
    if isinstance(model, DBN):
        on: NDArray[Any] = model.recognise(binary(train, "train", model.n_visible))
    elif model is not None:
        on = binary(train, "train", model.n_visible)
    else:
        array = np.asarray(train)
        if array.ndim != 2 or 0 in array.shape:
            raise InputError(
                found=f"train of shape {array.shape}",
                expected="(examples, pixels), at least one of each",
                remedy="pass the training set as a matrix of zeros and ones",
            )
        on = to_bits(array, "train")
    return Base("data", (_smoothed_logit(on.sum(axis=0, dtype=np.float64), len(on)),))


def model_rates(
    model: Model, *, seed: int = 0, threads: int | None = None, progress: Progress | None = None
) -> Base:
    """Visible rates from the model's own Gibbs chains, hidden units uniform: no data needed.

    256 chains are annealed from the uniform distribution to the model in 500 steps and then make 50 moves. Where
    the chains do not reach equilibrium the rates are merely less good: any base gives unbiased estimates. (Rates
    for the hidden units too were tried, and gave a larger gap.)

    >>> from meltpoint.models.rbm import RBM
    >>> model_rates(RBM([[0.0], [0.0]], [2.0, -2.0], [0.0])).biases[0].round(2)
    array([ 2., -2.])
    """
    mrf = mrf_of(model)
    target = mrf.bipartite
    family = Family(target, np.zeros(target.n_even), np.zeros(target.n_odd))
    generators = chain_generators(seed, Purpose.BASE_RATES, np.arange(_RATE_CHAINS))
    start = np.zeros((_RATE_CHAINS, target.n_even), np.uint8)
    legs = [Leg(as_betas(_RATE_STEPS)), Leg(np.ones(_RATE_MOVES + 1))]
    run = anneal(family, legs, start, generators, threads=threads, progress=progress, task="base rates")
    if not run.finished.all():
        raise KeyboardInterrupt
    visible = target.even_slices[0]
    on = generator(seed, Purpose.BASE_RATES).random((_RATE_CHAINS, target.n_odd)) < target.odd_given_even(
        run.state
    )
    rates = target.even_given_odd(on)[:, visible]  # probabilities: rare pixels keep their small rates
    return Base("model", (_smoothed_logit(rates.sum(axis=0), _RATE_CHAINS, _RATE_SMOOTHING),))


def family_of(model: Model, base: Base) -> Family:
    """The path from a base to a model (for a DBN, to its top RBM)."""
    mrf = mrf_of(model)
    target = mrf.bipartite
    sizes = mrf.layer_sizes
    if len(base.biases) > len(sizes):
        raise InputError(
            found=f"a base with {len(base.biases)} layers",
            expected=f"at most {len(sizes)}, as {model!r} has",
            remedy="make the base from this model",
        )
    layers = [np.zeros(size) for size in sizes]
    for k, bias in enumerate(base.biases):
        if bias.size != sizes[k]:
            raise InputError(
                found=f"base rates for {bias.size} units",
                expected=f"{sizes[k]}, the size of layer {k} of {model!r}",
                remedy="for a DBN pass the model too: data_rates(train, model)"
                if isinstance(model, DBN)
                else "take the rates from training data of the same width as the test data",
            )
        layers[k] = bias
    return Family(target, np.concatenate(layers[0::2]), np.concatenate(layers[1::2]))


def _smoothed_logit(on: Floats, count: int, smoothing: float = 1.0) -> Floats:
    return np.log(on + smoothing) - np.log(count - on + smoothing)
