"""The library's RAISE with N particles, with every random choice of every chain enumerated."""

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from math import factorial
from typing import Any
from unittest import mock

import numpy as np

from meltpoint.annealing.anneal import Annealed, Leg
from meltpoint.annealing.base import Base, family_of
from meltpoint.annealing.family import Family
from meltpoint.annealing.reference import anneal_reference
from meltpoint.estimators import ais, particles, reverse
from meltpoint.models import Model, dbn, mrf_of
from meltpoint.models.checks import Bits, Floats
from oracle.driving.dictated import Dictation, dictated
from oracle.driving.double import in_double
from oracle.driving.truth import recognition_outcomes, recognition_probability
from oracle.tables import all_states


class EveryTrajectory:
    """A stand-in for `anneal`: chain i takes trajectory i // `repeat`, and its probability is noted."""

    def __init__(self, repeat: int = 1) -> None:
        self.repeat = repeat
        self.probability = np.zeros(0)

    def __call__(
        self, family: Family, legs: Sequence[Leg], state: Bits, generators: object, **_: object
    ) -> Annealed:
        trajectories = all_states(draws(family, legs))
        which = np.arange(len(state)) // self.repeat % len(trajectories)
        outcomes = Dictation(trajectories[which])
        passed = np.zeros((len(state), len(legs)))
        with dictated():
            for k, leg in enumerate(legs):
                state, log_weights = anneal_reference(family, leg.betas, state, outcomes, leg.frozen)
                passed[:, k] = (passed[:, k - 1] if k else 0) + log_weights
        self.probability = np.exp(outcomes.log_prob)
        return Annealed(state, passed, np.ones(len(state), np.bool_))


def draws(family: Family, legs: Sequence[Leg]) -> int:
    """Number of binary draws of a chain."""
    return (family.target.n_even + family.target.n_odd) * sum(leg.betas.size - 1 for leg in legs)


def forward_weights(model: Model, base: Base, betas: Floats) -> tuple[Floats, Floats]:
    """Probabilities and log weights of the chains of `ais_log_z`, those of equal weight as one."""
    run = EveryTrajectory()
    units = sum(mrf_of(model).layer_sizes)
    with mock.patch.object(ais, "anneal", run):
        found = ais.ais_log_z(model, base=base, steps=betas, chains=2 ** (units * (betas.size - 1)))
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
    segments = 2 if len(mrf_of(model).layer_sizes) > 2 else 1
    trajectories = 2 ** (sum(mrf_of(model).layer_sizes) * (betas.size - 1) * segments)
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


def _melt(model: Model, base: Base, betas: Floats, run: Any, chains: int) -> reverse.RaiseWeights:
    """What `raise_weights` gives for every visible state, with chains that take every trajectory."""
    states = all_states(model.n_visible)
    with (
        mock.patch.object(reverse, "anneal", run),
        mock.patch.object(dbn, "draw_given", recognition_outcomes(model)),
        in_double(),
    ):
        family = family_of(model, base)
        return reverse.raise_weights(
            model, family, betas, states, np.arange(len(states)), np.arange(chains), seed=0
        )
