"""Exact expectations of the library's own loop: one matrix per step, made by running the step on every outcome."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.anneal import Annealed, Leg
from meltpoint.annealing.family import Family
from meltpoint.annealing.reference import anneal_reference
from meltpoint.models.checks import Bits, Floats
from oracle.driving.dictated import Dictation, dictated, product
from oracle.tables import add_up, all_states, code

Loop: TypeAlias = Callable[..., tuple[Bits, Floats]]
"""A function with the signature of `anneal_reference`: itself, or one that is broken on purpose."""


@dataclass(frozen=True)
class Step:
    """One step as matrices (even state before, even state after)."""

    probability: Floats
    weight: Floats  # probability times weight, summed over the odd side
    square: Floats  # probability times weight squared
    largest: Floats  # the largest weight


def step(
    family: Family,
    beta: float,
    following: float,
    frozen: NDArray[np.bool_] | None = None,
    loop: Loop = anneal_reference,
) -> Step:
    """Run `loop` through betas (beta, following) from every even state with every outcome of both sides."""
    n_even, n_odd = family.target.n_even, family.target.n_odd
    start, odd, even = product([2**n_even, 2**n_odd, 2**n_even])
    outcomes = Dictation(np.concatenate([all_states(n_odd)[odd], all_states(n_even)[even]], axis=1))
    with dictated():
        end, log_weights = loop(
            family, np.array([beta, following]), all_states(n_even)[start], outcomes, frozen
        )
    cell = start * 2**n_even + code(end)
    probability, weights = np.exp(outcomes.log_prob), np.exp(log_weights)
    largest = np.zeros(4**n_even)
    np.maximum.at(largest, cell, weights)

    def matrix(values: Floats) -> Floats:
        return add_up(cell, values, 4**n_even).reshape(2**n_even, 2**n_even)

    return Step(
        matrix(probability),
        matrix(probability * weights),
        matrix(probability * weights**2),
        largest.reshape(2**n_even, 2**n_even),
    )


def steps(family: Family, legs: Sequence[Leg], loop: Loop = anneal_reference) -> list[Step]:
    """All steps of all legs in order."""
    return [
        step(family, beta, following, leg.frozen, loop)
        for leg in legs
        for beta, following in pairwise(leg.betas)
    ]


@dataclass(frozen=True)
class Moments:
    """Of the weight of chains from every even state (even state,): its mean, mean square and largest value."""

    mean: Floats
    square: Floats
    largest: Floats


def moments(family: Family, legs: Sequence[Leg], loop: Loop = anneal_reference) -> Moments:
    """Enumerate the weight of the legs over all chains."""
    mean = square = largest = np.ones(2**family.target.n_even)
    for one in reversed(steps(family, legs, loop)):
        mean, square = one.weight @ mean, one.square @ square
        largest = (one.largest * largest).max(axis=1)
    return Moments(mean, square, largest)


def exact_anneal(
    loop: Loop = anneal_reference, change_legs: Callable[[Sequence[Leg]], Sequence[Leg]] = list
) -> Any:
    """A stand-in for `anneal` whose log weights are the logarithms of *expected* weights, given the start."""

    def anneal(family: Family, legs: Sequence[Leg], state: Bits, generators: object, **_: object) -> Annealed:
        expected = moments(family, change_legs(legs), loop).mean[code(state)]
        passed = np.repeat(np.log(expected)[:, np.newaxis], len(legs), axis=1)
        return Annealed(state, passed, np.ones(len(state), np.bool_))

    return anneal


def final_distribution(family: Family, legs: Sequence[Leg]) -> Floats:
    """Distribution (even state,) after the legs. They must begin at beta 0, so that the start does not matter."""
    distribution = np.eye(2**family.target.n_even)[0]
    for one in steps(family, legs):
        distribution = distribution @ one.probability
    return distribution
