"""Which base log_z() starts from, and the sizes of its stages."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.statistics.log_space import log_mean_error, log_mean_exp

LEAST_STEPS = 1000
"""Fewest steps of the last stage: with fewer, chains from all starts may miss the same modes and agree."""

_FIRST = 100, 100
_FIRST_RATE = 20_000.0  # chain-steps per second, before any were timed
_FIRST_SHARE = 0.1  # fraction of the budget for the first stage
_LEAST_AT_ALL = 20
_CHAINS = 200
_CALM = 0.25  # variance of log weights up to which more steps are better than more chains
_SIGMAS = 3.0  # errors in half an interval
_MOST_GROWTH = 16.0
_RESERVE = 0.85  # fraction of the remaining time that is planned: the time of a stage is not known exactly
_WORTH = 0.5  # a new stage has at least this fraction of the last one's work: a smaller one would not help
_APART = 0.1


@dataclass(frozen=True)
class LogZSize:
    """Steps and forward chains of a stage; other starts follow from them."""

    steps: int
    chains: int


def choose_base(trials: Mapping[str, NDArray[np.floating]]) -> str:
    """The base to start from, by log weights (chain,) of a trial from each.

    Each mean weight is a lower bound on Z, so those that lie below the largest by more than noise are out; of the rest
    the one with the largest mean log weight, which loses least on its way.

    >>> choose_base({"model": np.zeros(10), "uniform": np.linspace(-9, -3, 10)})
    'model'
    """
    values = {name: float(log_mean_exp(w)) for name, w in trials.items()}
    errors = {name: float(np.nan_to_num(log_mean_error(w))) for name, w in trials.items()}
    most = max(values, key=lambda name: values[name])
    near = [
        name
        for name in trials
        if values[most] - values[name] <= _APART + 2 * math.hypot(errors[most], errors[name])
    ]
    return max(near, key=lambda name: float(np.mean(trials[name])))


def first_size(budget: float) -> LogZSize:
    """The first stage, for measuring: a small part of the budget."""
    steps, chains = _FIRST
    affordable = _FIRST_RATE * _FIRST_SHARE * budget / chains
    return LogZSize(int(np.clip(affordable, _LEAST_AT_ALL, steps)), chains)


def next_size(
    last: LogZSize, log_weights: NDArray[np.floating], half_width: float, target: float, affordable: float
) -> LogZSize | None:
    """The next stage from what the last one found, None where time for a better one is lacking.

    `affordable` is chains times steps in the time that is left. The variance of log weights falls as 1 / steps; steps
    are raised until it is small, then chains.
    """
    work = last.steps * last.chains
    room = _RESERVE * affordable
    if room < _WORTH * work:
        return None
    spread = float(np.var(log_weights)) * last.steps
    steps = max(last.steps, LEAST_STEPS, spread / _CALM)
    error = max(target, 1e-3) / _SIGMAS
    chains = max(_CHAINS, math.expm1(min(50.0, spread / steps)) / error**2)
    wanted = steps * chains
    if target > 0 and math.isfinite(half_width):
        # At least what the last interval says, if noise is all that makes it wide.
        wanted = max(wanted, work * min(_MOST_GROWTH, (half_width / target) ** 2))
    wanted = min(max(wanted, 2 * work), max(_MOST_GROWTH * work, LEAST_STEPS * _CHAINS), max(room, work))
    if target == 0:
        wanted = min(max(_MOST_GROWTH * work, LEAST_STEPS * _CHAINS), room)
    # A smaller sum than was wanted is taken from chains first: below some hundred their errors are hardly known.
    steps = min(steps, max(last.steps, wanted / _CHAINS))
    chains = max(_CHAINS, wanted / steps)
    steps = max(_LEAST_AT_ALL, min(steps, wanted / chains))
    return LogZSize(round(steps), round(chains))
