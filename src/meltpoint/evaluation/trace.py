"""trace(): the likelihood along a training run, and what a checkpoint may reuse from earlier ones.

Base and schedule of a checkpoint may come from an earlier one: they are fixed before its chains are run, and every
checkpoint has random numbers of its own, so AIS and RAISE are as unbiased as with any other base and betas
(docs/decisions/trace.md). Whether a new pilot is due is decided by earlier checkpoints alone.
"""

from __future__ import annotations

import glob
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.schedule import are_betas
from meltpoint.arguments import Confidence, Seed, public
from meltpoint.defaults import DEFAULTS, TRACE_AIS_CHAINS, TRACE_CHAINS, TRACE_EXAMPLES, TRACE_STEPS
from meltpoint.errors import InputError, Progress
from meltpoint.evaluation.evaluate import evaluate
from meltpoint.evaluation.settings import SharedOptions
from meltpoint.evaluation.several import (
    ModelSource,
    check_same_visible,
    folder_of,
    named_sources,
    progress_named,
)
from meltpoint.foreign import as_array
from meltpoint.formats.load import load
from meltpoint.models import Model
from meltpoint.models.log_f import LogF
from meltpoint.randomness import Purpose, generator, sequence
from meltpoint.results.compose import optimistic_of
from meltpoint.results.report import Report
from meltpoint.results.trace import Interval, Trace, TracePoint, WhenEvidence
from meltpoint.statistics.estimate import Estimate, combined_error
from meltpoint.training.checkpoint import is_checkpoint, read_checkpoint_model

WatchPoint: TypeAlias = Callable[[TracePoint], None]
"""Called with each checkpoint that is finished."""

_LEAST_TRAIN, _MOST_TRAIN = 1000, 10_000  # training examples whose log f is computed, if there are so many
_FEW, _MANY = 0.3, 0.6  # effective shares of the chains for which steps are doubled or halved
_LEAST_STEPS = TRACE_STEPS // 4
_RENEW_SHARE = 0.5  # of the effective share that a schedule had when it was new


@public
def trace(
    checkpoints: str | os.PathLike[str] | Mapping[str, ModelSource] | Iterable[ModelSource],
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    evidence: WhenEvidence = "some",
    seed: Seed = DEFAULTS.seed,
    confidence: Confidence = DEFAULTS.confidence,
    run: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
    watch: WatchPoint | None = None,
    **options: Unpack[SharedOptions],
) -> Trace:
    """Bracket the likelihoods of test and training examples along a training run.

    The first checkpoint and the last have a pilot of their own; others reuse base and schedule of earlier ones as long
    as enough chains stay effective. Ctrl-C gives the trace of the checkpoints finished by then.

    Parameters
    ----------
    checkpoints
        Files of models or training checkpoints: a pattern such as "run/*.npz" or a folder, in natural order (epoch-2
        before epoch-10); or models and files in the order they are given; a dictionary gives them names.
    test
        Test examples (example, visible unit), not used in training.
    train
        Training examples: for data base rates, for pilots, and to show overfitting (as many of them as there are test
        examples, from 1,000 to 10,000).
    evidence
        At which checkpoints other starts are asked for missed modes: "some" (where the schedule is new: the first, the
        last, and others where it is due), "all" or "none".
    seed
        The seed, from which every checkpoint gets random numbers of its own.
    confidence
        Confidence of each single interval.
    run
        A folder in which the evaluation of every checkpoint is kept; the same call continues.
    progress
        As in `evaluate`; tasks begin with the name of the checkpoint.
    watch
        Called with the `TracePoint` of each finished checkpoint.
    options
        steps (default: 2,000 at the first checkpoint and the last, from 500 to 2,000 between, depending on earlier
        ones), examples (100), chains (1), ais_chains (400), particles, base, schedule, precision, tolerance, exact,
        executor, threads: as in `evaluate`, for every checkpoint.

    >>> import numpy as np
    >>> from meltpoint.models.rbm import RBM
    >>> models = [RBM(np.zeros((3, 2)), np.full(3, bias), np.zeros(2)) for bias in (0.0, 0.5, 1.0)]
    >>> found = trace(models, [[0, 1, 1], [1, 1, 1]], [[1, 1, 1], [0, 1, 1]], steps=10)
    >>> print(found.best.name, len(found.points))
    checkpoint 3 3
    """
    assert not isinstance(progress, bool), "public() has made a callback of it"
    sources = find_checkpoints(checkpoints)
    names = list(sources)
    tracer = Tracer(
        test,
        train,
        run,
        evidence=evidence,
        seed=seed,
        confidence=confidence,
        progress=progress,
        watch=watch,
        **options,
    )
    for name, source in sources.items():
        model = source if isinstance(source, Model) else load_checkpoint(source)
        try:
            tracer.evaluate(name, model, last=name == names[-1])
        except KeyboardInterrupt:
            if not tracer.points:
                raise
            return replace(tracer.trace(), missing=tuple(names[len(tracer.points) :]), interrupted=True)
    return tracer.trace()


class Tracer:
    """Evaluates one checkpoint after another, and carries on base and schedule from each to the next."""

    def __init__(
        self,
        test: ArrayLike,
        train: ArrayLike | None,
        run: str | os.PathLike[str] | None,
        *,
        evidence: WhenEvidence = "some",
        seed: int = DEFAULTS.seed,
        confidence: float = DEFAULTS.confidence,
        progress: Progress | None = None,
        watch: WatchPoint | None = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        self._begun = time.perf_counter()
        self.points: list[TracePoint] = []
        self._test = np.atleast_1d(as_array(test, "test"))
        self._train = None if train is None else np.atleast_1d(as_array(train, "train"))
        self._run, self._progress, self._watch = run, progress, watch
        self._evidence = evidence
        self._seed, self._confidence = seed, confidence
        given = {name: value for name, value in options.items() if value is not None}
        self._steps: Any = given.pop("steps", None)
        self._options: dict[str, Any] = {
            "examples": min(TRACE_EXAMPLES, len(self._test)),
            "chains": TRACE_CHAINS,
            "ais_chains": TRACE_AIS_CHAINS,
            **given,
        }
        self._first: tuple[str, Model] | None = None
        self._source: Report | None = None  # whose base and schedule are carried on
        self._next_steps, self._share = TRACE_STEPS, 0.0
        self._some_train = None if self._train is None else _some(self._train, len(self._test), self._seed)

    def trace(self) -> Trace:
        """The points so far."""
        return Trace(
            points=tuple(self.points),
            test_examples=len(self._test),
            train_examples=0 if self._some_train is None else len(self._some_train),
            confidence=self._confidence,
            seconds=time.perf_counter() - self._begun,
        )

    def evaluate(self, name: str, model: Model, last: bool = False) -> TracePoint:
        """The next checkpoint. KeyboardInterrupt if Ctrl-C came before it was finished."""
        begun = time.perf_counter()
        if self._first is not None:
            check_same_visible(name, model, *self._first)
        if last:  # what a reader quotes is as good as a first one
            self._source, self._next_steps = None, TRACE_STEPS
        source = self._source
        # A chain of an earlier checkpoint must not come back: its noise has decided what is carried on.
        seed = int(sequence(self._seed, Purpose.STAGE, len(self.points), 1).generate_state(1)[0])
        report = evaluate(
            model,
            self._test,
            self._train,
            run=folder_of(self._run, len(self.points), name),
            seed=seed,
            confidence=self._confidence,
            evidence=self._evidence == "all" or (self._evidence == "some" and source is None),
            progress=progress_named(name, self._progress),
            **self._options | self._carried(source),
        )
        if report.interrupted:
            raise KeyboardInterrupt
        self._first = self._first or (name, model)
        self._carry_on(report, new=source is None)
        examples = self._some_train
        train = None if examples is None else model.log_f_estimate(examples, seed=seed)
        point = _point(name, report, train, 1 - self._confidence)
        point = replace(point, new_schedule=source is None, seconds=time.perf_counter() - begun)
        self.points.append(point)
        if self._watch:
            self._watch(point)
        return point

    def _carried(self, source: Report | None) -> dict[str, Any]:
        """The number of steps, or base and betas of an earlier checkpoint, if they are to be carried on."""
        steps = self._next_steps if self._steps is None else self._steps
        if source is None:
            return {"steps": steps}
        if source.friction is None or are_betas(steps):
            return {"base": source.chosen_base, "steps": steps}
        return {"base": source.chosen_base, "steps": source.friction.betas(int(steps))}

    def _carry_on(self, report: Report, new: bool) -> None:
        """Keep what a new pilot has found, or drop it where too few chains have come to count; choose the steps."""
        share = report.ess / len(report.ais_log_weights)
        if new:
            self._source, self._share = report, share
        if share > _MANY:
            self._next_steps = max(_LEAST_STEPS, self._next_steps // 2)
        elif share < _FEW:
            self._next_steps = min(TRACE_STEPS, 2 * self._next_steps)
            if share < _RENEW_SHARE * self._share:
                self._source = None


def _point(name: str, report: Report, train: LogF | None, alpha: float) -> TracePoint:
    """What the report of a checkpoint gives to its point; `train` is log f of training examples."""
    test = report.log_f
    assert test is not None, "a composed report has it"
    return TracePoint(
        name=name,
        conservative=report.conservative,
        optimistic=report.optimistic,
        between=report.between,
        exact=report.exact.value if report.exact and test.is_exact else None,
        train=None if train is None else optimistic_of(report.log_z, train),
        train_between=None if train is None else _train_interval(report.between, test, train, alpha),
        overfit=None if train is None else _overfit(train, test),
        ess=report.ess,
        ais_chains=len(report.ais_log_weights),
        steps=report.settings.steps,
        seed=report.settings.seed,
        new_schedule=False,
        checked=report.evidence is not None,
        reason="misread" if report.misreading else report.verdict.reason,
        seconds=report.seconds["total"],
    )


def _train_interval(between: Interval, test: LogF, train: LogF, alpha: float) -> Interval:
    """Limits for the training examples, from those of log Z that the interval for the test examples implies.

    log p = log f - log Z for both, so what is not known of log Z moves both by as much.
    """
    low, high = between
    test_low, test_high = test.mean_limits(alpha)
    train_low, train_high = train.mean_limits(alpha)
    return low - test_low + train_low, high - test_high + train_high


def _overfit(train: LogF, test: LogF) -> Estimate:
    """Mean log-probability of training examples less that of test examples: log Z is in neither."""
    spread = [
        (float(np.std(log_f.values, ddof=1)) / math.sqrt(len(log_f.values)), len(log_f.values) - 1.0)
        if len(log_f.values) > 1
        else (math.nan, math.inf)
        for log_f in (train, test)
    ]
    error, df = combined_error(*spread)
    # Not the corrected means: only one of the two may have been annealed.
    value = float(np.mean(train.values)) - float(np.mean(test.values))
    return Estimate(value, error, "difference", "the choice of training and test examples", df=df)


def _some(examples: NDArray[Any], count: int, seed: int) -> NDArray[Any]:
    """As many random training examples as there are test examples, from 1,000 to 10,000 if there are so many."""
    n = min(len(examples), max(count, _LEAST_TRAIN), _MOST_TRAIN)
    return examples[np.sort(generator(seed, Purpose.EXAMPLES, 1).choice(len(examples), n, replace=False))]


def find_checkpoints(
    checkpoints: str | os.PathLike[str] | Mapping[str, ModelSource] | Iterable[ModelSource],
) -> dict[str, ModelSource]:
    """Checkpoints by name: files of a pattern or a folder in natural order, all else in the order that is given."""
    if isinstance(checkpoints, str | os.PathLike):
        text = os.fspath(checkpoints)
        pattern = os.path.join(glob.escape(text), "*.npz") if Path(text).is_dir() else text  # noqa: PTH118
        files = in_natural_order(glob.glob(pattern))  # noqa: PTH207
        if not files:
            raise InputError(
                found=f"no file {text}",
                expected="files of models or training checkpoints",
                remedy="quote the pattern, so that the shell leaves it alone: 'run/*.npz'",
            )
        return named_sources(files, noun="checkpoint")
    sources = named_sources(checkpoints, noun="checkpoint")
    if not sources:
        raise InputError(
            found="no checkpoints",
            expected="at least one",
            remedy="pass models, or a pattern such as 'run/*.npz'",
        )
    return sources


def in_natural_order(paths: Iterable[str]) -> list[str]:
    """Paths in the order of their names, numbers in them by value.

    >>> in_natural_order(["epoch-10.npz", "epoch-9.npz"])
    ['epoch-9.npz', 'epoch-10.npz']
    """
    return sorted(
        paths, key=lambda path: [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", path)]
    )


def load_checkpoint(path: str | os.PathLike[str]) -> Model:
    """The model in a file, or the present one in a training checkpoint."""
    return read_checkpoint_model(path) if is_checkpoint(path) else load(path)
