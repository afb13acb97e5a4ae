"""What the kernels should have done, by the reference loop fed with the kernels' own uniforms."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Segment, UnitBlock
from meltpoint.backends.numba.bipartite import PreparedBipartite
from meltpoint.backends.reference import anneal_reference
from meltpoint.backends.tiles import Annealed
from meltpoint.kernels.streams import Streams, next_uniforms
from meltpoint.layers.unit import Floats, States

NUDGE = 3e-5
"""Relative change of a uniform that float32 arithmetic could be mistaken about."""


def replay(
    prepared: PreparedBipartite,
    segments: Sequence[Segment],
    state: States,
    streams: Streams,
    nudge: float = 0.0,
) -> Annealed:
    """The segments from `state`, precision span by precision span, in float64."""
    generators = streams.generators()
    real = prepared.exact_packed.real.type

    def draw(block: UnitBlock, inputs: Floats) -> States:
        uniforms = [next_uniforms(generators, size, real) * (1 + nudge) for size in block.layer_sizes]
        return block.unit.draw(inputs, np.concatenate(uniforms, axis=1))

    draws: Any = SimpleNamespace(units=draw)
    log_weights = np.zeros(len(state))
    path = prepared.path
    beta = segments[0].betas[0]
    for segment in segments:
        for span in prepared.spans(segment.betas):
            following = prepared.path if span.exact or prepared.rounded is None else prepared.rounded
            log_weights += following.log_f(span.betas[0], state) - path.log_f(span.betas[0], state)
            path = following
            state, change = anneal_reference(path, replace(segment, betas=span.betas), state, draws)
            log_weights += change
            beta = span.betas[-1]
    log_weights += prepared.path.log_f(beta, state) - path.log_f(beta, state)
    return Annealed(state, log_weights[:, np.newaxis])


def clear_cut(
    prepared: PreparedBipartite, segments: Sequence[Segment], state: States, streams: Streams
) -> NDArray[np.bool_]:
    """Which chains (chain,) never draw a unit so close to its probability that rounding could decide.

    They are those that go the same way when all their uniforms are a little larger, and a little smaller.
    """
    runs = [replay(prepared, segments, state, streams, nudge) for nudge in (-NUDGE, 0.0, NUDGE)]
    return np.all([run.log_weights == runs[0].log_weights for run in runs], axis=0)
