"""Runs as they lie on the disk: how far they are, and what they say so far. Neither model nor data are needed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from meltpoint.errors import InputError
from meltpoint.estimators.pilot import Pilot
from meltpoint.evaluation.clock import Clock
from meltpoint.evaluation.interrupted import Interrupted
from meltpoint.evaluation.parcel import stage_from_arrays
from meltpoint.evaluation.plan import Stage, cut, stage_folder
from meltpoint.evaluation.targets import EXACT, LOG_F, SCHEDULE, exact_from, schedule_from
from meltpoint.evaluation.weights import Weights, side_by_side
from meltpoint.models.log_f import LogF
from meltpoint.report.compose import compose, optimistic_of
from meltpoint.report.report import Report, Settings
from meltpoint.runs.specification import Specification, read_specification
from meltpoint.runs.store import RunFolder


@dataclass(frozen=True)
class StoredStage:
    """A stage on the disk, and its weights as far as they are there."""

    stage: Stage
    weights: Weights


@dataclass(frozen=True)
class StoredRun:
    """A run on the disk, by stages of all its parts."""

    folder: Path
    specification: Specification
    stages: tuple[StoredStage, ...]
    log_f: LogF | None
    exact_log_z: float | None
    pilot: Pilot | None

    @property
    def complete(self) -> bool:
        """Whether nothing is missing of what was begun, and every part was."""
        begun = {stored.stage.part for stored in self.stages}
        return begun == set(self.specification.parts) and all(s.weights.complete for s in self.stages)


def read_run(folder: str | os.PathLike[str]) -> StoredRun:
    """What is finished of a run; a damaged piece counts as missing, with a warning."""
    path = Path(folder)
    specification = read_specification(path)
    pieces = RunFolder(path, specification.fingerprint)
    log_f, exact, schedule = (pieces.read(name) for name in (LOG_F, EXACT, SCHEDULE))
    return StoredRun(
        path,
        specification,
        tuple(stored for part in specification.parts for stored in _read_stages(pieces, part)),
        LogF(**log_f) if log_f else None,
        float(exact["log_z"]) if exact else None,
        schedule_from(schedule).pilot if schedule else None,
    )


def report_so_far(run: StoredRun) -> Report:
    """The report of what is finished by now. Of several stages the last one with a finished chain counts.

    Without an example RAISE has finished it raises Interrupted with what AIS has found, without a chain an
    InputError.
    """
    clock = Clock()
    begun = [stored for stored in run.stages if stored.weights.ais_chains]
    stages = [stored for stored in begun if stored.stage.index == begun[-1].stage.index]
    weights = side_by_side([stored.weights for stored in stages]) if stages else None
    log_z = weights.log_z() if weights else None
    if weights is None or log_z is None or run.log_f is None:
        raise InputError(
            found=f"no finished chain in {run.folder}",
            expected="at least one, to know anything",
            remedy="continue the run: repeat the call that began it",
        )
    clock.add({"earlier calls": weights.seconds})
    ais_chains = sum(stored.stage.ais_chains for stored in stages)
    prob = weights.log_prob()
    if prob is None:
        raise Interrupted(optimistic_of(log_z, run.log_f), log_z, ais_chains)
    first = stages[0].stage
    settings = replace(
        Settings(**run.specification.settings, **run.specification.reporting_settings),
        base=first.base.name,
        steps=first.steps,
        examples=len(first.examples),
        chains=sum(stored.stage.chains for stored in stages),
        ais_chains=ais_chains,
    )
    truth = None if run.exact_log_z is None else exact_from(run.exact_log_z, run.log_f)
    positions = first.positions[weights.examples]
    return compose(
        first.model, settings, run.log_f, truth, log_z, prob, positions, clock.seconds(), run.pilot
    )


def _read_stages(pieces: RunFolder, part: int) -> Iterator[StoredStage]:
    index = 0
    while arrays := pieces.read(f"{stage_folder(part, index)}/stage"):
        stage = stage_from_arrays(arrays)
        weights = Weights(len(stage.examples), stage.chains, stage.ais_chains)
        for task in cut(len(stage.examples), stage.chains, stage.ais_chains):
            weights.recall(pieces, stage.folder, task)
        yield StoredStage(stage, weights)
        index += 1
