"""Runs on disk: how much is finished, the report of that, and several runs joined.

Neither model nor data are needed. Reports are made by the same code as those of evaluate(), with the same numbers.
"""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from meltpoint.defaults import Settings
from meltpoint.errors import InputError
from meltpoint.estimators.conventions import ConventionCheck
from meltpoint.estimators.evidence import Starts
from meltpoint.evaluation.once import turned_to
from meltpoint.evaluation.prerequisites import (
    CONVENTIONS_LAYOUT,
    EXACT_LAYOUT,
    Origin,
    conventions_from_arrays,
    recall_names,
    recall_samples,
    recall_schedule,
)
from meltpoint.evaluation.stage_report import best_stage, most_found, report_of, summary_of, with_stages
from meltpoint.models.log_f import LogF
from meltpoint.results.report import Report
from meltpoint.runs.contents import (
    CONVENTIONS,
    EXACT,
    LOG_F,
    NAMES,
    SAMPLES,
    base_name,
    evidence_name,
    schedule_name,
    stage_name,
    turn_name,
)
from meltpoint.runs.fingerprint import fingerprint
from meltpoint.runs.specification import Specification, read_specification
from meltpoint.runs.store import RunFolder, open_run, reading_run
from meltpoint.stages.decisions import read_stages
from meltpoint.stages.evidence import recall_evidence
from meltpoint.stages.execute import recall_weights
from meltpoint.stages.log_f import log_f_from_arrays, log_f_layout
from meltpoint.stages.stage import Stage, StageWeights, stage_to_arrays, tasks_of


@dataclass(frozen=True, eq=False)
class StoredStage:
    """A stage on the disk, its weights as far as they are there, and what other starts found, if they were asked."""

    stage: Stage
    weights: StageWeights
    starts: Starts | None = None


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run on the disk: its folder, what it computes, and the stages of all its parts.

    `origins` are those of the stages by the names of their bases, `turned` the parts that are evaluated from a second
    base too, `damaged` the names of chunks that are there and cannot be read.
    """

    folder: Path
    specification: Specification
    stages: tuple[StoredStage, ...]
    log_f: LogF | None
    exact_log_z: float | None
    origins: Mapping[str, Origin]
    finished: bool
    conventions: ConventionCheck | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    samples: NDArray[Any] | None = None
    turned: frozenset[int] = frozenset()
    damaged: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"StoredRun({self.folder}, {'finished' if self.complete else 'unfinished'})"

    @property
    def settings(self) -> Settings:
        """What was asked for when the run was begun."""
        # Folders that were written before there was evidence do not mention it.
        asked = {"evidence": False, **self.specification.reporting_settings}
        return Settings(**self.specification.settings, **asked)

    @property
    def complete(self) -> bool:
        """Whether its report was written, and nothing is missing of what was begun."""
        if self.damaged:
            return False
        parts = set(self.specification.parts)
        if self.settings.budget is not None:
            begun = {stored.stage.part for stored in self.stages}
            return begun == parts and all(s.weights.complete for s in self.stages) and self.finished
        wanted = {(part, 0) for part in parts}
        if self.settings.evidence:
            wanted |= {(part, 1) for part in self.turned}
        return wanted <= {(s.stage.part, s.stage.index) for s in self.stages if self._is_done(s)}

    def _is_done(self, stored: StoredStage) -> bool:
        """Whether all weights of a stage are there, and what other starts say of it, if they were to be asked."""
        return stored.weights.complete and (not self.settings.evidence or stored.starts is not None)

    def report(self) -> Report:
        """The report of what is finished by now; of several stages the best complete one counts.

        If RAISE has finished no example it raises Interrupted with what AIS has found; if AIS has finished no chain,
        an InputError.
        """
        begun = [stored for stored in self.stages if stored.weights.ais_chains]
        if not begun or self.log_f is None:
            raise InputError(
                found=f"no finished chain in {self.folder}",
                expected="at least one finished chain",
                remedy="continue the run: repeat the call that began it",
            )
        in_stages = self.settings.budget is not None
        report = self._stages_report(begun) if in_stages else self._bases_report(begun)
        shown = report.shown
        if shown is not None and self.samples is not None:
            shown = replace(shown, samples=self.samples)
        fingerprints = dict(self.specification.fingerprints)
        return replace(
            report,
            conventions=self.conventions,
            shown=shown,
            fingerprints=fingerprints,
            names=dict(self.names),
        )

    def _bases_report(self, begun: Sequence[StoredStage]) -> Report:
        """The report of the base that found more, where all parts have turned to the same second one."""
        first, second = ([stored for stored in begun if stored.stage.index == k] for k in (0, 1))
        both = (
            self.settings.evidence
            and {stored.stage.part for stored in second} == set(self.specification.parts)
            and all(self._is_done(stored) for stored in (*first, *second))
            and len({_fingerprint_of(stored.stage) for stored in second}) == 1
        )
        reports = [self._parts_report(parts) for parts in ((first, second) if both else (first,))]
        spent = sum(stored.weights.seconds for stored in begun)
        return replace(most_found(reports), seconds={"earlier calls": spent, "total": spent})

    def _parts_report(self, parts: Sequence[StoredStage]) -> Report:
        assert self.log_f is not None, "report() has made sure"
        seconds = sum(stored.weights.seconds for stored in parts)
        return report_of(
            self.settings,
            self.log_f,
            self.exact_log_z,
            self.origins.get(parts[0].stage.base.name) or Origin(parts[0].stage.base),
            [(stored.stage, stored.weights) for stored in parts],
            {"earlier calls": seconds, "total": seconds},
            starts=parts[0].starts if self.settings.evidence else None,
            interrupted=not self.complete,
        )

    def _stages_report(self, begun: Sequence[StoredStage]) -> Report:
        complete = [stored for stored in begun if stored.weights.complete]
        reports = [self._parts_report([stored]) for stored in complete or begun[:1]]
        summaries = [
            summary_of(self._parts_report([replace(stored, starts=None)]), stored.stage)
            for stored in complete
        ]
        return with_stages(best_stage(reports), summaries)


def read_run(folder: str | os.PathLike[str]) -> StoredRun:
    """What is finished of a run; a damaged chunk counts as missing, with a warning.

    Parameters
    ----------
    folder
        The folder that `evaluate(…, run=folder)` has written, finished or not.

    >>> import tempfile
    >>> from meltpoint.evaluation.evaluate import evaluate
    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM([[0.0], [0.0]], [0.0, 0.0], [0.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = evaluate(rbm, [[0, 1], [1, 1]], base="uniform", steps=10, run=f"{folder}/run")
    ...     print(f"{read_run(f'{folder}/run').report().optimistic.value:.4f}")  # log 1/4
    -1.3863
    """
    path = Path(folder)
    specification = read_specification(path)
    store = RunFolder(path, specification.fingerprint)
    log_f = store.read(LOG_F, log_f_layout(specification.test_examples))
    exact = store.read(EXACT, EXACT_LAYOUT)
    stages = tuple(stored for part in specification.parts for stored in _read_stages(store, part))
    return StoredRun(
        path,
        specification,
        stages,
        log_f_from_arrays(log_f) if log_f else None,
        float(exact["log_z"]) if exact else None,
        {stored.stage.base.name: _read_origin(store, stored.stage) for stored in stages},
        _answered(store, specification),
        conventions_from_arrays(store.read(CONVENTIONS, CONVENTIONS_LAYOUT) or {}),
        recall_names(store),
        recall_samples(store),
        frozenset(part for part in specification.parts if turned_to(store, part)),
        frozenset(store.refused),  # after all that is read above
    )


def merge_runs(
    folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str] | None = None
) -> Report:
    """The report of several finished runs together: the same examples with the chains of all of them.

    They must have one specification and different parts. Their AIS chains add up, and so do the particles.

    Parameters
    ----------
    folders
        The folders of the runs.
    out
        A new folder for the joint run, which can be joined with others in turn.

    >>> import tempfile
    >>> from meltpoint.evaluation.evaluate import evaluate
    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM([[0.0], [0.0]], [0.0, 0.0], [0.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     runs = [f"{folder}/{part}" for part in (0, 1)]
    ...     for part, run in enumerate(runs):
    ...         _ = evaluate(rbm, [[0, 1], [1, 1]], base="uniform", steps=10, ais_chains=20, run=run, part=part)
    ...     merge_runs(runs).particles
    41
    """
    runs: list[StoredRun] = []
    for folder in folders:
        with reading_run(folder):
            runs.append(read_run(folder))
    if not runs:
        raise InputError(found="no run", expected="the folders of finished runs", remedy="give at least one")
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
    stages = sorted(
        (stored for run in runs for stored in run.stages),
        key=lambda stored: (stored.stage.part, stored.stage.index),
    )
    parts = tuple(dict.fromkeys(stored.stage.part for stored in stages))
    joint = replace(
        first,
        specification=replace(first.specification, parts=parts),
        stages=tuple(stages),
        origins={name: origin for run in reversed(runs) for name, origin in run.origins.items()},
        turned=frozenset().union(*(run.turned for run in runs)),
    )
    report = joint.report()
    if out is not None:
        _write(joint, runs, report, Path(out))
    return report


def _read_stages(store: RunFolder, part: int) -> Iterator[StoredStage]:
    known: dict[int, StageWeights] = {}
    for stage in read_stages(store, part):
        known[stage.index] = recall_weights(stage, store, known.get(stage.index))
        yield StoredStage(stage, known[stage.index], recall_evidence(stage, store))


def _read_origin(store: RunFolder, stage: Stage) -> Origin:
    """Where the stages start. The pilot has the chain-steps of all bases that were tried."""
    schedules = {
        name: kept
        for name in ("data", "model", "uniform", stage.base.name)
        if (kept := recall_schedule(store, name))
    }
    if stage.base.name not in schedules:
        return Origin(stage.base)
    spent = sum(schedule.pilot.chain_steps for schedule in schedules.values())
    friction = schedules[stage.base.name]
    return Origin(stage.base, replace(friction, pilot=replace(friction.pilot, chain_steps=spent)))


def _answered(store: RunFolder, specification: Specification) -> bool:
    """Whether there is a report of what was asked for last, and not only of what was asked for before."""
    settings = (store.read_report() or {}).get("settings")
    asked = specification.reporting_settings
    return isinstance(settings, dict) and {name: settings.get(name) for name in asked} == asked


def _check_finished(run: StoredRun) -> None:
    if not run.complete:
        raise _unfinished(run)
    if run.settings.budget is not None:
        raise InputError(
            found=f"a run of several stages in {run.folder}",
            expected="runs with a number of steps, chosen beforehand",
            remedy="give steps, chains and examples in place of a gap",
        )


def _unfinished(run: StoredRun) -> InputError:
    return InputError(
        found=f"an unfinished run in {run.folder}",
        expected="finished ones",
        remedy="continue it first: repeat the call that began it",
    )


def _check_same_stage(one: StoredRun, other: StoredRun) -> None:
    """Bases and schedules that were measured on different machines may differ by more than rounding."""
    first, second = (_fingerprint_of(run.stages[0].stage) for run in (one, other))
    if first != second:
        raise InputError(
            found=f"another base or schedule in {other.folder} than in {one.folder}",
            expected="the same: were they measured on machines of different kinds?",
            remedy="compute all parts on machines of one kind, or with the linear schedule and base rates from data",
        )


def _fingerprint_of(stage: Stage) -> str:
    """A text that differs where stages differ by more than their part."""
    return fingerprint(stage_to_arrays(replace(stage, part=0)))


def _write(joint: StoredRun, runs: Sequence[StoredRun], report: Report, out: Path) -> None:
    with open_run(out, joint.specification) as target:
        for run in runs:
            source = RunFolder(run.folder, run.specification.fingerprint)
            names = [LOG_F, EXACT, CONVENTIONS, NAMES, SAMPLES, *(turn_name(part) for part in run.turned)]
            for stored in run.stages:
                base, where = stored.stage.base.name, (stored.stage.part, stored.stage.index)
                names += [base_name(base), schedule_name(base), stage_name(*where), evidence_name(*where)]
                names += [f"{stored.stage.folder}/{task.name}" for task in tasks_of(stored.stage.size)]
            for name in names:
                arrays = source.read(name)
                if arrays is not None and target.read(name) is None:
                    target.write(name, arrays)
            if source.refused:  # it could be read a moment ago
                raise _unfinished(run)
        target.finish(report.to_dict())
