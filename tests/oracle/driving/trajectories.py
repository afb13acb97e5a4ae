"""Every trajectory through the library's own `anneal`: tiles, legs, stretches, changes of family, all as they are.

Only the kernel call is replaced, by the plain NumPy loop with dictated outcomes. A chain's generators say
which trajectory it is and how much of it has been walked, because generators are what `anneal` hands to each
chain's calls and keeps between them.
"""

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np

from meltpoint.annealing import anneal as front
from meltpoint.annealing.anneal import Annealed, Leg
from meltpoint.annealing.family import Family
from meltpoint.annealing.kernels.blocks import to_bits, to_words
from meltpoint.annealing.kernels.packing import Packed, spread, without_padding
from meltpoint.annealing.precision import Walk
from meltpoint.annealing.reference import anneal_reference
from meltpoint.annealing.streams import LANES
from meltpoint.models.checks import Bits, Floats
from oracle.driving.dictated import Dictation, dictated
from oracle.tables import add_up, all_states, code

_CHAIN, _WALKED = 0, 1  # which of a chain's generators holds what


def exact_front(make_walk: Callable[[Family], Walk]) -> Any:
    """A stand-in for `anneal` that runs the real one on every trajectory: log *expected* weights, given the start."""

    def anneal(family: Family, legs: Sequence[Leg], state: Bits, generators: object, **_: object) -> Annealed:
        probability, weights, _states = _enumerate(family, legs, state, make_walk(family))
        expected = (probability * weights).sum(axis=1)
        passed = np.repeat(np.log(expected)[:, np.newaxis], len(legs), axis=1)
        return Annealed(state, passed, np.ones(len(state), np.bool_))

    return anneal


def final_distribution(family: Family, legs: Sequence[Leg], walk: Walk) -> Floats:
    """Distribution (even state,) of the states at the end of `anneal`, from the state of zeros."""
    starts = np.zeros((1, family.target.n_even), np.uint8)
    probability, _weights, states = _enumerate(family, legs, starts, walk)
    return add_up(code(states)[0], probability[0], 2**family.target.n_even)


def _enumerate(family: Family, legs: Sequence[Leg], starts: Bits, walk: Walk) -> tuple[Floats, Floats, Bits]:
    """Probability and weight (start, trajectory), and final state (start, trajectory, even unit)."""
    drawn_per_step = family.target.n_even + family.target.n_odd
    trajectories = all_states(drawn_per_step * sum(leg.betas.size - 1 for leg in legs))
    n_chains = len(starts) * len(trajectories)
    generators = np.zeros((n_chains, 4, LANES), np.uint32)
    generators[:, _CHAIN, 0] = np.arange(n_chains)
    log_prob = np.zeros(n_chains)
    call = _dictate(walk, trajectories, log_prob)
    with (
        mock.patch.object(front, "prepare", return_value=walk),
        mock.patch.object(front, "_call", call),
        dictated(),
    ):
        chains = np.repeat(starts, len(trajectories), axis=0)
        run = front.anneal(family, legs, chains, generators, threads=1, tile=n_chains)
    assert run.finished.all()
    shape = (len(starts), len(trajectories))
    return (
        np.exp(log_prob).reshape(shape),
        np.exp(run.log_weights).reshape(shape),
        run.state.reshape(*shape, -1),
    )


def _dictate(walk: Walk, trajectories: Bits, log_prob: Floats) -> Callable[..., None]:
    sizes = walk.exact_packed.even.sizes

    def call(
        packed: Packed,
        betas: Floats,
        frozen: Any,
        state: Any,
        generators: Any,
        log_weights: Floats,
        _carried: Floats,
    ) -> None:
        if betas.size < 2:  # what `anneal` does to compile
            return
        family = walk.exact if packed is walk.exact_packed else walk.rounded
        assert family is not None
        chain, walked = generators[:, _CHAIN, 0], generators[0, _WALKED, 0]
        outcomes = Dictation(trajectories[chain % len(trajectories), walked:])
        units, held = (without_padding(to_bits(words), sizes) for words in (state, frozen))
        units, weights = anneal_reference(family, betas, units, outcomes, held.astype(np.bool_))
        state[:] = to_words(spread(units, sizes))
        log_weights += weights
        log_prob[chain] += outcomes.log_prob
        generators[:, _WALKED] += np.uint32(outcomes.position)

    return call
