"""Every trajectory through the library's own `anneal`: tiles, segments, precision spans and changes, all as they are.

Only the kernel call is replaced, by the reference loop with dictated outcomes. A chain's generators say which
trajectory it is and how much of it is done, because generators are what a tile hands to its calls and keeps between.
"""

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np

from meltpoint.annealing.blocks import Segment
from meltpoint.backends import tiles as front
from meltpoint.backends.backend import PreparedPath
from meltpoint.backends.numba import bipartite
from meltpoint.backends.numba.bipartite import PreparedBipartite
from meltpoint.backends.numba.kernels.blocks import to_bits, to_words
from meltpoint.backends.numba.kernels.packing import Packed, spread, without_padding
from meltpoint.backends.numba.kernels.tile import Chains
from meltpoint.backends.reference import anneal_reference
from meltpoint.backends.tiles import Annealed
from meltpoint.kernels.streams import LANES, Streams
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import BipartitePath
from meltpoint.randomness import Purpose
from oracle.driving.dictated import Dictation
from oracle.tables import add_up, all_states, code

_CHAIN, _DRAWN = 0, 1  # which of a chain's generators holds what


def exact_front(prepare: Callable[[Any], PreparedBipartite]) -> Any:
    """A stand-in for `anneal` that runs the real one on every trajectory: log *expected* weights, given the start."""

    def anneal(
        prepared: PreparedPath, segments: Sequence[Segment], state: States, streams: object, **_: object
    ) -> Annealed:
        probability, weights, _states = _enumerate(prepare(prepared.path), segments, state)
        expected = (probability * weights).sum(axis=1)
        cumulative = np.repeat(np.log(expected)[:, np.newaxis], len(segments), axis=1)
        return Annealed(state, cumulative)

    return anneal


def final_distribution(prepared: PreparedBipartite, segments: Sequence[Segment]) -> Floats:
    """Distribution (even state,) of the states at the end of `anneal`, from the state of zeros."""
    n = prepared.path.target.n_even
    probability, _weights, states = _enumerate(prepared, segments, np.zeros((1, n), np.uint8))
    return add_up(code(states)[0], probability[0], 2**n)


def _enumerate(
    prepared: PreparedBipartite, segments: Sequence[Segment], starts: States
) -> tuple[Floats, Floats, States]:
    """Probability and weight (start, trajectory), and final state (start, trajectory, even unit)."""
    target = prepared.path.target
    trajectories = all_states(target.n_units * sum(segment.steps for segment in segments))
    n_chains = len(starts) * len(trajectories)
    log_prob = np.zeros(n_chains)
    streams = _Numbered(0, Purpose.AIS, np.arange(n_chains))
    with mock.patch.object(bipartite, "_call", _dictate(prepared, trajectories, log_prob)):
        chains = np.repeat(starts, len(trajectories), axis=0)
        run = front.anneal(prepared, segments, chains, streams, tile=n_chains)
    shape = (len(starts), len(trajectories))
    return (
        np.exp(log_prob).reshape(shape),
        np.exp(run.log_weights).reshape(shape),
        run.state.reshape(*shape, -1),
    )


class _Numbered(Streams):
    """Streams whose generators hold the chains' numbers."""

    def part(self, chains: slice) -> "_Numbered":
        return _Numbered(self.seed, self.purpose, self.keys[chains])

    def generators(self) -> Any:
        generators = np.zeros((len(self.keys), 4, LANES), np.uint32)
        generators[:, _CHAIN, 0] = self.keys
        return generators


def _dictate(prepared: PreparedBipartite, trajectories: States, log_prob: Floats) -> Callable[..., None]:
    sizes = prepared.sizes

    def call(
        packed: Packed,
        betas: Floats,
        _work: Any,
        clamped: Any,
        chains: Chains,
    ) -> None:
        state, generators, log_weights, _pending = chains
        if not len(generators):  # what compiles kernels
            return
        path: BipartitePath | None = prepared.path if packed is prepared.exact_packed else prepared.rounded
        assert path is not None
        chain, drawn = generators[:, _CHAIN, 0], generators[0, _DRAWN, 0]
        outcomes = Dictation(trajectories[chain % len(trajectories), drawn:])
        units, held = (without_padding(to_bits(words), sizes) for words in (state, clamped))
        segment = Segment(betas, clamped=held.astype(np.bool_))
        units, weights = anneal_reference(path, segment, units, outcomes)
        state[:] = to_words(spread(units, sizes))
        log_weights += weights
        log_prob[chain] += outcomes.log_prob
        generators[:, _DRAWN] += np.uint32(outcomes.position)

    return call
