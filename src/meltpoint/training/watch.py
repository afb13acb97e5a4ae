"""What is worth knowing after an epoch: is it learning, is it overfitting, how long has it taken."""

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import data_rates
from meltpoint.estimators.ais import ais_log_z
from meltpoint.estimators.reverse import raise_log_prob
from meltpoint.models import Model
from meltpoint.training.draws import stream
from meltpoint.training.epoch import Bracket, Epoch
from meltpoint.training.examples import Examples
from meltpoint.training.phases import infer, log_f_bound
from meltpoint.training.run import Run
from meltpoint.training.stage import Stage
from meltpoint.training.state import Training, latest

_WATCH = 2
_BRACKET_EVERY = 5  # epochs
_BRACKET_EXAMPLES = 100
_BRACKET_STEPS = 1000
_RATES_EXAMPLES = 10_000
_GAP_EXAMPLES = 1000


def watch(run: Run, stage: Stage, training: Training, seconds: float) -> Epoch:
    """The report on the epoch that has just ended."""
    n_epochs = run.settings[stage.number].epochs
    draws = stream(run.seed, stage.number, training.epoch, _WATCH)
    gap = bracket = None
    if run.validation is not None:
        gap = _log_f(stage, training, run.examples, draws) - _log_f(stage, training, run.validation, draws)
    if stage.model and (training.epoch % _BRACKET_EVERY == 0 or training.epoch == n_epochs):
        bracket = _bracket(stage.model(latest(training)), run.examples, run.validation or run.examples, draws)
    return Epoch(stage.name, training.epoch, n_epochs, seconds, gap, bracket)


def _log_f(stage: Stage, training: Training, examples: Examples, draws: NDArray[np.uint32]) -> float:
    visible = examples.bits(slice(_GAP_EXAMPLES), draws)
    machine = latest(training)
    states = infer(machine, stage.lift(visible, draws) if stage.lift else visible, stage.sweeps)
    return float(log_f_bound(machine, states).mean())


def _bracket(model: Model, train: Examples, shown: Examples, draws: NDArray[np.uint32]) -> Bracket:
    base = data_rates(train.bits(slice(_RATES_EXAMPLES), draws), model)
    examples = shown.bits(slice(_BRACKET_EXAMPLES), draws)
    log_z = ais_log_z(model, base=base, steps=_BRACKET_STEPS, chains=_BRACKET_EXAMPLES).value
    below = raise_log_prob(model, examples, base=base, steps=_BRACKET_STEPS, chains=1).values
    return Bracket(float(below.mean()), float(model.log_f(examples).mean() - log_z))
