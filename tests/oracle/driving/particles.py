"""The library's RAISE with N particles, with every random choice of every chain enumerated."""

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from math import factorial
from typing import Any
from unittest import mock

import numpy as np

from meltpoint.annealing.base import Base
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.backends.backend import PreparedPath
from meltpoint.backends.reference import anneal_reference
from meltpoint.backends.tiles import Annealed
from meltpoint.estimators import ais, particles, raise_
from meltpoint.estimators.chain_batches import Annealing
from meltpoint.layers.unit import Floats, States
from meltpoint.models import Model, dbn
from meltpoint.progress import silent
from oracle.driving.dictated import Dictation
from oracle.driving.double import in_double
from oracle.driving.truth import recognition_outcomes, recognition_probability
from oracle.tables import all_states


class EveryTrajectory:
    """A stand-in for `anneal`: chain i takes trajectory i // `repeat`, and its probability is noted."""

    def __init__(self, repeat: int = 1) -> None:
        self.repeat = repeat
        self.probability = np.zeros(0)

    def __call__(
        self, prepared: PreparedPath, segments: Sequence[Segment], state: States, streams: object, **_: object
    ) -> Annealed:
        trajectories = all_states(draws(prepared.path, segments))
        which = np.arange(len(state)) // self.repeat % len(trajectories)
        outcomes = Dictation(trajectories[which])
        cumulative = np.zeros((len(state), len(segments)))
        for k, segment in enumerate(segments):
            state, log_weights = anneal_reference(prepared.path, segment, state, outcomes)
            cumulative[:, k] = (cumulative[:, k - 1] if k else 0) + log_weights
        self.probability = np.exp(outcomes.log_prob)
        return Annealed(state, cumulative)


def draws(path: BlockPath, segments: Sequence[Segment]) -> int:
    """Number of binary draws of a chain."""
    return path.target.n_units * sum(segment.steps for segment in segments)


def forward_weights(model: Model, base: Base, betas: Floats) -> tuple[Floats, Floats]:
    """Probabilities and log weights of the chains of `ais_log_z`, those of equal weight as one."""
    run = EveryTrajectory()
    units = sum(model.undirected.layer_sizes)
    with mock.patch.object(ais, "anneal", run):
        work = ais.ForwardChains(Annealing(model, base), betas, 0)
        found = work.compute(np.arange(2 ** (units * (betas.size - 1))), silent)
    weights, which = np.unique(found.log_weights.round(13), return_inverse=True)
    return np.bincount(which, run.probability), weights


def expected_estimates(
    model: Model,
    base: Base,
    betas: Floats,
    n_particles: int,
    forward: tuple[Floats, Floats] | None = None,
    change: Callable[[Floats, int], Floats] = lambda estimates, _n: estimates,
) -> Floats:
    """E[estimate] (visible state,) of `particle_log_prob`, over all chains of the example and all forward chains.

    `forward` are those of another path, if any; `change` breaks the estimates on purpose.
    """
    outcomes = recognition_probability(model)  # (visible state, outcome of recognition)
    run = EveryTrajectory(outcomes.shape[1])
    segments = model.raise_passes
    trajectories = 2 ** (sum(model.undirected.layer_sizes) * (betas.size - 1) * segments)
    melted = _melt(model, base, betas, run, trajectories * outcomes.shape[1])
    weight = run.probability.reshape(len(outcomes), trajectories, -1) * outcomes[:, np.newaxis]
    weight = weight.reshape(melted.log_weights.shape)
    probability, log_weights = forward or forward_weights(model, base, betas)
    total = np.zeros(2**model.n_visible)
    for others in combinations_with_replacement(range(len(probability)), n_particles - 1):
        which = np.array(others, int)
        ways = factorial(n_particles - 1) / np.prod([factorial(count) for count in np.bincount(which)])
        found = particles.particle_log_prob(
            melted.log_weights, melted.log_reverse_weights, log_weights[which], n_particles
        )
        expected = (weight * change(np.exp(found.log_weights), n_particles)).sum(axis=1)
        total += ways * np.prod(probability[which]) * expected
    return total


def _melt(model: Model, base: Base, betas: Floats, run: Any, chains: int) -> raise_.RaiseWeights:
    """What `MeltingChains` give for every visible state, with chains that take every trajectory."""
    states = all_states(model.n_visible)
    with (
        mock.patch.object(raise_, "anneal", run),
        mock.patch.object(dbn, "draw_given", recognition_outcomes(model)),
        in_double(),
    ):
        work = raise_.MeltingChains(Annealing(model, base), betas, states, chains, 0)
        return work.compute(np.arange(len(states)), silent)
