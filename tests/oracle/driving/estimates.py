"""The library's estimators with every random choice replaced by its exact expectation."""

from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np

from meltpoint.annealing.base import Base
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.backends.backend import PreparedPath
from meltpoint.backends.reference import anneal_reference
from meltpoint.backends.tiles import Annealed
from meltpoint.estimators import ais, chain_batches, raise_, sampling
from meltpoint.layers.unit import Floats, States
from meltpoint.models import Model, dbn
from meltpoint.runs import batch
from oracle.driving.double import in_double
from oracle.driving.steps import Moments, exact_anneal, final_distribution, moments
from oracle.driving.truth import generated, recognition_outcomes, recognition_probability, recognition_sizes
from oracle.tables import all_states, code, marginal


def expected_z(model: Model, base: Base, betas: Floats, anneal: Any = None) -> float:
    """E[exp(log Z)] of `ais_log_z`."""
    with mock.patch.object(ais, "anneal", anneal or exact_anneal()):
        return float(np.exp(ais.ais_log_z(model, base=base, steps=betas, chains=1).value))


def expected_probabilities(model: Model, base: Base, betas: Floats, anneal: Any = None) -> Floats:
    """E[exp(log p)] (visible state,) of `raise_log_prob`."""
    weights = _weights(model, base, betas, anneal or exact_anneal())
    return (recognition_probability(model) * weights).sum(axis=1)


def _weights(model: Model, base: Base, betas: Floats, anneal: Any) -> Floats:
    """Weights (visible state, outcome) of `raise_log_prob`, for every outcome of a DBN's recognition."""
    n_outcomes = 2 ** sum(recognition_sizes(model))
    x = model.decode(all_states(model.n_visible))
    with (
        mock.patch.object(raise_, "anneal", anneal),
        mock.patch.object(dbn, "draw_given", recognition_outcomes(model)),
        mock.patch.object(batch, "ranges", lambda n, _largest: [(0, n)]),
        in_double(),
    ):
        run = raise_.raise_log_prob(model, x, base=base, steps=betas, chains=n_outcomes, threads=1)
    return np.exp(run.log_weights)


class _Notes:
    """A stand-in for `anneal` that stays where it is, weighs nothing, and notes what it was asked to do."""

    path: BlockPath
    segments: Sequence[Segment]
    state: States

    def __call__(
        self, prepared: PreparedPath, segments: Sequence[Segment], state: States, streams: object, **_: object
    ) -> Annealed:
        self.path, self.segments, self.state = prepared.path, segments, state
        return Annealed(state, np.zeros((len(state), len(segments))))


def sampled_distribution(
    model: Model,
    base: Base,
    betas: Floats,
    change_segments: Any = list,
    distribution: Any = final_distribution,
) -> Floats:
    """Distribution (visible state,) of `sample_annealing_model`: its segments enumerated."""
    asked = _Notes()
    with mock.patch.object(chain_batches, "anneal", asked):
        sampling.sample_annealing_model(model, 1, base=base, steps=betas)
    state = distribution(asked.path, change_segments(asked.segments))
    visible = np.arange(asked.path.target.n_state) < model.undirected.n_visible
    return generated(model, marginal(state, visible))


def weight_moments(model: Model, base: Base, betas: Floats, loop: Any = anneal_reference) -> Moments:
    """Mean, mean square and largest value (visible state,) of the weights exp(log_weights) of `raise_log_prob`."""
    asked = _Notes()
    first = _weights(model, base, betas, asked)  # the weights before annealing, (visible state, outcome)
    given = moments(asked.path, asked.segments, loop)
    at = code(asked.state).reshape(first.shape)
    q = recognition_probability(model)
    return Moments(
        (q * first * given.mean[at]).sum(axis=1),
        (q * first**2 * given.square[at]).sum(axis=1),
        (first * given.largest[at]).max(axis=1),
    )
