"""Runs joined: parts of one specification, computed one after the other or on different machines."""

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from meltpoint.errors import InputError
from meltpoint.evaluation.parcel import stage_to_arrays
from meltpoint.evaluation.plan import cut
from meltpoint.evaluation.stored import StoredRun, read_run, report_so_far
from meltpoint.evaluation.targets import BASE, EXACT, LOG_F, SCHEDULE
from meltpoint.report.report import Report
from meltpoint.runs.fingerprint import fingerprint
from meltpoint.runs.store import RunFolder, open_run


def merge_runs(
    folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str] | None = None
) -> Report:
    """The report of several finished runs together: the same examples with the chains of all of them.

    They must have one specification and different parts. With `out` the joint run is written to a new folder, which
    can be joined with others in turn.
    """
    runs = [read_run(folder) for folder in folders]
    first = runs[0]
    for run in runs:
        first.specification.check_same(run.specification, str(run.folder))
        _check_finished(run)
        _check_same_stage(first, run)
    for one, other in itertools.combinations(runs, 2):
        common = set(one.specification.parts) & set(other.specification.parts)
        if common:
            raise InputError(
                found=f"part {min(common)} both in {one.folder} and in {other.folder}, with the same chains",
                expected="different parts",
                remedy="compute the second one with part=1 (--part 1), a third with part=2",
            )
    # In the order of their parts: the report does not depend on the order of the folders.
    stages = sorted((stored for run in runs for stored in run.stages), key=lambda stored: stored.stage.part)
    parts = tuple(stored.stage.part for stored in stages)
    joint = replace(first, specification=replace(first.specification, parts=parts), stages=tuple(stages))
    report = report_so_far(joint)
    if out is not None:
        _write(joint, runs, report, Path(out))
    return report


def _check_finished(run: StoredRun) -> None:
    if not run.complete:
        raise InputError(
            found=f"an unfinished run in {run.folder}",
            expected="finished ones",
            remedy="continue it first: repeat the call that began it",
        )
    if max(stored.stage.index for stored in run.stages) > 0:
        raise InputError(
            found=f"a run of several stages in {run.folder}",
            expected="runs with a number of steps, chosen beforehand",
            remedy="give steps, chains and examples in place of a gap",
        )


def _check_same_stage(one: StoredRun, other: StoredRun) -> None:
    """Bases and schedules that were measured on different machines may differ by more than rounding."""
    first, second = (
        fingerprint(stage_to_arrays(replace(run.stages[0].stage, part=0))) for run in (one, other)
    )
    if first != second:
        raise InputError(
            found=f"another base or schedule in {other.folder} than in {one.folder}",
            expected="the same: were they measured on machines of different kinds?",
            remedy="compute all parts on machines of one kind, or with the linear schedule and base rates from data",
        )


def _write(joint: StoredRun, runs: Sequence[StoredRun], report: Report, out: Path) -> None:
    with open_run(out, joint.specification) as target:
        for run in runs:
            source = RunFolder(run.folder, run.specification.fingerprint)
            names = [BASE, SCHEDULE, LOG_F, EXACT]
            for stage in (stored.stage for stored in run.stages):
                tasks = cut(len(stage.examples), stage.chains, stage.ais_chains)
                names += [f"{stage.folder}/{name}" for name in ("stage", *(task.name for task in tasks))]
            for name in names:
                arrays = source.read(name)
                if arrays is not None and target.read(name) is None:
                    target.write(name, arrays)
        target.finish(report.to_dict())
