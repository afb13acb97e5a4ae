"""What all stages of an evaluation share, and a stage's way from its size to a report."""

from dataclasses import dataclass, replace

from meltpoint.estimators.pilot import FrictionSchedule
from meltpoint.evaluation.arguments import choose_examples
from meltpoint.evaluation.clock import Clock
from meltpoint.evaluation.interrupted import Interrupted
from meltpoint.evaluation.path import Path
from meltpoint.evaluation.plan import Stage
from meltpoint.evaluation.stage import Found, Work, run_stage
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.log_f import LogF
from meltpoint.report.compose import compose, optimistic_of
from meltpoint.report.report import Report, Settings
from meltpoint.statistics.estimate import Estimate


@dataclass(frozen=True, eq=False)
class Case:
    """What all stages of an evaluation share."""

    model: Model
    test: Bits
    path: Path
    settings: Settings
    log_f: LogF
    exact: Estimate | None
    part: int


@dataclass(frozen=True)
class Size:
    """Steps, examples, chains per example and AIS chains of a stage."""

    steps: int
    examples: int
    chains: int
    ais_chains: int

    def work(self, legs: int) -> int:
        """Chain-steps, with as many legs as RAISE has."""
        return self.steps * (self.examples * self.chains * legs + self.ais_chains)


def run_once(case: Case, betas: Floats, work: Work, clock: Clock) -> Report:
    """The report of one stage of the size that was asked for."""
    s = case.settings
    size = Size(s.steps, s.examples, s.chains, s.ais_chains)
    friction = case.path.friction
    stage = stage_of(case, size, friction.betas(s.steps) if friction else betas, s.seed)
    found = run_stage(stage, work)
    clock.add(found.seconds)
    return report_of(case, stage, found, clock)


def stage_of(case: Case, size: Size, betas: Floats, seed: int, index: int = 0) -> Stage:
    """A stage of this size."""
    chosen = choose_examples(len(case.test), size.examples, seed)
    return Stage(
        model=case.model,
        examples=case.test[chosen],
        positions=chosen,
        base=case.path.base,
        betas=betas,
        chains=size.chains,
        ais_chains=size.ais_chains,
        seed=seed,
        precision=case.settings.precision,  # pyright: ignore[reportArgumentType]
        index=index,
        part=case.part,
    )


def report_of(case: Case, stage: Stage, found: Found, clock: Clock, doubt: float | None = None) -> Report:
    """The report of what a stage has found; before there is one, KeyboardInterrupt with what AIS has."""
    if found.log_z is None:
        raise KeyboardInterrupt
    if found.prob is None:
        raise Interrupted(optimistic_of(found.log_z, case.log_f), found.log_z, stage.ais_chains)
    settings = replace(
        case.settings,
        base=case.path.base.name,
        steps=stage.steps,
        examples=len(stage.examples),
        chains=stage.chains,
        ais_chains=stage.ais_chains,
    )
    friction: FrictionSchedule | None = case.path.friction
    return compose(
        case.model,
        settings,
        case.log_f,
        case.exact,
        found.log_z,
        found.prob,
        stage.positions[found.finished],
        clock.seconds(),
        friction and friction.pilot,
        doubt,
    )
