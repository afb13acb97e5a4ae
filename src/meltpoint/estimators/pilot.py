"""The pilot: short runs in both directions that measure friction, and the schedule that follows from it.

The pilot has random numbers of its own and never sees the test set, and the schedule is frozen before the run, so
that what the run finds is as unbiased as with any other schedule.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base, BaseLike
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.schedule import Windows, as_betas, measure_friction, spend_equally
from meltpoint.arguments import Count, Seed, Threads, public
from meltpoint.backends.tiles import Annealed
from meltpoint.errors import Progress
from meltpoint.estimators.base_rates import resolve_base
from meltpoint.estimators.chain_batches import Annealing, chain_keys, chains_batch
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Floats, States
from meltpoint.models.model import Model, ModelLike
from meltpoint.progress import silent
from meltpoint.randomness import Purpose, generator
from meltpoint.records import NOT_WRITTEN, Record, short_repr
from meltpoint.runs.batch import Batch
from meltpoint.runs.run import Run

ScheduleName: TypeAlias = Literal["friction", "linear"]

PILOT_STEPS = 500
"""Steps of each of a pilot's rounds."""

_CHAINS = 64
_NUMBERS = np.arange(_CHAINS)
_TRIAL_STEPS = 20, 20, 40, 160, 160, 160
_TRIAL_SECONDS = 0.1  # from which on a trial is long enough
_LEAST_STEPS = 100  # two for each window
_SURELY = 60.0  # seconds in which any pilot is expected to end: no trial is needed
_WINDOWS = 50
_SIGMAS = 2.0  # beyond which a loss is not noise
_TASK, _TRIAL = "pilot", "trial"


@dataclass(frozen=True)
class Pilot(Record):
    """What a pilot cost, and what AIS and RAISE kept with linear steps, and how much more with its own."""

    also_written = ("helps",)

    steps: int
    chain_steps: int
    linear_kept: float
    gain: float
    gain_error: float

    @property
    def kept(self) -> float:
        """Mean log weight of AIS and of RAISE together, from the steps that were better: bases are compared by it."""
        return self.linear_kept + (self.gain if self.helps else 0.0)

    @property
    def helps(self) -> bool:
        """Whether friction beat linear steps, or the two cannot be told apart."""
        return self.gain >= -_SIGMAS * self.gain_error


@dataclass(frozen=True, eq=False, repr=False)
class FrictionSchedule:
    """Friction (window,) between edges (window + 1,): `betas(steps)` spends it equally over the steps."""

    edges: Annotated[Floats, None]
    friction: Annotated[Floats, None]
    pilot: Pilot = field(metadata=NOT_WRITTEN)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        edges = self.edges
        whole = len(edges) == len(self.friction) + 1 > 1 and edges[0] == 0 and edges[-1] == 1
        if not (whole and (np.diff(edges) >= 0).all()):
            raise ValueError("edges that do not lead from 0 to 1, one more than there are windows")

    @property
    def name(self) -> ScheduleName:
        return "friction" if self.pilot.helps else "linear"

    def betas(self, steps: int) -> Floats:
        """The schedule (steps + 1,)."""
        linear = as_betas(steps)
        return spend_equally(self.edges, self.friction, linear.size - 1) if self.pilot.helps else linear


@public
def friction_schedule(
    model: ModelLike,
    train: ArrayLike | None = None,
    *,
    base: BaseLike = None,
    steps: Count = PILOT_STEPS,
    seed: Seed = 0,
    threads: Threads | None = None,
    progress: Progress | bool | None = None,
) -> FrictionSchedule:
    """Measure friction between a base and a model, for betas that lose little at any number of steps.

    Chains go up from the base, and down from training examples (without `train`, from where the chains have gone
    up to): first with linear steps, then with those that follow from the first round, which also shows
    whether these are better. If they are worse, the schedule is linear. Pass `betas(steps)` as an estimator's
    steps.

    Parameters
    ----------
    model
        Any model: an RBM, DBM or DBN, an Ising or Potts model, a factor graph.
    train
        Training examples (example, visible unit), if there are any.
    base
        The base distribution, or its name: "uniform" (the default), "model", or "data" with `train`.
    steps
        Steps of each of the two rounds, with 64 chains up and 64 down.
    seed, threads, progress
        As in `ais_log_z`.

    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM([[4.0, -4.0], [4.0, -4.0]], [-2.0, -2.0], [-2.0, 2.0])
    >>> friction_schedule(rbm).betas(5).shape
    (6,)
    """
    assert not isinstance(progress, bool), "public() has made a callback of it"
    run = Run(threads, progress)
    own_base = resolve_base(base, model, run, train=train, seed=seed)
    states = None if train is None else model.encode(train, "train")
    return run_pilot(model, states, own_base, steps, seed, run)


def run_pilot(
    model: Model, train: States | None, base: Base, steps: int, seed: int, run: Run
) -> FrictionSchedule:
    """As `friction_schedule`, with chains of a run; `train` are states (example, visible unit)."""
    rounds = _Rounds(Annealing(model, base), steps, seed, run)
    first = rounds.run(0, as_betas(steps), None if train is None else _some(train, seed))
    second = rounds.run(1, spend_equally(first.edges, first.friction, steps), first.examples)
    gains = second.down - first.down  # of the same examples
    pilot = Pilot(
        steps=steps,
        chain_steps=2 * rounds.chain_steps,
        linear_kept=float(first.offset + first.up.mean() + first.down.mean()),
        gain=float(second.up.mean() - first.up.mean() + gains.mean()),
        gain_error=math.hypot(_error(first.up), _error(second.up), _error(gains)),
    )
    return FrictionSchedule(second.edges, second.friction, pilot)


def pilot_steps_within(seconds: float, model: Model, base: Base, run: Run) -> int:
    """Steps with which a pilot should end within these seconds, as many as usual at most; a trial of a few tells."""
    if seconds > _SURELY:
        return PILOT_STEPS
    annealing, streams = Annealing(model, base), Streams(0, Purpose.PILOT, chain_keys(2, 0, _NUMBERS))
    run, each = replace(run, folder=None), math.inf
    for k, steps in enumerate(_TRIAL_STEPS):
        begun = time.perf_counter()
        run.results(chains_batch(_TRIAL, annealing, [Segment(as_betas(steps))], _CHAINS, streams), _TRIAL)
        taken = time.perf_counter() - begun
        if k == 0:  # it has compiled kernels, and started workers
            run = replace(run, progress=None)
            continue
        each = min(each, taken / steps)  # the quickest: other programs may have the processor for a moment
        if taken > _TRIAL_SECONDS:
            break
    affordable = seconds / (2 * (1 + model.raise_passes) * each)
    return int(min(PILOT_STEPS, max(_LEAST_STEPS, affordable)))


@dataclass(frozen=True, eq=False)
class _Round:
    """Friction (window,) between edges, and log weights (chain,) of the chains that went up and came down.

    `offset` is what bases do not share of the mean log weight of RAISE; `examples` are where the way down began.
    """

    edges: Floats
    friction: Floats
    up: Floats
    down: Floats
    offset: float
    examples: States


@dataclass(frozen=True, eq=False)
class _Rounds:
    """What the rounds share."""

    annealing: Annealing
    steps: int
    seed: int
    kept: Run

    @property
    def chain_steps(self) -> int:
        """Of one round: up once, and then as often through the betas as RAISE goes."""
        return _CHAINS * self.steps * (1 + self.annealing.model.raise_passes)

    def run(self, k: int, betas: Floats, examples: States | None) -> _Round:
        model, path = self.annealing.model, self.annealing.path
        windows = Windows.of(betas, _WINDOWS)
        rising = [Segment(part) for part in windows.parts]
        # Three numbers to a chain: RAISE's have two, so that not even recognition's draws are shared.
        keys_up, keys_down = chain_keys(k, 0, _NUMBERS), chain_keys(k, 1, _NUMBERS)
        up = self._chains(f"{k}-up", rising, _CHAINS, keys_up)
        done, went_up = k * self.chain_steps, []
        visible: States
        if examples is None:
            went_up = self._anneal([up], done)
            visible = model.generate(went_up[0].state, generator(self.seed, Purpose.PILOT, k))
            done += _CHAINS * self.steps
        else:
            visible = examples
        start = model.raise_start(path, visible, betas, self.seed, keys_down)
        parts = [
            replace(segment, betas=part)
            for segment in start.segments
            for part in replace(windows, betas=segment.betas).parts
        ]
        down = self._chains(f"{k}-down", parts, start.state, keys_down)
        # From examples that are known the way down does not wait for the way up.
        risen, melted = [*went_up, *self._anneal([down] if went_up else [up, down], done)]
        weights, count = _by_segment(melted), len(windows.parts)
        heating, backward = weights[:, :-count], weights[:, -count:][:, ::-1]
        friction = measure_friction(windows, _by_segment(risen), backward, heating if heating.size else None)
        offset = float(path.log_z_base + start.log_weights.mean())
        return _Round(windows.edges, friction, risen.log_weights, melted.log_weights, offset, visible)

    def _chains(
        self, name: str, segments: Sequence[Segment], start: States | int, keys: np.ndarray
    ) -> Batch[Annealed]:
        return chains_batch(name, self.annealing, segments, start, Streams(self.seed, Purpose.PILOT, keys))

    def _anneal(self, batches: Sequence[Batch[Annealed]], done: int) -> list[Annealed]:
        progress = self.kept.progress or silent

        def whole(task: str, here: float, total: float) -> None:
            if task == _TASK:
                here, total = done + here, 2.0 * self.chain_steps
            progress(task, here, total)

        return replace(self.kept, progress=whole).together(batches, _TASK)


def _some(train: States, seed: int) -> States:
    """As many training examples as there are chains; the same one more than once if there are too few."""
    chosen = generator(seed, Purpose.PILOT).choice(len(train), _CHAINS, replace=len(train) < _CHAINS)
    return train[chosen]


def _by_segment(run: Annealed) -> Floats:
    """Log weights (chain, segment) gained on each segment."""
    return np.diff(run.cumulative_log_weights, axis=1, prepend=0.0)


def _error(values: Floats) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))
