"""Bases that are fitted: independent units with the rates of training data, or of the model's own chains."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base, BaseLike, uniform
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.schedule import as_betas
from meltpoint.arguments import Seed, Threads, public
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.chain_batches import Annealing, chains_batch
from meltpoint.foreign import as_array
from meltpoint.kernels.streams import Streams
from meltpoint.layers import BERNOULLI
from meltpoint.models.model import Model, ModelLike
from meltpoint.randomness import Purpose, generator
from meltpoint.runs.run import Run

_RATE_CHAINS = 256
_RATE_STEPS = 500
_RATE_SWEEPS = 50
_RATE_SMOOTHING = 0.01
_SMOOTHING = 1.0  # examples added in every state


@public
def data_rates(train: ArrayLike, model: ModelLike | None = None) -> Base:
    """The paper's data base rates: visible units as often on as in training data, hidden units uniform.

    Counts are smoothed by one example on and one off, so that a pixel that is never on keeps a finite bias.

    Parameters
    ----------
    train
        (example, visible unit), never the test set.
    model
        Needed for spin units, and for a DBN, whose annealed units are the top RBM's: the rates are then those
        of the top RBM's visible side under the recognition distribution on the training data.

    >>> data_rates([[0, 1], [0, 1]]).biases[0].round(3)
    array([-1.099,  1.099])
    """
    if model is not None:
        sample = model.annealed_rates(model.encode(train, "train"))
        return Base("data", (model.undirected.support.bias_from_sample(sample, _SMOOTHING),))
    array = as_array(train, "train")
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            found=f"train of shape {array.shape}",
            expected="(examples, pixels), at least one of each",
            remedy="pass the training set as a matrix of zeros and ones",
        )
    if array.dtype.kind in "if" and array.min() == -1 and (np.abs(array) == 1).all():
        raise InputError(
            found="train with values -1 and +1 and no model",
            expected="zeros and ones, or a model with spin units",
            remedy="pass the model too: data_rates(train, model)",
        )
    return Base("data", (BERNOULLI.bias_from_sample(BERNOULLI.encode(array, "train"), _SMOOTHING),))


@public
def model_rates(
    model: ModelLike,
    *,
    seed: Seed = 0,
    threads: Threads | None = None,
    progress: Progress | bool | None = None,
) -> Base:
    """Visible rates from the model's own Gibbs chains, hidden units uniform: no data needed.

    256 chains are annealed from the uniform distribution to the model in 500 steps and then make 50 sweeps. Where
    the chains do not reach equilibrium the rates are less accurate, but any base gives unbiased estimates. (Rates
    for the hidden units too were tried, and gave a larger gap.)

    Parameters
    ----------
    model
        Any model: an RBM, DBM or DBN, an Ising or Potts model, a factor graph.
    seed, threads, progress
        As in `ais_log_z`.

    >>> from meltpoint.models.rbm import RBM
    >>> model_rates(RBM([[0.0], [0.0]], [2.0, -2.0], [0.0])).biases[0].round(2)
    array([ 2., -2.])
    """
    assert not isinstance(progress, bool), "public() has made a callback of it"
    return rates_of_chains(model, seed, Run(threads, progress))


def rates_of_chains(model: Model, seed: int, run: Run) -> Base:
    """As `model_rates`, from chains of a run."""
    undirected = model.undirected
    annealing = Annealing(undirected, uniform())
    segments = [Segment(as_betas(_RATE_STEPS)), Segment(np.ones(_RATE_SWEEPS + 1))]
    streams = Streams(seed, Purpose.BASE_RATES, np.arange(_RATE_CHAINS))
    found = run.results(chains_batch("rates", annealing, segments, _RATE_CHAINS, streams), "base rates")
    rates = undirected.visible_means(found.state, generator(seed, Purpose.BASE_RATES))
    return Base("model", (undirected.support.bias_from_sample(rates, _RATE_SMOOTHING),))


def resolve_base(
    base: BaseLike,
    model: Model,
    run: Run,
    *,
    train: ArrayLike | None = None,
    seed: int = 0,
) -> Base:
    """The base that a name stands for; None is uniform. "data" needs training data."""
    if base is not None and not isinstance(base, str):
        return base  # pyright: ignore[reportReturnType] a distribution, which the model's path may take
    if base is None or base == "uniform":
        return uniform()
    if base == "model":
        return rates_of_chains(model, seed, run)
    if train is None:
        raise InputError(
            found="base='data' and no training data",
            expected="the rates of training data",
            remedy="pass base=mp.data_rates(train, model)",
        )
    return data_rates(train, model)
