"""Runs on disk: how much is finished, the report of that, and several runs joined.

Neither model nor data are needed. Reports are made by the same code as those of evaluate(), with the same numbers.
"""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from meltpoint.arguments import public
from meltpoint.defaults import Settings
from meltpoint.errors import InputError
from meltpoint.estimators.pilot import FrictionSchedule
from meltpoint.evaluation.plan import Decision
from meltpoint.evaluation.prerequisites import Conventions, Samples, with_steps_of_all
from meltpoint.evaluation.reporting import FinishedStage, Subject, report_of_best, with_rest
from meltpoint.evaluation.stage import ModelFacts, Stage, StageResult, join_parts, kept_stage
from meltpoint.fingerprint import fingerprint
from meltpoint.models.log_f import LogF
from meltpoint.results.report import Report
from meltpoint.runs.contents import (
    CONVENTIONS,
    EXACT,
    LOG_F,
    MODEL,
    NAMES,
    SAMPLES,
    decision_name,
    part_folder,
    schedule_name,
    stage_folder,
)
from meltpoint.runs.records import to_arrays
from meltpoint.runs.run import Run
from meltpoint.runs.specification import Specification, read_specification
from meltpoint.runs.store import RunFolder, open_run, reading_run

_RECORDS = ("*.npz", "part-*/*.npz", "part-*/stage-*/*.npz")
"""Where reports find what they are made of; other folders have chunks of what is finished."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredRun:
    """A run on the disk: its folder, what it computes, and the stages of all its parts as far as they are there.

    `subject` is what reports say besides, None where it is not yet there; `frictions` are those from bases by name,
    `samples` those of the model to look at. `answered` says that there is a report of what was asked for last,
    `unbegun` that a further stage was decided on.
    `damaged` are the names of records that are there and cannot be read.
    """

    folder: Path
    specification: Specification
    subject: Subject | None
    stages: tuple[StageResult, ...]
    frictions: Mapping[str, FrictionSchedule]
    samples: NDArray[Any] | None
    answered: bool
    unbegun: bool
    damaged: frozenset[str]

    def __repr__(self) -> str:
        return f"StoredRun({self.folder}, {'finished' if self.complete else 'unfinished'})"

    @property
    def settings(self) -> Settings:
        """What was asked for when the run was begun."""
        return _settings_of(self.specification)

    @property
    def complete(self) -> bool:
        """Whether its report was written, and nothing is missing of what was begun."""
        parts = set(self.specification.parts)
        if self.subject is None or self.damaged or {each.stage.part for each in self.stages} != parts:
            return False
        if self.settings.budget is not None:
            return self.answered and all(result.complete for result in self.stages)
        # Without evidence no second base is reported.
        first_only = not self.settings.evidence
        if self.unbegun and not first_only:
            return False
        return all(self._is_done(each) for each in self.stages if not (first_only and each.stage.number))

    def _is_done(self, result: StageResult) -> bool:
        """Whether all weights of a stage are there, and what other starts say of it, if they were to be asked."""
        return result.complete and (not self.settings.evidence or result.starts is not None)

    def report(self) -> Report:
        """The report of what is finished by now; of several stages the best complete one counts.

        If RAISE has finished no example it raises Interrupted with what AIS has found; if AIS has finished no chain,
        an InputError.
        """
        begun = [result for result in self.stages if result.ais.values is not None]
        if not begun or self.subject is None:
            raise InputError(
                found=f"no finished chain in {self.folder}",
                expected="at least one finished chain",
                remedy="continue the run: repeat the call that began it",
            )
        finished = self._finished_stages(begun)
        report = report_of_best(finished) if finished else self.subject.report(begun[0])
        spent = sum(result.seconds for result in begun)
        friction = self.frictions.get(report.settings.base)
        friction = with_steps_of_all(friction, list(self.frictions.values()))
        seconds = {"total": spent}
        return with_rest(report, friction, self.samples, seconds, interrupted=not self.complete)

    def _finished_stages(self, begun: Sequence[StageResult]) -> list[FinishedStage[Report]]:
        """What to choose the reported stage from: complete ones, or, of a given size, what parts found together.

        A second base counts where all parts have turned to the same one.
        """
        assert self.subject is not None, "report() has made sure"
        if self.settings.budget is not None:
            return [self.subject.finish(result) for result in begun if result.complete]
        first, second = ([result for result in begun if result.stage.number == k] for k in (0, 1))
        both = (
            self.settings.evidence
            and {result.stage.part for result in second} == set(self.specification.parts)
            and all(self._is_done(result) for result in (*first, *second))
            and len({_fingerprint_of(result.stage) for result in second}) == 1
        )
        return [self.subject.finish(join_parts(parts)) for parts in ((first, second) if both else (first,))]


@public
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
    run = Run(1, folder=store)
    facts = run.recall(MODEL, ModelFacts)
    log_f = run.recall(LOG_F, LogF, example=specification.test_examples)
    conventions = run.recall(CONVENTIONS, Conventions)
    exact_log_z, names = run.recall(EXACT, float), run.recall(NAMES, dict[str, str])
    stages = tuple(_read_stages(run, specification))
    samples = run.recall(SAMPLES, Samples)
    subject = None
    if facts is not None and log_f is not None:
        subject = Subject(
            facts=facts,
            settings=_settings_of(specification),
            log_f=log_f,
            exact_log_z=exact_log_z,
            conventions=conventions and conventions.check,
            fingerprints=specification.fingerprints,
            names=names or {},
        )
    bases = dict.fromkeys(("data", "model", "uniform", *(result.stage.base.name for result in stages)))
    frictions = {name: run.recall(schedule_name(name), FrictionSchedule) for name in bases}
    return StoredRun(
        folder=path,
        specification=specification,
        subject=subject,
        stages=stages,
        frictions={name: friction for name, friction in frictions.items() if friction is not None},
        samples=None if samples is None else samples.states,
        answered=_is_answered(store, specification),
        unbegun=any(
            run.inside(part_folder(part)).recall(decision_name(number), Decision)
            for part in specification.parts
            for number in [sum(each.stage.part == part for each in stages)]
        ),
        damaged=frozenset(store.refused),  # after all that is read above
    )


@public
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
        (result for run in runs for result in run.stages),
        key=lambda result: (result.stage.part, result.stage.number),
    )
    parts = tuple(dict.fromkeys(result.stage.part for result in stages))
    frictions = {name: friction for run in reversed(runs) for name, friction in run.frictions.items()}
    specification = replace(first.specification, parts=parts)
    joint = replace(first, specification=specification, stages=tuple(stages), frictions=frictions)
    report = joint.report()
    if out is not None:
        _write(specification, runs, report, Path(out))
    return report


def _settings_of(specification: Specification) -> Settings:
    return Settings(**specification.settings, **specification.reporting_settings)


def _read_stages(run: Run, specification: Specification) -> Iterator[StageResult]:
    """The stages of all parts, as far as they were begun; with other starts only if these are to be reported."""
    settings = _settings_of(specification)
    for part in specification.parts:
        for number in itertools.count():
            decided = run.inside(part_folder(part)).recall(decision_name(number), Decision)
            result = decided and kept_stage(stage_folder(part, number), settings.precision, run)
            if result is None:
                break
            yield result if settings.evidence else replace(result, starts=None)


def _is_answered(store: RunFolder, specification: Specification) -> bool:
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
    return fingerprint(to_arrays(replace(stage, part=0)))


def _write(specification: Specification, runs: Sequence[StoredRun], report: Report, out: Path) -> None:
    """Write the joint run: all records of all runs, of those that they share the first one's."""
    with open_run(out, specification) as target:
        for run in runs:
            source = RunFolder(run.folder, specification.fingerprint)
            files = [file for pattern in _RECORDS for file in sorted(run.folder.glob(pattern))]
            for file in files:
                name = file.relative_to(run.folder).with_suffix("").as_posix()
                arrays = source.load(name, dict)
                if arrays is not None and target.load(name, dict) is None:
                    target.write(name, arrays)
            if source.refused:  # it could be read a moment ago
                raise _unfinished(run)
        target.finish(report.to_dict())
