"""The annealing loop, broken on purpose: variants of `anneal_reference` that every check must reject."""

from itertools import pairwise

import numpy as np


def _loop(path, segment, state, draws, beta_of, *, weigh_first=False, sign=1):
    """The loop with one thing changed: `beta_of` a step's sweep (its first beta is right), the order, or the sign."""
    log_weights = np.zeros(len(state))
    transition = path.transition.reversed() if segment.reversed_sweeps else path.transition
    for beta, following in pairwise(segment.betas):
        before = state
        state = transition.move(path, beta_of(beta, following), state, draws, segment.clamped)
        at = before if weigh_first else state
        log_weights += sign * (path.log_f(following, at) - path.log_f(beta, at))
    return state, log_weights


def _first(beta, _following):
    return beta


def _second(_beta, following):
    return following


def moves_as_printed(path, segment, state, draws):
    """Algorithm 2 to the letter: x_k is drawn from the reversal of T_k, one beta too late."""
    return _loop(path, segment, state, draws, _second)


def heats_as_printed(path, segment, state, draws):
    """Algorithm 3 to the letter while heating: h'_k is drawn from the reversal of T_k; melting is right."""
    return _loop(path, segment, state, draws, _first if segment.clamped is None else _second)


def weighs_before_moving(path, segment, state, draws):
    """The weight is taken where the chain was, not where it went."""
    return _loop(path, segment, state, draws, _first, weigh_first=True)


def weighs_backwards(path, segment, state, draws):
    """The ratio is turned over."""
    return _loop(path, segment, state, draws, _first, sign=-1)
