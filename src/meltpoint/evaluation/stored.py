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

from meltpoint.annealing.base import Base
from meltpoint.defaults import Settings
from meltpoint.errors import InputError
from meltpoint.estimators.conventions import ConventionCheck
from meltpoint.estimators.pilot import FrictionSchedule
from meltpoint.evaluation.plan import Decision
from meltpoint.evaluation.prerequisites import Conventions, Origin, Samples, with_steps_of_all
from meltpoint.evaluation.stage import ModelFacts, Stage, StageResult, join_parts, kept_stage
from meltpoint.evaluation.stage_report import best_stage, report_of, summary_of, with_stages
from meltpoint.fingerprint import fingerprint
from meltpoint.models.log_f import LogF
from meltpoint.results.report import Report
from meltpoint.runs.contents import (
    CONVENTIONS,
    EVIDENCE,
    EXACT,
    LOG_F,
    MODEL,
    NAMES,
    SAMPLES,
    STAGE,
    base_name,
    decision_name,
    part_folder,
    schedule_name,
    stage_folder,
)
from meltpoint.runs.records import to_arrays
from meltpoint.runs.run import Run
from meltpoint.runs.specification import Specification, read_specification
from meltpoint.runs.store import RunFolder, open_run, reading_run


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A run on the disk: its folder, what it computes, and the stages of all its parts as far as they are there.

    `origins` are those of the stages by the names of their bases, `turned` the parts that are evaluated from a second
    base too, `damaged` the names of records that are there and cannot be read.
    """

    folder: Path
    specification: Specification
    facts: ModelFacts | None
    stages: tuple[StageResult, ...]
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
        return Settings(**self.specification.settings, **self.specification.reporting_settings)

    @property
    def complete(self) -> bool:
        """Whether its report was written, and nothing is missing of what was begun."""
        if self.damaged:
            return False
        parts = set(self.specification.parts)
        if self.settings.budget is not None:
            begun = {result.stage.part for result in self.stages}
            return begun == parts and all(result.complete for result in self.stages) and self.finished
        wanted = {(part, 0) for part in parts}
        if self.settings.evidence:
            wanted |= {(part, 1) for part in self.turned}
        return wanted <= {(r.stage.part, r.stage.number) for r in self.stages if self._is_done(r)}

    def _is_done(self, result: StageResult) -> bool:
        """Whether all weights of a stage are there, and what other starts say of it, if they were to be asked."""
        return result.complete and (not self.settings.evidence or result.starts is not None)

    def report(self) -> Report:
        """The report of what is finished by now; of several stages the best complete one counts.

        If RAISE has finished no example it raises Interrupted with what AIS has found; if AIS has finished no chain,
        an InputError.
        """
        begun = [result for result in self.stages if result.ais.values is not None]
        if not begun or self.log_f is None or self.facts is None:
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
        return replace(
            report,
            conventions=self.conventions,
            shown=shown,
            fingerprints=dict(self.specification.fingerprints),
            names=dict(self.names),
        )

    def _bases_report(self, begun: Sequence[StageResult]) -> Report:
        """The report of the base that found more, where all parts have turned to the same second one."""
        first, second = ([result for result in begun if result.stage.number == k] for k in (0, 1))
        both = (
            self.settings.evidence
            and {result.stage.part for result in second} == set(self.specification.parts)
            and all(self._is_done(result) for result in (*first, *second))
            and len({_fingerprint_of(result.stage) for result in second}) == 1
        )
        reports = [self._parts_report(parts) for parts in ((first, second) if both else (first,))]
        spent = sum(result.seconds for result in begun)
        return replace(best_stage(reports), seconds={"earlier calls": spent, "total": spent})

    def _parts_report(self, parts: Sequence[StageResult]) -> Report:
        assert self.log_f is not None, "report() has made sure"
        assert self.facts is not None, "report() has made sure"
        result = replace(join_parts(parts), interrupted=not self.complete)
        if not self.settings.evidence:
            result = replace(result, starts=None)
        base = result.stage.base
        origin = self.origins.get(base.name) or Origin(base)
        seconds = {"earlier calls": result.seconds, "total": result.seconds}
        return report_of(self.facts, self.settings, self.log_f, self.exact_log_z, origin, result, seconds)

    def _stages_report(self, begun: Sequence[StageResult]) -> Report:
        assert self.facts is not None, "report() has made sure"
        complete = [result for result in begun if result.complete]
        reports = [self._parts_report([result]) for result in complete or begun[:1]]
        passes = self.facts.raise_passes
        alone = [replace(result, starts=None) for result in complete]
        summaries = [summary_of(self._parts_report([result]), result.stage, passes) for result in alone]
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
    run = Run(1, folder=store)
    facts = run.recall(MODEL, ModelFacts)
    precision = str(specification.settings["precision"])
    stages = tuple(
        result
        for part in specification.parts
        if facts is not None
        for result in _read_stages(run, part, facts, precision)
    )
    conventions = run.recall(CONVENTIONS, Conventions)
    samples = run.recall(SAMPLES, Samples)
    return StoredRun(
        path,
        specification,
        facts,
        stages,
        run.recall(LOG_F, LogF, example=specification.test_examples),
        run.recall(EXACT, float),
        {result.stage.base.name: _read_origin(run, result.stage.base) for result in stages},
        _answered(store, specification),
        conventions and conventions.check,
        run.recall(NAMES, dict[str, str]) or {},
        None if samples is None else samples.states,
        frozenset(result.stage.part for result in stages if result.stage.number > 0),
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
        (result for run in runs for result in run.stages),
        key=lambda result: (result.stage.part, result.stage.number),
    )
    parts = tuple(dict.fromkeys(result.stage.part for result in stages))
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


def _read_stages(run: Run, part: int, facts: ModelFacts, precision: str) -> Iterator[StageResult]:
    for number in itertools.count():
        if run.inside(part_folder(part)).recall(decision_name(number), Decision) is None:
            return
        result = kept_stage(stage_folder(part, number), facts, precision, run)
        if result is None:
            return
        yield result


def _read_origin(run: Run, base: Base) -> Origin:
    """Where stages start. The pilot has the chain-steps of all bases that were tried."""
    names = dict.fromkeys(("data", "model", "uniform", base.name))
    frictions = {name: run.recall(schedule_name(name), FrictionSchedule) for name in names}
    return with_steps_of_all(Origin(base, frictions[base.name]), [f for f in frictions.values() if f])


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
    return fingerprint(to_arrays(replace(stage, part=0)))


def _write(joint: StoredRun, runs: Sequence[StoredRun], report: Report, out: Path) -> None:
    with open_run(out, joint.specification) as target:
        for run in runs:
            source = RunFolder(run.folder, run.specification.fingerprint)
            names = [MODEL, LOG_F, EXACT, CONVENTIONS, NAMES, SAMPLES]
            for result in run.stages:
                stage = result.stage
                names += [base_name(stage.base.name), schedule_name(stage.base.name)]
                names += [f"{part_folder(stage.part)}/{decision_name(stage.number)}"]
                names += [f"{stage.folder}/{name}" for name in (STAGE, EVIDENCE)]
                for batch in stage.batches(run.facts, run.settings.precision):
                    names += [f"{stage.folder}/{chunk.name}" for chunk in batch.chunks]
            for name in names:
                arrays = source.load(name, dict)
                if arrays is not None and target.load(name, dict) is None:
                    target.write(name, arrays)
            if source.refused:  # it could be read a moment ago
                raise _unfinished(run)
        target.finish(report.to_dict())
