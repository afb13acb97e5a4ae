"""The report after each epoch: likelihood, overfitting, time."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.estimators.ais import ais_log_z
from meltpoint.estimators.base_rates import data_rates
from meltpoint.estimators.raise_ import raise_log_prob
from meltpoint.models import Model
from meltpoint.records import plain_fields
from meltpoint.training.examples import Examples
from meltpoint.training.phases import TrainableDBM, data_phase, log_f_bound
from meltpoint.training.stage import TrainingState

if TYPE_CHECKING:
    from meltpoint.training.loop import Stage

_MONITOR = 2  # key of the random stream
_FEWEST_EPOCHS = 5  # fewest epochs between two brackets
_MOST_BRACKETS = 20  # most brackets of a stage
_BRACKET_EXAMPLES = 100
_BRACKET_STEPS = 1000
_RATES_EXAMPLES = 10_000
_GAP_EXAMPLES = 1000


@dataclass(frozen=True)
class TrainingBracket:
    """Mean log likelihood of a few examples in nats: RAISE from below, AIS from above."""

    conservative: float
    optimistic: float


@dataclass(frozen=True)
class Epoch:
    """The report on one epoch of a stage.

    `bracket` is measured every few epochs, on validation examples or, if there are none, training examples.
    `model` is the model of that moment, given together with the bracket. `gap` is the mean of log f on training
    examples minus that on validation examples, in nats: it grows when the model overfits. (For a DBM, log f is its
    mean-field bound.)
    """

    stage: str
    number: int
    of: int
    seconds: float
    gap: float | None
    bracket: TrainingBracket | None
    model: Model | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        text = f"{self.stage}, epoch {self.number} of {self.of}, {self.seconds:.0f} s"
        if self.bracket is not None:
            text += f": between {self.bracket.conservative:.2f} and {self.bracket.optimistic:.2f} nats"
        return text if self.gap is None else f"{text}, free-energy gap {self.gap:+.2f}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, without the model."""
        return plain_fields(self, without=("model",))


def describe_epoch(stage: "Stage", state: TrainingState, seconds: float) -> Epoch:
    """The report on the epoch that has just ended."""
    run, plan, dbm = stage.run, stage.plan, state.averaged
    stream = stage.stream(state.epoch, _MONITOR)
    gap = bracket = model = None
    if run.validation is not None:
        train, held_out = (_mean_log_f(stage, dbm, each, stream) for each in (run.examples, run.validation))
        gap = train - held_out
    every = max(_FEWEST_EPOCHS, -(-plan.n_epochs // _MOST_BRACKETS))
    if plan.model and (state.epoch % every == 0 or state.epoch == plan.n_epochs):
        model = plan.model([*stage.below, dbm])
        bracket = _bracket(model, run.examples, run.validation or run.examples, stream)
    return Epoch(plan.name, state.epoch, plan.n_epochs, seconds, gap, bracket, model)


def _mean_log_f(stage: "Stage", dbm: TrainableDBM, examples: Examples, stream: NDArray[np.uint32]) -> float:
    """Mean log f, or its bound, of the stage's own layers."""
    visible = examples.layer(slice(_GAP_EXAMPLES), stream)
    states = data_phase(dbm, stage.lowest_layer(visible, stream), stage.plan.sweeps)
    return float(log_f_bound(dbm, states).mean())


def _bracket(model: Model, train: Examples, shown: Examples, stream: NDArray[np.uint32]) -> TrainingBracket:
    base = data_rates(train.values(slice(_RATES_EXAMPLES), stream), model)
    examples = shown.values(slice(_BRACKET_EXAMPLES), stream)
    log_z = ais_log_z(model, base=base, steps=_BRACKET_STEPS, chains=_BRACKET_EXAMPLES).value
    below = raise_log_prob(model, examples, base=base, steps=_BRACKET_STEPS, chains=1).values
    return TrainingBracket(float(below.mean()), float(model.log_f(examples).mean() - log_z))
