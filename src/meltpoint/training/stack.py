"""Greedy stacks: each layer is trained as an RBM on draws from the layers below it."""

from collections.abc import Callable, Sequence

from meltpoint.models import Model
from meltpoint.randomness import Purpose, generator
from meltpoint.training.draws import stream
from meltpoint.training.fit import fit
from meltpoint.training.machine import Machine, new_machine
from meltpoint.training.run import Run
from meltpoint.training.stage import Recognition, Stage

_START, _RATES = 3, 4
_RATES_EXAMPLES = 10_000


def train_stack(
    run: Run,
    hidden: Sequence[int],
    copies: Sequence[tuple[int, int]],
    model: Callable[[Sequence[Machine]], Model] | None,
) -> list[Machine]:
    """One machine for each hidden layer, lowest first, with these copies of its lower and upper layer.

    `model` gives the model that the first few machines make up, None if they do not make one up yet.
    """
    machines: list[Machine] = []
    for number, size in enumerate(hidden):
        name = f"layer {number + 1} of {len(hidden)}" if len(hidden) > 1 else "training"
        lift = Recognition(tuple(machines)) if machines else None
        so_far = None if model is None else _with_top(model, list(machines))
        stage = Stage(number, name, lift, model=so_far)
        machines.append(fit(run, stage, _new(run, stage, size, copies[number])))
    return machines


def _with_top(
    model: Callable[[Sequence[Machine]], Model], below: list[Machine]
) -> Callable[[Machine], Model]:
    return lambda top: model([*below, top])


def _new(run: Run, stage: Stage, size: int, copies: tuple[int, int]) -> Callable[[], Machine]:
    def start() -> Machine:
        rates = run.examples.rates
        if stage.lift is not None:
            draws = stream(run.seed, stage.number, _RATES)
            ones = stage.lift(run.examples.bits(slice(_RATES_EXAMPLES), draws), draws)
            rates = (ones.sum(axis=0) + 1.0) / (len(ones) + 2.0)
        return new_machine(
            [rates.size, size], rates, generator(run.seed, Purpose.TRAINING, stage.number, _START), copies
        )

    return start
