"""Samples: of a model by Gibbs chains, and of the annealing model, whose likelihood RAISE bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import BaseLike, uniform
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.arguments import Count, Seed, Threads, public
from meltpoint.backends.numba.precision import Precision
from meltpoint.backends.tiles import Annealed
from meltpoint.defaults import DEFAULTS, SAMPLE_MOVES, SAMPLE_STEPS
from meltpoint.errors import Progress
from meltpoint.estimators.base_rates import resolve_base
from meltpoint.estimators.chain_batches import Annealing, chain_keys, chains_batch
from meltpoint.estimators.elimination import eliminate
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Floats, States
from meltpoint.models.model import Model, ModelLike
from meltpoint.randomness import Purpose, generator
from meltpoint.runs.run import Run

_TASK = "sampling"
_EXACT = 1  # key of the random numbers of exact samples
_BLOCK_CHAINS = 4096  # of all particles of some samples: memory does not grow with their number


@public
def sample(
    model: ModelLike,
    n: Count,
    *,
    steps: Steps = SAMPLE_STEPS,
    moves: Count = SAMPLE_MOVES,
    exact: bool = False,
    seed: Seed = 0,
    threads: Threads | None = None,
    progress: Progress | bool | None = None,
) -> NDArray[Any]:
    """Visible samples (n, visible unit): n independent chains, annealed from uniform, then `moves` Gibbs sweeps.

    With `exact` they are independent exact samples by elimination instead, for graphs of small width.

    Parameters
    ----------
    model
        Any model: an RBM, DBM or DBN, an Ising or Potts model, a factor graph.
    n
        How many samples.
    steps
        A number of equal annealing steps, or the betas.
    moves
        Gibbs sweeps in the model after annealing.
    exact
        Whether to sum out units one after the other and draw them in the opposite order: no chains, no error. Refused
        where the tables would be too large, as by `exact_log_z`. `steps` and `moves` are not used then.
    seed, threads, progress
        As in `ais_log_z`.

    >>> from meltpoint.models.rbm import RBM
    >>> sample(RBM([[0.0]], [100.0], [0.0]), 3)
    array([[1],
           [1],
           [1]], dtype=uint8)
    """
    assert not isinstance(progress, bool), "public() has made a callback of it"
    if exact:
        rng = generator(seed, Purpose.SAMPLE, _EXACT)
        undirected = model.undirected
        state = undirected.state_of(eliminate(undirected.as_factors(), keep=True).sample(n, rng))
        return model.decode(model.generate(state, rng))
    return model.decode(sample_states(model, n, as_betas(steps), moves, seed, Run(threads, progress)))


def sample_states(model: Model, n: int, betas: Floats, moves: int, seed: int, run: Run) -> States:
    """States (n, visible unit) of samples, from chains of a run."""
    annealing = Annealing(model, uniform(), "float32")
    segments = [Segment(betas), Segment(np.ones(moves + 1))]
    streams = Streams(seed, Purpose.SAMPLE, np.arange(n))
    found = run.results(chains_batch("chains", annealing, segments, n, streams), _TASK)
    return model.generate(found.state, generator(seed, Purpose.SAMPLE))


@public
def sample_annealing_model(
    model: ModelLike,
    n: Count,
    *,
    particles: Count = 1,
    base: BaseLike = None,
    steps: Steps = DEFAULTS.steps,
    seed: Seed = 0,
    precision: Precision = "mixed",
    threads: Threads | None = None,
    progress: Progress | bool | None = None,
) -> NDArray[Any]:
    """Independent visible samples (n, visible unit) of p_N, the distribution RAISE gives probabilities for.

    `particles` chains are annealed for each sample, one of them is kept in proportion to its AIS weight, and makes
    the last sweep, at beta 1. One particle is the paper's annealing model p_ann.

    Parameters
    ----------
    model
        Any model: an RBM, DBM or DBN, an Ising or Potts model, a factor graph.
    n
        How many samples.
    particles
        N, the chains that are annealed for each sample.
    base
        The base distribution, or its name: "uniform" (the default) or "model".
    steps
        A number of equal steps, or the betas.
    seed, precision, threads, progress
        As in `ais_log_z`.

    >>> from meltpoint.models.rbm import RBM
    >>> sample_annealing_model(RBM([[0.0]], [100.0], [0.0]), 2, steps=10, particles=3)
    array([[1],
           [1]], dtype=uint8)
    """
    assert not isinstance(progress, bool), "public() has made a callback of it"
    betas, run = as_betas(steps), Run(threads, progress)
    annealing = Annealing(model, resolve_base(base, model, run, seed=seed), precision)
    numbers, purpose = np.arange(n), Purpose.ANNEALING_SAMPLE
    last = Segment(np.ones(2))

    def chains(segments: list[Segment], start: States | int, keys: NDArray[np.integer], run: Run) -> Annealed:
        streams = Streams(seed, purpose, keys)
        return run.results(chains_batch("chains", annealing, segments, start, streams), _TASK)

    if particles == 1:
        state = chains([Segment(betas), last], n, numbers, run).state
    else:
        chosen = annealing.anywhere(n)
        quiet = replace(run, progress=None)
        block = max(1, _BLOCK_CHAINS // particles)
        for low in range(0, n, block):
            own = numbers[low : low + block]
            keys = np.stack(np.meshgrid(own, np.arange(particles), indexing="ij"), axis=-1).reshape(-1, 2)
            found = chains([Segment(betas)], len(keys), keys, quiet)
            # The largest of log weight + Gumbel noise is a draw in proportion to the weights.
            noise = [generator(seed, purpose, int(i), particles).gumbel(size=particles) for i in own]
            kept = np.argmax(found.log_weights.reshape(len(own), -1) + np.array(noise), axis=1)
            chosen[own] = found.state.reshape(len(own), particles, -1)[np.arange(len(own)), kept]
            if progress:
                progress(_TASK, float(own[-1] + 1), float(n))
        state = chains([last], chosen, chain_keys(numbers, particles), quiet).state
    return model.decode(model.generate(state, generator(seed, purpose)))
