"""The annealing loop, broken on purpose: variants of `anneal_reference` that every check must reject."""

from itertools import pairwise

import numpy as np

from meltpoint.annealing.reference import move


def moves_as_printed(family, betas, state, draw, frozen=None):
    """Algorithm 2 to the letter: x_k is drawn from the reversal of T_k, one beta too late."""
    log_weights = np.zeros(len(state))
    for beta, following in pairwise(betas):
        state = move(family, following, state, draw, frozen)
        log_weights += family.log_f(following, state) - family.log_f(beta, state)
    return state, log_weights


def heats_as_printed(family, betas, state, draw, frozen=None):
    """Algorithm 3 to the letter while heating: h'_k is drawn from the reversal of T_k; melting is right."""
    log_weights = np.zeros(len(state))
    for beta, following in pairwise(betas):
        state = move(family, beta if frozen is None else following, state, draw, frozen)
        log_weights += family.log_f(following, state) - family.log_f(beta, state)
    return state, log_weights


def weighs_before_moving(family, betas, state, draw, frozen=None):
    """The weight is taken where the chain was, not where it went."""
    log_weights = np.zeros(len(state))
    for beta, following in pairwise(betas):
        log_weights += family.log_f(following, state) - family.log_f(beta, state)
        state = move(family, beta, state, draw, frozen)
    return state, log_weights


def weighs_backwards(family, betas, state, draw, frozen=None):
    """The ratio is turned over."""
    log_weights = np.zeros(len(state))
    for beta, following in pairwise(betas):
        state = move(family, beta, state, draw, frozen)
        log_weights += family.log_f(beta, state) - family.log_f(following, state)
    return state, log_weights
