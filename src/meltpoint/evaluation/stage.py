"""A stage: AIS and RAISE once each along one schedule. log_z() has stages without examples.

Its log weights depend on the stage, the model and the settings, and on nothing that was computed before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.errors import InputError
from meltpoint.estimators.ais import ForwardWeights, ais_batch
from meltpoint.estimators.chain_batches import Annealing
from meltpoint.estimators.evidence import Starts
from meltpoint.estimators.particles import Melted
from meltpoint.estimators.raise_ import RaiseWeights, raise_batch
from meltpoint.fingerprint import fingerprint
from meltpoint.layers.unit import Floats, States
from meltpoint.models import Model
from meltpoint.randomness import Purpose, generator, sequence
from meltpoint.runs.batch import Batch
from meltpoint.runs.contents import EVIDENCE, STAGE, stage_folder
from meltpoint.runs.records import to_arrays
from meltpoint.runs.run import Results, Run

ANNEALING = "AIS and RAISE"
"""What progress calls a stage, unless there are several."""

_MOST_CHAINS = 20_000_000


@dataclass(frozen=True)
class Size:
    """Steps, examples, chains per example and AIS chains of a stage."""

    steps: int
    examples: int
    chains: int
    ais_chains: int

    def __post_init__(self) -> None:
        largest = max(self.examples * self.chains, self.ais_chains)
        if not (
            min(self.steps, self.chains, self.ais_chains) > 0 <= self.examples and largest <= _MOST_CHAINS
        ):
            raise InputError(
                found=f"a stage of {self.examples:,} examples with {self.chains:,} chains each and "
                f"{self.ais_chains:,} AIS chains",
                expected=f"from 1 to {_MOST_CHAINS:,} chains",
                remedy="restore the run's folder from a copy, or begin the run anew in another folder",
            )

    def work(self, passes: int) -> int:
        """Chain-steps, where RAISE goes through the betas `passes` times."""
        return self.steps * (self.examples * self.chains * passes + self.ais_chains)


@dataclass(frozen=True, eq=False)
class Stage:
    """What the log weights of a stage depend on, besides the model and the precision.

    `examples` (example, visible unit) are those RAISE is run for, at these `positions` (example,) of the test set.
    Stages of one evaluation are numbered, and each has a seed of its own. Another `part` has as many other chains.
    """

    size: Size
    base: Base
    betas: Annotated[Floats, "beta"]
    positions: Annotated[NDArray[np.integer], "example"]
    examples: Annotated[States, "example", "unit"]
    seed: int
    number: int = 0
    part: int = 0

    def __post_init__(self) -> None:
        if (len(self.positions), self.betas.size - 1) != (self.size.examples, self.size.steps):
            raise ValueError("a stage of another size than it says")

    @property
    def folder(self) -> str:
        """Where its records lie in a run's folder."""
        return stage_folder(self.part, self.number)

    def batches(
        self, model: "Model | NoModel", precision: str
    ) -> tuple[Batch[ForwardWeights], Batch[RaiseWeights]]:
        """AIS first, so that one side is known early. Parts have chains of other numbers."""
        annealing = Annealing(model, self.base, precision)  # pyright: ignore[reportArgumentType]
        n, chains = self.size.ais_chains, self.size.chains
        return (
            ais_batch(annealing, self.betas, n, self.seed, self.part * n),
            raise_batch(annealing, self.betas, self.examples, chains, self.seed, self.part * chains),
        )


def choose_examples(available: int, n: int, seed: int) -> NDArray[np.integer]:
    """Positions (example,), in the test set, of the examples RAISE is run for."""
    return generator(seed, Purpose.EXAMPLES).choice(available, size=n, replace=False)


def stage_seed(seed: int, number: int) -> int:
    """The seed of a stage of an evaluation."""
    # Nothing of an earlier stage may come back: neither its chains' noise nor its choice of examples.
    return int(sequence(seed, Purpose.STAGE, number).generate_state(1, np.uint64)[0])


@dataclass(frozen=True, eq=False)
class StageResult:
    """A stage, its weights as far as they are finished, and what other starts found, None if they were not asked.

    `exact_reverse` (state,) are reverse log weights of exact samples, where log_z() has melted some.
    """

    stage: Stage
    ais: Results[ForwardWeights]
    raised: Results[RaiseWeights]
    starts: Starts | None = None
    exact_reverse: Floats | None = None
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether all weights are there."""
        return self.ais.complete and self.raised.complete

    @property
    def seconds(self) -> float:
        """Seconds of one core that the weights took."""
        return self.ais.seconds + self.raised.seconds

    @property
    def log_weights(self) -> Floats:
        """Log weights of the finished chains of AIS."""
        return np.zeros(0) if self.ais.values is None else self.ais.values.log_weights

    @property
    def melted(self) -> Melted | None:
        """RAISE's log weights of the finished examples, None without any."""
        found = self.raised.values
        return None if found is None else Melted(found.log_weights, found.log_reverse_weights)

    @property
    def finished(self) -> NDArray[np.integer]:
        """Which of the stage's examples (example,) are finished."""
        return np.flatnonzero(self.raised.finished)


def run_stage(stage: Stage, model: Model, precision: str, run: Run, task: str = ANNEALING) -> StageResult:
    """Run AIS and RAISE in one queue. Ctrl-C ends it, and gives what is finished by then."""
    own = run.inside(stage.folder)
    kept = own.once(STAGE, Stage, lambda: stage)
    if kept is not stage and fingerprint(to_arrays(kept)) != fingerprint(to_arrays(stage)):
        raise InputError(
            found=f"another schedule, base or other chains in {stage.folder} of the run",
            expected="the stage that was begun",
            remedy="choose another folder",
        )
    (ais, raised), interrupted = own.results_so_far(stage.batches(model, precision), task)
    return StageResult(stage, ais, raised, interrupted=interrupted)


@dataclass(frozen=True)
class ModelFacts:
    """What reports say of a model: a run's folder has no model."""

    description: str
    n_visible: int
    raise_passes: int
    raise_starts_from: str | None
    unit: str
    densities: bool

    @classmethod
    def of(cls, model: Model) -> "ModelFacts":
        unit = model.support
        return cls(
            repr(model),
            model.n_visible,
            model.raise_passes,
            model.raise_starts_from,
            unit.name,
            unit.n_states is None,
        )


class NoModel:
    """In place of the model where results are read and nothing is computed."""

    raise_passes = 1


def kept_stage(folder: str, precision: str, run: Run) -> StageResult | None:
    """What a run has of a stage, None if it was not begun."""
    own = run.inside(folder)
    stage = own.recall(STAGE, Stage)
    if stage is None:
        return None
    ais, raised = own.kept_results(stage.batches(NoModel(), precision))
    return StageResult(stage, ais, raised, own.recall(EVIDENCE, Starts))


def join_parts(parts: Sequence[StageResult]) -> StageResult:
    """The results of the same stage of several parts as those of one with all their chains."""
    first = parts[0]
    if len(parts) == 1:
        return first
    known = np.logical_and.reduce([part.raised.finished for part in parts])
    values = [part.raised.values for part in parts]
    rows = [known[part.raised.finished] for part in parts]

    def joined(name: str) -> Floats:
        return np.concatenate(
            [getattr(each, name)[own] for each, own in zip(values, rows, strict=True)], axis=1
        )

    raised = RaiseWeights(joined("log_weights"), joined("log_reverse_weights")) if known.any() else None
    forward = [part.ais.values.log_weights for part in parts if part.ais.values is not None]
    size = replace(
        first.stage.size,
        chains=sum(part.stage.size.chains for part in parts),
        ais_chains=sum(part.stage.size.ais_chains for part in parts),
    )
    return replace(
        first,
        stage=replace(first.stage, size=size),
        ais=Results(
            ForwardWeights(np.concatenate(forward)) if forward else None,
            np.concatenate([part.ais.finished for part in parts]),
            sum(part.ais.seconds for part in parts),
        ),
        raised=Results(raised, known, sum(part.raised.seconds for part in parts)),
    )
