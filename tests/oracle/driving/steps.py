"""Exact expectations of the library's own loop: one matrix per step, made by running the step on every outcome."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.backends.backend import PreparedPath
from meltpoint.backends.reference import anneal_reference
from meltpoint.backends.tiles import Annealed
from meltpoint.layers.unit import Floats, States
from oracle.driving.dictated import Dictation, product
from oracle.tables import add_up, all_states, code

Loop: TypeAlias = Callable[..., tuple[States, Floats]]
"""A function with the signature of `anneal_reference`: itself, or one that is broken on purpose."""


@dataclass(frozen=True)
class Step:
    """One step as matrices (state before, state after), for units of two states."""

    probability: Floats
    weight: Floats  # probability times weight, summed over what is summed out
    square: Floats  # probability times weight squared
    largest: Floats  # the largest weight


def step(path: BlockPath, segment: Segment, loop: Loop = anneal_reference) -> Step:
    """Run `loop` through a segment of one step from every state with every outcome of all units."""
    n, n_units = path.target.n_state, path.target.n_units
    start, outcome = product([2**n, 2**n_units])
    outcomes = Dictation(all_states(n_units)[outcome])
    end, log_weights = loop(path, segment, all_states(n)[start], outcomes)
    cell = start * 2**n + code(end)
    probability, weights = np.exp(outcomes.log_prob), np.exp(log_weights)
    largest = np.zeros(4**n)
    np.maximum.at(largest, cell, weights)

    def matrix(values: Floats) -> Floats:
        return add_up(cell, values, 4**n).reshape(2**n, 2**n)

    return Step(
        matrix(probability),
        matrix(probability * weights),
        matrix(probability * weights**2),
        largest.reshape(2**n, 2**n),
    )


def step_at(path: BlockPath, beta: float, following: float | None = None, **how: Any) -> Step:
    """A step from beta to the following one (the same by default); `how` are the segment's other fields."""
    return step(path, Segment(np.array([beta, beta if following is None else following]), **how))


def steps(path: BlockPath, segments: Sequence[Segment], loop: Loop = anneal_reference) -> list[Step]:
    """All steps of all segments in order."""
    return [
        step(path, replace(segment, betas=np.array(pair)), loop)
        for segment in segments
        for pair in pairwise(segment.betas)
    ]


@dataclass(frozen=True)
class Moments:
    """Of the weight of chains from every state (state,): its mean, mean square and largest value."""

    mean: Floats
    square: Floats
    largest: Floats


def moments(path: BlockPath, segments: Sequence[Segment], loop: Loop = anneal_reference) -> Moments:
    """Enumerate the weight of the segments over all chains."""
    mean = square = largest = np.ones(2**path.target.n_state)
    for one in reversed(steps(path, segments, loop)):
        mean, square = one.weight @ mean, one.square @ square
        largest = (one.largest * largest).max(axis=1)
    return Moments(mean, square, largest)


def exact_anneal(
    loop: Loop = anneal_reference, change_segments: Callable[[Sequence[Segment]], Sequence[Segment]] = list
) -> Any:
    """A stand-in for `anneal` whose log weights are the logarithms of *expected* weights, given the start."""

    def anneal(
        prepared: PreparedPath, segments: Sequence[Segment], state: States, streams: object, **_: object
    ) -> Annealed:
        expected = moments(prepared.path, change_segments(segments), loop).mean[code(state)]
        cumulative = np.repeat(np.log(expected)[:, np.newaxis], len(segments), axis=1)
        return Annealed(state, cumulative)

    return anneal


def final_distribution(path: BlockPath, segments: Sequence[Segment]) -> Floats:
    """Distribution (state,) after the segments. They must begin at beta 0, so that the start does not matter."""
    distribution = np.eye(2**path.target.n_state)[0]
    for one in steps(path, segments):
        distribution = distribution @ one.probability
    return distribution
